# SPDX-License-Identifier: Apache-2.0
"""How a torch tensor lies beside the value of the graph that it holds.

tinyet's images are (N, H, W, C), torch's (N, C, H, W). No value is moved before an operator needs it in another order:
a Permute, and a Reshape that only adds or takes away dimensions of size 1, only change the form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.ir import Array, Shape


@dataclass(frozen=True)
class Form:
    """dims: for each dimension of the graph's value, the tensor's; None for one of size 1 that the tensor has not.
    rank: the tensor's; its other dimensions are of size 1."""

    rank: int
    dims: tuple[int | None, ...]

    def shape_of(self, shape: Shape) -> Shape:
        """The tensor's shape, of a value of the graph of this shape."""
        found = [1] * self.rank
        for size, dim in zip(shape, self.dims, strict=True):
            if dim is not None:
                found[dim] = size
        return tuple(found)

    def dim(self, axis: int) -> int:
        """The tensor's dimension that is this one of the graph's value; it must have it."""
        found = self.dims[axis]
        assert found is not None
        return found

    def holds(self, shape: Shape) -> bool:
        """Whether a value of this shape can have this form."""
        return all(dim is not None or size == 1 for dim, size in zip(self.dims, shape, strict=True))

    def lifted(self, rank: int) -> Form:
        """The same with leading dimensions of size 1, as numpy broadcasts."""
        return Form(self.rank, (*[None] * (rank - len(self.dims)), *self.dims))

    def permuted(self, order: Sequence[int]) -> Form:
        return Form(self.rank, tuple(self.dims[axis] for axis in order))

    def without(self, axes: Sequence[int]) -> Form:
        """Of a value whose dimensions `axes` are gone, in the tensor, too."""
        gone = {self.dims[axis] for axis in axes} - {None}
        left = [dim for dim in range(self.rank) if dim not in gone]
        rest = [dim for axis, dim in enumerate(self.dims) if axis not in axes]
        return Form(len(left), tuple(None if dim is None else left.index(dim) for dim in rest))


def plain(rank: int) -> Form:
    """The graph's own order."""
    return Form(rank, tuple(range(rank)))


IMAGE = Form(4, (0, 2, 3, 1))
"""(N, H, W, C) as torch's (N, C, H, W)."""


@dataclass(frozen=True)
class Move:
    """What makes one form of a value another: an order of all dimensions, then a shape, each where it changes
    something. The first size of the shape is -1, so that a batch of any size fits."""

    order: tuple[int, ...] | None
    shape: Shape | None

    @property
    def is_nothing(self) -> bool:
        return self.order is None and self.shape is None

    def of_array(self, data: Array) -> Array:
        """The same of a constant."""
        data = data if self.order is None else data.transpose(self.order)
        return np.asarray(data if self.shape is None else data.reshape(self.shape), order="C")


def move_between(shape: Shape, source: Form, wanted: Form) -> Move:
    """shape: of the graph's value. `wanted` holds that shape."""
    places: list[int | None] = [None] * wanted.rank
    for have, want in zip(source.dims, wanted.dims, strict=True):
        if want is not None:
            places[want] = have
    kept = [dim for dim in places if dim is not None]
    order = order_of(source.shape_of(shape), kept)
    before, after = source.shape_of(shape), wanted.shape_of(shape)
    if order is not None:
        before = tuple(before[dim] for dim in order)
    return Move(order, None if before == after else _any_batch(after))


def _any_batch(shape: Shape) -> Shape:
    return (-1, *shape[1:]) if shape else shape


def order_of(shape: Shape, kept: Sequence[int]) -> tuple[int, ...] | None:
    """The order in which the dimensions `kept` of a tensor stand in that order, and the others, all of size 1, behind
    them; None where a look at its elements one after another shows no difference. The first dimension may hold a batch
    of another size."""
    large = [dim for dim in kept if shape[dim] != 1 or dim == 0]
    if large == sorted(large):
        return None
    return (*kept, *(dim for dim in range(len(shape)) if dim not in kept))


def reshaped(before: Shape, after: Shape, form: Form) -> Form | None:
    """The form of the same tensor, of a value of shape `before`, for the shape `after`, if that only adds or takes away
    dimensions of size 1; else None."""
    if [size for size in before if size != 1] != [size for size in after if size != 1]:
        return None
    dims: list[int | None] = []
    waiting = 0
    for size in after:
        # Of several of size 1 in a row the first stay the first: a batch of one is one.
        if size == 1:
            one = waiting < len(before) and before[waiting] == 1
            dims.append(form.dims[waiting] if one else None)
            waiting += one
            continue
        while before[waiting] == 1:
            waiting += 1
        dims.append(form.dims[waiting])
        waiting += 1
    return Form(form.rank, tuple(dims))
