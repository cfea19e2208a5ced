# SPDX-License-Identifier: Apache-2.0
"""Storage of states: integers where they are read as integers; written at their own place."""

from __future__ import annotations

from collections.abc import Callable

from tinyet.errors import ModelError, bullet_list
from tinyet.ir import Graph, Node, Origin, Tensor, TensorType, constant, substitute
from tinyet.numerics import quantize
from tinyet.ops import may_lie_in, op_of
from tinyet.ops.copy import Copy
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.quantize import Quantize
from tinyet.ops.requantize import Requantize
from tinyet.ops.state_write import StateWrite
from tinyet.opset import Op
from tinyet.passes.rewrite import Names


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


def carry_states(graph: Graph) -> Graph:
    """Operators that go from step to step without a given initial state continue from the previous run.

    Raises ModelError that lists operators that go backwards, and for a graph without any.
    """
    backwards = [
        node.where or node.op
        for node in graph.nodes
        if op_of(node).carried and getattr(node.attrs, "reverse", False)
    ]
    if backwards:
        raise ModelError(
            f"{len(backwards)} recurrent layer(s) go backwards in time, and cannot go on where the run before has "
            f"stopped:\n{bullet_list(backwards)}",
            hint="bidirectional=False",
        )
    names, states = Names(graph), list[tuple[Tensor, Tensor, Tensor]]()
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs, carried = list(node.inputs), op_of(node).carried
        # An operator's last state stands behind the states of all its steps: the later pair has it.
        last = dict(zip(carried[-len(node.outputs) :], node.outputs, strict=True)) if carried else {}
        for index, output in last.items():
            first = node.input(index)
            if first.is_constant:
                value = Tensor(names.fresh(f"{output.name}_past"), first.type)
                inputs[index] = value
                states.append((value, output, first))
        nodes.append(node.replace(inputs=inputs) if last else node)
    if not states:
        raise ModelError(
            "there is no recurrent layer that begins with a state of its own",
            graph.name,
            "leave stateful away: states that are given to a layer are inputs, or buffers that forward() writes",
        )
    values, nexts, initial = zip(*states, strict=True)
    return graph.replace(
        inputs=(*graph.inputs, *values),
        outputs=(*graph.outputs, *nexts),
        nodes=nodes,
        initial=(*graph.initial, *initial),
    )


def write_states(graph: Graph, op_of: Callable[[Node], Op] = op_of) -> Graph:
    """A StateWrite for each state, which writes the next value over the present one. A kept value that may be another
    state's bytes is copied before, and so is a result that may be any state's: these bytes may be overwritten by
    then."""
    values = {state.value for state in graph.states}
    copies: list[Node] = []
    keeps: list[Node] = []
    names = Names(graph)

    def apart(tensor: Tensor, name: str, place: Tensor | None) -> Tensor:
        if not may_lie_in(graph, tensor, op_of) & values - {place}:
            return tensor
        copies.append(
            Node(Copy(), (tensor,), (Tensor(names.fresh(name), tensor.type),), _origins(graph, tensor))
        )
        return copies[-1].output

    outputs = [apart(t, f"{t.name}_output_{i}", None) for i, t in enumerate(graph.user_outputs)]
    for state in graph.states:
        source = apart(state.next, f"{state.name}_copy", state.value)
        kept = Tensor(names.fresh(f"{state.name}_next"), state.value.type)
        keeps.append(Node(StateWrite(), (source, state.value), (kept,), _origins(graph, state.next)))
    outputs += [node.output for node in keeps]
    return graph.replace(outputs=outputs, nodes=[*graph.nodes, *copies, *keeps])


def _origins(graph: Graph, tensor: Tensor) -> tuple[Origin, ...]:
    producer = graph.producer(tensor)
    return () if producer is None else producer.origins
