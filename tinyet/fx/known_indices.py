# SPDX-License-Identifier: Apache-2.0
"""Operators that put elements at places, in terms of a few that quantizer and importer know.

Where the places are constant, whatever says them, an operator is asked once, ahead of time, where it takes each element
from: it is run on the elements' numbers. What it does is then slices and a `cat`, a `where`, or one `index_select`.
Where places are computed, several indices become one, and what is written is so by a `where` a place.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import fx

from tinyet.fx.edit import add_call, add_constant, drop_unused, get_constant
from tinyet.numerics import Int64

aten = torch.ops.aten

_SOURCES: dict[object, tuple[int, ...]] = {
    aten.diagonal.default: (0,),
    aten.as_strided.default: (0,),
    aten.as_strided_copy.default: (0,),
    aten.gather.default: (0,),
    aten.index.Tensor: (0,),
    aten.index_put.default: (0, 2),
    aten.scatter.src: (0, 3),
    aten.scatter.value: (0, 3),
    aten.scatter_add.default: (0, 3),
    aten.diagonal_scatter.default: (0, 1),
    aten.slice_scatter.default: (0, 1),
}
"""Operators → which of their arguments hold the elements; the second is written over the first, or added to it."""

MOST_RUNS = 8
"""Runs of neighbours that are moved by a slice each; more become one look-up."""

MOST_WRITES = 8
"""Computed places that are written to, one after the other; and layers of elements that are added to one."""


@dataclass(frozen=True, eq=False)
class _Call:
    """A node of `_SOURCES` in its module. sources: nodes, or a number."""

    module: fx.GraphModule
    node: fx.Node
    sources: tuple[Any, ...]

    @property
    def shape(self) -> list[int]:
        return list(self.node.meta["val"].shape)

    @property
    def args(self) -> list[Any]:
        return list(self.node.args)

    def argument(self, index: int, absent: Any = None) -> Any:
        return self.args[index] if index < len(self.args) else absent

    @property
    def adds(self) -> bool:
        target = self.node.target
        return target is aten.scatter_add.default or (
            target is aten.index_put.default and bool(self.argument(3))
        )

    def make(self, target: Any, *args: Any, **options: Any) -> fx.Node:
        return add_call(self.module.graph, self.node, target, args, self.node, **options)

    def hold(self, role: str, value: torch.Tensor) -> fx.Node:
        return add_constant(self.module, self.node, f"{self.node.name}_{role}", value)

    def reshaped(self, x: fx.Node, shape: Sequence[int]) -> fx.Node:
        same = list(x.meta["val"].shape) == list(shape)
        return x if same else self.make(aten.reshape.default, x, list(shape))


def fold_known_indices(module: fx.GraphModule) -> None:
    """In place. Nodes that it cannot put otherwise stay as they are. Node `val` metadata must be there."""
    _values_by_places(module)
    for node in list(module.graph.nodes):
        if node.op != "call_function" or node.target not in _SOURCES or node.kwargs.get("sparse_grad"):
            continue
        if _has_row(node):
            continue
        call = _Call(module, node, tuple(node.args[i] for i in _SOURCES[node.target]))
        made = _settled(call)
        if made is not None:
            node.replace_all_uses_with(made)
            module.graph.erase_node(node)
    module.graph.eliminate_dead_code()
    drop_unused(module)


def _has_row(node: fx.Node) -> bool:
    """Whether the importer takes it as it is: one index, or elements one after another that are written over."""
    args: list[Any] = list(node.args)
    if node.target is aten.index.Tensor:
        return sum(part is not None for part in args[1]) == 1
    return node.target is aten.slice_scatter.default and (len(args) < 6 or bool(args[5] == 1))


def _settled(call: _Call) -> fx.Node | None:
    if call.node.target is aten.index.Tensor and (made := _merged(call)) is not None:
        return made
    others = [n for i, a in enumerate(call.args) if i not in _SOURCES[call.node.target] for n in _nodes(a)]
    if any(get_constant(call.module, node) is None for node in others):
        return _written(call)
    return _summed(call) if call.adds else _moved(call, _places(call))


def _nodes(argument: Any) -> list[fx.Node]:
    found: list[fx.Node] = []
    fx.node.map_arg(argument, found.append)
    return found


def _values_by_places(module: fx.GraphModule) -> None:
    """The values of a topk are what is at its places, and so are the extremes of whole numbers along an axis."""
    for node in list(module.graph.nodes):
        if node.target in (aten.max.dim, aten.min.dim) and _is_whole(node.args[0]):
            call = _Call(module, node, ())
            x, dim = node.args[:2]
            order = call.make(aten.topk.default, x, 1, dim, node.target is aten.max.dim)
            both = [call.make(operator.getitem, order, index) for index in (0, 1)]
            if not call.argument(2, False):
                both = [call.make(aten.squeeze.dim, each, dim) for each in both]
            for reader in list(node.users):
                reader.replace_all_uses_with(both[reader.args[1]])
            module.graph.eliminate_dead_code()
    for node in list(module.graph.nodes):
        readers = [r for r in node.users if node.target is aten.topk.default and r.args[1] == 0]
        if readers:
            behind = node.next
            places = add_call(module.graph, behind, operator.getitem, (node, 1), node)
            args = (node.args[0], _Call(module, node, ()).argument(2, -1), places)
            values = add_call(module.graph, behind, aten.gather.default, args, node)
            for reader in readers:
                reader.replace_all_uses_with(values)


# ---------------------------------------------------------------- constant places


def _sizes(sources: Sequence[Any]) -> list[int]:
    return [s.meta["val"].numel() if isinstance(s, fx.Node) else 1 for s in sources]


def _numbers(call: _Call) -> list[torch.Tensor]:
    """The numbers of the sources' elements, counted through, in the sources' shapes and strides."""
    found, first = [], 0
    for source, size in zip(call.sources, _sizes(call.sources), strict=True):
        numbers = torch.arange(first, first + size)
        if isinstance(source, fx.Node):
            value = source.meta["val"]
            laid = torch.empty_strided(value.shape, value.stride(), dtype=torch.int64)
            numbers = laid.copy_(numbers.reshape(value.shape))
        found.append(numbers)
        first += size
    return found


def _run(call: _Call, replaced: dict[int, Any]) -> torch.Tensor:
    """The operator on its constants and on what stands for its other arguments."""
    args = fx.node.map_arg(tuple(call.args), lambda n: get_constant(call.module, n))
    function: Any = call.node.target
    result: torch.Tensor = function(*(replaced.get(i, a) for i, a in enumerate(args)))
    return result


def _places(call: _Call) -> Int64 | None:
    """For each element of the result the number of the one that it is; None where that is not known."""
    strided = call.node.target in (aten.as_strided.default, aten.as_strided_copy.default)
    if strided and not _is_dense(call.sources[0].meta["val"]):
        return None
    numbers: list[Any] = _numbers(call)
    if call.node.target is aten.scatter.value:
        numbers[1] = int(numbers[1])
    replaced = dict(zip(_SOURCES[call.node.target], numbers, strict=True))
    return np.asarray(_run(call, replaced).contiguous().numpy().reshape(-1), np.int64)


def _is_dense(value: torch.Tensor) -> bool:
    """Whether its elements, in whatever order, are all that lies in its storage."""
    reach = 1 + sum((size - 1) * step for size, step in zip(value.shape, value.stride(), strict=True))
    return value.storage_offset() == 0 and reach == value.numel()


def _moved(call: _Call, places: Int64 | None) -> fx.Node | None:
    if places is None:
        return None
    sizes = _sizes(call.sources)
    if len(sizes) == 2 and (written := _constant(call, call.sources[1])) is not None:
        over = torch.from_numpy(places >= sizes[0])
        values = written.reshape(-1)[torch.from_numpy(places).sub(sizes[0]).clamp(min=0)]
        held = [call.hold(role, v.reshape(call.shape)) for role, v in (("mask", over), ("values", values))]
        return call.make(aten.where.self, *held, call.sources[0])
    outer, block, rows = arranged(sizes, places)
    parts = [
        call.reshaped(source, [outer, size // outer // block, block])
        for source, size in zip(call.sources, sizes, strict=True)
    ]
    return call.reshaped(_rows_of(call, parts, rows), call.shape)


def _constant(call: _Call, source: Any) -> torch.Tensor | None:
    """A source as a constant of the result's type; None where it is computed."""
    wanted = call.node.meta["val"].dtype
    value = torch.tensor(source) if not isinstance(source, fx.Node) else get_constant(call.module, source)
    return None if value is None else value.to(wanted)


def arranged(sizes: Sequence[int], places: Int64) -> tuple[int, int, Int64]:
    """(outer, block, rows): with each source as [outer, rows of its own, block] and these one after another along the
    rows, `rows` are those that the result has, in each of the outer parts. sizes: of the sources; places: of each
    element of the result, counted through all sources."""
    starts = np.cumsum([0, *sizes[:-1]])
    source = np.searchsorted(starts, places, "right") - 1
    within = places - starts[source]
    common = math.gcd(len(places), *sizes)
    for outer in (n for n in range(common, 0, -1) if common % n == 0):
        each = np.array(sizes) // outer
        part, place = np.divmod(within, each[source])
        columns = (place + np.cumsum([0, *each[:-1]])[source]).reshape(outer, -1)
        if (part.reshape(outer, -1) == np.arange(outer)[:, None]).all() and (columns == columns[0]).all():
            break
    ends = np.flatnonzero(np.diff(columns[0]) != 1) + 1
    heads = columns[0][np.concatenate([np.zeros(1, np.int64), ends])]
    block = int(np.gcd.reduce(np.concatenate([[columns.shape[1]], ends, heads, each])))
    return outer, block, columns[0][::block] // block


def _rows_of(call: _Call, parts: Sequence[fx.Node], rows: Int64) -> fx.Node:
    """Rows of the parts, along their second dimension, by numbers that count through all of them."""
    counts = [int(part.meta["val"].shape[1]) for part in parts]
    if len(parts) == 1:
        if np.array_equal(rows, np.arange(counts[0])):
            return parts[0]
        return call.make(aten.index_select.default, parts[0], 1, call.hold("places", torch.from_numpy(rows)))
    starts = np.cumsum([0, *counts])
    # A run ends where the numbers do not rise by one, and where a part does.
    cuts = np.flatnonzero((np.diff(rows) != 1) | np.isin(rows[1:], starts)) + 1
    runs = np.split(rows, cuts)
    if len(runs) > MOST_RUNS:
        pool = call.make(aten.cat.default, list(parts), 1)
        return call.make(aten.index_select.default, pool, 1, call.hold("places", torch.from_numpy(rows)))
    pieces = []
    for run in runs:
        index = int(np.searchsorted(starts, run[0], "right")) - 1
        first = int(run[0] - starts[index])
        whole = len(run) == counts[index]
        piece = call.make(aten.slice.Tensor, parts[index], 1, first, first + len(run))
        pieces.append(parts[index] if whole else piece)
    return pieces[0] if len(pieces) == 1 else call.make(aten.cat.default, pieces, 1)


def _summed(call: _Call) -> fx.Node | None:
    """A sum of elements: a layer of zeros with elements put into it for each place that already has one."""
    x, added = call.sources
    if not isinstance(added, fx.Node):
        return None
    own, numbers = _numbers(call)
    if call.node.target is aten.scatter_add.default:
        _, dim, index, _ = fx.node.map_arg(tuple(call.args), lambda n: get_constant(call.module, n))
        goals = own.gather(dim, index)
        numbers = numbers[tuple(slice(0, size) for size in index.shape)]
    else:
        index = fx.node.map_arg(call.args[1], lambda n: get_constant(call.module, n))
        goals = own[tuple(slice(None) if i is None else i for i in index)]
        numbers = numbers.expand(goals.shape)
    goal, number = goals.reshape(-1).numpy(), numbers.reshape(-1).numpy()
    order = np.argsort(goal, kind="stable")
    goal, number = goal[order], number[order]
    turn = np.arange(len(goal)) - np.searchsorted(goal, goal)
    if turn.max(initial=0) >= MOST_WRITES:
        return None
    zeros = call.hold("zeros", torch.zeros(call.shape, dtype=call.node.meta["val"].dtype))
    total: fx.Node = x
    for layer in range(int(turn.max(initial=0)) + 1):
        places = np.arange(math.prod(call.shape), dtype=np.int64)
        places[goal[turn == layer]] = number[turn == layer]
        spread = _moved(_Call(call.module, call.node, (zeros, added)), places)
        assert spread is not None
        total = call.make(aten.add.Tensor, total, spread)
    return total


# ---------------------------------------------------------------- computed places


def _merged(call: _Call) -> fx.Node | None:
    """x[…, i, j, …] with whole numbers along axes that follow one another, some of them computed: these axes made one,
    and one index."""
    x, given = call.sources[0], call.args[1]
    axes = [axis for axis, part in enumerate(given) if part is not None]
    parts = [given[axis] for axis in axes]
    constant = all(get_constant(call.module, part) is not None for part in parts)
    alone = axes == list(range(axes[0], axes[0] + len(axes)))
    if constant or len(parts) == 1 or not alone or not all(map(_is_whole, parts)):
        return None
    shape, first = list(x.meta["val"].shape), axes[0]
    place = _from_start(call, parts[0], shape[first])
    for axis, part in zip(axes[1:], parts[1:], strict=True):
        scaled = call.make(aten.mul.Tensor, place, shape[axis])
        place = call.make(aten.add.Tensor, scaled, _from_start(call, part, shape[axis]))
    merged = math.prod(shape[axis] for axis in axes)
    rows = call.reshaped(x, [*shape[:first], merged, *shape[axes[-1] + 1 :]])
    return call.make(aten.index.Tensor, rows, [*[None] * first, place])


def _is_whole(part: fx.Node) -> bool:
    return part.meta["val"].dtype in (torch.int32, torch.int64)


def _from_start(call: _Call, place: fx.Node, size: int) -> fx.Node:
    """Places below 0 count from the end."""
    below = call.make(aten.lt.Scalar, place, 0)
    return call.make(aten.where.self, below, call.make(aten.add.Tensor, place, size), place)


def _written(call: _Call) -> fx.Node | None:
    """Writes to, or sums with, a few computed places along one axis: by a `where` for each of them."""
    target = call.node.target
    if target is aten.index_put.default:
        return _put_rows(call)
    if target in (aten.scatter.src, aten.scatter.value, aten.scatter_add.default):
        return _put_elements(call)
    return None


def _put_rows(call: _Call) -> fx.Node | None:
    """index_put of one index: rows of the values."""
    x, given, values = call.sources[0], call.args[1], call.sources[1]
    axes = [axis for axis, part in enumerate(given) if part is not None]
    part = given[axes[0]]
    if len(axes) > 1 or not _is_whole(part):
        return None
    axis, count = axes[0], part.meta["val"].numel()
    shape = call.shape
    if count > MOST_WRITES:
        return None
    lead, rest = shape[:axis], shape[axis + 1 :]
    wide = [*lead, *part.meta["val"].shape, *rest]
    if list(values.meta["val"].shape) != wide:
        values = call.make(aten.expand.default, values, wide)
    values = call.reshaped(values, [*lead, count, *rest])
    place = call.reshaped(_from_start(call, part, shape[axis]), [*[1] * axis, count, *[1] * len(rest)])
    return _one_by_one(call, x, axis, place, values)


def _put_elements(call: _Call) -> fx.Node | None:
    """scatter and scatter_add: an element for each of the index's, which is as large as x but along the axis."""
    x, values = call.sources
    axis, index = call.args[1] % max(len(call.shape), 1), call.args[2]
    assert isinstance(index, fx.Node)
    shape, places = call.shape, list(index.meta["val"].shape)
    alike = len(shape) == len(places) and all(size == places[i] for i, size in enumerate(shape) if i != axis)
    if not alike or places[axis] > MOST_WRITES:
        return None
    return _one_by_one(call, x, axis, index, values)


def _one_by_one(call: _Call, x: fx.Node, axis: int, place: fx.Node, values: Any) -> fx.Node:
    """place: along `axis` a place to write to after another; values: likewise what is written, or one number."""
    size, rank = call.shape[axis], len(call.shape)
    along = call.hold("along", torch.arange(size).reshape([size if i == axis else 1 for i in range(rank)]))
    kind = call.node.meta["val"].dtype
    if not isinstance(values, fx.Node):
        values = call.hold("value", torch.full([1] * rank, values, dtype=kind))
    for turn in range(place.meta["val"].shape[axis]):
        one, value = place, values
        if place.meta["val"].shape[axis] > 1:
            one = call.make(aten.slice.Tensor, place, axis, turn, turn + 1)
        if values.meta["val"].shape[axis] > 1:
            value = call.make(aten.slice.Tensor, values, axis, turn, turn + 1)
        there = call.make(aten.eq.Tensor, along, one)
        if call.adds:
            nothing = call.hold("nothing", torch.zeros((), dtype=kind))
            x = call.make(aten.add.Tensor, x, call.make(aten.where.self, there, value, nothing))
        else:
            x = call.make(aten.where.self, there, value, x)
    return x
