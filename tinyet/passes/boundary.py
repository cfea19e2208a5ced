# SPDX-License-Identifier: Apache-2.0
"""The boundary of the graph: integer inputs and outputs if the model is quantized, a copy if no node computes one."""

from __future__ import annotations

from tinyet.ir import Graph, Node, Tensor
from tinyet.ops.copy import Copy
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.quantize import Quantize
from tinyet.passes.rewrite import Names


def integer_boundary(graph: Graph) -> Graph:
    """An input that is only quantized becomes an integer input; an output that was just dequantized an integer output.

    The integer tensors take over the names, so that people and the float reference still find them. States do not
    count.
    """
    inputs, outputs, nodes = list(graph.inputs), list(graph.outputs), list(graph.nodes)
    for i, tensor in enumerate(graph.user_inputs):
        consumers = [n for n in nodes if tensor in n.inputs]
        if not consumers or tensor in outputs or any(not isinstance(n.attrs, Quantize) for n in consumers):
            continue
        if len({n.output.type for n in consumers}) != 1:
            continue
        integer = Tensor(tensor.name, consumers[0].output.type)
        replaced = {n.output: integer for n in consumers}
        nodes = [_rewire(n, replaced) for n in nodes if n not in consumers]
        outputs = [replaced.get(t, t) for t in outputs]
        inputs[i] = integer
    graph = graph.replace(inputs=inputs, outputs=outputs, nodes=nodes)
    for i, tensor in enumerate(graph.user_outputs):
        producer = graph.producer(tensor)
        if producer is not None and isinstance(producer.attrs, Dequantize):
            outputs[i] = producer.input(0)
    return graph.replace(outputs=outputs)


def copied_outputs(graph: Graph) -> Graph:
    """A Copy for each output, or next value of a state, that is a constant: only a computed value has a place in the
    arena."""
    names = Names(graph)
    outputs, nodes = list(graph.outputs), list(graph.nodes)
    for i, tensor in enumerate(outputs):
        if tensor.is_constant:
            copy = Tensor(names.fresh(f"{tensor.name}_output_{i}"), tensor.type)
            nodes.append(Node(Copy(), (tensor,), (copy,)))
            outputs[i] = copy
    return graph.replace(outputs=outputs, nodes=nodes)


def _rewire(node: Node, mapping: dict[Tensor, Tensor]) -> Node:
    if not any(t in mapping for t in node.inputs if t is not None):
        return node
    return node.replace(inputs=[None if t is None else mapping.get(t, t) for t in node.inputs])
