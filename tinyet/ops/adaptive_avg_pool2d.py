# SPDX-License-Identifier: Apache-2.0
"""Average pooling to a given size, NHWC: window i is floor(i * in / out) … ceil((i + 1) * in / out).

These are PyTorch's windows. Integers round as AvgPool2d: the average of the raw values, halves away from zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import Int64
from tinyet.ops.shared import averaging, pooling, row_sums
from tinyet.ops.shared.access_orders import Walk, of_input, pixel_bytes
from tinyet.ops.shared.averaging import average, division, division_table, fits
from tinyet.ops.shared.cost_models import Parts, windows
from tinyet.ops.shared.integers import INTEGERS
from tinyet.ops.shared.movement import check_moved
from tinyet.ops.shared.window import image_fields, resized_shape
from tinyet.opset import (
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
    TileMap,
    library_call,
    library_kernels,
    operand,
)


@dataclass(frozen=True)
class AdaptiveAvgPool2d(Attrs):
    """input: x (N, H, W, C). Output: (N, out_h, out_w, C); windows overlap where the sizes do not divide."""

    name: ClassVar[str] = "adaptive_avg_pool2d"
    out_h: int = 1
    out_w: int = 1


def attrs_of(node: Node) -> AdaptiveAvgPool2d:
    assert isinstance(node.attrs, AdaptiveAvgPool2d)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    return (resized_shape(node, attrs_of(node).out_h, attrs_of(node).out_w),)


def spans(size: int, out: int) -> Int64:
    """(start, count) of each window along one dimension: int64 (out, 2)."""
    index = np.arange(out, dtype=np.int64)
    start = index * size // out
    return np.stack([start, -(-(index + 1) * size // out) - start], axis=1)


def node_spans(node: Node) -> tuple[Int64, Int64]:
    """Rows and columns of the windows."""
    _, height, width, _ = node.input(0).shape
    return spans(height, attrs_of(node).out_h), spans(width, attrs_of(node).out_w)


def macs(node: Node) -> int:
    rows, columns = node_spans(node)
    batch, _, _, channels = node.output.shape
    return batch * channels * int(rows[:, 1].sum()) * int(columns[:, 1].sum())


def check(node: Node) -> str | None:
    complaint = check_moved(node)
    if complaint is not None or node.input(0).dtype is DType.FLOAT32:
        return complaint
    if node.input(0).dtype not in INTEGERS:
        return f"no {node.input(0).dtype.value} form"
    rows, columns = node_spans(node)
    count = int(rows[:, 1].max() * columns[:, 1].max())
    return None if fits(node.input(0).dtype, count, count) else "sums could overflow 32 bits"


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    _, height, width, _ = x.shape
    rows, columns = node_spans(node)
    counts = (rows[:, 1:] * columns[:, 1])[:, :, None]
    integer = node.input(0).dtype is not DType.FLOAT32
    # float32 sums one after the other, as the C kernel does; integers are exact.
    values = x.astype(np.int64) if integer else x.astype(np.float32)
    total = np.zeros(node.output.shape, values.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for y in range(rows[:, 1].max()):
            for x_ in range(columns[:, 1].max()):
                # The tap that many windows have there; those that are smaller are left as they are.
                there = (y < rows[:, 1])[:, None, None] & (x_ < columns[:, 1])[:, None]
                taken = values[:, np.minimum(rows[:, 0] + y, height - 1)]
                tap = taken[:, :, np.minimum(columns[:, 0] + x_, width - 1)]
                total = np.where(there, total + tap, total)
        if not integer:
            return (total.astype(np.float32) / counts.astype(np.float32),)
    return (average(total.astype(np.int64), counts).astype(node.output.dtype.numpy),)


# ---------------------------------------------------------------- portable kernels


def common(node: Node) -> tuple[dict[str, int | Pointer], tuple[Constant, ...]]:
    """The fields that both kernels begin with, and the two tables of windows."""
    rows, columns = node_spans(node)
    fields: dict[str, int | Pointer] = {
        **image_fields(node),
        "rows": Pointer("rows"),
        "columns": Pointer("columns"),
    }
    tables = (
        Constant("rows", rows.astype(np.int32), "first row, rows"),
        Constant("columns", columns.astype(np.int32), "first column, columns"),
    )
    return fields, tables


def lower_integer(node: Node, _target: Target) -> Call:
    x, symbol = node.input(0).type, f"tinyet_adaptive_avg_pool2d_{node.input(0).dtype.suffix}"
    fields, tables = common(node)
    rows, columns = node_spans(node)
    counts = sorted({int(count) for count in (rows[:, 1:] * columns[:, 1]).ravel()})
    first, divisions = division_table(counts, None, x.zero_point, x.dtype)
    struct = Struct("tinyet_adaptive_avg_pool2d_shape", fields)
    params = Struct(
        "tinyet_adaptive_avg_pool2d_s8_params",
        {"shape": struct, "divisions": Pointer(divisions.name), "first_count": first},
    )
    return library_call(symbol, node, [0], params, (*tables, divisions))


def lower_f32(node: Node, _target: Target) -> Call:
    fields, tables = common(node)
    params = Struct("tinyet_adaptive_avg_pool2d_shape", fields)
    return library_call("tinyet_adaptive_avg_pool2d_f32", node, [0], params, tables)


def iterate(node: Node) -> Iteration:
    nest, (_, height, width, _), (n, out_h, out_w, c) = Nest(), node.input(0).shape, node.output.shape
    out = nest.all_parallel((n, out_h, out_w, c))

    def windows(axis: int, size: int, count: int) -> Spans:
        return Spans(axis, tuple((int(start), int(taken)) for start, taken in spans(size, count)))

    rows, columns = windows(1, height, out_h), windows(2, width, out_w)
    return nest.iteration([operand(out[0], rows, columns, out[3])], [operand(*out)])


def reduce_tiles(node: Node, rows: int) -> TileMap | None:
    """Of integers, to one value a channel."""
    x, out = node.input(0), node.output.shape
    if out[1:3] != (1, 1) or x.dtype not in INTEGERS:
        return None
    count = x.shape[1] * x.shape[2]
    return row_sums.rule(node, rows, 0, division(count, count, x.type.zero_point, x.dtype))


def averaged(node: Node) -> Parts:
    """Windows of different sizes, four channels at a time."""
    rows, columns = node_spans(node)
    batch, out_h, out_w, channels = node.output.shape
    tap_rows = batch * int(rows[:, 1].sum())
    found = windows(channels, batch * out_h * out_w, tap_rows * out_w, tap_rows * int(columns[:, 1].sum()))
    return found | {"call": 1, "row": batch * out_h}


def averaged_s16(node: Node) -> Parts:
    """With their divisions: sums of int16 are often too large for a reciprocal."""
    rows, columns = node_spans(node)
    batch, _, _, channels = node.output.shape
    x = node.input(0).type
    counts = (rows[:, 1:] * columns[:, 1]).ravel()
    return {**averaged(node), **averaging.parts(counts, batch * channels, None, x.zero_point, x.dtype)}


@of_input
def access_order(node: Node) -> AccessOrder:
    batch, height, width, _ = node.input(0).shape
    rows, columns = node_spans(node)
    return Walk(batch, height, width, rows[:, 0], columns[:, 0], *pixel_bytes(node)).by_pixels()


HEADERS = ("tinyet_adaptive_avg_pool2d.h",)
INTEGER_HEADERS = (*HEADERS, "tinyet_average.h")


def part(node: Node, axis: int, count: int) -> AdaptiveAvgPool2d:
    attrs = attrs_of(node)
    return replace(attrs, out_h=count) if axis == 1 else replace(attrs, out_w=count) if axis == 2 else attrs


OP = Op(
    attrs=AdaptiveAvgPool2d,
    summary="average pooling to a given size, windows as even as they can be",
    infer=infer,
    reference=reference,
    iteration=iterate,
    part=part,
    reduce_tiles=reduce_tiles,
    check=check,
    same_scale=True,
    rounds=lambda _node: True,
    kernels=(
        *library_kernels(
            "tinyet_adaptive_avg_pool2d",
            ("s8",),
            lower_integer,
            INTEGER_HEADERS,
            pooling.refuse_far,
            cost_model=CostModel(averaged),
            access_order=access_order,
        ),
        *library_kernels(
            "tinyet_adaptive_avg_pool2d",
            ("s16",),
            lower_integer,
            INTEGER_HEADERS,
            pooling.refuse_far,
            cost_model=CostModel(averaged_s16),
            access_order=access_order,
        ),
        *library_kernels(
            "tinyet_adaptive_avg_pool2d",
            ("f32",),
            lower_f32,
            HEADERS,
            cost_model=CostModel(averaged),
            access_order=access_order,
        ),
    ),
)
