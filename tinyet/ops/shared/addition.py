# SPDX-License-Identifier: Apache-2.0
"""a + b and a - b in integers, as LiteRT's ADD and SUB.

The specification: both operands are shifted left by 20 bits (int16: 15), rescaled to twice the larger scale, added, and
rescaled to the output. The portable int8 kernel computes one affine form instead wherever that is proved to be the
same (affine.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node
from tinyet.numerics import (
    NO_CLAMP,
    Int64,
    Multiplier,
    clamp_range,
    quantize_multiplier,
    requantize,
    round_half_even,
)
from tinyet.ops.shared import affine, broadcast
from tinyet.ops.shared.clamped import clamp_fields, clamp_of
from tinyet.ops.shared.factors import above_int8, rounds_half_even
from tinyet.opset import Call, FieldValue, Kernel, Reference, Struct, library_call

LEFT_SHIFTS = {DType.INT8: 20, DType.INT16: 15}


@dataclass(frozen=True)
class Scaling:
    """Everything that decides the integer form: scales, zero points (a, b, out), sign of b and the output's
    bounds."""

    scales: tuple[float, float, float]
    zero_points: tuple[int, int, int]
    sign: int
    clamp: tuple[int, int]
    left_shift: int = LEFT_SHIFTS[DType.INT8]

    @property
    def ratios(self) -> tuple[float, float]:
        """The real factors of a and b."""
        a, b, out = self.scales
        return a / out, self.sign * b / out

    @property
    def factors(self) -> tuple[Multiplier, Multiplier, Multiplier]:
        """Of a, b and the sum; LiteRT computes them in float64."""
        a, b, out = self.scales
        twice = 2 * max(a, b)
        return (
            quantize_multiplier(a / twice),
            quantize_multiplier(b / twice),
            quantize_multiplier(twice / (2**self.left_shift * out)),
        )

    def apply(self, a: Array, b: Array) -> Int64:
        """Raw a and b, broadcasting → the specified output, int64."""
        parts = []
        for x, zero_point, factor in zip((a, b), self.zero_points[:2], self.factors[:2], strict=True):
            shifted = (x.astype(np.int64) - zero_point) << self.left_shift
            parts.append(requantize(shifted, factor.multiplier, factor.shift))
        total = requantize(parts[0] + self.sign * parts[1], self.factors[2].multiplier, self.factors[2].shift)
        return np.asarray(np.clip(total + self.zero_points[2], *self.clamp), np.int64)


def scaling(node: Node, clamp: tuple[float, float], sign: int) -> Scaling:
    types = node.input(0).type, node.input(1).type, node.output.type
    return Scaling(
        (types[0].scale, types[1].scale, types[2].scale),
        (types[0].zero_point, types[1].zero_point, types[2].zero_point),
        sign,
        clamp_range(clamp, types[2]),
        LEFT_SHIFTS[types[2].dtype],
    )


@lru_cache(maxsize=1024)
def affine_form(s: Scaling) -> affine.Affine | None:
    """The affine form of raw a and b that equals the specification for all 65,536 pairs, when there is
    one."""
    every = np.arange(-128, 128, dtype=np.int8)
    a, b = every[:, None], every[None, :]
    want = s.apply(a, b)
    return affine.find(a.astype(np.int64), b.astype(np.int64), want, s.ratios, s.clamp)


@dataclass(frozen=True)
class HalfEvenScaling:
    """The parameters of a sum that is rounded to even: scales and zero points (a, b, out), bounds, and the offset of
    values in the computed type."""

    scales: tuple[float, float, float]
    zero_points: tuple[int, int, int]
    clamp: tuple[int, int]
    above: int

    def apply(self, a: Array, b: Array) -> Int64:
        """Raw a and b, broadcasting → the output, int64. In float32, with one rounding a product and sum (FMA):

            a * ratio_a + (b * ratio_b + (zero_out - (ratio_a * zero_a + ratio_b * zero_b)))

        as MLAS's QLinearAdd for x86-64 with FMA3 computes it."""
        ratio_a, ratio_b = self.ratios
        zero_a, zero_b, zero_out = (np.float32(z + self.above) for z in self.zero_points)
        fixed = np.float32(zero_out - multiply_add(ratio_a, zero_a, np.float32(ratio_b * zero_b)))
        inner = multiply_add((b.astype(np.int64) + self.above).astype(np.float32), ratio_b, fixed)
        value = multiply_add((a.astype(np.int64) + self.above).astype(np.float32), ratio_a, inner)
        return np.asarray(np.clip(round_half_even(value) - self.above, *self.clamp), np.int64)

    @property
    def ratios(self) -> tuple[np.float32, np.float32]:
        a, b, out = (np.float32(s) for s in self.scales)
        return np.float32(a / out), np.float32(b / out)


def multiply_add(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """a * b + c of float32 values, rounded once. In float64 the product of an 8-bit integer and a float32 is exact, and
    so is the sum as long as the summands' sizes differ by less than 2**20."""
    wide = [np.asarray(x, np.float32).astype(np.float64) for x in (a, b, c)]
    return np.asarray(wide[0] * wide[1] + wide[2], np.float32)


def half_even_scaling(node: Node, clamp: tuple[float, float]) -> HalfEvenScaling:
    types = node.input(0).type, node.input(1).type, node.output.type
    return HalfEvenScaling(
        (types[0].scale, types[1].scale, types[2].scale),
        (types[0].zero_point, types[1].zero_point, types[2].zero_point),
        clamp_range(clamp, types[2]),
        above_int8(node),
    )


@lru_cache(maxsize=1024)
def half_even_form(s: HalfEvenScaling) -> affine.Affine | None:
    """The affine form that gives the sums rounded to even for all 65,536 pairs, when there is one. (There is none where
    halves are met exactly: no affine form rounds these to even.)"""
    every = np.arange(-128, 128, dtype=np.int8)
    a, b = every[:, None], every[None, :]
    ratio_a, ratio_b = s.ratios
    return affine.find(
        a.astype(np.int64), b.astype(np.int64), s.apply(a, b), (float(ratio_a), float(ratio_b)), s.clamp
    )


def check_half_even(node: Node) -> str | None:
    complaint = broadcast.check_scaled(node, lambda: True, (DType.INT8,))
    if complaint is not None or node.output.dtype is DType.FLOAT32:
        return complaint
    found = half_even_form(own_half_even_scaling(node))
    return "no affine form of the operands rounds to even for these scales" if found is None else None


def check(node: Node) -> str | None:
    if rounds_half_even(node):
        return check_half_even(node)
    # LiteRT aborts from here on; the sum has 29 bits (int16: 31), so that one left shift is the most that int32
    # holds.
    return broadcast.check_scaled(node, lambda: scaling(node, NO_CLAMP, 1).factors[2].shift <= 0)


def own_scaling(node: Node, sign: int) -> Scaling:
    """With the node's own clamp; sign: that of b, -1 in a subtraction."""
    return scaling(node, clamp_of(node), sign)


def own_half_even_scaling(node: Node) -> HalfEvenScaling:
    """Of a sum rounded to even, with the node's own clamp."""
    return half_even_scaling(node, clamp_of(node))


def reference_of(sign: int) -> Reference:
    def integer(node: Node, a: Array, b: Array) -> Array:
        if rounds_half_even(node):
            return own_half_even_scaling(node).apply(a, b).astype(node.output.dtype.numpy)
        return own_scaling(node, sign).apply(a, b).astype(node.output.dtype.numpy)

    return broadcast.arithmetic(np.add if sign > 0 else np.subtract, integer)


# ---------------------------------------------------------------- portable kernels


def refuse_affine(node: Node, s: Scaling, target: Target) -> str | None:
    if affine_form(s) is None:
        return "no affine form of the two operands is exact for these scales"
    return broadcast.refuse_loops(node, target)


def lower_affine(node: Node, form: affine.Affine | None) -> Call:
    assert form is not None
    params = Struct(
        "tinyet_affine_s8_params",
        {
            "shape": broadcast.shape_struct(node),
            "a_factor": form.a,
            "b_factor": form.b,
            "offset": form.c,
            "shift": form.shift,
            **clamp_fields(node),
        },
    )
    return library_call("tinyet_affine_s8", node, [0, 1], params)


def lower_three(node: Node, s: Scaling) -> Call:
    """The specification's three rescalings; int16 has no zero points."""
    dtype = node.output.dtype
    fields: dict[str, FieldValue] = {"shape": broadcast.shape_struct(node)}
    for name, zero_point, factor in zip(("a", "b", "out"), s.zero_points, s.factors, strict=True):
        if dtype is DType.INT8:
            fields[f"{name}_zero_point"] = zero_point
        fields[f"{name}_multiplier"] = factor.multiplier
        fields[f"{name}_shift"] = factor.shift
    fields |= clamp_fields(node)
    symbol = f"tinyet_{node.op}_{dtype.suffix}"
    return library_call(symbol, node, [0, 1], Struct(f"tinyet_add_{dtype.suffix}_params", fields))


def kernels_of(name: str, sign: int) -> tuple[Kernel, ...]:
    """`tinyet_<name>_<dtype>`, and in int8 what is faster than that."""

    def refuse_by_scaling(node: Node, target: Target) -> str | None:
        return refuse_affine(node, own_scaling(node, sign), target)

    def lower_by_affine(node: Node, _target: Target) -> Call:
        return lower_affine(node, affine_form(own_scaling(node, sign)))

    def lower(node: Node, _target: Target) -> Call:
        return lower_three(node, own_scaling(node, sign))

    return (
        broadcast.table_kernel(reference_of(sign)),
        broadcast.kernel("tinyet_affine_s8", lower_by_affine, "tinyet_affine_s8.c", refuse_by_scaling),
        broadcast.kernel(f"tinyet_{name}_s8", lower, "tinyet_add_s8.c"),
        broadcast.kernel(f"tinyet_{name}_s16", lower, "tinyet_add_s16.c"),
        broadcast.kernel(f"tinyet_{name}_f32", broadcast.lower_f32, "tinyet_binary_f32.c"),
    )


def lower_half_even(node: Node, _target: Target) -> Call:
    return lower_affine(node, half_even_form(own_half_even_scaling(node)))


EVEN_KERNELS = (
    broadcast.table_kernel(reference_of(1), "s8_rne"),
    Kernel(
        "tinyet_affine_s8",
        "s8_rne",
        lower_half_even,
        broadcast.HEADERS,
        ("tinyet_affine_s8.c",),
        broadcast.refuse_loops,
    ),
)
"""Of a sum rounded to even, whose `check` has found an affine form."""
