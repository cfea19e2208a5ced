# SPDX-License-Identifier: Apache-2.0
"""An operator's iteration against its reference: an element of an input changes an output only where the map says it
can; and the footprint of some indices of an output holds all that they depend on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.cases import Case
from tests.ops.strategies import strategy_of
from tinyet import ops
from tinyet.ir import Array, Node, Tensor
from tinyet.opset import Index, Iteration, Op, Operand, Spans
from tinyet.opset.blocks import footprints
from tinyet.opset.iteration import Kind

Mask = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]

drawn = settings(max_examples=30, deadline=None)

MOST_OUTPUTS = 4096
"""Elements of an output; larger ones are not drawn."""


def reached(
    space: Iteration, read: Operand, written: Operand, shape: Sequence[int], element: Sequence[int]
) -> Mask:
    """Of an output's indices of the dimensions that write it, those that may depend on an element of an input of this
    shape: bool, one axis a dimension."""
    dims = sorted({dim for axis in written.axes for dim in axis.dims})
    sizes = [space.dims[dim].size for dim in dims]
    grid = dict(zip(dims, np.indices(sizes), strict=True)) if dims else {}
    found = np.ones(sizes, np.bool_)
    for axis, place, size in zip(read.axes, element, shape, strict=True):
        if isinstance(axis, Spans):
            low, count = np.array(axis.spans).T
            hit = (low <= place) & (place < low + count)
            found &= hit[grid[axis.dim]] if axis.dim in grid else hit.any()
            continue
        # Of dimensions that are not the output's, and of the earlier steps of those in sequence, any index is read.
        free = [dim for dim in axis.dims if dim not in grid or space.kind(dim) is Kind.SEQUENTIAL]
        some = np.zeros(sizes, np.bool_)
        for values in itertools.product(*(range(space.dims[dim].size) for dim in free)):
            chosen = dict(zip(free, values, strict=True))
            index = axis.offset + sum(c * chosen.get(d, grid.get(d, 0)) for d, c in axis.terms)
            if read.outside == "edge":
                index = np.clip(index, 0, size - 1)
            if read.outside == "reflect":
                index = mirrored(index, size)
            early = [grid[d] >= v for d, v in chosen.items() if d in grid]
            some |= np.logical_and.reduce([np.broadcast_to(index == place, sizes), *early])
        found &= some
    return found


def mirrored(index: Int64, size: int) -> Int64:
    """Where indices beyond the first and the last element are reflected to."""
    return np.asarray(size - 1 - np.abs(size - 1 - np.abs(index)), np.int64)


def places(written: Operand, mask: Mask, shape: Sequence[int]) -> Mask:
    """The elements of an output of this shape at some indices of the dimensions that write it."""
    dims = sorted({dim for axis in written.axes for dim in axis.dims})
    where = dict(zip(dims, np.nonzero(mask), strict=True)) if dims else {}
    result = np.zeros(shape, np.bool_)
    if not dims:
        result[...] = mask
        return result
    index = []
    for axis in written.axes:
        assert isinstance(axis, Index)
        index.append(
            axis.offset + sum((c * where[d] for d, c in axis.terms), np.zeros(len(where[dims[0]]), np.int64))
        )
    inside = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(index, shape, strict=True)])
    result[tuple(i[inside] for i in index)] = True
    return result


def perturbed(case: Case, number: int, element: tuple[int, ...], rng: np.random.Generator) -> Case:
    """The case with another value in one place of an input: one that the input has elsewhere, so that what stands for
    places stays in range, or, of numbers, the type's greatest or least."""
    tensor = case.node.input(number)
    held = {t: k for k, t in enumerate(dict.fromkeys(t for t in case.node.inputs if t and not t.is_constant))}
    data = (tensor.array if tensor.is_constant else case.inputs[held[tensor]]).copy()
    others = [data.reshape(-1)[rng.integers(data.size)]]
    if tensor.type.quant is not None and not tensor.is_constant:
        others += [data.dtype.type(end) for end in tensor.dtype.range]
    data[element] = others[rng.integers(len(others))]
    if not tensor.is_constant:
        arrays = [data if k == held[tensor] else each for k, each in enumerate(case.inputs)]
        return Case(case.node, tuple(arrays))
    again = Tensor(tensor.name, tensor.type, data)
    inputs = [again if k == number else t for k, t in enumerate(case.node.inputs)]
    return Case(case.node.replace(inputs=inputs), case.inputs)


def evaluated(case: Case) -> tuple[Array, ...]:
    held = dict(
        zip(dict.fromkeys(t for t in case.node.inputs if t and not t.is_constant), case.inputs, strict=True)
    )
    given = [None if t is None else t.array if t.is_constant else held[t] for t in case.node.inputs]
    with np.errstate(all="ignore"):
        return ops.evaluate(case.node, given)


def changed(before: Array, after: Array) -> Mask:
    return np.asarray((before != after) & ~((before != before) & (after != after)))


def shapes_fit(node: Node, space: Iteration) -> None:
    """Every operand has a map for each of its axes, and an output is written as a whole."""
    for tensor, operand in zip((*node.inputs, *node.outputs), (*space.inputs, *space.outputs), strict=True):
        assert (tensor is None) is (operand is None)
        if tensor is not None and operand is not None:
            assert len(operand.axes) == len(tensor.shape)


@pytest.mark.parametrize("op", ops.OPS, ids=lambda op: op.name)
def test_outputs_change_only_where_the_map_says(op: Op) -> None:
    tried = 0

    @given(strategy_of(op.name), st.integers(0, 2**32 - 1))
    @drawn
    def check(case: Case, seed: int) -> None:
        nonlocal tried
        node, rng = case.node, np.random.default_rng(seed)
        space = op.iteration(node)
        assert isinstance(space, Iteration), space
        if max(t.type.count for t in node.outputs) > MOST_OUTPUTS:
            return
        shapes_fit(node, space)
        tried += 1
        for number in rng.permutation(len(node.inputs)):
            read, tensor = space.inputs[number], node.inputs[number]
            if read is None or tensor is None or not tensor.type.count:
                continue
            if number in space.whole or node.inputs.count(tensor) > 1:
                continue
            element = tuple(int(rng.integers(size)) for size in tensor.shape)
            masks = [
                places(written, reached(space, read, written, tensor.shape, element), out.shape)
                for out, written in zip(node.outputs, space.outputs, strict=True)
            ]
            if not all(mask.all() for mask in masks):
                break
        else:
            return
        for out, written, mask in zip(node.outputs, space.outputs, masks, strict=True):
            agrees(space, read, written, tensor.shape, element, mask, rng)
            assert mask.shape == out.shape
        after = evaluated(perturbed(case, number, element, rng))
        for one, other, mask in zip(evaluated(case), after, masks, strict=True):
            assert not (changed(one, other) & ~mask).any(), f"input {number} at {element}"

    check()
    assert tried


def agrees(
    space: Iteration,
    read: Operand,
    written: Operand,
    shape: Sequence[int],
    element: tuple[int, ...],
    mask: Mask,
    rng: np.random.Generator,
) -> None:
    """The footprint of some indices of an axis of the output holds the element, if one of them may depend on it."""
    if not mask.ndim or not element:
        return
    axis, own = int(rng.integers(mask.ndim)), int(rng.integers(len(element)))
    first, last = sorted(int(i) for i in rng.integers(mask.shape[axis], size=2))
    if not np.take(mask, range(first, last + 1), axis).any():
        return
    place = written.axes[axis]
    if isinstance(place, Spans) or any(space.kind(dim) is Kind.SEQUENTIAL for dim in place.dims):
        return
    each = footprints(space, read.axes[own], place, mask.shape[axis])
    read_there = np.arange(each.low[first : last + 1].min(), each.high[first : last + 1].max() + 1)
    if read.outside == "reflect":
        read_there = mirrored(read_there, shape[own])
    assert element[own] in np.clip(read_there, 0, shape[own] - 1)
