# SPDX-License-Identifier: Apache-2.0
"""Weights of the kernels that multiply by two channels at once, on cores whose only multiplication is 32 by 32 bits.

A word 2**16 b + a of the weights a, b of two channels, times an input u = x + 128 of 0 … 255, adds to both channels'
sums, as long as each stays within 16 bits. So the products of a channel are added up in runs of neighbouring taps, of
which 255 * sum(|weight|) < 2**16 for each channel: with what makes its sum positive (255 times its negative weights) in
each half before the run, no half leaves 0 … 65535, whatever the inputs. Behind a run its halves are added to sums of 32
bits.
"""

from __future__ import annotations

import numpy as np

from tinyet.ir import Array, Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.numerics import Int64, clamp_range
from tinyet.ops.shared import two_products
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.integers import sum_range
from tinyet.ops.shared.two_products import Rescaling
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import Constant, Pointer, Struct

CHANNELS = 4
"""That a block computes: two words of weights a tap."""
LONGEST = 16
"""Taps of a run at most: steps of straight code that a run jumps into."""
_ROOM = (2**16 - 1) // 255
_STEP_BYTES = 12  # of the straight code in tinyet_packed_words.c, six instructions
_BACK = LONGEST * _STEP_BYTES + 20  # from where it jumps to its first step
_LEAVE = 0  # where it goes on behind the last run


@memoize_by_weights
def rescaling(node: Node, bits: int = 16, finer: int = 0) -> Rescaling | str:
    """Of a layer's sums, to the right by at most so many bits; why there is none otherwise. finer: as two_products.py
    has it."""
    reach = sum_range(rows_of(node).astype(np.int64), folded_bias(node))
    clamp, zero_point = clamp_range(clamp_of(node), node.output.type), node.output.type.zero_point
    return two_products.rescaling(*output_factors(node), zero_point, clamp, reach, bits=bits, finer=finer)


def rows_of(node: Node) -> Array:
    """(channels, taps) int8."""
    weights = node.input(1).array
    return weights.reshape(weights.shape[0], -1)


def refuse(node: Node) -> str | None:
    found = rescaling(node)
    return found if isinstance(found, str) else None


def runs(magnitudes: Int64, room: int = _ROOM, longest: int = LONGEST) -> list[tuple[int, int]]:
    """First tap and the one behind the last of each run; magnitudes: (taps, channels), absolute weights. room: what
    those of a run may add up to."""
    return _runs(_longest(magnitudes.T, room, longest))


def _longest(magnitudes: Int64, room: int = _ROOM, longest: int = LONGEST) -> Int64:
    """Behind which tap a run would end that begins at a tap (taps,). magnitudes: (channels, taps)."""
    channels, taps = magnitudes.shape
    total = np.concatenate([np.zeros((channels, 1), np.int64), np.cumsum(magnitudes, axis=1)], axis=1)
    # All channels are searched at once: so far apart, none is searched in another's sums.
    total += np.arange(channels)[:, None] * (int(total[:, -1].max()) + room + 1)
    found = np.searchsorted(total.ravel(), (total[:, :-1] + room).ravel(), side="right") - 1
    ends = found.reshape(channels, taps) - np.arange(channels)[:, None] * (taps + 1)
    return np.asarray(np.minimum(ends.min(axis=0), np.arange(taps) + longest), np.int64)


def _runs(longest: Int64) -> list[tuple[int, int]]:
    ends = longest.tolist()
    found, at = [], 0
    while at < len(ends):
        found.append((at, ends[at]))
        at = ends[at]
    return found


@memoize_by_weights
def all_runs(node: Node) -> list[tuple[int, int]]:
    """Of all blocks."""
    magnitudes = np.abs(rows_of(node).astype(np.int64))
    return [
        run for at in range(0, len(magnitudes), CHANNELS) for run in runs(magnitudes[at : at + CHANNELS].T)
    ]


def words(low: Int64, high: Int64) -> Int64:
    """2**16 high + low, modulo 2**32."""
    return np.asarray((high * 2**16 + low) & 0xFFFFFFFF, np.int64)


def block(weights: Int64, bias: Int64, sums: Rescaling, first: int) -> list[Int64]:
    """One block's part of the stream. weights: (taps, CHANNELS); bias of sums of u = x + 128 (CHANNELS,)."""
    negative = 255 * np.maximum(-weights, 0)
    before = bias - negative.sum(axis=0)
    start = np.stack([words(before[::2], before[1::2]), before[1::2] & 0xFFFFFFFF], axis=1).ravel()
    taps, pairs = len(weights), CHANNELS // 2
    starts, ends = np.array(runs(np.abs(weights)), np.int64).reshape(-1, 2).T
    lengths = ends - starts
    total = np.concatenate([np.zeros((1, CHANNELS), np.int64), np.cumsum(negative, axis=0)])
    lift = total[ends] - total[starts]
    # A row is two words: of a run one that says where it begins in the straight code and how long it is, one that
    # lifts, and one of weights a tap.
    heads = np.arange(len(starts)) * 2 + starts
    rows = np.empty((2 * len(starts) + taps, pairs), np.int64)
    rows[heads, 0] = _STEP_BYTES * (LONGEST - lengths) - _BACK & 0xFFFFFFFF
    rows[heads, 1] = lengths
    rows[heads + 1] = words(lift[:, ::2], lift[:, 1::2])
    rows[np.repeat(heads + 2 - starts, lengths) + np.arange(taps)] = words(weights[:, ::2], weights[:, 1::2])
    return [start, rows.ravel(), np.array([_LEAVE, 0]), sums.words(first, CHANNELS).ravel()]


@memoize_by_weights
def stream(node: Node) -> Constant:
    """All that a pixel reads, front to back, block by block of CHANNELS channels: sums before the first product, runs,
    what makes outputs of the sums. Missing channels of the last block have zeros for weights."""
    sums = rescaling(node)
    assert isinstance(sums, Rescaling)
    weights = rows_of(node).astype(np.int64)
    # Sums of x + 128 instead of x, less where the first output step begins.
    bias = folded_bias(node) - 128 * weights.sum(axis=1) - sums.start
    more = -len(weights) % CHANNELS
    weights, bias, sums = np.pad(weights, ((0, more), (0, 0))), np.pad(bias, (0, more)), sums.padded(more)
    parts: list[Int64] = []
    for first in range(0, len(weights), CHANNELS):
        some = slice(first, first + CHANNELS)
        parts += block(weights[some].T, bias[some], sums, first)
    return Constant("stream", np.concatenate(parts).astype(np.uint32), "as tinyet_packed_words.h")


@memoize_by_weights
def plane_stream(node: Node, *, by_bytes: bool = False) -> Constant:
    """Of a depthwise layer, channel by channel: the sum before the first product, the weights, what makes an output.
    by_bytes: weights are four a word, the first one in the lowest byte, and zeros behind them."""
    sums = rescaling(node)
    assert isinstance(sums, Rescaling)
    weights = rows_of(node).astype(np.int64)
    bias = folded_bias(node) - 128 * weights.sum(axis=1) - sums.start
    if by_bytes:
        weights = in_bytes(weights)
    words = [bias[:, None], weights, sums.words(0, len(weights))]
    found = (np.concatenate(words, axis=1) & 0xFFFFFFFF).astype(np.uint32)
    return Constant("stream", found, "as tinyet_packed_words.h")


def in_bytes(values: Int64) -> Int64:
    """(rows, columns) as (rows, words): four a word, the first one in the lowest byte, zeros behind them."""
    fours = np.pad(values, ((0, 0), (0, -values.shape[1] % 4))).reshape(len(values), -1, 4)
    return np.asarray(((fours & 0xFF) << np.arange(0, 32, 8)).sum(axis=2), np.int64)


def plane_bytes(node: Node) -> int:
    """Scratch: the part of a channel's image that windows without dilation reach, a byte a pixel."""
    attrs, (_, out_h, out_w, _) = attrs_of(node), node.output.shape
    _, kernel_h, kernel_w, _ = node.input(1).shape
    return int(((out_h - 1) * attrs.stride_h + kernel_h) * ((out_w - 1) * attrs.stride_w + kernel_w))


def seen(node: Node) -> tuple[int, int]:
    """Rows and columns of the image that windows without dilation see; none where padding is all that they see."""
    attrs, (_, in_h, in_w, _), (_, out_h, out_w, _) = attrs_of(node), node.input(0).shape, node.output.shape
    _, kernel_h, kernel_w, _ = node.input(1).shape
    rows = (out_h - 1) * attrs.stride_h + kernel_h - attrs.pad_top
    columns = (out_w - 1) * attrs.stride_w + kernel_w - attrs.pad_left
    return max(min(in_h, rows), 0), max(min(in_w, columns), 0)


@memoize_by_weights
def block_constants(node: Node) -> tuple[Constant, Constant]:
    """Of inputs as they are, for blocks of CHANNELS channels: the sums before the first product and what makes outputs
    of the sums, and the weights, taps rounded up to fours."""
    sums = rescaling(node)
    assert isinstance(sums, Rescaling)
    weights, bias = rows_of(node), folded_bias(node) - sums.start
    more, taps = -len(weights) % CHANNELS, -weights.shape[1] % 4
    padded = np.pad(weights, ((0, more), (0, taps))).reshape(-1, CHANNELS, weights.shape[1] + taps)
    starts = np.pad(bias, (0, more)).reshape(-1, CHANNELS) & 0xFFFFFFFF
    rounding = sums.padded(more).words(0, len(weights) + more).reshape(len(starts), -1)
    words = np.concatenate([starts, rounding], axis=1).astype(np.uint32)
    four = np.ascontiguousarray(padded.transpose(0, 2, 1))
    return Constant("stream", words, "as tinyet_conv2d_4x4.h"), Constant(
        "weights", four, "four channels a tap"
    )


def block_bytes(node: Node) -> int:
    """Scratch: what four pixels' windows see, taps rounded up to fours."""
    return 4 * patch_bytes(node)


def fields(node: Node, above: int = 128) -> Struct:
    """The struct tinyet_packed_words. above: by how much inputs are larger than they were."""
    sums = rescaling(node)
    assert isinstance(sums, Rescaling)
    return described(node, sums, above)


def described(node: Node, sums: Rescaling, above: int) -> Struct:
    """The same, of sums that are rescaled as they say."""
    low, high = clamp_range(clamp_of(node), node.output.type)
    return Struct(
        "tinyet_packed_words",
        {
            "stream": Pointer("stream"),
            "out_c": node.output.shape[-1],
            "padding": node.input(0).type.zero_point + above,
            "right": sums.right,
            "two_sided": int(sums.two_sided),
            "clamp_low": low,
            "clamp_high": high,
        },
    )


def patch_bytes(node: Node) -> int:
    """Scratch: the inputs of a pixel, u = x + 128, as bytes."""
    taps: int = rows_of(node).shape[1]
    return (taps + 3) // 4 * 4
