# SPDX-License-Identifier: Apache-2.0
"""Printed rows of planes: on an emulated Cortex-M4 the same words as their reference in C, registers as they were, the
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
from tinyet.tiles.planes import Planes, files, function, turns_of
from tinyet.timing.cores import CORES

M4 = CORES["cortex-m4"]
PLANES = (
    Planes(1, 25, 8, 200, 2, 14, 98),
    Planes(0, 25, 5, 125, 4, 13, 39, straight=6),
    Planes(1, 24, 5, 120, 4, 13, 65, straight=6),
    Planes(3, 2, 7, 14, 2, 3, 9),
    Planes(0, 1, 4, 4, 4, 1, 3),
    Planes(1, 1, 3, 3, 4, 2, 6),
    Planes(2, 15, 4, 60, 2, 9, 27, straight=3),
    # Along the height: the next row is the next pixel. Pixels too far for one address, and planes.
    Planes(1, 9, 600, 5, 4, 6, 18),
    Planes(1, 13, 700, 3, 2, 8, 40, straight=4),
    Planes(0, 4, 2200, 9, 2, 2, 6),
    Planes(0, 8, 9, 72, 4, 4, 360, straight=3),
    # Of int16: whole words from addresses of words and of halves, and single pixels.
    Planes(1, 25, 8, 200, 2, 14, 98, bits=16),
    Planes(3, 24, 6, 150, 2, 14, 70, straight=3, bits=16),
    Planes(0, 1, 4, 4, 2, 1, 3, bits=16),
    Planes(1, 13, 700, 6, 2, 8, 40, straight=4, bits=16),
    Planes(0, 4, 2200, 10, 2, 2, 6, bits=16),
    # In parts: of the same pixels, of one more and one less, of none; with loops over parts, over words, and both.
    Planes(2, 20, 8, 200, 2, 14, 70, dilation=2, part=14),
    Planes(3, 25, 5, 125, 4, 18, 60, dilation=3, part=12),
    Planes(1, 9, 6, 66, 2, 20, 66, dilation=4, part=10, bits=16),
    Planes(5, 2, 7, 14, 2, 9, 27, dilation=3, part=6),
    Planes(0, 50, 8, 400, 4, 28, 84, dilation=2, part=28, straight=3),
    Planes(4, 44, 4, 176, 2, 28, 92, dilation=4, part=14, straight=2, bits=16),
    Planes(2, 17, 150, 2, 2, 16, 48, dilation=4, part=8),
    Planes(1, 16, 120, 4, 4, 12, 360, dilation=2, part=12, straight=3),
)
"""Both types, both numbers of channels; whole words, and single pixels before, behind and alone; straight code, and
loops with and without a rest."""
PRINTED = [(p, page) for page in PAGES for p in PLANES]
ROWS = 3
PIXELS, WORDS = 9000, 4 * 400


TEXT = """
%(includes)s

%(arrays)s

%(called)s
static const struct {
  tinyet_planes_function_dsp function;
  int32_t words;
} entries[] = {{nothing, 0}, %(entries)s};

static uint32_t planes[%(words)d], wanted[%(words)d];

static tinyet_status run(void) {
  for (uint32_t i = 0; i < %(count)du; i++) {
    const void *const from = pixels;
    memset(planes, 0x5a, sizeof planes);
    memset(wanted, 0x5a, sizeof wanted);
    TINYET_LAYER_BEGIN(i);
    wrong[i] = guarded(from, planes + 4, planes + 4 + entries[i].words, entries[i].function);
    TINYET_LAYER_END(i);
%(references)s
    wrong[i] |= memcmp(wanted, planes, sizeof wanted) != 0 ? 2u : 0u;
  }
  return TINYET_OK;
}
"""


def model() -> str:
    """Layer 0 calls an empty function, layer i + 1 the planes i. The output: a word for each, 0 where all is right."""
    words = np.random.default_rng(8).integers(-(2**31), 2**31, PIXELS // 4)
    entries, references = [], []
    for p, page in PRINTED:
        reference = f"tinyet_planes{'_s16' if p.bits == 16 else ''}_dsp"
        assert 4 + p.channels * p.plane_words <= WORDS
        assert (p.count - 1) * p.step + (ROWS - 1) * p.row_step + p.channels * p.bits // 8 <= PIXELS
        entries.append(f"{{{page.named(p.name)}, {ROWS * p.row_words}}}")
        references.append(
            [
                f"const tinyet_planes_shape_dsp shape = {p.literal};",
                f"{reference}(from, wanted + 4, wanted + 4 + entries[i].words, shape);",
            ]
        )
    text = TEXT % {
        "includes": "\n".join(f'#include "{page.named(p.name)}.h"' for p, page in PRINTED),
        "arrays": c_array("uint32_t", "pixels", words),
        "entries": ", ".join(entries),
        "called": harness.called(
            "tinyet_planes_function_dsp", "const void *i, uint32_t *p, const uint32_t *e"
        ),
        "words": WORDS,
        "count": len(PRINTED) + 1,
        "references": harness.references(references),
    }
    return harness.model("planes", len(PRINTED) + 1, text)


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M4, board.M4_CLANG], ids=str)
def test_words_registers_instructions_and_code(image: Image, tmp_path: Path) -> None:
    nests = {page.named(p.name): (function(p, page), turns_of(p, ROWS)) for p, page in PRINTED}
    harness.assert_nests(image, tmp_path, (files(p, page) for p, page in PRINTED), model(), nests)


def test_what_eight_pixels_take() -> None:
    """Two channels: eight loads side by side; of each two pixels a packing, two extensions, two stores. Of four, the
    other two channels are packed, extended and stored, too. Of int16, a packing and a store for each channel."""

    def more(channels: int, bits: int = 8) -> tuple[int, int]:
        short, long = (
            function(Planes(0, n, 4, 99, channels, 12, 40, bits=bits)).work(M4, turns_of(PLANES[0], 1))
            for n in (8, 16)
        )
        return long.instructions - short.instructions, long.cycles - short.cycles

    assert more(2, 16) == (8 + 4 * 4, 9 + 4 * 4)
    assert more(2) == (8 + 4 * 5, 9 + 4 * 5)
    assert more(4) == (8 + 4 * 10, 9 + 4 * 10)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"channels": 3}, "two or four channels"),
        ({"count": 0}, "a pixel and a word at least"),
        ({"straight": 0}, "a pixel and a word at least"),
        ({"first": 20}, "pixels outside the row"),
        ({"bits": 16, "channels": 4}, "of 16 and two channels"),
        ({"dilation": 4, "part": 7}, "parts of whole words"),
        ({"dilation": 2, "part": 12}, "parts of whole words, and a row of them"),
        ({"dilation": 2, "part": 14, "count": 28}, "pixels outside the row"),
    ],
)
def test_a_description_that_makes_no_sense(change: dict[str, Any], match: str) -> None:
    with pytest.raises(InternalError, match=match):
        replace(PLANES[0], **change)


def test_names_say_all_that_the_text_depends_on() -> None:
    base = Planes(1, 20, 8, 200, 2, 14, 42)
    changes: tuple[dict[str, Any], ...] = (
        *({"first": 2}, {"count": 19}, {"step": 9}, {"row_step": 99}, {"channels": 4}, {"row_words": 15}),
        *({"plane_words": 43}, {"straight": 6}, {"bits": 16}, {"dilation": 2, "part": 14}),
        {"dilation": 4, "part": 7 * 2, "row_words": 28},
    )
    changed = [replace(base, **change) for change in changes]
    texts = {p.name: files(p)[f"{p.name}.c"] for p in (base, *changed)}
    assert len(texts) == len(set(texts.values())) == 1 + len(changed)
