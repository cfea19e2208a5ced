# SPDX-License-Identifier: Apache-2.0
"""Changes of scale that cancel, or that the operator before them can make on its own.

The folds that merge two roundings into one (a Requantize into the operator before it, two in a row, a
Quantize of a Dequantize) change results in the last bit. They improve them, and the host reference runs the folded
graph. Values that an intermediate scale would have saturated are still clamped.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyet.ir import Graph, Node, QuantParams, Tensor, TensorType
from tinyet.numerics import NO_CLAMP
from tinyet.ops import op_of
from tinyet.ops.add import Add
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.clamp import Clamp
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.copy import Copy
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.div import Div
from tinyet.ops.linear import Linear
from tinyet.ops.matmul import MatMul
from tinyet.ops.mean import Mean
from tinyet.ops.mul import Mul
from tinyet.ops.prelu import PRelu
from tinyet.ops.quantize import Quantize
from tinyet.ops.requantize import Requantize
from tinyet.ops.shared.factors import rounds_half_even
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.ops.unary import Unary
from tinyet.passes.edit import Edit, settle
from tinyet.passes.fuse_clamp import clamp_of, compose, with_clamp
from tinyet.passes.rewrite import all_origins, chain_above, is_monotone, with_quant

FREE_SCALE = (
    Add, BatchNorm, Clamp, Conv2d, ConvTranspose2d, Div, Linear, MatMul, Mean, Mul, PRelu, Quantize,
    Requantize, Sub, Sum, Unary,
)  # fmt: skip
"""Operators that compute an output of any scale."""


def fold_requantize(graph: Graph) -> Graph:
    """Drop nodes that change nothing, and let producers write the requested scale, as long as any can."""
    edit = Edit(graph)
    settle(edit, (_drop, _into_producer), through=lambda n: isinstance(n.attrs, Dequantize) or is_monotone(n))
    return edit.graph()


def _drop(graph: Edit, node: Node) -> bool:
    """Requantize to the same parameters disappears; Quantize of a Dequantize is a Requantize, or nothing."""
    source: Tensor | None = None
    if isinstance(node.attrs, Requantize):
        source = node.input(0)
    elif isinstance(node.attrs, Quantize):
        above = graph.producer(node.input(0))
        if above is not None and isinstance(above.attrs, Dequantize):
            source = above.input(0)
            if rounds_half_even(node) and source.type != node.output.type:
                return False
    if source is None:
        return False
    if source.type == node.output.type:
        if node.output in graph.outputs and graph.producer(source) is None:
            graph.replace({node: (node.replace(attrs=Copy(), inputs=(source,)),)})
        else:
            graph.replace({node: ()})
            graph.substitute(node.output, source)
        return True
    rescaled = node.replace(attrs=Requantize(), inputs=(source,))
    if isinstance(node.attrs, Requantize) or op_of(rescaled).check(rescaled) is not None:
        return False
    graph.replace({node: (rescaled,)})
    return True


def _into_producer(graph: Edit, node: Node) -> bool:
    """A Requantize (or a Clamp that changes the scale) of a value that nothing else reads: its producer
    writes the new scale, and so do the operators between them, which move or select values in a way that a
    scale does not alter."""
    if not isinstance(node.attrs, Requantize | Clamp):
        return False
    quant = node.output.type.quant
    if quant is None or quant == node.input(0).type.quant:
        return False
    chain = chain_above(graph, node)
    first = None if chain is None else _saturating_as(chain[0], node.output.type)
    if chain is None or first is None:
        return False
    if isinstance(node.attrs, Clamp):
        own = clamp_of(first)
        if own is None:
            return False
        first = with_clamp(first, compose(own, (node.attrs.low, node.attrs.high)))
    links = _requantized([first, *chain[1:]], quant)
    links[-1] = links[-1].replace(outputs=node.outputs)
    links[0] = links[0].replace(origins=all_origins((chain[0], node)))
    if any(op_of(link).check(link) is not None for link in links):
        return False
    replacements: dict[Node, tuple[Node, ...]] = {old: (new,) for old, new in zip(chain, links, strict=True)}
    graph.replace({**replacements, node: ()})
    return True


def _requantized(chain: Sequence[Node], quant: QuantParams) -> list[Node]:
    """The chain with all of its values, from the first one's output on, quantized so."""
    links: list[Node] = []
    for node in chain:
        inputs = [links[-1].output, *node.inputs[1:]] if links else list(node.inputs)
        links.append(node.replace(inputs=inputs, outputs=(with_quant(node.output, quant),)))
    return links


def _saturating_as(producer: Node, type_: TensorType) -> Node | None:
    """The producer with a clamp where its own type saturates and `type_` would not; None if it has none."""
    if not isinstance(producer.attrs, FREE_SCALE) or producer.output.dtype is not type_.dtype:
        return None
    if rounds_half_even(producer):  # one rounding instead of two would change the requested answer
        return None
    limits, wanted = real_range(producer.output.type), real_range(type_)
    if limits[0] <= wanted[0] and limits[1] >= wanted[1]:
        return producer
    own = clamp_of(producer)
    if own is None:
        return None
    # Only the side on which the old type ends first needs a bound.
    bounds = (
        limits[0] if limits[0] > wanted[0] else NO_CLAMP[0],
        limits[1] if limits[1] < wanted[1] else NO_CLAMP[1],
    )
    return with_clamp(producer, compose(own, bounds))


def real_range(type_: TensorType) -> tuple[float, float]:
    """The smallest and the largest real number that a per-tensor quantized type holds."""
    low, high = type_.dtype.range
    return (low - type_.zero_point) * type_.scale, (high - type_.zero_point) * type_.scale
