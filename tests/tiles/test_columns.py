# SPDX-License-Identifier: Apache-2.0
"""Printed columns: on an emulated Cortex-M4 the same words as their reference in C, registers as they were, the
instructions that they say, and the machine code that was described; one firmware for all."""

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
from tinyet.tiles.columns import Columns, files, function, turns_of
from tinyet.tiles.core import PAGES
from tinyet.tiles.lanes import Lanes
from tinyet.timing.cores import CORES

M4 = CORES["cortex-m4"]
COLUMNS = (
    *(Columns(Lanes(), values, 2 * values) for values in (1, 2, 3, 7, 16, 25, 26, 61, 64)),
    Columns(Lanes(), 48, 96),
    Columns(Lanes(), 9, 12),
    *(Columns(Lanes(3), values, 2 * values) for values in (1, 4, 5, 32)),
    Columns(Lanes(3, 2), 3, 6),
    Columns(Lanes(5, 2), 40, 80),
    Columns(Lanes(2, 3), 8, 16),
    Columns(Lanes(3, 1, 2), 31, 62),
    # Runs that no pixel sees the end of.
    Columns(Lanes(4, 3), 6, 12),
)
"""Odd numbers of values and even ones, with a loop and without; strides and dilations."""
PRINTED = [(c, page) for page in PAGES for c in COLUMNS]
WORDS = 700
TEXT = """
%(includes)s

%(arrays)s

typedef void (*three)(const int16_t *from, uint32_t *to, const void *end);
typedef void (*any)(void);
%(called)s
static const struct {
  three function;
  int32_t words;
} entries[] = {{nothing, 0}, %(entries)s};

static uint32_t words[%(words)d], wanted[%(words)d];

static tinyet_status run(void) {
  const int16_t *const first = (const int16_t *)values + 1;
  for (uint32_t i = 0; i < %(count)du; i++) {
    memset(words, 0x5a, sizeof words);
    memset(wanted, 0x5a, sizeof wanted);
    TINYET_LAYER_BEGIN(i);
    wrong[i] = guarded(first, words + 4, words + 4 + entries[i].words, entries[i].function);
    TINYET_LAYER_END(i);
%(references)s
    wrong[i] |= memcmp(wanted, words, sizeof wanted) != 0 ? 2u : 0u;
  }
  return TINYET_OK;
}
"""


def model() -> str:
    """Layer 0 calls an empty function, layer i + 1 the columns i. The output: a word for each, 0 where all is right."""
    data = np.random.default_rng(8).integers(-(2**31), 2**31, 800)
    entries, references = [], []
    for c, page in PRINTED:
        count = c.lanes.words((c.values + 1) // 2 * c.lanes.taps)
        assert 4 + count <= WORDS
        entries.append(f"{{(three)(any){page.named(c.name)}, {count}}}")
        references.append(
            [
                f"const tinyet_columns_s16_shape_dsp shape = {c.literal};",
                "tinyet_columns_s16_dsp(first, wanted + 4, shape);",
            ]
        )
    text = TEXT % {
        "includes": "\n".join(f'#include "{page.named(c.name)}.h"' for c, page in PRINTED),
        "arrays": c_array("uint32_t", "values", data),
        "entries": ", ".join(entries),
        "called": harness.called("three", "const int16_t *from, uint32_t *to, const void *end"),
        "words": WORDS,
        "count": len(PRINTED) + 1,
        "references": harness.references(references),
    }
    return harness.model("columns", len(PRINTED) + 1, text)


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M4, board.M4_CLANG], ids=str)
def test_words_registers_instructions_and_code(image: Image, tmp_path: Path) -> None:
    nests = {page.named(c.name): (function(c, page), turns_of(c)) for c, page in PRINTED}
    harness.assert_nests(image, tmp_path, (files(c, page) for c, page in PRINTED), model(), nests)


def test_what_eight_words_take() -> None:
    """A load each, and one store of all: two pairs of four pixels that share nothing."""
    short, long = (
        function(c).work(M4, turns_of(c)) for c in (Columns(Lanes(), values, 64) for values in (8, 16))
    )
    assert long.instructions - short.instructions == 2 * 9
    assert long.cycles - short.cycles == 2 * (9 + 9)


@pytest.mark.parametrize("change", [{"values": 0}, {"apart": 1400}])
def test_a_description_that_makes_no_sense(change: dict[str, Any]) -> None:
    with pytest.raises(InternalError, match="at least a value, and columns as far as an address reaches"):
        replace(COLUMNS[0], **change)


def test_names_say_all_that_the_text_depends_on() -> None:
    base = Columns(Lanes(3), 18, 36)
    changes: tuple[dict[str, Any], ...] = (
        *({"values": 17}, {"apart": 40}),
        *({"lanes": lanes} for lanes in (Lanes(2), Lanes(3, 2), Lanes(3, 1, 2))),
    )
    changed = [replace(base, **change) for change in changes]
    texts = {c.name: files(c)[f"{c.name}.c"] for c in (base, *changed)}
    assert len(texts) == len(set(texts.values())) == 1 + len(changed)
