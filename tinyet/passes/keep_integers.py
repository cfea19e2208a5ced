# SPDX-License-Identifier: Apache-2.0
"""Operators that only move or select values work on the integers, not on the floats that these stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tinyet.ir import DType, Graph, Node, Tensor, TensorType, substitute
from tinyet.ops import op_of
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.concat import Concat
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.quantize import Quantize
from tinyet.ops.resize import Resize
from tinyet.passes.dead_code import eliminate_dead_code
from tinyet.passes.rewrite import MONOTONE, Names, common_quantize, replace_nodes


def keep_integers(graph: Graph) -> Graph:
    """move(Dequantize(x)) becomes Dequantize(move(x)), where all inputs have one quantization: exact.

    Quantize(concat(Dequantize(x), y)) becomes concat(Quantize(Dequantize(x)), Quantize(y)), so that x need
    not become float for the sake of y: exact, since each element is quantized on its own.

    Quantize(move(x)) becomes move(Quantize(x)), so that the Quantize stands right behind the operator (or the graph's
    input) that x comes from.
    """
    names = Names(graph)
    while True:
        changed = _first(graph, names, _sink_dequantize, _hoist_over_concat) or _first(
            graph, names, _hoist_over_mover
        )
        if changed is None:
            return eliminate_dead_code(graph)
        graph = changed


Step = Callable[[Graph, Node, Names], Graph | None]


def _first(graph: Graph, names: Names, *steps: Step) -> Graph | None:
    """The graph after the first step that changes it at the first node where one does; None when none does."""
    for node in graph.nodes:
        for step in steps:
            changed = step(graph, node, names)
            if changed is not None:
                return changed
    return None


def _rounds(node: Node) -> bool:
    """Whether the integer form keeps its input's scale but rounds where the float operator does not."""
    if isinstance(node.attrs, Resize):
        return node.attrs.mode != "nearest"
    return isinstance(node.attrs, AdaptiveAvgPool2d | AvgPool2d)


def _sink_dequantize(graph: Graph, node: Node, names: Names) -> Graph | None:
    if not op_of(node).same_scale or _rounds(node):
        return None
    if len(node.outputs) != 1 or node.output.dtype is not DType.FLOAT32:
        return None
    integers: list[Tensor | None] = []
    for tensor in node.inputs:
        if tensor is None or tensor.dtype is not DType.FLOAT32:
            integers.append(tensor)
            continue
        producer = graph.producer(tensor)
        if producer is None or not isinstance(producer.attrs, Dequantize):
            return None
        integers.append(producer.input(0))
    types = {(t.dtype, t.type.quant) for t in integers if t is not None and t.dtype is not DType.INT32}
    if len(types) != 1:
        return None
    ((dtype, quant),) = types
    moved = Tensor(names.fresh(f"{node.output.name}_integer"), TensorType(node.output.shape, dtype, quant))
    mover = node.replace(inputs=integers, outputs=(moved,))
    if op_of(mover).check(mover) is not None:
        return None
    return replace_nodes(graph, {node: (mover, Node(Dequantize(), (moved,), node.outputs, node.origins))})


def _hoist_over_concat(graph: Graph, node: Node, names: Names) -> Graph | None:
    consumers = common_quantize(graph, node.outputs[0])
    if not isinstance(node.attrs, Concat) or consumers is None:
        return None
    first = consumers[0]
    producers = [graph.producer(t) for t in node.inputs if t is not None]
    if not any(p is not None and isinstance(p.attrs, Dequantize) for p in producers):
        return None
    new: list[Node] = []
    integers: list[Tensor] = []
    for index in range(len(node.inputs)):
        x = node.input(index)
        type_ = TensorType(x.shape, first.output.dtype, first.output.type.quant)
        integers.append(Tensor(names.fresh(f"{x.name}_integer"), type_))
        new.append(Node(Quantize(), (x,), (integers[-1],), first.origins))
    new.append(node.replace(inputs=integers, outputs=first.outputs))
    replacements: Mapping[Node, tuple[Node, ...]] = {node: tuple(new), **dict.fromkeys(consumers, ())}
    return substitute(replace_nodes(graph, replacements), {c.output: first.output for c in consumers[1:]})


def _hoist_over_mover(graph: Graph, node: Node, names: Names) -> Graph | None:
    if not isinstance(node.attrs, MONOTONE) or node.output.dtype is not DType.FLOAT32:
        return None
    x, quantizers = node.input(0), common_quantize(graph, node.output)
    producer = graph.producer(x)
    if (
        quantizers is None
        or x.is_constant
        or (producer is not None and isinstance(producer.attrs, Dequantize))
    ):
        return None
    # Only where the value goes nowhere else: otherwise quantizing earlier would not free the float copy.
    if graph.consumers(x) != (node,) or x in graph.outputs:
        return None
    first = quantizers[0]
    type_ = first.output.type
    quantized = Tensor(names.fresh(f"{x.name}_q"), TensorType(x.shape, type_.dtype, type_.quant))
    # The integers take over the name, by which people know the value.
    moved = Tensor(node.output.name, type_)
    new = (
        Node(first.attrs, (x,), (quantized,), first.origins),
        node.replace(inputs=(quantized, *node.inputs[1:]), outputs=(moved,)),
    )
    replacements: Mapping[Node, tuple[Node, ...]] = {node: new, **dict.fromkeys(quantizers, ())}
    return substitute(replace_nodes(graph, replacements), {q.output: moved for q in quantizers})
