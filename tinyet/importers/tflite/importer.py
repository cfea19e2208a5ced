# SPDX-License-Identifier: Apache-2.0
"""Model → Graph: the handlers run over all operators; all errors are raised at once.

The graph is in the integers of the file from the start. uint8 inputs and outputs stay uint8.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tinyet.errors import Complaints, ModelError, RefusedError, UnsupportedShape
from tinyet.importers.tflite.context import Collected, Context, Handler
from tinyet.importers.tflite.folding import fold_operator
from tinyet.importers.tflite.handlers import handler_of
from tinyet.importers.tflite.names import plain
from tinyet.importers.tflite.values import quant_of, type_of
from tinyet.ir import Array, DType, Graph, Note, Tensor, TensorType
from tinyet.ops import check_whole
from tinyet.ops.copy import Copy
from tinyet.ops.lookup import Lookup
from tinyet.tflite import Model, Runtime, TensorInfo

_FLIPPED: Array = (np.arange(256) ^ 128).astype(np.uint8).reshape(1, 256)
"""Each byte with its highest bit turned over: uint8 less 128 as int8, and back."""


def import_model(
    model: Model, *, name: str, file: str, runtime: Runtime = "tflm", signature: str | None = None
) -> tuple[Graph, tuple[Note, ...]]:
    """The model's main subgraph, or the one of a signature, as a Graph called `name`; and notes about it.

    file: how the file is called in debug handles. Raises UnsupportedOp (UnsupportedShape, when every operator is known
    but some arguments are not) with all complaints at once, ModelError for a signature that is not there.
    """
    titles: dict[int, str] = {}
    subgraph = model.subgraphs[0]
    chosen = [s for s in model.signatures if signature in (None, s.key)]
    if signature is not None and not chosen:
        known = ", ".join(repr(s.key) for s in model.signatures) or "none"
        raise ModelError(f"there is no signature {signature!r}", file, f"the file has {known}")
    if signature is not None:
        subgraph = model.subgraphs[chosen[0].subgraph]
    for found in chosen:
        if model.subgraphs[found.subgraph] is subgraph:
            titles |= {index: title for title, index in (*found.inputs, *found.outputs)}
    ctx = Context(Collected(model, file, runtime, run_inside), subgraph, titles)
    complaints = Complaints(file)
    inputs = _inputs(ctx, titles, complaints)
    run_rows(ctx, complaints)
    complaints.raise_any()
    outputs = _outputs(ctx, titles, complaints)
    complaints.raise_any()
    states = ctx.all.states
    graph = Graph(
        name,
        (*inputs, *(state.value for state in states)),
        (*outputs, *(state.next for state in states)),
        tuple(ctx.all.nodes),
        tuple(state.initial for state in states),
    )
    check_whole(graph, "the model cannot be taken", UnsupportedShape, file)
    return graph, tuple(ctx.all.notes)


def run_rows(ctx: Context, complaints: Complaints) -> None:
    """All operators of the subgraph, in the file's order. For operators that read the results of a refused one, or a
    refused input, only the name is checked."""
    refused = {index for index in ctx.subgraph.inputs if index not in ctx.values}
    for number, op in enumerate(ctx.subgraph.operators):
        ctx.enter(number)
        title = op.custom or op.code
        label = ctx.subgraph.tensors[op.outputs[0]].name if op.outputs else ""
        where = f"{title}, operator {number}" + (f" ({label.split(';')[0]})" if label else "")
        handler = handler_of(op)
        if handler is None:
            complaints.add(where, RefusedError("is not supported", shape=False))
        if handler is None or refused & set(op.inputs):
            refused |= set(op.outputs)
        elif not complaints.attempt(where, partial(_run_handler, ctx, handler)):
            refused |= set(op.outputs)
            if ctx.all.budget.is_spent:
                return


def _run_handler(ctx: Context, handler: Handler) -> None:
    first = len(ctx.all.nodes)
    ctx.expect_new_outputs()
    handler(ctx)
    fold_operator(ctx, first)


def run_inside(ctx: Context) -> None:
    """All operators of a subgraph that another one calls. Raises RefusedError for the first that is refused."""
    for number, op in enumerate(ctx.subgraph.operators):
        ctx.enter(number)
        handler, where = (
            handler_of(op),
            f"calls {ctx.subgraph.name or 'a subgraph'}, whose {op.custom or op.code}",
        )
        if handler is None:
            raise RefusedError(f"{where} is not supported", shape=False)
        try:
            ctx.expect_new_outputs()
            handler(ctx)
        except RefusedError as error:
            raise RefusedError(f"{where} {error.reason}", error.hint, shape=error.shape) from error


def _border_type(info: TensorInfo) -> TensorType:
    """The type at the border: uint8 stays bytes there."""
    if info.type == "uint8":
        return TensorType(info.shape, DType.UINT8)
    return type_of(info)


def _flip(ctx: Context, x: Tensor, type_: TensorType, name: str) -> Tensor:
    """uint8 as int8 of the same real numbers, or back."""
    held = Tensor(
        ctx.all.names.fresh(f"{name}_table"),
        TensorType((1, 256), type_.dtype, type_.quant),
        _FLIPPED.view(type_.dtype.numpy),
    )
    return ctx.emit_as(Lookup(0), [x, held], type_, name)


def _inputs(ctx: Context, titles: dict[int, str], complaints: Complaints) -> list[Tensor]:
    inputs: list[Tensor] = []

    def take(position: int, index: int, info: TensorInfo) -> None:
        name = ctx.all.names.fresh(titles.get(index) or plain(info.name) or f"input_{position}")
        inner, outer = type_of(info), Tensor(name, _border_type(info))
        ctx.all.budget.run(inner.count, inner.bytes)
        inputs.append(outer)
        if outer.dtype is DType.UINT8 and quant_of(info) is not None:
            ctx.values[index] = _flip(ctx, outer, inner, f"{name}_int8")
        else:
            ctx.values[index] = outer

    for position, index in enumerate(ctx.subgraph.inputs):
        info = ctx.subgraph.tensors[index]
        complaints.attempt(f"input {position} ({info.name})", partial(take, position, index, info))
    return inputs


def _outputs(ctx: Context, titles: dict[int, str], complaints: Complaints) -> list[Tensor]:
    outputs: list[Tensor] = []
    for position, index in enumerate(ctx.subgraph.outputs):
        info = ctx.subgraph.tensors[index]
        try:
            tensor = ctx.value(index)
            name = titles.get(index) or plain(info.name) or f"output_{position}"
            if info.type == "uint8" and tensor.dtype is DType.INT8:
                tensor = _flip(ctx, tensor, _border_type(info), f"{name}_uint8")
            made = {t for node in ctx.all.nodes for t in node.outputs}
            if tensor in outputs or tensor not in made:
                tensor = ctx.emit_as(Copy(), [tensor], tensor.type, f"{name}_out")
            outputs.append(tensor)
        except RefusedError as error:
            complaints.add(f"output {position} ({info.name})", error)
    return outputs
