# SPDX-License-Identifier: Apache-2.0
"""Reshapes that only leave out axes of one index, behind the operators that work element by element: a sequence keeps
one shape, as an image of one line, from convolution to convolution. No bytes move either way; but a value that has
two shapes is two values where layers are computed by rows."""

from __future__ import annotations

from tinyet.ir import Graph, Node, Shape, Tensor, TensorType, substitute
from tinyet.ops import op_of
from tinyet.ops.reshape import Reshape
from tinyet.opset.questions import elementwise
from tinyet.passes.merge_reshapes import merge_reshapes
from tinyet.passes.rewrite import Names


def sink_reshapes(graph: Graph) -> Graph:
    """The same function; the graph itself where nothing is to be done. Outputs of the graph keep their shapes."""
    names, nodes = Names(graph), list[Node]()
    longer: dict[Tensor, Tensor] = {}  # of a value, the same with more axes in front
    same: dict[Tensor, Tensor] = {}
    for old in graph.nodes:
        node = old.replace(inputs=[t if t is None else same.get(t, t) for t in old.inputs])
        shape = None if node.outputs[0] in graph.outputs else _shape(node, longer)
        if shape is not None:
            before = node.output
            output = Tensor(before.name, TensorType(shape, before.dtype, before.type.quant))
            inputs = [t if t is None else longer.get(t, t) for t in node.inputs]
            nodes.append(node.replace(inputs=inputs, outputs=[output]))
            short = Tensor(names.fresh(f"{before.name}_view"), before.type)
            node = Node(Reshape(before.shape), (output,), (short,), node.origins)
            same[before] = short
        nodes.append(node)
        if isinstance(node.attrs, Reshape) and _leads(node.input(0).shape, node.output.shape):
            longer[node.output] = node.input(0)
    return merge_reshapes(substitute(graph.replace(nodes=nodes), same)) if same else graph


def _leads(longer: Shape, shape: Shape) -> bool:
    """Whether a shape has only axes of one index more, in front."""
    more = len(longer) - len(shape)
    return more > 0 and longer == (1,) * more + shape


def _shape(node: Node, longer: dict[Tensor, Tensor]) -> Shape | None:
    """The shape that an operator element by element can work in, because all of its inputs of its output's shape have
    it; None where there is none."""
    if not elementwise(op_of(node), node):
        return None
    full = [t for t in node.inputs if t is not None and t.shape == node.output.shape]
    shapes = {longer[t].shape if t in longer else None for t in full}
    return shapes.pop() if len(shapes) == 1 else None
