# SPDX-License-Identifier: Apache-2.0
"""Instruction counts of the portable int8 kernels, loop by loop as in their C files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared import counting, pooling
from tinyet.ops.shared.broadcast import walked
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.window import Window
from tinyet.opset import CostModel

Parts = counting.Parts


@dataclass(frozen=True)
class Axis:
    """One axis of a window's walk. inside: (positions, taps) whether the tap lies in the image."""

    inside: npt.NDArray[np.bool_]

    @property
    def positions(self) -> int:
        return len(self.inside)

    @property
    def taps(self) -> int:
        return int(self.inside.shape[1])

    @property
    def whole(self) -> npt.NDArray[np.bool_]:
        """Positions whose taps all lie in the image."""
        return np.asarray(self.inside.all(axis=1), np.bool_)

    @property
    def in_image(self) -> int:
        """Taps of all positions that lie in the image."""
        return int(self.inside.sum())

    @property
    def outside(self) -> int:
        return self.inside.size - self.in_image

    @property
    def before(self) -> int:
        """Taps of all positions that lie before the image's first element."""
        first = np.where(self.inside.any(axis=1), self.inside.argmax(axis=1), self.taps)
        return int(first.sum())


def axis(size: int, out: int, kernel: int, stride: int, dilation: int, before: int) -> Axis:
    at = np.arange(out)[:, None] * stride - before + np.arange(kernel)[None, :] * dilation
    return Axis((at >= 0) & (at < size))


def axes(node: Node, a: Window, kernel_h: int, kernel_w: int) -> tuple[Axis, Axis]:
    """Rows and columns of a node whose input and output are images."""
    _, in_h, in_w, _ = node.input(0).shape
    _, out_h, out_w, _ = node.output.shape
    return (
        axis(in_h, out_h, kernel_h, a.stride_h, a.dilation_h, a.pad_top),
        axis(in_w, out_w, kernel_w, a.stride_w, a.dilation_w, a.pad_left),
    )


def spans(parts: Parts, along: Axis, times: int) -> None:
    """tinyet_span_inside at every position, so many times: a test where the window lies in the image, loops else."""
    edge = Axis(along.inside[~along.whole])
    counting.add(parts, "edge span", times * edge.positions)
    counting.add(parts, "tap before the image", times * edge.before)
    counting.add(parts, "tap counted", times * edge.in_image)


def put(parts: Parts, first: Int64, count: int, times: Int64) -> None:
    """tinyet_im2col_copy of `count` elements from `first` on, as often as `times` says."""
    odd = np.minimum(first & 1, count)
    fours = (count - odd) // 4
    counting.add(parts, "piece", int(times.sum()))
    counting.add(parts, "piece with fours", int((times * np.minimum(fours, 1)).sum()))
    counting.add(parts, "odd value", int((times * odd).sum()))
    counting.add(parts, "four values", int((times * fours).sum()))
    counting.add(parts, "single value", int((times * ((count - odd) % 4)).sum()))


def outputs(node: Node, count: int) -> Parts:
    """So many outputs, rounded and clamped. Compilers jump over what a clamp need not do: values at the lower limit, as
    many rectified ones are, cost less; they are taken to be as many as of random inputs."""
    return {"output": count, "output not rectified": count * math.isinf(clamp_of(node)[0])}


def products(parts: Parts, pairs: int, depth: int, channels: int) -> None:
    """two_pixels, `pairs` times: sums over `depth` of `channels`."""
    steps = -(-depth // 2)
    counting.copied(parts, "clear", 1, 8 * steps)
    doubles = pairs * -(-channels // 2)
    parts["pair of pixels"] = pairs
    parts["channels"] = doubles
    parts["four steps"] = doubles * (steps // 4)
    parts["step"] = doubles * (steps % 4)
    parts["last steps"] = doubles * int(steps % 4 != 0)
    parts["two channels of two pixels"] = pairs * (channels // 2)


def conv2d(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_s8: patches of two pixels, then two channels at a time."""
    a, (out_c, kernel_h, kernel_w, count) = attrs_of(node), node.input(1).shape
    rows, columns = axes(node, a, kernel_h, kernel_w)
    batch, pixels = node.input(0).shape[0], rows.positions * columns.positions
    parts: Parts = {"call": 1, "patch": 2 * batch * a.groups * -(-pixels // 2)}
    gather(parts, node, rows, columns, batch * a.groups)
    if pixels % 2:  # the last pixel is its own neighbour
        gather(parts, node, Axis(rows.inside[-1:]), Axis(columns.inside[-1:]), batch * a.groups)
    parts["kernel row"] = parts["patch"] * kernel_h
    products(parts, batch * a.groups * -(-pixels // 2), kernel_h * kernel_w * count, out_c // a.groups)
    return parts | outputs(node, 2 * batch * -(-pixels // 2) * out_c)


def gather(parts: Parts, node: Node, rows: Axis, columns: Axis, times: int) -> None:
    """tinyet_im2col of the patches of some pixels, so many times."""
    a, (_, kernel_h, kernel_w, count) = attrs_of(node), node.input(1).shape
    together = a.dilation_w == 1 and a.groups == 1
    whole = columns.whole if together else np.zeros_like(columns.whole)
    row, start = kernel_w * count, np.arange(kernel_h) * kernel_w * count
    seen, at_edge = rows.inside.sum(axis=0), int((~whole).sum())
    put(parts, start, row, times * seen * int(whole.sum()))
    edge = columns.inside[~whole].sum(axis=0)  # of each column of the kernel
    first = start[:, None] + np.arange(kernel_w)[None, :] * count
    put(parts, first, count, times * seen[:, None] * edge[None, :])
    blank_rows = times * rows.outside * columns.positions
    blank_taps = times * rows.in_image * int(at_edge * kernel_w - edge.sum())
    counting.add(parts, "edge row", times * rows.in_image * at_edge)
    counting.add(parts, "blank piece", blank_rows + blank_taps)
    counting.add(parts, "blank value", blank_rows * row + blank_taps * count)


def conv2d_1x1(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_1x1_s8."""
    pixels, channels = math.prod(node.output.shape[:3]), node.input(0).shape[3]
    pairs = -(-pixels // 2)
    parts: Parts = {"call": 1, "patch": 2 * pairs}
    put(parts, np.zeros(1, np.int64), channels, np.array([2 * pairs]))
    products(parts, pairs, channels, node.output.shape[3])
    return parts | outputs(node, 2 * pairs * node.output.shape[3])


def depthwise(node: Node) -> Mapping[str, int]:
    """tinyet_depthwise_s8: four channels of a pixel at a time."""
    _, kernel_h, kernel_w, _ = node.input(1).shape
    rows, columns = axes(node, attrs_of(node), kernel_h, kernel_w)
    batch, channels, taps = node.input(0).shape[0], node.input(0).shape[3], kernel_h * kernel_w
    inner = batch * int(rows.whole.sum() * columns.whole.sum())
    edge = batch * rows.positions * columns.positions - inner
    there = batch * rows.in_image * columns.in_image  # taps of all pixels in the image
    quads, rest = divmod(channels, 4)
    parts: Parts = {}
    spans(parts, rows, batch)
    spans(parts, columns, batch * rows.positions)
    return parts | {
        "call": 1,
        "tap": taps,
        "row": batch * rows.positions,
        "inner pixel": inner,
        "edge pixel": edge,
        "edge tap": edge * taps,
        "edge row": edge * kernel_h,
        "edge tap in a row of the image": batch * rows.in_image * columns.positions * kernel_w - inner * taps,
        "edge tap in the image": there - inner * taps,
        "pixel of four channels": (inner + edge) * min(quads, 1),
        "pixel of single channels": (inner + edge) * min(rest, 1),
        "four channels": (inner + edge) * quads,
        "edge four channels": edge * quads,
        "four channels with three taps": inner * quads * min(taps // 3, 1),
        "three taps of four channels": inner * quads * (taps // 3),
        "last taps of four channels": inner * quads * min(taps % 3, 1),
        "tap of four channels": inner * quads * (taps % 3),
        "edge tap of four channels": edge * taps * quads,
        "edge tap of four channels in the image": (there - inner * taps) * quads,
        "single channel": (inner + edge) * rest,
        "tap of a channel": (inner + edge) * taps * rest,
        **outputs(node, node.output.type.count),
    }


def depthwise_multiplier(node: Node) -> Mapping[str, int]:
    """tinyet_depthwise_multiplier_s8: the taps in the image, one after another, into sums of all channels."""
    _, kernel_h, kernel_w, _ = node.input(1).shape
    rows, columns = axes(node, attrs_of(node), kernel_h, kernel_w)
    batch, out_c, in_c = node.input(0).shape[0], node.output.shape[3], node.input(0).shape[3]
    pixels, there = batch * rows.positions * columns.positions, batch * rows.in_image * columns.in_image
    return {
        "call": 1,
        "pixel": pixels,
        "tap": there,
        "tap row": batch * rows.in_image * columns.positions,
        "row before the image": batch * rows.before * columns.positions,
        "row behind the image": batch * (rows.outside - rows.before) * columns.positions,
        "tap before the image": batch * rows.in_image * columns.before,
        "tap behind the image": batch * rows.in_image * (columns.outside - columns.before),
        "tap of a channel": there * in_c,
        "product": there * out_c,
        **outputs(node, node.output.type.count),
    }


def linear(node: Node) -> Mapping[str, int]:
    """tinyet_linear_s8: four outputs at a time."""
    (count, depth), rows = node.input(1).shape, math.prod(node.output.shape[:-1])
    groups = rows * -(-count // 4)
    return {
        "call": 1,
        "row": rows,
        "four outputs": groups,
        "odd block": groups * (depth // 4 % 2),
        "two blocks": groups * (depth // 8),
        "rest": groups * (depth % 4),
        **outputs(node, node.output.type.count),
    }


def pairs(node: Node) -> Mapping[str, int]:
    """One value of both operands after another."""
    return walked(node) | outputs(node, node.output.type.count)


def pairs_by_fours(node: Node) -> Mapping[str, int]:
    """The same, where both operands move on four values of a row in a turn."""
    parts = dict(pairs(node))
    if parts["value"] > 0:
        row = parts["value"] // parts["row"]
        parts |= {"turn of four": parts["row"] * (row // 4), "value by itself": parts["row"] * (row % 4)}
    return parts


def pooled(node: Node) -> Mapping[str, int]:
    """Windows over images: taps in the image, channel by channel."""
    a = pooling.attrs_of(node)
    rows, columns = axes(node, a, a.kernel_h, a.kernel_w)
    batch, channels = node.input(0).shape[0], node.input(0).shape[3]
    pixels, taps = batch * rows.positions * columns.positions, batch * rows.in_image * columns.in_image
    tap_rows = batch * rows.in_image * columns.positions
    parts = windows(channels, pixels, tap_rows, taps)
    spans(parts, rows, batch)
    spans(parts, columns, batch * rows.positions)
    return parts | {"call": 1, "row": batch * rows.positions}


def windows(channels: int, pixels: int, tap_rows: int, taps: int) -> Parts:
    """So many pixels with their windows, whose taps and rows of taps are these: four channels at a time."""
    quads, rest = divmod(channels, 4)
    return {
        "pixel": pixels,
        "tap row": tap_rows,
        "tap": taps,
        "pixel of four channels": pixels * min(quads, 1),
        "pixel of single channels": pixels * min(rest, 1),
        "four channels": pixels * quads,
        "row of four channels": tap_rows * quads,
        "tap of four channels": taps * quads,
        "channel": pixels * rest,
        "row of a channel": tap_rows * rest,
        "tap of a channel": taps * rest,
        # Of a core on which four channels take no longer than fewer.
        "row of single channels": tap_rows * min(rest, 1),
        "tap of single channels": taps * min(rest, 1),
        "value": taps * channels,
        "output": pixels * channels,
    }


def width(node: Node) -> int:
    """Of the output's last axis; an output without dimensions is one value."""
    return node.output.shape[-1] if node.output.shape else 1


def reduced(node: Node) -> Mapping[str, int]:
    """Sums over some axes."""
    values, out = node.input(0).type.count, node.output.type.count
    inner = width(node)
    rest = out // max(inner, 1) * (inner % 4)
    fours = out // max(inner, 1) * -(-inner // 4)
    return {
        "call": 1,
        "value": values,
        "output": out,
        "single output": rest,
        "single value": values // max(out, 1) * rest,
        # Of a core on which four sums take no longer than fewer.
        "four sums": fours,
        "four values": values // max(out, 1) * fours,
    }


def softmax(node: Node) -> Mapping[str, int]:
    """Rows of values."""
    count = node.output.type.count
    return {"call": 1, "row": count // max(width(node), 1), "value": count}


COST_MODELS: Mapping[str, CostModel] = {
    "tinyet_conv2d_s8": CostModel(conv2d),
    "tinyet_conv2d_1x1_s8": CostModel(conv2d_1x1),
    "tinyet_depthwise_s8": CostModel(depthwise),
    "tinyet_depthwise_multiplier_s8": CostModel(depthwise_multiplier),
    "tinyet_linear_s8": CostModel(linear),
    "tinyet_conv2d_s8_rne": CostModel(conv2d),
    "tinyet_conv2d_1x1_s8_rne": CostModel(conv2d_1x1),
    "tinyet_depthwise_s8_rne": CostModel(depthwise),
    "tinyet_depthwise_multiplier_s8_rne": CostModel(depthwise_multiplier),
    "tinyet_linear_s8_rne": CostModel(linear),
    "tinyet_affine_s8": CostModel(pairs_by_fours),
    "tinyet_add_s8": CostModel(pairs),
    "tinyet_sub_s8": CostModel(pairs),
    "tinyet_mul_s8": CostModel(pairs),
    "tinyet_mul_s8_rne": CostModel(pairs),
    "tinyet_avg_pool2d_s8": CostModel(pooled),
    "tinyet_max_pool2d_s8": CostModel(pooled),
    "tinyet_sum_s8": CostModel(reduced),
    "tinyet_sum_s8_rne": CostModel(reduced),
    "tinyet_softmax_s8": CostModel(softmax),
    "tinyet_softmax_scaled_s8": CostModel(softmax),
    "tinyet_softmax_s8_rne": CostModel(softmax),
    "tinyet_softmax_s8_s16": CostModel(softmax),
    "tinyet_softmax_s16": CostModel(softmax),
    "tinyet_softmax_scaled_s16": CostModel(softmax),
    "tinyet_softmax_f32": CostModel(softmax),
    "tinyet_log_softmax_s8": CostModel(softmax),
    "tinyet_log_softmax_scaled_s8": CostModel(softmax),
    "tinyet_log_softmax_f32": CostModel(softmax),
    "tinyet_avg_pool2d_f32": CostModel(pooled),
    "tinyet_max_pool2d_f32": CostModel(pooled),
    "tinyet_sum_f32": CostModel(reduced),
    "tinyet_conv2d_s8_w4": CostModel(conv2d),
    "tinyet_conv2d_1x1_s8_w4": CostModel(conv2d_1x1),
    "tinyet_depthwise_s8_w4": CostModel(depthwise),
    "tinyet_linear_s8_w4": CostModel(linear),
    "tinyet_conv2d_s16": CostModel(conv2d),
    "tinyet_depthwise_s16": CostModel(depthwise),
    "tinyet_depthwise_multiplier_s16": CostModel(depthwise_multiplier),
    "tinyet_linear_s16": CostModel(linear),
    "tinyet_max_pool2d_s16": CostModel(pooled),
    "tinyet_add_s16": CostModel(pairs),
    "tinyet_sub_s16": CostModel(pairs),
    "tinyet_mul_s16": CostModel(pairs),
    "tinyet_sum_s16": CostModel(reduced),
}
"""By the kernels' names."""
