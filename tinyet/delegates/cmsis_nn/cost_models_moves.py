# SPDX-License-Identifier: Apache-2.0
"""Instruction counts of CMSIS-NN's functions that move values or multiply them with other values."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tinyet.delegates.cmsis_nn import movement
from tinyet.delegates.cmsis_nn.cost_models import VECTOR, blocks, dot
from tinyet.ir import Node
from tinyet.ops import permute
from tinyet.ops.conv_transpose2d import attrs_of
from tinyet.ops.shared.cost_models import Parts
from tinyet.opset import CostModel


def copied(parts: Parts, name: str, times: int, values: int) -> None:
    """So many runs of so many bytes."""
    parts[name] = times
    parts[f"{name}: vector"] = times * blocks(values, VECTOR)
    parts[f"{name}: sixteen"] = times * (values // 16)
    parts[f"{name}: four"] = times * (values % 16 // 4)
    parts[f"{name}: rest"] = times * (values % 4)


def padded(node: Node) -> Mapping[str, int]:
    """Rows of the last dimension, with what stands before and behind them; whole rows of the value."""
    axes = movement.pad_axes(node)
    *outer, last = axes
    rows, all_rows = math.prod(a.size for a in outer), math.prod(a.size + a.before + a.after for a in outer)
    parts: Parts = {"call": 1, "dimension": len(axes), "row": rows, "blank row": all_rows - rows}
    copied(parts, "copy", rows, last.size)
    wide = last.size + last.before + last.after
    copied(parts, "fill", all_rows - rows, wide)
    parts["edge"] = rows * (min(last.before, 1) + min(last.after, 1))
    parts["value of an edge"] = rows * (last.before + last.after)
    return parts


def transposed(node: Node) -> Mapping[str, int]:
    """Value by value, by the number of dimensions that move; runs where the last one stays."""
    sizes, order = movement.merged_order(node.input(0).shape, permute.attrs_of(node).order)
    word = "".join(map(str, order))
    last = sizes[-1] if order[-1] == len(order) - 1 else 1
    runs = math.prod(sizes) // last
    parts: Parts = {"call": 1, f"value of {word}": math.prod(sizes), f"run of {word}": runs}
    copied(parts, "copy", runs if last > 1 else 0, last)
    return parts


def concatenated(node: Node) -> Mapping[str, int]:
    """Rows of each input."""
    rows, widths = movement.rows_and_widths(node)
    parts: Parts = {"call": 1, "input": len(widths)}
    for width in widths:
        one: Parts = {}
        copied(one, "row", rows, width)
        for name, count in one.items():
            parts[name] = parts.get(name, 0) + count
    return parts


def chosen(node: Node) -> Mapping[str, int]:
    """One value of both operands after another."""
    count = node.output.type.count
    same = int(node.input(0).shape == node.input(1).shape)
    return {"call": 1, "value": count, "value of equals": count * same, "vector": blocks(count, VECTOR)}


def multiplied(node: Node) -> Mapping[str, int]:
    """A fully connected layer for each matrix of the batch, behind a transposition of the second operand."""
    (rows, depth), columns = node.input(0).shape[-2:], node.output.shape[-1]
    batch = math.prod(node.output.shape[:-2])
    parts: Parts = {
        "call": 1,
        "matrix": batch,
        "moved": batch * depth * columns,
        "row": batch * rows,
        "output": batch * rows * columns,
        "sum": batch * columns * depth,
    }
    dot(parts, "two columns", batch * rows * (columns // 2), depth)
    dot(parts, "odd column", batch * rows * (columns % 2), depth)
    dot(parts, "three columns", batch * rows * (columns // 3), depth)
    dot(parts, "last columns of three", batch * rows * (columns % 3), depth)
    dot(parts, "four columns", batch * rows * (columns // 4), depth)
    return parts


def by_rows(node: Node) -> Mapping[str, int]:
    """Every pixel of the image times all weights, added to rows that wait, which are rounded when all is in them."""
    a, (out_c, kernel_h, kernel_w, count) = attrs_of(node), node.input(1).shape
    (batch, out_h, out_w, _), (_, in_h, in_w, _) = node.output.shape, node.input(0).shape
    pixels, columns = batch * in_h * in_w, kernel_h * kernel_w * out_c
    parts: Parts = {
        "call": 1,
        "row": batch * in_h,
        "pixel": pixels,
        "pair of pixels": batch * in_h * blocks(in_w, 2),
        "sum": pixels * columns,
        "waiting": batch * in_h * a.stride_h * out_w * out_c,
        "output": batch * out_h * out_w * out_c,
        "weights": count * columns,
    }
    dot(parts, "column of a pixel", pixels * columns, count)
    return parts


COST_MODELS: Mapping[str, CostModel] = {
    "arm_pad_s8": CostModel(padded),
    "arm_transpose_s8": CostModel(transposed),
    "arm_concatenation_s8_x": CostModel(concatenated),
    "arm_minimum_s8": CostModel(chosen),
    "arm_maximum_s8": CostModel(chosen),
    "arm_batch_matmul_s8": CostModel(multiplied),
    "arm_transpose_conv_s8": CostModel(by_rows),
}
"""By the functions' names."""
