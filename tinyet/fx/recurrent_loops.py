# SPDX-License-Identifier: Apache-2.0
"""A recurrent cell in a Python loop, which capture unrolls, becomes the layer that it is: one call for all steps."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import fx

from tinyet.fx.edit import add_call, bind
from tinyet.fx.recurrent import CELLS_OF_TORCH, Weights, call_layer, own_state, result_of
from tinyet.fx.recurrent_ops import C_N, H_N, Y

aten = torch.ops.aten

_TIME = 1
_SQUEEZES = {aten.squeeze.dim, aten.squeeze.dims}


def gather_loops(module: fx.GraphModule) -> None:
    """Steps of one cell, each from the state that the one before has left, become one layer, where no step reads what
    another has made of it and where all that is read of an LSTM's cell is the last. In place."""
    cells = [node for node in module.graph.nodes if node.target in CELLS_OF_TORCH]
    following = _following(cells)
    firsts = [cell for cell in cells if cell not in set(following.values())]
    for first in firsts:
        steps = [first]
        while steps[-1] in following:
            steps.append(following[steps[-1]])
        if len(steps) > 1 and _is_loop(steps):
            _gather(module, steps)
    module.graph.eliminate_dead_code()


def _states_read(cell: fx.Node) -> tuple[fx.Node, ...]:
    """The state, and of an LSTM the cell, before a step."""
    hx = bind(cell)["hx"]
    return tuple(map(_peeled, hx)) if isinstance(hx, (list, tuple)) else (_peeled(hx),)


def _states_given(cell: fx.Node) -> list[fx.Node]:
    """The values that are the state behind a step."""
    if not isinstance(cell.meta["val"], (tuple, list)):
        return [cell]
    return [user for user in cell.users if user.args[1] == 0]


def _cells_given(cell: fx.Node) -> list[fx.Node]:
    return [user for user in cell.users if user.args[1] == 1] if cell not in _states_given(cell) else []


def _peeled(node: fx.Node) -> fx.Node:
    """Without a batch dimension that is taken away and put back again."""
    if node.target is aten.unsqueeze.default:
        below = node.args[0]
        assert isinstance(below, fx.Node)
        if below.target in _SQUEEZES and node.meta["val"].shape == _shape(below.args[0]):
            assert isinstance(below.args[0], fx.Node)
            return below.args[0]
    return node


def _shape(node: object) -> torch.Size | None:
    return node.meta["val"].shape if isinstance(node, fx.Node) else None


def _weights(cell: fx.Node) -> tuple[object, ...]:
    a = bind(cell)
    return cell.target, a["w_ih"], a["w_hh"], a["b_ih"], a["b_hh"]


def _following(cells: Sequence[fx.Node]) -> dict[fx.Node, fx.Node]:
    """Each step's next one, where there is one and no other."""
    found: dict[fx.Node, list[fx.Node]] = {}
    owner = {state: cell for cell in cells for state in (*_states_given(cell), *_cells_given(cell))}
    for cell in cells:
        before = {owner.get(state) for state in _states_read(cell)}
        if len(before) == 1 and (above := before.pop()) is not None and _weights(above) == _weights(cell):
            found.setdefault(above, []).append(cell)
    return {above: below[0] for above, below in found.items() if len(below) == 1}


def _is_loop(steps: Sequence[fx.Node]) -> bool:
    """Whether no input depends on an earlier step, and no cell but the last is read by others than the next step."""
    behind: set[fx.Node] = set()
    waiting = list(steps[0].users)
    while waiting:
        node = waiting.pop()
        if node not in behind:
            behind.add(node)
            waiting += node.users
    if any(bind(step)["input"] in behind for step in steps):
        return False
    shape = _shape(bind(steps[0])["input"])
    if any(_shape(bind(step)["input"]) != shape for step in steps):
        return False
    for step, following in pairwise(steps):
        if any(_readers(cell) != {following} for cell in _cells_given(step)):
            return False
    return True


def _readers(value: fx.Node) -> set[fx.Node]:
    """The readers of a value, with or without a batch dimension."""
    found: set[fx.Node] = set()
    for user in value.users:
        if user.target in _SQUEEZES:
            again = {u for u in user.users if u.target is aten.unsqueeze.default and _peeled(u) is value}
            if again == set(user.users):
                found.update(reader for u in again for reader in u.users)
                continue
        found.add(user)
    return found


def _gather(module: fx.GraphModule, steps: Sequence[fx.Node]) -> None:
    graph, last, a = module.graph, steps[-1], bind(steps[0])
    x = _sequence(graph, last, [bind(step)["input"] for step in steps])
    hx = a["hx"] if isinstance(a["hx"], (list, tuple)) else [a["hx"]]
    states = [own_state(module, last, state) for state in hx]
    weights = Weights(a["w_ih"], a["w_hh"], a["b_ih"], a["b_hh"])
    call = call_layer(module, last, x, states, weights, False, "")
    y = result_of(graph, last, call, Y)
    made: dict[fx.Node, int] = {}
    for t, step in enumerate(steps):
        for state in _states_given(step):
            if step is last:
                there = result_of(graph, last, call, H_N)
            else:
                there = add_call(graph, last, aten.select.int, (y, _TIME, t), step)
            made[there] = t
            state.replace_all_uses_with(there)
        if step is last:
            for cell in _cells_given(step):
                cell.replace_all_uses_with(result_of(graph, last, call, C_N))
    _sort(graph)
    graph.eliminate_dead_code()
    _restack(graph, y, made, len(steps))


def _sequence(graph: fx.Graph, before: fx.Node, inputs: Sequence[fx.Node]) -> fx.Node:
    """The sequence of the steps' inputs, (N, I) each: (N, T, I); the existing tensor where there is one, without a
    copy."""
    found = [_taken(node) for node in inputs]
    source, axis, start = found[0]
    if source is not None and all(
        (other, along, at) == (source, axis, start + t) for t, (other, along, at) in enumerate(found)
    ):
        size, end = source.meta["val"].shape[axis], start + len(inputs)
        if (start, end) != (0, size):
            source = add_call(graph, before, aten.slice.Tensor, (source, axis, start, end), inputs[0])
        if source.meta["val"].ndim == 2:
            return add_call(graph, before, aten.unsqueeze.default, (source, 0), inputs[0])
        if axis == _TIME:
            return source
        return add_call(graph, before, aten.transpose.int, (source, 0, 1), inputs[0])
    return add_call(graph, before, aten.stack.default, (list(inputs), _TIME), before)


def _taken(node: fx.Node) -> tuple[fx.Node | None, int, int]:
    """The source of a step's input, the axis of the steps, and its number; None where it is not such an input."""
    args: Any = node.args
    unbatched = node.target is aten.unsqueeze.default and args[1] == 0
    inner = args[0] if unbatched else node
    given: Any = inner.args
    if inner.target is aten.select.int:
        source, dim, number = given
    elif inner.target is operator.getitem and given[0].target is aten.unbind.int:
        parts = given[0].args
        source, dim, number = parts[0], (parts[1] if len(parts) > 1 else 0), given[1]
    else:
        return None, 0, 0
    rank = source.meta["val"].ndim
    if rank != (2 if unbatched else 3) or dim % rank == rank - 1:
        return None, 0, 0
    return source, dim % rank, number % source.meta["val"].shape[dim % rank]


def _restack(graph: fx.Graph, y: fx.Node, made: dict[fx.Node, int], steps: int) -> None:
    """The states of all steps, put together again, are the layer's own sequence."""
    alone = {user: t for state, t in made.items() for user in state.users if user.target in _SQUEEZES}
    for numbers, is_alone in ((made, False), (alone, True)):
        readers = {user for state in numbers for user in state.users if user.target is aten.stack.default}
        for stack in readers:
            args: Any = stack.args
            dim = args[1] if len(args) > 1 else 0
            if [numbers.get(part) for part in args[0]] != list(range(steps)):
                continue
            if is_alone and dim == 0 and y.meta["val"].shape[0] == 1:
                whole = add_call(graph, stack, aten.squeeze.dims, (y, [0]), stack)
            elif not is_alone and dim in (0, _TIME):
                whole = y if dim == _TIME else add_call(graph, stack, aten.transpose.int, (y, 0, 1), stack)
            else:
                continue
            stack.replace_all_uses_with(whole)
            graph.erase_node(stack)


def _sort(graph: fx.Graph) -> None:
    """Each node behind all that it reads, else in the order that there was."""
    done: set[fx.Node] = set()
    order: list[fx.Node] = []

    def place(node: fx.Node) -> None:
        waiting = [node]
        while waiting:
            top = waiting[-1]
            missing = [source for source in top.all_input_nodes if source not in done]
            if missing:
                waiting += reversed(missing)
                continue
            waiting.pop()
            if top not in done:
                done.add(top)
                order.append(top)

    for node in graph.nodes:
        place(node)
    for before, node in pairwise(order):
        before.append(node)
