# SPDX-License-Identifier: Apache-2.0
"""States as resource variables: set once by a subgraph of their own, read before anything else, assigned where the
program keeps them."""

from __future__ import annotations

from collections.abc import Sequence

from tinyet.exporters.tflite.context import Context
from tinyet.ir import State
from tinyet.tflite import Operator, Subgraph, TensorInfo
from tinyet.tflite.options import CallOnceOptions, VarHandleOptions

_INITIAL = 1
"""The subgraph that sets the variables."""


def handle(ctx: Context, state: State) -> int:
    """A handle of a state's variable."""
    index = ctx.add(TensorInfo(f"{state.name}_handle", (), "resource"))
    ctx.operators.append(Operator("VAR_HANDLE", (), (index,), VarHandleOptions("", state.name)))
    return index


def write_states(ctx: Context, states: Sequence[State]) -> tuple[Subgraph, ...]:
    """Reads every state at the beginning of a run. Returns the subgraph that sets them before the first, if any."""
    if not states:
        return ()
    first = Context(ctx.runtime)
    for state in states:
        there = handle(first, state)
        first.operators.append(Operator("ASSIGN_VARIABLE", (there, first.of(state.initial)), ()))
    ctx.operators.append(Operator("CALL_ONCE", (), (), CallOnceOptions(_INITIAL)))
    for state in states:
        ctx.handles[state.value] = handle(ctx, state)
        ctx.call("READ_VARIABLE", [ctx.handles[state.value]], ctx.of(state.value))
    return (Subgraph("initial", tuple(first.tensors), (), (), tuple(first.operators)),)


def keep(ctx: Context) -> None:
    """The state in the node's second input becomes the first."""
    there = ctx.handles[ctx.node.input(1)]
    ctx.operators.append(Operator("ASSIGN_VARIABLE", (there, ctx.x(0)), ()))
    ctx.alias(ctx.node.output, ctx.x(0))
