# SPDX-License-Identifier: Apache-2.0
"""Instruction counts of CMSIS-NN's functions. One model serves plain, DSP and vector code, and all types of
activations and weights: an absent part costs nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tinyet.delegates.cmsis_nn.linear import rows_of
from tinyet.ir import Node
from tinyet.ops.shared import pooling
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.cost_models import Parts, axes, outputs, width
from tinyet.opset import CostModel

VECTOR = 16
"""Bytes of a vector."""
MVE_BLOCK = 124
"""Channels that arm_depthwise_conv_s8_opt takes at a time."""


def blocks(count: int, size: int) -> int:
    """Of `size`, to hold `count`."""
    return -(-count // size)


def dot(parts: Parts, name: str, times: int, depth: int) -> None:
    """`times` sums over `depth`."""
    if times:
        parts[name] = times
        parts[f"{name}: vector"] = times * blocks(depth, VECTOR)
        parts[f"{name}: sixteen"] = times * (depth // 16)
        parts[f"{name}: four"] = times * (depth % 16 // 4)
        parts[f"{name}: rest"] = times * (depth % 4)


def products(parts: Parts, pixels: int, channels: int, depth: int) -> None:
    """A matrix product: four pixels by a channel at a time with vectors, two by two else."""
    dot(parts, "two channels of two pixels", pixels // 2 * (channels // 2), depth)
    dot(parts, "odd channel of two pixels", pixels // 2 * (channels % 2), depth)
    dot(parts, "channel of four pixels", pixels // 4 * channels, depth)
    dot(parts, "channel of an odd pixel", pixels % 2 * channels, depth)
    dot(parts, "odd channel of an odd pixel", pixels % 2 * (channels % 2), depth)
    dot(parts, "channel of a last pixel", pixels % 4 * channels, depth)
    parts["four pixels"] = pixels // 4
    parts["last pixel"] = pixels % 4
    parts["two channels"] = channels // 2
    parts["sum of two channels"] = channels // 2 * depth
    parts["output"] = pixels * channels


def copies(parts: Parts, taps: int, blank: int, values: int) -> None:
    """Taps in the image, and outside: copied and filled, so many values each."""
    for name, times in (("copy", taps), ("fill", blank)):
        parts[name] = times
        parts[f"{name}: vector"] = times * blocks(values, VECTOR)
        parts[f"{name}: four"] = times * (values // 4)
        parts[f"{name}: byte"] = times * values


def convolve(node: Node) -> Mapping[str, int]:
    a, (out_c, kernel_h, kernel_w, count) = attrs_of(node), node.input(1).shape
    rows, columns = axes(node, a, kernel_h, kernel_w)
    batch, pixels = node.input(0).shape[0] * a.groups, rows.positions * columns.positions
    taps, depth = batch * rows.in_image * columns.in_image, kernel_h * kernel_w * count
    parts: Parts = {
        "call": 1,
        "pixel": batch * pixels,
        "kernel row": batch * pixels * kernel_h,
        "row": batch * rows.positions,
        "four depth": batch * pixels * (depth // 4),
        "depth": batch * pixels * (depth % 4),
    }
    copies(parts, taps, batch * pixels * kernel_h * kernel_w - taps, count)
    products(parts, batch * pixels, out_c // a.groups, depth)
    return parts


def convolve_1x1_fast(node: Node) -> Mapping[str, int]:
    """One matrix product of all pixels."""
    (out_c, _, _, depth), (batch, out_h, out_w, _) = node.input(1).shape, node.output.shape
    parts: Parts = {"call": 1}
    products(parts, batch * out_h * out_w, out_c, depth)
    return parts


def convolve_1x1(node: Node) -> Mapping[str, int]:
    """A matrix product for each row of pixels."""
    (out_c, _, _, depth), (batch, out_h, out_w, _) = node.input(1).shape, node.output.shape
    row: Parts = {"row": 1}
    products(row, out_w, out_c, depth)
    return {"call": 1, **{name: batch * out_h * count for name, count in row.items()}}


def depthwise(node: Node) -> Mapping[str, int]:
    _, kernel_h, kernel_w, _ = node.input(1).shape
    a, out_c = attrs_of(node), node.output.shape[3]
    rows, columns = axes(node, a, kernel_h, kernel_w)
    batch, channels = node.input(0).shape[0], node.input(0).shape[3]
    pixels, taps = batch * rows.positions * columns.positions, batch * rows.in_image * columns.in_image
    quads, kernel = blocks(channels, 4), kernel_h * kernel_w
    inner = batch * int(rows.whole.sum() * columns.whole.sum())
    parts: Parts = {
        "call": 1,
        "row": batch * rows.positions,
        "pixel": pixels,
        "kernel row": pixels * kernel_h,
        "tap": taps,
        "tap row": batch * rows.in_image * columns.positions,
        "channel of a tap row": batch * rows.in_image * columns.positions * (channels // 4),
        "tap row of a channel": batch * rows.in_image * columns.positions * channels,
        "channel of a pixel": pixels * channels,
        "four channels of a pixel": pixels * quads,
        "whole four channels of a pixel": pixels * (channels // 4),
        "last channel of a pixel": pixels * (channels % 4),
        "four channels of four pixels": pixels // 4 * quads,
        "tap of four channels of four pixels": pixels // 4 * quads * kernel,
        "four channels of a last pixel": pixels % 4 * quads,
        "tap of four channels of a last pixel": pixels % 4 * quads * kernel,
        "two taps of four channels": pixels * (channels // 4) * (kernel // 2),
        "odd tap of four channels": pixels * (channels // 4) * (kernel % 2),
        "kernel tap of a last channel": pixels * (channels % 4) * kernel,
        "tap of four channels": taps * (channels // 4),
        "tap of a last channel": taps * (channels % 4),
        "dilated channel of a pixel": pixels * channels * ((a.dilation_h > 1) + (a.dilation_w > 1)),
        "edge pixel": pixels - inner,
        "edge four channels": (pixels - inner) * (channels // 4),
        "product": taps * out_c,
        **outputs(node, pixels * out_c),
    }
    copies(parts, taps, pixels * kernel - taps, min(channels, MVE_BLOCK))
    return parts


def fully_connected(node: Node) -> Mapping[str, int]:
    (count, depth), rows = node.input(1).shape, rows_of(node)
    parts: Parts = {"call": 1, "row": rows, "output": rows * count}
    dot(parts, "four outputs", rows * (count // 4), depth)
    dot(parts, "last output of four", rows * (count % 4), depth)
    dot(parts, "two outputs", rows * (count // 2), depth)
    dot(parts, "odd output", rows * (count % 2), depth)
    dot(parts, "three outputs", rows * (count // 3), depth)
    dot(parts, "last output of three", rows * (count % 3), depth)
    return parts


def elements(node: Node) -> Mapping[str, int]:
    count = node.output.type.count
    return {"call": 1, "four outputs": count // 4, "rest": count % 4, "vector": blocks(count, 4)}


def pools(node: Node) -> Mapping[str, int]:
    a = pooling.attrs_of(node)
    rows, columns = axes(node, a, a.kernel_h, a.kernel_w)
    batch, channels = node.input(0).shape[0], node.input(0).shape[3]
    pixels, taps = batch * rows.positions * columns.positions, batch * rows.in_image * columns.in_image
    # As often is one of n random values greater than all before it, but for the first: 1/2 + 1/3 + ... + 1/n.
    harmonic = np.cumsum([0.0, 0.0, *(1 / n for n in range(2, a.kernel_h * a.kernel_w + 1))])
    records = harmonic[rows.inside.sum(axis=1)[:, None] * columns.inside.sum(axis=1)[None, :]]
    return {
        "call": 1,
        "row": batch * rows.positions,
        "pixel": pixels,
        "vector of a pixel": pixels * blocks(channels, VECTOR),
        "row of a vector": batch * rows.in_image * columns.positions * blocks(channels, VECTOR),
        "vector of a tap": taps * blocks(channels, VECTOR),
        "last lanes of a tap": taps * int(channels % VECTOR != 0),
        "tap row": batch * rows.in_image * columns.positions,
        "tap": taps,
        "four values": taps * (channels // 4),
        "value": taps * channels,
        "rest of a tap": taps * (channels % 4),
        "later tap": taps - pixels,
        "later tap with a rest": (taps - pixels) * min(channels % 4, 1),
        "four values of a later tap": (taps - pixels) * (channels // 4),
        "rest of a later tap": (taps - pixels) * (channels % 4),
        "greater value": round(channels * batch * float(records.sum())),
        "kernel row of a channel": pixels * channels * a.kernel_h,
        "kernel tap of a channel": pixels * channels * a.kernel_h * a.kernel_w,
        "kernel tap in a row of the image": batch * rows.in_image * columns.positions * a.kernel_w * channels,
        "output": pixels * channels,
    }


def softmax(node: Node) -> Mapping[str, int]:
    rows, values = math.prod(node.output.shape[:-1]), width(node)
    return {"call": 1, "row": rows, "vector": rows * blocks(values, 4), "value": rows * values}


COST_MODELS: Mapping[str, CostModel] = {
    "arm_convolve_1x1_s8_fast": CostModel(convolve_1x1_fast),
    "arm_convolve_1x1_s8": CostModel(convolve_1x1),
    "arm_convolve_s8": CostModel(convolve),
    "arm_depthwise_conv_3x3_s8": CostModel(depthwise),
    "arm_depthwise_conv_s8_opt": CostModel(depthwise),
    "arm_depthwise_conv_s8": CostModel(depthwise),
    "arm_fully_connected_s8": CostModel(fully_connected),
    "arm_fully_connected_per_channel_s8": CostModel(fully_connected),
    "arm_elementwise_add_s8": CostModel(elements),
    "arm_elementwise_mul_s8": CostModel(elements),
    "arm_avgpool_s8": CostModel(pools),
    "arm_max_pool_s8": CostModel(pools),
    "arm_softmax_s8": CostModel(softmax),
    "arm_convolve_1_x_n_s8": CostModel(convolve),
    "arm_convolve_s16": CostModel(convolve),
    "arm_convolve_s4": CostModel(convolve),
    "arm_depthwise_conv_s16": CostModel(depthwise),
    "arm_fully_connected_s16": CostModel(fully_connected),
    "arm_fully_connected_s4": CostModel(fully_connected),
    "arm_elementwise_add_s16": CostModel(elements),
    "arm_elementwise_mul_s16": CostModel(elements),
    "arm_avgpool_s16": CostModel(pools),
    "arm_max_pool_s16": CostModel(pools),
}
"""By the functions' names."""
