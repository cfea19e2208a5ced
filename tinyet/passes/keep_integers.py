# SPDX-License-Identifier: Apache-2.0
"""Operators that only move or select values work on the integers, not on their float values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyet.ir import DType, Graph, Node, Tensor, TensorType
from tinyet.numerics import dequantize
from tinyet.ops import op_of, pad
from tinyet.ops.concat import Concat
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.pad import Pad
from tinyet.ops.quantize import Quantize
from tinyet.passes.dead_code import eliminate_dead_code
from tinyet.passes.edit import Edit, settle
from tinyet.passes.rewrite import Names, common_quantize, is_monotone


def keep_integers(graph: Graph) -> Graph:
    """move(Dequantize(x)) becomes Dequantize(move(x)), where all inputs have one quantization: exact.

    Quantize(concat(Dequantize(x), y)) becomes concat(Quantize(Dequantize(x)), Quantize(y)), so that x need
    not become float for the sake of y: exact, since each element is quantized on its own.

    Quantize(move(x)) becomes move(Quantize(x)), so that the Quantize stands right behind the operator (or the graph's
    input) that x comes from.
    """
    edit, names = Edit(graph), Names(graph)

    def sink(edit: Edit, node: Node) -> bool:
        return _sink_dequantize(edit, node, names) or _hoist_over_concat(edit, node, names)

    def hoist(edit: Edit, node: Node) -> bool:
        return _hoist_over_mover(edit, node, names)

    settle(edit, (sink,), (hoist,))
    return eliminate_dead_code(edit.graph())


def _sink_dequantize(graph: Edit, node: Node, names: Names) -> bool:
    if not op_of(node).same_scale or op_of(node).rounds(node):
        return False
    if len(node.outputs) != 1 or node.output.dtype is not DType.FLOAT32:
        return False
    integers: list[Tensor | None] = []
    for tensor in node.inputs:
        if tensor is None or tensor.dtype is not DType.FLOAT32:
            integers.append(tensor)
            continue
        producer = graph.producer(tensor)
        if producer is None or not isinstance(producer.attrs, Dequantize):
            return False
        integers.append(producer.input(0))
    types = {(t.dtype, t.type.quant) for t in integers if t is not None and t.dtype is not DType.INT32}
    if len(types) != 1:
        return False
    ((dtype, quant),) = types
    of_integers = node.replace(inputs=integers)
    if isinstance(node.attrs, Pad) and not _can_hold(of_integers):
        return False
    moved = Tensor(names.fresh(f"{node.output.name}_integer"), TensorType(node.output.shape, dtype, quant))
    mover = of_integers.replace(outputs=(moved,))
    if op_of(mover).check(mover) is not None:
        return False
    graph.replace({node: (mover, Node(Dequantize(), (moved,), node.outputs, node.origins))})
    return True


def _can_hold(node: Node) -> bool:
    """Whether the integers of a Pad reach as far as the value padded with. Else it is padded with behind the Quantize
    that follows, whose range holds it."""
    attrs, type_ = pad.attrs_of(node), node.input(0).type
    if attrs.mode != "constant" or type_.quant is None:
        return True
    held = float(dequantize(pad.fill_value(node), type_.quant)[0])
    return abs(held - attrs.value) <= type_.scale


def _hoist_over_concat(graph: Edit, node: Node, names: Names) -> bool:
    consumers = common_quantize(graph, node.outputs[0])
    if not isinstance(node.attrs, Concat) or consumers is None:
        return False
    first = consumers[0]
    producers = [graph.producer(t) for t in node.inputs if t is not None]
    if not any(p is not None and isinstance(p.attrs, Dequantize) for p in producers):
        return False
    new: list[Node] = []
    integers: list[Tensor] = []
    for index in range(len(node.inputs)):
        x = node.input(index)
        type_ = TensorType(x.shape, first.output.dtype, first.output.type.quant)
        integers.append(Tensor(names.fresh(f"{x.name}_integer"), type_))
        new.append(Node(Quantize(), (x,), (integers[-1],), first.origins))
    new.append(node.replace(inputs=integers, outputs=first.outputs))
    _replace(graph, node, new, consumers)
    return True


def _hoist_over_mover(graph: Edit, node: Node, names: Names) -> bool:
    if not is_monotone(node) or node.output.dtype is not DType.FLOAT32:
        return False
    x, quantizers = node.input(0), common_quantize(graph, node.output)
    producer = graph.producer(x)
    if (
        quantizers is None
        or x.is_constant
        or (producer is not None and isinstance(producer.attrs, Dequantize))
    ):
        return False
    # Only if the value has no other reader: otherwise quantizing earlier would not free the float copy.
    if graph.consumers(x) != (node,) or x in graph.outputs:
        return False
    first = quantizers[0]
    type_ = first.output.type
    quantized = Tensor(names.fresh(f"{x.name}_q"), TensorType(x.shape, type_.dtype, type_.quant))
    # The integers take over the name, by which people know the value.
    moved = Tensor(node.output.name, type_)
    new = (
        Node(first.attrs, (x,), (quantized,), first.origins),
        node.replace(inputs=(quantized, *node.inputs[1:]), outputs=(moved,)),
    )
    _replace(graph, node, new, quantizers)
    return True


def _replace(graph: Edit, node: Node, new: Sequence[Node], quantizers: Sequence[Node]) -> None:
    """The new nodes; the last one replaces all quantizers of the node's output."""
    replacements: Mapping[Node, Sequence[Node]] = {node: new, **dict.fromkeys(quantizers, ())}
    graph.replace(replacements)
    for quantizer in quantizers:
        if quantizer.output is not new[-1].output:
            graph.substitute(quantizer.output, new[-1].output)
