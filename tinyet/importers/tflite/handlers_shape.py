# SPDX-License-Identifier: Apache-2.0
"""Handlers that move values, or give them another shape."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.activation import bounds_of
from tinyet.importers.tflite.building import (
    axis_of,
    finish,
    flipped,
    joined,
    permuted,
    piece,
    rows_of,
    spread,
)
from tinyet.importers.tflite.context import Context, Handler
from tinyet.ir import DType, Tensor, TensorType
from tinyet.numerics import NO_CLAMP
from tinyet.ops.clamp import Clamp
from tinyet.ops.embedding import Embedding
from tinyet.ops.requantize import Requantize
from tinyet.tflite.options import (
    ConcatenationOptions,
    GatherOptions,
    PackOptions,
    ReverseSequenceOptions,
    StridedSliceOptions,
    UnpackOptions,
)


def reshape(ctx: Context) -> None:
    """The output's shape is taken from the file, not from the operator's inputs."""
    finish(ctx, ctx.x(0))


def transpose(ctx: Context) -> None:
    ctx.expect_inputs(2)
    x, order = ctx.x(0), ctx.numbers(1, "order")
    axes = [axis_of(axis, len(x.shape)) for axis in order]
    if sorted(axes) != list(range(len(x.shape))):
        raise RefusedError(f"has an order {order} for {len(x.shape)} dimensions")
    finish(ctx, permuted(ctx, x, axes))


# ---------------------------------------------------------------- together and apart


def concatenation(ctx: Context) -> None:
    """TFLM moves the integers as they are; LiteRT first converts integers of another scale to the output's."""
    options, out = ctx.options(ConcatenationOptions), ctx.out_type()
    if not ctx.op.inputs:
        raise RefusedError("has no inputs", shape=False)
    axis = axis_of(options.axis, len(out.shape))
    parts = []
    for position in range(len(ctx.op.inputs)):
        x = ctx.x(position)
        if x.type.quant != out.quant:
            if x.dtype is DType.INT8 and ctx.runtime == "tflm":
                ctx.note("parts of another scale are rescaled, which TensorFlow Lite Micro refuses to do")
            x = ctx.emit_as(Requantize(), [x], type(out)(x.shape, out.dtype, out.quant))
        parts.append(x)
    bounds = bounds_of(options.fused_activation_function)
    whole = joined(ctx, parts, axis)
    if bounds != NO_CLAMP:
        whole = ctx.emit_as(Clamp(*bounds), [whole], whole.type)
    finish(ctx, whole)


def pack(ctx: Context) -> None:
    out = ctx.out_type()
    axis = axis_of(ctx.options(PackOptions).axis, len(out.shape))
    one = (*out.shape[:axis], 1, *out.shape[axis + 1 :])
    parts = [ctx.reshape(ctx.x(position), one) for position in range(len(ctx.op.inputs))]
    finish(ctx, joined(ctx, parts, axis))


def unpack(ctx: Context) -> None:
    x = ctx.x(0)
    axis = axis_of(ctx.options(UnpackOptions).axis, len(x.shape))
    if x.shape[axis] != len(ctx.op.outputs):
        raise RefusedError(f"makes {len(ctx.op.outputs)} of {x.shape[axis]}")
    for position in range(len(ctx.op.outputs)):
        finish(ctx, piece(ctx, x, axis, position, position + 1), position)


def _split(ctx: Context, x: Tensor, axis: int) -> None:
    """The outputs' own shapes say how much each takes."""
    start = 0
    for position in range(len(ctx.op.outputs)):
        shape = ctx.out_info(position).shape
        size = shape[axis] if axis < len(shape) else 0
        if not 0 < size <= x.shape[axis] - start:
            raise RefusedError(f"has an output {list(shape)} of {list(x.shape)} along axis {axis}")
        finish(ctx, piece(ctx, x, axis, start, start + size), position)
        start += size


def split(ctx: Context) -> None:
    """inputs: axis, x."""
    ctx.expect_inputs(2)
    x = ctx.x(1)
    _split(ctx, x, axis_of(ctx.number(0, "axis"), len(x.shape)))


def split_v(ctx: Context) -> None:
    """inputs: x, sizes, axis."""
    ctx.expect_inputs(3)
    x = ctx.x(0)
    _split(ctx, x, axis_of(ctx.number(2, "axis"), len(x.shape)))


# ---------------------------------------------------------------- parts


def slice_(ctx: Context) -> None:
    ctx.expect_inputs(3)
    x, begins, sizes = ctx.x(0), ctx.numbers(1, "begin"), ctx.numbers(2, "size")
    if not len(begins) == len(sizes) == len(x.shape):
        raise RefusedError(f"has {len(begins)} begins and {len(sizes)} sizes for {len(x.shape)} dimensions")
    for axis, (begin, size) in enumerate(zip(begins, sizes, strict=True)):
        end = x.shape[axis] if size == -1 else begin + size
        if not 0 <= begin < end <= x.shape[axis]:
            raise RefusedError(f"takes {begin}:{end} of an axis of {x.shape[axis]}")
        x = piece(ctx, x, axis, begin, end)
    finish(ctx, x)


def _bounds(begin: int | None, end: int | None, step: int, size: int) -> range:
    """The indices that a part of an axis has, as numpy's slices; None is where the part is not bounded."""
    return range(*slice(begin, end, step).indices(size))


def strided_slice(ctx: Context) -> None:
    """Masks have a bit for each given dimension: begin and end without bounds, an ellipsis for all dimensions that are
    not named, a new dimension of 1, and one index alone, whose dimension disappears."""
    ctx.expect_inputs(4)
    options, x = ctx.options(StridedSliceOptions), ctx.x(0)
    begins, ends, steps = (
        ctx.numbers(position, role) for position, role in ((1, "begin"), (2, "end"), (3, "strides"))
    )
    if not len(begins) == len(ends) == len(steps) or 0 in steps:
        raise RefusedError(f"has begins {begins}, ends {ends} and strides {steps}")
    if sum(options.ellipsis_mask >> index & 1 for index in range(len(begins))) > 1:
        raise RefusedError("has several ellipses")
    named = sum(
        not (options.ellipsis_mask | options.new_axis_mask) >> index & 1 for index in range(len(begins))
    )
    if named > len(x.shape):
        raise RefusedError(f"names {named} dimensions of {len(x.shape)}")
    axis = 0
    for index, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if options.ellipsis_mask >> index & 1:
            axis += len(x.shape) - named
            continue
        if options.new_axis_mask >> index & 1:
            continue
        size = x.shape[axis]
        if options.shrink_axis_mask >> index & 1:
            at = 0 if options.begin_mask >> index & 1 else begin
            if not -size <= at < size:
                raise RefusedError(f"takes index {at} of {size}")
            taken = range(at % size, at % size + 1)
        else:
            taken = _bounds(
                None if options.begin_mask >> index & 1 else begin,
                None if options.end_mask >> index & 1 else end + begin * options.offset,
                step,
                size,
            )
        if not taken:
            raise RefusedError(f"takes nothing of axis {axis}")
        low, high = min(taken[0], taken[-1]), max(taken[0], taken[-1])
        x = piece(ctx, x, axis, low, high + 1, abs(taken.step))
        if taken.step < 0:
            x = flipped(ctx, x, [axis])
        axis += 1
    finish(ctx, x)


def gather(ctx: Context) -> None:
    """Constant indices, or rows of a constant table."""
    ctx.expect_inputs(2)
    options, indices = ctx.options(GatherOptions), ctx.find_constant(1)
    rank = len(ctx.info(0).shape)
    axis = axis_of(options.axis, rank)
    if options.batch_dims:
        raise RefusedError(f"gathers in {options.batch_dims} batches")
    if indices is not None:
        finish(ctx, rows_of(ctx, ctx.x(0), axis, indices.data))
        return
    if ctx.find_constant(0) is None:
        raise RefusedError("computes both the indices and what they choose from", "make one a constant")
    if axis:
        raise RefusedError(f"gathers computed indices along axis {axis}", "put that axis first")
    _looked_up(ctx, 0, ctx.x(1))


def embedding_lookup(ctx: Context) -> None:
    """inputs: indices, table."""
    ctx.expect_inputs(2)
    _looked_up(ctx, 1, ctx.x(0))


def _looked_up(ctx: Context, position: int, indices: Tensor) -> None:
    """Handlers of a constant table, an input, at computed indices."""
    table = ctx.constant(position, "table")
    if not table.shape or indices.dtype is not DType.INT32:
        raise RefusedError(f"looks up {indices.dtype.value} in {list(table.shape)}")
    wide = ctx.hold(table.reshaped((table.shape[0], table.data.size // table.shape[0])))
    found = TensorType((*indices.shape, wide.shape[1]), wide.dtype, wide.type.quant)
    finish(ctx, ctx.emit_as(Embedding(), [indices, wide], found))


def gather_nd(ctx: Context) -> None:
    """Each row of the indices is a place among the first dimensions."""
    ctx.expect_inputs(2)
    x, indices = ctx.x(0), ctx.constant(1, "indices").data.astype(np.int64)
    depth = indices.shape[-1] if indices.ndim else 0
    if not 1 <= depth <= len(x.shape):
        raise RefusedError(f"has indices of {depth} dimensions for {len(x.shape)}")
    sizes = x.shape[:depth]
    if (indices < 0).any() or (indices >= np.array(sizes)).any():
        raise RefusedError(f"has an index outside {list(sizes)}")
    flat = np.ravel_multi_index(tuple(np.moveaxis(indices, -1, 0)), sizes)
    rows = ctx.reshape(x, (math.prod(sizes), math.prod(x.shape[depth:])))
    finish(ctx, rows_of(ctx, rows, 0, flat))


def reverse(ctx: Context) -> None:
    ctx.expect_inputs(2)
    x = ctx.x(0)
    finish(ctx, flipped(ctx, x, [axis_of(axis, len(x.shape)) for axis in ctx.numbers(1, "axes")]))


def reverse_sequence(ctx: Context) -> None:
    """Sequences of constant lengths that are all the same are turned as one."""
    options, x, lengths = ctx.options(ReverseSequenceOptions), ctx.x(0), ctx.numbers(1, "lengths")
    axis = axis_of(options.seq_dim, len(x.shape))
    if len(set(lengths)) != 1 or not 0 < lengths[0] <= x.shape[axis]:
        raise RefusedError(f"reverses sequences of lengths {sorted(set(lengths))}", "give all one length")
    parts = [flipped(ctx, piece(ctx, x, axis, 0, lengths[0]), [axis])]
    if lengths[0] < x.shape[axis]:
        parts.append(piece(ctx, x, axis, lengths[0], x.shape[axis]))
    finish(ctx, joined(ctx, parts, axis))


def dynamic_update_slice(ctx: Context) -> None:
    """inputs: x, update, begins. The update in its place, which is moved into x as far as it would leave it."""
    ctx.expect_inputs(3)
    x, update, begins = ctx.x(0), ctx.x(1), ctx.numbers(2, "place")
    if not len(x.shape) == len(update.shape) == len(begins):
        raise RefusedError(f"puts {list(update.shape)} at {begins} into {list(x.shape)}")
    if any(n > size for n, size in zip(update.shape, x.shape, strict=True)):
        raise RefusedError(f"puts {list(update.shape)} into {list(x.shape)}")
    if update.type.quant != x.type.quant:
        raise RefusedError("puts values of one scale among those of another", "give both one quantization")

    def placed(around: Tensor, axis: int) -> Tensor:
        if around.shape[axis:] == update.shape[axis:]:
            return update
        size, count = around.shape[axis], update.shape[axis]
        start = min(max(begins[axis], 0), size - count)
        parts = [piece(ctx, around, axis, 0, start)] if start else []
        parts.append(placed(piece(ctx, around, axis, start, start + count), axis + 1))
        if start + count < size:
            parts.append(piece(ctx, around, axis, start + count, size))
        return joined(ctx, parts, axis)

    finish(ctx, placed(x, 0))


# ---------------------------------------------------------------- repeated


def tile(ctx: Context) -> None:
    ctx.expect_inputs(2)
    x, times = ctx.x(0), ctx.numbers(1, "multiples")
    if len(times) != len(x.shape) or min(times, default=1) < 1:
        raise RefusedError(f"repeats {list(x.shape)} by {times}")
    for axis, count in enumerate(times):
        if count > 1:
            before, size, behind = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
            wide = spread(ctx, ctx.reshape(x, (*before, 1, size, *behind)), (*before, count, size, *behind))
            x = ctx.reshape(wide, (*before, count * size, *behind))
    finish(ctx, x)


def broadcast_to(ctx: Context) -> None:
    finish(ctx, spread(ctx, ctx.x(0), ctx.out_info().shape))


def fill(ctx: Context) -> None:
    """inputs: shape, value; the shape stands in the file."""
    finish(ctx, spread(ctx, ctx.x(1), ctx.out_info().shape))


HANDLERS: Mapping[str, Handler] = {
    "RESHAPE": reshape,
    "SQUEEZE": reshape,
    "EXPAND_DIMS": reshape,
    "TRANSPOSE": transpose,
    "CONCATENATION": concatenation,
    "PACK": pack,
    "UNPACK": unpack,
    "SPLIT": split,
    "SPLIT_V": split_v,
    "SLICE": slice_,
    "STRIDED_SLICE": strided_slice,
    "GATHER": gather,
    "GATHER_ND": gather_nd,
    "EMBEDDING_LOOKUP": embedding_lookup,
    "REVERSE_V2": reverse,
    "REVERSE_SEQUENCE": reverse_sequence,
    "DYNAMIC_UPDATE_SLICE": dynamic_update_slice,
    "TILE": tile,
    "BROADCAST_TO": broadcast_to,
    "FILL": fill,
}
