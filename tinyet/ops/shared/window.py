# SPDX-License-Identifier: Apache-2.0
"""Geometry shared by convolutions and pools: output sizes, padding, and the windows of an NHWC image."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, Node, Shape, TensorType
from tinyet.ops.shared.shapes import expect_rank
from tinyet.opset import Index


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


MAX_REACH = 1 << 16
"""The longest stride, padding or window with its dilation, in pixels: with it, positions stay within 32 bits."""


MAX_SIDE = 1 << 20
"""Pixels along a side of an image, likewise; what is found out for each row ahead of time stays small."""


def expect_window(node: Node, attrs: Window, kernel_h: int, kernel_w: int) -> None:
    """Raises UnsupportedShape for attributes that no window has."""
    pads = attrs.pad_top, attrs.pad_bottom, attrs.pad_left, attrs.pad_right
    extents = attrs.dilation_h * (kernel_h - 1) + 1, attrs.dilation_w * (kernel_w - 1) + 1
    sizes = (kernel_h, kernel_w, attrs.stride_h, attrs.stride_w, attrs.dilation_h, attrs.dilation_w)
    if min(sizes) < 1 or min(pads) < 0 or max(*sizes, *extents, *pads) > MAX_REACH:
        raise UnsupportedShape(
            f"{node.op}: a {kernel_h}x{kernel_w} window of stride {attrs.stride_h}x{attrs.stride_w} and dilation "
            f"{attrs.dilation_h}x{attrs.dilation_w} with pads {pads}",
            node.where,
        )


def window_shape(node: Node, attrs: Window, kernel_h: int, kernel_w: int) -> tuple[int, int]:
    """(out_h, out_w) for the node's NHWC input 0; raises UnsupportedShape when the window does not fit."""
    _, height, width, _ = expect_rank(node, 0, 4)
    expect_window(node, attrs, kernel_h, kernel_w)
    if max(height, width) > MAX_SIDE:
        raise UnsupportedShape(
            f"{node.op}: an image of {height}x{width} pixels, at most {MAX_SIDE}", node.where
        )
    out_h = out_size(height, kernel_h, attrs.stride_h, attrs.dilation_h, attrs.pad_top, attrs.pad_bottom)
    out_w = out_size(width, kernel_w, attrs.stride_w, attrs.dilation_w, attrs.pad_left, attrs.pad_right)
    if out_h < 1 or out_w < 1:
        raise UnsupportedShape(
            f"{node.op}: a {kernel_h}x{kernel_w} window does not fit into {height}x{width} pixels", node.where
        )
    return out_h, out_w


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


MAX_RESIZED = 1 << 14
"""Rows or columns of an image that is made by a table of them."""


def resized_shape(node: Node, out_h: int, out_w: int) -> Shape:
    """The NHWC shape of input 0 with another height and width; raises UnsupportedShape for less than one pixel, or more
    than MAX_RESIZED along a side."""
    batch, _, _, channels = expect_rank(node, 0, 4)
    if min(out_h, out_w) < 1 or max(out_h, out_w) > MAX_RESIZED:
        raise UnsupportedShape(f"{node.op}: to {out_h}x{out_w} pixels", node.where)
    return batch, out_h, out_w, channels


# ---------------------------------------------------------------- fields of parameter structs


def image_fields(node: Node) -> dict[str, int]:
    """The sizes of an operator that keeps the channels."""
    batch, in_h, in_w, channels = node.input(0).shape
    _, out_h, out_w, _ = node.output.shape
    return {
        "batch": batch,
        "in_h": in_h,
        "in_w": in_w,
        "channels": channels,
        "out_h": out_h,
        "out_w": out_w,
    }


def window_fields(attrs: Window) -> dict[str, int]:
    """Strides and padding of a window; padding behind the image follows from the sizes."""
    return {
        "stride_h": attrs.stride_h,
        "stride_w": attrs.stride_w,
        "dilation_h": attrs.dilation_h,
        "dilation_w": attrs.dilation_w,
        "pad_top": attrs.pad_top,
        "pad_left": attrs.pad_left,
    }


def window_places(attrs: Window, y: Index, x: Index, tap_y: Index, tap_x: Index) -> tuple[Index, Index]:
    """The row and the column that a tap of the window at (y, x) reads."""
    row = attrs.stride_h * y + attrs.dilation_h * tap_y - attrs.pad_top
    return row, attrs.stride_w * x + attrs.dilation_w * tap_x - attrs.pad_left


def unpadded(attrs: Window, axis: int) -> Window:
    """The window that is given its padding along an axis of the image as rows or columns."""
    if axis == 1:
        return replace(attrs, pad_top=0, pad_bottom=0)
    return replace(attrs, pad_left=0, pad_right=0) if axis == 2 else attrs


def padded(attrs: Window, axis: int, above: int, below: int) -> Window:
    """An unpadded window with so many rows, or columns, of padding before and behind the image."""
    if axis == 1:
        return replace(attrs, pad_top=above, pad_bottom=below)
    return replace(attrs, pad_left=above, pad_right=below)


def zero_of(kind: TensorType) -> int:
    """Zero, as a tensor of that type stores it."""
    return 0 if kind.quant is None else kind.zero_point
