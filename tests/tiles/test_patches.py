# SPDX-License-Identifier: Apache-2.0
"""Printed patches: on an emulated Cortex-M4 the same words as their reference in C, registers as they were, the
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
from tinyet.tiles.core import PAGES
from tinyet.tiles.patches import Patches, files, function, turns_of
from tinyet.timing.cores import CORES

M4 = CORES["cortex-m4"]
PATCHES = (
    Patches(2, 3, 1, 9, 102, 0),
    Patches(1, 3, 1, 9, 102, 0),
    Patches(2, 10, 1, 4, 12, 0),
    Patches(2, 1, 1, 1, 1, 0),
    Patches(1, 1, 1, 1, 1, 0, filled=1),
    *(Patches(pixels, 3, 1, values, 31, 0) for pixels in (1, 2) for values in (1, 2, 3, 5, 6, 7)),
    Patches(2, 3, 3, 3, 200, 14, filled=1),
    Patches(2, 3, 1, 48, 544, 0),
    Patches(2, 1, 1, 64, 64, 0, filled=1),
    Patches(1, 2, 1, 44, 300, 0),
    Patches(2, 2, 3, 22, 301, 33),
    Patches(2, 3, 2, 40, 301, 55),
    Patches(2, 2, 1, 47, 333, 0),
    Patches(1, 3, 1, 55, 400, 0),
    # Windows too far for one address.
    Patches(2, 3, 1, 4, 2300, 0),
    Patches(2, 3, 2, 3, 3000, 900),
    Patches(2, 2, 2, 4, 5000, 2100),
    # Rows as far apart as the call says.
    *(Patches(pixels, 3, 1, values, 0, 0) for pixels in (1, 2) for values in (9, 48, 27, 75)),
    *(Patches(2, 3, 2, values, 0, 90) for values in (6, 7, 36, 45)),
)
"""Each number of values behind fours; straight code and loops over rows, taps and values, with and without a rest."""
PRINTED = [(p, page) for page in PAGES for p in PATCHES]
SECOND = 67
"""Bytes from the first pixel's window to that of the second."""
STEP = 433
"""From row to row, where a function is told so."""
BYTES, WORDS = 7600, 600
TEXT = """
%(includes)s

%(arrays)s

%(called)s
static const tinyet_patches_function_dsp volatile entries[] = {nothing, %(entries)s};

static uint32_t words[%(words)d], wanted[%(words)d];

static tinyet_status run(void) {
  const int8_t *const first = (const int8_t *)pixels, *const second = first + %(second)d;
  for (uint32_t i = 0; i < %(count)du; i++) {
    memset(words, 0x5a, sizeof words);
    memset(wanted, 0x5a, sizeof wanted);
    TINYET_LAYER_BEGIN(i);
    wrong[i] = guarded(first, second, words + 4, %(step)d, entries[i]);
    TINYET_LAYER_END(i);
%(references)s
    wrong[i] |= memcmp(wanted, words, sizeof wanted) != 0 ? 2u : 0u;
  }
  return TINYET_OK;
}
"""


def words_of(p: Patches) -> int:
    return p.pixels * ((p.rows * p.taps * p.values + 1) // 2 + p.rows * p.taps + p.filled)


def model() -> str:
    """Layer 0 calls an empty function, layer i + 1 the patches i. The output: a word for each, 0 where all is right."""
    data = np.random.default_rng(8).integers(-(2**31), 2**31, BYTES // 4)
    references = []
    for p, _ in PRINTED:
        assert 4 + words_of(p) <= WORDS
        assert SECOND + p.reach <= BYTES
        references.append(
            [
                f"const tinyet_patches_shape_dsp shape = {p.literal};",
                f"tinyet_patches_dsp(first, second, wanted + 4, {STEP}, shape);",
            ]
        )
    text = TEXT % {
        "includes": "\n".join(f'#include "{page.named(p.name)}.h"' for p, page in PRINTED),
        "arrays": c_array("uint32_t", "pixels", data),
        "entries": ", ".join(page.named(p.name) for p, page in PRINTED),
        "called": harness.called(
            "tinyet_patches_function_dsp", "const int8_t *a, const int8_t *b, uint32_t *to, int32_t step"
        ),
        "words": WORDS,
        "second": SECOND,
        "step": STEP,
        "count": len(PRINTED) + 1,
        "references": harness.references(references),
    }
    return harness.model("patches", len(PRINTED) + 1, text)


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M4, board.M4_CLANG], ids=str)
def test_words_registers_instructions_and_code(image: Image, tmp_path: Path) -> None:
    nests = {page.named(p.name): (function(p, page), turns_of(p)) for p, page in PRINTED}
    harness.assert_nests(image, tmp_path, (files(p, page) for p, page in PRINTED), model(), nests)


def test_what_eight_values_take() -> None:
    """Of each pixel two loads, four extensions; one store of all."""

    def more(pixels: int) -> tuple[int, int]:
        short, long = (
            function(p).work(M4, turns_of(p)) for p in (Patches(pixels, n, 1, 8, 30, 0) for n in (3, 5))
        )
        return long.instructions - short.instructions, long.cycles - short.cycles

    assert more(2) == (2 * 13, 2 * (5 + 8 + 9))
    # A store of two rows' words.
    assert more(1) == (13, 5 + 8 + 9)


@pytest.mark.parametrize("change", [{"pixels": 3}, {"rows": 0}, {"taps": 0}, {"values": 0}, {"straight": 0}])
def test_a_description_that_makes_no_sense(change: dict[str, Any]) -> None:
    with pytest.raises(InternalError, match="one or two pixels"):
        replace(PATCHES[0], **change)


def test_names_say_all_that_the_text_depends_on() -> None:
    base = Patches(2, 3, 2, 18, 200, 30)
    changes: tuple[dict[str, Any], ...] = (
        *({"pixels": 1}, {"rows": 2}, {"taps": 3}, {"values": 17}, {"row_step": 201}, {"tap_step": 31}),
        *({"filled": 1}, {"straight": 24}),
    )
    changed = [replace(base, **change) for change in changes]
    texts = {p.name: files(p)[f"{p.name}.c"] for p in (base, *changed)}
    assert len(texts) == len(set(texts.values())) == 1 + len(changed)
