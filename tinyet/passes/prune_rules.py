# SPDX-License-Identifier: Apache-2.0
"""The flow of channels through each operator, and the operator without some of them.

A *channel* is one index of one axis of a tensor, which may be any axis and is followed through permutes and
reshapes. An operator *links* channels of its inputs with channels of its output: they can only be removed together.
A layer with weights links nothing; it *sums* the channels of its input.

No operator is named here. Channels are linked where axes are indexed by the same dimensions of the operator's
iteration, and summed over reduced dimensions that two inputs share. What cannot be said of an operator without some
channels by its own rule is not a flow.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyet.ir import Array, Attrs, DType, Node, QuantParams, Tensor, TensorType
from tinyet.numerics import bias_type
from tinyet.ops import op_of
from tinyet.opset import AxisMap, Iteration, Op, Role, Spans, complaints, described, roles
from tinyet.opset import Index as Sum
from tinyet.opset.iteration import Kind

Index = npt.NDArray[np.intp]
"""Channels of a tensor, ascending."""

Axes = Mapping[Tensor, int]
"""The channel axis of each value that has one; the others cannot lose anything."""


@dataclass(frozen=True, eq=False)
class Link:
    """Channel source[i] of input `index` and channel target[i] of the output stay or go together."""

    index: int
    source: Index
    target: Index


@dataclass(frozen=True)
class Product:
    """Input `index` is multiplied with the input `other`, and the products are summed over channels: one on the axis
    `axis` of the one, `other_axis` of the other.

    whole: the input is quantized by the range of all of it, so that only what is 0 may go.
    """

    index: int
    axis: int
    other: int
    other_axis: int
    whole: bool


@dataclass(frozen=True)
class Weights:
    """A constant that makes channels of the output, those on its axis `out_axis`, of products with input 0, whose
    channels are on its axis `in_axis`. groups: runs of channels of both, each for itself."""

    index: int
    out_axis: int
    in_axis: int
    groups: int
    whole: bool

    def by_channel(self, node: Node) -> Array:
        """(outputs, taps, inputs of a group)."""
        weights = np.moveaxis(node.input(self.index).array, (self.out_axis, self.in_axis), (0, -1))
        return weights.reshape(len(weights), -1, weights.shape[-1])

    def read(self, node: Node) -> npt.NDArray[np.bool_]:
        """(outputs, inputs of a group): whether the one reads the other at all."""
        return np.asarray((self.by_channel(node) != 0).any(axis=1))


@dataclass(frozen=True, eq=False)
class Flow:
    """The flow of channels through a node.

    axis: the output's channel axis, if it has one. products: of inputs whose channels are summed. weights: those that
    make the output's channels. fixed: channels of the output that must stay. bounded: inputs that make no others.
    Inputs that have a channel axis, but neither links nor products, must stay whole.
    """

    axis: int | None
    links: tuple[Link, ...] = ()
    products: tuple[Product, ...] = ()
    weights: Weights | None = None
    bounded: frozenset[int] = frozenset()
    fixed: Index = field(default_factory=lambda: np.empty(0, np.intp))


class Cut:
    """The channels that stay, and the tensors that come of it.

    kept: of each value that loses channels. folds: the term added to the bias of a node with weights, for each of its
    output channels before the cut. name: of a cut constant.
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
        self.folds = folds or {}
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

    def bias(self, node: Node, place: int, made_by: int) -> tuple[Tensor | None, str | None]:
        """The bias of a node with the folded terms, and the name that it is to have if it is a new one."""
        bias, fold = node.optional_input(place), self.folds.get(node)
        if fold is None or not fold.any():
            return bias, None
        weights = node.input(made_by)
        assert weights.type.quant is not None
        if bias is None:
            type_ = bias_type(len(fold), node.input(0).type, weights.type.quant)
            bias = Tensor(f"{weights.name}_bias", type_, np.zeros(type_.shape, type_.dtype.numpy))
        name = self._name(bias)
        total = bias.array.astype(np.int64) + fold.astype(np.int64)
        return Tensor(name, bias.type, total.astype(bias.dtype.numpy)), name


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


def touches(node: Node, cut: Cut) -> bool:
    """Whether the node's own tensors lose channels."""
    return any(t is not None and t in cut.kept for t in (*node.inputs, *node.outputs))


# ---------------------------------------------------------------- flows


def flow_of(node: Node, axes: Axes) -> Flow | None:
    """None for an operator that needs its inputs whole, or whose channels are not followed."""
    op = op_of(node)
    if not node.inputs or node.inputs[0] is None or not node.outputs:
        return None
    if op.view:
        return _viewed(node, axes)
    space = described(op, node)
    if space is None:
        return None
    reader = _Reader(node, space, axes)
    products = tuple(reader.products())
    weights = reader.weights()
    if weights is not None and not reader.takes(weights):
        return None
    flows = (
        [] if len(node.outputs) != 1 else [f for f in map(reader.along, range(len(node.output.shape))) if f]
    )
    # Layers make channels of their own, the others pass on those that are least tied together.
    flows.sort(key=lambda flow: _liked(node, axes, flow), reverse=True)
    for flow in (*flows, Flow(None)):
        found = dataclasses.replace(flow, products=products)
        if (found.axis is not None or products) and _possible(op, node, axes, found):
            return found
    return None


def weights_of(node: Node) -> Weights | None:
    """The constant by which a node multiplies its input."""
    space = described(op_of(node), node)
    return None if space is None or not node.inputs else _Reader(node, space, {}).weights()


@dataclass(frozen=True)
class _Reader:
    node: Node
    space: Iteration
    axes: Axes

    def indices(self, index: int) -> list[AxisMap]:
        """How the axes of an input are indexed, without what is always 0."""
        read = self.space.inputs[index]
        return [] if read is None else [_plain(self.space, axis) for axis in read.axes]

    def written(self, axis: int) -> AxisMap:
        return _plain(self.space, self.space.outputs[0].axes[axis])

    def channels(self, index: int) -> AxisMap | None:
        """How the channel axis of an input is indexed, if it has one."""
        tensor = self.node.inputs[index]
        return self.indices(index)[self.axes[tensor]] if tensor is not None and tensor in self.axes else None

    def computed(self) -> Iterator[tuple[int, Tensor]]:
        for index, tensor in enumerate(self.node.inputs):
            if tensor is not None and not tensor.is_constant:
                yield index, tensor

    def constants(self) -> Iterator[tuple[int, Tensor]]:
        for index, tensor in enumerate(self.node.inputs):
            if tensor is not None and tensor.is_constant:
                yield index, tensor

    def reduces(self, dim: int) -> bool:
        return self.space.kind(dim) is Kind.REDUCED

    def products(self) -> Iterator[Product]:
        """Of the inputs whose channels are summed; the other input is a constant or has its channels there."""
        places = [
            (index, axis, place)
            for index in range(len(self.node.inputs))
            for axis, place in enumerate(self.indices(index))
        ]
        written = {dim for out in self.space.outputs for place in out.axes for dim in place.dims}
        for index, tensor in self.computed():
            place = self.channels(index)
            if not isinstance(place, Sum) or place.dim is None or place.dim in written:
                continue
            dim, here = place.dim, self.axes[tensor]
            others = [(i, a) for i, a, p in places if dim in p.dims and (i, a) != (index, here)]
            if not self.reduces(dim) or len(others) != 1 or others[0][0] == index:
                continue
            (other, axis), whole = others[0], index in self.space.whole
            partner = self.node.input(other)
            there = partner.is_constant or self.axes.get(partner) == axis
            alike = tensor.shape[here] == partner.shape[axis] == self.space.dims[dim].size
            if there and alike and self.indices(other)[axis] == place and other not in self.space.whole:
                yield Product(index, here, other, axis, whole)

    def weights(self) -> Weights | None:
        """Of a sum of products of input 0 with a constant that has an axis of the output's for itself."""
        x = self.node.inputs[0]
        if x is None or x.is_constant:
            return None
        reads = self.space.inputs[0]
        assert reads is not None
        for index, _ in self.constants():
            made = self.space.inputs[index]
            assert made is not None
            summed = {d for p in reads.axes for d in p.dims if self.reduces(d)} & {
                d for p in made.axes for d in p.dims
            }
            if not summed:
                continue
            # The channels are on the last axis of the input that is multiplied so, if nobody says where they are.
            last = max(axis for axis, place in enumerate(reads.axes) if summed & set(place.dims))
            here = (
                set(reads.axes[self.axes.get(x, last)].dims) & summed or set(reads.axes[last].dims) & summed
            )
            inputs = [axis for axis, place in enumerate(made.axes) if place.dims and set(place.dims) <= here]
            outs = [axis for axis, place in enumerate(made.axes) if not any(map(self.reduces, place.dims))]
            if len(inputs) == 1 and len(outs) == 1:
                shared = {d for p in reads.axes for d in p.dims} & set(made.axes[outs[0]].dims)
                groups = math.prod(self.space.dims[dim].size for dim in shared)
                return Weights(index, outs[0], inputs[0], groups, 0 in self.space.whole)
        return None

    def made(self, weights: Weights) -> AxisMap:
        """How the axis of the weights is indexed that is the output's, too."""
        read = self.space.inputs[weights.index]
        assert read is not None
        return read.axes[weights.out_axis]

    def takes(self, weights: Weights) -> bool:
        """Whether a layer's types are those of its kind: floats with floats, integers with integers, but where it
        quantizes its input itself."""
        x, made = self.node.input(0), self.node.input(weights.index)
        alike = (x.dtype is DType.FLOAT32) == (made.dtype is DType.FLOAT32)
        return x.dtype is self.node.outputs[0].dtype and alike is not weights.whole

    def along(self, axis: int) -> Flow | None:
        """The flow of channels on an axis of the output."""
        size, written = self.node.output.shape[axis], self.written(axis)
        weights = self.weights()
        if weights is not None and self.made(weights) != self.space.outputs[0].axes[axis]:
            weights = None
        if not written.dims or any(self.space.kind(dim) is not Kind.PARALLEL for dim in written.dims):
            return None
        links, fixed, reached = list[Link](), [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        own, bounded = False, set[int]()
        for index, tensor in enumerate(self.node.inputs):
            if tensor is None:
                continue
            for a, place in enumerate(self.indices(index)):
                if not set(place.dims) & set(written.dims):
                    continue
                if tensor.is_constant and place == written and tensor.shape[a] == size:
                    own = True
                    continue
                pairs = self.pairs(place, written, tensor.shape[a], size)
                if pairs is None:
                    return None
                # What is left of a part must be something that the attributes can say.
                if len(np.unique(pairs[0])) < tensor.shape[a] and not self.says(Role.START):
                    return None
                reached.append(pairs[1])
                if not tensor.is_constant and self.axes.get(tensor) == a and index not in self.space.whole:
                    links.append(Link(index, *pairs))
                else:
                    fixed.append(pairs[1])
                    bounded.add(index)
        stay = np.unique(np.concatenate(fixed))
        if not (links or own or bounded) or len(stay) == size:
            return None
        if not own and len(np.unique(np.concatenate(reached))) < size and not self.adds():
            return None
        return Flow(axis, tuple(links), weights=weights, bounded=frozenset(bounded), fixed=stay)

    def says(self, role: Role) -> bool:
        return any(role is each for _, each in roles(self.node.attrs))

    def adds(self) -> bool:
        """Whether attributes say how many channels are added to those of the inputs, which are made of none of them."""
        repeats = any(read is not None and isinstance(read.outside, str) for read in self.space.inputs)
        return self.says(Role.PER_AXIS) and not repeats

    def pairs(self, read: AxisMap, written: AxisMap, size: int, count: int) -> tuple[Index, Index] | None:
        """Indices of an input's axis of this size and of the output's axis that are tied together, enough of them to
        say which are; None where they cannot go one by one or by groups."""
        if isinstance(read, Spans) or isinstance(written, Spans):
            return None
        shared = tuple(dim for dim in read.dims if dim in written.dims)
        if not (self.by_group(read, shared) and self.by_group(written, shared)):
            return None
        first, firsts = self.values(read, shared), self.values(written, shared)
        if first.shape[1] == firsts.shape[1] == 1:
            source, target = first, firsts
        else:
            source = np.concatenate([first, np.broadcast_to(first[:, :1], firsts.shape)], axis=1)
            target = np.concatenate([np.broadcast_to(firsts[:, :1], first.shape), firsts], axis=1)
        inside = (source >= 0) & (source < size) & (target >= 0) & (target < count)
        return source[inside], target[inside]

    def by_group(self, index: Sum, shared: tuple[int, ...]) -> bool:
        """Whether it is one dimension, or the operator's groups, runs of equal length that follow one another."""
        own = [(dim, c) for dim, c in index.terms if dim not in shared]
        if len(shared) != 1 or len(index.terms) != len(own) + 1:
            return False
        (factor,) = (c for dim, c in index.terms if dim in shared)
        if not own:
            return abs(factor) == 1
        length = math.prod(self.space.dims[dim].size for dim, _ in own)
        return (
            self.says(Role.GROUPS) and factor == length and not index.offset and min(c for _, c in own) == 1
        )

    def values(self, index: Sum, shared: tuple[int, ...]) -> Index:
        """(values of the shared dimension, those of the others): the indices."""
        sizes = [self.space.dims[dim].size for dim in (*shared, *(d for d in index.dims if d not in shared))]
        factor = dict(index.terms)
        dims = (*shared, *(d for d in index.dims if d not in shared))
        grids = np.meshgrid(*(np.arange(n) for n in sizes), indexing="ij")
        total = sum(
            (factor[dim] * grid for dim, grid in zip(dims, grids, strict=True)), np.intp(index.offset)
        )
        return np.asarray(total, np.intp).reshape(sizes[0], -1)


def _plain(space: Iteration, axis: AxisMap) -> AxisMap:
    """Without the dimensions that have one index, but for the last if there is no other."""
    if isinstance(axis, Spans):
        return axis
    terms = tuple((dim, c) for dim, c in axis.terms if space.dims[dim].size > 1)
    return Sum(terms or axis.terms[-1:], axis.offset)


def _ties(node: Node, flow: Flow, axes: Axes) -> tuple[Index, dict[Tensor, Index]]:
    """The group of each channel of the output and of the linked inputs, by the links of this node alone."""
    assert flow.axis is not None
    count = node.output.shape[flow.axis]
    starts, total = dict[Tensor, int](), count
    for tensor in dict.fromkeys(node.input(link.index) for link in flow.links):
        starts[tensor] = total
        total += tensor.shape[axes[tensor]]
    unions = Unions(total)
    for link in flow.links:
        unions.join(link.source + starts[node.input(link.index)], link.target)
    found = unions.roots()
    return found[:count], {t: found[start : start + t.shape[axes[t]]] for t, start in starts.items()}


def _liked(node: Node, axes: Axes, flow: Flow) -> tuple[bool, bool, int]:
    """The more, the better; where nothing is linked, the last axis is likely to be the one that layers sum over."""
    assert flow.axis is not None
    groups = len(set(_ties(node, flow, axes)[0].tolist()))
    return flow.weights is not None, bool(flow.links), groups if flow.links else flow.axis


def _possible(op: Op, node: Node, axes: Axes, flow: Flow) -> bool:
    """Whether the operator is one without a channel, too."""
    kept = dict[Tensor, Index]()
    if flow.axis is not None:
        made, read = _ties(node, flow, axes)
        stay = set(made[flow.fixed].tolist())
        groups = dict.fromkeys((*made.tolist(), *(g for r in read.values() for g in r.tolist())))
        some = (
            g for g in groups if all((each != g).any() for each in (made, *read.values())) and g not in stay
        )
        gone = next(some, None)
        if gone is not None and (made == gone).any():
            kept[node.output] = np.flatnonzero(made != gone)
        kept |= {t: np.flatnonzero(r != gone) for t, r in read.items() if (r == gone).any()}
    for product in flow.products:
        x, other = node.input(product.index), node.input(product.other)
        if x.shape[product.axis] == 1:
            continue
        kept.setdefault(x, np.arange(1, x.shape[product.axis]))
        if not other.is_constant:
            kept.setdefault(other, np.arange(1, other.shape[product.other_axis]))
    whole = dict(axes) if flow.axis is None else {**axes, node.output: flow.axis}
    return not complaints(op, narrow(node, Cut(whole, kept)))


def _viewed(node: Node, axes: Axes) -> Flow | None:
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


# ---------------------------------------------------------------- narrower nodes


def narrow(node: Node, cut: Cut) -> Node:
    """The node for tensors without the channels that go; it has a flow."""
    op = op_of(node)
    inputs: list[Tensor | None] = [None if t is None else cut.value(t) for t in node.inputs]
    space = None if op.view else described(op, node)
    if space is not None:
        for index, tensor in enumerate(node.inputs):
            if tensor is not None and tensor.is_constant:
                inputs[index] = cut.part(tensor, _along(node, space, index, cut))
        if node in cut.folds and op.bias is not None:
            place = op.bias[0]
            bias, name = cut.bias(node, *op.bias)
            inputs += [None] * (place + 1 - len(inputs))
            inputs[place] = bias and cut.part(bias, {0: cut.index(node.output)}, name)
    outputs = [cut.value(t) for t in node.outputs]
    return node.replace(attrs=_narrowed(node, cut), inputs=inputs, outputs=outputs)


def _along(node: Node, space: Iteration, index: int, cut: Cut) -> dict[int, Index | None]:
    """What stays of a constant, by its axes."""
    reader, found = _Reader(node, space, cut.axes), dict[int, Index | None]()
    tensor = node.input(index)
    sources = [(value, reader.channels(other)) for other, value in reader.computed()]
    if node.outputs[0] in cut.kept:
        sources.append((node.output, reader.written(cut.axes[node.output])))
    for axis, place in enumerate(reader.indices(index)):
        for value, channels in sources:
            alike = place.dims and place == channels and value in cut.kept
            if alike and tensor.shape[axis] == value.shape[cut.axes[value]]:
                found[axis] = cut.index(value)
    return found


def _narrowed(node: Node, cut: Cut) -> Attrs:
    """The attributes, by their roles."""
    attrs, x = node.attrs, node.input(0)
    kept_in, kept_out = cut.index(x), cut.index(node.outputs[0])
    named = {role: getattr(attrs, name) for name, role in roles(attrs)}
    change: dict[Role, Callable[[Any], Any]] = {Role.SHAPE: lambda _: cut.value(node.outputs[0]).shape}
    if kept_in is not None and named.get(Role.AXIS) == cut.axes[x]:
        change[Role.START] = change[Role.STOP] = lambda end: int(np.searchsorted(kept_in, end))
    if kept_out is not None:
        axis = cut.axes[node.output]
        channels = node.output.shape[axis]

        def entries(pads: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
            before, size = pads[axis][0], x.shape[axis]
            added = int((kept_out < before).sum()), int((kept_out >= before + size).sum())
            return (*pads[:axis], added, *pads[axis + 1 :])

        change[Role.PER_AXIS] = entries
        change[Role.GROUPS] = lambda groups: groups if groups == 1 else groups * len(kept_out) // channels
    changes = {name: change[role](getattr(attrs, name)) for name, role in roles(attrs) if role in change}
    return dataclasses.replace(attrs, **changes) if changes else attrs
