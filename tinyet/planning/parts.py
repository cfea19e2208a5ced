# SPDX-License-Identifier: Apache-2.0
"""A call in parts that take no longer than asked: rows of an image, steps of a sequence, or outputs of a fully
connected layer. Which bytes a part reads and writes follows from the operator's iteration; the kernel is the layer's
own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import TinyetError
from tinyet.ir import Attrs, DType, Node, QuantParams, Tensor, TensorType
from tinyet.memory import MemoryPlan
from tinyet.ops import op_of
from tinyet.ops.shared.window import Window, padded
from tinyet.opset import AccessOrder, Call, Cost, DataLayout, Iteration, Kernel, Layouts, row_axis
from tinyet.opset.access_order import Bytes
from tinyet.opset.blocks import Blocks, blocks
from tinyet.opset.parts import Part
from tinyet.planning.candidates import Candidate
from tinyet.planning.decision import Decision
from tinyet.planning.price import Price, price

ALIGN = 4
"""Bytes that every tensor of an arena begins at a multiple of; so does each part."""
_TOGETHER = (8, 4, 2, 1)
"""Kernels compute several rows or outputs at once: parts of as many are tried."""
_NUMBERS = (DType.INT8, DType.INT16, DType.FLOAT32)


@dataclass(frozen=True)
class _WholeError(Exception):
    """A reason why a call is not cut."""

    reason: str


@dataclass(frozen=True, eq=False)
class Cut:
    """A call in parts. candidate: whose kernel computes them, with the call of the part that needs most scratch memory,
    and the cost of all. groups: of output channels, each of the same rows has a part of its own for each."""

    candidate: Candidate
    parts: tuple[Part, ...]
    groups: int = 1

    def longest(self, *, by_time: bool) -> int:
        """As stated: cycles where by time, else instructions."""
        return max(part.cost.time if by_time else part.cost.instructions for part in self.parts)


def cut_of(
    node: Node,
    decision: Decision,
    plan: MemoryPlan,
    target: Target,
    most: int,
    *,
    by_time: bool,
    pinned: bool = False,
) -> Cut | str:
    """A call in as few parts as there can be of which none takes longer than `most`, or a text that says why it is not
    cut.

    most: cycles where by time, else instructions; the whole call takes longer. Where no parts of its kernel are so
    short, those of the same delegate's other kernels are tried, unless the user has pinned it: parts that are short
    enough are compared by their price, others by their longest."""
    chosen, objective, whole = decision.chosen[node], decision.objective, decision.figures
    longest = 0 if chosen.cost is None else chosen.cost.time if by_time else chosen.cost.instructions
    best, why = None, ""

    def rank(cut: Cut) -> tuple[int, Price]:
        flash = (
            whole.flash - _flash([(chosen.call, chosen.cost)]) + _flash([(p.call, p.cost) for p in cut.parts])
        )
        figures = replace(whole, time=whole.time - chosen.time + cut.candidate.time, flash=flash)
        return max(cut.longest(by_time=by_time), most), price(
            figures, objective.optimize, figures.time, objective.board
        )

    others = [
        other
        for other in (() if pinned else decision.candidates[node])
        if other is not chosen and other.choice.delegate is chosen.choice.delegate
    ]
    for candidate in (chosen, *others):
        made = _cut(node, candidate, plan, target, most, by_time=by_time)
        why = why or (
            made if isinstance(made, str) else f"{candidate.choice.kernel.symbol} makes no shorter parts"
        )
        if isinstance(made, Cut) and made.longest(by_time=by_time) < longest:
            best = made if best is None else min(best, made, key=rank)
            if candidate is chosen and rank(best)[0] <= most:
                break
    return why if best is None else best


def _flash(calls: Sequence[tuple[Call, Cost | None]]) -> int:
    """Bytes of the constants and of the code of some calls, equal ones once."""
    arrays = {np.ascontiguousarray(c.data).tobytes() for call, _ in calls for c in call.constants}
    code = {id(call): cost.code for call, cost in calls if cost is not None}
    return sum(map(len, arrays)) + sum(code.values())


def _cut(
    node: Node, candidate: Candidate, plan: MemoryPlan, target: Target, most: int, *, by_time: bool
) -> Cut | str:
    """With the parts of one kernel; or, where a single row is longer than asked, of one row each."""
    try:
        cutting = _Cutting(node, candidate, plan, target)
    except _WholeError as why:
        return why.reason

    def length(units: int, channels: int = 0) -> int | None:
        """Of one of the parts, which are about as long; None where there are none such."""
        cost = cutting.cost(units, channels)
        return None if cost is None else cost.time if by_time else cost.instructions

    def cut(units: int, channels: int = 0) -> Cut | str:
        parts = cutting.found(units, channels)
        if isinstance(parts, str):
            return parts
        return Cut(_together(candidate, parts), parts, -(-cutting.channels // channels) if channels else 1)

    units = 1
    while length(units) is None and 2 * units < cutting.units:
        units *= 2
    row = length(units) or 0
    if row > most:
        channels = _channels(cutting, lambda count: length(units, count), most)
        made = cut(units, channels) if channels and (length(units, channels) or row) < row else cut(units)
        return made if isinstance(made, Cut) or not channels else cut(units)
    widest = _widest(range(units, cutting.units), lambda count: _within(length(count), most))
    tried = {widest}
    for together in (each for each in _TOGETHER if each <= widest):
        # As many parts that are about as long, of as many rows or outputs as kernels compute at once.
        even = -(-cutting.units // -(-cutting.units // (widest // together * together)))
        tried.add(-(-even // together) * together)
    cuts = [made for count in sorted(tried) if not isinstance(made := cut(count), str)]
    short = [each for each in cuts if each.longest(by_time=by_time) <= most] or cuts
    if not short:
        reason = cut(units)
        return reason if isinstance(reason, str) else f"{node.op} makes one row"
    best = min(short, key=lambda each: each.candidate.time)
    return best if len(best.parts) > 1 else f"{node.op} makes one row"


def _within(length: int | None, most: int) -> bool:
    return length is not None and length <= most


def _widest(counts: Sequence[int], short: Callable[[int], bool]) -> int:
    """The largest of ascending counts with which parts are short enough; the first where none is."""
    low, high = 0, len(counts)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if short(counts[middle]) else (low, middle)
    return counts[low]


def _channels(cutting: _Cutting, length: Callable[[int], int | None], most: int) -> int:
    """The output channels of a part, where a whole row is too long: as many as are short enough, in even groups; 1
    where even one channel is too long, 0 where channels cannot be parted."""
    for together in _TOGETHER:
        counts = range(together, cutting.channels, together)
        if counts and _within(length(widest := _widest(counts, lambda c: _within(length(c), most))), most):
            groups = -(-cutting.channels // widest)
            each = -(-cutting.channels // groups)
            even = -(-each // together) * together
            return even if _within(length(even), most) else widest
    return min(cutting.channels, 1)


def _together(candidate: Candidate, parts: Sequence[Part]) -> Candidate:
    """The candidate whose call is all these parts."""
    costs, widest = [part.cost for part in parts], max(parts, key=lambda part: part.call.scratch_bytes)
    calls = {id(part.call): part.cost for part in parts}.values()
    cost = Cost(
        instructions=sum(cost.instructions for cost in costs),
        cycles=None if costs[0].cycles is None else sum(cost.cycles or 0 for cost in costs),
        code=sum(cost.code for cost in calls),
        shared={name: size for cost in calls for name, size in cost.shared.items()},
        constants=max(cost.constants for cost in calls),
        scratch=widest.call.scratch_bytes,
    )
    return Candidate(candidate.choice, widest.call, cost)


class _Cutting:
    """Ways to cut one call. units: the smallest parts that there can be."""

    def __init__(self, node: Node, candidate: Candidate, plan: MemoryPlan, target: Target) -> None:
        call = candidate.call
        self.node, self.kernel, self.target = node, candidate.choice.kernel, target
        self.layouts = plan.layouts(node)
        if call.state_bytes or call.init is not None or call.events:
            raise _WholeError(f"{call.kernel} keeps what it has begun for itself")
        if len(node.outputs) != 1:
            raise _WholeError(f"{node.op} has several outputs")
        variables = [(i, t) for i, t in enumerate(node.inputs) if t is not None and not t.is_constant]
        if any(t.dtype not in _NUMBERS for t in (*(t for _, t in variables), node.output)):
            raise _WholeError(f"{node.op} does not work on numbers alone")
        space = op_of(node).iteration(node)
        if isinstance(space, str):
            raise _WholeError(space)
        self.axis = row_axis(node.output)
        found = blocks(node, space, self.axis, least=2)
        if isinstance(found, str):
            raise _WholeError(found)
        self.blocks: Blocks = found
        self.forms = {i: _Form.of(plan, t, found.read[i]) if i in found.read else None for i, t in variables}
        self.form = _Form.of(plan, node.output, self.axis)
        self.channels = self._channels(space)
        self.grain = self._grain()
        self.units = -(-node.output.shape[self.axis] // (found.size * self.grain))
        self._calls: dict[object, tuple[Node, Call, Cost] | str] = {}

    def _grain(self) -> int:
        """How many of the smallest blocks make all parts begin at whole words."""
        steps = [(self.form, self.blocks.size, 0)]
        steps += [(f, self.blocks.stride, self.blocks.first) for f in self.forms.values() if f is not None]
        for form, _, offset in steps:
            if form.row_bytes * offset % form.align:
                raise _WholeError("its rows do not begin at whole words")
        count = self.node.output.shape[self.axis] // self.blocks.size
        for grain in (1, 2, 4):
            if grain < count and all(f.row_bytes * step * grain % f.align == 0 for f, step, _ in steps):
                return grain
        raise _WholeError("its rows do not begin at whole words")

    def _channels(self, space: Iteration) -> int:
        """How many output channels there are, where each is made of constants of its own and all that its row takes of
        other inputs; else 0."""
        node, last = self.node, len(self.node.output.shape) - 1
        if self.axis == last or self.layouts.writes is not None:
            return 0
        found = blocks(node, space, last, least=2)
        if isinstance(found, str) or (found.size, found.stride, found.first, found.extent) != (1, 1, 0, 1):
            return 0
        alone = all(node.input(index).is_constant for index in found.read)
        self.by_channel = found.read
        return node.output.shape[last] if alone else 0

    def cost(self, units: int, channels: int = 0) -> Cost | None:
        """Of a part in the midst of the output."""
        step = units * self.grain * self.blocks.size
        first = step if 2 * step <= self.node.output.shape[self.axis] else 0
        if channels and not self.channels:
            return None
        part = self._part(first, first + step, (0, channels) if channels else None)
        return None if isinstance(part, str) else part.cost

    def found(self, units: int, channels: int = 0) -> tuple[Part, ...] | str:
        """Parts of so many units, the last one of what is left; each for so many channels at a time, 0 for all."""
        total, step = self.node.output.shape[self.axis], units * self.grain * self.blocks.size
        if channels and not self.channels:
            return f"{self.node.op} does not make each channel by itself"
        groups = (
            [(c, min(c + channels, self.channels)) for c in range(0, self.channels, channels)]
            if channels
            else [None]
        )
        parts = []
        for first in range(0, total, step):
            for group in groups:
                part = self._part(first, min(first + step, total), group)
                if isinstance(part, str):
                    return part
                parts.append(part)
        return tuple(parts)

    def _part(self, first: int, end: int, group: tuple[int, int] | None) -> Part | str:
        size, stride = self.blocks.size, self.blocks.stride
        low = first // size * stride + self.blocks.first
        high = (end // size - 1) * stride + self.blocks.first + self.blocks.extent
        inputs, reads, own = list(self.node.inputs), dict[int, int](), list[object]()
        outside = set[tuple[int, int]]()
        for index, tensor in enumerate(self.node.inputs):
            if tensor is None or index not in self.blocks.read:
                if tensor is not None and not tensor.is_constant:
                    reads[index] = 0
                continue
            axis = self.blocks.read[index]
            height = tensor.shape[axis]
            start, stop = max(low, 0), min(high, height)
            outside.add((start - low, high - stop))
            inputs[index] = _slice(tensor, axis, start, stop)
            if tensor.is_constant:
                own.append((index, start, stop))
            else:
                form = self.forms[index]
                assert form is not None
                reads[index] = start * form.row_bytes
        output, at = _slice(self.node.output, self.axis, 0, end - first), first * self.form.row_bytes
        if group is not None:
            output = _slice(output, len(output.shape) - 1, *group)
            at += group[0] * output.dtype.bytes
            own.append(group)
            for index, axis in self.by_channel.items():
                inputs[index] = _slice(inputs[index] or self.node.input(index), axis, *group)
        ((above, below),) = outside or {(0, 0)}
        attrs = self._attrs(end - first, above, below)
        if isinstance(attrs, str):
            return attrs
        key = attrs, end - first, *own
        if key not in self._calls:
            part = self.node.replace(attrs=attrs, inputs=inputs, outputs=[output])
            self._calls[key] = self._lowered(part, self._lying(group))
        made = self._calls[key]
        if isinstance(made, str):
            return made
        return Part(*made, first, end, reads, at)

    def _lying(self, group: tuple[int, int] | None) -> Layouts:
        """How a part's values lie: between those of some channels lie those of the others."""
        if group is None or self.layouts.output:
            return self.layouts
        return replace(self.layouts, output=self.node.output.shape[-1] * self.node.output.dtype.bytes)

    def _attrs(self, count: int, above: int, below: int) -> Attrs | str:
        op, node = op_of(self.node), self.node
        attrs = op.part(node, self.axis, count)
        if isinstance(attrs, str):
            return attrs
        attrs = node.attrs if attrs is None else attrs
        if not above and not below:
            return attrs
        if not isinstance(attrs, Window):
            return f"{node.op} makes rows at an edge otherwise than others"
        return padded(attrs, self.axis, above, below)

    def _lowered(self, part: Node, layouts: Layouts) -> tuple[Node, Call, Cost] | str:
        kernel = self.kernel
        try:
            if op_of(part).infer(part) != (part.output.shape,):
                return f"{part.op} makes other rows of a part"
            why = kernel.why_not(part, self.target)
            if why is not None:
                return f"{kernel.symbol}: {why}"
            if layouts == Layouts():
                call = kernel.lower(part, self.target)
            else:
                support = kernel.layout_support
                if support is None or not _takes(kernel, part, layouts):
                    return f"{kernel.symbol} does not take parts that lie so"
                call = support.lower(part, self.target, layouts)
        except TinyetError as error:
            return f"{kernel.symbol}: {error.what}"
        cost = kernel.cost(part, self.target, call, layouts)
        if cost is None:
            return f"{kernel.symbol} states no cost"
        return part, call, cost


def _takes(kernel: Kernel, node: Node, layouts: Layouts) -> bool:
    """Whether a kernel lowers a part of a node that it has lowered for these layouts."""
    support = kernel.layout_support
    assert support is not None
    first, output = node.input(0), node.output
    held = [(layouts.reads, first), (layouts.writes, output)]
    if not all(layout is None or layout.holds(tensor) for layout, tensor in held):
        return False
    one = Layouts(input=layouts.input, reads=layouts.reads)
    other = Layouts(output=layouts.output, writes=layouts.writes)
    return all(each == Layouts() or support.takes(node, each) for each in (one, other))


@dataclass(frozen=True)
class _Form:
    """Bytes from one row of a tensor to the next, as it lies, and what the first of some rows is aligned to."""

    row_bytes: int
    align: int

    @staticmethod
    def of(plan: MemoryPlan, tensor: Tensor, axis: int) -> _Form:
        """Raises _WholeError where rows do not lie one after another."""
        rows, width = tensor.shape[axis], tensor.dtype.bytes
        if any(size > 1 for size in tensor.shape[:axis]):
            raise _WholeError(f"rows of {tensor.name} do not lie together")
        layout = plan.data_layout(tensor)
        if layout is not None:
            if not _rows_lie_in_turn(tensor, layout, axis):
                raise _WholeError(f"rows of {tensor.name} do not lie together")
            return _Form(layout.size(tensor) // rows, max(layout.align, ALIGN))
        stride = plan.pixel_stride(tensor)
        if stride and axis == len(tensor.shape) - 1:
            return _Form(width, width)
        if stride:
            return _Form(stride * int(np.prod(tensor.shape[axis + 1 : -1], dtype=np.int64)), width)
        return _Form(tensor.type.bytes // rows, max(ALIGN, width))


def _rows_lie_in_turn(tensor: Tensor, layout: DataLayout, axis: int) -> bool:
    """Whether a tensor of one row is a row of a tensor of several: tried with drawn bytes."""
    rows, size = tensor.shape[axis], layout.size(tensor)
    one = _slice(tensor, axis, 0, 1)
    if size % rows or not layout.holds(one) or layout.size(one) * rows != size:
        return False
    data, each = np.random.default_rng(rows).bytes(size), size // rows
    whole = layout.row_major(tensor, data)
    return whole == b"".join(layout.row_major(one, data[at : at + each]) for at in range(0, size, each))


def _slice(tensor: Tensor, axis: int, start: int, stop: int) -> Tensor:
    """Some indices of an axis; the tensor itself where these are all."""
    if (start, stop) == (0, tensor.shape[axis]):
        return tensor
    kind, shape = tensor.type, (*tensor.shape[:axis], stop - start, *tensor.shape[axis + 1 :])
    quant = kind.quant
    if quant is not None and quant.axis == axis:
        quant = QuantParams(quant.scale[start:stop], quant.zero_point[start:stop], axis)
    data = None if tensor.data is None else np.ascontiguousarray(tensor.array.take(range(start, stop), axis))
    return Tensor(tensor.name, TensorType(shape, kind.dtype, quant), data)


# ---------------------------------------------------------------- what is read after it is written


def in_parts(kernel: Kernel, cut: Cut) -> Kernel:
    """The kernel with what it reads after it has written, where its call of a node is made of these parts."""
    parts = cut.parts

    def access_order(node: Node, index: int) -> AccessOrder:
        return _access_order(kernel, node, cut, index)

    def replaces(_node: Node, index: int) -> bool:
        inplace = kernel.replaces
        return inplace is not None and all(
            p.reads.get(index) == p.writes
            and p.node.input(index).type.bytes == p.node.output.type.bytes
            and inplace(p.node, index)
            for p in parts
        )

    return replace(kernel, access_order=access_order, replaces=replaces)


def _access_order(kernel: Kernel, node: Node, cut: Cut, index: int) -> AccessOrder:
    """The parts' own, one behind the other. Where the kernel says nothing, as of some channels among others, a part may
    read all its bytes to its end."""
    written, needed = list[Bytes](), list[Bytes]()
    last = cut.parts[-1]
    behind = last.reads[index] + last.node.input(index).type.bytes
    for part in reversed(cut.parts):
        own = None if kernel.access_order is None or cut.groups > 1 else kernel.access_order(part.node, index)
        if own is None:
            output = part.node.output
            missing = (node.output.shape[-1] - output.shape[-1]) * output.dtype.bytes if cut.groups > 1 else 0
            pixels = output.type.count // output.shape[-1]
            own = AccessOrder(np.array([output.type.bytes + (pixels - 1) * missing]), np.array([0]))
        needed.append(np.minimum(own.needed + part.reads[index], behind))
        written.append(own.written + part.writes)
        behind = int(needed[-1][0])
    return AccessOrder(np.concatenate(written[::-1]), np.concatenate(needed[::-1]))


def undisturbed(plan: MemoryPlan, node: Node, cut: Cut) -> bool:
    """Whether, at the addresses of a plan that was made for the whole call, no part needs what one has written over."""
    kernel, output = cut.candidate.choice.kernel, plan.offset(node.output)
    end = output + plan.extent(node.output)
    for index, start in cut.parts[0].reads.items():
        tensor = node.input(index)
        at = plan.offset(tensor)
        if at >= end or output >= at + plan.extent(tensor):
            continue
        if all(p.reads[index] == p.writes for p in cut.parts) and at == output and start == 0:
            continue  # each part is over what it takes
        if plan.layouts(node) != Layouts():
            return False
        order = _access_order(kernel, node, cut, index)
        if (output + order.written > at + order.needed).any():
            return False
    return True


def stretches(parts: Sequence[Part], groups: int) -> Iterator[tuple[int, int]]:
    """(first, count) of parts that are one call at addresses of equal distances. Of one group to the next part it is
    `groups` places."""
    for group in range(groups):
        mine, at = parts[group::groups], 0
        while at < len(mine):
            count = 1
            while at + count < len(mine) and _goes_on(mine[at : at + count + 1]):
                count += 1
            yield group + at * groups, count
            at += count


def _goes_on(parts: Sequence[Part]) -> bool:
    """Whether the last of some parts is the same call as the others, as far behind the one before it as these are."""

    def steps(a: Part, b: Part) -> Mapping[int, int]:
        return {-1: b.writes - a.writes} | {i: b.reads[i] - a.reads[i] for i in a.reads}

    return parts[0].call is parts[-1].call and steps(*parts[:2]) == steps(*parts[-2:])
