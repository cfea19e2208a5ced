# SPDX-License-Identifier: Apache-2.0
"""What passes ask of an operator's iteration."""

from __future__ import annotations

from dataclasses import replace

from tinyet.ir import Node
from tinyet.opset.iteration import ONE, Iteration, Kind
from tinyet.opset.op import Op


def described(op: Op, node: Node) -> Iteration | None:
    """The node's iteration, None where it has none."""
    space = op.iteration(node)
    if isinstance(space, str):
        return None
    # A map may go on beyond the last input that the node has.
    return replace(space, inputs=space.inputs[: len(node.inputs)])


def follows(op: Op, node: Node, index: int = 0) -> bool:
    """Whether each element of the only output is computed for itself, of the same element of an input of its shape."""
    space, tensor = described(op, node), node.optional_input(index)
    if space is None or tensor is None or len(node.outputs) != 1 or tensor.shape != node.output.shape:
        return False
    read, written = space.inputs[index], space.outputs[0]
    assert read is not None
    return all(
        r in (w, ONE if size == 1 else w) and all(space.kind(dim) is Kind.PARALLEL for dim in w.dims)
        for r, w, size in zip(read.axes, written.axes, tensor.shape, strict=True)
    )


def pointwise(op: Op, node: Node) -> bool:
    """Whether each element of the output is computed for itself, of the same element of the only input."""
    return len(node.inputs) == 1 and follows(op, node)
