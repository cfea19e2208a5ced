# SPDX-License-Identifier: Apache-2.0
"""Rows that move values, or give them another shape."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.exporters.tflite.context import Context, Handler
from tinyet.exporters.tflite.limits import LIMITS
from tinyet.exporters.tflite.moves import gathered, reshaped, strided
from tinyet.ir import Attrs
from tinyet.ops.concat import Concat
from tinyet.ops.copy import Copy
from tinyet.ops.embedding import Embedding
from tinyet.ops.expand import Expand
from tinyet.ops.flip import Flip
from tinyet.ops.permute import Permute, moves_nothing
from tinyet.ops.reshape import Reshape
from tinyet.ops.shared.shapes import around_axis
from tinyet.ops.slice import Slice
from tinyet.tflite.options import ConcatenationOptions, GatherOptions

MOST_IN_TFLM = 10
"""Inputs of a CONCATENATION that TFLM takes."""


def reshape(ctx: Context) -> None:
    reshaped(ctx, ctx.x(), ctx.node.output.shape, ctx.out)


def permute(ctx: Context) -> None:
    attrs = ctx.node.attrs
    assert isinstance(attrs, Permute)
    if moves_nothing(ctx.node.input(0).shape, attrs.order):
        reshape(ctx)
        return
    ctx.call("TRANSPOSE", [ctx.x(), ctx.numbers(attrs.order, "order")], ctx.out)


def slice_(ctx: Context) -> None:
    attrs, shape = ctx.node.attrs, ctx.node.input(0).shape
    assert isinstance(attrs, Slice)
    if len(shape) <= LIMITS["tflm"]["STRIDED_SLICE"].rank:
        begin, end, steps = [0] * len(shape), list(shape), [1] * len(shape)
        begin[attrs.axis], end[attrs.axis], steps[attrs.axis] = attrs.start, attrs.stop, attrs.step
        strided(ctx, ctx.x(), begin, end, steps, ctx.out)
        return
    # What lies around the axis is one dimension before and one behind it.
    outer, size, inner = around_axis(shape, attrs.axis)
    x = reshaped(ctx, ctx.x(), (outer, size, inner))
    made = ctx.like(ctx.out, (outer, ctx.node.output.shape[attrs.axis], inner))
    strided(ctx, x, (0, attrs.start, 0), (outer, attrs.stop, inner), (1, attrs.step, 1), made)
    reshaped(ctx, made, ctx.node.output.shape, ctx.out)


def concat(ctx: Context) -> None:
    """More than TFLM takes at once, one after the other."""
    node, attrs = ctx.node, ctx.node.attrs
    assert isinstance(attrs, Concat)
    options = ConcatenationOptions(attrs.axis)
    left = [ctx.x(position) for position in range(len(node.inputs))]
    while ctx.runtime == "tflm" and len(left) > MOST_IN_TFLM:
        some, left = left[:MOST_IN_TFLM], left[MOST_IN_TFLM:]
        shape = list(ctx.tensors[some[0]].shape)
        shape[attrs.axis] = sum(ctx.tensors[index].shape[attrs.axis] for index in some)
        left.insert(0, ctx.call("CONCATENATION", some, ctx.like(ctx.out, tuple(shape)), options))
    if len(left) > MOST_IN_TFLM:
        ctx.unlike("tflm", f"concatenates at most {MOST_IN_TFLM} values")
    ctx.call("CONCATENATION", left, ctx.out, options)


def expand(ctx: Context) -> None:
    if ctx.node.input(0).type.count == ctx.node.output.type.count:
        reshape(ctx)
        return
    ctx.call("BROADCAST_TO", [ctx.x(), ctx.numbers(ctx.node.output.shape, "shape")], ctx.out)


def flip(ctx: Context) -> None:
    attrs, x = ctx.node.attrs, ctx.x()
    assert isinstance(attrs, Flip)
    for axis in attrs.axes:
        order = np.arange(ctx.node.output.shape[axis])[::-1]
        x = gathered(ctx, x, order, axis, ctx.out if axis == attrs.axes[-1] else None)


def embedding(ctx: Context) -> None:
    indices, table = ctx.node.input(0), ctx.node.input(1)
    ctx.note("in the .tflite file: an index outside the table is an error, and not the nearest row")
    ctx.call("GATHER", [ctx.of(table), ctx.of(indices)], ctx.out, GatherOptions(0))


HANDLERS: Mapping[type[Attrs], Handler] = {
    Concat: concat,
    Copy: reshape,
    Embedding: embedding,
    Expand: expand,
    Flip: flip,
    Permute: permute,
    Reshape: reshape,
    Slice: slice_,
}
