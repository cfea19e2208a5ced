# SPDX-License-Identifier: Apache-2.0
"""Printed sums of gates: on an emulated Cortex-M4 the same as their reference in C, registers as they were, the
instructions that they say, and the machine code that was described; one firmware for all, in the orders of all
cores."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.calls import board
from tests.calls.board import Image
from tests.tiles import harness
from tests.tiles.harness import c_array
from tinyet.errors import InternalError
from tinyet.ir import Array
from tinyet.tiles.core import PAGES
from tinyet.tiles.gates import STRAIGHT, TURN, UNITS, Gates, Scaling, files, function, turns_of
from tinyet.timing.cores import CORES

M4 = CORES["cortex-m4"]
RIGHT, LEFT, ANY = Scaling.RIGHT, Scaling.LEFT, Scaling.ANY
CASES = (
    (Gates.of(1, RIGHT, False), 1, 4, 1),
    (Gates.of(STRAIGHT, ANY, True), 4, 8, STRAIGHT),
    (Gates.of(2 * TURN, LEFT, False), 3, 4, 2 * TURN),
    (Gates.of(2 * TURN + 3, ANY, False), 2, 12, 2 * TURN + 3),
    (Gates(1, 2, RIGHT, True), 4, 4, 3),
    (Gates(0, 1, LEFT, True), 1, 8, 5),
)
"""Each scaling, added in both ways, with a loop of one turn and of several, and without; gates, rows of each, fours of
inputs."""
PRINTED = tuple((*case, page) for page in PAGES for case in CASES)
MOST_SUMS = max(count * rows for _, count, rows, _ in CASES)
TEXT = """
%(includes)s

%(arrays)s

%(called)s
static const struct {
  tinyet_gates_function_dsp function;
  const int32_t *weights;
  int32_t count, rows, fours;
  const int32_t *scaling;
} entries[] = {{nothing, NULL, 0, 0, 0, NULL}, %(entries)s};

static int16_t made[%(most)d + 4], wanted[%(most)d + 4];

static uint32_t x[%(words)d];
static tinyet_gates_dsp gates;

/* Inputs, and gates whose sums begin behind two values that no function may write. */
__attribute__((noinline)) static void prepare(uint32_t i, int16_t *sums) {
  const int32_t words = 2 * entries[i].fours, rows = entries[i].rows;
  memcpy(sums, starts, sizeof made);
  memcpy(x, inputs, (size_t)words * 4);
  x[words] = inputs[words] & 0xfffffffeu;
  gates.inputs_end = x + words;
  gates.end = sums + 2 + entries[i].count * rows;
  for (int32_t k = 0; k < entries[i].count; k++) {
    const int32_t *const s = entries[i].scaling + 5 * k;
    const tinyet_gate_scaling_dsp gate = {s[0], s[1], s[2], sums + 2 + (k + 1) * rows, s[3], s[4]};
    gates.gates[k] = gate;
  }
}

static tinyet_status run(void) {
  for (uint32_t i = 0; i < %(count)du; i++) {
    prepare(i, made);
    TINYET_LAYER_BEGIN(i);
    wrong[i] = guarded(entries[i].weights, x, made + 2, &gates, entries[i].function);
    TINYET_LAYER_END(i);
    prepare(i, wanted);
%(references)s
    wrong[i] |= memcmp(wanted, made, sizeof wanted) != 0 ? 2u : 0u;
  }
  return TINYET_OK;
}
"""


def scaling(gates: Gates, count: int, rng: np.random.Generator) -> Array:
    """(gates, 5): multiplier, offset, shift, before and mask of factors below a half, and of others."""
    left = np.full(count, gates.scaling is LEFT)
    if gates.scaling is ANY:
        left = np.arange(count) % 2 == 0
    shift = np.where(left, 0, rng.integers(1, 12, count))
    offset = np.where(left, 0, 2**shift // 2)
    before = np.where(left, rng.integers(1, 8, count), 1)
    multiplier = rng.integers(2**30, 2**31, count) >> np.where(left, 8, 0)
    return np.stack([multiplier, offset, shift, before, np.where(left, 0, -1)], axis=1)


def stream(groups: int, fours: int, rng: np.random.Generator) -> Array:
    """Of groups of four rows: biases, then words of 256 times a weight and another one."""
    bias = rng.integers(-(2**14), 2**14, (groups, UNITS))
    bias[:, 1::2] = 256 * bias[:, 1::2] + bias[:, 0::2]
    halves = rng.integers(-127, 128, (2, groups, 4 * fours, 2))
    lanes = 256 * halves[0] + halves[1]
    words = lanes[..., 0] % 2**16 + 2**16 * lanes[..., 1]
    return np.concatenate([bias, words], axis=1).ravel()


def model() -> str:
    """Layer 0 calls an empty function, layer i + 1 the function i. The output: a word for each, 0 where it is right."""
    rng = np.random.default_rng(5)
    most = max(fours for *_, fours in CASES)
    values = rng.integers(-128, 128, (2 * most + 1, 2))
    arrays = [
        c_array("uint32_t", "inputs", values[:, 0] % 2**16 + 2**16 * values[:, 1]),
        c_array("int16_t", "starts", rng.integers(-(2**15), 2**15, MOST_SUMS + 4)),
    ]
    for i, (gates, count, rows, fours) in enumerate(CASES):
        arrays.append(c_array("int32_t", f"weights_{i}", stream(count * rows // UNITS, fours, rng)))
        arrays.append(c_array("int32_t", f"scaling_{i}", scaling(gates, count, rng).ravel()))
    entries, references = [], []
    for i, (gates, count, rows, fours, page) in enumerate(PRINTED, 1):
        case = (i - 1) % len(CASES)
        name = page.named(gates.name)
        entries.append(f"{{{name}, weights_{case}, {count}, {rows}, {fours}, scaling_{case}}}")
        references.append(
            [
                f"tinyet_gate_rows_dsp(entries[i].weights, x, wanted + 2, &gates, {int(gates.apart)});",
            ]
        )
    text = TEXT % {
        "includes": "\n".join(f'#include "{page.named(gates.name)}.h"' for gates, *_, page in PRINTED),
        "arrays": "\n".join(arrays),
        "entries": ", ".join(entries),
        "called": harness.called(
            "tinyet_gates_function_dsp",
            "const int32_t *w, const uint32_t *x, int16_t *s, const tinyet_gates_dsp *g",
        ),
        "most": MOST_SUMS,
        "words": 2 * most + 1,
        "count": len(PRINTED) + 1,
        "references": harness.references(references),
    }
    return harness.model("gates", len(PRINTED) + 1, text)


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M4, board.M4_CLANG], ids=str)
def test_sums_registers_instructions_and_code(image: Image, tmp_path: Path) -> None:
    nests = {
        page.named(gates.name): (function(gates, page), turns_of(gates, *sizes))
        for gates, *sizes, page in PRINTED
    }
    harness.assert_nests(image, tmp_path, [files(gates, page) for gates, *_, page in PRINTED], model(), nests)


def test_what_four_inputs_of_four_rows_take() -> None:
    """Six products, four words widened, and their loads: twelve instructions at most, in the order of any core
    eleven."""

    def more(fours: int) -> int:
        short, long = (Gates.of(n, RIGHT, False) for n in (fours, fours + 1))
        works = [
            function(gates).work(M4, turns_of(gates, 1, 4, n))
            for gates, n in ((short, fours), (long, fours + 1))
        ]
        return works[1].instructions - works[0].instructions

    assert {more(fours) for fours in range(1, STRAIGHT)} <= {11, 12}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"before": 0, "turn": 0}, "at least four inputs"),
        ({"before": -1}, "at least four inputs"),
        ({"before": 4}, "fewer fours before a loop"),
    ],
)
def test_a_description_that_makes_no_sense(change: dict[str, Any], match: str) -> None:
    with pytest.raises(InternalError, match=match):
        replace(Gates(1, 4, RIGHT), **change)


def test_names_say_all_that_the_text_depends_on() -> None:
    base = Gates(1, 4, RIGHT)
    changes: tuple[dict[str, Any], ...] = (
        {"before": 2},
        {"turn": 3},
        {"turn": 0},
        {"scaling": LEFT},
        {"scaling": ANY},
        {"apart": True},
    )
    changed = [replace(base, **change) for change in changes]
    texts = {f.name: files(f)[f"{f.name}.c"] for f in (base, *changed)}
    assert len(texts) == len(set(texts.values())) == 1 + len(changed)


def test_every_depth_has_a_function() -> None:
    for fours, apart in itertools.product(range(1, 4 * TURN), (False, True)):
        gates = Gates.of(fours, ANY, apart)
        turns = turns_of(gates, 4, 8, fours)
        assert gates.before + gates.turn * turns["3"] == fours
