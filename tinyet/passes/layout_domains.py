# SPDX-License-Identifier: Apache-2.0
"""Which operators may compute on tensors whose dimensions lie in another order, and how that changes them.

A layout of a tensor is a tuple of its axes in the order in which they are stored: (0, 2, 3, 1) is torch's NCHW,
stored as NHWC. An operator has a *frame*, a list of places common to all of its tensors; a *label* is an order of the
frame's places, and gives a layout to each input and to the output.

No operator is named here. Axes that are indexed by the same dimensions of an operator's iteration share a place, and
its attributes follow by their roles (opset/roles.py). The operator takes a label if the node that comes of it is right
by the operator's own rule and iterates as before, in the other order.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tinyet.boards.cpus import HOST
from tinyet.ir import Array, Attrs, Node, Shape, Tensor, TensorType
from tinyet.ops import op_of
from tinyet.opset import ONE, AxisMap, Index, Iteration, Op, Operand, Spans, complaints, described, reordered
from tinyet.opset.iteration import Kind

Label = tuple[int, ...]
Layout = tuple[int, ...]


def canonical(layout: Layout, shape: Shape) -> Layout:
    """The part of a layout that the bytes depend on: the order of the axes that are not of size 1."""
    return tuple(axis for axis in layout if shape[axis] != 1)


@dataclass(frozen=True)
class Port:
    """Where a tensor's axes are: place i of the frame has the axes axes[i].

    ones: a place without any stands for an axis of size 1 that broadcasting adds.
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

    def stored(self, tensor: Tensor, label: Label) -> Tensor:
        """The tensor as it is stored by this label."""
        shape = self.stored_shape(label)
        data: Array | None = None
        if tensor.data is not None:
            data = tensor.data.transpose(self.layout(label)).reshape(shape)
        return Tensor(tensor.name, TensorType(shape, tensor.dtype, tensor.type.quant), data)

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


@dataclass(frozen=True, eq=False)
class Frame:
    """inputs: a port each, None for an input that stays as it is (weights, parameters of one axis).

    space: the node's iteration; None for an operator that only gives its input another shape.
    picks: places along which values are picked and moved. mixes: places along which the first input is read as a whole
    for each element.
    """

    node: Node
    rank: int
    inputs: tuple[Port | None, ...]
    output: Port
    space: Iteration | None
    picks: frozenset[int] = frozenset()
    mixes: frozenset[int] = frozenset()
    _known: dict[Label, Attrs | None] = field(default_factory=dict)

    @property
    def identity(self) -> Label:
        return tuple(range(self.rank))

    def neighbours(self) -> Iterator[Label]:
        """The labels in which two neighbouring places are exchanged."""
        for at in range(self.rank - 1):
            yield (*range(at), at + 1, at, *range(at + 2, self.rank))

    @cached_property
    def free(self) -> bool:
        """Whether the operator takes every order."""
        return all(self.relabel(label) is not None for label in self.neighbours())

    def relabel(self, label: Label) -> Attrs | None:
        """The attributes under a label, or None where the operator cannot work so."""
        if label not in self._known:
            self._known[label] = self.node.attrs if label == self.identity else self._relabelled(label)
        return self._known[label]

    def cost(self, label: Label) -> int:
        """Bytes that the operator itself moves. What is picked along a place is contiguous, and so nearly free, when
        nothing lies outside of it; else whole rows are copied, which is a few times cheaper than the single elements
        of a Permute."""
        shape = self.node.output.shape
        outside = (p for pick in self.picks for p in label[: label.index(pick)])
        free = all(shape[axis] == 1 for place in outside for axis in self.output.axes[place])
        return 0 if free else self.node.output.type.bytes // 4

    def _relabelled(self, label: Label) -> Attrs | None:
        # What is read as a whole for each element stays where it is, or becomes contiguous.
        if any(label.index(place) not in (place, self.rank - 1) for place in self.mixes):
            return None
        node, op, first = self.node, op_of(self.node), self.inputs[0]
        assert first is not None
        inputs = [
            t if t is None or port is None else port.stored(t, label)
            for t, port in zip(node.inputs, self.inputs, strict=True)
        ]
        output = self.output.stored(node.output, label)
        attrs = reordered(node.attrs, first.layout(label), output.shape)
        moved = node.replace(attrs=attrs, inputs=inputs, outputs=(output,))
        if complaints(op, moved) or (_computed(op, node) and not _computed(op, moved)):
            return None
        return attrs if self.space is None or self._alike(self.space, moved, label) else None

    def _alike(self, space: Iteration, moved: Node, label: Label) -> bool:
        """Whether a node does the same as this one in another order."""
        first, read = self.inputs[0], space.inputs[0]
        assert first is not None
        assert read is not None
        reduced = canonical(
            tuple(a for a in first.layout(label) if _reduced(space, read.axes[a])), first.shape
        )
        if space.ordered and reduced != tuple(sorted(reduced)):
            return False
        inputs = tuple(
            operand if operand is None or port is None else _in_order(operand, port, label)
            for operand, port in zip(space.inputs, self.inputs, strict=True)
        )
        outputs = (_in_order(space.outputs[0], self.output, label),)
        made = described(op_of(moved), moved)
        wanted = dataclasses.replace(space, inputs=inputs, outputs=outputs)
        return made is not None and _numbered(made) == _numbered(wanted)


def frame_of(node: Node) -> Frame | None:
    """The frame of an operator that can work in another order of its dimensions; None for all others."""
    op = op_of(node)
    if len(node.outputs) != 1 or not node.inputs or node.inputs[0] is None:
        return None
    frame = _view(node) if op.view else _described(op, node)
    if frame is None or frame.rank < 2:
        return None
    laid_out = (t for t, port in zip(node.inputs, frame.inputs, strict=True) if t and port)
    # A scale an index would have to move along.
    if any(t.type.quant is not None and t.type.quant.axis is not None for t in laid_out):
        return None
    return frame if any(frame.relabel(label) is not None for label in frame.neighbours()) else None


def _computed(op: Op, node: Node) -> bool:
    # What shapes kernels take is the same on every target.
    return any(kernel.why_not(node, HOST) is None for kernel in op.kernels)


def _reduced(space: Iteration, axis: AxisMap) -> bool:
    return isinstance(axis, Spans) or any(space.kind(dim) is not Kind.PARALLEL for dim in axis.dims)


def _in_order(operand: Operand, port: Port, label: Label) -> Operand:
    axes: list[AxisMap] = []
    for place in label:
        axes += [operand.axes[axis] for axis in port.axes[place]]
        if not port.axes[place] and port.ones:
            axes.append(ONE)
    return Operand(tuple(axes), operand.outside)


def _numbered(space: Iteration) -> object:
    """What is the same for iterations that differ only in the names of their dimensions."""
    number: dict[int, int] = {}

    def name(dim: int) -> int:
        return number.setdefault(dim, len(number))

    operands = [
        operand
        and (
            operand.outside,
            tuple(
                (tuple((name(dim), c) for dim, c in axis.terms), axis.offset)
                if isinstance(axis, Index)
                else (name(axis.dim), axis.spans)
                for axis in operand.axes
            ),
        )
        for operand in (*space.outputs, *space.inputs)
    ]
    return operands, [space.dims[dim] for dim in number], dict(space.whole), space.ordered


# ---------------------------------------------------------------- places


def _view(node: Node) -> Frame:
    x, out = node.input(0).shape, node.output.shape
    groups = axis_groups(x, out)
    port = Port(out, tuple(after for _, after in groups))
    return Frame(node, len(groups), (Port(x, tuple(before for before, _ in groups)),), port, None)


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


class _Place:
    """dims: those that index the axes at this place."""

    def __init__(self, dims: Sequence[int]) -> None:
        self.dims = set(dims)


@dataclass(frozen=True)
class _Laid:
    """The place of each axis of an input; whether it broadcasts to the places that it lacks."""

    places: tuple[_Place, ...]
    ones: bool


def _described(op: Op, node: Node) -> Frame | None:
    space = described(op, node)
    if space is None:
        return None
    read, written = space.inputs[0], space.outputs[0]
    assert read is not None
    # The places are the output's axes, and what the inputs have beside them.
    places = [_Place(axis.dims) for axis in written.axes]
    own = tuple(places)
    laid = [
        None if each is None else _lay(op, node, index, each, places)
        for index, each in enumerate(space.inputs)
    ]
    first = laid[0]
    if first is None:
        return None

    def port(tensor: Tensor, found: _Laid) -> Port:
        axes = (tuple(a for a, p in enumerate(found.places) if p is place) for place in places)
        return Port(tensor.shape, tuple(axes), found.ones)

    inputs = tuple(
        None if t is None or found is None else port(t, found)
        for t, found in zip(node.inputs, laid, strict=True)
    )
    picks, mixes = set[int](), set[int]()
    for axis, place in enumerate(first.places):
        made = written.axes[own.index(place)] if place in own else ONE
        if made == ONE or read.axes[axis] == ONE:
            continue
        if any(space.kind(dim) is not Kind.PARALLEL for dim in set(read.axes[axis].dims) - set(made.dims)):
            mixes.add(places.index(place))
        if _picks(space, read.axes[axis], made, node.input(0).shape[axis]):
            picks.add(places.index(place))
    moves = op.same_scale and read.outside is None
    return Frame(
        node,
        len(places),
        inputs,
        port(node.output, _Laid(own, ones=False)),
        space,
        frozenset(picks if moves else ()),
        frozenset(() if moves else mixes),
    )


def _picks(space: Iteration, read: AxisMap, written: AxisMap, size: int) -> bool:
    """Whether what lies along an axis of this size is not taken as it lies there."""
    if isinstance(read, Index):
        return read != written or space.dims[read.terms[0][0]].size != size
    return False


def _lay(op: Op, node: Node, index: int, read: Operand, places: list[_Place]) -> _Laid | None:
    """None for an input that stays as it is. Adds the places that only this input has, and dimensions to the others."""
    found = [next((p for p in places if p.dims & set(axis.dims)), None) for axis in read.axes]
    apart = not any(found) and any(axis != ONE for axis in read.axes)
    if apart and (index > 0 or any(place.dims for place in places)):
        return None
    laid = _behind(op, node, index, found, places)
    if laid is None and (index == 0 or not node.input(index).is_constant):
        laid = _between(found, places)
    if laid is not None:
        for place, axis in zip(laid.places, read.axes, strict=True):
            place.dims.update(axis.dims)
    return laid


def _behind(
    op: Op, node: Node, index: int, found: Sequence[_Place | None], places: Sequence[_Place]
) -> _Laid | None:
    """The last places, if the operator gives such an input axes of size 1 in front."""
    lacking = len(places) - len(found)
    if lacking < 0 or any(p not in (None, q) for p, q in zip(found, places[lacking:], strict=True)):
        return None
    if lacking:
        tensor = node.input(index)
        shape = (1,) * lacking + tensor.shape
        data = None if tensor.data is None else tensor.data.reshape(shape)
        inputs = list(node.inputs)
        inputs[index] = Tensor(tensor.name, TensorType(shape, tensor.dtype, tensor.type.quant), data)
        if complaints(op, node.replace(inputs=inputs)):
            return None
    return _Laid(tuple(places[lacking:]), ones=True)


def _between(found: Sequence[_Place | None], places: list[_Place]) -> _Laid | None:
    """The places that the axes share, if these are in order, and new ones between."""
    known = [places.index(place) for place in found if place is not None]
    if known != sorted(known):
        return None
    own, at = list[_Place](), 0
    for place in found:
        if place is None:
            places.insert(at, _Place(()))
        own.append(places[at] if place is None else place)
        at = places.index(own[-1]) + 1
    return _Laid(tuple(own), ones=False)
