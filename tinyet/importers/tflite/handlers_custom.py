# SPDX-License-Identifier: Apache-2.0
"""The handler of custom operators that users register: tinyet.custom_op, by the custom code's name."""

from __future__ import annotations

from functools import partial

from tinyet.custom import CustomOp, named
from tinyet.errors import RefusedError
from tinyet.importers.tflite.context import Context, Handler
from tinyet.importers.tflite.flexbuffer import scalars_of


def custom_handler(code: str) -> Handler | None:
    """The handler of a registered operator; None for any other name."""
    found = named(code)
    return None if found is None else partial(_row, found)


def _row(found: CustomOp, ctx: Context) -> None:
    """All inputs are inputs of the node, the options its parameters."""
    if len(ctx.op.outputs) != 1:
        raise RefusedError(f"has {len(ctx.op.outputs)} outputs", "a custom operator gives one tensor")
    inputs = [ctx.x(i) if ctx.has(i) else None for i in range(len(ctx.op.inputs))]
    params = scalars_of(ctx.op.custom_options) if ctx.op.custom_options else ()
    ctx.emit(found.op.attrs(params), inputs)  # type: ignore[call-arg]
