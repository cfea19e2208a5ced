# SPDX-License-Identifier: Apache-2.0
"""Printed products of Winograd's convolutions: what they take, and on an emulated Cortex-M4 the same sums as their
reference in C, registers as they were, the instructions that they say; one firmware for all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.calls import board
from tests.calls.board import Image
from tests.calls.emulated import skip_missing
from tests.tiles import harness
from tests.tiles.harness import c_array
from tinyet.device.device import open_device
from tinyet.errors import InternalError
from tinyet.tiles.products import Products, files, function
from tinyet.timing.cores import CORES

M4 = CORES["cortex-m4"]
POSITIONS = 12
PRODUCTS = (
    Products(1, 1),
    Products(2, 4),
    Products(8, 2),
    Products(32, 1),
    Products(7, 1, straight=4, turn=3),
    Products(10, 1, straight=2, turn=2),
)
"""One pair, several positions a turn, the longest straight code, loops of one turn and of several."""

TEXT = """
%(includes)s

%(arrays)s

%(called)s
static const struct {
  tinyet_products_function_dsp function;
  const int32_t *weights;
  int32_t words;
} entries[] = {{nothing, NULL, 0}, %(entries)s};

static uint32_t inputs[%(most)d + 1], wanted[%(most)d + 1];

static tinyet_status run(void) {
  for (uint32_t i = 0; i < %(count)du; i++) {
    memset(inputs, 0x5a, sizeof inputs);
    memcpy(inputs, pixels, (size_t)entries[i].words * 4);
    TINYET_LAYER_BEGIN(i);
    wrong[i] = guarded(entries[i].weights, inputs, inputs + entries[i].words, entries[i].function);
    TINYET_LAYER_END(i);
%(references)s
  }
  return TINYET_OK;
}
"""


def model(rng: np.random.Generator) -> str:
    """Layer 0 calls an empty function, layer i + 1 the products i. The output: a word for each, 0 where all is
    right."""
    most = max(POSITIONS * each.step // 4 for each in PRODUCTS)
    arrays = [c_array("uint32_t", "pixels", rng.integers(-(2**31), 2**31, most))]
    entries, references = [], []
    for i, each in enumerate(PRODUCTS, 1):
        weights = rng.integers(-(2**31), 2**31, POSITIONS * each.group_words)
        arrays.append(c_array("int32_t", f"weights_{i}", weights))
        entries.append(f"{{{each.name}, weights_{i}, {POSITIONS * each.step // 4}}}")
        references += [
            f"    if (i == {i}u) {{",
            "      memset(wanted, 0x5a, sizeof wanted);",
            f"      memcpy(wanted, pixels, (size_t){POSITIONS * each.step});",
            f"      tinyet_products_dsp(weights_{i}, wanted, wanted + entries[i].words, {each.pairs});",
            "      wrong[i] |= memcmp(wanted, inputs, sizeof wanted) != 0 ? 2u : 0u;",
            "    }",
        ]
    text = TEXT % {
        "includes": "\n".join(f'#include "{each.name}.h"' for each in PRODUCTS),
        "arrays": "\n".join(arrays),
        "entries": ", ".join(entries),
        "called": harness.called(
            "tinyet_products_function_dsp", "const int32_t *w, uint32_t *x, const uint32_t *e"
        ),
        "most": most,
        "count": len(PRODUCTS) + 1,
        "references": "\n".join(references),
    }
    return harness.model("products", len(PRODUCTS) + 1, text)


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M4, board.M4_CLANG], ids=str)
def test_sums_registers_and_instructions(image: Image, tmp_path: Path) -> None:
    skip_missing([image])
    elf = harness.built(image, tmp_path, map(files, PRODUCTS), model(np.random.default_rng(4)))
    with open_device(image.board, elf, "qemu") as device:
        result = device.run([bytes(4)])
    stated = {each.name: function(each).work(M4, POSITIONS).instructions for each in PRODUCTS}
    harness.assert_as_stated(result, stated)


def test_a_pair_takes_what_the_manual_says() -> None:
    """Four loads side by side in five cycles, two in three by one instruction, and eight products."""
    short, long = (function(Products(pairs, 1)).work(M4, 1) for pairs in (8, 12))
    assert long.instructions - short.instructions == 4 * (4 + 1 + 8)
    assert long.cycles - short.cycles == 4 * (5 + 3 + 8)


def test_positions_of_a_turn_share_its_branch() -> None:
    one, two = (function(Products(8, groups)).work(M4, 36) for groups in (1, 2))
    assert one.taken_branches - two.taken_branches == 18
    assert one.cycles - two.cycles > 18 * 6


@pytest.mark.parametrize(("pairs", "groups"), [(0, 1), (8, 0), (40, 2), (32, 16)])
def test_what_there_is_not(pairs: int, groups: int) -> None:
    with pytest.raises(InternalError):
        Products(pairs, groups)
