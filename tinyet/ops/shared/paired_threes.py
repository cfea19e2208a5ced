# SPDX-License-Identifier: Apache-2.0
"""Constants of the kernel that multiplies three pixels' inputs by two products of 32 bits
(tinyet_conv2d_s8_paired_threes_6x4).

Two words of a tap are 2**21 c + a and 2**10 c + b. Times a weight they add to 2**21 C + A and 2**10 C + B of the sums,
modulo 2**32: as long as A and B, each with 2**20, are within 21 bits and C within 22, the first word has A and the
lowest eleven bits of C; without these, the second has B, and the rest of C above it. Nothing is drained in between:
only the whole sum has to fit, which is proved with the weights of each channel. Where it does not, taps are divided
into parts, whose sums are added up in memory. Channels with as many parts are in a tile together. Outputs are as
straight.py has them, or, where a tile has one part and a layer ReLU, and all that is added to products fits, with the
sums, into words whose fields are at their upper ends, as depthwise_planes.py has them: direct.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.numerics import Int64
from tinyet.ops.shared import depthwise_planes, one_product
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.straight import Straight, straight
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import Constant, FieldValue

PIXELS, CHANNELS = 6, 4
FIELD = 21
TURN, THUMB_TURN = 8, 16
"""Taps in a turn of the loop: in the assembly for RISC-V, and for Thumb."""
OFFSET = 2 ** (FIELD - 1)
"""What each sum of a part has before the first product."""
NOT_FIRST, NOT_LAST, ZERO, DIRECT, WIDE = 1, 2, 4, 8, 16
"""What is done behind a part."""
UNSEEN = -(2**30)
"""What no x of straight.py is below, for sums are not."""


def refuse(node: Node) -> str | None:
    found = straight(node)
    return found if isinstance(found, str) else None


def fields(node: Node) -> dict[str, FieldValue]:
    """Of the params, behind the shape."""
    found = straight(node)
    assert isinstance(found, Straight)
    return one_product.fields_of(node, two_sided=found.two_sided)


def parts_of(weights: Int64) -> list[tuple[int, int]]:
    """First tap and the one behind the last of each part of channels that are computed together, (channels, taps)."""
    products = weights * 127, weights * -128
    bounds = [np.cumsum(np.abs(np.minimum(*products)), axis=1), np.cumsum(np.maximum(*products), axis=1)]
    rooms = OFFSET, OFFSET - 1
    found, at, taps = [], 0, weights.shape[1]
    while at < taps:
        before = [bound[:, at - 1 : at] if at else 0 for bound in bounds]
        fits = [
            (bound - less <= room).all(axis=0)
            for bound, less, room in zip(bounds, before, rooms, strict=True)
        ]
        end = int((fits[0] & fits[1]).sum())
        found.append((at, end))
        at = end
    return found


@memoize_by_weights
def tiles(
    node: Node, together: int = CHANNELS, *, wide: bool = False
) -> tuple[tuple[tuple[int, ...], list[tuple[int, int]]], ...]:
    """The channels of each tile, so many, and its parts. Where channels are not a multiple of that, the last is there
    again. wide: those that can be direct with sums of more bits are together, too."""
    rows, found = rows_of(node).astype(np.int64), depthwise_planes.folded_whole(node).found
    others = depthwise_planes.folded_wide(node).found if wide else np.zeros_like(found)

    def key(channel: int) -> tuple[int, int]:
        count = len(parts_of(rows[channel][None]))
        first = found[channel] and (count == 1 or not wide)
        return count, 0 if first else 1 if others[channel] else 2

    order = sorted(range(len(rows)), key=key)
    order += order[-1:] * (-len(order) % together)
    chosen = [tuple(order[k : k + together]) for k in range(0, len(order), together)]
    return tuple((channels, parts_of(rows[list(channels)])) for channels in chosen)


def direct(
    node: Node, channels: Sequence[int], parts: Sequence[tuple[int, int]], *, wide: bool = False
) -> int:
    """DIRECT or, if it is allowed, WIDE where a tile's sums can have all that is added to products; else zero."""
    at = list(channels)
    if len(parts) == 1 and depthwise_planes.folded_whole(node).found[at].all():
        return DIRECT
    return WIDE if wide and depthwise_planes.folded_wide(node).found[at].all() else 0


def left_out(taps: int, turn: int) -> int:
    """Of a part's first turn behind its first tap, of which none may be left."""
    return turn if taps == 1 else -(taps - 1) % turn


def stream(
    node: Node, turns: Callable[[int], tuple[int, int]], *, with_direct: bool, wide: bool = False
) -> Constant:
    """That of tinyet_conv2d_paired.h. turns: of a part's taps, its first two words; with_direct: tiles that can be are
    direct; wide: with sums of more bits, too."""
    r, bias = straight(node), folded_bias(node)
    assert isinstance(r, Straight)
    zero = r.zero if r.two_sided else np.full_like(r.zero, UNSEEN)
    words: list[int] = []
    for channels, parts in tiles(node, wide=wide):
        is_direct = direct(node, channels, parts, wide=wide) if with_direct else 0
        f = (depthwise_planes.folded_wide if is_direct == WIDE else depthwise_planes.folded_whole)(node)
        whole = f.start + (bias - len(parts) * OFFSET << f.before)
        for k, (start, end) in enumerate(parts):
            last = k + 1 == len(parts)
            kind = NOT_FIRST * (k > 0) + NOT_LAST * (not last)
            kind += ZERO * (r.two_sided and last) + is_direct * last
            words += [*turns(end - start), kind]
        before = 0
        for channel in channels:
            if is_direct:
                words += [int(whole[channel]), int(f.multiplier[channel]), channel - before]
            else:
                added = r.bias[channel] + r.start[channel] - len(parts) * OFFSET
                place = r.place[channel] - 128 + r.shift[channel]
                words += [
                    int(added),
                    int(r.multiplier[channel]),
                    int(place),
                    channel - before,
                    int(zero[channel]),
                ]
            before = channel
    words.append(-1)
    found = (np.array(words, np.int64) & 0xFFFFFFFF).astype(np.uint32)
    return Constant("stream", found, "as tinyet_conv2d_paired.h")


@memoize_by_weights
def constants(node: Node, *, with_direct: bool, turn: int) -> tuple[Constant, Constant]:
    """The stream and the weights of tinyet_conv2d_paired.h. with_direct: tiles that can be are direct, those with sums
    of more bits, too; turn: taps in a turn of the loop."""

    def turns(taps: int) -> tuple[int, int]:
        return 4 * (taps - 1), left_out(taps, turn)

    rows = rows_of(node)
    fours = np.stack([rows[list(channels)].T for channels, _ in tiles(node, wide=with_direct)])
    weights = Constant("weights", fours, "four channels a tap")
    return stream(node, turns, with_direct=with_direct, wide=with_direct), weights


def scratch_bytes(node: Node) -> int:
    """Six pixels' windows, four words a tap; six pixels' outputs."""
    channels, taps = rows_of(node).shape
    return int(16 * taps + PIXELS * channels)
