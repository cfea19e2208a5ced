# SPDX-License-Identifier: Apache-2.0
"""Pointwise convolutions of few input channels, with int16 weights, one pixel at a time, by a printed function
(tinyet_conv2d_k8_dsp.h)."""

from __future__ import annotations

from dataclasses import replace

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
from tinyet.tiles.few_channels import LARGEST_ADDED, MOST_CHANNELS, Few, files

SYMBOL = "tinyet_conv2d_1x1_s8_w16_k8_dsp"
HEADERS = (
    "tinyet_dsp.h",
    "tinyet_conv2d_dsp.h",
    "tinyet_tile_dsp.h",
    "tinyet_conv2d_tiles_dsp.h",
    "tinyet_conv2d_k8_dsp.h",
)

LOOP_CHANNELS = 16
"""Output channels of a turn, at most."""


def few_of(g: Geometry, r: Rounding) -> Few:
    """The function of a layer."""
    exponent = r.exponent if r.form is Form.ONE_SIDED else None
    return Few(g.in_c, g.out_c, largest_divisor(g.out_c, LOOP_CHANNELS), exponent)


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
    if g.out_c > LARGEST_ADDED:
        return f"{g.out_c} output channels, takes up to {LARGEST_ADDED}"
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
    few, count = few_of(g, r), g.out_w * g.out_c
    body = (
        f"const tinyet_conv2d_shape_dsp shape = {g.literal};",
        f"const tinyet_rounding_dsp rounding = {r.literal};",
        f"{few.name}(input, weights, output, output + {count});",
        f"tinyet_clamp_pixels_dsp(output + {count}, shape, rounding);",
    )
    constant = Constant(
        "weights", stream(r, g).astype(np.int32), "bias, weights and rounding of each channel"
    )
    call = specialised_call(SYMBOL, summary(node), [constant], body)
    return replace(call, files=files(few))


@of_input
def by_ones(node: Node) -> AccessOrder:
    """A pixel is in registers before it is written."""
    return pixel_walk(node).by_pixels(gathered=True)


KERNELS = (Kernel(SYMBOL, "s8", lower, HEADERS, (), refuse, "cortex_m", access_order=by_ones),)
