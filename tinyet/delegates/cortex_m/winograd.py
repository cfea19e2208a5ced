# SPDX-License-Identifier: Apache-2.0
"""3x3 convolutions of stride 1 by Winograd's F(2x2, 3x3) and F(4x4, 3x3), exact in integers (tinyet_winograd_dsp.h).

docs/winograd.md has the proof; what it asks of a layer is checked here, in `refuse`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d import Geometry, geometry
from tinyet.delegates.cortex_m.packing import join_bytes, lane_pairs, pack_int16x2, padded_channels, words
from tinyet.delegates.cortex_m.rounding import LIMIT, Form, Rounding, rounding
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import largest_divisor, specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.integers import sum_range
from tinyet.ops.shared.winograd import (
    F2,
    F4,
    Transform,
    by_tiles,
    parts_of,
    refuse_shape,
    transformed_weights,
)
from tinyet.opset import (
    DENSE,
    Call,
    Constant,
    Kernel,
    Layouts,
    LayoutSupport,
    only_strides,
)
from tinyet.opset.cost import cycles_of
from tinyet.tiles.core import page_of
from tinyet.tiles.products import Products, files

HEADERS = ("tinyet_dsp.h", "tinyet_tile_dsp.h", "tinyet_winograd_dsp.h")

LARGEST_STEP = 4095  # that ADDW adds, in bytes
MOST_TOGETHER = 16  # pairs of straight code of several positions
MOST_POSITIONS = 4  # of a turn
MOST_BEFORE = 6  # int8 weights, transformed by F(2x2) and shifted further than this less 2, leave int16


def symbol_of(transform: Transform) -> str:
    return f"tinyet_conv2d_s8_w16_winograd_f{transform.tile}x{transform.tile}_dsp"


def transformed_range(transform: Transform) -> tuple[Int64, Int64]:
    """The smallest and the largest transformed input of each position, (positions,), as the kernel has it without its
    lift: of int8 for 2x2, of these plus 128 for 4x4."""
    both = np.einsum("pi,qj->pqij", transform.inputs, transform.inputs).reshape(transform.positions, -1)
    return sum_range(both, np.zeros(len(both), np.int64), (-128, 127) if transform.tile == 2 else (0, 255))


def exact(transform: Transform, weights: Int64, r: Rounding) -> str | None:
    """Why a layer's sums might not be exact, or None, which is the proof that they are, for every input.

    weights: as the kernel has them. Halves of words must hold what is in them; sums are exact modulo 2**32 whatever
    happens on the way, so the last one is all that must fit: 2**power times the layer's, or, before a one-sided
    rounding, what `rounding` has checked.
    """
    low, high = transformed_range(transform)
    if int(low.min()) < -(2**15) or int(high.max()) + transform.lift >= 2**15:
        return "transformed inputs leave int16"
    if transform.lift and int(low.min()) + transform.lift < 0:
        return "the lower half of transformed inputs is negative"
    if int(weights.min(initial=0)) < -(2**15) or int(weights.max(initial=0)) >= 2**15:
        return "transformed weights leave int16"
    bound = int(max(np.abs(end).max(initial=0) for end in sum_range(r.weights, r.bias)))
    if bound << transform.power >= LIMIT:
        return f"{2**transform.power} times a sum of up to {bound} leaves int32"
    return None


def chosen_rounding(transform: Transform, node: Node) -> Rounding:
    """One-sided where the shift that it has before its multiplication is at least that of the sums, which are too large
    by that; what is beyond goes into the factors, or else into the weights, where there is not always room."""
    most = {} if transform.odd > 1 else {"most_before": MOST_BEFORE}
    return rounding(node, attrs_of(node).clamp, least_before=transform.power, **most)


def beyond(transform: Transform, r: Rounding) -> Int64:
    """The shift of each channel, (out_c,), that its sums need beyond that of the transform."""
    return r.shift - transform.power if r.form is Form.ONE_SIDED else np.zeros_like(r.shift)


def weights_of(transform: Transform, node: Node, r: Rounding) -> Int64:
    """(out_c, positions, in_c): transformed, of the weights that the rounding leaves."""
    found = transformed_weights(transform, r.weights.reshape(node.input(1).shape))
    return found if transform.odd > 1 else found << beyond(transform, r)[:, None, None]


def refuse(transform: Transform, node: Node, target: Target) -> str | None:
    reason = refuse_shape(transform, node)
    if reason is not None:
        return reason
    g = geometry(node)
    if step_bytes(pairs_of(g)) > LARGEST_STEP:
        return f"{g.in_c} input channels are too many"
    r = chosen_rounding(transform, node)
    return exact(transform, weights_of(transform, node, r), r)


def pairs_of(g: Geometry) -> int:
    """Pairs of input channels."""
    return -(-g.in_c // 4) * 2


def step_bytes(pairs: int) -> int:
    """Between two positions in scratch: transformed tiles, and sums."""
    return 16 * pairs + 32


def scratch_bytes(transform: Transform, g: Geometry) -> int:
    # And four channels of a tile, as they are, and with their columns transformed.
    return transform.positions * (step_bytes(pairs_of(g)) + 4 + 8)


def starts(transform: Transform, weights: Int64, r: Rounding) -> Int64:
    """Initial values of the sums at each position, (out_c, positions).

    The bias is at position (1, 1), which is in every output once. What is added to inputs is taken away: the lift of
    lower halves, and the 128 that make int8 unsigned.
    """
    side = transform.tile + 2
    found = -transform.lift * weights[..., [low for low, _ in lane_pairs(weights.shape[2])]].sum(axis=2)
    if transform.tile == 4:
        ones = transform.inputs.sum(axis=1)
        found -= 128 * np.outer(ones, ones).ravel() * weights.sum(axis=2)
    shift = transform.power + (0 if transform.odd > 1 else beyond(transform, r))
    found[:, side + 1] += r.bias * transform.odd << shift
    return np.asarray(found, np.int64)


def stream(transform: Transform, node: Node, r: Rounding) -> Int64:
    """The stream of tinyet_winograd_dsp.h, (words,)."""
    depth = node.input(1).shape[3]
    weights = weights_of(transform, node, r)
    weights = np.pad(weights, ((0, 0), (0, 0), (0, -depth % 4)))
    start = padded_channels(starts(transform, weights, r), 2)
    weights = padded_channels(weights, 2)
    low, high = (weights[..., list(columns)] for columns in zip(*lane_pairs(weights.shape[2]), strict=True))
    # (pairs of channels, positions, 1 + pairs of inputs, channel of the pair)
    body = np.concatenate([start[..., None], pack_int16x2(low, high)], axis=2)
    body = body.reshape(-1, 2, *body.shape[1:]).transpose(0, 2, 3, 1)
    factors = [transform.inverse << beyond(transform, r)] if transform.odd > 1 else []
    ends = [*factors, r.multiplier, r.offset, r.shift]
    tail = [padded_channels(end, 2).reshape(-1, 2) for end in ends]
    return words(np.concatenate([body.reshape(len(body), -1), *tail], axis=1).ravel())


def narrow_stream(transform: Transform, node: Node, r: Rounding) -> Int64:
    """The stream with int8 weights of tinyet_conv2d_s8_winograd_f2x2_dsp, or of f4x4, (words,)."""
    weights = r.weights.reshape(node.input(1).shape)
    weights = padded_channels(np.pad(weights, ((0, 0), (0, 0), (0, 0), (0, -weights.shape[3] % 4))), 2)
    # The kernel takes the lift away; what else there is is at position (1, 1).
    start = starts(replace(transform, lift=0), weights_of(transform, node, r), r)[:, transform.tile + 3]
    low, high = (weights[..., list(columns)] for columns in zip(*lane_pairs(weights.shape[3]), strict=True))
    # (pairs of channels, channel of the pair, taps, pairs of inputs, input of the pair)
    both = np.stack([low, high], axis=-1).reshape(-1, 2, 9, low.shape[3], 2)
    body = join_bytes(both.transpose(0, 3, 2, 4, 1).reshape(*both.shape[:1], both.shape[3], 9, 4))
    # A channel that is there for its partner alone has a shift that a shift can be.
    shift = np.pad(r.shift, (0, len(r.shift) % 2), mode="edge")
    factors = [transform.inverse << beyond(transform, r)] if transform.odd > 1 else []
    head = [padded_channels(v, 2).reshape(-1, 2) for v in (start, *factors, r.multiplier, r.offset, shift)]
    return words(np.concatenate([*head, body.reshape(len(body), -1)], axis=1).ravel())


def words_of_products(transform: Transform, g: Geometry) -> int:
    """Of transformed weights of two output channels, and of what sums begin with."""
    return transform.positions * (2 + 2 * pairs_of(g))


def pair_bytes(transform: Transform, g: Geometry) -> int:
    """Of the stream of the transformed weights, and what goes with them, of two output channels."""
    return 4 * (words_of_products(transform, g) + (8 if transform.odd > 1 else 6))


def stream_bytes(g: Geometry) -> int:
    """Of the transformed weights of F(2x2)."""
    return -(-g.out_c // 2) * pair_bytes(F2, g)


def keeps_tiles(g: Geometry) -> bool:
    """Whether all tiles of F(4x4) are four, which are in scratch from one part of the output channels to the next."""
    return g.batch == 1 and -(-g.out_h // 4) * -(-g.out_w // 4) <= 4


def narrow_parts(node: Node, g: Geometry) -> int:
    """How many times F(4x4) transforms int8 weights of some output channels."""
    return parts_of(node, -(-g.out_c // 2), pair_bytes(F4, g), kept=keeps_tiles(g))


def at_once(node: Node, g: Geometry) -> int:
    """Output channels of each of these parts, an even number."""
    doubles = -(-g.out_c // 2)
    return 2 * -(-doubles // narrow_parts(node, g))


def refuse_narrow(node: Node, target: Target) -> str | None:
    reason = refuse(F2, node, target)
    if reason is not None:
        return reason
    room, both = stream_bytes(geometry(node)), node.input(0).type.bytes + node.output.type.bytes
    return (
        f"its weights would need {room} bytes of scratch, more than its {both} of input and output"
        if room > both
        else None
    )


def products_of(transform: Transform, g: Geometry) -> Products:
    """Of all positions of four tiles; code that is there for several is worth its flash where it is short."""
    pairs = pairs_of(g)
    together = min(MOST_TOGETHER // pairs, LARGEST_STEP // step_bytes(pairs), MOST_POSITIONS)
    return Products(pairs, largest_divisor(transform.positions, max(together, 1)))


def shape_line(g: Geometry) -> str:
    return (
        f"const tinyet_winograd_shape_dsp shape = {{{g.batch}, /* in */ {g.in_h}, {g.in_w}, {g.in_c}, "
        f"/* out */ {g.out_h}, {g.out_w}, {g.out_c}, /* pad */ {g.pad_top}, {g.pad_left},\n"
        f"      /* pixel stride */ {g.in_pixel_stride}, {g.out_pixel_stride}, /* zero point */ {g.zero_point}}};"
    )


def lower_narrow(transform: Transform, node: Node, target: Target, layouts: Layouts = DENSE) -> Call:
    g, r = geometry(node, layouts), chosen_rounding(transform, node)
    products, page = products_of(transform, g), page_of(cycles_of(target))
    if transform.tile == 2:
        symbol, more, stream = NARROW, "", stream_bytes(g)
    else:
        channels = at_once(node, g)
        symbol, more = NARROW_F4, f"/* at once */ {channels}, "
        stream = channels // 2 * pair_bytes(transform, g)
    body = (
        shape_line(g),
        f"const tinyet_rounding_dsp rounding = {r.literal};",
        f"{symbol}(input, output, scratch, weights, {more}{page.named(products.name)},",
        "    shape, rounding);",
    )
    data = narrow_stream(transform, node, r).astype(np.int32)
    constant = Constant("weights", data, "bias, rounding and weights of two channels after another")
    scratch = scratch_bytes(transform, g) + stream
    call = specialised_call(symbol, summary(node), [constant], body, scratch_bytes=scratch)
    return replace(call, files=files(products, page))


def lower(transform: Transform, node: Node, target: Target, layouts: Layouts = DENSE) -> Call:
    g, r = geometry(node, layouts), chosen_rounding(transform, node)
    products, page = products_of(transform, g), page_of(cycles_of(target))
    body = (
        shape_line(g),
        f"const tinyet_rounding_dsp rounding = {r.literal};",
        f"tinyet_winograd_conv2d_dsp(input, output, scratch, weights, /* tile */ {transform.tile},",
        f"    {page.named(products.name)}, shape, rounding);",
    )
    data = stream(transform, node, r).astype(np.int32)
    constant = Constant("weights", data, "transformed weights and rounding of two channels after another")
    call = specialised_call(
        symbol_of(transform), summary(node), [constant], body, scratch_bytes=scratch_bytes(transform, g)
    )
    return replace(call, files=files(products, page))


NARROW = "tinyet_conv2d_s8_winograd_f2x2_dsp"
NARROW_F4 = "tinyet_conv2d_s8_winograd_f4x4_dsp"
KERNELS = (
    *(
        Kernel(
            symbol_of(f),
            "s8",
            partial(lower, f),
            HEADERS,
            (),
            partial(refuse, f),
            "cortex_m",
            layout_support=LayoutSupport(partial(lower, f), only_strides),
            access_order=by_tiles(f.tile),
        )
        for f in (F4, F2)
    ),
    Kernel(
        NARROW,
        "s8",
        partial(lower_narrow, F2),
        HEADERS,
        (),
        refuse_narrow,
        "cortex_m",
        layout_support=LayoutSupport(partial(lower_narrow, F2), only_strides),
        access_order=by_tiles(F2.tile),
    ),
    # It reads its input once for each part of its output channels.
    Kernel(
        NARROW_F4,
        "s8",
        partial(lower_narrow, F4),
        HEADERS,
        ("tinyet_winograd_f4x4_stream_dsp.c",),
        partial(refuse, F4),
        "cortex_m",
        layout_support=LayoutSupport(partial(lower_narrow, F4), only_strides),
    ),
)
