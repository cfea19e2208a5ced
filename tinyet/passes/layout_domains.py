# SPDX-License-Identifier: Apache-2.0
"""Which operators may compute on tensors whose dimensions lie in another order, and how that changes them.

A layout of a tensor is a tuple of its axes in the order in which they are stored: (0, 2, 3, 1) is torch's NCHW,
stored as NHWC. An operator has a *frame*, a list of axes common to all of its tensors; a *label* is an order of the
frame's axes, and gives a layout to each input and to the output.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tinyet.ir import Attrs, DType, Node, Shape, Tensor, TensorType
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argmax import ArgMax
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.cast import Cast
from tinyet.ops.clamp import Clamp
from tinyet.ops.compare import Compare
from tinyet.ops.concat import Concat
from tinyet.ops.copy import Copy
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.div import Div
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.ops.expand import Expand
from tinyet.ops.layer_norm import LayerNorm
from tinyet.ops.linear import Linear
from tinyet.ops.log_softmax import LogSoftmax
from tinyet.ops.lookup import Lookup
from tinyet.ops.maximum import Maximum
from tinyet.ops.mean import Mean
from tinyet.ops.minimum import Minimum
from tinyet.ops.mul import Mul
from tinyet.ops.pad import Pad
from tinyet.ops.prelu import PRelu
from tinyet.ops.quantize import Quantize
from tinyet.ops.requantize import Requantize
from tinyet.ops.reshape import Reshape
from tinyet.ops.shared.reduction import Reduce, loops
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import Softmax
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.ops.unary import Unary
from tinyet.ops.where import Where
from tinyet.opset.custom import CustomAttrs

Label = tuple[int, ...]
Layout = tuple[int, ...]

POINTWISE: tuple[type[Attrs], ...] = (Cast, Clamp, Copy, Dequantize, Quantize, Requantize, Unary)
"""Operators of one input that treat every element alike."""


def canonical(layout: Layout, shape: Shape) -> Layout:
    """The part of a layout that the bytes depend on: the order of the axes that are not of size 1."""
    return tuple(axis for axis in layout if shape[axis] != 1)


@dataclass(frozen=True)
class Port:
    """The places of a tensor's axes in the frame: frame axis i stands for axes[i].

    ones: a frame axis without any stands for an axis of size 1 that broadcasting adds.
    """

    shape: Shape
    axes: tuple[tuple[int, ...], ...]
    ones: bool = False

    def layout(self, label: Label) -> Layout:
        return tuple(axis for place in label for axis in self.axes[place])

    def stored_shape(self, label: Label) -> Shape:
        """The shape that the tensor has when it is stored by this label."""
        sizes: list[int] = []
        for place in label:
            sizes += [self.shape[axis] for axis in self.axes[place]]
            if not self.axes[place] and self.ones:
                sizes.append(1)
        return tuple(sizes)

    def label(self, layout: Layout) -> Label | None:
        """A label that gives the tensor this layout, as far as bytes go; None when there is none."""
        wanted = canonical(layout, self.shape)
        for axes in (layout, wanted):
            order = list(
                dict.fromkeys(p for axis in axes for p in range(len(self.axes)) if axis in self.axes[p])
            )
            for place in range(len(self.axes)):
                if place not in order:
                    order.insert(place, place)
            if canonical(self.layout(tuple(order)), self.shape) == wanted:
                return tuple(order)
        return None


def no_cost(label: Label) -> int:  # noqa: ARG001
    return 0


@dataclass(frozen=True)
class Frame:
    """inputs: a port each, None for an input that stays as it is (weights, parameters of one axis).

    relabel: the attributes under a label, or None where the operator cannot work so.
    cost: bytes that the operator itself moves under a label (a concatenation of inner axes).
    """

    rank: int
    inputs: tuple[Port | None, ...]
    output: Port
    relabel: Callable[[Label], Attrs | None]
    cost: Callable[[Label], int] = no_cost

    @property
    def identity(self) -> Label:
        return tuple(range(self.rank))


def frame_of(node: Node) -> Frame | None:
    """The frame of an operator that does not depend on the order of its dimensions; None for all others."""
    custom = isinstance(node.attrs, CustomAttrs) and node.attrs.pointwise
    make = _custom_pointwise if custom else _FRAMES.get(type(node.attrs))
    if make is None or len(node.outputs) != 1:
        return None
    frame = make(node)
    if frame is None or frame.rank < 2:
        return None
    laid_out = [
        t for t, port in zip(node.inputs, frame.inputs, strict=True) if t is not None and port is not None
    ]
    # A scale an index would have to move along.
    return (
        None if any(t.type.quant is not None and t.type.quant.axis is not None for t in laid_out) else frame
    )


def broadcast_port(tensor: Tensor, rank: int) -> Port:
    """Axes aligned at the end, as numpy broadcasts."""
    added = rank - len(tensor.shape)
    return Port(tensor.shape, ((),) * added + tuple((axis,) for axis in range(len(tensor.shape))), ones=True)


def _aligned(node: Node, laid_out: int | None, relabel: Callable[[Label], Attrs | None]) -> Frame:
    """The frame is the output; of the inputs, the first `laid_out` (None: all) share it."""
    rank = len(node.output.shape)
    ports = tuple(
        None if t is None or (laid_out is not None and index >= laid_out) else broadcast_port(t, rank)
        for index, t in enumerate(node.inputs)
    )
    return Frame(rank, ports, broadcast_port(node.output, rank), relabel)


def _pointwise(node: Node) -> Frame:
    return _aligned(node, None, lambda label: node.attrs)  # noqa: ARG005


def _custom_pointwise(node: Node) -> Frame:
    return _aligned(node, 1, lambda label: node.attrs)  # noqa: ARG005


def _batch_norm(node: Node) -> Frame:
    attrs = node.attrs
    assert isinstance(attrs, BatchNorm)
    return _aligned(node, 1, lambda label: dataclasses.replace(attrs, axis=label.index(attrs.axis)))


def _lookup(node: Node) -> Frame:
    attrs = node.attrs
    assert isinstance(attrs, Lookup)
    return _aligned(node, 1, lambda label: Lookup(label.index(attrs.axis)))


def _pad(node: Node) -> Frame:
    attrs = node.attrs
    assert isinstance(attrs, Pad)
    return _aligned(
        node, 1, lambda label: dataclasses.replace(attrs, pads=tuple(attrs.pads[a] for a in label))
    )


def _expand(node: Node) -> Frame:
    attrs = node.attrs
    assert isinstance(attrs, Expand)
    return _aligned(node, 1, lambda label: Expand(tuple(attrs.shape[a] for a in label)))


def _along_axis(node: Node) -> Frame:
    """Slice, Concat: contiguous, and so nearly free, when nothing but the axis itself lies outside of it;
    else whole rows are copied, which is a few times cheaper than the single elements of a Permute."""
    attrs = node.attrs
    assert isinstance(attrs, Slice | Concat)
    shape, size = node.output.shape, node.output.type.bytes

    def cost(label: Label) -> int:
        outside = label[: label.index(attrs.axis)]
        return 0 if all(shape[axis] == 1 for axis in outside) else size // 4

    frame = _aligned(node, None, lambda label: dataclasses.replace(attrs, axis=label.index(attrs.axis)))
    return dataclasses.replace(frame, cost=cost)


def _softmax(node: Node) -> Frame:
    """The axis may become the last one, or stay where it is."""
    attrs = node.attrs
    assert isinstance(attrs, Softmax | LogSoftmax)

    def relabel(label: Label) -> Attrs | None:
        axis = label.index(attrs.axis)
        return dataclasses.replace(attrs, axis=axis) if axis in (attrs.axis, len(label) - 1) else None

    return _aligned(node, 1, relabel)


def _trailing(count: Callable[[Node], int]) -> Callable[[Node], Frame]:
    """Operators that work on the last `count` axes as they are, and on all others alike."""

    def make(node: Node) -> Frame:
        fixed = tuple(range(len(node.output.shape)))[-count(node) :]
        return _aligned(node, 1, lambda label: node.attrs if label[-len(fixed) :] == fixed else None)

    return make


def _layer_norm_axes(node: Node) -> int:
    assert isinstance(node.attrs, LayerNorm)
    return len(node.output.shape) - node.attrs.axis


def _reduced_port(node: Node, axes: tuple[int, ...], keepdims: bool) -> Port:
    rank, out = len(node.input(0).shape), node.output
    if keepdims:
        return broadcast_port(out, rank)
    kept = [axis for axis in range(rank) if axis not in axes]
    return Port(out.shape, tuple((kept.index(axis),) if axis in kept else () for axis in range(rank)))


def _reduce(node: Node) -> Frame:
    attrs = node.attrs
    assert isinstance(attrs, Reduce)
    ordered = isinstance(attrs, Mean | Sum) and node.output.dtype is DType.FLOAT32

    def relabel(label: Label) -> Attrs | None:
        places = [axis for axis in label if axis in attrs.axes]
        # Float sums depend on the order in which the elements are added.
        if ordered and canonical(tuple(places), node.input(0).shape) != canonical(
            tuple(sorted(places)), node.input(0).shape
        ):
            return None
        moved = dataclasses.replace(attrs, axes=tuple(sorted(label.index(axis) for axis in attrs.axes)))
        stored = tuple(node.input(0).shape[axis] for axis in label)
        probe = Node(moved, (Tensor("", TensorType(stored, node.input(0).dtype)),), node.outputs)
        # The axes must not become more scattered than the kernels can take.
        return None if loops(probe) is None and loops(node) is not None else moved

    rank = len(node.input(0).shape)
    port = _reduced_port(node, attrs.axes, attrs.keepdims)
    return Frame(rank, (broadcast_port(node.input(0), rank),), port, relabel)


def _argmax(node: Node) -> Frame:
    attrs = node.attrs
    assert isinstance(attrs, ArgMax)
    rank = len(node.input(0).shape)
    port = _reduced_port(node, (attrs.axis,), attrs.keepdims)
    inputs = (broadcast_port(node.input(0), rank),)
    return Frame(rank, inputs, port, lambda label: dataclasses.replace(attrs, axis=label.index(attrs.axis)))


def axis_groups(before: Shape, after: Shape) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The finest split of a reshape into runs of axes that become runs of axes with as many elements."""
    groups: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        start_i, start_j = i, j
        i, j = min(i + 1, len(before)), min(j + 1, len(after))
        while math.prod(before[start_i:i]) != math.prod(after[start_j:j]):
            if math.prod(before[start_i:i]) < math.prod(after[start_j:j]):
                i += 1
            else:
                j += 1
        groups.append((tuple(range(start_i, i)), tuple(range(start_j, j))))
    return groups


def _reshape(node: Node) -> Frame:
    x, out = node.input(0).shape, node.output.shape
    groups = axis_groups(x, out)
    port = Port(out, tuple(after for _, after in groups))
    inputs = (Port(x, tuple(before for before, _ in groups)),)
    return Frame(len(groups), inputs, port, lambda label: Reshape(port.stored_shape(label)))


_FRAMES: Mapping[type[Attrs], Callable[[Node], Frame | None]] = {
    **dict.fromkeys((*POINTWISE, Add, Sub, Mul, Div, Minimum, Maximum, PRelu, Compare, Where), _pointwise),
    **dict.fromkeys((Mean, Sum, Amax, Amin), _reduce),
    **dict.fromkeys((Concat, Slice), _along_axis),
    **dict.fromkeys((Softmax, LogSoftmax), _softmax),
    ArgMax: _argmax,
    BatchNorm: _batch_norm,
    Lookup: _lookup,
    Expand: _expand,
    LayerNorm: _trailing(_layer_norm_axes),
    **dict.fromkeys((DynamicLinear, Linear), _trailing(lambda _node: 1)),
    Pad: _pad,
    Reshape: _reshape,
}
