# SPDX-License-Identifier: Apache-2.0
"""Two-dimensional transposed convolution, NHWC: every output pixel gathers the taps that reach it.

Input pixel (y, x) reaches output pixel (y * stride_h - pad_top + i * dilation_h, …) through tap (i, j).
int8 rounds as a convolution (LiteRT's TRANSPOSE_CONV).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, DType, Node, Shape
from tinyet.numerics import NO_CLAMP, Int64
from tinyet.ops.conv2d import (
    check_weighted,
    clamp_float,
    int_bias,
    quant_constants,
    quant_struct,
    rescaled,
)
from tinyet.ops.shared import weighted_s16
from tinyet.ops.shared.window import Window, expect_rank
from tinyet.opset import Call, Constant, Kernel, Op, Pointer, Struct, library_call

Mask = npt.NDArray[np.bool_]


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
    groups: int = 1
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
    batch, height, width, channels = expect_rank(node, 0, 4)
    out_c, kernel_h, kernel_w, group_c = expect_rank(node, 1, 4)
    if channels != group_c * a.groups or out_c % a.groups:
        what = f"{channels} channels in and {out_c} out do not divide into {a.groups} groups of {group_c}"
        raise UnsupportedShape(f"{node.op}: {what}", node.where)
    bias = node.optional_input(2)
    if bias is not None and bias.shape != (out_c,):
        raise UnsupportedShape(f"{node.op}: bias of shape {bias.shape} for {out_c} channels", node.where)
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


def macs(node: Node) -> int:
    a = attrs_of(node)
    batch, height, width, _ = node.input(0).shape
    _, out_h, out_w, out_c = node.output.shape
    _, kernel_h, kernel_w, group_c = node.input(1).shape
    rows = [reach(out_h, height, i, a.stride_h, a.dilation_h, a.pad_top)[1] for i in range(kernel_h)]
    columns = [reach(out_w, width, j, a.stride_w, a.dilation_w, a.pad_left)[1] for j in range(kernel_w)]
    taps = sum(np.count_nonzero(r) for r in rows) * sum(np.count_nonzero(c) for c in columns)
    return batch * int(taps) * out_c * group_c


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    a = attrs_of(node)
    x, weights, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
    assert x is not None
    assert weights is not None
    out_c, kernel_h, kernel_w, group_c = weights.shape
    _, in_h, in_w, _ = x.shape
    _, out_h, out_w, _ = node.output.shape
    group_out = out_c // a.groups
    integer = node.input(0).dtype is not DType.FLOAT32
    # float64 holds every integer below 2**53, so the integer products are exact.
    kind = np.float64 if integer else np.float32
    zero_point = node.input(0).type.zero_point if integer else 0
    values: npt.NDArray[Any] = (x.astype(np.float64) - zero_point).astype(kind)
    acc = np.zeros(node.output.shape, kind)
    if bias is not None:
        acc += bias.astype(kind)
    for i in range(kernel_h):
        rows, row_there = reach(out_h, in_h, i, a.stride_h, a.dilation_h, a.pad_top)
        for j in range(kernel_w):
            columns, column_there = reach(out_w, in_w, j, a.stride_w, a.dilation_w, a.pad_left)
            there = (row_there[:, None] & column_there)[:, :, None]
            taken = values[:, rows][:, :, columns]
            for g in range(a.groups):
                outs = slice(g * group_out, (g + 1) * group_out)
                for k in range(group_c):
                    factor = weights[outs, i, j, k].astype(kind)
                    value = taken[..., g * group_c + k, None]
                    with np.errstate(over="ignore", invalid="ignore"):
                        acc[..., outs] = np.where(there, acc[..., outs] + value * factor, acc[..., outs])
    if not integer:
        return (clamp_float(acc, a.clamp),)
    return (rescaled(node, acc.astype(np.int64), a.clamp),)


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
    batch, in_h, in_w, in_c = node.input(0).shape
    _, out_h, out_w, out_c = node.output.shape
    _, kernel_h, kernel_w, _ = node.input(1).shape
    rows = phases(kernel_h, a.stride_h, a.dilation_h, a.pad_top)
    columns = phases(kernel_w, a.stride_w, a.dilation_w, a.pad_left)
    struct = Struct(
        "tinyet_conv_transpose2d_shape",
        {
            "batch": batch,
            "in_h": in_h,
            "in_w": in_w,
            "in_c": in_c,
            "out_h": out_h,
            "out_w": out_w,
            "out_c": out_c,
            "kernel_h": kernel_h,
            "kernel_w": kernel_w,
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


def lower_s8(node: Node, _target: Target) -> Call:
    shape, tables, scratch = shape_and_tables(node)
    quant = quant_struct(node, attrs_of(node).clamp, "tinyet_conv2d_s8_quant")
    params = Struct("tinyet_conv_transpose2d_s8_params", {"shape": shape, "quant": quant})
    constants = (*quant_constants(node, node.input(1).array, int_bias(node)), *tables)
    return library_call("tinyet_conv_transpose2d_s8", node, [0], params, constants, scratch)


def lower_s16(node: Node, _target: Target) -> Call:
    shape, tables, scratch = shape_and_tables(node)
    quant = Struct("tinyet_conv2d_s16_quant", weighted_s16.fields(node, attrs_of(node).clamp))
    params = Struct("tinyet_conv_transpose2d_s16_params", {"shape": shape, "quant": quant})
    constants = (*weighted_s16.constants(node, Constant("weights", node.input(1).array)), *tables)
    return library_call("tinyet_conv_transpose2d_s16", node, [0], params, constants, scratch)


def lower_f32(node: Node, _target: Target) -> Call:
    shape, tables, scratch = shape_and_tables(node)
    bias, weights = node.optional_input(2), node.input(1).array
    low, high = attrs_of(node).clamp
    values = Struct(
        "tinyet_conv2d_f32_values",
        {"weights": Pointer("weights"), "bias": Pointer("bias"), "clamp_low": low, "clamp_high": high},
    )
    constants = (
        Constant("weights", weights),
        Constant("bias", np.zeros(weights.shape[0], np.float32) if bias is None else bias.array),
        *tables,
    )
    params = Struct("tinyet_conv_transpose2d_f32_params", {"shape": shape, "values": values})
    return library_call("tinyet_conv_transpose2d_f32", node, [0], params, constants, scratch)


HEADERS = ("tinyet_conv_transpose2d.h", "tinyet_conv2d.h")

OP = Op(
    attrs=ConvTranspose2d,
    summary="transposed convolution: stride, dilation, groups, padding, output padding, fused clamp",
    infer=infer,
    reference=reference,
    check=check_weighted,
    macs=macs,
    bias=(2, 1),
    kernels=(
        Kernel("tinyet_conv_transpose2d_s8", "s8", lower_s8, HEADERS, ("tinyet_conv_transpose2d_s8.c",)),
        Kernel("tinyet_conv_transpose2d_s16", "s16", lower_s16, HEADERS, ("tinyet_conv_transpose2d_s16.c",)),
        Kernel("tinyet_conv_transpose2d_f32", "f32", lower_f32, HEADERS, ("tinyet_conv_transpose2d_f32.c",)),
    ),
)
