# SPDX-License-Identifier: Apache-2.0
"""Printed parts of fully connected layers for Helium: on an emulated Cortex-M55 the same as their references in C,
general and vector registers as they were, the instructions that they say; one firmware for all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.calls import board
from tests.calls.board import Image
from tests.calls.emulated import skip_missing
from tests.tiles import harness
from tests.tiles.harness import c_array
from tinyet.delegates import kernel_sources
from tinyet.device.device import open_device
from tinyet.errors import InternalError
from tinyet.tiles.helium_linear import (
    MOST_VECTORS,
    Printed,
    Products,
    Rounding,
    Rounding16,
    files,
    instructions,
)

ROUNDINGS = (
    Rounding(True, False, False, True),
    Rounding(True, False, True, True),
    Rounding(True, True, False, False),
    Rounding(False, False, False, False),
    Rounding(False, True, True, False),
    Rounding(True, False, False, True, even=True),
    Rounding(True, True, True, False, even=True),
)
ROUNDINGS16 = (
    Rounding16(0, False, False, False),
    Rounding16(0, True, False, True),
    Rounding16(5, False, True, True),
    Rounding16(13, True, True, False),
    Rounding16(1, True, True, True),
)
PRODUCTS = tuple(Products(n + 1, bits) for bits in (8, 16) for n in range(MOST_VECTORS))
PRINTED: tuple[Printed, ...] = (*PRODUCTS, *ROUNDINGS, *ROUNDINGS16)
TURNS = 3
"""Of a call: eights of sums, sixteens of outputs of int8, eights of int16."""
MISSING = 3
"""Outputs of int16 that there are not in a last turn."""

TEXT = """
%(includes)s

%(arrays)s

%(guarded)s
static const tinyet_rounding_mve roundings[] = {%(roundings)s}, roundings16[] = {%(roundings16)s};
static int32_t sums[%(products)d][8 * %(turns)d + 1];
static int8_t outputs[%(count_roundings)d][16 * %(turns)d + 1];
static int16_t halves[%(count_roundings16)d][8 * %(turns)d + 1];
"""


def rounding(made: Rounding) -> str:
    """As a tinyet_rounding_mve. Nothing below the zero point is an output where only one side is rounded."""
    zero = -128 if made.zero_lowest else -9
    low = zero if made.one_sided and not made.even else -50 if made.low else -128
    high = 70 if made.high else 127
    return f"{{{int(made.one_sided)}, {int(low > -128 or high < 127)}, {zero}, {low}, {high}}}"


def bounds16(made: Rounding16) -> str:
    """As a tinyet_rounding_mve."""
    return f"{{0, 0, 0, {-500 if made.low else -(2**15)}, {700 if made.high else 2**15 - 1}}}"


def ends(rng: np.random.Generator) -> np.ndarray:
    """Of each four places multipliers and shifts, int8."""
    four = [
        np.concatenate(
            [
                rng.integers(2**30, 2**31, 4).astype("<i4").view(np.int8),
                rng.integers(-26, -18, 4).astype(np.int8),
            ]
        )
        for _ in range(4 * TURNS)
    ]
    return np.concatenate(four)


def model(rng: np.random.Generator) -> str:
    """Layer 0 calls an empty function, the others what is printed. The output: a word for each, 0 where all
    is right."""
    arrays = [
        c_array("int32_t", "words", rng.integers(-(2**31), 2**31, 8 * TURNS * MOST_VECTORS * 4)),
        c_array("int32_t", "ends", ends(rng).view("<i4")),
        c_array("int32_t", "floats", (2.0 ** rng.uniform(-26, -20, 16 * TURNS)).astype("<f4").view("<i4")),
    ]
    for exponent in dict.fromkeys(made.exponent for made in ROUNDINGS16):
        factors = rng.integers(2**14, 2**15, 8 * TURNS) << exponent
        arrays.append(c_array("int32_t", f"factors_{exponent}", factors))
    entries, references = [], []
    for i, products in enumerate(PRODUCTS):
        # Inputs that begin anywhere.
        inputs = f"(const int8_t *)words + {i + 1}"
        given = f"sums[{i}], {inputs}, words, words, sums[{i}] + {8 * TURNS}"
        entries.append(f"{products.name}, {{{given}}}")
        references += [
            "  {",
            "    static int32_t wanted[sizeof sums[0] / 4];",
            "    memset(wanted, 0x5a, sizeof wanted);",
            f"    const int32_t *const found = sums[{i}];",
            "    int32_t *const sums = wanted;",
            "    const int32_t *const from = words, *const end = wanted + sizeof wanted / 4 - 1;",
            f"    const int8_t *const weights = (const int8_t *)words, *const inputs = {inputs};",
            f"    {products.reference}",
            f"    wrong[{i + 1}] |= memcmp(wanted, found, sizeof wanted) != 0 ? 2u : 0u;",
            "  }",
        ]
    for i, made in enumerate(ROUNDINGS):
        at = "floats" if made.even else "ends"
        given = f"words, {at}, outputs[{i}], (const void *){TURNS}, &roundings[{i}]"
        entries.append(f"{made.name}, {{{given}}}")
        place = len(PRODUCTS) + 1 + i
        references += [
            "  {",
            "    static int8_t wanted[sizeof outputs[0]];",
            "    memset(wanted, 0x5a, sizeof wanted);",
            f"    const int8_t *const ends_of = (const int8_t *){at};",
            "    int8_t *const output = wanted;",
            f"    const int32_t *const sums = words, blocks = {TURNS};",
            f"    const tinyet_rounding_mve *const rounding = &roundings[{i}];",
            f"    {made.reference.replace('ends', 'ends_of')}",
            f"    wrong[{place}] |= memcmp(wanted, outputs[{i}], sizeof wanted) != 0 ? 2u : 0u;",
            f"    for (uint32_t p = 1; wrong[{place}] == 0u && wanted[p] == wanted[0]; p++) {{",
            f"      wrong[{place}] = p == sizeof wanted - 2u ? 4u : 0u; /* all the same: nothing is tried */",
            "    }",
            "  }",
        ]
    for i, made16 in enumerate(ROUNDINGS16):
        count = 8 * TURNS - (MISSING if made16.last else 0)
        given = f"words, factors_{made16.exponent}, halves[{i}], (const void *){count}, &roundings16[{i}]"
        entries.append(f"{made16.name}, {{{given}}}")
        place = len(PRODUCTS) + len(ROUNDINGS) + 1 + i
        references += [
            "  {",
            "    static int16_t output[sizeof halves[0] / 2];",
            f"    const int32_t count = {count}, *const sums = words, *const multipliers = factors_{made16.exponent};",
            f"    const tinyet_rounding_mve *const rounding = &roundings16[{i}];",
            "    memset(output, 0x5a, sizeof output);",
            f"    {made16.reference}",
            f"    wrong[{place}] |= memcmp(output, halves[{i}], sizeof output) != 0 ? 2u : 0u;",
            f"    for (uint32_t p = 1; wrong[{place}] == 0u && output[p] == output[0]; p++) {{",
            f"      wrong[{place}] = p == sizeof output / 2u - 2u ? 4u : 0u; /* all the same: nothing is tried */",
            "    }",
            "  }",
        ]
    text = TEXT % {
        "includes": "\n".join(f'#include "{each.name}.h"' for each in PRINTED),
        "arrays": "\n".join(arrays),
        "roundings": ", ".join(map(rounding, ROUNDINGS)),
        "roundings16": ", ".join(map(bounds16, ROUNDINGS16)),
        "count_roundings16": len(ROUNDINGS16),
        "products": len(PRODUCTS),
        "count_roundings": len(ROUNDINGS),
        "turns": TURNS,
        "guarded": harness.GUARDED,
    }
    return harness.model(
        "linear", 1 + len(entries), text + harness.calls(["sums", "outputs", "halves"], entries, references)
    )


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M55, board.M55_CLANG], ids=str)
def test_outputs_registers_and_instructions(image: Image, tmp_path: Path) -> None:
    skip_missing([image])
    kernel_sources.write(tmp_path, [f"tinyet_linear_{kind}_1x8_mve.c" for kind in ("s8", "s8_rne", "s16")])
    flags = "-Wno-cast-align", "-Wno-cast-function-type"
    elf = harness.built(image, tmp_path, map(files, PRINTED), model(np.random.default_rng(3)), *flags)
    with open_device(image.board, elf, "qemu") as device:
        result = device.run([bytes(4)])
    stated = {each.name: instructions(each, 1, TURNS) for each in PRINTED}
    harness.assert_as_stated(result, stated)


def test_what_there_is_not() -> None:
    for vectors in (0, MOST_VECTORS + 1):
        with pytest.raises(InternalError):
            Products(vectors)
    with pytest.raises(InternalError):
        Products(1, 32)
    with pytest.raises(InternalError):
        Rounding16(17, False, False, False)
    with pytest.raises(InternalError):
        Rounding(True, True, False, True)
    with pytest.raises(InternalError):
        Rounding(False, False, False, True)
    with pytest.raises(InternalError):
        Rounding(False, False, False, False, even=True)
