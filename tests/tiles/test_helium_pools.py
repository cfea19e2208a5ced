# SPDX-License-Identifier: Apache-2.0
"""Printed windows of pools for Helium: on an emulated Cortex-M55 the same as their references in C, general and vector
registers as they were, the instructions that they say; one firmware for all."""

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
from tinyet.delegates.cortex_m.pool_mve import average_of
from tinyet.device.device import open_device
from tinyet.errors import InternalError
from tinyet.ir import DType
from tinyet.numerics import Int64
from tinyet.ops.shared.averaging import average
from tinyet.tiles.helium_pools import Average, Windows, files, reference_fields, reference_of

SHAPES = (
    (1, 1, 16, 16, 16, 16, 16),
    (2, 2, 16, 400, 16, 32, 16),  # whole vectors
    (2, 2, 8, 100, 8, 16, 24),
    (2, 2, 64, 640, 64, 128, 64),  # several
    (3, 3, 10, 1000, 20, 20, 10),  # rests
    (3, 3, 130, 1400, 130, 260, 130),  # a pointer a tap
    (3, 3, 100, 1000, 100, 100, 100),
    (2, 1, 40, 5000, 40, 40, 48),  # rows far apart
    (6, 1, 4, 68, 4, 8, 4),
    (1, 33, 5, 165, 5, 5, 5),
)


def averages(taps: int, dtype: DType) -> tuple[Average | None, ...]:
    """None for maxima; those of windows in the image, and of some at a border, whose padding counts."""
    border = average_of(taps, taps + 2, -5, dtype), average_of(taps, taps + 1, -5, dtype)
    return None, *((average_of(taps, taps, -5, dtype), *border) if taps > 1 else ())


def windows_of(
    shape: tuple[int, int, int, int, int, int, int], made: Average | None, dtype: DType
) -> Windows:
    """shape: with steps in values."""
    rows, columns, channels, *steps = shape
    row, column, step, out_step = (dtype.bytes * each for each in steps)
    return Windows(rows, columns, channels, row, column, step, out_step, made, 8 * dtype.bytes)


WINDOWS = tuple(
    windows
    for dtype in (DType.INT8, DType.INT16)
    for shape in SHAPES
    for made in averages(shape[0] * shape[1], dtype)
    if (windows := windows_of(shape, made, dtype)).fits
)
COUNT = 3
"""Windows of a call."""

TEXT = """
%(includes)s

%(arrays)s

%(guarded)s

static int16_t outputs[%(windows)d][512];
"""


def model(rng: np.random.Generator) -> str:
    """Layer 0 calls an empty function, the others what is printed. The output: a word for each, 0 where all
    is right."""
    entries, references = [], []
    for i, w in enumerate(WINDOWS):
        # Inputs that begin anywhere.
        inputs = f"(const int8_t *)words + {i % 4 * (w.bits // 8)}"
        entries.append(f"{w.name}, {{{inputs}, outputs[{i}], (const void *){COUNT}, NULL, NULL}}")
        fields = ", ".join(f".{name} = {value}" for name, value in reference_fields(w).items())
        references += [
            "  {",
            "    static int16_t wanted[sizeof outputs[0] / 2];",
            f"    static const tinyet_windows_mve shape = {{{fields}}};",
            "    memset(wanted, 0x5a, sizeof wanted);",
            f"    {reference_of(w)}({inputs}, wanted, {COUNT}, &shape);",
            f"    wrong[{i + 1}] |= memcmp(wanted, outputs[{i}], sizeof wanted) != 0 ? 2u : 0u;",
            "  }",
        ]
    text = TEXT % {
        "includes": "\n".join(f'#include "{each.name}.h"' for each in WINDOWS),
        "arrays": c_array("int32_t", "words", rng.integers(-(2**31), 2**31, 4096)),
        "guarded": harness.GUARDED,
        "windows": len(WINDOWS),
    }
    return harness.model("windows", 1 + len(entries), text + harness.calls(["outputs"], entries, references))


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M55, board.M55_CLANG], ids=str)
def test_outputs_registers_and_instructions(image: Image, tmp_path: Path) -> None:
    skip_missing([image])
    kernel_sources.write(tmp_path, ["tinyet_pool_mve.c"])
    flags = "-Wno-cast-align", "-Wno-cast-function-type"
    elf = harness.built(image, tmp_path, map(files, WINDOWS), model(np.random.default_rng(3)), *flags)
    with open_device(image.board, elf, "qemu") as device:
        result = device.run([bytes(4)])
    stated = {each.name: each.instructions(1, COUNT) for each in WINDOWS}
    assert len(stated) == len(WINDOWS)
    harness.assert_as_stated(result, stated)


def test_reciprocals() -> None:
    """Of every sum of so many taps, or refused."""
    refused = []
    for taps in range(2, 256):
        if (a := average_of(taps, taps, 0, DType.INT8)) is None:
            refused.append(taps)
            continue
        sums = np.arange(-128 * taps, 127 * taps + 1)
        assert np.array_equal(divided(a, sums, 16), average(sums, np.array(taps, np.int64)))
    assert min(refused) > 180


@pytest.mark.parametrize("zero_point", [-128, -5, 0, 127])
def test_padding_that_counts(zero_point: int) -> None:
    for divisor in range(2, 50):
        for taps in range(1, divisor):
            a = average_of(taps, divisor, zero_point, DType.INT8)
            assert a is not None
            sums = np.arange(-128 * taps, 127 * taps + 1)
            wanted = average(sums + (divisor - taps) * zero_point, np.array(divisor, np.int64))
            assert np.array_equal(divided(a, sums, 16), wanted)


def test_reciprocals_of_int16() -> None:
    """At the ends, and about every multiple of half of the divisor."""
    for taps in range(2, 300):
        a = average_of(taps, taps, 0, DType.INT16)
        assert a is not None
        halves = np.arange(-65536, 65535) * taps // 2
        sums = np.clip(np.concatenate([halves - 1, halves, halves + 1]), -32768 * taps, 32767 * taps)
        assert np.array_equal(divided(a, sums, 32), average(sums, np.array(taps, np.int64)))


def divided(a: Average, sums: Int64, bits: int) -> Int64:
    raised = sums + a.offset - (a.even & (sums + a.start < 0))
    assert 0 <= raised.min() <= raised.max() < 2**bits
    assert a.multiplier < 2 ** (64 - bits)
    products = raised.astype(np.uint64) * np.uint64(a.multiplier)
    return (products >> np.uint64(bits + a.shift)).astype(np.int64) - a.bias


def test_what_there_is_not() -> None:
    windows = Windows(4, 3, 130, 1400, 130, 260, 130, None)
    assert not windows.fits
    with pytest.raises(InternalError):
        files(windows)
