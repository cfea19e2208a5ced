# SPDX-License-Identifier: Apache-2.0
"""Operators that move or choose elements: forms change where that is all there is to do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch.nn import functional as F

from tinyet.errors import RefusedError
from tinyet.ir import Array, Shape
from tinyet.ops.concat import Concat
from tinyet.ops.cumsum import CumSum
from tinyet.ops.expand import Expand
from tinyet.ops.flip import Flip
from tinyet.ops.gather import Gather
from tinyet.ops.pad import Pad, PadMode
from tinyet.ops.permute import Permute
from tinyet.ops.reshape import Reshape
from tinyet.ops.slice import Slice
from tinyet.ops.unfold import Unfold
from tinyet.to_module.build import Build, Value, constant
from tinyet.to_module.form import Form, order_of, plain, reshaped
from tinyet.to_module.network import moved

Pads = tuple[tuple[int, int], ...]


def permute(b: Build) -> None:
    x = b.value(0)
    b.pass_on(x, x.form.permuted(b.attrs(Permute).order))


def copy(b: Build) -> None:
    x = b.value(0)
    b.pass_on(x, x.form)


def reshape(b: Build) -> None:
    x, after = b.value(0), b.attrs(Reshape).shape
    form = reshaped(x.shape, after, x.form)
    if form is not None:
        b.pass_on(x, form)
        return
    kept = [dim for dim in x.form.dims if dim is not None]
    order = order_of(x.torch_shape, kept)
    shape = (-1, *after[1:]) if after else after
    b.give(b.call(partial(moved, order=order, shape=shape), [x]), plain(len(after)), truth=x.truth)


def expand(b: Build) -> None:
    """Dimensions that stay as they are, are written -1: a batch may be of another size."""
    shape = b.attrs(Expand).shape
    x = b.value(0).lifted(len(shape))
    form = x.form if all(dim is not None for dim in x.form.dims) else plain(len(shape))
    sizes = tuple(
        -1 if before == after else after
        for before, after in zip(form.shape_of(x.shape), form.shape_of(shape), strict=True)
    )
    made = b.call(partial(_expanded, sizes=sizes), [b.in_form(x, form)])
    b.give(made, form, truth=x.truth)


def _expanded(x: torch.Tensor, sizes: Shape) -> torch.Tensor:
    return x.expand(sizes)


def slice_(b: Build) -> None:
    attrs, x = b.attrs(Slice), b.value(0)
    form, dim = x.along(attrs.axis)
    function = partial(_sliced, dim=dim, start=attrs.start, stop=attrs.stop, step=attrs.step)
    b.give(b.call(function, [b.in_form(x, form)]), form, truth=x.truth)


def _sliced(x: torch.Tensor, dim: int, start: int, stop: int, step: int) -> torch.Tensor:
    return x[(slice(None),) * dim + (slice(start, stop, step),)]


def flip(b: Build) -> None:
    axes, x = b.attrs(Flip).axes, b.value(0)
    dims = [dim for axis in axes if (dim := x.form.dims[axis]) is not None]
    b.give(b.call(partial(torch.flip, dims=dims), [x]), x.form, truth=x.truth)


def cumsum(b: Build) -> None:
    x = b.value(0)
    form, dim = x.along(b.attrs(CumSum).axis)
    b.give(b.call(partial(torch.cumsum, dim=dim), [b.in_form(x, form)]), form)


def concat(b: Build) -> None:
    axis = b.attrs(Concat).axis
    values = [b.value(index) for index in range(len(b.node.inputs))]
    if len({v.truth for v in values}) > 1:
        raise RefusedError("puts truth values beside numbers", "make them floats first")
    form = b.common(values, b.node.output.shape, whole=(axis,))
    made = b.call(partial(_joined, dim=form.dim(axis)), [b.in_form(v, form) for v in values])
    b.give(made, form, truth=values[0].truth)


def _joined(*parts: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.cat(parts, dim)


def unfold(b: Build) -> None:
    """torch, too, has what is in a window along a new last dimension."""
    attrs, x = b.attrs(Unfold), b.value(0)
    form, dim = x.along(attrs.axis)
    wide = (attrs.size - 1) * attrs.dilation + 1
    function = partial(_windows, dim=dim, size=wide, step=attrs.step, dilation=attrs.dilation)
    b.give(b.call(function, [b.in_form(x, form)]), Form(form.rank + 1, (*form.dims, form.rank)))


def _windows(x: torch.Tensor, dim: int, size: int, step: int, dilation: int) -> torch.Tensor:
    return x.unfold(dim, size, step)[..., ::dilation]


# ---------------------------------------------------------------- at places that values say


def gather(b: Build) -> None:
    """A place below 0 counts from the end in the graph; in torch only a constant one is made so."""
    attrs, x, places = b.attrs(Gather), b.value(0), b.value(1)
    size = x.shape[attrs.axis]
    form, dim = x.along(attrs.axis)
    if places.data is not None:
        known = places.data.astype(np.int64)
        known = np.clip(np.where(known < 0, known + size, known), 0, size - 1)
        places = Value(places.slot, places.shape, places.form, known)
    rows = len(places.shape) == 1
    places = b.in_form(places, plain(1) if rows else form)
    function = partial(_rows_at, dim=dim) if rows else partial(_elements_at, dim=dim)
    b.give(b.call(function, [b.in_form(x, form), places]), form)


def _rows_at(x: torch.Tensor, places: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.index_select(x, dim, places)


def _elements_at(x: torch.Tensor, places: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.gather(x, dim, places.long())


# ---------------------------------------------------------------- padding


def pad(b: Build) -> None:
    attrs, x = b.attrs(Pad), b.value(0)
    form = x.form if all(dim is not None for dim in x.form.dims) else plain(len(x.shape))
    made = padded(b, b.in_form(x, form), attrs.pads, attrs.mode, attrs.value, role="")
    b.give(made.slot, form)


def padded(
    b: Build,
    x: Value,
    pads: Pads,
    mode: PadMode = "constant",
    value: float = 0.0,
    role: str = "pad",
) -> Value:
    """A value with so much before and behind it along each of the graph's dimensions; less than 0 is cut off. Its form
    has all of them."""
    shape = tuple(before + size + after for size, (before, after) in zip(x.shape, pads, strict=True))
    around = [(0, 0)] * x.form.rank
    held: list[Value] = []
    for dim, each in zip(x.form.dims, pads, strict=True):
        assert dim is not None
        around[dim] = each
    if mode == "constant":
        function = partial(_with_constant, pads=_for_torch(around), value=value)
    elif _takes(mode, around):
        function = partial(_with_edges, pads=_for_torch(around[2:]), mode=mode)
    else:
        known = zip(x.torch_shape, around, strict=True)
        found = [(dim, _sources(mode, size, *each)) for dim, (size, each) in enumerate(known) if any(each)]
        function = partial(_at_places, dims=[dim for dim, _ in found])
        held = [constant(places) for _, places in found]
    return Value(b.call(function, [x, *held], role), shape, x.form)


def _for_torch(pads: Sequence[tuple[int, int]]) -> list[int]:
    """From the last dimension to the first that is padded at all."""
    first = next((at for at, each in enumerate(pads) if any(each)), len(pads) - 1)
    return [size for each in reversed(pads[first:]) for size in each]


def _takes(mode: PadMode, pads: Sequence[tuple[int, int]]) -> bool:
    """Whether torch has that mode for these: it pads the last dimension of three, or the last two of four."""
    return mode != "constant" and len(pads) in (3, 4) and not any(map(any, pads[:2]))


def _with_constant(x: torch.Tensor, pads: Sequence[int], value: float) -> torch.Tensor:
    return F.pad(x, pads, value=value)


def _with_edges(x: torch.Tensor, pads: Sequence[int], mode: str) -> torch.Tensor:
    wide = [0] * (2 * (x.ndim - 2))
    wide[: len(pads)] = pads
    return F.pad(x, wide, mode=mode)


def _sources(mode: PadMode, size: int, before: int, after: int) -> Array:
    """Which element along a dimension stands at each place of the padded one."""
    index = np.arange(-before, size + after)
    found = size - 1 - np.abs(size - 1 - np.abs(index)) if mode == "reflect" else np.clip(index, 0, size - 1)
    return found.astype(np.int64)


def _at_places(x: torch.Tensor, *places: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    for dim, each in zip(dims, places, strict=True):
        x = torch.index_select(x, dim, each)
    return x
