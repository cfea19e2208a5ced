# SPDX-License-Identifier: Apache-2.0
"""a + b with numpy's broadcasting and a fused clamp. In int8 and int16 as LiteRT's ADD, bit for bit.

The specification: both operands are shifted left by 20 bits (int16: 15), rescaled to twice the larger scale, added, and
rescaled to the output. The portable int8 kernel computes one affine form instead wherever that is proved to be the
same (ops/affine.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import QuantizationError
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.numerics import NO_CLAMP, Int64, Multiplier, clamp_range, quantize_multiplier, requantize
from tinyet.ops.shared import affine, broadcast
from tinyet.ops.shared.integers import INTEGERS
from tinyet.opset import Call, FieldValue, Op, Struct, library_call

LEFT_SHIFTS = {DType.INT8: 20, DType.INT16: 15}


@dataclass(frozen=True)
class Add(Attrs):
    """inputs: a, b, which broadcast; either may be a constant. clamp: real bounds of the fused activation."""

    name: ClassVar[str] = "add"
    clamp: tuple[float, float] = NO_CLAMP


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
    factors = (s.scales[0] / s.scales[2], s.sign * s.scales[1] / s.scales[2])
    return affine.find(a.astype(np.int64), b.astype(np.int64), want, factors, s.clamp)


def attrs_of(node: Node) -> Add:
    assert isinstance(node.attrs, Add)
    return node.attrs


def check(node: Node) -> str | None:
    complaint = broadcast.check_elementwise(node, INTEGERS)
    if complaint is None and node.output.dtype is not DType.FLOAT32:
        # LiteRT aborts from here on; the sum has 29 bits (int16: 31), so that one left shift is the most that
        # int32 holds.
        try:
            fits = scaling(node, NO_CLAMP, 1).factors[2].shift <= 0
        except QuantizationError:
            fits = False
        return None if fits else "the output's scale is too small for the inputs'"
    return complaint


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    a, b = broadcast.operands(inputs)
    clamp = attrs_of(node).clamp
    if node.output.dtype is DType.FLOAT32:
        return (broadcast.float_reference(np.add, a, b, clamp),)
    return (scaling(node, clamp, 1).apply(a, b).astype(node.output.dtype.numpy),)


# ---------------------------------------------------------------- portable kernels, of subtraction too


def refuse_affine(node: Node, s: Scaling, target: Target) -> str | None:
    if affine_form(s) is None:
        return "no affine form of the two operands is exact for these scales"
    return broadcast.refuse_loops(node, target)


def lower_affine(node: Node, s: Scaling) -> Call:
    form = affine_form(s)
    assert form is not None
    params = Struct(
        "tinyet_affine_s8_params",
        {
            "shape": broadcast.shape_struct(node),
            "a_factor": form.a,
            "b_factor": form.b,
            "offset": form.c,
            "shift": form.shift,
            "clamp_low": s.clamp[0],
            "clamp_high": s.clamp[1],
        },
    )
    return library_call("tinyet_affine_s8", node, [0, 1], params)


def lower_exact(node: Node, s: Scaling, symbol: str) -> Call:
    fields: dict[str, FieldValue] = {"shape": broadcast.shape_struct(node)}
    for name, zero_point, factor in zip(("a", "b", "out"), s.zero_points, s.factors, strict=True):
        fields[f"{name}_zero_point"] = zero_point
        fields[f"{name}_multiplier"] = factor.multiplier
        fields[f"{name}_shift"] = factor.shift
    fields |= {"clamp_low": s.clamp[0], "clamp_high": s.clamp[1]}
    return library_call(symbol, node, [0, 1], Struct("tinyet_add_s8_params", fields))


def lower_symmetric(node: Node, s: Scaling, symbol: str) -> Call:
    fields: dict[str, FieldValue] = {"shape": broadcast.shape_struct(node)}
    for name, factor in zip(("a", "b", "out"), s.factors, strict=True):
        fields[f"{name}_multiplier"] = factor.multiplier
        fields[f"{name}_shift"] = factor.shift
    fields |= {"clamp_low": s.clamp[0], "clamp_high": s.clamp[1]}
    return library_call(symbol, node, [0, 1], Struct("tinyet_add_s16_params", fields))


def lower_affine_s8(node: Node, target: Target) -> Call:
    return lower_affine(node, scaling(node, attrs_of(node).clamp, 1))


def refuse_affine_s8(node: Node, target: Target) -> str | None:
    return refuse_affine(node, scaling(node, attrs_of(node).clamp, 1), target)


def lower_s8(node: Node, target: Target) -> Call:
    return lower_exact(node, scaling(node, attrs_of(node).clamp, 1), "tinyet_add_s8")


def lower_s16(node: Node, target: Target) -> Call:
    return lower_symmetric(node, scaling(node, attrs_of(node).clamp, 1), "tinyet_add_s16")


def lower_f32(node: Node, target: Target) -> Call:
    return broadcast.float_call("tinyet_add_f32", node, attrs_of(node).clamp)


OP = Op(
    attrs=Add,
    summary="a + b, broadcasting, with fused clamp",
    infer=broadcast.infer,
    reference=reference,
    check=check,
    inplace=(0, 1),
    kernels=(
        broadcast.table_kernel(reference),
        broadcast.kernel("tinyet_affine_s8", lower_affine_s8, "tinyet_affine_s8.c", refuse_affine_s8),
        broadcast.kernel("tinyet_add_s8", lower_s8, "tinyet_add_s8.c"),
        broadcast.kernel("tinyet_add_s16", lower_s16, "tinyet_add_s16.c"),
        broadcast.kernel("tinyet_add_f32", lower_f32, "tinyet_binary_f32.c"),
    ),
)
