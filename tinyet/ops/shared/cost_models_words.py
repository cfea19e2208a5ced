# SPDX-License-Identifier: Apache-2.0
"""Instruction counts of the kernels whose sums are rounded by two products, loop by loop as in their C files."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tinyet.ir import Node
from tinyet.ops.shared import counting, packed_words
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.cost_models import axes
from tinyet.ops.shared.two_products import Rescaling
from tinyet.opset import CostModel

Parts = counting.Parts
BLOCK = packed_words.CHANNELS


def outputs(node: Node, count: int) -> Parts:
    """So many outputs, rounded."""
    sums = packed_words.rescaling(node)
    assert isinstance(sums, Rescaling)
    return {"output": count, "two-sided output": count * sums.two_sided}


def copied(parts: Parts, times: int, count: int, at_once: int) -> None:
    """So many pieces of `count` inputs, so many of them in a turn of the loop."""
    counting.add(parts, "piece", times)
    counting.add(parts, "inputs of a turn", times * (count // at_once))
    counting.add(parts, "input", times * (count % at_once))


def filled(parts: Parts, times: int, count: int) -> None:
    counting.add(parts, "blank piece", times)
    counting.add(parts, "blank input", times * count)


def gathered(parts: Parts, node: Node, at_once: int) -> None:
    """The windows of all pixels."""
    a, (_, kernel_h, kernel_w, count) = attrs_of(node), node.input(1).shape
    rows, columns = axes(node, a, kernel_h, kernel_w)
    batch, whole = node.input(0).shape[0], columns.whole & (a.dilation_w == 1)
    edge = columns.inside[~whole]
    there, tap_rows = int(edge.sum()), batch * rows.in_image
    copied(parts, tap_rows * int(whole.sum()), kernel_w * count, at_once)
    copied(parts, tap_rows * there, count, at_once)
    filled(parts, tap_rows * (edge.size - there), count)
    filled(parts, batch * rows.outside * columns.positions, kernel_w * count)
    counting.add(parts, "window row", batch * rows.positions * columns.positions * kernel_h)


def blocks(node: Node, pixels: int) -> Parts:
    """tinyet_packed_pixel, so many times."""
    out_c, runs = node.output.shape[-1], packed_words.all_runs(node)
    taps = [end - start for start, end in runs]
    return {
        "call": 1,
        "pixel": pixels,
        "pixel with a last block": pixels * int(out_c % BLOCK != 0),
        "block": pixels * -(-out_c // BLOCK),
        "run": pixels * len(runs),
        "four taps": pixels * sum(n // 4 for n in taps),
        "tap": pixels * sum(n % 4 for n in taps),
        **outputs(node, pixels * out_c),
    }


def in_words(channels: int) -> int:
    """Inputs that a turn of the loop copies where words lie at multiples of four; all by themselves otherwise."""
    return 8 if channels % 4 == 0 else 1


def packed_conv2d(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_packed_words."""
    parts = blocks(node, math.prod(node.output.shape[:3]))
    gathered(parts, node, in_words(node.input(0).shape[3]))
    return parts


def packed_rows(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_1x1_s8_packed_words, tinyet_linear_s8_packed_words."""
    pixels, depth = math.prod(node.output.shape[:-1]), node.input(0).shape[-1]
    parts = blocks(node, pixels)
    copied(parts, pixels, depth, in_words(depth))
    return parts


def conv2d_4x4(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8_4x4."""
    (batch, out_h, out_w, out_c), taps = node.output.shape, math.prod(node.input(1).shape[1:])
    pixels = out_h * out_w
    fours = batch * -(-pixels // 4)
    tiles = fours * -(-out_c // BLOCK)
    parts: Parts = {
        "call": 1,
        "pixel": batch * pixels,
        "four pixels": fours,
        "tile": tiles,
        "four taps": tiles * -(-taps // 4),
        "channel": fours * out_c,
        **outputs(node, batch * pixels * out_c),
    }
    gathered(parts, node, 4)
    counting.copied(parts, "clear", 1, packed_words.block_bytes(node))
    return parts


def depthwise_planes(node: Node) -> Mapping[str, int]:
    """tinyet_depthwise_s8_chw_3x3."""
    a, (batch, out_h, out_w, channels) = attrs_of(node), node.output.shape
    _, in_h, in_w, _ = node.input(0).shape
    rows, columns = (out_h - 1) * a.stride_h + 3, (out_w - 1) * a.stride_w + 3
    width, height = min(in_w, columns - a.pad_left), min(in_h, rows - a.pad_top)
    planes = batch * channels
    parts: Parts = {
        "call": 1,
        "plane": planes,
        "input row": planes * height,
        "inputs of a turn": planes * height * (width // 4),
        "input": planes * height * (width % 4),
        "output row": planes * out_h,
        **outputs(node, node.output.type.count),
    }
    counting.copied(parts, "clear", planes, rows * columns)
    return parts


COST_MODELS: Mapping[str, CostModel] = {
    "tinyet_conv2d_s8_packed_words": CostModel(packed_conv2d),
    "tinyet_conv2d_1x1_s8_packed_words": CostModel(packed_rows),
    "tinyet_linear_s8_packed_words": CostModel(packed_rows),
    "tinyet_conv2d_s8_4x4": CostModel(conv2d_4x4),
    "tinyet_depthwise_s8_chw_3x3": CostModel(depthwise_planes),
}
"""By the kernels' names."""
