# SPDX-License-Identifier: Apache-2.0
"""Shared parts of pools: the attributes of a window of a given size, and the shapes of their kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Node, Shape
from tinyet.ir.limits import MAX_MACS
from tinyet.ops.shared.window import (
    Window,
    image_fields,
    pad_image,
    taps,
    unpadded,
    window_fields,
    window_places,
    window_shape,
)
from tinyet.opset import Iteration, Nest, Outside, operand


@dataclass(frozen=True)
class Pool(Window):
    """input: x (N, H, W, C)."""

    kernel_h: int = 1
    kernel_w: int = 1


def attrs_of(node: Node) -> Pool:
    assert isinstance(node.attrs, Pool)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    attrs = attrs_of(node)
    size = window_shape(node, attrs, attrs.kernel_h, attrs.kernel_w)
    count = math.prod(size) * node.input(0).shape[0] * node.input(0).shape[3]
    if count * attrs.kernel_h * attrs.kernel_w > MAX_MACS:
        raise UnsupportedShape(
            f"{node.op}: {count} windows of {attrs.kernel_h}x{attrs.kernel_w} pixels", node.where
        )
    return ((node.input(0).shape[0], *size, node.input(0).shape[3]),)


_MOST = 2**15 - 1  # of an int16, in which AVR counts pixels, taps and what lies in the arena


def refuse_far(node: Node, target: Target) -> str | None:
    """Of integers on AVR: a reason where their windows or values are more than it counts."""
    x, attrs = node.input(0), node.attrs
    reach = max(x.type.count, node.output.type.count)
    if isinstance(attrs, Pool):
        rows = (
            x.shape[1] + attrs.pad_top + attrs.pad_bottom,
            attrs.stride_h,
            attrs.kernel_h * attrs.dilation_h,
        )
        columns = (
            x.shape[2] + attrs.pad_left + attrs.pad_right,
            attrs.stride_w,
            attrs.kernel_w * attrs.dilation_w,
        )
        steps = x.shape[2] * x.shape[3] * attrs.dilation_h, x.shape[3] * attrs.dilation_w
        reach = max(reach, *(sum(each) for each in (rows, columns)), *steps)
    return (
        "windows that reach farther than 16 bits count" if target.family == "avr" and reach > _MOST else None
    )


def iterate(node: Node, outside: Outside) -> Iteration:
    """outside: what padding reads as."""
    nest, attrs = Nest(), attrs_of(node)
    n, y, x, c = nest.all_parallel(node.output.shape)
    i, j = nest.all_reduced((attrs.kernel_h, attrs.kernel_w))
    read = operand(n, *window_places(attrs, y, x, i, j), c, outside=outside)
    return nest.iteration([read], [operand(n, y, x, c)])


def part(node: Node, axis: int, _count: int) -> Window:
    return unpadded(attrs_of(node), axis)


def windows(node: Node, image: Array, fill: float) -> list[Array]:
    """For each tap the (N, out_h, out_w, C) view of what it reads, `fill` outside the image."""
    attrs = attrs_of(node)
    return taps(pad_image(image, attrs, fill), attrs, attrs.kernel_h, attrs.kernel_w, *node.output.shape[1:3])


def shape_fields(node: Node) -> dict[str, int]:
    attrs = attrs_of(node)
    kernel = {"kernel_h": attrs.kernel_h, "kernel_w": attrs.kernel_w}
    return {**image_fields(node), **kernel, **window_fields(attrs)}
