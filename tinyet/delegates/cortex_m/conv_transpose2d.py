# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions of one group, phase by phase as ordinary ones (tinyet_conv_transpose2d_dsp.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d
from tinyet.delegates.cortex_m.packing import gemm_stream
from tinyet.delegates.cortex_m.rounding import Rounding, choose
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.ir.memoize import memoize
from tinyet.numerics import Int64, clamp_range
from tinyet.ops import conv_transpose2d
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.weighted import int_bias
from tinyet.opset import DENSE, Call, Constant, Kernel, Layouts, LayoutSupport, only_strides

SYMBOL = "tinyet_conv_transpose2d_s8_polyphase_4x2_dsp"
HEADERS = ("tinyet_dsp.h", "tinyet_conv2d_dsp.h", "tinyet_conv_transpose2d_dsp.h")


@dataclass(frozen=True)
class Phases:
    """stride: phases of rows and of columns. taps: rows and columns of a phase's kernel. one: the convolution that a
    phase is, with the whole output's size."""

    stride: tuple[int, int]
    taps: tuple[int, int]
    one: conv2d.Geometry


def phases_of(node: Node, layouts: Layouts = DENSE) -> Phases:
    a = conv_transpose2d.attrs_of(node)
    kernel_h, kernel_w = node.input(1).shape[1:3]
    taps = -(-kernel_h // a.stride_h), -(-kernel_w // a.stride_w)
    batch, in_h, in_w, in_c = node.input(0).shape
    _, out_h, out_w, out_c = node.output.shape
    zero_point = node.input(0).type.zero_point
    one = conv2d.Geometry(
        *(batch, in_h, in_w, in_c, out_h, out_w, out_c, *taps, 1, 1, 1, 1, 0, 0),
        in_pixel_stride=layouts.input or in_c,
        out_pixel_stride=layouts.output or out_c,
        zero_point=zero_point,
    )
    return Phases((a.stride_h, a.stride_w), taps, one)


def phase_weights(node: Node) -> Int64:
    """The kernel of each phase as an ordinary convolution has it, with zeros for taps that a phase has not: int64
    (stride_h * stride_w, out_c, taps_h, taps_w, in_c)."""
    a, p = conv_transpose2d.attrs_of(node), phases_of(node)
    weights = node.input(1).array.astype(np.int64)
    out_c, kernel_h, kernel_w, in_c = weights.shape
    found = np.zeros((*p.stride, out_c, *p.taps, in_c), np.int64)
    for ky in range(kernel_h):
        for kx in range(kernel_w):
            # Output row r reads tap ky where r + pad - ky is a multiple of the stride; later taps read earlier rows.
            phase = (ky - a.pad_top) % a.stride_h, (kx - a.pad_left) % a.stride_w
            row, column = p.taps[0] - 1 - ky // a.stride_h, p.taps[1] - 1 - kx // a.stride_w
            found[phase][:, row, column] = weights[:, ky, kx]
    return found.reshape(-1, *found.shape[2:])


@memoize
def rounding(node: Node) -> Rounding:
    """Of all phases; the channels of one after those of another."""
    weights = phase_weights(node)
    count = len(weights)
    matrix = weights.reshape(count * weights.shape[1], -1)
    bias = np.tile(int_bias(node), count) - node.input(0).type.zero_point * matrix.sum(axis=1)
    multiplier, shift = (np.tile(v, count) for v in output_factors(node))
    out = node.output.type
    clamp = clamp_range(conv_transpose2d.attrs_of(node).clamp, out)
    return choose(matrix, np.asarray(bias, np.int64), multiplier, shift, out.zero_point, clamp)


def refuse(node: Node, target: Target) -> str | None:
    a, width = conv_transpose2d.attrs_of(node), node.output.shape[2]
    if a.groups != 1:
        return "only one group"
    if (a.dilation_h, a.dilation_w) != (1, 1):
        return "no dilation"
    if width < 4 * a.stride_w:
        return f"rows of {width} output pixels, needs {4 * a.stride_w}"
    one = phases_of(node).one
    too_far = 4 * one.lane_words > conv2d.LARGEST_OFFSET
    return f"a kernel of {node.input(1).shape[2]} columns reaches too far" if too_far else None


def lower(node: Node, target: Target, layouts: Layouts = DENSE) -> Call:
    a, p, r = conv_transpose2d.attrs_of(node), phases_of(node, layouts), rounding(node)
    g, order = p.one, conv2d.rows_order(p.one)
    of_phases = [
        replace(
            r,
            **{
                name: getattr(r, name)[start : start + g.out_c]
                for name in ("weights", "bias", "multiplier", "offset", "shift")
            },
        )
        for start in range(0, len(r.bias), g.out_c)
    ]
    stream = np.concatenate([gemm_stream(phase, order) for phase in of_phases]).astype(np.int32)
    constant = Constant("weights", stream, "phase by phase: bias, weights and rounding of two channels")
    unroll = conv2d.unroll_of(len(order), g.kernel_w)
    body = (
        (
            f"const tinyet_conv_transpose2d_shape_dsp shape = {{{g.batch}, /* in */ {g.in_h}, {g.in_w}, {g.in_c}, "
            f"/* out */ {g.out_h}, {g.out_w}, {g.out_c},"
        ),
        (
            f"    /* taps of a phase */ {p.taps[0]}, {p.taps[1]}, /* stride */ {a.stride_h}, {a.stride_w}, "
            f"/* pad */ {a.pad_top}, {a.pad_left}, /* pixel stride */ {g.in_pixel_stride}, {g.out_pixel_stride}, "
            f"/* zero point */ {g.zero_point}, /* unroll */ {unroll}}};"
        ),
        f"const tinyet_rounding_dsp rounding = {r.literal};",
        f"{SYMBOL}(input, output, scratch, weights, shape, rounding);",
    )
    sizes = ["x".join(map(str, t.shape[1:])) for t in (node.input(0), node.output)]
    kernel = "x".join(map(str, node.input(1).shape[1:3]))
    text = f"{sizes[0]} -> {sizes[1]}, transposed, kernel {kernel}, stride {a.stride_h}x{a.stride_w}"
    scratch = 4 * len(order) // g.kernel_w * g.lane_words
    return specialised_call(SYMBOL, text, [constant], body, scratch_bytes=scratch)


KERNELS = (
    Kernel(
        SYMBOL,
        "s8",
        lower,
        HEADERS,
        (),
        refuse,
        "cortex_m",
        layout_support=LayoutSupport(lower, only_strides),
    ),
)
