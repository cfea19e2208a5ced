# SPDX-License-Identifier: Apache-2.0
"""Two-dimensional transposed convolution, NHWC: every output pixel gathers the taps that reach it.

Input pixel (y, x) reaches output pixel (y * stride_h - pad_top + i * dilation_h, …) through tap (i, j).
int8 rounds as a convolution (LiteRT's TRANSPOSE_CONV).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, DType, Node, Shape
from tinyet.numerics import NO_CLAMP, Int64, float32
from tinyet.ops.shared import convolution, weighted
from tinyet.ops.shared.access_orders import Walk, of_input, pixel_bytes
from tinyet.ops.shared.cost_models import Parts, outputs
from tinyet.ops.shared.window import MAX_REACH, Window, expect_window, zero_of
from tinyet.opset import (
    GROUPS,
    AccessOrder,
    Call,
    Constant,
    CostModel,
    Iteration,
    Nest,
    Op,
    Pointer,
    Spans,
    Struct,
    library_call,
    library_kernels,
    operand,
)

Mask = npt.NDArray[np.bool_]


MAX_STRIDE = 1 << 12
"""The kernels have a table with a row for each phase of a stride."""


@dataclass(frozen=True)
class ConvTranspose2d(Window):
    """inputs: x (N, H, W, C); weights (out_c, kernel_h, kernel_w, C / groups); bias (out_c,) or None.

    Weights and bias are constants. Pads are PyTorch's `padding`: they crop the output, each side its own;
    out_pad_h rows and out_pad_w columns are added at the bottom and on the right. clamp: bounds of the fused
    activation.
    """

    name: ClassVar[str] = "conv_transpose2d"
    out_pad_h: int = 0
    out_pad_w: int = 0
    groups: int = field(default=1, metadata=GROUPS)
    clamp: tuple[float, float] = NO_CLAMP


@dataclass(frozen=True, eq=False)
class Phases:
    """Which taps reach output coordinate q * stride + phase, along one dimension.

    Tap first[phase] + m * tap_step reads input coordinate base[phase] + q - m * in_step, for m = 0, 1, … as
    long as the tap is in the kernel; first is the kernel's size where no tap does. Both are int64 (stride,).
    """

    first: Int64
    base: Int64
    tap_step: int
    in_step: int


def attrs_of(node: Node) -> ConvTranspose2d:
    assert isinstance(node.attrs, ConvTranspose2d)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    a = attrs_of(node)
    (batch, height, width, _), (out_c, kernel_h, kernel_w, _) = convolution.expect_groups(node, a.groups)
    expect_window(node, a, kernel_h, kernel_w)
    wrong_stride = max(a.stride_h, a.stride_w) > MAX_STRIDE
    if wrong_stride or min(a.out_pad_h, a.out_pad_w) < 0 or max(a.out_pad_h, a.out_pad_w) > MAX_REACH:
        stride, padding = f"{a.stride_h}x{a.stride_w}", f"{a.out_pad_h}x{a.out_pad_w}"
        raise UnsupportedShape(f"{node.op}: stride {stride}, output padding {padding}", node.where)
    full_h = (height - 1) * a.stride_h + a.dilation_h * (kernel_h - 1) + 1
    full_w = (width - 1) * a.stride_w + a.dilation_w * (kernel_w - 1) + 1
    out_h = full_h - a.pad_top - a.pad_bottom + a.out_pad_h
    out_w = full_w - a.pad_left - a.pad_right + a.out_pad_w
    if min(out_h, out_w) < 1:
        raise UnsupportedShape(f"{node.op}: pads leave nothing of {full_h}x{full_w} pixels", node.where)
    return ((batch, out_h, out_w, out_c),)


def reach(out: int, size: int, tap: int, stride: int, dilation: int, before: int) -> tuple[Int64, Mask]:
    """For each output coordinate the input coordinate that tap reads (clipped), and whether there is one."""
    scaled = np.arange(out, dtype=np.int64) + before - tap * dilation
    source = scaled // stride
    return np.clip(source, 0, size - 1), (scaled % stride == 0) & (source >= 0) & (source < size)


def reached(out: int, size: int, tap: int, stride: int, dilation: int, before: int) -> int:
    """Number of output coordinates that a tap reaches from within the input, as `reach` finds them."""
    first = max(-((tap * dilation - before) // stride), 0)
    last = min((out - 1 + before - tap * dilation) // stride, size - 1)
    return max(last - first + 1, 0)


def iterate(node: Node) -> Iteration:
    """An element of the input goes to as many of the output as there are taps. Beside the image is zero."""
    nest, a, (batch, out_h, out_w, out_c) = Nest(), attrs_of(node), node.output.shape
    _, kernel_h, kernel_w, group_c = node.input(1).shape
    n, y, x, g, o = nest.all_parallel((batch, out_h, out_w, a.groups, out_c // a.groups))
    i, j, c = nest.all_reduced((kernel_h, kernel_w, group_c))
    channel = (out_c // a.groups) * g + o
    rows = Spans(1, _reached(out_h, kernel_h, a.stride_h, a.dilation_h, a.pad_top))
    columns = Spans(2, _reached(out_w, kernel_w, a.stride_w, a.dilation_w, a.pad_left))
    image = operand(n, rows, columns, group_c * g + c, outside=zero_of(node.input(0).type))
    bias = None if node.optional_input(2) is None else operand(channel)
    return nest.iteration([image, operand(channel, i, j, c), bias], [operand(n, y, x, channel)])


def _reached(out: int, kernel: int, stride: int, dilation: int, pad: int) -> tuple[tuple[int, int], ...]:
    """For each index of the output, the first of those that its taps reach, and how many from there on."""
    firsts = (-((dilation * (kernel - 1) - pad - i) // stride) for i in range(out))
    return tuple((first, max((i + pad) // stride - first + 1, 0)) for i, first in enumerate(firsts))


def part(node: Node, axis: int, count: int) -> ConvTranspose2d | str:
    """Crops what the indices read make beyond the `count` wanted. The same taps make every index a stride further."""
    attrs, (_, kernel_h, kernel_w, _) = attrs_of(node), node.input(1).shape
    stride = {1: attrs.stride_h, 2: attrs.stride_w}.get(axis, 1)
    if count % stride and count != node.output.shape[axis]:
        return f"{node.op} makes {stride} at a time"
    top, more = _crops(kernel_h, attrs.stride_h, attrs.dilation_h, attrs.pad_top, count)
    left, wider = _crops(kernel_w, attrs.stride_w, attrs.dilation_w, attrs.pad_left, count)
    if {1: top, 2: left}.get(axis, 0) < 0:
        return f"{node.op} makes the first of {stride} of nothing"
    if axis == 1:
        return replace(attrs, pad_top=top, pad_bottom=max(more, 0), out_pad_h=max(-more, 0))
    if axis == 2:
        return replace(attrs, pad_left=left, pad_right=max(wider, 0), out_pad_w=max(-wider, 0))
    return attrs


def _crops(kernel: int, stride: int, dilation: int, pad: int, count: int) -> tuple[int, int]:
    """Indices that are made before `count` of them, which begin a whole number of strides behind the output's first,
    and behind these; below 0 as many as no tap reaches."""
    first = -((dilation * (kernel - 1) - pad) // stride)
    last = (count - 1 + pad) // stride
    made = stride * (last - first) + dilation * (kernel - 1) + 1
    before = pad - stride * first
    return before, made - before - count


def macs(node: Node) -> int:
    a = attrs_of(node)
    batch, height, width, _ = node.input(0).shape
    _, out_h, out_w, out_c = node.output.shape
    _, kernel_h, kernel_w, group_c = node.input(1).shape
    rows = sum(reached(out_h, height, i, a.stride_h, a.dilation_h, a.pad_top) for i in range(kernel_h))
    columns = sum(reached(out_w, width, j, a.stride_w, a.dilation_w, a.pad_left) for j in range(kernel_w))
    return batch * rows * columns * out_c * group_c


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    a = attrs_of(node)
    x, weights, bias = weighted.operands(inputs)
    out_c, kernel_h, kernel_w, group_c = weights.shape
    _, in_h, in_w, _ = x.shape
    _, out_h, out_w, _ = node.output.shape
    integer = node.input(0).dtype is not DType.FLOAT32
    # float64 holds every integer below 2**53, so the integer products are exact.
    kind = np.float64 if integer else np.float32
    zero_point = node.input(0).type.zero_point if integer else 0
    values: npt.NDArray[Any] = (x.astype(np.float64) - zero_point).astype(kind)
    # Channels by groups: (N, out_h, out_w, groups, channels of a group)
    acc = np.zeros((*node.output.shape[:3], a.groups, out_c // a.groups), kind)
    if bias is not None:
        acc += bias.astype(kind).reshape(acc.shape[3:])
    w = weights.astype(kind).reshape(*acc.shape[3:], kernel_h, kernel_w, group_c)
    product = np.empty_like(acc)
    for i in range(kernel_h):
        rows, row_there = reach(out_h, in_h, i, a.stride_h, a.dilation_h, a.pad_top)
        for j in range(kernel_w):
            columns, column_there = reach(out_w, in_w, j, a.stride_w, a.dilation_w, a.pad_left)
            there = (row_there[:, None] & column_there)[:, :, None, None]
            taken = values[:, rows][:, :, columns].reshape(*acc.shape[:4], group_c)
            for k in range(group_c):
                with np.errstate(over="ignore", invalid="ignore"):
                    np.multiply(taken[..., k : k + 1], w[..., i, j, k], out=product)
                    np.add(acc, product, out=acc, where=there)
    acc = acc.reshape(node.output.shape)
    if not integer:
        return (float32.clamp(acc.astype(np.float32), *a.clamp),)
    return (weighted.rescaled(node, acc.astype(np.int64)),)


# ---------------------------------------------------------------- portable kernels


def phases(kernel: int, stride: int, dilation: int, before: int) -> Phases:
    common = math.gcd(stride, dilation)
    tap_step = stride // common
    first, base = [], []
    for phase in range(stride):
        taps = [t for t in range(min(kernel, tap_step)) if (phase + before - t * dilation) % stride == 0]
        first.append(taps[0] if taps else kernel)
        base.append((phase + before - taps[0] * dilation) // stride if taps else 0)
    return Phases(np.array(first, np.int64), np.array(base, np.int64), tap_step, dilation // common)


def shape_and_tables(node: Node) -> tuple[Struct, tuple[Constant, ...], int]:
    """(shape struct, tables of phases, bytes of scratch for the list of an output pixel's taps)."""
    a = attrs_of(node)
    _, kernel_h, kernel_w, _ = node.input(1).shape
    rows = phases(kernel_h, a.stride_h, a.dilation_h, a.pad_top)
    columns = phases(kernel_w, a.stride_w, a.dilation_w, a.pad_left)
    struct = Struct(
        "tinyet_conv_transpose2d_shape",
        {
            **convolution.size_fields(node),
            "stride_h": a.stride_h,
            "stride_w": a.stride_w,
            "tap_step_h": rows.tap_step,
            "tap_step_w": columns.tap_step,
            "in_step_h": rows.in_step,
            "in_step_w": columns.in_step,
            "groups": a.groups,
            "row_phases": Pointer("row_phases"),
            "column_phases": Pointer("column_phases"),
        },
    )
    tables = tuple(
        Constant(
            name, np.stack([p.first, p.base], axis=1).astype(np.int32), "first tap, its input coordinate"
        )
        for name, p in (("row_phases", rows), ("column_phases", columns))
    )
    most = -(-kernel_h // rows.tap_step) * -(-kernel_w // columns.tap_step)
    return struct, tables, 8 * most


def lower(node: Node, _target: Target) -> Call:
    shape, tables, scratch = shape_and_tables(node)
    params = weighted.layer_params(node, "tinyet_conv_transpose2d", shape)
    constants = (*weighted.constants(node, Constant("weights", node.input(1).array)), *tables)
    symbol = f"tinyet_conv_transpose2d_{node.input(0).dtype.suffix}"
    return library_call(symbol, node, [0], params, constants, scratch)


def transposed(node: Node) -> Parts:
    """tinyet_conv_transpose2d: the taps that reach a pixel, then four channels at a time of each group."""
    a, (_, in_h, in_w, _), (batch, out_h, out_w, out_c) = (
        attrs_of(node),
        node.input(0).shape,
        node.output.shape,
    )
    _, kernel_h, kernel_w, depth = node.input(1).shape
    tried, taps = [], []
    for size, out, kernel, stride, dilation, before in (
        (in_h, out_h, kernel_h, a.stride_h, a.dilation_h, a.pad_top),
        (in_w, out_w, kernel_w, a.stride_w, a.dilation_w, a.pad_left),
    ):
        found = phases(kernel, stride, dilation, before)
        each = -(-(kernel - found.first) // found.tap_step)
        tried.append(int(each[np.arange(out) % stride].sum()))
        taps.append(sum(reached(out, size, tap, stride, dilation, before) for tap in range(kernel)))
    pixels, there = batch * out_h * out_w, batch * taps[0] * taps[1]
    quads, rest = divmod(out_c // a.groups, 4)
    return {
        "call": 1,
        "row": batch * out_h,
        "pixel": pixels,
        "kernel row": batch * tried[0] * out_w,
        "kernel row in the image": batch * taps[0] * out_w,
        "kernel tap": batch * taps[0] * tried[1],
        "tap": there,
        "group": pixels * a.groups,
        "four channels": pixels * a.groups * quads,
        "tap of four channels": there * a.groups * quads,
        "products of four channels": there * a.groups * quads * depth,
        "channel": pixels * a.groups * rest,
        "tap of a channel": there * a.groups * rest,
        "product of a channel": there * a.groups * rest * depth,
        **outputs(node, pixels * out_c),
    }


@of_input
def access_order(node: Node) -> AccessOrder:
    """One output pixel after another, each of the inputs whose kernels reach it."""
    a, (batch, height, width, _) = attrs_of(node), node.input(0).shape
    _, kernel_h, kernel_w, _ = node.input(1).shape
    _, out_h, out_w, _ = node.output.shape

    def first(size: int, out: int, kernel: int, stride: int, dilation: int, before: int) -> Int64:
        reach = np.arange(out, dtype=np.int64) + before - (kernel - 1) * dilation
        return np.asarray(np.clip(-(-reach // stride), 0, size), np.int64)

    tops = first(height, out_h, kernel_h, a.stride_h, a.dilation_h, a.pad_top)
    lefts = first(width, out_w, kernel_w, a.stride_w, a.dilation_w, a.pad_left)
    return Walk(batch, height, width, tops, lefts, *pixel_bytes(node)).by_pixels()


HEADERS = ("tinyet_conv_transpose2d.h", "tinyet_conv2d.h")

OP = Op(
    attrs=ConvTranspose2d,
    summary="transposed convolution: stride, dilation, groups, padding, output padding, fused clamp",
    infer=infer,
    inputs=(2, 3),
    reference=reference,
    iteration=iterate,
    part=part,
    check=weighted.check_weighted,
    products=macs,
    bias=(2, 1),
    kernels=library_kernels(
        "tinyet_conv_transpose2d",
        ("s8", "s16", "f32"),
        lower,
        HEADERS,
        cost_model=CostModel(transposed),
        access_order=access_order,
    ),
)
