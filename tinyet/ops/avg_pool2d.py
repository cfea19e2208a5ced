# SPDX-License-Identifier: Apache-2.0
"""Two-dimensional average pooling, NHWC.

int8, int16: LiteRT's AVERAGE_POOL_2D, the average of the raw values in the image, halves away from zero.
Padding that counts reads as the zero point, and so does what a divisor of the user's has beyond the window;
the result saturates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, DType, Node, Shape
from tinyet.numerics import Int64
from tinyet.ops.shared import access_orders, averaging, pooling, row_sums
from tinyet.ops.shared.averaging import MAX_TABLE, average, division, division_table, fits
from tinyet.ops.shared.cost_models import COST_MODELS, pooled
from tinyet.ops.shared.counting import Parts
from tinyet.ops.shared.integers import INTEGERS, saturated
from tinyet.ops.shared.movement import check_moved
from tinyet.ops.shared.pooling import Pool
from tinyet.ops.shared.window import window_shape, zero_of
from tinyet.opset import (
    Call,
    CostModel,
    Iteration,
    Op,
    Pointer,
    Struct,
    TileMap,
    library_call,
    library_kernels,
    with_cost_models,
)


@dataclass(frozen=True)
class AvgPool2d(Pool):
    """input: x (N, H, W, C).

    count_include_pad: divide by the size of the window everywhere, else by its taps inside the image.
    divisor: divide by this instead, or None.
    """

    name: ClassVar[str] = "avg_pool2d"
    count_include_pad: bool = True
    divisor: int | None = None

    @property
    def fixed_divisor(self) -> int | None:
        """The divisor of every window, or None where it is the number of taps in the image."""
        if self.divisor is not None:
            return self.divisor
        return self.kernel_h * self.kernel_w if self.count_include_pad else None

    def is_whole(self, shape: Shape) -> bool:
        """Whether there is one window, which is the image, without a border."""
        window = (self.kernel_h, self.kernel_w, self.dilation_h, self.dilation_w)
        return window == (*shape[1:3], 1, 1) and not any(
            (self.pad_top, self.pad_bottom, self.pad_left, self.pad_right)
        )


def attrs_of(node: Node) -> AvgPool2d:
    assert isinstance(node.attrs, AvgPool2d)
    return node.attrs


def tap_counts(out: int, size: int, kernel: int, stride: int, dilation: int, before: int) -> Int64:
    """Number of taps of each window inside the image, along one dimension: int64 (out,)."""
    at = np.arange(out, dtype=np.int64) * stride - before  # of the first tap
    first = np.maximum(-(at // dilation), 0)
    behind = np.minimum((size - 1 - at) // dilation + 1, kernel)
    return np.asarray(np.maximum(behind - first, 0), np.int64)


def window_counts(node: Node) -> tuple[Int64, Int64]:
    """Taps in the image of every row and column of output pixels, whose products are the windows' counts: int64
    (out_h,) and (out_w,)."""
    a = attrs_of(node)
    _, in_h, in_w, _ = node.input(0).shape
    out_h, out_w = window_shape(node, a, a.kernel_h, a.kernel_w)
    rows = tap_counts(out_h, in_h, a.kernel_h, a.stride_h, a.dilation_h, a.pad_top)
    columns = tap_counts(out_w, in_w, a.kernel_w, a.stride_w, a.dilation_w, a.pad_left)
    return rows, columns


def distinct_counts(node: Node) -> list[int]:
    """Taps in the image that windows have, ascending."""
    rows, columns = map(np.unique, window_counts(node))
    return [int(count) for count in np.unique(rows[:, None] * columns)]


def infer(node: Node) -> tuple[Shape, ...]:
    attrs = attrs_of(node)
    if attrs.divisor is not None and attrs.divisor < 1:
        raise UnsupportedShape(f"avg_pool2d: a divisor of {attrs.divisor}", node.where)
    shapes = pooling.infer(node)
    if not all(counts.all() for counts in window_counts(node)):
        raise UnsupportedShape("avg_pool2d: a window lies wholly in the padding", node.where)
    return shapes


def check(node: Node) -> str | None:
    complaint = check_moved(node)
    if complaint is not None or node.input(0).dtype is DType.FLOAT32:
        return complaint
    if node.input(0).dtype not in INTEGERS:
        return f"no {node.input(0).dtype.value} form"
    counts = distinct_counts(node)
    count = counts[-1]
    if count - counts[0] >= MAX_TABLE:
        return f"windows of {counts[0]} to {count} pixels: a table of more than {MAX_TABLE} divisions"
    divisor = attrs_of(node).fixed_divisor or count
    return None if fits(node.input(0).dtype, count, divisor) else "sums could overflow 32 bits"


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    attrs, x = attrs_of(node), inputs[0]
    assert x is not None
    rows, columns = window_counts(node)
    counts = (rows[:, None] * columns)[:, :, None]
    divisor = counts if attrs.fixed_divisor is None else np.full_like(counts, attrs.fixed_divisor)
    if node.input(0).dtype is DType.FLOAT32:
        sums = np.zeros(node.output.shape, np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for view in pooling.windows(node, x, 0):
                sums += view.astype(np.float32)
            return (sums / divisor.astype(np.float32),)
    total = np.zeros(node.output.shape, np.int64) + (divisor - counts) * node.input(0).type.zero_point
    for view in pooling.windows(node, x.astype(np.int64), 0):
        total += view.astype(np.int64)
    return (saturated(average(total, divisor), node.output.dtype),)


# ---------------------------------------------------------------- portable kernels


def shape_struct(node: Node) -> Struct:
    return Struct("tinyet_avg_pool2d_shape", pooling.shape_fields(node))


def lower_integer(node: Node, _target: Target) -> Call:
    x, symbol = node.input(0).type, f"tinyet_avg_pool2d_{node.input(0).dtype.suffix}"
    first, table = division_table(distinct_counts(node), attrs_of(node).fixed_divisor, x.zero_point, x.dtype)
    params = Struct(
        "tinyet_avg_pool2d_s8_params",
        {"shape": shape_struct(node), "divisions": Pointer(table.name), "first_count": first},
    )
    return library_call(symbol, node, [0], params, [table])


def lower_f32(node: Node, _target: Target) -> Call:
    params = Struct(
        "tinyet_avg_pool2d_f32_params",
        {"shape": shape_struct(node), "divisor": attrs_of(node).fixed_divisor or 0},
    )
    return library_call("tinyet_avg_pool2d_f32", node, [0], params)


def pooled_s16(node: Node) -> Parts:
    """Windows over images, with their divisions: sums of int16 are often too large for a reciprocal."""
    rows, columns = window_counts(node)
    batch, _, _, channels = node.output.shape
    x = node.input(0).type
    counts = (rows[:, None] * columns).ravel()
    divisions = averaging.parts(counts, batch * channels, attrs_of(node).fixed_divisor, x.zero_point, x.dtype)
    return {**pooled(node), **divisions}


HEADERS = ("tinyet_avg_pool2d.h", "tinyet_window.h")
INTEGER_HEADERS = (*HEADERS, "tinyet_average.h")


def reduce_tiles(node: Node, rows: int) -> TileMap | None:
    """Of integers, of a window over the whole image."""
    attrs, x = attrs_of(node), node.input(0)
    if not attrs.is_whole(x.shape) or x.dtype is DType.FLOAT32:
        return None
    count = attrs.kernel_h * attrs.kernel_w
    found = division(count, attrs.divisor or count, x.type.zero_point, x.dtype)
    return row_sums.rule(node, rows, 0, found)


def iterate(node: Node) -> Iteration:
    """Padding that does not count is left out."""
    return pooling.iterate(
        node, None if attrs_of(node).fixed_divisor is None else zero_of(node.input(0).type)
    )


OP = Op(
    attrs=AvgPool2d,
    summary="average pooling: stride, a padding for each side, counted or not, or a divisor",
    infer=infer,
    reference=reference,
    iteration=iterate,
    part=pooling.part,
    reduce_tiles=reduce_tiles,
    check=check,
    same_scale=True,
    rounds=lambda _node: True,
    kernels=with_cost_models(
        (
            *library_kernels(
                "tinyet_avg_pool2d",
                ("s8", "s16"),
                lower_integer,
                INTEGER_HEADERS,
                pooling.refuse_far,
                access_order=access_orders.by_window_pixels,
            ),
            *library_kernels(
                "tinyet_avg_pool2d", ("f32",), lower_f32, HEADERS, access_order=access_orders.by_window_pixels
            ),
        ),
        {**COST_MODELS, "tinyet_avg_pool2d_s16": CostModel(pooled_s16)},
    ),
)
