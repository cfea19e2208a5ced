# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers, one row at a time, by printed tiles of one pixel (tinyet_linear_tiles_dsp.h)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_tiles import both_channels, packed_ends
from tinyet.delegates.cortex_m.packing import NONE, lane_pairs, pack_int16x2, words
from tinyet.delegates.cortex_m.rounding import LIMIT, Form, Rounding, rounding
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import by_copied_vectors
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.integers import sum_range
from tinyet.opset import Call, Constant, Kernel
from tinyet.opset.cost import cycles_of
from tinyet.tiles.core import page_of
from tinyet.tiles.printer import files
from tinyet.tiles.tile import Tile, Weights

HEADERS = ("tinyet_dsp.h", "tinyet_conv2d_dsp.h", "tinyet_tile_dsp.h", "tinyet_linear_tiles_dsp.h")

CHANNELS = 4
"""Of a tile."""
MOST_BEFORE = 8
"""-128 << 8 fits int16, and so many shifts are left for sums of packed weights."""
MOST_PAIRS = 16380
"""Whose words are a constant of MOVW."""


@dataclass(frozen=True)
class Family:
    """Tiles for any layer.

    symbol: the kernel's name. weights: as they are stored. turn: pairs of straight code, and of a turn of the loop
    where there are more. least: pairs; for fewer, another family has the same tile.
    """

    symbol: str
    weights: Weights
    turn: int
    least: int = 1


PACKED = Family("tinyet_linear_s8_packed_1x4_dsp", Weights.CROSSED, 16)
STRAIGHT = Family("tinyet_linear_s8_packed_1x4_k160_dsp", Weights.CROSSED, 80, 17)
WIDE = Family("tinyet_linear_s8_w16_1x4_dsp", Weights.WIDE, 32)


def row_count(node: Node) -> int:
    return math.prod(node.output.shape[:-1])


def pairs_of(depth: int, family: Family) -> list[tuple[int, int]]:
    """The two columns of the weights of each pair of inputs; crossed, in whole fours."""
    if family.weights is Weights.WIDE:
        return lane_pairs(depth)
    pairs = lane_pairs(depth + -depth % 4)
    return [(a if a < depth else NONE, b if b < depth else NONE) for a, b in pairs]


def turn_of(pairs: int, straight: int) -> int:
    """The longest turn of a loop over so many pairs of which there are `straight` in code, those before it included."""
    return next(turn for turn in range(straight, 0, -1) if turn + pairs % turn <= straight)


def chosen_rounding(node: Node) -> Rounding:
    return rounding(node, clamp_of(node), MOST_BEFORE)


def tile_of(node: Node, family: Family) -> Tile:
    """The tile of a layer's rows."""
    r = chosen_rounding(node)
    alike = r.alike if family.weights.packed else None
    one_sided = r.exponent if r.form is Form.ONE_SIDED else None
    return Tile(
        pixels=1,
        channels=CHANNELS,
        weights=family.weights,
        pairs=len(pairs_of(node.input(1).shape[1], family)),
        exponent=one_sided if alike is None else alike.exponent,
        step=0,
        straight=family.turn,
        turn=family.turn,
        alike=alike is not None,
        filling=True,
    )


def groups_of(count: int) -> Int64:
    """(groups, channels of a tile) channels; the last one again where there are no more."""
    return np.minimum(np.arange(count + -count % CHANNELS, dtype=np.int64), count - 1).reshape(-1, CHANNELS)


def refuse(node: Node, target: Target, family: Family) -> str | None:
    count, depth = node.input(1).shape
    pairs = len(pairs_of(depth, family))
    if not family.least <= pairs <= MOST_PAIRS:
        return f"{pairs} pairs of inputs, takes {family.least} to {MOST_PAIRS}"
    r = chosen_rounding(node)
    if r.form is Form.PLAIN:
        return "a factor of one half or more, or sums too large to be scaled in one step"
    if (r.low, r.high) != (-128, 127):
        return f"clamped to {r.low} … {r.high} within int8"
    return refuse_packed(r, count) if family.weights.packed else None


def refuse_packed(r: Rounding, count: int) -> str | None:
    """Where two channels are no one number."""
    bound = int(max(np.abs(end).max(initial=0) for end in sum_range(r.weights, r.bias)))
    if 256 * bound >= LIMIT:
        return f"sums up to {bound}, needs fewer than 2**23"
    if int(both_channels(r.weights, groups_of(count)).min()) < -(2**15):
        return "a weight of -128 beside a negative one of the channel before"
    return None


def stream(node: Node, family: Family) -> Int64:
    """The stream of tinyet_tile_dsp.h, (words,). The node is not refused."""
    count, depth = node.input(1).shape
    r, groups = chosen_rounding(node), groups_of(count)
    low, high = np.array(pairs_of(depth, family)).T
    if family.weights is Weights.WIDE:
        columns, bias = (r.weights << r.before[:, None])[groups], (r.bias << r.before)[groups]
        ends = [r.multiplier, r.offset] + ([] if r.form is Form.ONE_SIDED else [r.shift])
        tail = np.concatenate([values[groups] for values in ends], axis=1)
    else:
        columns, bias = both_channels(r.weights, groups), r.bias[groups]
        bias[:, 1::2] = 256 * bias[:, 1::2] + bias[:, 0::2]
        bias[:, 0::2] -= neighbours(r.weights)[groups[:, 0::2]]
        tail = packed_ends(r, groups)
    columns = np.pad(columns, ((0, 0), (0, 0), (0, 1)))  # NONE is the last one
    body = pack_int16x2(columns[..., low], columns[..., high])  # (groups, words of a pair, pairs)
    if family.weights is Weights.CROSSED:
        # The words of two pairs lie side by side.
        body = body.reshape(*body.shape[:2], -1, 2).transpose(0, 2, 1, 3)
    else:
        body = body.transpose(0, 2, 1)
    return words(np.concatenate([bias, body.reshape(len(body), -1), tail], axis=1).ravel())


def neighbours(weights: Int64) -> Int64:
    """(channels, depth) → (channels,): the sum of products of each weight at an even place with the next."""
    deep = np.pad(weights, ((0, 0), (0, weights.shape[1] % 2)))
    return np.asarray((deep[:, 0::2] * deep[:, 1::2]).sum(axis=1), np.int64)


def lower(node: Node, target: Target, *, family: Family) -> Call:
    count, depth = node.input(1).shape
    tile, page = tile_of(node, family), page_of(cycles_of(target))
    lift = tile.lift if family.weights is Weights.CROSSED else -1
    body = (
        f"tinyet_linear_tiles_dsp(input, output, scratch, weights, /* rows */ {row_count(node)}, /* depth */ {depth},",
        f"    /* outputs */ {count}, /* lift */ {lift}, /* words */ {tile.group_words}, {page.named(tile.name)});",
    )
    data = stream(node, family).astype(np.int32)
    constant = Constant("weights", data, "bias, weights and rounding of four outputs after another")
    call = specialised_call(
        family.symbol, summary(node), [constant], body, scratch_bytes=4 * tile.input_words
    )
    return replace(call, files=files(tile, page))


def kernel_of(family: Family) -> Kernel:
    return Kernel(
        family.symbol,
        "s8",
        partial(lower, family=family),
        HEADERS,
        (),
        partial(refuse, family=family),
        "cortex_m",
        access_order=by_copied_vectors,
    )


KERNELS = (kernel_of(PACKED),)
FOR_FLASH = tuple(map(kernel_of, (STRAIGHT, WIDE)))
