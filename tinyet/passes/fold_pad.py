# SPDX-License-Identifier: Apache-2.0
"""Zeros around an image become the padding of the window that slides over it."""

from __future__ import annotations

import dataclasses

from tinyet.errors import UnsupportedShape
from tinyet.ir import Graph, Node, Tensor
from tinyet.ops import op_of
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.pad import Pad, fill_value
from tinyet.ops.reshape import Reshape
from tinyet.ops.shared.window import Window, zero_of
from tinyet.passes.dead_code import eliminate_dead_code
from tinyet.passes.edit import Edit
from tinyet.passes.rewrite import all_origins


def fold_pad(graph: Graph) -> Graph:
    """Exact. A Pad that others read, too, stays for them."""
    edit = Edit(graph)
    for stale in graph.nodes:
        # An earlier round may have replaced this node; its output is the same.
        node = edit.producer(stale.outputs[0])
        if node is None or not isinstance(node.attrs, Window):
            continue
        pad, views = edit.producer(node.input(0)), tuple[Node, ...]()
        if pad is not None and isinstance(pad.attrs, Reshape):
            source = edit.producer(pad.input(0))
            pad, views = (None, ()) if source is None else _behind(source, pad, node)
        folded = _fold(pad, node) if pad is not None else None
        if folded is not None:
            edit.replace({node: (*views, folded)})
    return eliminate_dead_code(edit.graph())


def _behind(pad: Node, view: Node, node: Node) -> tuple[Node | None, tuple[Node, ...]]:
    """(Pad, its input) for a Pad in front of a Reshape that only adds axes of one element (a sequence that becomes an
    image of one row): the same behind it. (None, ()) for any other."""
    attrs, wide = pad.attrs, view.output.shape
    if not isinstance(attrs, Pad) or attrs.mode != "constant":
        return None, ()
    shape, pads, axis = list[int](), list[tuple[int, int]](), 0
    for size in wide:
        kept = axis < len(attrs.pads) and pad.output.shape[axis] == size
        if not kept and size != 1:
            return None, ()
        shape.append(pad.input(0).shape[axis] if kept else 1)
        pads.append(attrs.pads[axis] if kept else (0, 0))
        axis += kept
    if axis < len(attrs.pads):
        return None, ()
    source = pad.input(0)
    type_ = dataclasses.replace(source.type, shape=tuple(shape))
    whole = Tensor(f"{view.output.name}_of_{node.outputs[0].name}", type_)
    reshape = Node(Reshape(tuple(shape)), (source,), (whole,), view.origins)
    moved = Pad(tuple(pads), attrs.mode, attrs.value)
    return Node(moved, (whole,), (view.output,), pad.origins), (reshape,)


def _fold(pad: Node, node: Node) -> Node | None:
    attrs = pad.attrs
    if not isinstance(attrs, Pad) or attrs.mode != "constant" or len(attrs.pads) != 4:
        return None
    if attrs.pads[0] != (0, 0) or attrs.pads[3] != (0, 0) or min(map(min, attrs.pads)) < 0:
        return None
    window = _accepts(pad, node)
    if window is None:
        return None
    (top, bottom), (left, right) = attrs.pads[1:3]
    wider = dataclasses.replace(
        window,
        pad_top=window.pad_top + top,
        pad_bottom=window.pad_bottom + bottom,
        pad_left=window.pad_left + left,
        pad_right=window.pad_right + right,
    )
    inputs: tuple[Tensor | None, ...] = (pad.input(0), *node.inputs[1:])
    folded = node.replace(attrs=wider, inputs=inputs, origins=all_origins((pad, node)))
    try:
        shapes = op_of(folded).infer(folded)
    except UnsupportedShape:
        return None  # a window that lies wholly in the padding may be refused
    # The pads of a transposed convolution are none: they cut off.
    return folded if shapes == (node.output.shape,) else None


def _accepts(pad: Node, node: Node) -> Window | None:
    """The attributes of a window to whose padding the pad's value may be added, or None."""
    attrs, space = node.attrs, op_of(node).iteration(node)
    assert isinstance(pad.attrs, Pad)
    assert isinstance(attrs, Window)
    fill = fill_value(pad).item()
    if not isinstance(space, str) and space.inputs[0] is not None and space.inputs[0].outside == fill:
        return attrs
    if isinstance(attrs, AvgPool2d) and fill == zero_of(pad.input(0).type):
        # The pad's pixels count. They may become padding that counts if there is no padding that does not.
        own = attrs.pad_top, attrs.pad_bottom, attrs.pad_left, attrs.pad_right
        return dataclasses.replace(attrs, count_include_pad=True) if not any(own) else None
    return None
