# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one group as a matrix product of four pixels by two channels in registers (tinyet_dsp_conv2d.h)."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

import numpy as np

from tinyet.boards import Target
from tinyet.delegates.cortex_m.packing import gemm_stream, lane_pairs
from tinyet.delegates.cortex_m.rounding import Rounding, rounding
from tinyet.delegates.cortex_m.wrapper import largest_divisor, specialised_call
from tinyet.ir import Node
from tinyet.ops.conv2d import attrs_of
from tinyet.opset import Call, Constant, Kernel

HEADERS = ("tinyet_dsp.h", "tinyet_dsp_conv2d.h")

# Taps of straight code in the multiply loop, 45 bytes each: all of them when they are this few, else up to so many a turn.
STRAIGHT_TAPS, LOOP_TAPS = 32, 24
# Rows whose last block overlaps the one before compute pixels twice: at most this share more.
MOST_OVERLAP = 1.2


@dataclass(frozen=True)
class Geometry:
    """The fields of tinyet_dsp_conv2d before `unroll`, in order."""

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
    zero_point: int

    @property
    def pointwise(self) -> bool:
        """Every output pixel is made of the input pixel of the same index."""
        same = (self.in_h, self.in_w) == (self.out_h, self.out_w)
        return same and (self.kernel_h, self.kernel_w, self.stride_h, self.stride_w) == (1, 1, 1, 1)

    @property
    def lane_words(self) -> int:
        """Words of a lane in tinyet_dsp_conv2d_rows."""
        reach = (self.kernel_w - 1) * self.dilation_w
        return min(self.stride_w, reach + 1) * (reach // self.stride_w + 4)

    def literal(self, unroll: int) -> str:
        """The tinyet_dsp_conv2d as a C initialiser."""
        b, ih, iw, ic, oh, ow, oc, kh, kw, sh, sw, dh, dw, pt, pl, zero = astuple(self)
        return (
            f"{{{b}, /* in */ {ih}, {iw}, {ic}, /* out */ {oh}, {ow}, {oc}, /* kernel */ {kh}, {kw}, "
            f"/* stride */ {sh}, {sw},\n      /* dilation */ {dh}, {dw}, /* pad */ {pt}, {pl}, /* zero point */ {zero}, "
            f"/* unroll */ {unroll}}}"
        )


def geometry(node: Node) -> Geometry:
    """Of a node; a pointwise one is a single row of all its pixels, without the zero point that it does not need."""
    a = attrs_of(node)
    kernel = node.input(1).shape[1:3]
    # A dilation or stride that nothing sees is 1.
    dilation_h, dilation_w = (d if k > 1 else 1 for d, k in zip((a.dilation_h, a.dilation_w), kernel, strict=True))
    out = node.output.shape[1:3]
    stride_h, stride_w = (s if o > 1 else 1 for s, o in zip((a.stride_h, a.stride_w), out, strict=True))
    shape = (*node.input(0).shape, *node.output.shape[1:], *kernel)
    strides = (stride_h, stride_w, dilation_h, dilation_w)
    g = Geometry(*shape, *strides, a.pad_top, a.pad_left, node.input(0).type.zero_point)
    if not g.pointwise or a.pad_top or a.pad_left:
        return g
    pixels = math.prod(shape[:3])
    return Geometry(1, 1, pixels, g.in_c, 1, pixels, g.out_c, 1, 1, 1, 1, 1, 1, 0, 0, 0)


def summary(node: Node) -> str:
    attrs = attrs_of(node)
    sizes = ["x".join(map(str, s[1:])) for s in (node.input(0).shape, node.output.shape)]
    kernel = "x".join(map(str, node.input(1).shape[1:3]))
    return f"{sizes[0]} -> {sizes[1]}, kernel {kernel}, stride {attrs.stride_h}x{attrs.stride_w}"


def gemm_call(name: str, node: Node, g: Geometry, r: Rounding, taps_of_lane: int, lane_words: int) -> Call:
    """The call of a kernel whose lanes are (kernel row, [kernel column,] pair of channels), with `taps_of_lane` taps each."""
    pairs = lane_pairs(g.in_c)
    columns = [range(k, k + taps_of_lane) for k in range(0, g.kernel_w, taps_of_lane)]
    order = [
        tuple(-1 if c < 0 else (ky * g.kernel_w + kx) * g.in_c + c for c in pair)
        for ky in range(g.kernel_h)
        for group in columns
        for pair in pairs
        for kx in group
    ]
    taps = len(order)
    unroll = taps if taps <= STRAIGHT_TAPS else largest_divisor(taps, LOOP_TAPS, taps_of_lane)
    stream = gemm_stream(r, [(first, second) for first, second in order])
    constant = Constant("weights", stream.astype(np.int32), "bias, weights and rounding of two channels after another")
    body = (
        f"const tinyet_dsp_conv2d shape = {g.literal(unroll)};",
        f"const tinyet_dsp_rounding rounding = {r.literal};",
        f"{name}(input, output, scratch, weights, shape, rounding);",
    )
    lanes = taps // taps_of_lane
    return specialised_call(name, summary(node), [constant], body, scratch_bytes=4 * lanes * lane_words)


def refuse_common(node: Node) -> str | None:
    if attrs_of(node).groups != 1:
        return "only one group"
    return None


def refuse_rows(node: Node, target: Target) -> str | None:
    complaint = refuse_common(node)
    if complaint is not None:
        return complaint
    g = geometry(node)
    if g.stride_w > 1 and g.dilation_w > 1:
        return "no stride together with dilation"
    if g.out_w < 4:
        return f"rows of {g.out_w} output pixels, needs 4"
    computed = -(-g.out_w // 4) * 4
    if computed > MOST_OVERLAP * g.out_w:
        return f"would compute {computed} pixels for rows of {g.out_w}"
    if 4 * (g.kernel_w - 1) * g.dilation_w + 16 > 1020 or 4 * g.lane_words > 1020:
        return f"a kernel of {g.kernel_w} columns reaches too far"
    return None


def lower_rows(node: Node, target: Target) -> Call:
    g = geometry(node)
    r = rounding(node, attrs_of(node).clamp)
    return gemm_call("tinyet_dsp_conv2d_rows", node, g, r, g.kernel_w, g.lane_words)


def refuse_patches(node: Node, target: Target) -> str | None:
    complaint = refuse_common(node)
    if complaint is not None:
        return complaint
    g = geometry(node)
    pixels = g.out_h * g.out_w
    return f"{pixels} output pixels, needs 4" if pixels < 4 else None


def lower_patches(node: Node, target: Target) -> Call:
    g = geometry(node)
    return gemm_call("tinyet_dsp_conv2d_patches", node, g, rounding(node, attrs_of(node).clamp), 1, 4)


KERNELS = (
    Kernel("tinyet_dsp_conv2d_rows", "s8", lower_rows, HEADERS, (), refuse_rows, "cortex_m"),
    Kernel("tinyet_dsp_conv2d_patches", "s8", lower_patches, HEADERS, (), refuse_patches, "cortex_m"),
)
