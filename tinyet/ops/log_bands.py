# SPDX-License-Identifier: Apache-2.0
"""Logarithms of bands of a spectrum, from int16 samples, in fixed point: what a log-mel image is made of.

A frame of samples is multiplied with its window (15 bits behind the point), transformed (shared/fixed_fft.py), squared,
summed up band by band, and its logarithm looked up:

- *Block floating point*: the parts of those numbers that a band reads are shifted to the left by what all of them have
  free, so that the loudest one has 31 bits; the squares' upper 32 bits are kept, which reach 93 dB below it.
- Sums are exact: weights of 16 bits, sums of 64.
- The floor is added to the sum where it has the sum's scale.
- log2 is the place of the highest bit, and behind it a table of 32 straight lines (error 2e-4), with 15 bits behind
  the point; times ln 2 / scale, by the one rounding rule, it is the output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import Multiplier, quantize_multiplier, requantize
from tinyet.ops.shared import fft, fixed_fft
from tinyet.ops.shared.integers import check_activations
from tinyet.opset import (
    ALONE,
    Call,
    Constant,
    Iteration,
    Kernel,
    Nest,
    Op,
    Pointer,
    Struct,
    library_call,
    operand,
    parameters,
)

X, WINDOW, FILTERS = range(3)
LINES = 32
"""Straight lines of the logarithm."""
FRACTION = 15
"""Bits of a logarithm to the base 2 behind the point."""
MOST_FLOOR_SHIFT = 31
"""A floor of 31 bits, and a sum below 2**61, are below 2**63."""
SCALE = 2.0**-9
"""Of an output from -64 to 64: logarithms of all powers that float32 holds, but for the very least."""
LOGARITHMS = np.array([round(math.log2(1 + i / LINES) * 2**FRACTION) for i in range(LINES + 1)], np.uint16)


@dataclass(frozen=True)
class LogBands(Attrs):
    """inputs: x int16 (…, S), S <= length; constants: the window float32 (S,); filters float32 (B, length // 2 + 1),
    none negative. Output: int16 (…, B), ln(filters @ |rfft(x * window, length)| ** 2 + floor), of any scale."""

    name: ClassVar[str] = "log_bands"
    length: int
    floor: float


def attrs_of(node: Node) -> LogBands:
    assert isinstance(node.attrs, LogBands)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    x, window, filters = (node.input(index).shape for index in range(3))
    length = attrs_of(node).length
    complaint = fft.length_complaint(length)
    if complaint is None and not (x and x[-1] <= length and window == x[-1:]):
        complaint = f"a transform of {length} values for {x}, with a window {window}"
    if complaint is None and (len(filters) != 2 or filters[1] != length // 2 + 1):
        complaint = f"filters {filters} for {length // 2 + 1} numbers"
    if complaint is not None:
        raise UnsupportedShape(f"log_bands: {complaint}", node.where)
    return ((*x[:-1], filters[0]),)


def iterate(node: Node) -> Iteration:
    nest = Nest()
    *rows, size = node.input(X).shape
    beside = nest.all_parallel(tuple(rows))
    out = operand(*beside, nest.parallel(node.output.shape[-1]))
    return nest.iteration([operand(*beside, nest.reduced(size)), *parameters(node, nest)], [out])


def check(node: Node) -> str | None:
    for tensor, wanted in ((node.input(X), DType.INT16), (node.output, DType.INT16)):
        if tensor.dtype is not wanted:
            return f"{tensor.name} must be {wanted.value}, is {tensor.dtype.value}"
        if complaint := check_activations(tensor):
            return complaint
    for index in (WINDOW, FILTERS):
        tensor = node.input(index)
        if tensor.dtype is not DType.FLOAT32 or not tensor.is_constant:
            return f"{tensor.name} must be a constant of float32"
        if not np.isfinite(tensor.array).all():
            return f"{tensor.name} is not finite"
    filters = node.input(FILTERS).array
    if np.abs(node.input(WINDOW).array).max() > 1:
        return "the window is greater than 1"
    if filters.min() < 0 or not filters.any():
        return "filters must not be negative, nor all be zero"
    if not 2.0**-100 < filters.max() < 2.0**100:
        return "the filters' greatest weight is out of range"
    floor = attrs_of(node).floor
    if not 2.0**-100 < floor < 2.0**100:
        return f"the floor is {floor}, must be above 0 and finite"
    scales = node.input(X).type.scale, node.output.type.scale
    # Of an output finer than that, the multiplier would shift logarithms to the left, beyond 32 bits.
    if not (2.0**-40 < scales[0] < 2.0**40 and 2.0**-14 <= scales[1] < 2.0**14):
        return f"scales {scales[0]} and {scales[1]} are out of range"
    return None if _plan(node).most >= 0 else f"the floor {floor} is louder than any sound"


# ---------------------------------------------------------------- what is known ahead of time


@dataclass(frozen=True)
class Bands:
    """The bands as runs of bins. weights: uint16, one run behind the other; firsts, counts: (B,). scale_bits: what
    weights are shifted to the left by. low, high: the bins that are read, the last one exclusive."""

    weights: npt.NDArray[np.uint16]
    firsts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    scale_bits: int

    @property
    def low(self) -> int:
        return int(self.firsts[self.counts > 0].min())

    @property
    def high(self) -> int:
        return int((self.firsts + self.counts).max())


def bands_of(filters: Array) -> Bands:
    scale_bits = 16 - math.frexp(float(filters.max()))[1]
    scaled = np.floor(filters.astype(np.float64) * 2.0**scale_bits + 0.5)
    whole = np.minimum(scaled, 65535).astype(np.uint16)
    firsts, counts, weights = [], [], []
    for row in whole:
        (used,) = np.nonzero(row)
        first, end = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
        firsts.append(first)
        counts.append(end - first)
        weights.append(row[first:end])
    return Bands(np.concatenate(weights), np.array(firsts), np.array(counts), scale_bits)


@dataclass(frozen=True)
class Plan:
    """right: how far products of a sample and its window are shifted to the right. floor: of 31 bits; floor_shift: how
    far it is shifted to the left where `most` bits of headroom are 0, and two more for each bit. most: of headroom.
    offset: is added to log2 of a sum, less two for each bit of headroom; FRACTION bits behind the point."""

    right: int
    floor: int
    floor_shift: int
    most: int
    offset: int


def _plan(node: Node) -> Plan:
    a = attrs_of(node)
    scale = node.input(X).type.scale
    # A sum is the power of the integers times 2 ** exponent, and 4 for each bit of headroom.
    left = fixed_fft.left_shift(a.length)
    scale_bits = 16 - math.frexp(float(node.input(FILTERS).array.max()))[1]
    exponent = 2 * (left - fixed_fft.halvings(a.length)) + scale_bits - 32
    mantissa, power = math.frexp(a.floor / scale**2)
    floor_shift = power - 31 + exponent
    offset = 2 * math.log2(scale) - exponent
    return Plan(
        fixed_fft.ONE.bit_length() - 1 - left,
        math.floor(mantissa * 2.0**31),
        floor_shift,
        min((MOST_FLOOR_SHIFT - floor_shift) // 2, 31),
        round(offset * 2.0**FRACTION),
    )


def factor(node: Node) -> Multiplier:
    """ln 2 / scale(output), of log2 with FRACTION bits behind the point."""
    return quantize_multiplier(math.log(2) / (node.output.type.scale * 2.0**FRACTION))


def window_of(values: Array) -> npt.NDArray[np.int16]:
    scaled = np.floor(values.astype(np.float64) * fixed_fft.ONE + 0.5)
    return np.clip(scaled, -fixed_fft.ONE, fixed_fft.ONE - 1).astype(np.int16)


# ---------------------------------------------------------------- the reference


def logarithm(v: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """log2 of numbers from 1 to 2 ** 63, FRACTION bits behind the point."""
    high, low = (v >> np.uint64(32)).astype(np.float64), (v & np.uint64(0xFFFFFFFF)).astype(np.float64)
    bits = np.where(high > 0, np.frexp(high)[1] + 32, np.frexp(low)[1]).astype(np.int64)
    mantissa = ((v << (64 - bits).astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
    line, rest = (mantissa >> 26) & (LINES - 1), (mantissa >> 10) & 0xFFFF
    table = LOGARITHMS.astype(np.int64)
    return np.asarray(
        ((bits - 1) << FRACTION) + table[line] + (((table[line + 1] - table[line]) * rest) >> 16)
    )


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    a, plan, bands = attrs_of(node), _plan(node), bands_of(node.input(FILTERS).array)
    x = inputs[X]
    assert x is not None
    rows = x.reshape(-1, x.shape[-1]).astype(np.int64)
    values = np.zeros((len(rows), a.length), np.int64)
    values[:, : rows.shape[1]] = (rows * window_of(node.input(WINDOW).array)) >> plan.right
    spectrum = fixed_fft.real_transform(values, a.length)
    used = [part[:, bands.low : bands.high] for part in (spectrum.r, spectrum.i)]
    largest = np.bitwise_or.reduce(used[0] ^ (used[0] >> 63), 1) | np.bitwise_or.reduce(
        used[1] ^ (used[1] >> 63), 1
    )
    headroom = np.minimum(31 - np.frexp(largest.astype(np.float64))[1], plan.most).astype(np.int64)
    squares = sum((part << headroom[:, None]).astype(np.uint64) ** np.uint64(2) for part in used)
    power = np.asarray(squares >> np.uint64(32), np.uint64)
    shift = plan.floor_shift + 2 * headroom
    floor = np.where(shift < 0, plan.floor >> np.minimum(-shift, 31), plan.floor << np.maximum(shift, 0))
    sums = np.zeros((len(rows), len(bands.firsts)), np.uint64)
    at = 0
    for band, (first, count) in enumerate(zip(bands.firsts - bands.low, bands.counts, strict=True)):
        weights = bands.weights[at : at + count].astype(np.uint64)
        sums[:, band] = (power[:, first : first + count] * weights).sum(1, dtype=np.uint64)
        at += count
    total = np.maximum(sums + floor[:, None].astype(np.uint64), np.uint64(1))
    found = logarithm(total) - (headroom[:, None] << (FRACTION + 1)) + plan.offset
    scaled = requantize(found, factor(node).multiplier, factor(node).shift)
    return (np.clip(scaled, -32768, 32767).astype(np.int16).reshape(node.output.shape),)


# ---------------------------------------------------------------- the call


def lower(node: Node, _target: Target) -> Call:
    length, plan, bands = attrs_of(node).length, _plan(node), bands_of(node.input(FILTERS).array)
    count = length // 2
    radices = fixed_fft.radices(count)
    runs = np.stack([np.where(bands.counts > 0, bands.firsts - bands.low, 0), bands.counts], -1)
    tables = {
        "window": window_of(node.input(WINDOW).array),
        "order": fixed_fft.order(count).astype(np.uint16),
        "twiddles": fixed_fft.twiddles(length).astype(np.int16).reshape(-1),
        "split": fixed_fft.split_twiddles(length).astype(np.int16).reshape(-1),
        "runs": runs.astype(np.uint16).reshape(-1),
        "weights": bands.weights,
        "logarithms": LOGARITHMS,
    }
    if not len(tables["twiddles"]):  # one stage has none
        tables["twiddles"] = np.zeros(2, np.int16)
    params = Struct(
        "tinyet_log_bands_s16_params",
        {
            **{name: Pointer(name) for name in tables},
            "radix": (*radices, *(0,) * (fft.MAX_STAGES - len(radices))),
            "stages": len(radices),
            "count": count,
            "frames": node.input(X).type.count // node.input(X).shape[-1],
            "given": node.input(X).shape[-1],
            "low": bands.low,
            "high": bands.high,
            "bands": len(bands.firsts),
            "right": plan.right,
            "floor": plan.floor,
            "floor_shift": plan.floor_shift,
            "most": plan.most,
            "offset": plan.offset,
            "multiplier": factor(node).multiplier,
            "shift": factor(node).shift,
        },
    )
    constants = [Constant(name, values) for name, values in tables.items()]
    return library_call("tinyet_log_bands_s16", node, [X], params, constants, scratch_bytes=8 * (count + 1))


def products(node: Node) -> int:
    """Of windows, powers and bands; a transform has a form of its own."""
    frames = node.input(X).type.count // node.input(X).shape[-1]
    bands = bands_of(node.input(FILTERS).array)
    return frames * (node.input(X).shape[-1] + 2 * (bands.high - bands.low) + len(bands.weights))


OP = Op(
    attrs=LogBands,
    summary="logarithms of bands of a spectrum, in fixed point",
    infer=infer,
    inputs=(3, 3),
    reference=reference,
    iteration=iterate,
    check=check,
    products=products,
    kernels=(
        Kernel(
            "tinyet_log_bands_s16",
            "s16",
            lower,
            ("tinyet_log_bands.h",),
            ("tinyet_log_bands_s16.c",),
            no_cost_model=ALONE,
        ),
    ),
)
