# SPDX-License-Identifier: Apache-2.0
"""The convolution of one group whose code all layers share (tinyet_conv2d_packed_dsp.h): three pixels by two channels a
block, two weights in an int16."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d import Geometry, Stored, geometry, rounding_of, takes_pixel_stride, walk
from tinyet.delegates.cortex_m.packing import NONE, lane_pairs, pack_int16x2, words
from tinyet.delegates.cortex_m.rounding import LIMIT, Form, Rounding
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import of_input
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.integers import sum_range
from tinyet.opset import (
    DENSE,
    AccessOrder,
    Call,
    Constant,
    Kernel,
    Layouts,
    LayoutSupport,
    Pointer,
    Struct,
    library_call,
)
from tinyet.tiles import shared, shared_rows

SYMBOL = "tinyet_conv2d_s8_packed_3x2_dsp"
HEADERS = ("tinyet_dsp.h", "tinyet_conv2d_dsp.h", "tinyet_tile_dsp.h", "tinyet_conv2d_packed_dsp.h")
SOURCES = (f"{SYMBOL}.c", f"{shared.NAME}.c", f"{shared_rows.NAME}.c")


def even_order(g: Geometry) -> list[tuple[int, int]]:
    """Two columns of the weights for each pair of input values, an even number of pairs."""
    row = g.kernel_w * g.in_c
    order = [
        (start + first, start + second if second != NONE else NONE)
        for start in range(0, g.kernel_h * row, row)
        for first, second in lane_pairs(row)
    ]
    return order + [(NONE, NONE)] * (len(order) % 2)


def channel_pairs(count: int) -> Int64:
    """(pairs, 2) channels; the last pair overlaps the one before where the count is odd."""
    first = np.minimum(np.arange(0, count, 2), count - 2)
    return np.stack([first, first + 1], axis=1).astype(np.int64)


def stated(r: Rounding, zero_point: int) -> Rounding:
    """The same with channels of one fixed output as all others are: by a bias, a factor and the common offset."""
    fixed = r.multiplier == 0
    value = (r.offset >> (r.exponent if r.form is Form.ONE_SIDED else r.shift)) - zero_point
    # A quarter, or by as many bits more as one-sided rounding needs for its shift; multipliers are halves.
    right = max(r.exponent - 7, 1) if r.form is Form.ONE_SIDED else 1
    shift = 1 + r.exponent - right if r.form is Form.ONE_SIDED else right
    return replace(
        r,
        bias=np.where(fixed, value << (right + 1), r.bias),
        multiplier=np.where(fixed, 2**30, r.multiplier),
        shift=np.where(fixed, shift, r.shift),
    )


def chosen_rounding(node: Node) -> Rounding:
    """With weights shifted by up to 8, as those of channel b are."""
    r = rounding_of(node, Stored.INT16)
    return r if r.form is Form.PLAIN else stated(r, node.output.type.zero_point)


def taps(r: Rounding, g: Geometry) -> Int64:
    """(pairs of channels, pairs of inputs, 2): 256 * b + a for both inputs of a pair; may leave int16."""
    columns = np.pad(r.weights, ((0, 0), (0, 1)))  # NONE is the last one
    a, b = channel_pairs(g.out_c).T
    return np.asarray((columns[a] + 256 * columns[b])[:, np.array(even_order(g))], np.int64)


def refuse(node: Node, target: Target) -> str | None:
    if attrs_of(node).groups != 1:
        return "only one group"
    g = geometry(node)
    pixels = g.out_h * g.out_w
    if pixels < 3:
        return f"{pixels} output pixels, needs 3"
    if g.out_c < 2:
        return "1 output channel, needs 2"
    r = chosen_rounding(node)
    if r.form is Form.PLAIN:
        return "a factor of one half and more, or sums too large for its rounding"
    bound = int(max(np.abs(end).max(initial=0) for end in sum_range(r.weights, r.bias)))
    if 256 * bound >= LIMIT:
        return f"256 times a sum of up to {bound} leaves int32"
    if int(taps(r, g).min()) < -(2**15):
        return "a weight of -128 beside a negative one of the channel before"
    return None


def stream(r: Rounding, g: Geometry) -> Int64:
    """The stream of tinyet_conv2d_packed_dsp.h, (words,)."""
    pairs = channel_pairs(g.out_c)
    bias, multiplier, shift = (values[pairs] for values in (r.bias, r.multiplier, r.shift))
    bias = bias + np.stack([np.zeros(len(pairs), np.int64), 255 * bias[:, 1] + bias[:, 0]], axis=1)
    both = taps(r, g)
    a, b = shift.T
    ends = a | b << 8
    if r.form is Form.ONE_SIDED:
        one_a, one_b = 1 << (a - 2), 1 << (b - 2)
        ends = a | (8 - b) << 8 | one_a << 16 | ((one_b - one_a) & 0xFF) << 24
    body = [bias, pack_int16x2(both[..., 0], both[..., 1]), multiplier, ends[:, None]]
    return words(np.concatenate(body, axis=1).ravel())


def lower(node: Node, target: Target, layouts: Layouts = DENSE) -> Call:
    g, r = geometry(node, layouts), chosen_rounding(node)
    zero_point = node.output.type.zero_point
    one_sided = (1 << (r.exponent - 1)) + (zero_point << r.exponent) if r.exponent else 0
    names = [name for name in g.__dataclass_fields__ if name != "zero_point"]
    fields = {
        **{name: getattr(g, name) for name in names},
        "in_zero_point": g.zero_point,
        "exponent": r.exponent,
        "offset": one_sided if r.form is Form.ONE_SIDED else 2 * zero_point + 1,
        "clamp_low": r.low,
        "clamp_high": r.high,
        "weights": Pointer("weights"),
    }
    data = stream(r, g).astype(np.int32)
    constant = Constant("weights", data, "bias, weights and rounding of two channels after another")
    scratch = 12 * len(even_order(g)) + (g.kernel_w * g.in_c // 4 + 1) * 4
    return library_call(SYMBOL, node, [0], Struct(f"{SYMBOL}_params", fields), [constant], scratch)


@of_input
def by_threes(node: Node) -> AccessOrder:
    """Three pixels at a time, whose inputs are widened before they are written."""
    return walk(node).by_pixels(3, moved_back=True, gathered=True)


KERNELS = (
    Kernel(
        SYMBOL,
        "s8",
        lower,
        HEADERS,
        SOURCES,
        refuse,
        "cortex_m",
        layout_support=LayoutSupport(lower, takes_pixel_stride),
        access_order=by_threes,
    ),
)
