# SPDX-License-Identifier: Apache-2.0
"""An independent proof that a memory plan is right.

Only records come from the planner. The arena is simulated: each byte (in runs of neighbours) knows which byte of
which tensor was last written there, and every read is compared with the expected bytes. For nodes without a call, the
operator's reference is run on random values, and the result must equal the claimed bytes of its inputs.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from tinyet.errors import InternalError, bullet_list
from tinyet.ir import Graph, Node, Tensor
from tinyet.memory.accesses import Access, Alias, Copy, Region, Span
from tinyet.memory.check_parts import check_meaning, part_accesses
from tinyet.memory.check_tiles import tile_aliases, tile_steps
from tinyet.memory.check_views import aliases_tried, check_view
from tinyet.memory.plan import MARK, MARK_BYTES, MemoryPlan
from tinyet.opset import AccessOrder, AccessOrders, Op
from tinyet.opset.parts import Part

NO_PARTS: Mapping[Node, Sequence[Part]] = MappingProxyType({})
"""Every call is made as a whole."""
_SHOWN = 20
"""Complaints listed; one mistake can break every read after it."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring bytes that hold neighbouring bytes of one thing, from its byte `start` on. thing: its number, or
    NOTHING; writer: the step that wrote them, -1 for the caller."""

    bytes: int
    thing: int
    start: int
    writer: int = -1


NOTHING, UNKNOWN = -1, -2
"""Contents of memory at the start, and of a part of an alias without a source."""


def _cut(runs: Sequence[_Run], start: int, size: int) -> list[_Run]:
    """Bytes `start` to `start + size` of the runs' contents one after another."""
    found, at = [], 0
    for run in runs:
        low, high = max(start, at), min(start + size, at + run.bytes)
        if low < high:
            found.append(_Run(high - low, run.thing, run.start + low - at, run.writer))
        at += run.bytes
        if at >= start + size:
            break
    return found


def _count(runs: Sequence[_Run]) -> int:
    return sum(run.bytes for run in runs)


def _differing(have: Sequence[_Run], want: Sequence[_Run]) -> tuple[int, int]:
    """(first byte, how many bytes) where two lists of equal length hold something else."""
    first, count, at = -1, 0, 0
    ours, theirs = iter(have), iter(want)
    one, other = next(ours, None), next(theirs, None)
    while one is not None and other is not None:
        size = min(one.bytes, other.bytes)
        if size and ((one.thing, one.start) != (other.thing, other.start) or one.thing < 0):
            first, count = (at if first < 0 else first), count + size
        at += size
        one, other = _behind(one, size, ours), _behind(other, size, theirs)
    return first, count


def _behind(run: _Run, size: int, more: Iterator[_Run]) -> _Run | None:
    """The rest of a run behind its first `size` bytes."""
    if size == run.bytes:
        return next(more, None)
    return replace(run, bytes=run.bytes - size, start=run.start + size)


@dataclass
class _Arena:
    """The simulated memory, in runs of bytes: which thing's bytes each run holds, and which step wrote it."""

    bytes: int
    regions: Sequence[Region] = ()
    runs: list[_Run] = field(init=False)
    starts: list[int] = field(init=False)  # the offset of each run
    names: list[str] = field(default_factory=list)
    content: dict[str, list[_Run]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.runs, self.starts = [_Run(self.bytes, NOTHING, 0)], [0]

    def _runs_in(self, start: int, end: int) -> tuple[int, int]:
        """Which of the runs hold the bytes from `start` to `end`: from one number up to another."""
        return max(bisect_right(self.starts, start) - 1, 0), bisect_left(self.starts, end)

    def cut(self, start: int, size: int) -> list[_Run]:
        """The contents of the bytes from `start` to `start + size`."""
        first, last = self._runs_in(start, start + size)
        return _cut(self.runs[first:last], start - self.starts[first], size)

    def new(self, name: str, size: int, step: int) -> list[_Run]:
        """A thing that a step is about to write."""
        self.names.append(name)
        return [_Run(size, len(self.names) - 1, 0, step)]

    def inside(self, label: str, what: str, offset: int, size: int, align: int) -> bool:
        if offset % align:
            self.problems.append(f"{label}: {what} at offset {offset} is not aligned to {align} bytes")
        if offset < 0 or offset + size > self.bytes:
            self.problems.append(
                f"{label}: {what} at {offset} to {offset + size} leaves the arena of {self.bytes} bytes"
            )
            return False
        if self.regions and not any(r.start <= offset and offset + size <= r.end for r in self.regions):
            names = " and ".join(r.name for r in self.regions if offset < r.end and r.start < offset + size)
            self.problems.append(
                f"{label}: {what} at {offset} to {offset + size} is not within {names or 'any memory'}"
            )
            return False
        return True

    def refuse_written(self, label: str, what: str, offset: int, size: int) -> None:
        """Complain of a write to memory that is only read."""
        self.problems += [
            f"{label}: writes {what} to {region.name}, which is only read"
            for region in self.regions
            if region.constant and offset < region.end and region.start < offset + size
        ]

    def expect(self, label: str, span: Span, steps: Sequence[str]) -> None:
        """Complain unless `span` holds exactly its tensor."""
        if not self.inside(label, span.tensor, span.offset, span.extent, span.align):
            return
        content = self.content.get(span.tensor)
        if content is None:
            self.problems.append(f"{label}: reads {span.tensor}, which nothing has computed")
        elif _count(content) != span.bytes:
            self.problems.append(
                f"{label}: reads {span.bytes} bytes of {span.tensor}, which has {_count(content)}"
            )
        else:
            have = [run for offset, size in span.runs() for run in self.cut(offset, size)]
            first, wrong = _differing(have, content)
            if wrong:
                at = span.offset + first
                if span.pixel_stride:
                    at = span.offset + first // span.run * span.pixel_stride + first % span.run
                self.problems.append(
                    f"{label}: reads byte {first} of {span.tensor} at offset {at}, which holds "
                    f"{self.holds(at, steps)} ({wrong} wrong of {span.bytes} bytes)"
                )

    def holds(self, at: int, steps: Sequence[str]) -> str:
        (run,) = self.cut(at, 1)
        if run.thing < 0:
            return "nothing"
        by = steps[run.writer] if run.writer >= 0 else "the caller"
        return f"byte {run.start} of {self.names[run.thing]}, written by {by}"

    def put(self, offset: int, runs: Sequence[_Run]) -> None:
        """Put the runs at an offset."""
        end = offset + _count(runs)
        first, last = self._runs_in(offset, end)
        if last <= first:
            return
        low, high = self.starts[first], self.starts[last - 1] + self.runs[last - 1].bytes
        new = [
            *self.cut(low, offset - low),
            *runs,
            *self.cut(end, high - end),
        ]
        self.runs[first:last] = new
        self.starts[first:last] = itertools.accumulate((run.bytes for run in new[:-1]), initial=low)

    def write(self, label: str, span: Span, step: int) -> None:
        if span.tensor in self.content:
            self.problems.append(f"{label}: writes {span.tensor} a second time")
        self.content[span.tensor] = self.new(span.tensor, span.bytes, step)
        if self.inside(label, span.tensor, span.offset, span.extent, span.align):
            content, written, at, end = self.content[span.tensor], list[_Run](), 0, span.offset
            for offset, size in span.runs():
                written += self.cut(end, offset - end)  # bytes between pixels stay
                written += _cut(content, at, size)
                at, end = at + size, offset + size
            self.put(span.offset, written)

    def resolve(self, waiting: dict[str, list[Alias]], tensors: Iterable[str]) -> None:
        """Give content to the aliases that waited for one of the tensors, which now have content, and to aliases that
        waited for these; an alias waits for its first source without content."""
        ready = list(tensors)
        while ready:
            for alias in waiting.pop(ready.pop(0), ()):
                if self.await_sources(alias, waiting):
                    self._become(alias)
                    ready.append(alias.tensor)

    def await_sources(self, alias: Alias, waiting: dict[str, list[Alias]]) -> bool:
        """Whether all sources of an alias have content; otherwise it waits for its first source without content."""
        missing = next((p.source for p in alias.pieces if p.source not in self.content), None)
        if missing is not None:
            waiting.setdefault(missing, []).append(alias)
        return missing is None

    def _become(self, alias: Alias) -> None:
        size = sum(piece.bytes for piece in alias.pieces)
        content: list[_Run] = []
        at = 0
        names = {piece.source for piece in alias.pieces}
        starts = {
            name: list(itertools.accumulate((run.bytes for run in self.content[name][:-1]), initial=0))
            for name in names
        }
        for p in sorted(alias.pieces, key=lambda piece: piece.start):
            first = bisect_right(starts[p.source], p.source_start) - 1
            last = bisect_left(starts[p.source], p.source_start + p.bytes)
            runs = self.content[p.source][first:last]
            source = _cut(runs, p.source_start - starts[p.source][first], p.bytes)
            if _count(source) != p.bytes or p.start < at or p.start + p.bytes > size:
                self.problems.append(f"alias {alias.tensor}: its bytes are not all bytes of {p.source}")
                continue
            content += [_Run(p.start - at, UNKNOWN, 0), *source]
            at = p.start + p.bytes
        self.content[alias.tensor] = [run for run in (*content, _Run(size - at, UNKNOWN, 0)) if run.bytes]


def _meet(a: Span, b: Span) -> bool:
    """Have they a byte in common?"""
    if max(a.offset, b.offset) >= min(a.offset + a.extent, b.offset + b.extent):
        return False
    both = sorted([*a.runs(), *b.runs()])
    return any(start + size > after for (start, size), (after, _) in itertools.pairwise(both))


def _just_over(read: Span, write: Span) -> bool:
    """Is what is written exactly where it is read, or over the first bytes of it? That it may be smaller is part of
    the permission."""
    if read.pixel_stride or write.pixel_stride:
        return read.runs() == write.runs()
    return read.offset == write.offset and write.bytes <= read.bytes


class _Places:
    """Spans by where they are: a tile may have some hundred rows, of which few are near another."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._order = sorted(range(len(spans)), key=lambda k: spans[k].offset)
        self._offsets = [spans[k].offset for k in self._order]
        self._longest = max((span.extent for span in spans), default=0)

    def near(self, span: Span) -> list[int]:
        """The numbers of those that may have a byte in common with a span, in order."""
        first = bisect_left(self._offsets, span.offset - self._longest)
        last = bisect_left(self._offsets, span.offset + span.extent)
        return sorted(self._order[first:last])


def _ruined(read: Span, write: Span, access_order: AccessOrder) -> str:
    """The conflicts of a call with these steps; empty where it never writes to bytes that it has yet to read.

    At each step, as addresses: the bytes that it may have written when the step ends, and those that it may read from
    then on.
    """
    if int(access_order.written[-1]) != write.bytes:
        written = access_order.written[-1]
        return f"the steps through {read.tensor} write {written} of {write.bytes} bytes of {write.tensor}"
    first = np.maximum(write.offset, read.offset + access_order.needed)
    end = np.minimum(write.offset + access_order.written, read.offset + read.bytes)
    wrong = np.flatnonzero(first < end)
    if not len(wrong):
        return ""
    k = wrong[0]
    return (
        f"by the end of step {k} of {len(access_order.written)}, "
        f"{write.tensor} is written up to byte {access_order.written[k]}, "
        f"over byte {first[k] - read.offset} of {read.tensor}, which may be read until then "
        f"({end[k] - first[k]} bytes too near)"
    )


def check_accesses(
    steps: Sequence[Access | Copy],
    arena_bytes: int,
    inputs: Sequence[Span] = (),
    outputs: Sequence[Span] = (),
    aliases: Sequence[Alias] = (),
    regions: Sequence[Region] = (),
) -> None:
    """Simulate the calls in order and prove that each reads what it should.

    Args:
        steps: the calls in order of execution.
        arena_bytes: size of the arena.
        inputs: written by the caller before the first call.
        outputs: must be intact after the last.
        aliases: tensors whose bytes are bytes of others.
        regions: what the bytes up to `arena_bytes` are where they are no one piece; whatever lies anywhere lies in one
            of them.

    Raises:
        InternalError: listing every read of bytes that are not the tensor's, every write over something the
            same call reads or writes without permission, everything outside the arena or not aligned.
    """
    arena = _Arena(arena_bytes, regions)
    labels = [f"call {number} ({step.name})" for number, step in enumerate(steps)]
    waiting: dict[str, list[Alias]] = {}
    for alias in aliases:
        arena.await_sources(alias, waiting)
    for number, span in enumerate(inputs):
        for other in inputs[:number]:
            if _meet(span, other):
                arena.problems.append(f"inputs {other.tensor} and {span.tensor} overlap")
        arena.write("inputs", span, -1)
    arena.resolve(waiting, [span.tensor for span in inputs])
    for number, (label, step) in enumerate(zip(labels, steps, strict=True)):
        if isinstance(step, Copy):
            arena.refuse_written(label, "moved bytes", step.target, step.bytes)
            if arena.inside(
                label,
                "what moves",
                min(step.target, step.source),
                step.bytes + abs(step.target - step.source),
                1,
            ):
                arena.put(step.target, arena.cut(step.source, step.bytes))
            continue
        for read in (*step.reads, *(write for write in step.writes if write.tensor in step.again)):
            arena.expect(label, read, labels)
        for write in step.writes:
            arena.refuse_written(label, write.tensor, write.offset, write.extent)
        reads, writes = _Places(step.reads), _Places(step.writes)
        for position, write in enumerate(step.writes):
            for read in (step.reads[k] for k in reads.near(write)):
                if not _meet(write, read):
                    continue
                pair = read.tensor, write.tensor
                if pair in step.overwrites and _just_over(read, write):
                    continue
                if pair in step.access_orders:
                    ruined = (_ruined(read, write, access_order) for access_order in step.access_orders[pair])
                    arena.problems += [f"{label}: {what}" for what in ruined if what]
                elif pair not in step.overwrites:
                    arena.problems.append(
                        f"{label}: writes {write.tensor} over {read.tensor} while reading it"
                    )
                else:
                    arena.problems.append(
                        f"{label}: {write.tensor} lies across {read.tensor}, not just over it"
                    )
            for other in (step.writes[k] for k in writes.near(write) if k < position):
                if _meet(write, other):
                    arena.problems.append(f"{label}: its outputs {other.tensor} and {write.tensor} overlap")
        if step.scratch is not None:
            offset, size, align = step.scratch
            arena.refuse_written(label, "scratch", offset, size)
            for span in (*step.reads, *step.writes):
                if _meet(Span("scratch", offset, size), span):
                    arena.problems.append(f"{label}: its scratch memory overlaps {span.tensor}")
            if arena.inside(label, "scratch", offset, size, align):
                arena.put(offset, arena.new(f"scratch of {label}", size, number))
        new = [write for write in step.writes if write.tensor not in step.again]
        for write in new:
            arena.write(label, write, number)
        arena.resolve(waiting, [span.tensor for span in new])
    for span in outputs:
        arena.expect("end", span, labels)
    late = [alias for alias in aliases if alias.tensor not in arena.content]
    arena.problems += [f"alias {alias.tensor}: its sources are never computed" for alias in late]
    if arena.problems:
        shown = arena.problems[:_SHOWN]
        if len(arena.problems) > _SHOWN:
            shown.append(f"and {len(arena.problems) - _SHOWN} more")
        raise InternalError("the memory plan is wrong:\n" + bullet_list(shown), "memory planner")


def check_plan(
    graph: Graph,
    plan: MemoryPlan,
    op_of: Callable[[Node], Op],
    scratch: Mapping[Node, int],
    *,
    align: int,
    scratch_align: int,
    access_order: AccessOrders | None = None,
    replaces: Callable[[Node, int], bool] | None = None,
    kept: Sequence[Span] = (),
    parts: Mapping[Node, Sequence[Part]] = NO_PARTS,
) -> None:
    """Prove that a plan computes the graph: arguments as for `plan_memory`. kept: other models' bytes, which must be
    intact after the last call. parts: of the calls that are made in parts; `access_order` and `replaces` are asked of
    the parts' nodes, too.

    Raises:
        InternalError: as `check_accesses`; or a node missing, twice, or before what it reads; or an elided
            node whose output is not made of its inputs' bytes.
    """
    _check_order(graph, plan)
    moved = [s.name for s in graph.states if plan.storage[s.value] != plan.storage[s.next]]
    if moved:
        raise InternalError(
            f"the states {', '.join(moved)} are written where nobody reads them", "memory planner"
        )

    if (plan.mark is not None) != bool(graph.states):
        raise InternalError(
            "the arena has a word for states and no states, or no word for them", "memory planner"
        )

    def span(tensor: Tensor) -> Span:
        offset, size, width = plan.offset(tensor), tensor.type.bytes, tensor.dtype.bytes
        found = plan.data_layout(tensor)
        if found is not None:
            return Span(tensor.name, offset, found.size(tensor), max(align, found.align))
        if not plan.pixel_stride(tensor):
            return Span(tensor.name, offset, size, max(align, width))
        return Span(tensor.name, offset, size, width, tensor.shape[-1] * width, plan.pixel_stride(tensor))

    steps: list[Access | Copy] = []
    of_parts: list[Alias] = []
    for node in plan.calls:
        fusion_group = plan.fusion_group(node)
        if fusion_group is not None:
            if node is fusion_group.nodes[0]:
                steps += tile_steps(plan, fusion_group, span, scratch, align, scratch_align)
                if fusion_group.tiled_input is not None:
                    # The image may be dropped at any row: until its last one the states are what they were before it.
                    states = tuple(span(state.value) for state in graph.states)
                    steps.append(Access("the end of the rows", states, ()))
            continue
        if node in parts:
            check_meaning(plan, node, parts[node], op_of(node))
            made, parted = part_accesses(
                plan, node, parts[node], op_of(node), scratch_align, align, access_order, replaces
            )
            steps += made
            of_parts += parted
            continue
        reads = tuple(dict.fromkeys(span(t) for t in node.inputs if t is not None and not t.is_constant))
        size = scratch.get(node, 0)
        variables = [(i, t) for i, t in enumerate(node.inputs) if t is not None and not t.is_constant]
        tensors = (*(t for _, t in variables), *node.outputs)
        # Of calls in another form the kernel has said nothing.
        plain = len(node.outputs) == 1 and not any(
            plan.pixel_stride(t) or plan.data_layout(t) for t in tensors
        )
        said = (
            {i for i, _ in variables if replaces(node, i)} if plain and replaces is not None else set[int]()
        )
        allowed = frozenset(
            (source.name, output.name)
            for index in said | set(op_of(node).inplace)
            if (source := node.optional_input(index)) is not None
            for output in node.outputs
            if output.type.bytes == source.type.bytes
            or (index in said and output.type.bytes < source.type.bytes)
        )
        access_orders = (
            _access_orders(node, variables, access_order) if plain and access_order is not None else {}
        )
        steps.append(
            Access(
                f"{node.op} {', '.join(t.name for t in node.outputs)}",
                reads,
                tuple(span(t) for t in node.outputs),
                (plan.scratch[node], size, scratch_align) if size else None,
                allowed,
                access_orders,
            )
        )
    given = {
        node
        for fusion_group in plan.fusion_groups
        if fusion_group.tiled_input is not None
        for node in fusion_group.tiled_input.views
    }
    for node in given:
        check_view(node, op_of(node))
    elided = set(plan.elided) - given
    aliases = [a for node in plan.order if node in elided for a in aliases_tried(node, span, op_of(node))]
    aliases += [alias for fusion_group in plan.fusion_groups for alias in tile_aliases(fusion_group)]
    aliases += of_parts
    # The caller writes them element by element; who reads them says what else they have to be.
    inputs = [replace(span(t), align=t.dtype.bytes) for t in graph.inputs if plan.line_buffer(t) is None]
    outputs = [span(t) for t in dict.fromkeys(graph.outputs)]
    # Set when a run begins, and when the next one does.
    marks = [] if plan.mark is None else [Span(MARK, plan.mark, MARK_BYTES, MARK_BYTES)]
    marks += kept
    regions = _regions(graph, plan)
    # What is only read is there when the run has ended, too.
    outputs += [s for s in inputs if any(r.constant and r.start <= s.offset < r.end for r in regions)]
    check_accesses(steps, plan.end, inputs + marks, outputs + marks, aliases, regions)


def _regions(graph: Graph, plan: MemoryPlan) -> list[Region]:
    """The arena and the caller's buffers, or both pieces of an arena; none where there is the arena alone. Raises
    InternalError for a buffer that is not one input or output alone."""
    if plan.second_from is not None:
        return [
            Region("the arena's first piece", 0, plan.second_from),
            Region("its second piece", plan.second_from, plan.arena_bytes - plan.second_from),
        ]
    if plan.buffers_from is None:
        return []
    found = [Region("the arena", 0, plan.arena_bytes)]
    given = [t for t in graph.user_inputs if plan.line_buffer(t) is None]
    for kind, tensors in (("input", given), ("output", graph.user_outputs)):
        for number, tensor in enumerate(tensors):
            block = plan.blocks[plan.storage[tensor].block]
            if not plan.is_callers(tensor) or plan.form(tensor) or plan.offset(tensor) != block.offset:
                raise InternalError(f"{kind} {tensor.name} does not fill a buffer", "memory planner")
            found.append(
                Region(f"the buffer of {kind} {number}", block.offset, tensor.type.bytes, kind == "input")
            )
    ordered = sorted(found, key=lambda region: region.start)
    if any(a.end > b.start for a, b in itertools.pairwise(ordered)) or len(found) != 1 + len(
        plan.buffer_blocks
    ):
        raise InternalError("the caller's buffers are not each apart", "memory planner")
    return found


def _access_orders(
    node: Node, variables: Sequence[tuple[int, Tensor]], access_order: AccessOrders
) -> dict[tuple[str, str], list[AccessOrder]]:
    """The kernel's access orders of its inputs, where it states one for every use."""
    said: dict[tuple[str, str], list[AccessOrder | None]] = {}
    for index, tensor in variables:
        said.setdefault((tensor.name, node.output.name), []).append(access_order(node, index))
    return {
        pair: [s for s in all_ if s is not None]
        for pair, all_ in said.items()
        if all(s is not None for s in all_)
    }


def _check_order(graph: Graph, plan: MemoryPlan) -> None:
    elided = set(plan.elided)
    if len(plan.order) != len(graph.nodes) or set(plan.order) != set(graph.nodes):
        raise InternalError("the order of execution does not hold each node once", "memory planner")
    if tuple(node for node in plan.order if node not in elided) != plan.calls:
        raise InternalError("the calls are not the nodes in order without the elided ones", "memory planner")
    known = set(graph.inputs)
    for node in plan.order:
        for tensor in node.inputs:
            if tensor is not None and not tensor.is_constant and tensor not in known:
                raise InternalError(
                    f"{node.op} runs before its input {tensor.name} is there", "memory planner"
                )
        known.update(node.outputs)
