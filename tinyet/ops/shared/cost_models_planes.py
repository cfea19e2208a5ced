# SPDX-License-Identifier: Apache-2.0
"""Instruction counts of the depthwise kernels that go from channel to channel, loop by loop as in their C files."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.ir import Node
from tinyet.numerics import clamp_range
from tinyet.ops.shared import counting, packed_twos, packed_words
from tinyet.ops.shared import depthwise_planes as depthwise_constants
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.two_products import Rescaling
from tinyet.opset import CostModel

Parts = counting.Parts
OF_TWO, OF_DIVIDED = 68, 6
"""Instructions of tinyet_depthwise_s8_chw_3x3_twos.c: for two outputs, and more where a line's taps are two runs."""
THREE, PAIR, SINGLE = 70, 51, 33
"""Instructions of tinyet_depthwise_s8_chw_3x3_2x1.c for M3, where sums begin with all that is added to them: for three
outputs of a row, for two, for one."""
SEVERAL, ROW = 2, 16
"""More of a row that has threes, and of one that has pairs; and of every row."""


def outputs(node: Node, count: int) -> Parts:
    """So many outputs, rounded."""
    sums = packed_words.rescaling(node)
    assert isinstance(sums, Rescaling)
    return {"output": count, "two-sided output": count * sums.two_sided}


def planes(node: Node, times: int, together: int = 1, *, transposed: bool = False) -> Parts:
    """Images of depthwise layers, channel by channel; the borders of so many that lie together are written so many
    times. transposed: their rows are the image's columns."""
    a, (batch, out_h, out_w, channels) = attrs_of(node), node.output.shape
    rows, columns = (out_h - 1) * a.stride_h + 3, (out_w - 1) * a.stride_w + 3
    height, width = packed_words.seen(node)
    count = batch * channels
    if transposed:
        width, height, out_h = height, width, out_w
    parts: Parts = {
        "call": 1,
        "plane": count,
        "input row": count * height,
        "inputs of a turn": count * height * (width // 4),
        "input": count * height * (width % 4),
        "output row": count * out_h,
    }
    counting.copied(parts, "clear", times, together * rows * columns)
    return parts


def depthwise_planes(node: Node) -> Mapping[str, int]:
    """tinyet_depthwise_s8_chw_3x3. Xtensa goes down the columns, where outputs of neighbouring rows share inputs, and
    copies inputs and outputs of four channels at once where it can."""
    (batch, _, out_w, channels), stride = node.output.shape, attrs_of(node).stride_h
    count = node.output.type.count
    parts = planes(node, 1) | outputs(node, count)
    if not depthwise_constants.by_words(node):
        by_bytes = ("input row", "inputs of a turn", "input", "output row", "output")
        parts |= {f"{name} by itself": parts[name] for name in by_bytes}
    counting.add(parts, "planes together", batch * -(-channels // depthwise_constants.TOGETHER))
    counting.add(parts, "column", batch * channels * out_w)
    counting.add(parts, "output two rows on", count * (stride == 2))
    counting.add(parts, "output that shares no row", count * (stride > 2))
    return parts


def line_of_twos(node: Node) -> int:
    """Instructions that gather a line of a channel in tinyet_depthwise_s8_chw_3x3_twos.c, as they stand there."""
    inputs, before = packed_twos.line_inputs(node), packed_twos.padding_before(node)
    if packed_twos.stride_along(node) == 1:
        pairs, odd = divmod(inputs, 2)
        return 12 + 9 * pairs + 2 * -(-pairs // 4) + 2 * (pairs > 0) + 6 * odd
    fours, rest = divmod(inputs - (before == 0), 4)
    behind = (8, 11, 11, 13)[rest] if 3 * fours < packed_twos.line_words(node) else 1
    return 9 + 4 * (before == 0) + 14 * fours + 2 * -(-fours // 2) + 2 * (fours > 0) + behind


def depthwise_twos(node: Node) -> Mapping[str, int]:
    """tinyet_depthwise_s8_chw_3x3_twos."""
    (batch, out_h, out_w, channels), (height, width) = node.output.shape, packed_words.seen(node)
    in_lines, lines, count = (width, out_w, out_h) if packed_twos.down(node) else (height, out_h, out_w)
    planes = batch * channels
    return {
        "call": 1,
        "border word": packed_twos.plane_bytes(node) // 4,
        "plane": planes,
        "instruction of lines": planes * in_lines * line_of_twos(node),
        "output line": planes * lines,
        "output line with an odd one": planes * lines * (count % 2) * (count > 1),
        # Random weights have nearly one part of channels whose lines are divided: as many instructions as there stand.
        "instruction of outputs": batch
        * lines
        * -(-count // 2)
        * (OF_TWO * channels + OF_DIVIDED * sum(packed_twos.divided(node))),
    }


def columns_2x1(node: Node) -> int:
    """Instructions of all channels' columns of outputs as they stand in the assembly for RISC-V, one or two at a time:
    what is before the first output, then each row of outputs."""
    a, (batch, out_h, out_w, channels) = attrs_of(node), node.output.shape
    folded = int(np.count_nonzero(depthwise_constants.folded(node).found))
    alike = a.stride_h if a.stride_h == a.stride_w and a.stride_h <= 2 else 0
    twos = out_w // 2 if alike else 0
    two = {0: 0, 1: 14 + 47 + 54 * (out_h - 1) + 29, 2: 14 + 18 + 61 * out_h}[alike]
    one = {1: 13 + 27 + 29 * (out_h - 1) + 16, 2: 13 + 10 + 33 * out_h}.get(a.stride_h, 14 + 38 * out_h)
    return batch * (channels * out_w * one + folded * twos * (two - 2 * one))


def row_2x1(outputs: int, stride: int, *, folded: bool) -> int:
    """Instructions of a row of outputs as they stand in the assembly for M3: three, two and one at a time."""
    several = stride == 1 and outputs > 1
    pairs = (-outputs % 3 if folded else outputs // 2) if several else 0
    threes = (outputs - 2 * pairs) // 3 if several and folded else 0
    single = outputs - 3 * threes - 2 * pairs
    begin = SEVERAL * ((threes > 0) + (pairs > 0)) - 3 * (not folded)
    return ROW + begin + THREE * threes + PAIR * pairs + SINGLE * single


def depthwise_columns_2x1(node: Node) -> Mapping[str, int]:
    """tinyet_depthwise_s8_cwh_3x3_2x1."""
    return depthwise_2x1(node, transposed=True)


def depthwise_2x1(node: Node, *, transposed: bool = False) -> Mapping[str, int]:
    """tinyet_depthwise_s8_chw_3x3_2x1."""
    (batch, out_h, out_w, channels), (low, high) = (
        node.output.shape,
        clamp_range(clamp_of(node), node.output.type),
    )
    stride = attrs_of(node).stride_w
    if transposed:
        out_h, out_w, stride = out_w, out_h, attrs_of(node).stride_h
    rows, pairs = batch * channels * out_h, out_w // 2 if stride == 1 else 0
    found = depthwise_constants.folded(node).found
    together = depthwise_constants.TOGETHER
    parts = dict(planes(node, 1, together, transposed=transposed))
    turns, rest, in_rows = (parts.pop(name) for name in ("inputs of a turn", "input", "input row"))
    if depthwise_constants.by_words(node):
        odd = rest // max(in_rows, 1)
        parts |= {
            "row of words": in_rows // together,
            "words of a turn": turns // together,
            "two words": in_rows // together * (odd // 2),
            "word": in_rows // together * (odd % 2),
        }
    else:
        parts |= {"input row": in_rows, "input": 4 * turns + rest}
    parts["planes together"] = batch * -(-channels // together)
    return parts | {
        "pair": rows * pairs,
        "row with pairs": rows * int(pairs > 0),
        "single": rows * (out_w - 2 * pairs),
        "instruction of columns": columns_2x1(node),
        "instruction of rows": batch * out_h * sum(row_2x1(out_w, stride, folded=bool(one)) for one in found),
        "output not folded": batch * out_h * out_w * int(np.count_nonzero(~found)),
        "clamped": node.output.type.count * int((low, high) != (-128, 127)),
    }


def depthwise_threes(node: Node) -> Mapping[str, int]:
    """tinyet_depthwise_s8_chw_3x3_threes."""
    a, (batch, _, out_w, channels) = attrs_of(node), node.output.shape
    low, high = clamp_range(clamp_of(node), node.output.type)
    in_band, rows, columns = depthwise_constants.band(node)
    width, planes = min(node.input(0).shape[2], columns - a.pad_left), batch * channels
    # As many instructions as there stand in the assembly for Thumb.
    of_row = (92 if a.stride_w == 1 else 95) * -(-out_w // 2) + (10 if out_w % 2 == 0 else 21)
    parts: Parts = {
        "call": 1,
        "word": rows * columns,
        "plane": planes,
        "row of a band": planes * rows,
        "four inputs of bands": planes * rows * (width // 4),
        "input of bands": planes * rows * (width % 4),
        "Thumb instruction of outputs": planes * (3 + in_band * of_row),
        "clamped": node.output.type.count * int((low, high) != (-128, 127)),
    }
    return parts


def depthwise_fives(node: Node) -> Mapping[str, int]:
    """tinyet_depthwise_s8_chw_3x3_fives."""
    a, (batch, _, out_w, channels) = attrs_of(node), node.output.shape
    low, high = clamp_range(clamp_of(node), node.output.type)
    in_band, rows, columns = depthwise_constants.band_of_fives(node)
    planes = batch * channels
    width = min(node.input(0).shape[2], columns - a.pad_left)
    return {
        "call": 1,
        "image": batch,
        "place": rows * columns,
        "row of bands": batch * rows,
        "plane": planes,
        "packed row": planes * rows,
        "packed place": planes * rows * width,
        "packed pair": planes * rows * (width // 2),
        "row of windows": planes * in_band,
        "window": planes * in_band * out_w,
        "clamped": node.output.type.count * int((low, high) != (-128, 127)),
    }


COST_MODELS: Mapping[str, CostModel] = {
    "tinyet_depthwise_s8_chw_3x3_2x1": CostModel(depthwise_2x1),
    "tinyet_depthwise_s8_cwh_3x3_2x1": CostModel(depthwise_columns_2x1),
    "tinyet_depthwise_s8_chw_3x3_threes": CostModel(depthwise_threes),
    "tinyet_depthwise_s8_chw_3x3_fives": CostModel(depthwise_fives),
    "tinyet_depthwise_s8_chw_3x3": CostModel(depthwise_planes),
    "tinyet_depthwise_s8_chw_3x3_twos": CostModel(depthwise_twos),
}
"""By the kernels' names."""
