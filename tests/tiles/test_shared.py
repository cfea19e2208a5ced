# SPDX-License-Identifier: Apache-2.0
"""Printed functions that all layers share: on an emulated Cortex-M4, for many sizes, the same bytes as their twins in
C, registers as they were, the instructions that they say for these sizes, and the machine code that was described."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from benchmarks import kernels
from tests.calls import board
from tests.calls.board import Image
from tests.calls.emulated import skip_missing
from tests.tiles import harness
from tests.tiles.harness import c_array
from tinyet.boards.cpus import Target
from tinyet.cycles.code import read_code
from tinyet.delegates.cortex_m import conv2d_s8, cost_models_shared
from tinyet.delegates.cortex_m.conv2d import geometry
from tinyet.device.device import open_device
from tinyet.errors import InternalError
from tinyet.ir import Array
from tinyet.ops.conv2d import Conv2d
from tinyet.opset import DENSE
from tinyet.tiles import library, shared, shared_rows
from tinyet.tiles.core import ARMV7E_M
from tinyet.tiles.routine import TABLE, Routine, routine, table
from tinyet.timing.cores import CORES
from tinyet.timing.work import Work

M4 = CORES["cortex-m4"]
MOST_STEPS, MOST_DOUBLES, STEP = 35, 3, 9
MOST_VALUES, MOST_ROWS = 40, 3


@dataclass(frozen=True)
class Channels:
    """steps: of two pairs of inputs. doubles: two channels each. exponent: 0 for a two-sided rounding."""

    steps: int
    doubles: int
    exponent: int

    @property
    def name(self) -> str:
        return f"channels_{self.steps}_{self.doubles}_{self.exponent}"


@dataclass(frozen=True)
class Rows:
    values: int
    rows: int

    @property
    def name(self) -> str:
        return f"rows_{self.values}_{self.rows}"


CHANNELS = tuple(
    Channels(steps, doubles, exponent)
    for steps, doubles in (
        *((steps, 2) for steps in range(1, 18)),
        *((1, 1), (8, 1), (9, 3), (24, 3), (25, 1), (MOST_STEPS, MOST_DOUBLES)),
    )
    for exponent in (0, 9)
)
"""Each step of straight code as the first, turns of all of it, one turn and several; one double and more."""
ROWS = tuple(
    Rows(values, rows)
    for values, rows in (
        *((values, 2) for values in range(1, MOST_VALUES + 1)),
        (1, 1),
        (9, 3),
        (16, 1),
        (35, 3),
    )
)
"""Each length up to ten words, with each rest."""

OUTPUTS = 2 * STEP + 2 * MOST_DOUBLES + 6
"""Bytes of a call's outputs, with what lies around them."""
WORDS = 3 * MOST_ROWS * (MOST_VALUES // 2 + 1) + 2
BEFORE = """
#include "tinyet_conv2d_packed_dsp.h"

%(arrays)s

%(guarded)s
enum { OUTPUTS = %(outputs)d, WORDS = %(words)d };
static int8_t made[%(calls)d * OUTPUTS], wanted[%(calls)d * OUTPUTS];
static uint32_t widened[%(rows)d * WORDS], words[%(rows)d * WORDS];
/* An odd address. */
#define BYTES ((const int8_t *)inputs + 1)

static const tinyet_three_pixels_dsp blocks[] = {%(blocks)s};
static const struct {
  int32_t values, rows, step;
} rows[] = {%(sizes)s};
"""
TWINS = """
  memset(wanted, 0x5a, sizeof wanted);
  memset(words, 0x5a, sizeof words);
  uint32_t *of = wrong + 1;
  for (uint32_t i = 0; i < sizeof blocks / sizeof *blocks; i++, of++) {
    tinyet_three_pixels_dsp block = blocks[i];
    block.output = wanted + i * OUTPUTS + 3;
    block.last = block.output + (blocks[i].last - blocks[i].output);
    tinyet_three_pixels_of_dsp(&block);
    *of |= memcmp(wanted + i * OUTPUTS, made + i * OUTPUTS, OUTPUTS) != 0 ? 2u : 0u;
  }
  for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++, of++) {
    uint32_t *const to = words + i * WORDS + 1, *const other = widened + i * WORDS + 1;
    const uint32_t *const end = tinyet_widened_rows_of_dsp(to, BYTES, rows[i].values, rows[i].rows, rows[i].step);
    *of |= memcmp(to - 1, other - 1, 4 * WORDS) != 0 ? 2u : 0u;
    const uint32_t *const same = tinyet_widened_rows_3_dsp(other, BYTES, rows[i].values, rows[i].rows, rows[i].step);
    *of |= same - other != end - to ? 4u : 0u;
  }
"""


def stream(c: Channels, rng: np.random.Generator) -> Array:
    """Of two channels after another, such as roundings have: shifts of a one-sided one are above 1, and below 9."""
    parts = []
    for _ in range(c.doubles):
        shift_a, shift_b = (int(s) for s in (rng.integers(2, 9, 2) if c.exponent else rng.integers(1, 12, 2)))
        ends = shift_a | shift_b << 8
        if c.exponent:
            one_a, one_b = 1 << (shift_a - 2), 1 << (shift_b - 2)
            ends = shift_a | (8 - shift_b) << 8 | one_a << 16 | ((one_b - one_a) & 0xFF) << 24
        bias = rng.integers(-(2**20), 2**20, 2)
        parts += [
            [bias[0], 256 * bias[1] + bias[0]],
            rng.integers(-(2**31), 2**31, 2 * c.steps),
            rng.integers(2**27, 2**31, 2),
            [ends],
        ]
    return np.concatenate(parts).astype(np.int64)


def model() -> str:
    """Layer 0 calls an empty function, each other one a function for some sizes. The output: a word for each, 0 where
    it is right."""
    rng = np.random.default_rng(11)
    arrays = [c_array("uint32_t", "inputs", rng.integers(-(2**31), 2**31, 6 * MOST_STEPS))]
    arrays += [c_array("int32_t", f"weights_{i}", stream(c, rng)) for i, c in enumerate(CHANNELS)]
    blocks = [
        f"{{inputs, {c.steps}, made + {OUTPUTS * i + 3}, {STEP}, /* offset */ 77, {c.exponent}, "
        f"made + {OUTPUTS * i + 3 + 2 * c.doubles}, weights_{i}}}"
        for i, c in enumerate(CHANNELS)
    ]
    steps = [r.values % 4 + 3 for r in ROWS]
    text = BEFORE % {
        "arrays": "\n".join(arrays),
        "guarded": harness.GUARDED,
        "outputs": OUTPUTS,
        "words": WORDS,
        "calls": len(CHANNELS),
        "rows": len(ROWS),
        "blocks": ",\n    ".join(blocks),
        "sizes": ", ".join(f"{{{r.values}, {r.rows}, {step}}}" for r, step in zip(ROWS, steps, strict=True)),
    }
    entries = [f"{shared.NAME}, {{blocks + {i}, NULL, NULL, NULL, NULL}}" for i in range(len(CHANNELS))]
    entries += [
        f"{shared_rows.NAME}, {{widened + {WORDS * i + 1}, BYTES, (const void *){r.values}, "
        f"(const void *){r.rows}, (const void *){step}}}"
        for i, (r, step) in enumerate(zip(ROWS, steps, strict=True))
    ]
    text += harness.calls(["made", "widened"], entries, [TWINS])
    return harness.model("shared", 1 + len(entries), text)


def stated() -> dict[str, int]:
    """Instructions."""
    found = {
        c.name: shared.work(M4, c.steps, c.doubles, one_sided=c.exponent > 0).instructions for c in CHANNELS
    }
    return found | {r.name: shared_rows.work(M4, r.values, r.rows).instructions for r in ROWS}


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M4, board.M4_CLANG], ids=str)
def test_bytes_registers_instructions_and_code(image: Image, tmp_path: Path) -> None:
    skip_missing([image])
    elf = harness.built(image, tmp_path, [library.sources()], model())
    with open_device(image.board, elf, "qemu") as device:
        result = device.run([bytes(4)])
    harness.assert_as_stated(result, stated())
    code = read_code(elf)
    for name, made in ((shared.NAME, shared.function()), (shared_rows.NAME, shared_rows.function())):
        start = code.functions[name].start
        assert code.functions[name].end - start == made.code_bytes
        for i, (operation, registers) in enumerate(made.code):
            if operation.mnemonic != TABLE:
                described = operation.timed(ARMV7E_M, registers)
                assert code.block(start + 4 * i, 1) == [described], (name, i)


def test_what_a_step_takes() -> None:
    """A load of four weights of each of two channels, two of inputs, and of each pair six products and what widens the
    weights of one channel: 24 products by 17 instructions, in 25 cycles."""
    short, long = (shared.work(M4, steps, 1, one_sided=True) for steps in (3, 4))
    assert long.instructions - short.instructions == 17
    assert long.cycles - short.cycles == 3 + 4 + 4 + 14


def test_what_four_bytes_take() -> None:
    short, long = (shared_rows.work(M4, values, 1) for values in (4, 8))
    assert long.instructions - short.instructions == 5


def test_sizes_are_sums() -> None:
    """Each turn, each double and each row takes what any other does."""

    def more(by: tuple[int, int], steps: int, doubles: int) -> int:
        first, second = (
            shared.work(M4, steps + n * by[0], doubles + n * by[1], one_sided=False) for n in (0, 1)
        )
        return second.instructions - first.instructions

    assert more((8, 0), 9, 1) == more((8, 0), 17, 1) == 8 * 17 + 2
    assert more((0, 1), 9, 1) == more((0, 1), 9, 7)
    assert [shared_rows.work(M4, 9, rows).instructions for rows in (2, 3)] == [
        shared_rows.work(M4, 9, 1).instructions + n * (shared_rows.work(M4, 9, 1).instructions - 3)
        for n in (1, 2)
    ]


@pytest.mark.parametrize(
    ("size", "out_c", "kernel", "attrs"),
    [
        ((25, 5, 64), 64, (1, 1), {}),
        ((9, 8, 5), 7, (3, 3), {"pad_top": 1, "pad_left": 1, "pad_right": 1}),
        ((9, 9, 2), 4, (3, 2), {"dilation_w": 3, "stride_h": 2, "pad_bottom": 2}),
    ],
)
def test_a_layer_is_a_sum_of_calls(
    size: tuple[int, int, int], out_c: int, kernel: tuple[int, int], attrs: dict[str, int]
) -> None:
    """Of each three pixels, the last of which may overlap those before, and of the rows of each."""
    relu = kernel == (1, 1)
    conv = Conv2d(**attrs, clamp=kernels.RELU if relu else kernels.NONE)
    node = kernels.weighted(conv, kernels.activation("x", (1, *size)), (out_c, *kernel, size[2]), relu)
    assert conv2d_s8.refuse(node, Target("cortex-m4", frozenset({"dsp"}))) is None
    g, r = geometry(node), conv2d_s8.chosen_rounding(node)
    count, values = g.out_h * g.out_w, g.kernel_w * g.in_c
    one_sided = r.exponent > 0
    assert one_sided == relu
    steps = len(conv2d_s8.even_order(g)) // 2
    wanted = Work()
    for first in range(0, count, 3):
        for pixel in range(min(first, count - 3), min(first, count - 3) + 3):
            top, left = (
                at * s - p
                for at, s, p in zip(
                    divmod(pixel, g.out_w), (g.stride_h, g.stride_w), (g.pad_top, g.pad_left), strict=True
                )
            )
            rows = sum(0 <= top + ky * g.dilation_h < g.in_h for ky in range(g.kernel_h))
            whole = g.dilation_w == 1 and left >= 0 and left + g.kernel_w <= g.in_w
            wanted += (
                shared_rows.work(M4, values, rows) if whole else shared_rows.work(M4, values, 1).times(rows)
            )
        wanted += shared.work(M4, steps, out_c // 2, one_sided=one_sided)
        if out_c % 2:
            wanted += shared.work(M4, steps, 1, one_sided=one_sided)
    exact = cost_models_shared.shared_exact(node, DENSE, "cortex-m4")
    assert (exact.instructions, exact.cycles["cortex-m4"]) == (wanted.instructions, wanted.cycles)
    # What pipelines of other cores issue together takes fewer cycles; all of them state theirs.
    assert {*exact.cycles} == {"cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m85"}
    assert exact.cycles["cortex-m7"] < exact.cycles["cortex-m4"]
    weights = conv2d_s8.stream(r, g).size
    assert exact.reads["printed weights"] == 4 * weights * -(-count // 3)


def test_what_is_no_routine() -> None:
    made: Routine = shared_rows.function()
    with pytest.raises(InternalError, match="no register for"):
        routine("nothing", [("", [made.code[2][0]])], {}, ARMV7E_M)
    with pytest.raises(InternalError, match="a table of"):
        table([0, 1, 2, 4])
    with pytest.raises(InternalError, match="a table of"):
        table([0, 2, 4])
