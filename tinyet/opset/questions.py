# SPDX-License-Identifier: Apache-2.0
"""What passes ask of an operator's iteration."""

from __future__ import annotations

from dataclasses import replace

from tinyet.ir import Node
from tinyet.opset.iteration import ONE, AxisMap, Iteration, Kind, Spans
from tinyet.opset.op import Op
from tinyet.opset.roles import roles


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


def elementwise(op: Op, node: Node) -> bool:
    """Whether each element of the output is computed for itself, of one of each input, which broadcast as numpy has it,
    and wherever it is."""
    space = described(op, node)
    if space is None or len(node.outputs) != 1 or node.attrs.opaque or any(roles(node.attrs)):
        return False
    written = space.outputs[0].axes
    return all(
        read is None
        or (
            len(read.axes) <= len(written)
            and all(r in (w, ONE) for r, w in zip(reversed(read.axes), reversed(written), strict=False))
        )
        for read in space.inputs
    )


def moves(op: Op, node: Node) -> bool:
    """Whether each element of the output is one of the only input, or of one of several whose elements all come once;
    or, beyond the input's ends, a constant."""
    if op.view:
        return True
    space = described(op, node)
    if space is None or not op.same_scale or op.rounds(node) or len(node.outputs) != 1:
        return False
    present = [t for t in node.inputs if t is not None]
    if len(present) > 1 and sum(t.type.count for t in present) != node.output.type.count:
        return False
    return not any(_many(space, axis) for read in space.inputs if read is not None for axis in read.axes)


def monotone(op: Op, node: Node) -> bool:
    """Whether the node only moves values of its one input, or selects among them by order: a monotone function (a
    clamp, a change of scale) may be applied before it as well as after, with the same result."""
    if op.view:
        return True
    space = described(op, node)
    if (
        space is None
        or not op.same_scale
        or op.rounds(node)
        or len(node.inputs) != 1
        or len(node.outputs) != 1
    ):
        return False
    read = space.inputs[0]
    # What stands beyond the ends is a value of its own, if nothing greater or less is there to be selected.
    return read is not None and (
        read.outside is None or isinstance(read.outside, str) or any(_many(space, a) for a in read.axes)
    )


def _many(space: Iteration, axis: AxisMap) -> bool:
    """Whether an element of the output is made of several indices of an input's axis."""
    if isinstance(axis, Spans):
        return any(count > 1 for _, count in axis.spans)
    return any(space.kind(dim) is not Kind.PARALLEL and space.dims[dim].size > 1 for dim in axis.dims)
