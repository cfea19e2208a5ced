# SPDX-License-Identifier: Apache-2.0
"""Printed blocks and patches for Helium: what they refuse, and on an emulated Cortex-M55 the same as their references
in C, general and vector registers as they were, the instructions that they say; one firmware for all."""

from __future__ import annotations

import dataclasses
import itertools
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
from tinyet.tiles import helium_patches
from tinyet.tiles.helium import LANES, PIXELS, Sums
from tinyet.tiles.helium_blocks import Blocks, files
from tinyet.tiles.helium_blocks_s16 import Blocks16
from tinyet.tiles.helium_patches import Patches
from tinyet.tiles.helium_straight import Straight

CHANNELS = 8
SUMS = (
    Sums(1, 1, 1, 0, 0, 8, pairs=4),
    Sums(1, 1, 2, 0, 0, 24),
    Sums(1, 1, 4, 0, 0, 64, pairs=2),
    Sums(1, 1, 22, 0, 0, 352),
    Sums(1, 1, 40, 0, 0, 640),  # pointers move
    Sums(3, 3, 1, 160, 16, 16),
    Sums(3, 3, 2, 640, 32, 64),  # a stride of two
    Sums(3, 1, 3, 1200, 0, 12),
    Sums(2, 5, 1, 4400, 16, 16),
    Sums(1, 1, 6, 0, 0, 96, pairs=2, held=True),
    Sums(1, 1, 12, 0, 0, 640, held=True),  # pointers move
    Sums(3, 3, 2, 640, 32, 32, held=True),
    Sums(3, 3, 1, 320, 16, 32, pairs=2, held=True),  # a stride of two: two chunks of columns
    Sums(1, 5, 1, 640, 16, 16, held=True),
    Sums(1, 4, 1, 0, 16, 56, pairs=2, held=True, pixels=3),
    Sums(1, 21, 1, 0, 16, 336, held=True, pixels=3),
    Sums(1, 3, 1, 0, 16, 40, pairs=4, held=True, pixels=3),
)
"""Inputs that all stay in registers, that all but one do, that pixels share, that are held for all channels; near and
far."""

BLOCKS = tuple(
    Blocks(each, one_sided, low, high, lowest, groups)
    for each, (one_sided, low, high, lowest, groups) in zip(
        SUMS,
        itertools.cycle(
            (
                (True, False, False, True, 2),
                (False, False, False, False, 2),
                (True, True, False, False, 1),
                (False, True, True, False, 2),
                (True, False, True, True, 2),
            )
        ),
        strict=False,
    )
)
"""All forms of roundings."""
EVEN = (
    Blocks(SUMS[1], True, False, False, True, 2, even=True),
    Blocks(SUMS[5], True, True, True, False, 1, even=True),
    Blocks(SUMS[14], True, False, False, False, 2, even=True),
)
SHIFTS = (9, 10, 11, 8, 10, 12, 9, 10)
STRAIGHT = (
    Straight(Sums(1, 1, 1, 0, 0, 8, pairs=4, whole=True), SHIFTS, True, -128, None, None),
    Straight(Sums(1, 1, 1, 0, 0, 8, pairs=2, free=8), SHIFTS, True, -128, None, 70),
    Straight(Sums(1, 1, 1, 0, 0, 12, free=4), SHIFTS[::-1], False, -9, None, None),
    Straight(Sums(1, 1, 2, 0, 0, 24), SHIFTS, True, -9, -9, None),  # addresses wait on the stack
    Straight(Sums(1, 1, 3, 0, 0, 200), SHIFTS, False, 5, None, 70),  # the pointer moves
)
BLOCKS16 = tuple(
    Blocks16(dataclasses.replace(each, bits=16), exponent, low, high, groups)
    for each, (exponent, low, high, groups) in zip(
        SUMS,
        itertools.cycle(
            (
                (0, False, False, 2),
                (0, True, False, 1),
                (4, False, True, 2),
                (1, True, True, 1),
                (13, False, False, 1),
            )
        ),
        strict=False,
    )
)
Each = Blocks | Straight | Blocks16
PRINTED: tuple[Each, ...] = (*BLOCKS, *EVEN, *STRAIGHT, *BLOCKS16)
COUNT = 2
"""Blocks of a call."""

PATCHES = (
    Patches(1, 5, 5, 1, 16),
    Patches(3, 9, 300, 6, 32),
    Patches(10, 4, 12, 2, 48),
    Patches(2, 40, 5000, 20, 80),  # several vectors; rows far apart
    Patches(11, 16, 70, 127, 176),
)
RUN = 3
"""Pixels of a call."""

TEXT = """
%(includes)s

%(arrays)s

typedef void (*blocks_function)(const int8_t *weights, const int8_t *pixels, tinyet_blocks_mve *blocks);

__attribute__((naked)) static void nothing(const int8_t *w, const int8_t *x, tinyet_blocks_mve *b) {
  __asm__ volatile("bx.n lr");
}

/* Whether the function leaves r4 ... r11 and d8 ... d15 as they were, with values of their own in them. */
__attribute__((naked, noinline)) static uint32_t guarded(const void *w, const void *x, void *s, blocks_function f) {
  __asm__ volatile(
      ".syntax unified\\n"
      "push {r4-r11, lr}\\n"
      "vpush {d8-d15}\\n"
      "mov r12, r3\\n"
%(poison)s
      "blx r12\\n"
      "movs r0, #0\\n"
%(check)s
      "vpop {d8-d15}\\n"
      "pop {r4-r11, pc}\\n");
}

static const tinyet_rounding_mve roundings[] = {%(roundings)s};
static const int32_t *const ends[] = {%(ends)s};
static const int32_t pixels_of[] = {%(pixels)s}, size_of[] = {%(sizes)s};
static int32_t sums[4 * %(channels)d];
static int8_t outputs[%(sums)d][%(count_blocks)d * 8 * %(channels)d + 4];

static const int32_t steps[] = {%(steps)s}; /* bytes from block to block */

static tinyet_blocks_mve blocks_of(uint32_t i, int8_t *to) {
  const tinyet_rounding_mve *const r = &roundings[i];
  const int32_t all = pixels_of[i] * %(channels)d, pixel = size_of[i] * %(channels)d;
  const tinyet_blocks_mve made = {sums, ends[i], to + 4, r->zero_point, %(channels)d / 4, r->low, r->high, pixel,
                                  sums + all, %(count_blocks)d, steps[i], size_of[i] * all - pixel, r};
  return made;
}
static int8_t copies[%(copies)d][1024];

static const struct {
  blocks_function function;
  const void *first;
  void *third; /* where there are no blocks */
} entries[] = {%(entries)s};

static tinyet_status run(void) {
  memset(outputs, 0x5a, sizeof outputs);
  for (uint32_t i = 0; i < %(count)du; i++) {
    const int is_blocks = i != 0u && i < %(sums)du;
    tinyet_blocks_mve blocks = blocks_of(is_blocks ? i : 0u, outputs[is_blocks ? i : 0u]);
    TINYET_LAYER_BEGIN(i);
    wrong[i] = guarded(entries[i].first, pixels, is_blocks ? &blocks : entries[i].third, entries[i].function);
    TINYET_LAYER_END(i);
  }
%(references)s
  return TINYET_OK;
}
"""


def stream(rng: np.random.Generator, sums: Sums) -> np.ndarray:
    """Words of biases and weights; where inputs are held, with the steps between them."""
    biases, count = CHANNELS * sums.pixels, CHANNELS // 4 * sums.lanes
    words = rng.integers(-(2**31), 2**31, biases + count * sums.vectors)
    if not sums.held:
        return words
    parts = np.split(words, [biases + count * sums.columns * (i + 1) for i in range(len(sums.advances) - 1)])
    return np.concatenate([np.append(part, step) for part, step in zip(parts, sums.advances, strict=True)])


def small_stream(rng: np.random.Generator, sums: Sums) -> np.ndarray:
    """Of sums that a shift of some ten bits makes outputs: biases and weights, or constants in free lanes."""
    weights = rng.integers(-128, 128, (CHANNELS // 2, 2 * LANES * sums.vectors)).astype(np.int8).view("<i4")
    if sums.free:
        constants = np.full(LANES, 127, np.int8)
        constants[-1] = 1
        return np.concatenate([constants.view("<i4"), weights.ravel()])
    biases = rng.integers(-(2**15), 2**15, (CHANNELS // 2, 2 * sums.pixels))
    return np.concatenate([biases, weights], axis=1).ravel()


def rounding(blocks: Each) -> str:
    """As a tinyet_rounding_mve. Nothing below the zero point is an output where only one side is rounded."""
    if isinstance(blocks, Blocks16):
        return f"{{0, 0, 0, {-500 if blocks.low else -(2**15)}, {700 if blocks.high else 2**15 - 1}}}"
    if isinstance(blocks, Straight):
        found = blocks.low, blocks.high
        low, high = (end if bound is None else bound for bound, end in zip(found, (-128, 127), strict=True))
        return (
            f"{{{int(blocks.one_sided)}, {int(found != (None, None))}, {blocks.zero_point}, {low}, {high}}}"
        )
    zero = -128 if blocks.zero_lowest else -9
    low = zero if blocks.one_sided and not blocks.even else -50 if blocks.low else -128
    high = 70 if blocks.high else 127
    return f"{{{int(blocks.one_sided)}, {int(low > -128 or high < 127)}, {zero}, {low}, {high}}}"


def model(rng: np.random.Generator) -> str:
    """Layer 0 calls an empty function, layer i + 1 the blocks i, those behind them the patches. The output: a word for
    each, 0 where all is right."""
    multipliers = rng.integers(2**30, 2**31, CHANNELS)
    arrays = [
        c_array("int32_t", "pixels", rng.integers(-(2**31), 2**31, 4096)),
    ]
    entries, references, ends_of = ["{nothing, NULL, NULL}"], [], ["NULL"]
    for i, each in enumerate(PRINTED, 1):
        s = each.sums
        straight = isinstance(each, Straight)
        shifts = -np.array(each.shifts) if isinstance(each, Straight) else rng.integers(-26, -18, CHANNELS)
        ends = np.stack([multipliers, shifts], axis=1).ravel()
        if isinstance(each, Blocks16):
            ends = rng.integers(2**14, 2**15, CHANNELS) << each.exponent
        if isinstance(each, Blocks) and each.even:
            ends = 2.0 ** rng.uniform(-26, -20, CHANNELS)
            ends = ends.astype(np.float32).view(np.int32)
        weights = (small_stream if straight else stream)(rng, s)
        arrays.append(c_array("int32_t", f"weights_{i}", np.concatenate([weights, ends])))
        ends_of.append(f"weights_{i} + {len(weights)}")
        entries.append(f"{{{each.name}, weights_{i}, NULL}}")
        sizes = [len(chunk) for chunk in s.chunks] if s.held else []
        shape = f"{s.rows}, {s.columns}, {s.depth}, {s.row}, {s.column}, {s.step}, {len(sizes)}, {s.pixels}, {s.free}"
        references += [
            "  {",
            "    static int8_t wanted[sizeof outputs[0]];",
            f"    static const int32_t taps[] = {{{', '.join(map(str, (*s.taps, *sizes)))}}};",
            f"    const tinyet_sums_shape_mve shape = {{{shape}}};",
            f"    tinyet_blocks_mve blocks = blocks_of({i}u, wanted);",
            "    memset(wanted, 0x5a, sizeof wanted);",
            f"    const int8_t *const weights = (const int8_t *)weights_{i};",
            f"    {each.reference.replace('pixels, blocks', '(const int8_t *)pixels, &blocks')}",
            f"    wrong[{i}] |= memcmp(wanted, outputs[{i}], sizeof wanted) != 0 ? 2u : 0u;",
            f"    for (uint32_t p = 5; wrong[{i}] == 0u && wanted[p] == wanted[4]; p++) {{",
            f"      wrong[{i}] = p == sizeof wanted - 1u ? 4u : 0u; /* all the same: nothing is tried */",
            "    }",
            "  }",
        ]
    for i, patches in enumerate(PATCHES):
        entries.append(f"{{(blocks_function)(void (*)(void)){patches.name}, copies[{i}], (void *){RUN}}}")
        numbers = f"{patches.rows}, {patches.bytes}, {patches.row}, {patches.step}, {patches.patch}"
        # Behind a pixel's rows lies what its last vector has more.
        size = patches.rows * patches.bytes
        references += [
            "  {",
            "    static int8_t wanted[sizeof copies[0]];",
            f"    const tinyet_patches_shape_mve shape = {{{numbers}}};",
            "    memset(wanted, 0, sizeof wanted);",
            f"    tinyet_patches_mve_reference(wanted, (const int8_t *)pixels, {RUN}, &shape);",
            f"    for (int32_t p = 0; p < {RUN}; p++) {{",
            f"      const int32_t at = p * {patches.patch};",
            f"      wrong[{len(PRINTED) + 1 + i}] |= memcmp(wanted + at, copies[{i}] + at,",
            f"                       {size}) != 0 ? 2u : 0u;",
            "    }",
            "  }",
        ]
    names = [each.name for each in PRINTED] + [each.name for each in PATCHES]
    text = TEXT % {
        "includes": "\n".join(f'#include "{name}.h"' for name in names),
        "arrays": "\n".join(arrays),
        "entries": ", ".join(entries),
        **harness.VECTOR_REGISTERS,
        "count": len(entries),
        "sums": len(PRINTED) + 1,
        "ends": ", ".join(ends_of),
        "steps": ", ".join(
            str(PIXELS * each.sums.step if isinstance(each, Straight) else 8)
            for each in (BLOCKS[0], *PRINTED)
        ),
        "count_blocks": COUNT,
        "roundings": ", ".join(map(rounding, (BLOCKS[0], *PRINTED))),
        "sizes": ", ".join(str(each.sums.bits // 8) for each in (BLOCKS[0], *PRINTED)),
        "pixels": ", ".join(str(each.sums.pixels) for each in (BLOCKS[0], *PRINTED)),
        "copies": len(PATCHES),
        "channels": CHANNELS,
        "references": "\n".join(references),
    }
    return harness.model("blocks", len(entries), text)


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M55, board.M55_CLANG], ids=str)
def test_outputs_registers_and_instructions(image: Image, tmp_path: Path) -> None:
    skip_missing([image])
    printed = [*map(files, PRINTED), *map(helium_patches.files, PATCHES)]
    kernel_sources.write(
        tmp_path,
        ["tinyet_conv2d_mve.c", *(f"tinyet_conv2d_{kind}_4x2_mve.c" for kind in ("s8", "s8_rne", "s16"))],
    )
    elf = harness.built(image, tmp_path, printed, model(np.random.default_rng(3)), "-Wno-cast-align")
    with open_device(image.board, elf, "qemu") as device:
        result = device.run([bytes(4)])
    stated = {each.name: each.instructions(1, COUNT, CHANNELS) for each in PRINTED}
    stated |= {each.name: each.instructions(1, RUN) for each in PATCHES}
    harness.assert_as_stated(result, stated)


def test_what_there_is_not() -> None:
    with pytest.raises(InternalError):
        Sums(3, 3, 20, 1000, 320, 320)
    with pytest.raises(InternalError):
        Sums(1, 1, 1, 0, 0, 6)
    with pytest.raises(InternalError):
        Sums(1, 1, 1, 0, 0, 8, pairs=3).instructions(CHANNELS)
    with pytest.raises(InternalError):
        Sums(1, 1, 2, 0, 0, 24, free=8)
    with pytest.raises(InternalError):
        Sums(1, 1, 1, 0, 0, 16, pixels=2)
    with pytest.raises(InternalError):
        Sums(1, 1, 1, 0, 0, 8, bits=32)
    with pytest.raises(InternalError):
        Sums(1, 1, 1, 0, 0, 8, free=8, bits=16)
    with pytest.raises(InternalError):
        Blocks(SUMS[0], False, False, False, True)
    with pytest.raises(InternalError):
        Blocks(SUMS[0], False, False, False, False, even=True)
    with pytest.raises(InternalError):
        Blocks16(SUMS[0], 0, False, False)
    with pytest.raises(InternalError):
        Blocks16(BLOCKS16[0].sums, 17, False, False)
    with pytest.raises(InternalError):
        Straight(SUMS[0], (17,) * 8, True, 0, None, None)
    with pytest.raises(InternalError):
        Straight(SUMS[0], SHIFTS, True, 0, 0, 100)
    with pytest.raises(InternalError):
        STRAIGHT[0].instructions(1, 1, 4)
    with pytest.raises(InternalError):
        BLOCKS[1].instructions(1, 1, 6)
    with pytest.raises(InternalError):
        Patches(12, 4, 12, 2, 48)
    with pytest.raises(InternalError):
        Patches(3, 9, 300, 128, 32)
