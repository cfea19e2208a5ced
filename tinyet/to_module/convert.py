# SPDX-License-Identifier: Apache-2.0
"""Graph → nn.Module: the handlers run over all nodes; all refusals are raised at once; both are run and compared."""

from __future__ import annotations

from dataclasses import fields
from functools import partial

import torch

from tinyet.errors import Complaints, InternalError, RefusedError
from tinyet.ir import ITSELF, Attrs, DType, Graph, Node, Tensor, constant
from tinyet.numerics import dequantize
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.copy import Copy
from tinyet.ops.dynamic_conv2d import DynamicConv2d
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.ops.linear import Linear
from tinyet.ops.shared.convolution import Convolution
from tinyet.passes.dead_code import eliminate_dead_code
from tinyet.passes.fold_constants import before_lowering
from tinyet.to_module.build import Build, Value, Values, tensor_of
from tinyet.to_module.form import plain
from tinyet.to_module.handlers import HANDLERS
from tinyet.to_module.network import Network
from tinyet.to_module.proof import prove

_BORDER = {
    DType.FLOAT32: torch.float32,
    DType.INT32: torch.int32,
    DType.UINT8: torch.uint8,
    DType.INT16: torch.int16,
    DType.INT8: torch.int8,
}
"""Types of inputs."""


def to_module(graph: Graph) -> tuple[Network, tuple[torch.Tensor, ...]]:
    """A float graph, as it was imported, as a module in eval mode, and example inputs of its shapes: zeros.

    One submodule for each layer, at the path that its node's origin says, with weights that can be trained; one for
    each other operator. Images are torch's (N, C, H, W) inside; inputs and outputs have the graph's order. What the
    graph keeps from run to run are buffers. The module is a FileModule: what is captured of it names the file's nodes.

    Raises UnsupportedOp (UnsupportedShape) with all complaints at once, InternalError where the module's answers to
    drawn inputs are not the graph's.
    """
    graph = before_lowering(eliminate_dead_code(_of_floats(graph)))
    file = next((origin.file for node in graph.nodes for origin in node.origins if origin.file), graph.name)
    network, values, complaints = Network(graph), Values(), Complaints(file)
    for tensor in graph.user_inputs:
        complaints.attempt(f"input {tensor.name}", partial(_take, tensor, values))
    for state in graph.states:
        slot = values.fresh(state.name)
        network.keep(state.name, slot, tensor_of(state.initial.array))
        values[state.value] = Value(slot, state.value.shape, plain(len(state.value.shape)))
    refused = {tensor for tensor in graph.user_inputs if tensor not in values}
    # Draws nothing of the caller's random numbers: torch's recurrent layers are made with some.
    with torch.random.fork_rng(devices=[]):
        for node in graph.nodes:
            if type(node.attrs) not in HANDLERS:
                complaints.add(_title(node), _no_row())
            elif not refused.isdisjoint(node.inputs):
                refused |= set(node.outputs)
            elif complaints.attempt(_title(node), partial(_convert, node, network, values)):
                continue
            refused |= set(node.outputs)
    complaints.raise_any()
    _end(graph, network, values)
    network.eval()
    examples = tuple(torch.zeros(t.shape, dtype=_BORDER[t.dtype]) for t in graph.user_inputs)
    prove(graph, network, file)
    return network, examples


def _of_floats(graph: Graph) -> Graph:
    """Layers that quantize their input while they run as layers of floats, of the numbers that their weights stand
    for."""
    nodes: list[Node] = []
    for given in graph.nodes:
        node, attrs = given, given.attrs
        if isinstance(attrs, (DynamicConv2d, DynamicLinear)):
            weights = node.input(1)
            assert weights.type.quant is not None
            real = constant(weights.name, dequantize(weights.array, weights.type.quant))
            made: Attrs = Linear(attrs.clamp)
            if isinstance(attrs, DynamicConv2d):
                made = Conv2d(**{each.name: getattr(attrs, each.name) for each in fields(Convolution)})
            node = node.replace(attrs=made, inputs=(node.input(0), real, node.optional_input(2)))
        nodes.append(node)
    return graph.replace(nodes=nodes)


def _title(node: Node) -> str:
    return f"{node.op}, {node.where or node.outputs[0].name}"


def _no_row() -> RefusedError:
    return RefusedError(
        "computes with integers, or is no operator of a float network",
        "leave it to the application, and give the network behind it",
        shape=False,
    )


def _take(tensor: Tensor, values: Values) -> None:
    """An input. Raises RefusedError for a type that torch hardly has, and for integers with a scale of their own."""
    if tensor.dtype not in _BORDER or tensor.type.quant not in (None, ITSELF):
        raise RefusedError(f"is {tensor.type}", "give a float model")
    values[tensor] = Value(tensor.name, tensor.shape, plain(len(tensor.shape)))


def _convert(node: Node, network: Network, values: Values) -> None:
    for tensor in node.outputs:
        if tensor.type.quant not in (None, ITSELF):
            raise RefusedError("computes in integers of its own", "give the float model")
    HANDLERS[type(node.attrs)](Build(node, network, values))
    if missing := [tensor.name for tensor in node.outputs if tensor not in values]:
        raise InternalError(f"{node.op} gives no {', '.join(missing)}", node.where)


def _end(graph: Graph, network: Network, values: Values) -> None:
    """Outputs, and what states become, in the graph's order of dimensions."""
    ends: list[str] = []
    for tensor in graph.outputs:
        # An output that no node computes is an input, or a state.
        b = Build(graph.producer(tensor) or Node(Copy(), (tensor,), (tensor,)), network, values)
        value = b.computed(b.in_form(values[tensor], plain(len(tensor.shape))))
        ends.append(value.slot)
    count = len(graph.user_outputs)
    network.outputs = ends[:count]
    network.states = [
        (path, slot, behind) for (path, slot, _), behind in zip(network.states, ends[count:], strict=True)
    ]
