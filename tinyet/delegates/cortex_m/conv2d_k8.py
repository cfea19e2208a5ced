# SPDX-License-Identifier: Apache-2.0
"""Pointwise convolutions of few input channels, with int16 weights, one pixel at a time (tinyet_conv2d_k8_dsp.h)."""

from __future__ import annotations

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d import Geometry, Stored, geometry, rounding_of
from tinyet.delegates.cortex_m.packing import lane_pairs, pack_int16x2, words
from tinyet.delegates.cortex_m.rounding import Form, Rounding
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import largest_divisor, specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import of_input, pixel_walk
from tinyet.ops.shared.convolution import attrs_of
from tinyet.opset import AccessOrder, Call, Constant, Kernel

SYMBOL = "tinyet_conv2d_1x1_s8_w16_k8_dsp"
HEADERS = ("tinyet_dsp.h", "tinyet_conv2d_dsp.h", "tinyet_conv2d_k8_dsp.h")

MOST_CHANNELS = 8
"""Of the input: all that registers hold."""
LOOP_CHANNELS = 16
"""Output channels of a turn, at most."""
LARGEST_IMMEDIATE = 4095  # of ADDW


def unroll_of(g: Geometry) -> int:
    return largest_divisor(g.out_c, LOOP_CHANNELS)


def refuse(node: Node, target: Target) -> str | None:
    if attrs_of(node).groups != 1:
        return "only one group"
    g = geometry(node)
    if not (g.pointwise and g.inside):
        return "only pointwise ones without stride and padding"
    if g.out_w < 4:
        return f"{g.out_w} output pixels, needs 4"
    if g.in_c > MOST_CHANNELS:
        return f"{g.in_c} input channels, takes up to {MOST_CHANNELS}"
    if g.out_c > LARGEST_IMMEDIATE:
        return f"{g.out_c} output channels, takes up to {LARGEST_IMMEDIATE}"
    if rounding_of(node, Stored.INT16).form is Form.PLAIN:
        return "a factor of one half and more, or sums too large for its rounding"
    return None


def stream(r: Rounding, g: Geometry) -> Int64:
    """The stream of tinyet_conv2d_k8_dsp.h, (words,)."""
    columns = np.pad(r.weights << r.before[:, None], ((0, 0), (0, 1)))  # NONE is the last one
    low, high = np.array(lane_pairs(g.in_c)).T
    ends = [r.multiplier, r.offset] + ([] if r.form is Form.ONE_SIDED else [r.shift])
    parts = [
        (r.bias << r.before)[:, None],
        pack_int16x2(columns[:, low], columns[:, high]),
        np.stack(ends, axis=1),
    ]
    return words(np.concatenate(parts, axis=1).ravel())


def lower(node: Node, target: Target) -> Call:
    g, r = geometry(node), rounding_of(node, Stored.INT16)
    body = (
        f"const tinyet_conv2d_shape_dsp shape = {g.literal(unroll_of(g))};",
        f"const tinyet_rounding_dsp rounding = {r.literal};",
        f"{SYMBOL}(input, output, weights, shape, rounding);",
    )
    constant = Constant(
        "weights", stream(r, g).astype(np.int32), "bias, weights and rounding of each channel"
    )
    return specialised_call(SYMBOL, summary(node), [constant], body)


@of_input
def by_ones(node: Node) -> AccessOrder:
    """A pixel is in registers before it is written."""
    return pixel_walk(node).by_pixels(gathered=True)


KERNELS = (Kernel(SYMBOL, "s8", lower, HEADERS, (), refuse, "cortex_m", access_order=by_ones),)
