# SPDX-License-Identifier: Apache-2.0
"""Functions of an int16 as LiteRT has them: 512 straight pieces, one for the upper nine bits of the number, between 513
values computed ahead of time; the lower seven bits interpolate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tinyet.ir import Array, Node
from tinyet.numerics import Int64, round_half_away
from tinyet.opset import Call, Constant, Pointer, Struct, library_call

PIECES = 512
Float = npt.NDArray[np.floating]
Function = Callable[[Float], Float]


def populate(
    function: Function, x: tuple[float, int], out: tuple[float, int], kind: type[np.floating] = np.float32
) -> Int64:
    """The 513 values, int64: LiteRT's LUTPopulateInt16. x, out: (scale, zero point). All arithmetic is in `kind`,
    which is also what `function` takes and gives; what it leaves infinite becomes the end of the output's range,
    what it leaves undefined its zero point.

    A value is shifted by half of what the straight line misses in the middle of its piece; not where the piece
    goes beyond twice the output's range, for there the shift (which LiteRT makes) can turn saturation into anything.
    """
    with np.errstate(over="ignore"):
        lowest, highest = (kind(x[0]) * kind(q - x[1]) for q in (-32768, 32767))
        out_lowest, out_highest = (kind(out[0]) * kind(q - out[1]) for q in (-32768, 32767))
        step = (highest - lowest) / kind(PIECES)
        inverse = kind(65536) / (out_highest - out_lowest)

    def scaled(at: Float) -> Float:
        with np.errstate(all="ignore"):
            real = np.nan_to_num(function(at), nan=0.0, posinf=float(out_highest), neginf=float(out_lowest))
            # Far beyond the output's range all is the same, and can be added without overflow.
            return np.asarray(np.clip(real.astype(kind) * inverse, kind(-(2.0**40)), kind(2.0**40)), kind)

    def rounded(values: Float) -> Float:
        return np.asarray(round_half_away(values), kind)

    index = np.arange(PIECES).astype(kind)
    start = lowest + index * step
    here, middle = rounded(scaled(start)), rounded(scaled(start + step / kind(2)))
    following = scaled(lowest + (index + kind(1)) * step)
    line = rounded((following + here) / kind(2))
    inside = np.all([np.abs(v) <= 65536 for v in (here, middle, following)], axis=0)
    corrected = here - np.where(inside, rounded((line - middle) / kind(2)), kind(0))
    values = np.append(corrected, rounded(scaled(np.asarray([highest], kind))))
    return np.clip(values.astype(np.float64), -32768, 32767).astype(np.int64)


def look_up(table: Int64, values: npt.ArrayLike) -> Int64:
    """The function of int16 values: the piece's value plus its slope times the lower bits, rounded half up."""
    x = np.asarray(values, np.int64)
    index = 256 + (x >> 7)
    base = table[index]
    return np.asarray(base + (((table[index + 1] - base) * (x & 0x7F) + 64) >> 7), np.int64)


# ---------------------------------------------------------------- sigmoid and tanh


SIGMOID_STEP = 24
"""Entries of the sigmoid's table in a unit of its argument."""

OUT_SCALE = 2.0**-15
"""The output's scale that LiteRT demands of int16 sigmoid and tanh."""


def sigmoid_table() -> Int64:
    """sigmoid(i / 24) in Q0.16, i in 0 … 255, each raised by half of what the straight line to the next one misses in
    its middle; the last one is the limit. LiteRT and CMSIS-NN print these numbers."""

    def sigmoid(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(65536 / (1 + np.exp(-x / SIGMOID_STEP)))

    index = np.arange(255.0)
    here = sigmoid(index)
    missed = sigmoid(index + 0.5) - (here + sigmoid(index + 1)) / 2
    return np.append(round_half_away(here + missed / 2), 65535).astype(np.int64)


def log2_if_whole(scale: float) -> int | None:
    """The exponent of a power of two, or of what lies within 0.07 % of it; as LiteRT, in float32."""
    log2 = np.log(np.float32(scale)) * (np.float32(1) / np.log(np.float32(2)))
    whole = round_half_away(log2)
    return int(whole) if abs(np.float32(log2 - np.float32(whole))) < np.float32(1e-3) else None


def argument_scaling(scale: float, exponents: Sequence[int]) -> tuple[int, int] | None:
    """(factor, right shift) that turn the input into units of 1 / 12288, or None for a scale beyond the formula.

    exponents: the powers of two that need no rounding.
    """
    power = log2_if_whole(scale)
    if power in exponents:
        return 3 << (12 + (power or 0)), 0
    factor, shift = scale * 4096.0 * 3.0, 0
    while factor <= 32767.0 / 2.0 and shift <= 30:
        shift += 1
        factor *= 2.0
    # The product with an int16 stays within 32 bits.
    return (int(factor), shift) if factor < 65536 else None


def sigmoid_or_tanh(values: Array, scaling: tuple[int, int], tanh: bool) -> Int64:
    """LiteRT's int16 LOGISTIC or TANH: 255 straight pieces of the sigmoid; tanh(x) = 2 sigmoid(2 x) - 1."""
    factor, shift = scaling
    product = values.astype(np.int64) * factor
    x = (product + (1 << shift >> 1)) >> shift
    bits = 8 if tanh else 9
    size = np.abs(x)
    index = np.minimum(size >> bits, 254)
    table = sigmoid_table()
    line = (table[index] << bits) + (size & ((1 << bits) - 1)) * (table[index + 1] - table[index])
    if tanh:
        line = np.where(size >> bits >= 255, 0xFFFF << 8, line)
        return np.asarray(np.where(x >= 0, line - (1 << 23) + 128, (1 << 23) - line + 127) >> 8, np.int64)
    line = np.where(size >> bits >= 255, 0x7FFF << 10, line)
    return np.asarray(np.where(x >= 0, line + 512, (1 << 25) - line + 511) >> 10, np.int64)


# ---------------------------------------------------------------- kernels


HEADERS = ("tinyet_lut.h",)


def table_call(node: Node, table: Int64) -> Call:
    params = Struct("tinyet_lut_s16_params", {"table": Pointer("table"), "count": node.output.type.count})
    return library_call("tinyet_lut_s16", node, [0], params, [Constant("table", table.astype(np.int16))])


def sigmoid_call(node: Node, scaling: tuple[int, int], tanh: bool) -> Call:
    params = Struct(
        "tinyet_sigmoid_s16_params",
        {
            "table": Pointer("table"),
            "factor": scaling[0],
            "shift": scaling[1],
            "count": node.output.type.count,
        },
    )
    table = Constant(
        "table", sigmoid_table().astype(np.uint16), "sigmoid(i / 24), Q0.16, raised for interpolation"
    )
    return library_call(f"tinyet_{'tanh' if tanh else 'sigmoid'}_s16", node, [0], params, [table])
