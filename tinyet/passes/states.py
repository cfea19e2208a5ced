# SPDX-License-Identifier: Apache-2.0
"""What states are stored as: integers where they are read as integers; and written where they lie."""

from __future__ import annotations

from tinyet.ir import Graph, Node, Tensor, TensorType, constant, substitute
from tinyet.numerics import quantize
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.keep import Keep
from tinyet.ops.quantize import Quantize
from tinyet.ops.requantize import Requantize


def integer_states(graph: Graph) -> Graph:
    """A state that is only quantized becomes an integer state, whose name it keeps."""
    for number, state in enumerate(graph.states):
        readers = graph.consumers(state.value)
        types = {node.output.type for node in readers if isinstance(node.attrs, Quantize)}
        if len(types) != 1 or any(not isinstance(node.attrs, Quantize) for node in readers):
            continue
        if state.value in graph.outputs:
            continue
        (kind,) = types
        assert kind.quant is not None
        value = Tensor(state.name, kind)
        first = quantize(state.initial.array, kind)
        written, made = _integers(graph, state.next, kind)
        nodes = [*(node for node in graph.nodes if node not in readers), *made]
        inputs, outputs, initial = list(graph.inputs), list(graph.outputs), list(graph.initial)
        inputs[len(graph.user_inputs) + number] = value
        outputs[len(graph.user_outputs) + number] = written
        initial[number] = constant(state.initial.name, first, kind.quant)
        graph = substitute(
            graph.replace(inputs=inputs, outputs=outputs, nodes=nodes, initial=initial),
            {node.output: value for node in readers},
        )
    return graph


def _integers(graph: Graph, tensor: Tensor, kind: TensorType) -> tuple[Tensor, tuple[Node, ...]]:
    """A value as integers of one type, and the nodes that make these, where it is not there as such."""
    producer = graph.producer(tensor)
    made = Tensor(f"{tensor.name}_kept", kind)
    if producer is None or not isinstance(producer.attrs, Dequantize):
        return made, (Node(Quantize(), (tensor,), (made,), () if producer is None else producer.origins),)
    source = producer.input(0)
    return (
        (source, ())
        if source.type == kind
        else (made, (Node(Requantize(), (source,), (made,), producer.origins),))
    )


def keep_states(graph: Graph) -> Graph:
    """A Keep for each state, which puts the next value where the present one lies."""
    outputs, nodes = list(graph.outputs), list(graph.nodes)
    for number, state in enumerate(graph.states):
        kept = Tensor(f"{state.name}_next", state.value.type)
        producer = graph.producer(state.next)
        origins = () if producer is None else producer.origins
        nodes.append(Node(Keep(), (state.next, state.value), (kept,), origins))
        outputs[len(graph.user_outputs) + number] = kept
    return graph.replace(outputs=outputs, nodes=nodes)
