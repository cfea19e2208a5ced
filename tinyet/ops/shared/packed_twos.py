# SPDX-License-Identifier: Apache-2.0
"""Weights of the kernels that compute two outputs by one multiplication of 32 bits, in short runs of inputs.

Two sums a, b of a run are the word 65536 b + a. Where both stay within 16 bits with their signs, a is its lower half,
and b the upper half, one more where a is negative. An input is -128 … 127, so this holds for all where magnitudes of
a run's weights add up to at most 255: of two weights always, but for -128 twice. A word is either of two output
channels' weights, for two taps of each block of four channels, or of two neighbouring pixels' inputs, for the taps of
a row, or a column, of a depthwise channel's kernel: three where that holds, else two and one.

Runs of three taps are fewer instructions, but not all have room: what is too much of a weight is a tap by itself, of
all four channels. A layer has such runs where that is quicker.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize, memoize_by_weights
from tinyet.numerics import Int64
from tinyet.ops.shared import packed_words
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.packed_words import CHANNELS, rows_of, words
from tinyet.ops.shared.two_products import Rescaling
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import Constant, FieldValue

RIGHT, RIGHT_OF_TWO_SIDED = 14, 13
"""As in tinyet_conv2d_s8_packed_twos.c and tinyet_depthwise_s8_chw_3x3_twos.c."""
_ORDER = (3, 1, 0, 2)
"""Of a block's channels, as they are rounded."""
_THREES, _LEAVE, _BEGIN = 46, 54, 92
_TWO_BYTES, _TWOS = 30, 16
"""Where the assembly in tinyet_conv2d_s8_packed_twos.c goes on, at 8, 6 and 2, counted from four bytes behind the
instruction that goes there; the bytes of a run in the straight code at 2, and how many there are."""
_ROOM = 255
_MOST_STRIP, _STRIP_WORDS = 8, 128
"""Pixels of a strip, and words of scratch up to which they are more than two."""


def _taps(node: Node) -> Int64:
    """(channels, taps), a window column by column."""
    weights = node.input(1).array.astype(np.int64)
    return np.asarray(weights.transpose(0, 2, 1, 3).reshape(len(weights), -1), np.int64)


def _in_blocks(weights: Int64, run: int) -> Int64:
    """(blocks, pair, channel of the pair, run, tap of the run), with channels and taps of zeros where they are no
    multiples."""
    more, taps = -len(weights) % CHANNELS, -weights.shape[1] % run
    padded = np.pad(weights, ((0, more), (0, taps)))
    return padded.reshape(len(padded) // CHANNELS, CHANNELS // 2, 2, -1, run)


def refuse(node: Node) -> str | None:
    """Why a convolution is not computed so."""
    if int(np.abs(_in_blocks(_taps(node), 2)).sum(axis=4).max()) > _ROOM:
        return "two neighbouring weights are -128"
    found = rescaling(node)
    return found if isinstance(found, str) else None


@memoize_by_weights
def rescaling(node: Node) -> Rescaling | str:
    """Of a convolution's sums, to the right by RIGHT, or where they are rounded two ways, or reach farther, by
    RIGHT_OF_TWO_SIDED; or why there is none."""
    found = packed_words.rescaling(node, RIGHT)
    if not isinstance(found, str) and found.right == RIGHT and not found.two_sided:
        return found
    found = packed_words.rescaling(node, RIGHT_OF_TWO_SIDED)
    if isinstance(found, str):
        return found
    if found.right != RIGHT_OF_TWO_SIDED:
        return "sums within the clamp reach too far"
    return replace(found, two_sided=True)


@dataclass(frozen=True)
class Runs:
    """weights: as _in_blocks has them; alone: of each block (taps, pair, channel of the pair), of those taps by
    themselves that `taps` names."""

    run: int
    weights: Int64
    taps: list[Int64]
    alone: list[Int64]

    @property
    def instructions(self) -> int:
        """That stand in tinyet_conv2d_s8_packed_twos.c for all blocks, but for their outputs."""
        blocks, runs = len(self.weights), self.weights.shape[3]
        if self.run == 2:
            around = 1 if runs <= _TWOS else 1 + 4 * -(-runs // _TWOS)
            return int(blocks * (around + 15 * runs))
        by_themselves = sum(len(taps) for taps in self.taps)
        return int(blocks * (12 + 21 * runs + 3 * -(-runs // 16)) + 16 * by_themselves)


def _threes(weights: Int64) -> Runs:
    kept = _in_blocks(weights, 3)
    all_weights = kept.copy()
    while np.any((excess := np.abs(kept).sum(axis=4) - _ROOM) > 0):
        largest = np.abs(kept).argmax(axis=4)[..., None]
        value = np.take_along_axis(kept, largest, axis=4)
        less = np.sign(value) * np.clip(excess[..., None], 0, np.abs(value))
        np.put_along_axis(kept, largest, value - less, axis=4)
    alone = (all_weights - kept).reshape(len(kept), CHANNELS // 2, 2, -1)
    taps = [np.flatnonzero(block.any(axis=(0, 1))) for block in alone]
    of_taps = [block[:, :, some].transpose(2, 0, 1) for block, some in zip(alone, taps, strict=True)]
    return Runs(3, kept, taps, of_taps)


@memoize
def in_runs(node: Node) -> Runs:
    """Of two or three taps, whichever are fewer instructions."""
    weights, twos = _taps(node), _in_blocks(_taps(node), 2)
    in_twos = Runs(2, twos, [np.zeros(0, np.int64)] * len(twos), [np.zeros((0, 2, 2), np.int64)] * len(twos))
    in_threes = _threes(weights)
    return in_threes if in_threes.instructions < in_twos.instructions else in_twos


@memoize_by_weights
def stream(node: Node) -> Constant:
    """All that a pixel of a convolution reads, front to back, block by block of CHANNELS channels. Missing channels of
    the last block have zeros for weights."""
    sums = rescaling(node)
    assert isinstance(sums, Rescaling)
    runs, bias = in_runs(node), folded_bias(node) - sums.start
    more, blocks = -len(bias) % CHANNELS, len(runs.weights)
    before = np.pad(bias, (0, more)).reshape(blocks, CHANNELS // 2, 2)
    behind = sums.padded(more).words(0, CHANNELS * blocks)
    if sums.two_sided:
        behind = behind[:, [0, 1, 5, 2, 3, 4]]
    behind = behind.reshape(blocks, CHANNELS, -1)[:, _ORDER].reshape(blocks, -1)
    # The first turn of the straight code has what runs there are beyond whole turns.
    first = runs.weights.shape[3]
    begin = _THREES if runs.run == 3 else _BEGIN + _TWO_BYTES * (-first % _TWOS)
    leave = np.array([0, 0, _LEAVE, 0, 0])
    packed = words(runs.weights[:, :, 0], runs.weights[:, :, 1]).transpose(0, 2, 1, 3).reshape(blocks, -1)
    parts: list[Int64] = []
    for block, (taps, alone) in enumerate(zip(runs.taps, runs.alone, strict=True)):
        low, high = before[block].T
        if runs.run == 3:
            low = low - (runs.weights.shape[3] + len(taps)) * 2**15
        if more and block and block == blocks - 1:
            parts.append(leave)
        parts += [words(low, high), np.array([begin]), high, packed[block]]
        if runs.run == 3:
            by_themselves = words(alone[:, :, 0], alone[:, :, 1])
            parts += [np.concatenate([4 * taps[:, None], by_themselves], axis=1).ravel(), np.array([-1])]
        parts.append(behind[block])
    parts.append(leave)
    together = (np.concatenate(parts) & 0xFFFFFFFF).astype(np.uint32)
    return Constant("stream", together, "as tinyet_packed_twos.h")


def shared_columns(node: Node) -> int:
    """That a window has in common with the next one of its row."""
    attrs, kernel_w = attrs_of(node), node.input(1).shape[2]
    return max(kernel_w - attrs.stride_w, 0) if attrs.dilation_w == 1 else 0


def strip(node: Node) -> int:
    """Neighbouring pixels of a row, of an image in 1x1, whose windows are gathered at once: two where windows overlap,
    more where they are small."""
    _, kernel_h, kernel_w, channels = node.input(1).shape
    shared = shared_columns(node)
    most = 1 + (_STRIP_WORDS // (kernel_h * channels) - kernel_w) // (kernel_w - shared)
    _, out_h, out_w, _ = node.output.shape
    in_line = out_w if (kernel_h, kernel_w) != (1, 1) else out_h * out_w
    return min(max(most, 2 if shared else 1), _MOST_STRIP, in_line)


def patch_bytes(node: Node) -> int:
    """Scratch: a word an input of a strip, and four more."""
    _, kernel_h, kernel_w, channels = node.input(1).shape
    columns = kernel_w + (strip(node) - 1) * (kernel_w - shared_columns(node))
    return int(4 * (columns * kernel_h * channels + 4))


def fields(node: Node) -> dict[str, FieldValue]:
    """What the params of a convolution have beside its shape."""
    runs, sums = in_runs(node), rescaling(node)
    assert isinstance(sums, Rescaling)
    return {
        "words": packed_words.described(node, sums, above=0),
        "run": runs.run,
        "runs": runs.weights.shape[3],
        "strip": strip(node),
    }


@memoize
def down(node: Node) -> bool:
    """Whether a depthwise layer's outputs are computed in twos down its columns, or along its rows: what leaves fewer
    of them alone, then what has fewer lines."""
    attrs, (_, out_h, out_w, _) = attrs_of(node), node.output.shape
    if attrs.stride_w > 2 or attrs.stride_h > 2:
        return attrs.stride_w > 2
    return (out_w * -(-out_h // 2), out_w) < (out_h * -(-out_w // 2), out_h)


def stride_along(node: Node) -> int:
    """From window to window of a line."""
    attrs = attrs_of(node)
    return attrs.stride_h if down(node) else attrs.stride_w


def line_inputs(node: Node) -> int:
    """That windows reach of a line of the image."""
    attrs, (_, in_h, in_w, _), (_, out_h, out_w, _) = attrs_of(node), node.input(0).shape, node.output.shape
    size, outputs, before = (in_h, out_h, attrs.pad_top) if down(node) else (in_w, out_w, attrs.pad_left)
    return int(min(size, (outputs - 1) * stride_along(node) + 3 - before))


def line_words(node: Node) -> int:
    """Of a line of the plane: of stride 1 one more than windows see, of stride 2 three for each two outputs."""
    _, out_h, out_w, _ = node.output.shape
    outputs = out_h if down(node) else out_w
    return int(outputs + 3 if stride_along(node) == 1 else 3 * -(-outputs // 2))


def padding_before(node: Node) -> int:
    """A line."""
    attrs = attrs_of(node)
    return attrs.pad_top if down(node) else attrs.pad_left


def _is_three_words_of_four(node: Node) -> bool:
    """Whether the first two inputs of a line are not both padding, nor more than the last three words."""
    before = padding_before(node)
    return before <= 1 and line_words(node) - 3 * ((line_inputs(node) - (before == 0)) // 4) <= 3


def _lines(node: Node) -> Int64:
    """(channels, lines, taps of a line)."""
    weights = rows_of(node).astype(np.int64).reshape(-1, 3, 3)
    return weights.transpose(0, 2, 1) if down(node) else weights


def refuse_planes(node: Node) -> str | None:
    """Why a depthwise layer is not computed so."""
    if stride_along(node) > 2:
        return "only strides 1 and 2"
    if stride_along(node) == 2 and not _is_three_words_of_four(node):
        return "of stride 2 only lines with a border of one, and outputs that see the image"
    if packed_words.seen(node)[1 if down(node) else 0] == 0:
        return "no window sees a line of the image"
    if int(np.abs(_lines(node))[:, :, :2].sum(axis=2).max()) > _ROOM:
        return "two neighbouring weights are -128"
    found = packed_words.rescaling(node, RIGHT)
    if isinstance(found, str):
        return found
    if found.two_sided:
        return "outputs of negative sums are rounded the other way"
    return None if found.right == RIGHT else "sums within the clamp reach too far"


@memoize
def divided(node: Node) -> list[bool]:
    """Of which channels some line of three taps is no run."""
    return [bool(each) for each in (np.abs(_lines(node)).sum(axis=2) > _ROOM).any(axis=1)]


@memoize
def plane_stream(node: Node) -> Constant:
    """Of a depthwise layer, channel by channel."""
    sums = packed_words.rescaling(node, RIGHT)
    assert isinstance(sums, Rescaling)
    weights, bias = _lines(node).reshape(-1, 9), (folded_bias(node) - sums.start)[:, None]
    kinds = np.array(divided(node), np.int64)[:, None]
    by_bytes = packed_words.in_bytes(np.concatenate([weights, kinds], axis=1))
    parts = [bias, by_bytes, sums.words(0, len(weights))]
    found = (np.concatenate(parts, axis=1) & 0xFFFFFFFF).astype(np.uint32)
    return Constant("stream", found, "as tinyet_packed_twos.h")


def plane_fields(node: Node) -> dict[str, FieldValue]:
    """What the params of a depthwise layer have beside its shape."""
    sums = packed_words.rescaling(node, RIGHT)
    assert isinstance(sums, Rescaling)
    return {"words": packed_words.described(node, sums, above=0), "down": int(down(node))}


def plane_bytes(node: Node) -> int:
    """Scratch: the part of a channel's image that windows reach, in lines of words."""
    attrs, (_, out_h, out_w, _) = attrs_of(node), node.output.shape
    lines, stride = (out_w, attrs.stride_w) if down(node) else (out_h, attrs.stride_h)
    return 4 * ((lines - 1) * stride + 3) * line_words(node)
