# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one group with int16 weights, two pixels by two channels a block (tinyet_conv2d_2x2_dsp.h)."""

from __future__ import annotations

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d import Geometry, Stored, geometry, rounding_of, takes_pixel_stride, walk
from tinyet.delegates.cortex_m.conv2d_s8 import channel_pairs
from tinyet.delegates.cortex_m.int16x2 import NHW2C2
from tinyet.delegates.cortex_m.packing import NONE, lane_pairs, pack_int16x2, words
from tinyet.delegates.cortex_m.rounding import Form, Rounding
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import largest_divisor, specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import of_input
from tinyet.ops.shared.convolution import attrs_of
from tinyet.opset import DENSE, AccessOrder, Call, Constant, Kernel, Layouts, LayoutSupport

SYMBOL = "tinyet_conv2d_s8_w16_im2col_2x2_dsp"
PAIRS = "tinyet_conv2d_s8_w16_nhw2c2_2x2_dsp"
HEADERS = ("tinyet_dsp.h", "tinyet_conv2d_dsp.h", "tinyet_conv2d_2x2_dsp.h")

# Steps of straight code in the multiply loop, of two pairs of input values and 40 bytes: all of them when they are this
# few, else up to so many a turn.
STRAIGHT_STEPS, LOOP_STEPS = 28, 12
TOGETHER_STEPS = 8
"""Up to so many steps of straight code there are four channels in a turn (TINYET_DSP_TOGETHER)."""
LARGEST_OFFSET = 4092  # of STRB, less three


def order_of(g: Geometry) -> list[tuple[int, int]]:
    """Two columns of the weights for each pair of input values, an even number of pairs.

    The last of an odd number of neighbours is paired with that of the next kernel row, or tap.
    """
    order: list[tuple[int, int]] = []
    waiting = NONE
    for start in range(0, g.kernel_h * g.kernel_w * g.in_c, g.together):
        pairs = lane_pairs(g.together)
        order += [(start + first, start + second) for first, second in pairs if second != NONE]
        if pairs[-1][1] == NONE:
            last = start + g.together - 1
            if waiting != NONE:
                order.append((waiting, last))
            waiting = last if waiting == NONE else NONE
    if waiting != NONE:
        order.append((waiting, NONE))
    return order + [(NONE, NONE)] * (len(order) % 2)


def unroll_of(g: Geometry) -> int:
    steps = len(order_of(g)) // 2
    return steps if steps <= STRAIGHT_STEPS else largest_divisor(steps, LOOP_STEPS)


def together(g: Geometry) -> int:
    """Pairs of channels of a turn, for two pixels."""
    steps = len(order_of(g)) // 2
    return 2 if unroll_of(g) == steps <= TOGETHER_STEPS and (g.out_c & ~1) % 4 == 0 else 1


def refuse(node: Node, target: Target) -> str | None:
    if attrs_of(node).groups != 1:
        return "only one group"
    g = geometry(node)
    pixels = g.out_h * g.out_w
    if pixels < 2:
        return "1 output pixel, needs 2"
    if not 2 <= g.out_c <= LARGEST_OFFSET:
        return f"{g.out_c} output channels, takes 2 to {LARGEST_OFFSET}"
    if rounding_of(node, Stored.INT16).form is Form.PLAIN:
        return "a factor of one half and more, or sums too large for its rounding"
    return None


def stream(r: Rounding, g: Geometry) -> Int64:
    """The stream of tinyet_conv2d_2x2_dsp.h, (words,)."""
    pairs = channel_pairs(g.out_c)
    columns = np.pad(r.weights << r.before[:, None], ((0, 0), (0, 1)))[pairs]  # NONE is the last one
    low, high = np.array(order_of(g)).T
    # (pairs of channels, pairs of inputs, channel of the pair)
    body = pack_int16x2(columns[..., low], columns[..., high]).transpose(0, 2, 1)
    ends = [r.multiplier, r.offset] + ([] if r.form is Form.ONE_SIDED else [r.shift])
    bias, *tail = (values[pairs] for values in (r.bias << r.before, *ends))
    return words(np.concatenate([bias, body.reshape(len(body), -1), *tail], axis=1).ravel())


def lower(node: Node, target: Target, layouts: Layouts = DENSE) -> Call:
    g, r = geometry(node, layouts), rounding_of(node, Stored.INT16)
    body = (
        f"const tinyet_conv2d_shape_dsp shape = {g.literal(unroll_of(g))};",
        f"const tinyet_rounding_dsp rounding = {r.literal};",
        f"{SYMBOL}(input, output, scratch, weights, shape, rounding);",
    )
    data = stream(r, g).astype(np.int32)
    constant = Constant("weights", data, "bias, weights and rounding of two channels after another")
    if layouts.reads is NHW2C2:
        paired = (*body[:2], f"{PAIRS}(input, output, weights, shape, rounding);")
        return specialised_call(PAIRS, summary(node), [constant], paired)
    scratch = 8 * len(order_of(g)) + (0 if g.inside else 3 * -(-g.together // 4) * 4)
    return specialised_call(SYMBOL, summary(node), [constant], body, scratch_bytes=scratch)


def takes(node: Node, layouts: Layouts) -> bool:
    if layouts.writes is not None:
        return False
    if layouts.reads is NHW2C2:
        g = geometry(node)
        return g.pointwise and g.inside
    return takes_pixel_stride(node, layouts) and layouts.output <= LARGEST_OFFSET


@of_input
def by_twos(node: Node) -> AccessOrder:
    """Two pixels at a time, whose inputs are widened before they are written."""
    return walk(node).by_pixels(2, gathered=True)


KERNELS = (
    Kernel(
        SYMBOL,
        "s8",
        lower,
        HEADERS,
        (),
        refuse,
        "cortex_m",
        layout_support=LayoutSupport(lower, takes, (NHW2C2,)),
        access_order=by_twos,
    ),
)
