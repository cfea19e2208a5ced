# SPDX-License-Identifier: Apache-2.0
"""Two-dimensional maximum pooling, NHWC. Padding never wins; dilation is supported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node, Shape
from tinyet.ops.shared.window import Window, taps, window_shape
from tinyet.opset import Call, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class MaxPool2d(Window):
    """input: x (N, H, W, C). A window that lies wholly in the padding gives the type's lowest value.

    A float window that holds a NaN gives NaN, as in PyTorch.
    """

    name: ClassVar[str] = "max_pool2d"
    kernel_h: int = 1
    kernel_w: int = 1


def attrs_of(node: Node) -> MaxPool2d:
    assert isinstance(node.attrs, MaxPool2d)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    attrs = attrs_of(node)
    size = window_shape(node, attrs, attrs.kernel_h, attrs.kernel_w)
    return ((node.input(0).shape[0], *size, node.input(0).shape[3]),)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    attrs, x = attrs_of(node), inputs[0]
    assert x is not None
    out_h, out_w = node.output.shape[1:3]
    lowest = -np.inf if node.input(0).dtype is DType.FLOAT32 else node.input(0).dtype.range[0]
    # float32 holds every int8 and int16, and its comparisons are the kernel's.
    x = x.astype(np.float32)
    pads = ((0, 0), (attrs.pad_top, attrs.pad_bottom), (attrs.pad_left, attrs.pad_right), (0, 0))
    padded = np.pad(x, pads, constant_values=lowest)
    best = np.full(node.output.shape, lowest, np.float32)
    for view in taps(padded, attrs, attrs.kernel_h, attrs.kernel_w, out_h, out_w):
        tap = view.astype(np.float32)
        best = np.where((tap > best) | np.isnan(tap), tap, best)
    return (best.astype(node.output.dtype.numpy),)


def lower(symbol: str, node: Node) -> Call:
    attrs = attrs_of(node)
    batch, in_h, in_w, channels = node.input(0).shape
    _, out_h, out_w, _ = node.output.shape
    params = Struct(
        "tinyet_max_pool2d_params",
        {
            "batch": batch,
            "in_h": in_h,
            "in_w": in_w,
            "channels": channels,
            "out_h": out_h,
            "out_w": out_w,
            "kernel_h": attrs.kernel_h,
            "kernel_w": attrs.kernel_w,
            "stride_h": attrs.stride_h,
            "stride_w": attrs.stride_w,
            "dilation_h": attrs.dilation_h,
            "dilation_w": attrs.dilation_w,
            "pad_top": attrs.pad_top,
            "pad_left": attrs.pad_left,
        },
    )
    return library_call(symbol, node, [0], params)


def lower_s8(node: Node, _target: Target) -> Call:
    return lower("tinyet_max_pool2d_s8", node)


def lower_s16(node: Node, _target: Target) -> Call:
    return lower("tinyet_max_pool2d_s16", node)


def lower_f32(node: Node, _target: Target) -> Call:
    return lower("tinyet_max_pool2d_f32", node)


HEADERS = ("tinyet_max_pool2d.h", "tinyet_window.h")

OP = Op(
    attrs=MaxPool2d,
    summary="maximum pooling: stride, dilation, a padding for each side",
    infer=infer,
    reference=reference,
    same_scale=True,
    kernels=(
        Kernel("tinyet_max_pool2d_s8", "s8", lower_s8, HEADERS, ("tinyet_max_pool2d_s8.c",)),
        Kernel("tinyet_max_pool2d_s16", "s16", lower_s16, HEADERS, ("tinyet_max_pool2d_s16.c",)),
        Kernel("tinyet_max_pool2d_f32", "f32", lower_f32, HEADERS, ("tinyet_max_pool2d_f32.c",)),
    ),
)
