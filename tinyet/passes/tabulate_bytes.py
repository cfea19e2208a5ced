# SPDX-License-Identifier: Apache-2.0
"""Table lookups for operators on single bytes of an image, up to their quantization.

A byte has 256 values, so the table holds exactly the results of the operators between Cast and Quantize, including
rounding, for each index of an axis whose indices they treat differently (a mean and a deviation for each channel).
"""

from __future__ import annotations

import math

import numpy as np

from tinyet import ops
from tinyet.ir import Array, DType, Graph, Node, Tensor, constant
from tinyet.ops.cast import Cast
from tinyet.ops.lookup import Lookup
from tinyet.ops.quantize import Quantize
from tinyet.opset.questions import elementwise
from tinyet.passes.dead_code import eliminate_dead_code
from tinyet.passes.rewrite import Names, all_origins, replace_nodes

_LARGEST = 1 << 14
"""Bytes of a table; more channels than that are computed."""


def tabulate_bytes(graph: Graph) -> Graph:
    """Cast, elementwise operators with constants, Quantize: a Lookup instead, with the very same results."""
    names = Names(graph)
    replacements: dict[Node, tuple[Node, ...]] = {}
    for node in graph.nodes:
        chain = _chain(graph, node) if isinstance(node.attrs, Quantize) else None
        axis = None if chain is None else _axis(chain)
        if chain is None or axis is None:
            continue
        shape = _shape(chain, axis)
        if 256 * math.prod(shape) * node.output.dtype.bytes <= _LARGEST:
            table = _table(chain, shape)
            quant = node.output.type.quant
            held = constant(names.fresh(f"{node.output.name}_table"), table, quant)
            looked_up = (chain[0].input(0), held)
            replacements[node] = (Node(Lookup(axis), looked_up, node.outputs, all_origins(chain)),)
    return eliminate_dead_code(replace_nodes(graph, replacements)) if replacements else graph


def _chain(graph: Graph, last: Node) -> list[Node] | None:
    """From the Cast to the Quantize, with one value computed on the way; None where there is no such chain."""
    chain = [last]
    while not isinstance(chain[0].attrs, Cast):
        computed = [t for t in chain[0].inputs if t is not None and not t.is_constant]
        producer = graph.producer(computed[0]) if len(computed) == 1 else None
        if producer is None or not elementwise(ops.op_of(producer), producer):
            return None
        chain.insert(0, producer)
    if chain[0].input(0).dtype is not DType.UINT8:  # a truth value, or an index
        return None
    # An operand that broadcasts to more elements than the image has is no function of single bytes.
    return chain if all(node.output.shape == last.output.shape for node in chain) else None


def _axis(chain: list[Node]) -> int | None:
    """The one axis along which constants differ (0 where none does); None where there are several."""
    rank = len(chain[0].output.shape)
    axes = {
        rank - len(tensor.shape) + axis
        for node in chain
        for tensor in node.inputs
        if tensor is not None and tensor.is_constant
        for axis, size in enumerate(tensor.shape)
        if size > 1
    }
    return None if len(axes) > 1 else next(iter(axes), 0)


def _shape(chain: list[Node], axis: int) -> list[int]:
    """The image's, as far as the chain treats its elements unlike: 1 but along `axis`."""
    x = chain[0].input(0)
    shape = [1] * len(x.shape)
    operands = [t for node in chain for t in node.inputs if t is not None and t.is_constant]
    if any(t.type.count > 1 for t in operands):
        shape[axis] = x.shape[axis]
    return shape


def _table(chain: list[Node], shape: list[int]) -> Array:
    """(C, 256), or (1, 256) where all are alike: the chain's results for each byte."""
    x = chain[0].input(0)
    # Bytes along an axis in front: constants are broadcast over it.
    bytes_ = np.arange(256, dtype=np.uint8).reshape(-1, *[1] * len(shape))
    values: dict[Tensor, Array] = {x: np.broadcast_to(bytes_, (256, *shape))}
    for node in chain:
        given = [None if t is None else t.array if t.is_constant else values[t] for t in node.inputs]
        (values[node.output],) = ops.evaluate(node, given)
    return np.ascontiguousarray(values[chain[-1].output].reshape(256, -1).T)
