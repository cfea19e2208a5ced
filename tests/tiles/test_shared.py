# SPDX-License-Identifier: Apache-2.0
"""Printed functions that all layers share: on an emulated Cortex-M4, for many sizes, the same bytes as their references
in C, registers as they were, the instructions that they say for these sizes, and the machine code that was
described."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import kernels
from tests.calls import board
from tests.calls.board import Image
from tests.calls.emulated import skip_missing
from tests.tiles import harness
from tests.tiles.harness import c_array
from tinyet.boards.cpus import Target
from tinyet.cycles.code import Code, read_code
from tinyet.cycles.estimate import Estimator
from tinyet.cycles.plugin import build_plugin
from tinyet.cycles.profile import Profiler
from tinyet.delegates.cortex_m import conv2d_s8, cost_models_shared
from tinyet.delegates.cortex_m.conv2d import geometry
from tinyet.delegates.cortex_m.packing import pack_int16x2
from tinyet.device.device import open_device
from tinyet.errors import InternalError
from tinyet.numerics import Int64
from tinyet.ops.conv2d import Conv2d
from tinyet.opset import DENSE
from tinyet.tiles import library, shared, shared_rows
from tinyet.tiles.core import ARMV7E_M
from tinyet.tiles.routine import TABLE, Routine, routine, table
from tinyet.timing.cores import CORES
from tinyet.timing.instruction import Instruction
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
REFERENCES = """
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


def stream(c: Channels, rng: np.random.Generator) -> Int64:
    """Of two channels after another: weights and biases of two channels in one, and what makes outputs of their sums
    that fill int8."""
    spread = 74 * 74 * np.sqrt(4 * c.steps)  # of sums of products of int8
    parts: list[Int64] = []
    for _ in range(c.doubles):
        bias = rng.integers(-1000, 1000, 2)
        a, b = rng.integers(-128, 128, (2, 2, 2 * c.steps))
        low, high = a + 256 * np.maximum(b, -127)
        if c.exponent:
            shift = rng.integers(2, 9, 2)
            one_a, one_b = 1 << (shift - 2)
            ends = shift[0] | (8 - shift[1]) << 8 | one_a << 16 | ((one_b - one_a) & 0xFF) << 24
            multiplier = 60 / spread * 2.0 ** (32 + c.exponent - shift)
        else:
            shift = np.maximum(np.round(np.log2(spread / 120)), 1).astype(np.int64) + rng.integers(0, 2, 2)
            ends = shift[0] | shift[1] << 8
            multiplier = 60 / spread * 2.0 ** (31 + shift)
        parts += [
            np.array([bias[0], 256 * bias[1] + bias[0]]),
            pack_int16x2(low, high),
            np.minimum(multiplier, 2**31 - 1).astype(np.int64),
            np.array([ends]),
        ]
    return np.concatenate(parts)


def model() -> str:
    """Layer 0 calls an empty function, each other one a function for some sizes. The output: a word for each, 0 where
    it is right."""
    rng = np.random.default_rng(11)
    inputs = pack_int16x2(*rng.integers(-128, 128, (2, 6 * MOST_STEPS)))
    arrays = [c_array("uint32_t", "inputs", inputs)]
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
    text += harness.calls(["made", "widened"], entries, [REFERENCES])
    return harness.model("shared", 1 + len(entries), text)


def stated() -> dict[str, Work]:
    found = {c.name: shared.work(M4, c.steps, c.doubles, one_sided=c.exponent > 0) for c in CHANNELS}
    return found | {r.name: shared_rows.work(M4, r.values, r.rows) for r in ROWS}


@dataclass(frozen=True)
class Built:
    image: Image
    elf: Path
    code: Code


@pytest.fixture(scope="module", params=[board.M4, board.M4_CLANG], ids=str)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    image: Image = request.param
    skip_missing([image])
    elf = harness.built(image, tmp_path_factory.mktemp("shared"), [library.sources()], model())
    return Built(image, elf, read_code(elf))


@pytest.mark.emulated
def test_bytes_registers_instructions_and_code(built: Built) -> None:
    with open_device(built.image.board, built.elf, "qemu") as device:
        result = device.run([bytes(4)])
    harness.assert_as_stated(result, {name: work.instructions for name, work in stated().items()})
    for name, made in ((shared.NAME, shared.function()), (shared_rows.NAME, shared_rows.function())):
        start = built.code.functions[name].start
        assert built.code.functions[name].end - start == made.code_bytes
        for i, (operation, registers) in enumerate(made.code):
            if operation.mnemonic != TABLE:
                described = operation.timed(ARMV7E_M, registers)
                assert built.code.block(start + 4 * i, 1) == [described], (name, i)


@pytest.mark.emulated
def test_cycles(built: Built, tmp_path: Path) -> None:
    """What `validate --estimate` would say of each call."""
    plugin = build_plugin(built.image.board, tmp_path)
    with Profiler(
        built.image.board, built.elf, built.code, plugin, tmp_path, None, timeout=120.0
    ) as profiler:
        empty, run = profiler.empty, profiler.run([bytes(4)])
    (nothing, *layers), _ = Estimator(M4, built.code, None).mean(empty, [run])
    # BX of the empty function: a taken branch, a cycle, and its refill.
    own = Work(cycles=1 + M4.refill(Instruction("branch_register", 2)), instructions=1, taken_branches=1)
    differ = []
    for (name, said), layer in zip(stated().items(), layers, strict=True):
        measured = layer - nothing + own
        if measured != said:
            differ.append(name)
            # A block of the emulator that ends where a page does: a load behind it may take a cycle more.
            assert replace(measured, cycles=said.cycles) == said, name
            assert 0 < measured.cycles - said.cycles <= said.taken_branches, name
    assert len(differ) < len(layers) / 2


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
    size: tuple[int, int, int], out_c: int, kernel: tuple[int, int], attrs: dict[str, Any]
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
    assert exact.reads["read weights"] == 4 * weights * -(-count // 3)


def test_what_is_no_routine() -> None:
    made: Routine = shared_rows.function()
    with pytest.raises(InternalError, match="no register for"):
        routine("nothing", [("", [made.code[2][0]])], {}, ARMV7E_M)
    with pytest.raises(InternalError, match="a table of"):
        table([0, 1, 2, 4])
    with pytest.raises(InternalError, match="a table of"):
        table([0, 2, 4])
