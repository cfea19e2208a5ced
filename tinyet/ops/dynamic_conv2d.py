# SPDX-License-Identifier: Apache-2.0
"""Two-dimensional convolution, NHWC, that quantizes its input at run time, with a fused clamp: dynamic.py says how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Node, Shape
from tinyet.numerics import NO_CLAMP
from tinyet.ops import conv2d
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import dynamic
from tinyet.ops.shared.window import Window, pad_image, taps
from tinyet.opset import Call, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class DynamicConv2d(Window):
    """inputs: x float32 (N, H, W, C); weights int8 (out_c, kernel_h, kernel_w, C / groups) constant; bias float32
    (out_c,) constant or None. Output: float32. Padding is 0.

    clamp: bounds of the fused activation. eps: the smallest scale of x, which is quantized as a whole.
    """

    name: ClassVar[str] = "dynamic_conv2d"
    groups: int = 1
    clamp: tuple[float, float] = NO_CLAMP
    eps: float = dynamic.DEFAULT_EPS


def attrs_of(node: Node) -> DynamicConv2d:
    assert isinstance(node.attrs, DynamicConv2d)
    return node.attrs


def static(node: Node) -> Node:
    """The same node as a Conv2d, whose shapes and layouts it has."""
    attrs = attrs_of(node)
    return node.replace(attrs=Conv2d(**{f.name: getattr(attrs, f.name) for f in fields(Conv2d)}))


def infer(node: Node) -> tuple[Shape, ...]:
    return conv2d.infer(static(node))


def macs(node: Node) -> int:
    return conv2d.macs(static(node))


def check(node: Node) -> str | None:
    return dynamic.check(node, attrs_of(node).eps)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    attrs, x, weights = attrs_of(node), inputs[0], inputs[1]
    assert x is not None
    assert weights is not None
    out_c, kernel_h, kernel_w, group_c = weights.shape
    scale, zero_point = dynamic.choose_params(x, attrs.eps)
    numbers = pad_image(dynamic.quantized(x, scale, zero_point).astype(np.float64) - zero_point, attrs, 0)
    sums = np.zeros(node.output.shape, np.float64)
    outs = out_c // attrs.groups
    for t, view in enumerate(taps(numbers, attrs, kernel_h, kernel_w, *node.output.shape[1:3])):
        w = weights.reshape(out_c, -1, group_c)[:, t].astype(np.float64)
        for g in range(attrs.groups):
            rows = slice(g * outs, (g + 1) * outs)
            # float64 holds every integer below 2**53, so the matrix product is exact and fast.
            sums[..., rows] += view[..., g * group_c : (g + 1) * group_c].astype(np.float64) @ w[rows].T
    return (dynamic.finished(node, sums, scale, attrs.clamp),)


def params(node: Node) -> Struct:
    attrs = attrs_of(node)
    layer = dynamic.layer_struct(attrs.eps, attrs.clamp)
    return Struct(
        "tinyet_dynamic_conv2d_params", {"shape": conv2d.shape_struct(static(node)), "layer": layer}
    )


def scratch_bytes(node: Node, own: int) -> int:
    """A float for each output channel, what the kernel needs for itself, and x in int8."""
    return 4 * node.output.shape[3] + own + node.input(0).type.count


def lower(node: Node, _target: Target) -> Call:
    """Of its own: two pixels' patches in int16."""
    constants = dynamic.constants(node, conv2d.pair_weights(static(node)))
    scratch = scratch_bytes(node, 8 * ((node.input(1).array[0].size + 1) // 2))
    return library_call("tinyet_dynamic_conv2d_f32", node, [0], params(node), constants, scratch)


def refuse_depthwise(node: Node, target: Target) -> str | None:
    return conv2d.refuse_depthwise(static(node), target)


def lower_depthwise(node: Node, _target: Target) -> Call:
    """Of its own: two lists of the taps' offsets."""
    constants = dynamic.constants(node, conv2d.quad_weights(node), round_to=4)
    _, kernel_h, kernel_w, _ = node.input(1).shape
    scratch = scratch_bytes(node, 8 * kernel_h * kernel_w)
    return library_call("tinyet_dynamic_depthwise_f32", node, [0], params(node), constants, scratch)


OP = Op(
    attrs=DynamicConv2d,
    summary="convolution with int8 weights, its float input quantized at run time, fused clamp",
    infer=infer,
    reference=reference,
    check=check,
    macs=macs,
    kernels=(
        Kernel(
            "tinyet_dynamic_depthwise_f32",
            "f32",
            lower_depthwise,
            (*conv2d.DEPTHWISE, "tinyet_dynamic.h"),
            ("tinyet_dynamic_depthwise_f32.c", "tinyet_dynamic_quantize.c"),
            refuse_depthwise,
        ),
        Kernel(
            "tinyet_dynamic_conv2d_f32",
            "f32",
            lower,
            (*conv2d.PATCHES, "tinyet_dynamic.h"),
            ("tinyet_dynamic_conv2d_f32.c", "tinyet_dynamic_quantize.c"),
        ),
    ),
)
