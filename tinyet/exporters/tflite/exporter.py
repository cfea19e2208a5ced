# SPDX-License-Identifier: Apache-2.0
"""Graph → Model: the rows run over all nodes, all complaints said at once."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.errors import UnsupportedOp, bullet_list
from tinyet.exporters.tflite import (
    handlers_elementwise,
    handlers_functions,
    handlers_images,
    handlers_layers,
    handlers_shape,
)
from tinyet.exporters.tflite.context import Context, Handler, RefusedError
from tinyet.exporters.tflite.variables import keep, write_states
from tinyet.ir import Attrs, Graph, Note, Tensor
from tinyet.ops.shared.factors import has_int32_accumulator, rounds_half_even
from tinyet.ops.state_write import StateWrite
from tinyet.tflite import Model, Runtime, Signature, Subgraph

HANDLERS: Mapping[type[Attrs], Handler] = {
    **handlers_layers.HANDLERS,
    **handlers_images.HANDLERS,
    **handlers_shape.HANDLERS,
    **handlers_functions.HANDLERS,
    **handlers_elementwise.HANDLERS,
    StateWrite: keep,
}
"""Which row takes which operator: the one list of what is taken."""

SIGNATURE = "serving_default"
"""The name that converters give to the single signature of a model."""


def export_graph(graph: Graph, runtime: Runtime = "litert") -> tuple[Model, tuple[Note, ...]]:
    """The graph as the contents of a .tflite file that the runtime computes to the same integers, and notes about it:
    what the other runtime does otherwise among them.

    Inputs and outputs keep names and order; a signature has them, too. States are variables, which a first run sets.
    Raises UnsupportedOp that lists all nodes for which the runtime has no operator of the same bits.
    """
    ctx = Context(runtime)
    inputs = [ctx.of(tensor) for tensor in graph.user_inputs]
    initial = write_states(ctx, graph.states)
    found: dict[str, None] = {}
    for node in graph.nodes:
        ctx.enter(node)
        row = HANDLERS.get(type(node.attrs))
        try:
            if row is None:
                raise RefusedError("there is no operator with its bits")
            if rounds_half_even(node):
                raise RefusedError("it is rounded to even, as by ONNX Runtime: no kernel there does that")
            if has_int32_accumulator(node):
                raise RefusedError("its sums of int16 have 32 bits", "int8, or sums of 64 bits")
            row(ctx)
        except RefusedError as error:
            hint = f"\n    do: {error.hint}" if error.hint else ""
            place = f" ({node.where})" if node.where else ""
            found[f"{node.op}{place}: {error.reason}{hint}"] = None
    if found:
        what = "one operator" if len(found) == 1 else f"{len(found)} operators"
        raise UnsupportedOp(
            f"{what} of the program cannot be in a .tflite file:\n{bullet_list(list(found))}", graph.name
        )
    outputs = [ctx.of(tensor) for tensor in graph.user_outputs]
    main = Subgraph("main", tuple(ctx.tensors), tuple(inputs), tuple(outputs), tuple(ctx.operators))
    named = Signature(SIGNATURE, 0, _named(graph.user_inputs, inputs), _named(graph.user_outputs, outputs))
    return Model((main, *initial), (named,), graph.name), tuple(ctx.notes)


def _named(tensors: tuple[Tensor, ...], indices: list[int]) -> tuple[tuple[str, int], ...]:
    return tuple((tensor.name, index) for tensor, index in zip(tensors, indices, strict=True))
