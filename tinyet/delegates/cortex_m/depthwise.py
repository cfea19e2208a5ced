# SPDX-License-Identifier: Apache-2.0
"""Depthwise 3x3 convolutions on planes of int16 (tinyet_dsp_depthwise.h)."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.packing import join_bytes, words
from tinyet.delegates.cortex_m.rounding import Rounding, rounding
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.convolution import attrs_of
from tinyet.opset import Call, Constant, Kernel

HEADERS = ("tinyet_dsp.h", "tinyet_dsp_depthwise.h")

# Bytes of scratch up to which more output rows are made of one filling of the planes.
SCRATCH = 1000
# int8 weights shifted further than this leave int16.
MOST_BEFORE = 8
LARGEST_OFFSET = 1020  # of LDRD, in bytes


@dataclass(frozen=True)
class Axis:
    """One axis of the image: sizes in pixels, steps in bytes."""

    size: int
    step: int
    out: int
    out_step: int
    stride: int
    dilation: int
    pad: int


@dataclass(frozen=True)
class Geometry:
    """u: the axis that is contiguous in a plane."""

    u: Axis
    v: Axis
    transposed: bool

    @property
    def row_words(self) -> int:
        return (self.u.out + 1) // 2 + 1 if self.u.stride == 1 else self.u.out + 1

    def strip_rows(self, strip: int) -> int:
        return (strip - 1) * self.v.stride + 2 * self.v.dilation + 1

    def scratch(self, strip: int) -> int:
        return 8 * self.strip_rows(strip) * self.row_words

    @property
    def strip(self) -> int:
        """Output rows at a time: all, or as many as SCRATCH allows, evenly."""
        most = max((n for n in range(1, self.v.out + 1) if self.scratch(n) <= SCRATCH), default=1)
        return -(-self.v.out // -(-self.v.out // most))

    @property
    def instructions(self) -> int:
        """Of one channel, roughly: what decides between the axes."""
        row = 12 + (23 if self.u.stride == 1 else 26) * (self.u.out // 2) + 18 * (self.u.out % 2)
        strips = -(-self.v.out // self.strip)
        return row * self.v.out + 2 * self.row_words * (self.v.size + 2 * (strips - 1)) + 60 * strips

    def refuse(self) -> str | None:
        if self.u.dilation != 1 or self.u.stride > 2:
            return "needs dilation 1 and stride 1 or 2 along one axis"
        if self.u.pad > 2:
            return f"a padding of {self.u.pad} before the image"
        if 8 * self.v.dilation * self.row_words > LARGEST_OFFSET or self.u.out_step * 2 > 4095:
            return "rows are too long"
        return None


def geometries(node: Node) -> list[Geometry]:
    """u along the width, and u along the height."""
    a = attrs_of(node)
    _, in_h, in_w, channels = node.input(0).shape
    _, out_h, out_w, _ = node.output.shape
    dilation_h, dilation_w = a.dilation_h, a.dilation_w
    stride_h, stride_w = (s if o > 1 else 1 for s, o in ((a.stride_h, out_h), (a.stride_w, out_w)))
    width = Axis(in_w, channels, out_w, channels, stride_w, dilation_w, a.pad_left)
    height = Axis(in_h, in_w * channels, out_h, out_w * channels, stride_h, dilation_h, a.pad_top)
    return [Geometry(width, height, False), Geometry(height, width, True)]


def refuse(node: Node, target: Target) -> str | None:
    channels = node.input(0).shape[3]
    if attrs_of(node).groups != channels or node.input(1).shape[0] != channels:
        return "only one channel in and out a group"
    if node.input(1).shape[1:3] != (3, 3):
        return "only 3x3 kernels"
    if channels < 2:
        return "a single channel"
    reasons = [g.refuse() for g in geometries(node)]
    return reasons[0] if all(reasons) else None


def cheapest(node: Node) -> Geometry:
    """Of the orientations that the kernel takes, for a node that was not refused."""
    return min((g for g in geometries(node) if g.refuse() is None), key=lambda g: g.instructions)


def stream(r: Rounding, transposed: bool) -> Int64:
    """The stream of tinyet_dsp_depthwise.h, (words,)."""
    kernel = r.weights.reshape(-1, 3, 3)
    if transposed:
        kernel = kernel.transpose(0, 2, 1)
    rows = join_bytes(kernel[:, :, [0, 1, 1, 2]])
    rest = np.stack([r.bias << r.before, r.multiplier, r.offset, r.shift], axis=1)
    return words(np.concatenate([rows, rest], axis=1).ravel())


def lower(node: Node, target: Target) -> Call:
    g = cheapest(node)
    r = rounding(node, attrs_of(node).clamp, MOST_BEFORE)
    batch, _, _, channels = node.input(0).shape
    iu, isu, ou, osu, su, _, pu = astuple(g.u)
    iv, isv, ov, osv, sv, dv, pv = astuple(g.v)
    shape = (
        f"{{{batch}, {channels}, /* in */ {iu}, {iv}, {isu}, {isv}, /* out */ {ou}, {ov}, {osu}, {osv},\n"
        f"      /* stride */ {su}, {sv}, /* dilation */ {dv}, /* pad */ {pu}, {pv}, "
        f"/* zero point */ {node.input(0).type.zero_point}, /* strip */ {g.strip}}}"
    )
    body = (
        f"const tinyet_dsp_depthwise shape = {shape};",
        f"const tinyet_dsp_rounding rounding = {r.literal};",
        "tinyet_dsp_depthwise_3x3(input, output, scratch, weights, shape, rounding);",
    )
    constant = Constant(
        "weights", stream(r, g.transposed).astype(np.int32), "weights, bias and rounding of each channel"
    )
    name = "tinyet_dsp_depthwise_3x3"
    return specialised_call(name, summary(node), [constant], body, scratch_bytes=g.scratch(g.strip))


KERNELS = (Kernel("tinyet_dsp_depthwise_3x3", "s8", lower, HEADERS, (), refuse, "cortex_m"),)
