# SPDX-License-Identifier: Apache-2.0
"""Fully connected layer that quantizes its input at run time, with a fused clamp: dynamic.py says how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, Node, Shape
from tinyet.numerics import NO_CLAMP
from tinyet.ops import linear
from tinyet.ops.linear import Linear
from tinyet.ops.shared import dynamic
from tinyet.opset import Call, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class DynamicLinear(Attrs):
    """inputs: x float32 (…, K); weights int8 (N, K) constant; bias float32 (N,) constant or None.
    Output: float32 (…, N).

    clamp: bounds of the fused activation. eps: the smallest scale of x, which is quantized as a whole.
    """

    name: ClassVar[str] = "dynamic_linear"
    clamp: tuple[float, float] = NO_CLAMP
    eps: float = dynamic.DEFAULT_EPS


def attrs_of(node: Node) -> DynamicLinear:
    assert isinstance(node.attrs, DynamicLinear)
    return node.attrs


def static(node: Node) -> Node:
    """The same node as a Linear, whose shapes and layouts it has."""
    return node.replace(attrs=Linear(clamp=attrs_of(node).clamp))


def infer(node: Node) -> tuple[Shape, ...]:
    return linear.infer(static(node))


def macs(node: Node) -> int:
    return linear.macs(static(node))


def check(node: Node) -> str | None:
    return dynamic.check(node, attrs_of(node).eps)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    attrs, x, weights = attrs_of(node), inputs[0], inputs[1]
    assert x is not None
    assert weights is not None
    scale, zero_point = dynamic.choose_params(x, attrs.eps)
    numbers = dynamic.quantized(x, scale, zero_point).astype(np.float64) - zero_point
    # float64 holds every integer below 2**53, so the matrix product is exact and fast.
    sums = numbers.reshape(-1, weights.shape[1]) @ weights.T.astype(np.float64)
    return (dynamic.finished(node, sums, scale, attrs.clamp).reshape(node.output.shape),)


def lower(node: Node, _target: Target) -> Call:
    """Scratch: a float for each output, and x in int8."""
    attrs = attrs_of(node)
    layer = dynamic.layer_struct(attrs.eps, attrs.clamp)
    params = Struct("tinyet_dynamic_linear_params", {**linear.size_fields(node), "layer": layer})
    constants = dynamic.constants(node, linear.row_weights(node), round_to=4)
    scratch = 4 * node.output.shape[-1] + node.input(0).type.count
    return library_call("tinyet_dynamic_linear_f32", node, [0], params, constants, scratch)


OP = Op(
    attrs=DynamicLinear,
    summary="fully connected layer with int8 weights, its float input quantized at run time, fused clamp",
    infer=infer,
    reference=reference,
    check=check,
    macs=macs,
    kernels=(
        Kernel(
            "tinyet_dynamic_linear_f32",
            "f32",
            lower,
            ("tinyet_dynamic.h", "tinyet_conv2d.h", "tinyet_pairs.h", "tinyet_rows.h"),
            ("tinyet_dynamic_linear_f32.c", "tinyet_dynamic_quantize.c"),
        ),
    ),
)
