# SPDX-License-Identifier: Apache-2.0
"""Handlers of variables: resources that a subgraph sets once, and that others read and write, are states of the
graph."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.context import Context, Handler, Variable
from tinyet.ir import Tensor, TensorType
from tinyet.ops.copy import Copy
from tinyet.tflite.options import CallOnceOptions, VarHandleOptions


def var_handle(ctx: Context) -> None:
    """Stands for the variable of this name, whichever subgraph says it."""
    options = ctx.options(VarHandleOptions)
    name = f"{options.container}/{options.shared_name}" if options.container else options.shared_name
    ctx.all.variables.setdefault(name, Variable())
    ctx.handles[ctx.out_index()] = name


def _name(ctx: Context) -> str:
    name = ctx.handles.get(ctx.op.inputs[0]) if ctx.op.inputs else None
    if name is None:
        raise RefusedError("has a variable that no VAR_HANDLE names")
    return name


def _value(ctx: Context, name: str, type_: TensorType) -> Tensor:
    """The current value of the variable; its first access creates a state."""
    variable = ctx.all.variables[name]
    if variable.value is None:
        data = None
        if variable.initial is not None:
            data = np.ascontiguousarray(variable.initial.data.astype(type_.dtype.numpy))
            if data.shape != type_.shape:
                raise RefusedError(
                    f"has the variable {name!r} of shape {list(type_.shape)}, at first {list(data.shape)}"
                )
        variable.value = ctx.begin_state(name, type_, data)
    if variable.value.type != type_:
        raise RefusedError(f"takes the variable {name!r} for {type_}, elsewhere it is {variable.value.type}")
    return variable.value


def read_variable(ctx: Context) -> None:
    ctx.expect_inputs(1)
    if ctx.once:
        raise RefusedError("reads a variable before the first run")
    ctx.alias(_value(ctx, _name(ctx), ctx.out_type()))


def assign_variable(ctx: Context) -> None:
    ctx.expect_inputs(2)
    name = _name(ctx)
    if ctx.once:
        ctx.all.variables[name].initial = ctx.constant(1, "initial value")
        return
    after = ctx.x(1)
    before = _value(ctx, name, after.type)
    if after.is_constant:
        after = ctx.emit_as(Copy(), [after], after.type, f"{name}_assigned")
    ctx.replace_state(before, after)
    ctx.all.variables[name].value = after


def call_once(ctx: Context) -> None:
    """The subgraph sets the variables' values before the first run."""
    inside = ctx.all.inside(ctx.options(CallOnceOptions).init_subgraph_index)
    if inside.subgraph is ctx.subgraph or ctx.once:
        raise RefusedError("calls itself")
    inside.once = True
    ctx.all.run(inside)


HANDLERS: Mapping[str, Handler] = {
    "VAR_HANDLE": var_handle,
    "READ_VARIABLE": read_variable,
    "ASSIGN_VARIABLE": assign_variable,
    "CALL_ONCE": call_once,
}
