# SPDX-License-Identifier: Apache-2.0
"""ATen handlers of operators that move values: views, permutations, slices, concatenations, padding, look-ups."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from tinyet.errors import RefusedError
from tinyet.importers.torch.aten_truth import converted
from tinyet.importers.torch.context import (
    Args,
    Constant,
    Context,
    Dynamic,
    Handler,
    StandIn,
    Value,
    axis_of,
    dtype_of,
    type_of,
)
from tinyet.ir import DType, Tensor
from tinyet.ops.cast import Cast
from tinyet.ops.concat import Concat
from tinyet.ops.embedding import Embedding
from tinyet.ops.expand import Expand
from tinyet.ops.flip import Flip
from tinyet.ops.gather import Gather
from tinyet.ops.pad import Pad, PadMode
from tinyet.ops.slice import Slice
from tinyet.ops.unfold import Unfold

aten = torch.ops.aten


def getitem(ctx: Context, a: Args) -> Value:
    """One result of an operator with several."""
    values = ctx.values[a["self"]]
    assert isinstance(values, tuple)
    value = values[a["index"]]
    if value is None:
        raise RefusedError(f"result {a['index']} of {a['self'].target} is used", "use the first result only")
    assert isinstance(value, (Tensor, Constant, Dynamic))
    return value


def identity(ctx: Context, a: Args) -> Value:
    """clone, detach, …, and _to_copy, which may turn integers and truth values into others and into float32."""
    source = a["self"] if "self" in a else a["input"]
    value = ctx.node.meta["val"]
    constant = ctx.constant(source)
    if constant is not None:
        return constant
    x = ctx.tensor(source)
    if isinstance(x, StandIn) or value.dtype is source.meta["val"].dtype:
        return x
    made = converted(ctx, source, value.dtype)
    if made is not None:
        return made
    if value.is_floating_point():
        raise RefusedError(f"converts {x.dtype.value} to {value.dtype}", "stay with float32: leave this out")
    if x.dtype is DType.FLOAT32:
        raise RefusedError(
            f"converts float32 to {value.dtype}",
            "leave this out: torch.floor and torch.round give whole numbers in float32, argmax gives indices",
        )
    if (x.dtype is DType.UINT8) != (value.dtype is torch.uint8):
        raise RefusedError(
            f"converts {x.dtype.value} to {value.dtype}",
            "bytes become float32, by x.float(), and nothing else",
        )
    x = ctx.as_int32(x)
    if value.dtype in (torch.int8, torch.int16) and x.dtype is DType.INT32:
        kind = type_of(x.shape, dtype_of(value))
        return ctx.emit(Cast(), [x], kind.shape, kind.dtype, kind.quant)
    return x


def dropout(ctx: Context, a: Args) -> Value:
    if a["train"]:
        raise RefusedError("drops while running, as in training", "give F.dropout training=self.training")
    return identity(ctx, a)


def view(ctx: Context, a: Args) -> Value:
    """Every operator that only renames dimensions; torch has worked the new shape out."""
    constant = ctx.constant(a["self"])
    if constant is not None:
        reshaped = constant.reshape(ctx.shape)
        if reshaped is not None:
            return reshaped
    return ctx.reshape(ctx.tensor(a["self"]), ctx.shape)


def _permuted(ctx: Context, source: object, order: Sequence[int]) -> Value:
    constant = ctx.constant(source)
    return constant.permute(order) if constant is not None else ctx.permute(ctx.tensor(source), order)


def permute(ctx: Context, a: Args) -> Value:
    rank = len(a["dims"])
    return _permuted(ctx, a["self"], [axis_of(axis, rank) for axis in a["dims"]])


def transpose(ctx: Context, a: Args) -> Value:
    order = list(range(len(ctx.shape)))
    first, second = axis_of(a["dim0"], len(order)), axis_of(a["dim1"], len(order))
    order[first], order[second] = second, first
    return _permuted(ctx, a["self"], order)


def matrix_transpose(ctx: Context, a: Args) -> Value:
    return _permuted(ctx, a["self"], range(len(ctx.shape))[::-1])


def _expanded(ctx: Context, x: Tensor, shape: Sequence[int]) -> Tensor:
    return x if x.shape == tuple(shape) else ctx.move(Expand(tuple(shape)), [x], shape)


def expand(ctx: Context, a: Args) -> Value:
    return _expanded(ctx, ctx.tensor(a["self"]), ctx.shape)


def repeat(ctx: Context, a: Args) -> Value:
    """Each dimension becomes (times, size), is expanded, and merged again."""
    x, times = ctx.tensor(a["self"]), list(a["repeats"])
    sizes = [1] * (len(times) - len(x.shape)) + list(x.shape)
    apart = [size for pair in zip([1] * len(times), sizes, strict=True) for size in pair]
    spread = [size for pair in zip(times, sizes, strict=True) for size in pair]
    return ctx.reshape(_expanded(ctx, ctx.reshape(x, apart), spread), ctx.shape)


def _slice(ctx: Context, x: Tensor, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
    if (start, stop, step) == (0, x.shape[axis], 1):
        return x
    shape = list(x.shape)
    shape[axis] = len(range(start, stop, step))
    return ctx.move(Slice(axis, start, stop, step), [x], shape)


def _concat(ctx: Context, parts: Sequence[Tensor], axis: int) -> Tensor:
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return ctx.move(Concat(axis), parts, shape)


def _range(a: Args, size: int) -> tuple[int, int, int]:
    return slice(a["start"], a["end"], a["step"]).indices(size)


def slice_(ctx: Context, a: Args) -> Value:
    x = ctx.tensor(a["self"])
    axis = axis_of(a["dim"], len(x.shape))
    return _slice(ctx, x, axis, *_range(a, x.shape[axis]))


def select(ctx: Context, a: Args) -> Value:
    x = ctx.tensor(a["self"])
    axis = axis_of(a["dim"], len(x.shape))
    index = axis_of(a["index"], x.shape[axis])
    return ctx.reshape(_slice(ctx, x, axis, index, index + 1), ctx.shape)


def split(ctx: Context, a: Args) -> Value:
    """split, split_with_sizes, chunk: the sizes are those that torch has worked out. Unread parts are left out."""
    x = ctx.tensor(a["self"])
    axis = axis_of(a["dim"], len(x.shape))
    used = ctx.results_used()
    parts: list[Tensor | None] = []
    start = 0
    for index, value in enumerate(ctx.node.meta["val"]):
        stop = start + int(value.shape[axis])
        parts.append(_slice(ctx, x, axis, start, stop) if index in used else None)
        start = stop
    return tuple(parts)


def unbind(ctx: Context, a: Args) -> Value:
    x = ctx.tensor(a["self"])
    axis = axis_of(a["dim"], len(x.shape))
    shape = [size for index, size in enumerate(x.shape) if index != axis]
    used = ctx.results_used()
    return tuple(
        ctx.reshape(_slice(ctx, x, axis, i, i + 1), shape) if i in used else None
        for i in range(x.shape[axis])
    )


def cat(ctx: Context, a: Args) -> Value:
    parts = [ctx.tensor(part) for part in a["tensors"]]
    # torch lets empty vectors of any rank pass
    parts = [part for part in parts if part.type.count]
    return _concat(ctx, parts, axis_of(a["dim"], len(parts[0].shape)))


def stack(ctx: Context, a: Args) -> Value:
    parts = [ctx.tensor(part) for part in a["tensors"]]
    axis = axis_of(a["dim"], len(parts[0].shape) + 1)
    shape = [*parts[0].shape[:axis], 1, *parts[0].shape[axis:]]
    return _concat(ctx, [ctx.reshape(part, shape) for part in parts], axis)


def roll(ctx: Context, a: Args) -> Value:
    x = ctx.tensor(a["self"])
    flat = not a["dims"]
    y = ctx.reshape(x, (x.type.count,)) if flat else x
    for shift, dim in zip(a["shifts"], a["dims"] or [0], strict=True):
        axis = axis_of(dim, len(y.shape))
        size = y.shape[axis]
        if cut := -shift % size:
            y = _concat(ctx, [_slice(ctx, y, axis, cut, size), _slice(ctx, y, axis, 0, cut)], axis)
    return ctx.reshape(y, x.shape)


def flip(ctx: Context, a: Args) -> Value:
    """Axes of one element are as they were."""
    x = ctx.tensor(a["self"])
    axes = {axis_of(dim, len(x.shape)) for dim in a["dims"]}
    axes = {axis for axis in axes if x.shape[axis] > 1}
    return ctx.move(Flip(tuple(sorted(axes))), [x], x.shape) if axes else x


def _unfolded(ctx: Context, x: Tensor, attrs: Unfold) -> Tensor:
    shape, axis = x.shape, attrs.axis
    count = (shape[axis] - (attrs.size - 1) * attrs.dilation - 1) // attrs.step + 1
    return ctx.move(attrs, [x], (*shape[:axis], count, *shape[axis + 1 :], attrs.size))


def unfold(ctx: Context, a: Args) -> Value:
    x = ctx.tensor(a["self"])
    if not x.shape:
        return ctx.reshape(x, ctx.shape)
    return _unfolded(ctx, x, Unfold(axis_of(a["dimension"], len(x.shape)), a["size"], a["step"]))


def im2col(ctx: Context, a: Args) -> Value:
    """F.unfold: windows of an image as columns, (N, C * kh * kw, windows)."""
    x = ctx.tensor(a["self"])
    rows, columns = a["padding"]
    x = _padded(ctx, x, (columns, columns, rows, rows), "constant", 0.0)
    axis = len(x.shape) - 2
    given = zip(a["kernel_size"], a["stride"], a["dilation"], strict=True)
    for number, (size, step, dilation) in enumerate(given):
        x = _unfolded(ctx, x, Unfold(axis + number, size, step, dilation))
    outer = range(axis)
    return ctx.reshape(ctx.permute(x, (*outer, axis + 2, axis + 3, axis, axis + 1)), ctx.shape)


_MOST_RUNS = 8
"""Runs of neighbours that are a slice each; more become one look-up."""


def index_select(ctx: Context, a: Args) -> Value:
    rank = len(ctx.tensor(a["self"]).shape)
    return ctx.reshape(_selected(ctx, a["self"], axis_of(a["dim"], rank), a["index"]), ctx.shape)


def _selected(ctx: Context, source: object, axis: int, places: object) -> Tensor:
    """Rows along an axis. By constant places: a few runs of neighbours are slices. Else a look-up."""
    x, constant = ctx.tensor(source), ctx.constant(places)
    x = x if x.shape else ctx.reshape(x, (1,))
    size = x.shape[axis]
    if constant is None:
        return _gathered(ctx, x, axis, ctx.tensor(places))
    found = [int(i) % size for i in constant.data.reshape(-1)]
    runs: list[list[int]] = []
    for index in found:
        if runs and runs[-1][1] == index:
            runs[-1][1] += 1
        else:
            runs.append([index, index + 1])
    if len(runs) > _MOST_RUNS:
        listed = Constant(f"{ctx.node.name}_places", np.array(found, np.int32))
        return _gathered(ctx, x, axis, ctx.hold(listed))
    return _concat(ctx, [_slice(ctx, x, axis, start, stop) for start, stop in runs], axis)


def _gathered(ctx: Context, x: Tensor, axis: int, places: Tensor, *, rows: bool = True) -> Tensor:
    """At places of any shape; rows of x, or an element for each."""
    if places.dtype is not DType.INT32:
        raise RefusedError(f"takes elements by {places.dtype.value} values", "use int32 or int64 indices")
    listed = ctx.reshape(places, (places.type.count,)) if rows else places
    count = places.type.count if rows else places.shape[axis]
    return ctx.move(Gather(axis), [x, listed], (*x.shape[:axis], count, *x.shape[axis + 1 :]))


def gather(ctx: Context, a: Args) -> Value:
    """The index may be smaller than x along the other axes; the rest of x is not read then."""
    x, places = ctx.tensor(a["self"]), ctx.tensor(a["index"])
    if len(x.shape) < 2:
        # torch takes a tensor without dimensions for one of one dimension.
        return ctx.reshape(_gathered(ctx, ctx.reshape(x, (x.type.count,)), 0, places), ctx.shape)
    axis = axis_of(a["dim"], len(x.shape))
    for at, size in enumerate(places.shape):
        x = _slice(ctx, x, at, 0, size) if at != axis else x
    return _gathered(ctx, x, axis, places, rows=False)


def index(ctx: Context, a: Args) -> Value:
    """x[:, :, i] with whole numbers i along one axis; `places` has rewritten, or left, those along several."""
    given = [(axis, part) for axis, part in enumerate(a["indices"]) if part is not None]
    axis, part = given[0]
    if len(given) > 1 or part.meta["val"].dtype not in (torch.int32, torch.int64):
        raise RefusedError(
            "is not supported with these indices",
            "take whole numbers along axes that follow one another; instead of a mask, whose result has a size that "
            "depends on values, torch.where(mask, x, 0.0)",
        )
    return ctx.reshape(_selected(ctx, a["self"], axis, part), ctx.shape)


def _scatter(ctx: Context, x: Tensor, part: Tensor, axis: int, start: int, stop: int) -> Tensor:
    """x with its elements start … stop along `axis` replaced by `part`."""
    parts = []
    if start > 0:
        parts.append(_slice(ctx, x, axis, 0, start))
    parts.append(part)
    if stop < x.shape[axis]:
        parts.append(_slice(ctx, x, axis, stop, x.shape[axis]))
    return _concat(ctx, parts, axis)


def select_scatter(ctx: Context, a: Args) -> Value:
    x, part = ctx.tensor(a["self"]), ctx.tensor(a["src"])
    axis = axis_of(a["dim"], len(x.shape))
    index = axis_of(a["index"], x.shape[axis])
    part = ctx.reshape(part, [1 if i == axis else size for i, size in enumerate(x.shape)])
    return _scatter(ctx, x, part, axis, index, index + 1)


def slice_scatter(ctx: Context, a: Args) -> Value:
    x, part = ctx.tensor(a["self"]), ctx.tensor(a["src"])
    axis = axis_of(a["dim"], len(x.shape))
    start, stop, step = _range(a, x.shape[axis])
    if step != 1:
        raise RefusedError("writing to every n-th element", "build the tensor with torch.cat or torch.stack")
    return _scatter(ctx, x, part, axis, start, stop)


def fill(ctx: Context, a: Args) -> Value:
    """A constant of the tensor's shape."""
    value = ctx.optional_constant(a["value"] if "value" in a else a["fill_value"], "value")
    assert value is not None
    return Constant(ctx.node.name, np.full(ctx.shape, value.real(), np.float32))


# ---------------------------------------------------------------- pixels and padding


def pixel_shuffle(ctx: Context, a: Args) -> Value:
    """(…, C r², H, W) → (…, C, H r, W r)."""
    x, r = ctx.tensor(a["self"]), a["upscale_factor"]
    *batch, channels, height, width = x.shape
    n = math.prod(batch)
    y = ctx.reshape(x, (n, channels // (r * r), r, r, height, width))
    return ctx.reshape(ctx.permute(y, (0, 1, 4, 2, 5, 3)), ctx.shape)


def pixel_unshuffle(ctx: Context, a: Args) -> Value:
    """(…, C, H r, W r) → (…, C r², H, W)."""
    x, r = ctx.tensor(a["self"]), a["downscale_factor"]
    *batch, channels, height, width = x.shape
    y = ctx.reshape(x, (math.prod(batch), channels, height // r, r, width // r, r))
    return ctx.reshape(ctx.permute(y, (0, 1, 3, 5, 2, 4)), ctx.shape)


def channel_shuffle(ctx: Context, a: Args) -> Value:
    x, groups = ctx.tensor(a["self"]), a["groups"]
    n, channels = x.shape[:2]
    rest = math.prod(x.shape[2:])
    y = ctx.reshape(x, (n, groups, channels // groups, rest))
    return ctx.reshape(ctx.permute(y, (0, 2, 1, 3)), ctx.shape)


def _padded(ctx: Context, x: Tensor, amounts: Sequence[int], mode: PadMode, value: float) -> Tensor:
    """torch's list: (before, after) of the last dimension, then of the one before, …; negative amounts
    crop."""
    rank = len(x.shape)
    pads = [(0, 0)] * rank
    for index in range(len(amounts) // 2):
        axis = rank - 1 - index
        before, after = int(amounts[2 * index]), int(amounts[2 * index + 1])
        x = _slice(ctx, x, axis, max(-before, 0), x.shape[axis] - max(-after, 0))
        pads[axis] = (max(before, 0), max(after, 0))
    if not any(sum(both) for both in pads):
        return x
    shape = [size + sum(both) for size, both in zip(x.shape, pads, strict=True)]
    return ctx.move(Pad(tuple(pads), mode, float(value)), [x], shape)


def _wrapped(ctx: Context, x: Tensor, amounts: Sequence[int]) -> Tensor:
    """Circular padding: the other end's elements on each side. Amounts as for `_padded`."""
    for index in range(len(amounts) // 2):
        axis = len(x.shape) - 1 - index
        before, after = int(amounts[2 * index]), int(amounts[2 * index + 1])
        if before < 0 or after < 0:
            raise RefusedError("circular padding by negative amounts", "slice the tensor instead")
        size = x.shape[axis]
        parts = [_slice(ctx, x, axis, size - before, size)] if before else []
        parts.append(x)
        parts += [_slice(ctx, x, axis, 0, after)] if after else []
        x = _concat(ctx, parts, axis)
    return x


def _pad(mode: PadMode) -> Handler:
    def row(ctx: Context, a: Args) -> Value:
        amounts = a["pad"] if "pad" in a else a["padding"]
        return _padded(ctx, ctx.tensor(a["self"]), amounts, mode, a.get("value") or 0.0)

    return row


def pad(ctx: Context, a: Args) -> Value:
    mode = a["mode"]
    if mode == "circular":
        return _wrapped(ctx, ctx.tensor(a["self"]), a["pad"])
    if mode not in ("constant", "reflect", "replicate"):
        raise RefusedError(f"padding in mode {mode!r}", "use constant, reflect, replicate or circular")
    return _padded(ctx, ctx.tensor(a["self"]), a["pad"], mode, a["value"] or 0.0)


def embedding(ctx: Context, a: Args) -> Value:
    table = ctx.optional_constant(a["weight"], "table")
    assert table is not None
    indices = ctx.tensor(a["indices"])
    if indices.dtype is not DType.INT32:
        raise RefusedError(f"an embedding looked up by {indices.dtype.value} values", "use integer indices")
    held = ctx.hold(table.named(ctx.parameter_name("weight")))
    return ctx.emit(Embedding(), [indices, held], ctx.shape)


_VIEWS = (
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.flatten.using_ints,
    aten.unflatten.int, aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.unsqueeze.default,
)  # fmt: skip
_IDENTITIES = (
    aten.clone.default, aten.alias.default, aten.detach.default, aten.contiguous.default,
    aten._to_copy.default, aten.lift_fresh_copy.default, aten.to.dtype, aten.to.dtype_layout,
)  # fmt: skip

SHAPE_HANDLERS: dict[object, Handler] = {
    **dict.fromkeys(_VIEWS, view),
    **dict.fromkeys(_IDENTITIES, identity),
    aten.dropout.default: dropout,
    aten.permute.default: permute,
    aten.transpose.int: transpose,
    aten.t.default: matrix_transpose,
    aten.expand.default: expand,
    aten.repeat.default: repeat,
    aten.slice.Tensor: slice_,
    aten.select.int: select,
    aten.split.Tensor: split,
    aten.split_with_sizes.default: split,
    aten.chunk.default: split,
    aten.unbind.int: unbind,
    aten.cat.default: cat,
    aten.stack.default: stack,
    aten.roll.default: roll,
    aten.flip.default: flip,
    aten.unfold.default: unfold,
    aten.im2col.default: im2col,
    aten.index_select.default: index_select,
    aten.index.Tensor: index,
    aten.gather.default: gather,
    aten.select_scatter.default: select_scatter,
    aten.slice_scatter.default: slice_scatter,
    aten.fill.Tensor: fill,
    aten.fill.Scalar: fill,
    aten.full_like.default: fill,
    aten.pixel_shuffle.default: pixel_shuffle,
    aten.pixel_unshuffle.default: pixel_unshuffle,
    aten.channel_shuffle.default: channel_shuffle,
    aten.pad.default: pad,
    aten.constant_pad_nd.default: _pad("constant"),
    aten.reflection_pad1d.default: _pad("reflect"),
    aten.reflection_pad2d.default: _pad("reflect"),
    aten.replication_pad1d.default: _pad("replicate"),
    aten.replication_pad2d.default: _pad("replicate"),
    aten.embedding.default: embedding,
}
