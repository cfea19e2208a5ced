# SPDX-License-Identifier: Apache-2.0
"""Printed pointwise convolutions of few channels: on an emulated Cortex-M4 the same bytes as their reference in C,
registers as they were, the instructions that they say, and the machine code that was described; one firmware for
all."""

from __future__ import annotations

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
from tinyet.tiles.few_channels import Few, files, function, turns_of
from tinyet.timing.cores import CORES

M4 = CORES["cortex-m4"]
FEW = (
    *(Few(channels, 3, 3, 12) for channels in range(1, 9)),
    *(Few(channels, 4, 2, None) for channels in range(1, 9)),
    Few(8, 1, 1, None),
    Few(5, 34, 2, 9),
    Few(4, 16, 16, None),
)
"""Each number of channels, by both roundings; all outputs at once, and in turns."""
PIXELS, MOST = 5, 34
TEXT = """
%(includes)s

%(arrays)s

%(called)s
static const struct {
  tinyet_few_function_dsp function;
  const int32_t *weights;
  int32_t count;
} entries[] = {{nothing, weights_1, 0}, %(entries)s};

static int8_t made[%(bytes)d], wanted[%(bytes)d];

static tinyet_status run(void) {
  for (uint32_t i = 0; i < %(count)du; i++) {
    /* From an odd address on. */
    const int8_t *const from = (const int8_t *)pixels + 1;
    memset(made, 0x5a, sizeof made);
    memset(wanted, 0x5a, sizeof wanted);
    TINYET_LAYER_BEGIN(i);
    wrong[i] = guarded(from, entries[i].weights, made + 4, made + 4 + entries[i].count, entries[i].function);
    TINYET_LAYER_END(i);
%(references)s
    wrong[i] |= memcmp(wanted, made, sizeof wanted) != 0 ? 2u : 0u;
  }
  return TINYET_OK;
}
"""


def stream(f: Few, rng: np.random.Generator) -> Array:
    """Of all outputs: bias, weights, multiplier, offset and shift, such as roundings have."""
    finer = 0 if f.exponent is None else f.exponent
    columns = [
        rng.integers(-(2**18), 2**18, f.outputs),
        *(rng.integers(-(2**31), 2**31, f.outputs) for _ in range(f.pairs)),
        rng.integers(2**30, 2**31, f.outputs) >> (0 if f.exponent is None else 4),
        rng.integers(-(2**6), 2**6, f.outputs) << finer,
        *([rng.integers(12, 18, f.outputs)] if f.exponent is None else []),
    ]
    found = np.stack(columns, axis=1)
    assert found.shape[1] == f.words
    return found.ravel()


def model() -> str:
    """Layer 0 calls an empty function, layer i + 1 the function i. The output: a word for each, 0 where it is right."""
    rng = np.random.default_rng(4)
    arrays = [c_array("uint32_t", "pixels", rng.integers(-(2**31), 2**31, PIXELS * 8 // 4 + 2))]
    entries, references = [], []
    for i, f in enumerate(FEW, 1):
        arrays.append(c_array("int32_t", f"weights_{i}", stream(f, rng)))
        entries.append(f"{{{f.name}, weights_{i}, {PIXELS * f.outputs}}}")
        references.append(
            [
                f"const tinyet_few_shape_dsp shape = {f.literal};",
                "tinyet_few_dsp(from, entries[i].weights, wanted + 4, wanted + 4 + entries[i].count, shape);",
            ]
        )
    text = TEXT % {
        "includes": "\n".join(f'#include "{f.name}.h"' for f in FEW),
        "arrays": "\n".join(arrays),
        "entries": ", ".join(entries),
        "called": harness.called(
            "tinyet_few_function_dsp", "const int8_t *i, const int32_t *w, int8_t *o, const int8_t *e"
        ),
        "bytes": PIXELS * MOST + 8,
        "count": len(FEW) + 1,
        "references": harness.references(references),
    }
    return harness.model("few", len(FEW) + 1, text)


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M4, board.M4_CLANG], ids=str)
def test_bytes_registers_instructions_and_code(image: Image, tmp_path: Path) -> None:
    nests = {f.name: (function(f), turns_of(f, PIXELS)) for f in FEW}
    harness.assert_nests(image, tmp_path, map(files, FEW), model(), nests)


def test_what_an_output_takes() -> None:
    """A load of all that it needs, a product of each two channels, rounding and store: eight instructions for eight
    channels, of which two-sided rounding wants three more."""

    def more(exponent: int | None) -> int:
        short, long = (
            function(Few(8, n, n, exponent)).work(M4, turns_of(Few(8, n, n, exponent), 1)).instructions
            for n in (1, 2)
        )
        return long - short

    assert more(12) == 8
    assert more(None) == 11


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"channels": 0}, "one to 8 channels"),
        ({"channels": 9}, "one to 8 channels"),
        ({"turn": 3}, "in whole turns"),
        ({"outputs": 4096}, "one to 4095 outputs"),
        ({"exponent": 32}, "an exponent of 1 to 31"),
    ],
)
def test_a_description_that_makes_no_sense(change: dict[str, Any], match: str) -> None:
    with pytest.raises(InternalError, match=match):
        replace(FEW[8], **change)


def test_names_say_all_that_the_text_depends_on() -> None:
    base = Few(6, 8, 4, 12)
    changes: tuple[dict[str, Any], ...] = ({"channels": 5}, {"outputs": 16}, {"turn": 2}, {"exponent": None})
    changed = [replace(base, **change) for change in changes]
    texts = {f.name: files(f)[f"{f.name}.c"] for f in (base, *changed)}
    assert len(texts) == len(set(texts.values())) == 1 + len(changed)
