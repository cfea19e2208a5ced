# SPDX-License-Identifier: Apache-2.0
"""Steps that several handlers share: pieces of values joined differently, tables of int8, values spread out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.context import Context
from tinyet.importers.tflite.values import Constant
from tinyet.ir import Array, Attrs, DType, QuantParams, Shape, Tensor, TensorType
from tinyet.numerics import Int64
from tinyet.ops.concat import Concat
from tinyet.ops.expand import Expand
from tinyet.ops.flip import Flip
from tinyet.ops.lookup import Lookup
from tinyet.ops.permute import Permute
from tinyet.ops.slice import Slice

EVERY = np.arange(-128, 128, dtype=np.int64)
"""All numbers of an int8."""


def tflm(ctx: Context) -> bool:
    """Whether factors of the operator at hand, of integers, are TFLM's."""
    return ctx.x(0).dtype is not DType.FLOAT32 and ctx.runtime == "tflm"


def like(x: Tensor, shape: Sequence[int]) -> TensorType:
    """The type of x with another shape."""
    return TensorType(tuple(shape), x.dtype, x.type.quant)


def whole(shape: Sequence[int]) -> TensorType:
    """Whole numbers, truth values among them."""
    return TensorType(tuple(shape), DType.INT32)


def real(shape: Sequence[int]) -> TensorType:
    return TensorType(tuple(shape), DType.FLOAT32)


def axis_of(axis: int, rank: int) -> int:
    """An axis that may be counted from the end. Raises RefusedError where there is no such."""
    if not -rank <= axis < rank:
        raise RefusedError(f"has an axis {axis} of {rank} dimensions")
    return axis % rank


def moved(ctx: Context, attrs: Attrs, x: Tensor, shape: Sequence[int]) -> Tensor:
    """The result of an operator that only moves values."""
    return ctx.emit_as(attrs, [x], like(x, shape))


def piece(ctx: Context, x: Tensor, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
    """x[…, start:stop:step, …]; 0 <= start < stop <= size, step >= 1."""
    count = len(range(start, stop, step))
    if (start, count) == (0, x.shape[axis]):
        return x
    # The least stop that gives as many.
    attrs = Slice(axis, start, start + (count - 1) * step + 1, step)
    return moved(ctx, attrs, x, (*x.shape[:axis], count, *x.shape[axis + 1 :]))


def common_shape(*values: Tensor) -> Shape:
    """The shape that several values broadcast to. Raises RefusedError where they do not."""
    return broadcast(*(value.shape for value in values))


def broadcast(*shapes: Sequence[int]) -> Shape:
    """The common shape. Raises RefusedError where there is none."""
    try:
        return tuple(np.broadcast_shapes(*map(tuple, shapes)))
    except ValueError:
        given = ", ".join(str(list(shape)) for shape in shapes)
        raise RefusedError(f"has the shapes {given}, which do not broadcast") from None


def joined(ctx: Context, parts: Sequence[Tensor], axis: int) -> Tensor:
    """One after another along an axis. Raises RefusedError for none, and for other numbers of dimensions."""
    if not parts:
        raise RefusedError("joins nothing", shape=False)
    if len({len(part.shape) for part in parts}) != 1 or axis >= len(parts[0].shape):
        raise RefusedError(
            f"joins {', '.join(str(list(part.shape)) for part in parts[:8])} along axis {axis}"
        )
    if len(parts) == 1:
        return parts[0]
    first, size = parts[0], sum(part.shape[axis] for part in parts)
    shape = (*first.shape[:axis], size, *first.shape[axis + 1 :])
    return ctx.emit_as(Concat(axis), parts, like(first, shape))


def permuted(ctx: Context, x: Tensor, order: Sequence[int]) -> Tensor:
    order = tuple(order)
    if order == tuple(range(len(x.shape))):
        return x
    return moved(ctx, Permute(order), x, [x.shape[axis] for axis in order])


def flipped(ctx: Context, x: Tensor, axes: Sequence[int]) -> Tensor:
    turned = tuple(sorted({axis for axis in axes if x.shape[axis] > 1}))
    return moved(ctx, Flip(turned), x, x.shape) if turned else x


def spread(ctx: Context, x: Tensor, shape: Shape) -> Tensor:
    """x broadcast to a shape by numpy's rules. Raises UnsupportedShape where it does not."""
    return x if x.shape == shape else moved(ctx, Expand(shape), x, shape)


def operand(ctx: Context, x: Tensor, shape: Shape) -> Tensor:
    """x as an operator takes it whose operands have the output's shape or are a single element."""
    return x if x.type.count == 1 and len(x.shape) <= len(shape) else spread(ctx, x, shape)


def tabulated(ctx: Context, x: Tensor, values: Int64, type_: TensorType) -> Tensor:
    """x, int8, by a table: `values` are the results for EVERY, saturated here, in the integers of `type_`."""
    bounded = np.clip(values, *type_.dtype.range).astype(type_.dtype.numpy)
    table = np.concatenate([bounded[128:], bounded[:128]]).reshape(1, 256)
    held = ctx.new_constant("table", table, type_.quant)
    return ctx.emit_as(Lookup(0), [x, held], type_)


def relabelled(ctx: Context, x: Tensor, quant: QuantParams | None) -> Tensor:
    """The same integers, standing for other numbers: kernels that move values do not look at scales.

    Raises RefusedError for int16 that is computed, which has no table.
    """
    if x.type.quant == quant:
        return x
    if x.is_constant:
        return ctx.hold(Constant(x.name, x.array, quant))
    if x.dtype is not DType.INT8:
        raise RefusedError(
            f"takes {x.type.quant} for {quant} without a conversion", "give both tensors one quantization"
        )
    return tabulated(ctx, x, EVERY, TensorType(x.shape, x.dtype, quant))


def finish(ctx: Context, x: Tensor, position: int = 0) -> None:
    """x is an output of the operator at hand, its integers as they are. Raises RefusedError if the file says
    otherwise."""
    out = ctx.out_type(position)
    if x.type.count != out.count or x.dtype is not out.dtype:
        raise RefusedError(f"gives {x.type}, the file says {out}")
    ctx.alias(relabelled(ctx, ctx.reshape(x, out.shape), out.quant), position)


def rows_of(ctx: Context, x: Tensor, axis: int, indices: Array) -> Tensor:
    """x[…, indices, …] for constant indices: runs of an even step are pieces, and put together. Raises RefusedError for
    an index outside, and where it is too many pieces."""
    size, wanted = x.shape[axis], [int(i) for i in indices.reshape(-1)]
    if any(not 0 <= i < size for i in wanted):
        raise RefusedError(f"takes index {next(i for i in wanted if not 0 <= i < size)} of {size}")
    runs: list[tuple[int, int, int]] = []
    at = 0
    while at < len(wanted):
        step = wanted[at + 1] - wanted[at] if at + 1 < len(wanted) else 1
        end = at + 1
        while step > 0 and end < len(wanted) and wanted[end] - wanted[end - 1] == step:
            end += 1
        runs.append((wanted[at], wanted[end - 1] + 1, max(step, 1)))
        at = end
    if len(runs) > MAX_RUNS:
        raise RefusedError(f"takes {len(runs)} pieces apart, at most {MAX_RUNS}")
    return joined(ctx, [piece(ctx, x, axis, *run) for run in runs], axis)


MAX_RUNS = 256
"""Pieces that are put together for constant indices."""
