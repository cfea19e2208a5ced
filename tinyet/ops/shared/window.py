# SPDX-License-Identifier: Apache-2.0
"""Geometry shared by convolutions and pools: output sizes, padding, and the windows of an NHWC image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, Node, Shape


@dataclass(frozen=True)
class Window(Attrs):
    """Attributes of an operator that slides a window; pads in pixels, each side its own."""

    stride_h: int = 1
    stride_w: int = 1
    dilation_h: int = 1
    dilation_w: int = 1
    pad_top: int = 0
    pad_bottom: int = 0
    pad_left: int = 0
    pad_right: int = 0


def out_size(size: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    """(size + before + after - dilation * (kernel - 1) - 1) // stride + 1; zero or less when the window does
    not fit."""
    return (size + before + after - dilation * (kernel - 1) - 1) // stride + 1


def window_shape(node: Node, attrs: Window, kernel_h: int, kernel_w: int) -> tuple[int, int]:
    """(out_h, out_w) for the node's NHWC input 0; raises UnsupportedShape when the window does not fit."""
    _, height, width, _ = expect_rank(node, 0, 4)
    out_h = out_size(height, kernel_h, attrs.stride_h, attrs.dilation_h, attrs.pad_top, attrs.pad_bottom)
    out_w = out_size(width, kernel_w, attrs.stride_w, attrs.dilation_w, attrs.pad_left, attrs.pad_right)
    if out_h < 1 or out_w < 1:
        raise UnsupportedShape(
            f"{node.op}: a {kernel_h}x{kernel_w} window does not fit into {height}x{width} pixels", node.where
        )
    return out_h, out_w


def expect_rank(node: Node, index: int, rank: int) -> Shape:
    """The shape of an input, which must have `rank` dimensions."""
    shape = node.input(index).shape
    if len(shape) != rank:
        raise UnsupportedShape(
            f"{node.op}: input {index} must have {rank} dimensions, has {len(shape)}", node.where
        )
    return shape


def pad_image(image: Array, attrs: Window, fill: float) -> Array:
    """The NHWC image with the window's padding filled with one value."""
    pads = ((0, 0), (attrs.pad_top, attrs.pad_bottom), (attrs.pad_left, attrs.pad_right), (0, 0))
    return np.pad(image, pads, constant_values=fill)


def taps(padded: Array, attrs: Window, kernel_h: int, kernel_w: int, out_h: int, out_w: int) -> list[Array]:
    """For each tap in row order, the (N, out_h, out_w, C) view of the padded image that it reads."""
    views = []
    for i in range(kernel_h):
        for j in range(kernel_w):
            y, x = i * attrs.dilation_h, j * attrs.dilation_w
            rows = slice(y, y + (out_h - 1) * attrs.stride_h + 1, attrs.stride_h)
            columns = slice(x, x + (out_w - 1) * attrs.stride_w + 1, attrs.stride_w)
            views.append(padded[:, rows, columns, :])
    return views
