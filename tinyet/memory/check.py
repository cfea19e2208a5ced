# SPDX-License-Identifier: Apache-2.0
"""An independent proof that a memory plan is right.

Nothing here comes from the planner but its records. The arena is simulated byte by byte: each byte knows
which byte of which tensor was last written there, and every read is compared with what it should find. That
some nodes need no call is not believed either: their operator's reference is run on random values, and the
result must be what the claimed bytes of its inputs hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tinyet.errors import InternalError, bullet_list
from tinyet.ir import Array, DType, Graph, Node, Tensor
from tinyet.memory.plan import MemoryPlan
from tinyet.opset import Op

_Ids = npt.NDArray[np.int64]

_SHOWN = 20
"""Complaints listed; one mistake can break every read after it."""


@dataclass(frozen=True)
class Span:
    """Bytes of the arena that hold a tensor; `align` is what its offset must be a multiple of."""

    tensor: str
    offset: int
    bytes: int
    align: int = 1


@dataclass(frozen=True)
class Access:
    """What one call does to the arena.

    scratch: (offset, bytes, align) of its scratch memory, or None.
    overwrites: (read tensor, written tensor) pairs that the kernel allows to have the same address.
    """

    name: str
    reads: tuple[Span, ...]
    writes: tuple[Span, ...]
    scratch: tuple[int, int, int] | None = None
    overwrites: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Piece:
    """Bytes `start` to `start + bytes` of an alias are those of `source` from `source_start` on."""

    start: int
    bytes: int
    source: str
    source_start: int


@dataclass(frozen=True)
class Alias:
    """A tensor that nothing computes: its bytes are those of others."""

    tensor: str
    pieces: tuple[Piece, ...]


@dataclass
class _Arena:
    """The simulated memory: per byte, which tensor's byte it holds and which step wrote it."""

    bytes: int
    owner: _Ids = field(init=False)
    writer: _Ids = field(init=False)
    names: list[str] = field(default_factory=list)
    content: dict[str, _Ids] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.owner = np.full(self.bytes, -1, np.int64)
        self.writer = np.full(self.bytes, -1, np.int64)

    def new(self, name: str, size: int) -> _Ids:
        """Distinct numbers for the bytes of something that is about to be written."""
        self.names.append(name)
        return (np.int64(len(self.names) - 1) << 32) + np.arange(size, dtype=np.int64)

    def inside(self, label: str, what: str, offset: int, size: int, align: int) -> bool:
        if offset % align:
            self.problems.append(f"{label}: {what} at offset {offset} is not aligned to {align} bytes")
        if offset < 0 or offset + size > self.bytes:
            self.problems.append(
                f"{label}: {what} at {offset} to {offset + size} leaves the arena of {self.bytes} bytes"
            )
            return False
        return True

    def expect(self, label: str, span: Span, steps: Sequence[str]) -> None:
        """Complain unless `span` holds exactly its tensor."""
        if not self.inside(label, span.tensor, span.offset, span.bytes, span.align):
            return
        content = self.content.get(span.tensor)
        if content is None:
            self.problems.append(f"{label}: reads {span.tensor}, which nothing has computed")
        elif len(content) != span.bytes:
            self.problems.append(
                f"{label}: reads {span.bytes} bytes of {span.tensor}, which has {len(content)}"
            )
        else:
            wrong = np.flatnonzero(self.owner[span.offset : span.offset + span.bytes] != content)
            if len(wrong):
                at = span.offset + int(wrong[0])
                self.problems.append(
                    f"{label}: reads byte {int(wrong[0])} of {span.tensor} at offset {at}, which holds "
                    f"{self.holds(at, steps)} ({len(wrong)} wrong of {span.bytes} bytes)"
                )

    def holds(self, at: int, steps: Sequence[str]) -> str:
        owner = int(self.owner[at])
        if owner < 0:
            return "nothing"
        by = steps[int(self.writer[at])] if self.writer[at] >= 0 else "the caller"
        return f"byte {owner & 0xFFFFFFFF} of {self.names[owner >> 32]}, written by {by}"

    def write(self, label: str, span: Span, step: int) -> None:
        if span.tensor in self.content:
            self.problems.append(f"{label}: writes {span.tensor} a second time")
        self.content[span.tensor] = self.new(span.tensor, span.bytes)
        if self.inside(label, span.tensor, span.offset, span.bytes, span.align):
            self.owner[span.offset : span.offset + span.bytes] = self.content[span.tensor]
            self.writer[span.offset : span.offset + span.bytes] = step

    def resolve(self, waiting: list[Alias]) -> None:
        """Give aliases their content as soon as all their sources have theirs."""
        for alias in list(waiting):
            if any(piece.source not in self.content for piece in alias.pieces):
                continue
            waiting.remove(alias)
            content = np.full(sum(piece.bytes for piece in alias.pieces), -2, np.int64)
            for p in alias.pieces:
                source = self.content[p.source][p.source_start : p.source_start + p.bytes]
                if len(source) != p.bytes or p.start + p.bytes > len(content):
                    self.problems.append(f"alias {alias.tensor}: its bytes are not all bytes of {p.source}")
                    continue
                content[p.start : p.start + p.bytes] = source
            self.content[alias.tensor] = content


def _meet(a_offset: int, a_bytes: int, b_offset: int, b_bytes: int) -> bool:
    return max(a_offset, b_offset) < min(a_offset + a_bytes, b_offset + b_bytes)


def check_accesses(
    steps: Sequence[Access],
    arena_bytes: int,
    inputs: Sequence[Span] = (),
    outputs: Sequence[Span] = (),
    aliases: Sequence[Alias] = (),
) -> None:
    """Simulate the calls in order and prove that each reads what it should.

    Args:
        steps: the calls in order of execution.
        arena_bytes: size of the arena.
        inputs: written by the caller before the first call.
        outputs: must be intact after the last.
        aliases: tensors whose bytes are bytes of others.

    Raises:
        InternalError: listing every read of bytes that are not the tensor's, every write over something the
            same call reads or writes without permission, everything outside the arena or not aligned.
    """
    arena = _Arena(arena_bytes)
    labels = [f"call {number} ({step.name})" for number, step in enumerate(steps)]
    waiting = list(aliases)
    for number, span in enumerate(inputs):
        for other in inputs[:number]:
            if _meet(span.offset, span.bytes, other.offset, other.bytes):
                arena.problems.append(f"inputs {other.tensor} and {span.tensor} overlap")
        arena.write("inputs", span, -1)
    arena.resolve(waiting)
    for number, (label, step) in enumerate(zip(labels, steps, strict=True)):
        for read in step.reads:
            arena.expect(label, read, labels)
        for position, write in enumerate(step.writes):
            for read in step.reads:
                if not _meet(write.offset, write.bytes, read.offset, read.bytes):
                    continue
                if (read.tensor, write.tensor) not in step.overwrites:
                    arena.problems.append(
                        f"{label}: writes {write.tensor} over {read.tensor} while reading it"
                    )
                elif (read.offset, read.bytes) != (write.offset, write.bytes):
                    arena.problems.append(
                        f"{label}: {write.tensor} lies across {read.tensor}, not just over it"
                    )
            for other in step.writes[:position]:
                if _meet(write.offset, write.bytes, other.offset, other.bytes):
                    arena.problems.append(f"{label}: its outputs {other.tensor} and {write.tensor} overlap")
        if step.scratch is not None:
            offset, size, align = step.scratch
            for span in (*step.reads, *step.writes):
                if _meet(offset, size, span.offset, span.bytes):
                    arena.problems.append(f"{label}: its scratch memory overlaps {span.tensor}")
            if arena.inside(label, "scratch", offset, size, align):
                arena.owner[offset : offset + size] = arena.new(f"scratch of {label}", size)
                arena.writer[offset : offset + size] = number
        for write in step.writes:
            arena.write(label, write, number)
        arena.resolve(waiting)
    for span in outputs:
        arena.expect("end", span, labels)
    arena.problems += [f"alias {alias.tensor}: its sources are never computed" for alias in waiting]
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
) -> None:
    """Prove that a plan computes the graph: arguments as for `plan_memory`.

    Raises:
        InternalError: as `check_accesses`; or a node missing, twice, or before what it reads; or an elided
            node whose output is not made of its inputs' bytes.
    """
    _check_order(graph, plan)

    def span(tensor: Tensor) -> Span:
        return Span(tensor.name, plan.offset(tensor), tensor.type.bytes, max(align, tensor.dtype.bytes))

    steps = []
    for node in plan.calls:
        reads = tuple(dict.fromkeys(span(t) for t in node.inputs if t is not None and not t.is_constant))
        size = scratch.get(node, 0)
        allowed = frozenset(
            (source.name, output.name)
            for index in op_of(node).inplace
            if (source := node.optional_input(index)) is not None
            for output in node.outputs
            if output.type.bytes == source.type.bytes
        )
        steps.append(
            Access(
                f"{node.op} {', '.join(t.name for t in node.outputs)}",
                reads,
                tuple(span(t) for t in node.outputs),
                (plan.scratch[node], size, scratch_align) if size else None,
                allowed,
            )
        )
    elided = set(plan.elided)
    aliases = [a for node in plan.order if node in elided for a in _aliases(node, plan, op_of(node))]
    inputs = [span(t) for t in graph.inputs]
    outputs = [span(t) for t in dict.fromkeys(graph.outputs)]
    check_accesses(steps, plan.arena_bytes, inputs, outputs, aliases)


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


def _aliases(node: Node, plan: MemoryPlan, op: Op) -> list[Alias]:
    """What the plan says an elided node's outputs consist of, tried out on the node's reference."""
    sources = [t for t in dict.fromkeys(node.inputs) if t is not None and not t.is_constant]
    result = []
    for output in node.outputs:
        pieces: list[Piece] = []
        start = plan.offset(output)
        at, end = start, start + output.type.bytes
        while at < end:
            here = next((t for t in sources if plan.offset(t) <= at < plan.offset(t) + t.type.bytes), None)
            if here is None:
                raise InternalError(
                    f"{node.op} has no call, but byte {at - start} of {output.name} is in none of its inputs",
                    node.where,
                )
            stop = min(end, plan.offset(here) + here.type.bytes)
            pieces.append(Piece(at - start, stop - at, here.name, at - plan.offset(here)))
            at = stop
        result.append(Alias(output.name, tuple(pieces)))
    random = np.random.default_rng(len(sources))
    values = {t: _random(t, random) for t in sources}
    arrays = [None if t is None else t.data if t.data is not None else values[t] for t in node.inputs]
    raw = {t.name: values[t].tobytes() for t in sources}
    for alias, array in zip(result, op.reference(node, arrays), strict=True):
        claimed = b"".join(raw[p.source][p.source_start : p.source_start + p.bytes] for p in alias.pieces)
        if claimed != np.ascontiguousarray(array).tobytes():
            raise InternalError(
                f"{node.op} has no call, but {alias.tensor} is not what lies there", node.where
            )
    return result


def _random(tensor: Tensor, random: np.random.Generator) -> Array:
    if tensor.dtype is DType.FLOAT32:
        return random.standard_normal(tensor.shape, np.float32)
    low, high = tensor.dtype.range
    return random.integers(low, high, tensor.shape, tensor.dtype.numpy, endpoint=True)
