# SPDX-License-Identifier: Apache-2.0
"""What convolutions of one group have in common with each other, with fully connected layers, and with transposed
convolutions (tinyet_conv2d_dsp.h)."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable
from dataclasses import astuple, dataclass

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.packing import NONE, lane_pairs
from tinyet.delegates.cortex_m.rounding import Rounding, rounding
from tinyet.ir import Node
from tinyet.ops.linear import Linear
from tinyet.ops.shared.access_orders import Walk, of_input, pixel_walk, window_walk
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of
from tinyet.opset import (
    DENSE,
    AccessOrder,
    Layouts,
    only_strides,
)

HEADERS = ("tinyet_dsp.h", "tinyet_conv2d_dsp.h")

LARGEST_OFFSET = 1020  # of LDRD, in bytes
MOST_BEFORE = 8  # int8 weights shifted further than this leave int16


class Stored(enum.Enum):
    """As what weights lie in flash. The value stands in the names of the kernels."""

    INT8 = ""
    INT16 = "_w16"

    def named(self, symbol: str) -> str:
        """The name of a kernel for int8 weights with the type of these: behind that of the activations."""
        operator, activations, form = re.split(r"_(s8|s16)_", symbol, maxsplit=1)
        return f"{operator}_{activations}{self.value}_{form}"


@dataclass(frozen=True)
class Geometry:
    """The fields of tinyet_conv2d_shape_dsp, in order."""

    batch: int
    in_h: int
    in_w: int
    in_c: int
    out_h: int
    out_w: int
    out_c: int
    kernel_h: int
    kernel_w: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int
    pad_top: int
    pad_left: int
    in_pixel_stride: int
    out_pixel_stride: int
    zero_point: int

    @property
    def pointwise(self) -> bool:
        """Every output pixel is made of the input pixel of the same index."""
        same = (self.in_h, self.in_w) == (self.out_h, self.out_w)
        return same and (self.kernel_h, self.kernel_w, self.stride_h, self.stride_w) == (1, 1, 1, 1)

    @property
    def together(self) -> int:
        """Neighbouring values of an image's row that a kernel row sees, or one of its taps where it is dilated."""
        return self.in_c * (self.kernel_w if self.dilation_w == 1 else 1)

    @property
    def inside(self) -> bool:
        """No kernel reaches over an edge of the image."""
        ends = (
            (self.in_h, self.out_h, self.kernel_h, self.stride_h, self.dilation_h, self.pad_top),
            (self.in_w, self.out_w, self.kernel_w, self.stride_w, self.dilation_w, self.pad_left),
        )
        return all(
            pad <= 0 and (out - 1) * stride + (kernel - 1) * dilation - pad < size
            for size, out, kernel, stride, dilation, pad in ends
        )

    @property
    def lane_words(self) -> int:
        """Words of a lane that four pixels of a row share (tinyet/tiles/lanes.py)."""
        reach = (self.kernel_w - 1) * self.dilation_w
        return min(self.stride_w, reach + 1) * (reach // self.stride_w + 4)

    @property
    def literal(self) -> str:
        """The tinyet_conv2d_shape_dsp as a C initialiser."""
        b, ih, iw, ic, oh, ow, oc, kh, kw, sh, sw, dh, dw, pt, pl, ip, op, zero = astuple(self)
        return (
            f"{{{b}, /* in */ {ih}, {iw}, {ic}, /* out */ {oh}, {ow}, {oc}, /* kernel */ {kh}, {kw}, "
            f"/* stride */ {sh}, {sw},\n      /* dilation */ {dh}, {dw}, /* pad */ {pt}, {pl}, "
            f"/* pixel stride */ {ip}, {op}, /* zero point */ {zero}}}"
        )


def geometry(node: Node, layouts: Layouts = DENSE) -> Geometry:
    """Of a node; a pointwise one is a row of all its pixels, without the zero point that it does not need, and so are
    the rows of a fully connected layer."""
    if isinstance(node.attrs, Linear):
        out_c, in_c = node.input(1).shape
        return pixel_row(math.prod(node.output.shape[:-1]), in_c, out_c, layouts)
    a = attrs_of(node)
    kernel = node.input(1).shape[1:3]
    # A dilation or stride that nothing sees is 1.
    dilation_h, dilation_w = (
        d if k > 1 else 1 for d, k in zip((a.dilation_h, a.dilation_w), kernel, strict=True)
    )
    out = node.output.shape[1:3]
    stride_h, stride_w = (s if o > 1 else 1 for s, o in zip((a.stride_h, a.stride_w), out, strict=True))
    batch, in_h, in_w, in_c = node.input(0).shape
    _, out_h, out_w, out_c = node.output.shape
    g = Geometry(
        batch=batch,
        in_h=in_h,
        in_w=in_w,
        in_c=in_c,
        out_h=out_h,
        out_w=out_w,
        out_c=out_c,
        kernel_h=kernel[0],
        kernel_w=kernel[1],
        stride_h=stride_h,
        stride_w=stride_w,
        dilation_h=dilation_h,
        dilation_w=dilation_w,
        pad_top=a.pad_top,
        pad_left=a.pad_left,
        in_pixel_stride=layouts.input or in_c,
        out_pixel_stride=layouts.output or out_c,
        zero_point=node.input(0).type.zero_point,
    )
    if not g.pointwise or a.pad_top or a.pad_left:
        return g
    return pixel_row(batch * in_h * in_w, in_c, out_c, layouts)


def pixel_row(pixels: int, in_c: int, out_c: int, layouts: Layouts = DENSE) -> Geometry:
    """A pointwise convolution of pixels in a row."""
    pixel_strides = layouts.input or in_c, layouts.output or out_c
    return Geometry(1, 1, pixels, in_c, 1, pixels, out_c, 1, 1, 1, 1, 1, 1, 0, 0, *pixel_strides, 0)


Pairs = Callable[[int], list[tuple[int, int]]]
"""The two of so many channels, or NONE, that each word of a pixel holds."""


def rows_order(g: Geometry, pairs: Pairs = lane_pairs) -> list[tuple[int, int]]:
    """Two columns for each tap of four pixels of a row, in (kernel_h, kernel_w, in_c), or NONE."""
    return [
        (tap + first, tap + second if second != NONE else NONE)
        for ky in range(g.kernel_h)
        for first, second in pairs(g.in_c)
        for tap in range(ky * g.kernel_w * g.in_c, (ky + 1) * g.kernel_w * g.in_c, g.in_c)
    ]


def patches_order(g: Geometry, pairs: Pairs = lane_pairs) -> list[tuple[int, int]]:
    """The same of any four pixels."""
    return [
        (start + first, start + second if second != NONE else NONE)
        for start in range(0, g.kernel_h * g.kernel_w * g.in_c, g.together)
        for first, second in pairs(g.together)
    ]


def refuse_patches(node: Node, target: Target) -> str | None:
    if attrs_of(node).groups != 1:
        return "only one group"
    g = geometry(node)
    pixels = g.out_h * g.out_w
    return f"{pixels} output pixels, needs 4" if pixels < 4 else None


def rounding_of(node: Node, stored: Stored) -> Rounding:
    clamp = clamp_of(node)
    match stored:
        case Stored.INT8:
            return rounding(node, clamp)
        case Stored.INT16:
            return rounding(node, clamp, most_before=MOST_BEFORE)


def refuse_rows(node: Node, target: Target) -> str | None:
    if attrs_of(node).groups != 1:
        return "only one group"
    g = geometry(node)
    if g.stride_w > 1 and g.dilation_w > 1:
        return "no stride together with dilation"
    if g.out_w < 4:
        return f"rows of {g.out_w} output pixels, needs 4"
    if 4 * g.lane_words > LARGEST_OFFSET:
        return f"a kernel of {g.kernel_w} columns reaches too far"
    return None


def takes_pixel_stride(node: Node, layouts: Layouts) -> bool:
    """Of patches: where the taps of a kernel row are no neighbouring bytes, they must not be taken for such."""
    g = geometry(node)
    return only_strides(node, layouts) and (not layouts.input or g.kernel_w == 1 or g.dilation_w > 1)


def walk(node: Node) -> Walk:
    """The walk as `geometry` has it."""
    g = geometry(node)
    return pixel_walk(node) if g.pointwise and g.inside else window_walk(node)


@of_input
def row_by_fours(node: Node) -> AccessOrder:
    """Four pixels of a row at a time, whose inputs are widened before they are written."""
    w = walk(node)
    run = w.image if geometry(node).out_h == 1 else w.row
    return w.by_pixels(4, run, moved_back=True, gathered=True)


@of_input
def by_fours(node: Node) -> AccessOrder:
    return walk(node).by_pixels(4, moved_back=True, gathered=True)
