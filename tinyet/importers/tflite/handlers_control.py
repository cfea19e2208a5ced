# SPDX-License-Identifier: Apache-2.0
"""Handlers of branches and loops whose conditions are constants: the taken subgraph becomes part of the
graph, as often as it is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.context import Context, Handler
from tinyet.importers.tflite.values import Constant
from tinyet.ir import Node, Tensor
from tinyet.ir.budget import Budget
from tinyet.ops import fold
from tinyet.tflite.options import IfOptions, WhileOptions

MOST_STEPS = 1024
"""Of a loop: each becomes operators of the graph."""
_DEEPEST = 16
MOST_CALLS = 4096
"""Of subgraphs, in the whole model: loops in loops would else have no end."""

Given = Tensor | Constant
"""A value, or one that is known."""

_HINT = "networks on microcontrollers have one order of operators: make the condition a constant of the model"


def _given(ctx: Context, first: int) -> list[Given]:
    return [ctx.find_constant(i) or ctx.x(i) for i in range(first, len(ctx.op.inputs))]


def _call(ctx: Context, number: int, given: Sequence[Given]) -> list[Given]:
    """The results of the subgraph of this number for the values."""
    if ctx.depth >= _DEEPEST:
        raise RefusedError("calls subgraphs within subgraphs without end")
    ctx.all.calls += 1
    if ctx.all.calls > MOST_CALLS:
        raise RefusedError(
            f"calls subgraphs more than {MOST_CALLS} times", "leave the loop to the application"
        )
    inside = ctx.all.inside(number)
    inside.depth = ctx.depth + 1
    if len(inside.subgraph.inputs) != len(given):
        raise RefusedError(f"gives {len(given)} values to a subgraph of {len(inside.subgraph.inputs)} inputs")
    for index, value in zip(inside.subgraph.inputs, given, strict=True):
        if isinstance(value, Tensor):
            inside.values[index] = value
        else:
            inside.know(index, value)
    before = len(ctx.all.nodes)
    ctx.all.run(inside)
    known = _known(ctx.all.nodes[before:], ctx.all.budget)
    results = [inside.given(index) for index in inside.subgraph.outputs]
    return [known.get(value, value) if isinstance(value, Tensor) else value for value in results]


def _known(nodes: Sequence[Node], budget: Budget) -> dict[Tensor, Constant]:
    """The results of these nodes on constants alone: loop counters, above all."""
    found: dict[Tensor, Constant] = {}
    for node in nodes:
        given = [t if t is None or t.is_constant else found.get(t) for t in node.inputs]
        if all(value is not None or t is None for value, t in zip(given, node.inputs, strict=True)):
            arrays = [None if v is None else v.array if isinstance(v, Tensor) else v.data for v in given]
            for tensor, data in zip(node.outputs, fold(node, arrays, budget), strict=True):
                found[tensor] = Constant(tensor.name, data, tensor.type.quant)
    return found


def _finish(ctx: Context, results: Sequence[Given]) -> None:
    if len(results) != len(ctx.op.outputs):
        raise RefusedError(f"gives {len(ctx.op.outputs)} values, its subgraph {len(results)}")
    for position, value in enumerate(results):
        if isinstance(value, Tensor):
            if value.type != ctx.out_type(position):
                raise RefusedError(f"gives {ctx.out_type(position)}, its subgraph {value.type}")
            ctx.alias(value, position)
        else:
            ctx.know(ctx.out_index(position), value)


def _truth(value: Given) -> bool:
    if isinstance(value, Tensor):
        raise RefusedError("has a condition that is computed", _HINT)
    if value.data.size != 1:
        raise RefusedError(f"has a condition of {value.data.size} values")
    return bool(np.any(value.data))


def if_(ctx: Context) -> None:
    options, (condition, *given) = ctx.options(IfOptions), _given(ctx, 0)
    taken = options.then_subgraph_index if _truth(condition) else options.else_subgraph_index
    _finish(ctx, _call(ctx, taken, given))


def while_(ctx: Context) -> None:
    options, values = ctx.options(WhileOptions), _given(ctx, 0)
    for _ in range(MOST_STEPS):
        conditions = _call(ctx, options.cond_subgraph_index, values)
        if len(conditions) != 1:
            raise RefusedError(f"has {len(conditions)} conditions")
        if not _truth(conditions[0]):
            _finish(ctx, values)
            return
        values = _call(ctx, options.body_subgraph_index, values)
    raise RefusedError(f"takes more than {MOST_STEPS} steps", "leave the loop to the application")


HANDLERS: Mapping[str, Handler] = {"IF": if_, "WHILE": while_}
