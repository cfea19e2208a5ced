# SPDX-License-Identifier: Apache-2.0
"""Vectors along the last axis over their length, in int8 as TFLM's and LiteRT's L2_NORMALIZATION, bit for bit: the sum
of squares is exact, one over its root is computed in fixed point.

In float32 it is composed of other operators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.numerics import requantize
from tinyet.ops.shared.fixed_point import inverse_root
from tinyet.ops.shared.integers import check_activations, saturated
from tinyet.ops.shared.shapes import same_shape
from tinyet.opset import ALONE, Call, Kernel, Op, Struct, library_call, mixing

OUT_SCALE, OUT_ZERO_POINT = 1 / 128, 0
_OUT_BITS = 7
MAX_DEPTH = (2**31 - 1) // 255**2
"""The largest sum of squares fits in 32 bits."""


@dataclass(frozen=True)
class L2Normalize(Attrs):
    """inputs: x, int8 of at least one axis. Output: int8 of scale 1/128 and zero point 0; zeros stay zeros."""

    name: ClassVar[str] = "l2_normalize"


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if (x.dtype, out.dtype) != (DType.INT8, DType.INT8):
        return f"no form from {x.dtype.value} to {out.dtype.value}"
    complaint = check_activations(x) or check_activations(out)
    if complaint is not None:
        return complaint
    if (out.type.scale, out.type.zero_point) != (OUT_SCALE, OUT_ZERO_POINT):
        return f"only an output scale of {OUT_SCALE} and zero point {OUT_ZERO_POINT}"
    if not x.shape:
        return "no axis"
    return f"{x.shape[-1]} elements along the axis, at most {MAX_DEPTH}" if x.shape[-1] > MAX_DEPTH else None


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    steps = x.astype(np.int64) - node.input(0).type.zero_point
    sums = (steps * steps).sum(axis=-1)
    distinct, places = np.unique(sums, return_inverse=True)
    factors = np.array([inverse_root(int(value)) for value in distinct], np.int64)[places.reshape(sums.shape)]
    values = requantize(steps, factors[..., :1], factors[..., 1:] + _OUT_BITS)
    return (saturated(values, DType.INT8),)


def lower(node: Node, _target: Target) -> Call:
    *outer, depth = node.input(0).shape
    fields = {"rows": math.prod(outer), "depth": depth, "in_zero_point": node.input(0).type.zero_point}
    params = Struct("tinyet_l2_normalize_s8_params", fields)
    return library_call("tinyet_l2_normalize_s8", node, [0], params)


OP = Op(
    attrs=L2Normalize,
    summary="vectors along the last axis over their length",
    infer=same_shape,
    reference=reference,
    iteration=mixing(lambda node: (len(node.output.shape) - 1,)),
    check=check,
    inplace=(0,),
    kernels=(
        Kernel(
            "tinyet_l2_normalize_s8",
            "s8",
            lower,
            ("tinyet_l2_normalize.h",),
            ("tinyet_l2_normalize_s8.c",),
            no_cost_model=ALONE,
        ),
    ),
)
