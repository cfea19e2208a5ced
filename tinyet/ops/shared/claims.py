# SPDX-License-Identifier: Apache-2.0
"""What the instructions of the portable int8 kernels grow with, loop by loop as their C files have them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared import pooling
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.window import Window
from tinyet.opset import Claim

Parts = dict[str, int]


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


def put(parts: Parts, first: Int64, count: int, times: Int64) -> None:
    """tinyet_put of `count` elements from `first` on, as often as `times` says."""
    odd = np.minimum(first & 1, count)
    _add(parts, "piece", int(times.sum()))
    _add(parts, "four values", int((times * ((count - odd) // 4)).sum()))
    _add(parts, "single value", int((times * (odd + (count - odd) % 4)).sum()))


def _add(parts: Parts, name: str, count: int) -> None:
    parts[name] = parts.get(name, 0) + count


def products(parts: Parts, pairs: int, depth: int, channels: int) -> None:
    """two_pixels, `pairs` times: sums over `depth` of `channels`."""
    steps = -(-depth // 2)
    doubles = pairs * -(-channels // 2)
    parts["two channels"] = doubles
    parts["odd channel"] = pairs * (channels % 2)
    parts["four steps"] = doubles * (steps // 4)
    parts["step"] = doubles * (steps % 4)
    parts["last steps"] = doubles * int(steps % 4 != 0)
    parts["output"] = 2 * pairs * channels


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
    return parts


def gather(parts: Parts, node: Node, rows: Axis, columns: Axis, times: int) -> None:
    """tinyet_gather of the patches of some pixels, so many times."""
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
    _add(parts, "edge row", times * rows.in_image * at_edge)
    _add(parts, "blank piece", blank_rows + blank_taps)
    _add(parts, "blank value", blank_rows * row + blank_taps * count)


def conv2d_1x1(node: Node) -> Mapping[str, int]:
    """tinyet_conv2d_1x1_s8."""
    pixels, channels = math.prod(node.output.shape[:3]), node.input(0).shape[3]
    pairs = -(-pixels // 2)
    parts: Parts = {"call": 1, "patch": 2 * pairs}
    put(parts, np.zeros(1, np.int64), channels, np.array([2 * pairs]))
    products(parts, pairs, channels, node.output.shape[3])
    return parts


def depthwise(node: Node) -> Mapping[str, int]:
    """tinyet_depthwise_s8: four channels of a pixel at a time."""
    _, kernel_h, kernel_w, _ = node.input(1).shape
    rows, columns = axes(node, attrs_of(node), kernel_h, kernel_w)
    batch, channels, taps = node.input(0).shape[0], node.input(0).shape[3], kernel_h * kernel_w
    inner = batch * int(rows.whole.sum() * columns.whole.sum())
    edge = batch * rows.positions * columns.positions - inner
    there = batch * rows.in_image * columns.in_image  # taps of all pixels in the image
    quads, rest = divmod(channels, 4)
    return {
        "call": 1,
        "tap": taps,
        "row": batch * rows.positions,
        "inner pixel": inner,
        "edge pixel": edge,
        "edge tap": edge * taps,
        "edge row": edge * kernel_h,
        "four channels": (inner + edge) * quads,
        "three taps of four channels": inner * quads * (taps // 3),
        "tap of four channels": inner * quads * (taps % 3),
        "edge tap of four channels": edge * taps * quads,
        "tap in the image": there,
        "single channel": (inner + edge) * rest,
        "tap of a channel": (inner + edge) * taps * rest,
        "output": (inner + edge) * channels,
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
        "tap of a channel": there * in_c,
        "product": there * out_c,
        "output": pixels * out_c,
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
        "output": rows * count,
    }


def elements(node: Node) -> Mapping[str, int]:
    """One value after another."""
    return {"call": 1, "output": node.output.type.count}


def pooled(node: Node) -> Mapping[str, int]:
    """Windows over images: taps in the image, channel by channel."""
    a = pooling.attrs_of(node)
    rows, columns = axes(node, a, a.kernel_h, a.kernel_w)
    batch, channels = node.input(0).shape[0], node.input(0).shape[3]
    pixels, taps = batch * rows.positions * columns.positions, batch * rows.in_image * columns.in_image
    tap_rows = batch * rows.in_image * columns.positions
    quads, rest = divmod(channels, 4)
    return {
        "call": 1,
        "row": batch * rows.positions,
        "pixel": pixels,
        "tap row": tap_rows,
        "tap": taps,
        "four channels": pixels * quads,
        "row of four channels": tap_rows * quads,
        "tap of four channels": taps * quads,
        "channel": pixels * rest,
        "row of a channel": tap_rows * rest,
        "tap of a channel": taps * rest,
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
    return {
        "call": 1,
        "value": values,
        "output": out,
        "single output": rest,
        "single value": values // max(out, 1) * rest,
    }


def softmax(node: Node) -> Mapping[str, int]:
    """Rows of values."""
    count = node.output.type.count
    return {"call": 1, "row": count // max(width(node), 1), "value": count}


CLAIMS: Mapping[str, Claim] = {
    "tinyet_conv2d_s8": Claim(conv2d),
    "tinyet_conv2d_1x1_s8": Claim(conv2d_1x1),
    "tinyet_depthwise_s8": Claim(depthwise),
    "tinyet_depthwise_multiplier_s8": Claim(depthwise_multiplier),
    "tinyet_linear_s8": Claim(linear),
    "tinyet_affine_s8": Claim(elements),
    "tinyet_add_s8": Claim(elements),
    "tinyet_sub_s8": Claim(elements),
    "tinyet_mul_s8": Claim(elements),
    "tinyet_avg_pool2d_s8": Claim(pooled),
    "tinyet_max_pool2d_s8": Claim(pooled),
    "tinyet_sum_s8": Claim(reduced),
    "tinyet_softmax_s8": Claim(softmax),
}
"""By the kernels' names."""
