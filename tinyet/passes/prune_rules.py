# SPDX-License-Identifier: Apache-2.0
"""The flow of channels through each operator, and the operator without some of them.

A *channel* is one index of one axis of a tensor, which may be any axis and is followed through permutes and
reshapes. An operator *links* channels of its inputs with channels of its output: they can only be removed
together. A convolution or linear layer links nothing; it *sums* the channels of its input.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tinyet.ir import Array, Attrs, DType, Node, QuantParams, Tensor, TensorType
from tinyet.numerics import bias_type
from tinyet.ops import op_of
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.div import Div
from tinyet.ops.dynamic_conv2d import DynamicConv2d
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.ops.expand import Expand
from tinyet.ops.linear import Linear
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.maximum import Maximum
from tinyet.ops.mean import Mean
from tinyet.ops.minimum import Minimum
from tinyet.ops.mul import Mul
from tinyet.ops.pad import Pad
from tinyet.ops.permute import Permute
from tinyet.ops.prelu import PRelu
from tinyet.ops.reshape import Reshape
from tinyet.ops.resize import Resize
from tinyet.ops.shared.reduction import Reduce
from tinyet.ops.slice import Slice
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.opset import follows, pointwise
from tinyet.opset.custom import CustomAttrs

Index = npt.NDArray[np.intp]
"""Channels of a tensor, ascending."""

Axes = Mapping[Tensor, int]
"""The channel axis of each value that has one; the others cannot lose anything."""

DYNAMIC = DynamicConv2d | DynamicLinear
"""Layers whose input is quantized by its range at run time: only a channel that is 0 may go from it."""

WEIGHTED = Conv2d | ConvTranspose2d | Linear | DYNAMIC


@dataclass(frozen=True, eq=False)
class Link:
    """Channel source[i] of input `index` and channel target[i] of the output stay or go together."""

    index: int
    source: Index
    target: Index


@dataclass(frozen=True, eq=False)
class Flow:
    """The flow of channels through a node.

    axis: the output's channel axis. sums: input 0 is summed over its channels, each times a constant weight.
    fixed: channels of the output that must stay. Inputs that have a channel axis, but neither links nor the sum, must
    stay whole.
    """

    axis: int
    links: tuple[Link, ...] = ()
    sums: bool = False
    fixed: Index = field(default_factory=lambda: np.empty(0, np.intp))


class Cut:
    """The channels that stay, and the tensors that come of it.

    kept: of each value that loses channels. folds: the term added to the bias of a node, for each of its output
    channels before the cut. name: of a cut constant.
    """

    def __init__(
        self,
        axes: Axes,
        kept: Mapping[Tensor, Index],
        folds: Mapping[Node, Array] | None = None,
        name: Callable[[Tensor], str] = lambda tensor: tensor.name,
    ) -> None:
        self.axes = axes
        self.kept = kept
        self._folds = folds or {}
        self._name = name
        self._values: dict[Tensor, Tensor] = {}
        self._parts: dict[tuple[Tensor, tuple[tuple[int, bytes], ...]], Tensor] = {}

    def index(self, tensor: Tensor) -> Index | None:
        """The channels that stay, None for all."""
        return self.kept.get(tensor)

    def value(self, tensor: Tensor) -> Tensor:
        """The tensor without the channels that go; the same one each time."""
        index = self.index(tensor)
        if index is None:
            return tensor
        if tensor not in self._values:
            shape = list(tensor.shape)
            shape[self.axes[tensor]] = len(index)
            type_ = TensorType(tuple(shape), tensor.dtype, tensor.type.quant)
            self._values[tensor] = Tensor(tensor.name, type_)
        return self._values[tensor]

    def part(self, tensor: Tensor, along: Mapping[int, Index | None], name: str | None = None) -> Tensor:
        """A constant with some of the indices along some axes, its scales too. name: the new one's."""
        taken = [(axis, index) for axis, index in along.items() if index is not None]
        if not taken:
            return tensor
        key = tensor, tuple((axis, index.tobytes()) for axis, index in taken)
        if key not in self._parts:
            data, quant = tensor.array, tensor.type.quant
            for axis, index in taken:
                data = data.take(index, axis)
                if quant is not None and quant.axis == axis:
                    quant = QuantParams(
                        tuple(quant.scale[i] for i in index),
                        tuple(quant.zero_point[i] for i in index),
                        axis,
                    )
            type_ = TensorType(tuple(data.shape), tensor.dtype, quant)
            self._parts[key] = Tensor(name or self._name(tensor), type_, np.ascontiguousarray(data))
        return self._parts[key]

    def bias(self, node: Node) -> Tensor | None:
        """The bias of a weighted node, with the folded terms, for the channels that stay."""
        bias, fold, name = node.optional_input(2), self._folds.get(node), None
        if fold is not None and fold.any():
            weights = node.input(1)
            assert weights.type.quant is not None
            if bias is None:
                type_ = bias_type(weights.shape[0], node.input(0).type, weights.type.quant)
                bias = Tensor(f"{weights.name}_bias", type_, np.zeros(type_.shape, type_.dtype.numpy))
            name = self._name(bias)
            total = bias.array.astype(np.int64) + fold.astype(np.int64)
            bias = Tensor(name, bias.type, total.astype(bias.dtype.numpy))
        return None if bias is None else self.part(bias, {0: self.index(node.output)}, name)


Rule = Callable[[Node, Axes], "Flow | None"]
Narrow = Callable[[Node, Cut], tuple[Attrs, Sequence["Tensor | None"]]]


def flow_of(node: Node, axes: Axes) -> Flow | None:
    """None for an operator that needs its inputs whole, or whose channels are not followed."""
    rule = _rule(node)
    return None if rule is None or len(node.outputs) != 1 else rule[0](node, axes)


def _rule(node: Node) -> tuple[Rule, Narrow] | None:
    op = op_of(node)
    if pointwise(op, node) or (isinstance(node.attrs, CustomAttrs) and follows(op, node)):
        return _same, _unchanged
    return _RULES.get(type(node.attrs))


def narrow(node: Node, cut: Cut) -> Node:
    """The node for tensors without the channels that go; it has a flow."""
    rule = _rule(node)
    assert rule is not None
    attrs, inputs = rule[1](node, cut)
    return node.replace(attrs=attrs, inputs=inputs, outputs=[cut.value(t) for t in node.outputs])


def touches(node: Node, cut: Cut) -> bool:
    """Whether the node's own tensors lose channels."""
    return any(t is not None and t in cut.kept for t in (*node.inputs, *node.outputs))


def _all(count: int) -> Index:
    return np.arange(count, dtype=np.intp)


def _values(node: Node, cut: Cut) -> list[Tensor | None]:
    return [None if t is None else cut.value(t) for t in node.inputs]


def _unchanged(node: Node, cut: Cut) -> tuple[Attrs, Sequence[Tensor | None]]:
    return node.attrs, _values(node, cut)


def _kept(node: Node, axes: Axes, axis: Callable[[int], int | None]) -> Flow | None:
    """Every channel of input 0 becomes the same channel of the output, on the axis that `axis` gives."""
    x = node.input(0)
    place = axis(axes[x]) if x in axes else None
    if place is None:
        return None
    every = _all(x.shape[axes[x]])
    return Flow(place, (Link(0, every, every),))


# ---------------------------------------------------------------- operators of one input


def _same(node: Node, axes: Axes) -> Flow | None:
    return _kept(node, axes, lambda axis: axis)


def _image(node: Node, axes: Axes) -> Flow | None:
    """Windows over NHWC images."""
    return _kept(node, axes, lambda axis: 3 if axis == 3 else None)


def _permute(node: Node, axes: Axes) -> Flow | None:
    attrs = node.attrs
    assert isinstance(attrs, Permute)
    return _kept(node, axes, attrs.order.index)


def _reduce(node: Node, axes: Axes) -> Flow | None:
    attrs = node.attrs
    assert isinstance(attrs, Reduce)

    def place(axis: int) -> int | None:
        if axis in attrs.axes:
            return None
        return axis if attrs.keepdims else axis - sum(a < axis for a in attrs.axes)

    return _kept(node, axes, place)


def _batch_norm(node: Node, axes: Axes) -> Flow | None:
    attrs = node.attrs
    assert isinstance(attrs, BatchNorm)
    return _kept(node, axes, lambda axis: axis if axis == attrs.axis else None)


def _narrow_batch_norm(node: Node, cut: Cut) -> tuple[Attrs, Sequence[Tensor | None]]:
    kept = cut.index(node.output)
    return node.attrs, [cut.value(node.input(0)), *(cut.part(node.input(i), {0: kept}) for i in (1, 2))]


def _expand(node: Node, axes: Axes) -> Flow | None:
    before, after = node.input(0).shape, node.output.shape

    def place(axis: int) -> int | None:
        moved = axis + len(after) - len(before)
        return moved if after[moved] == before[axis] else None

    return _kept(node, axes, place)


def _narrow_shape(node: Node, cut: Cut) -> tuple[Attrs, Sequence[Tensor | None]]:
    attrs = node.attrs
    assert isinstance(attrs, Expand | Reshape)
    return dataclasses.replace(attrs, shape=cut.value(node.output).shape), _values(node, cut)


def _pad(node: Node, axes: Axes) -> Flow | None:
    """Channels that a constant adds are linked to nothing."""
    attrs, x = node.attrs, node.input(0)
    assert isinstance(attrs, Pad)
    if x not in axes:
        return None
    before, after = attrs.pads[axes[x]]
    if min(before, after) < 0 or (attrs.mode != "constant" and max(before, after) > 0):
        return None
    every = _all(x.shape[axes[x]])
    return Flow(axes[x], (Link(0, every, every + before),))


def _narrow_pad(node: Node, cut: Cut) -> tuple[Attrs, Sequence[Tensor | None]]:
    attrs, kept = node.attrs, cut.index(node.output)
    assert isinstance(attrs, Pad)
    if kept is not None:
        axis, pads = cut.axes[node.output], list(attrs.pads)
        inside = pads[axis][0], pads[axis][0] + node.input(0).shape[axis]
        pads[axis] = int((kept < inside[0]).sum()), int((kept >= inside[1]).sum())
        attrs = dataclasses.replace(attrs, pads=tuple(pads))
    return attrs, _values(node, cut)


def _slice(node: Node, axes: Axes) -> Flow | None:
    attrs, x = node.attrs, node.input(0)
    assert isinstance(attrs, Slice)
    if axes.get(x) != attrs.axis:
        return _same(node, axes)
    if attrs.step != 1:
        return None
    taken = _all(node.output.shape[attrs.axis])
    return Flow(attrs.axis, (Link(0, taken + attrs.start, taken),))


def _narrow_slice(node: Node, cut: Cut) -> tuple[Attrs, Sequence[Tensor | None]]:
    attrs, kept = node.attrs, cut.index(node.input(0))
    assert isinstance(attrs, Slice)
    if kept is not None and cut.axes[node.output] == attrs.axis:
        start, stop = (int(np.searchsorted(kept, end)) for end in (attrs.start, attrs.stop))
        attrs = dataclasses.replace(attrs, start=start, stop=stop)
    return attrs, _values(node, cut)


def _reshape(node: Node, axes: Axes) -> Flow | None:
    """Of the axes of the output the one that ties the fewest channels together."""
    x = node.input(0)
    if x not in axes:
        return None
    place = np.arange(x.type.count)

    def along(shape: tuple[int, ...], axis: int) -> Index:
        return np.asarray(place // math.prod(shape[axis + 1 :]) % shape[axis], np.intp)

    source, best = along(x.shape, axes[x]), None
    most = 0
    for axis, size in enumerate(node.output.shape):
        pairs = np.unique(source * size + along(node.output.shape, axis))
        link = Link(0, (pairs // size).astype(np.intp), (pairs % size).astype(np.intp))
        groups = Unions(x.shape[axes[x]] + size)
        groups.join(link.source, link.target + x.shape[axes[x]])
        count = len(set(groups.roots().tolist()))
        if count > most:
            most, best = count, Flow(axis, (link,))
    return best


class Unions:
    """Sets of numbers 0 … count - 1, which can be joined."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def root(self, item: int) -> int:
        parent = self._parent
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    def join(self, a: Index, b: Index) -> None:
        """Each a[i] with b[i]."""
        for one, other in zip(a.tolist(), b.tolist(), strict=True):
            low, high = sorted((self.root(one), self.root(other)))
            self._parent[high] = low

    def roots(self) -> Index:
        """The smallest member of each number's set."""
        return np.array([self.root(item) for item in range(len(self._parent))], np.intp)


# ---------------------------------------------------------------- operators of several inputs


def _elementwise(node: Node, axes: Axes) -> Flow | None:
    """Operands that broadcast. One with a single index on the channel axis serves all channels and stays."""
    out = node.output.shape
    operands = [(i, node.input(i)) for i in range(2) if not node.input(i).is_constant]
    owners = [(axes[t] + len(out) - len(t.shape), t) for _, t in operands if t in axes]
    places = [place for place, t in owners if _size(t, place, out) == out[place]]
    if not places:
        return None
    place = max(places, key=lambda p: out[p])
    every, links = _all(out[place]), []
    for index, tensor in operands:
        if tensor in axes and axes[tensor] + len(out) - len(tensor.shape) == place:
            if _size(tensor, place, out) == out[place]:
                links.append(Link(index, every, every))
        elif _size(tensor, place, out) != 1:
            return None
    return Flow(place, tuple(links))


def _size(tensor: Tensor, place: int, out: tuple[int, ...]) -> int:
    """The tensor's size on the axis `place` of a result that it broadcasts to."""
    axis = place - len(out) + len(tensor.shape)
    return tensor.shape[axis] if axis >= 0 else 1


def _narrow_elementwise(node: Node, cut: Cut) -> tuple[Attrs, Sequence[Tensor | None]]:
    kept, out = cut.index(node.output), node.output.shape
    inputs: list[Tensor | None] = []
    for tensor in map(node.input, range(2)):
        if tensor.is_constant and kept is not None and _size(tensor, cut.axes[node.output], out) != 1:
            inputs.append(cut.part(tensor, {cut.axes[node.output] - len(out) + len(tensor.shape): kept}))
        else:
            inputs.append(cut.value(tensor))
    return node.attrs, inputs


def _concat(node: Node, axes: Axes) -> Flow | None:
    attrs = node.attrs
    assert isinstance(attrs, Concat)
    inputs = [node.input(i) for i in range(len(node.inputs))]
    own = {axes.get(t) for t in inputs}
    if own - {attrs.axis, None}:
        # Side by side on another axis: the same channels of all.
        (axis, *others) = own
        if others or axis is None:
            return None
        every = _all(node.output.shape[axis])
        return Flow(axis, tuple(Link(i, every, every) for i in range(len(inputs))))
    links, fixed, at = [], [], 0
    for index, tensor in enumerate(inputs):
        every = _all(tensor.shape[attrs.axis])
        if tensor in axes:
            links.append(Link(index, every, every + at))
        else:
            fixed.append(every + at)
        at += len(every)
    return Flow(attrs.axis, tuple(links), fixed=np.concatenate([np.empty(0, np.intp), *fixed]))


# ---------------------------------------------------------------- weighted operators


def groups_of(node: Node) -> int:
    attrs = node.attrs
    return attrs.groups if isinstance(attrs, Conv2d | ConvTranspose2d | DynamicConv2d) else 1


def _weighted(node: Node, axes: Axes) -> Flow | None:
    """Groups go as a whole: their inputs with their outputs. One group alone is a sum."""
    x, weights, out = node.input(0), node.input(1), node.output
    alike = (x.dtype is DType.FLOAT32) == (weights.dtype is DType.FLOAT32)
    dynamic = isinstance(node.attrs, DYNAMIC)
    if not weights.is_constant or x.dtype is not out.dtype or alike is dynamic:
        return None
    channels, groups, last = out.shape[-1], groups_of(node), len(x.shape) - 1
    if groups == 1:
        return Flow(last, sums=axes.get(x) == last)
    if axes.get(x) != last or dynamic:
        return None
    ins, outs = weights.shape[-1], channels // groups
    source = np.concatenate([_all(x.shape[last]), np.repeat(_all(groups) * ins, outs)])
    target = np.concatenate([np.repeat(_all(groups) * outs, ins), _all(channels)])
    return Flow(last, (Link(0, source, target),))


def _narrow_weighted(node: Node, cut: Cut) -> tuple[Attrs, Sequence[Tensor | None]]:
    attrs, x, weights = node.attrs, node.input(0), node.input(1)
    columns = cut.index(x)
    if isinstance(attrs, Conv2d | ConvTranspose2d) and attrs.groups > 1 and columns is not None:
        attrs = dataclasses.replace(attrs, groups=len(columns) // weights.shape[-1])
        columns = None
    along = {0: cut.index(node.output), len(weights.shape) - 1: columns}
    return attrs, (cut.value(x), cut.part(weights, along), cut.bias(node))


_RULES: Mapping[type[Attrs], tuple[Rule, Narrow]] = {
    **dict.fromkeys((MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, Resize), (_image, _unchanged)),
    **dict.fromkeys((Mean, Sum, Amax, Amin), (_reduce, _unchanged)),
    **dict.fromkeys((Add, Sub, Mul, Div, Minimum, Maximum, PRelu), (_elementwise, _narrow_elementwise)),
    **dict.fromkeys(
        (Conv2d, ConvTranspose2d, Linear, DynamicConv2d, DynamicLinear), (_weighted, _narrow_weighted)
    ),
    BatchNorm: (_batch_norm, _narrow_batch_norm),
    Concat: (_concat, _unchanged),
    Expand: (_expand, _narrow_shape),
    Pad: (_pad, _narrow_pad),
    Permute: (_permute, _unchanged),
    Reshape: (_reshape, _narrow_shape),
    Slice: (_slice, _narrow_slice),
}
