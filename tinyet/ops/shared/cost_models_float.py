# SPDX-License-Identifier: Apache-2.0
"""Instruction counts of the float kernels with weights. In software floating point, the count of an operation depends
on its values: the average over random values is used."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tinyet.ir import Node
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.cost_models import Parts, axes, spans
from tinyet.opset import CostModel


def conv2d(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_f32: every tap of every output, the products of those in the image."""
    _, kernel_h, kernel_w, count = node.input(1).shape
    rows, columns = axes(node, attrs_of(node), kernel_h, kernel_w)
    batch, pixels, out_c = node.input(0).shape[0], rows.positions * columns.positions, node.output.shape[3]
    taps = batch * out_c * rows.in_image * columns.in_image
    return {
        "call": 1,
        "row": batch * rows.positions,
        "pixel": batch * pixels,
        "output": batch * pixels * out_c,
        "kernel row": batch * pixels * out_c * kernel_h,
        "tap outside": batch * pixels * out_c * kernel_h * kernel_w - taps,
        "tap": taps,
        "product": taps * count,
    }


def blocked(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_f32_2x4: four channels of two pixels, where both windows lie in the image's columns."""
    a, (out_c, kernel_h, kernel_w, in_c) = attrs_of(node), node.input(1).shape
    rows, columns = axes(node, a, kernel_h, kernel_w)
    batch, quads, rest = node.input(0).shape[0], out_c // 4, out_c % 4
    alone: list[int] = []  # columns that are no half of a pair
    whole, at = columns.whole, 0
    while at < columns.positions:
        two = at + 1 < columns.positions and bool(whole[at]) and bool(whole[at + 1])
        alone += [] if two else [at]
        at += 2 if two else 1
    doubles = (columns.positions - len(alone)) // 2
    there = int(columns.inside[alone].sum())
    height, seen = batch * rows.positions, batch * rows.in_image
    parts: Parts = {"call": 1, "row": height, "pair": height * doubles, "pixel": height * len(alone)}
    runs = kernel_w if a.dilation_w > 1 else 1
    for name, blocks, pixels, taps in (
        ("four by two", quads, doubles, doubles * kernel_w),
        ("four", quads, len(alone), there),
        ("one", rest, 2 * doubles + len(alone), 2 * doubles * kernel_w + there),
    ):
        parts[name] = height * blocks * pixels
        parts[f"{name}: kernel row"] = seen * blocks * pixels
        parts[f"{name}: run"] = seen * blocks * (taps if runs > 1 else pixels)
        parts[f"{name}: tap"] = seen * blocks * taps * in_c
    spans(parts, rows, batch)
    spans(parts, columns, height)
    return parts


def depthwise(node: Node) -> Mapping[str, int]:
    """tinyet_depthwise_f32: four channels of a pixel, the taps in the image."""
    _, kernel_h, kernel_w, _ = node.input(1).shape
    rows, columns = axes(node, attrs_of(node), kernel_h, kernel_w)
    batch, out_c = node.input(0).shape[0], node.output.shape[3]
    pixels = batch * rows.positions * columns.positions
    tap_rows, taps = batch * rows.in_image * columns.positions, batch * rows.in_image * columns.in_image
    parts: Parts = {"call": 1, "row": batch * rows.positions, "pixel": pixels}
    for name, blocks in (("four", out_c // 4), ("one", out_c % 4)):
        parts[name] = pixels * blocks
        parts[f"{name}: tap row"] = tap_rows * blocks
        parts[f"{name}: tap"] = taps * blocks
    spans(parts, rows, batch)
    spans(parts, columns, batch * rows.positions)
    return parts


def linear(node: Node) -> Mapping[str, int]:
    """tinyet_linear_f32: four outputs at a time."""
    (count, depth), rows = node.input(1).shape, math.prod(node.output.shape[:-1])
    return {
        "call": 1,
        "row": rows,
        "four": rows * (count // 4),
        "four: input": rows * (count // 4) * depth,
        "one": rows * (count % 4),
        "one: input": rows * (count % 4) * depth,
    }


COST_MODELS: Mapping[str, CostModel] = {
    "tinyet_conv2d_f32": CostModel(conv2d),
    "tinyet_conv2d_f32_2x4": CostModel(blocked),
    "tinyet_depthwise_f32": CostModel(depthwise),
    "tinyet_linear_f32": CostModel(linear),
}
"""By the kernels' names."""
