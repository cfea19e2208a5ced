# SPDX-License-Identifier: Apache-2.0
"""Shared parts of two-dimensional convolutions, with quantized or dynamically quantized input: attributes, shapes,
exact sums, packed weights."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Node, Shape
from tinyet.numerics import NO_CLAMP, Float64
from tinyet.ops.shared.integers import exact_dtype
from tinyet.ops.shared.packing import interleave_pairs, interleave_quads
from tinyet.ops.shared.shapes import expect_rank
from tinyet.ops.shared.weighted import expect_bias
from tinyet.ops.shared.window import (
    Window,
    pad_image,
    taps,
    unpadded,
    window_fields,
    window_places,
    window_shape,
    zero_of,
)
from tinyet.opset import GROUPS, Constant, Iteration, Nest, Struct, operand

HEADERS = ("tinyet_conv2d.h",)
PAIRS = (*HEADERS, "tinyet_int16x2.h")
DOT = (*PAIRS, "tinyet_dot_2x2.h")
PATCHES = (*DOT, "tinyet_im2col.h")
DEPTHWISE = (*PAIRS, "tinyet_depthwise.h", "tinyet_window.h")


@dataclass(frozen=True)
class Convolution(Window):
    """inputs: x (N, H, W, C); weights (out_c, kernel_h, kernel_w, C / groups); bias (out_c,) or None.

    Weights and bias are constants. clamp: real bounds of the fused activation: (0, inf) is ReLU.
    """

    groups: int = field(default=1, metadata=GROUPS)
    clamp: tuple[float, float] = NO_CLAMP


def attrs_of(node: Node) -> Convolution:
    assert isinstance(node.attrs, Convolution)
    return node.attrs


def expect_groups(node: Node, groups: int) -> tuple[Shape, Shape]:
    """The shapes of x and weights; raises UnsupportedShape where they or the bias do not belong together."""
    shape, weights = expect_rank(node, 0, 4), expect_rank(node, 1, 4)
    channels, out_c, group_c = shape[3], weights[0], weights[3]
    if channels != group_c * groups or out_c % groups:
        what = f"{channels} channels in and {out_c} out do not divide into {groups} groups of {group_c}"
        raise UnsupportedShape(f"{node.op}: {what}", node.where)
    expect_bias(node, out_c, "channels")
    return shape, weights


def infer(node: Node) -> tuple[Shape, ...]:
    attrs = attrs_of(node)
    (batch, *_), (out_c, kernel_h, kernel_w, _) = expect_groups(node, attrs.groups)
    return ((batch, *window_shape(node, attrs, kernel_h, kernel_w), out_c),)


def iterate(node: Node) -> Iteration:
    """Padding reads as zero. In float it is left out of the sums, which differ from those with zeros by a zero's sign
    at most."""
    nest, a, (batch, out_h, out_w, out_c) = Nest(), attrs_of(node), node.output.shape
    _, kernel_h, kernel_w, group_c = node.input(1).shape
    n, y, x, g, o = nest.all_parallel((batch, out_h, out_w, a.groups, out_c // a.groups))
    i, j, c = nest.all_reduced((kernel_h, kernel_w, group_c))
    channel = (out_c // a.groups) * g + o
    image = window_places(a, y, x, i, j)
    read = operand(n, *image, group_c * g + c, outside=zero_of(node.input(0).type))
    bias = None if node.optional_input(2) is None else operand(channel)
    return nest.iteration([read, operand(channel, i, j, c), bias], [operand(n, y, x, channel)])


def part(node: Node, axis: int, _count: int) -> Window:
    return unpadded(attrs_of(node), axis)


def weights_of_taps(weights: Array) -> Array:
    """(out_c, taps, C / groups)"""
    return weights.reshape(weights.shape[0], -1, weights.shape[3])


def tap_views(node: Node, image: npt.NDArray[np.generic]) -> list[Array]:
    """For each tap the (N, out_h, out_w, C) view of what it reads, zero outside the image."""
    attrs, (_, kernel_h, kernel_w, _) = attrs_of(node), node.input(1).shape
    return taps(pad_image(image, attrs, 0), attrs, kernel_h, kernel_w, *node.output.shape[1:3])


def exact_sums(node: Node, numbers: Float64, weights: Array) -> Float64:
    """The sums of the products, without bias, of integers in float64 (N, H, W, C) less their zero point."""
    groups, (out_c, kernel_h, kernel_w, group_c) = attrs_of(node).groups, weights.shape
    # Within the bound of `exact_dtype`, so the order in which a matrix product adds makes no difference.
    dtype = exact_dtype(numbers, weights)
    views, depth = tap_views(node, numbers.astype(dtype)), kernel_h * kernel_w * group_c
    if groups == 1:
        patches = views[0] if len(views) == 1 else np.concatenate(views, axis=3)
        rows, columns = patches.reshape(-1, depth), weights.reshape(out_c, depth).astype(dtype).T
        return np.asarray(np.matmul(rows, columns), np.float64).reshape(node.output.shape)
    taps_first = weights_of_taps(weights).astype(dtype).transpose(1, 0, 2)
    if group_c == 1:
        wide, product = np.zeros(node.output.shape, dtype), np.empty(node.output.shape, dtype)
        for view, w in zip(views, taps_first[..., 0], strict=True):
            seen = view if groups == out_c else np.repeat(view, out_c // groups, axis=3)
            wide += np.multiply(seen, w, out=product)
        return wide.astype(np.float64)
    # (groups, pixels, channels of a group) @ (groups, channels of a group, outputs of a group), tap by tap
    grouped = np.zeros((groups, node.output.type.count // out_c, out_c // groups), dtype)
    for view, w in zip(views, taps_first, strict=True):
        seen = view.reshape(-1, groups, group_c).transpose(1, 0, 2)
        grouped += seen @ w.reshape(groups, -1, group_c).transpose(0, 2, 1)
    return grouped.transpose(1, 0, 2).reshape(node.output.shape).astype(np.float64)


# ---------------------------------------------------------------- kernels


def size_fields(node: Node) -> dict[str, int]:
    """The first fields of every convolution's shape."""
    batch, in_h, in_w, in_c = node.input(0).shape
    _, out_h, out_w, out_c = node.output.shape
    _, kernel_h, kernel_w, _ = node.input(1).shape
    return {
        "batch": batch,
        "in_h": in_h,
        "in_w": in_w,
        "in_c": in_c,
        "out_h": out_h,
        "out_w": out_w,
        "out_c": out_c,
        "kernel_h": kernel_h,
        "kernel_w": kernel_w,
    }


def shape_struct(node: Node) -> Struct:
    attrs = attrs_of(node)
    fields = {**size_fields(node), **window_fields(attrs), "groups": attrs.groups}
    return Struct("tinyet_conv2d_shape", fields)


def pair_weights(node: Node) -> Constant:
    """Of the kernels that multiply pairs: a group's channels two by two."""
    weights, groups = node.input(1).array, attrs_of(node).groups
    rows = weights.reshape(groups, weights.shape[0] // groups, -1)
    packed = np.stack([interleave_pairs(group) for group in rows])
    return Constant("weights", packed, "a0 b0 a1 b1 of two channels")


def patch_bytes(node: Node) -> int:
    """Scratch of the kernels that multiply pairs: two pixels' patches as int16, their depth rounded up to a pair."""
    depth = int(node.input(1).array[0].size)
    return 8 * ((depth + 1) // 2)


def refuse_depthwise(node: Node, _target: Target) -> str | None:
    channels = node.input(0).shape[3]
    if attrs_of(node).groups != channels or node.output.shape[3] != channels:
        return "only one input channel and one output channel a group"
    return None


def quad_weights(node: Node) -> Constant:
    """Of the depthwise kernels: four channels at a time."""
    weights = node.input(1).array
    quads = interleave_quads(weights.reshape(weights.shape[0], -1).T)
    return Constant("weights", quads, "four channels a tap")


def tap_bytes(node: Node) -> int:
    """Scratch of the depthwise kernels: two lists of the taps' offsets."""
    _, kernel_h, kernel_w, _ = node.input(1).shape
    return 8 * kernel_h * kernel_w


def tap_weights(node: Node) -> Array:
    """(kernel_h, kernel_w, out_c) where a group has one input channel."""
    return np.ascontiguousarray(node.input(1).array[..., 0].transpose(1, 2, 0))
