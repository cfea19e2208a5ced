# SPDX-License-Identifier: Apache-2.0
"""Printed rows of int8 weights that are bytes: on an emulated Cortex-M4 the same bytes as their reference in C,
registers as they were, the instructions that they say, and the machine code that was described; one firmware for all,
in the orders of all cores."""

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
from tinyet.tiles.core import PAGES
from tinyet.tiles.form import Form
from tinyet.tiles.row import CHANNELS, Row, files, function, turns_of
from tinyet.timing.cores import CORES

M4 = CORES["cortex-m4"]
ONE, TWO, PLAIN = Form.ONE_SIDED, Form.TWO_SIDED, Form.PLAIN
ROWS = (
    (Row(1, 4, ONE, 9), 4),
    (Row(5, 12, TWO), 8),
    (Row(12, 12, PLAIN), 4),
    (Row(16, 8, ONE, 12, -5, 127), 8),
    (Row(19, 8, TWO, 0, -128, 30), 4),
    (Row(7, 2, PLAIN, 0, -100, 9), 12),
)
"""Each rounding, with bounds on both sides and without, with a loop, with pairs before it, and without; outputs."""
PRINTED = tuple((row, outputs, page) for page in PAGES for row, outputs in ROWS)
MOST = max(outputs for _, outputs in ROWS)
TEXT = """
%(includes)s

%(arrays)s

%(called)s
static const struct {
  tinyet_tile_function_dsp function;
  const int32_t *weights;
  int32_t count;
} entries[] = {{nothing, NULL, 0}, %(entries)s};

static int8_t made[%(most)d + 8], wanted[%(most)d + 8];

static tinyet_status run(void) {
  for (uint32_t i = 0; i < %(count)du; i++) {
    memset(made, 0x5a, sizeof made);
    memset(wanted, 0x5a, sizeof wanted);
    TINYET_LAYER_BEGIN(i);
    wrong[i] = guarded(entries[i].weights, pixels, made + 3, made + 3 + entries[i].count, entries[i].function);
    TINYET_LAYER_END(i);
%(references)s
    wrong[i] |= memcmp(wanted, made, sizeof wanted) != 0 ? 2u : 0u;
  }
  return TINYET_OK;
}
"""


def stream(row: Row, outputs: int, rng: np.random.Generator) -> Array:
    """Of all outputs, with factors and shifts such as roundings have."""
    groups = outputs // CHANNELS
    bias = rng.integers(-(2**12), 2**12, (groups, CHANNELS))
    body = rng.integers(-(2**31), 2**31, (groups, 2 * row.pairs))
    shape = (groups, CHANNELS)
    right, finer = rng.integers(6, 12, shape), 0
    if row.form is PLAIN:
        right = rng.integers(0, 5, shape)
    if row.form is ONE:
        right, finer = rng.integers(2, 6, shape), row.exponent
    ends = [rng.integers(2**30, 2**31, shape), rng.integers(-(2**6), 2**6, shape) << finer, right]
    if row.form is PLAIN:
        ends += [rng.integers(1, 4, shape), -(right > 0).astype(np.int64)]
    found = np.concatenate([bias, body, np.stack(ends, axis=2).reshape(groups, -1)], axis=1)
    assert found.shape[1] == row.group_words
    return found.ravel()


def model() -> str:
    """Layer 0 calls an empty function, layer i + 1 the function i. The output: a word for each, 0 where it is right."""
    rng = np.random.default_rng(6)
    values = rng.integers(-128, 128, (max(row.pairs for row, _ in ROWS), 2))
    arrays = [c_array("uint32_t", "pixels", values[:, 0] % 2**16 + 2**16 * values[:, 1])]
    for i, (row, outputs) in enumerate(ROWS):
        arrays.append(c_array("int32_t", f"weights_{i}", stream(row, outputs, rng)))
    entries, references = [], []
    for i, (row, outputs, page) in enumerate(PRINTED, 1):
        entries.append(f"{{{page.named(row.name)}, weights_{(i - 1) % len(ROWS)}, {outputs}}}")
        references.append(
            [
                f"const tinyet_row_shape_dsp shape = {row.literal};",
                "tinyet_row_dsp(entries[i].weights, pixels, wanted + 3, wanted + 3 + entries[i].count, shape);",
            ]
        )
    text = TEXT % {
        "includes": "\n".join(f'#include "{page.named(row.name)}.h"' for row, _, page in PRINTED),
        "arrays": "\n".join(arrays),
        "entries": ", ".join(entries),
        "called": harness.called(
            "tinyet_tile_function_dsp", "const int32_t *w, const uint32_t *x, void *o, const void *e"
        ),
        "most": MOST,
        "count": len(PRINTED) + 1,
        "references": harness.references(references),
    }
    return harness.model("rows", len(PRINTED) + 1, text)


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M4, board.M4_CLANG], ids=str)
def test_bytes_registers_instructions_and_code(image: Image, tmp_path: Path) -> None:
    nests = {
        page.named(row.name): (function(row, page), turns_of(row, outputs)) for row, outputs, page in PRINTED
    }
    harness.assert_nests(image, tmp_path, [files(row, page) for row, _, page in PRINTED], model(), nests)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"pairs": 0}, "at least one pair"),
        ({"pairs": 2**14}, "at least one pair"),
        ({"turn": 0}, "at least one pair"),
        ({"exponent": 0}, "an exponent of 1 to 31"),
        ({"form": TWO}, "an exponent of 1 to 31"),
        ({"low": 5, "high": 4}, "bounds within int8"),
        ({"high": 128}, "bounds within int8"),
    ],
)
def test_a_description_that_makes_no_sense(change: dict[str, Any], match: str) -> None:
    with pytest.raises(InternalError, match=match):
        replace(Row(8, 4, ONE, 12), **change)


def test_names_say_all_that_the_text_depends_on() -> None:
    base = Row(8, 4, ONE, 12)
    changes: tuple[dict[str, Any], ...] = (
        {"pairs": 9},
        {"turn": 3},
        {"turn": 8},
        {"exponent": 13},
        {"exponent": 0, "form": TWO},
        {"exponent": 0, "form": PLAIN},
        {"low": -5},
        {"high": 5},
    )
    changed = [replace(base, **change) for change in changes]
    texts = {row.name: files(row)[f"{row.name}.c"] for row in (base, *changed)}
    assert len(texts) == len(set(texts.values())) == 1 + len(changed)
