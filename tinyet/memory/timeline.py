# SPDX-License-Identifier: Apache-2.0
"""Which bytes of a block are alive while a call works through its inputs and its output, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.errors import InternalError
from tinyet.ir import Node, Tensor
from tinyet.memory.aliases import AliasSets, Piece
from tinyet.memory.live_ranges import LiveRange, live_range
from tinyet.memory.liveness import Saving
from tinyet.memory.offsets import Buffer
from tinyet.opset.access_order import AccessOrder, AccessOrders, Bytes

Replaces = Callable[[Node, int], bool]
"""Whether a node's kernel can write its output exactly where it reads an input, by the input's number; where the output
is smaller, from the input's first byte on."""


def no_access_order(_node: Node, _index: int) -> AccessOrder | None:
    """Of kernels that read and write in any order."""
    return None


def no_replacing(_node: Node, _index: int) -> bool:
    """For kernels that replace only the inputs that the operator lets all of its kernels replace."""
    return False


@dataclass(frozen=True, eq=False)
class Inner:
    """A buffer of a call's own: at step k its bytes from `low[k]` up to `high[k]` are in use."""

    name: str
    low: Bytes
    high: Bytes
    bytes: int
    align: int


@dataclass(frozen=True, eq=False)
class AccessSchedule:
    """A call's work in steps that are common to its inputs: when step k ends nothing is written from byte
    `written[t][k]` of output t on, and from step k on nothing is read before byte `needed[t][k]` of input t.

    variables: the inputs that stand in the arena, each once. needed: of inputs that the kernel's access order covers;
    and of outputs that only it reads again. inner: the call's working buffers, beside its scratch memory.
    """

    variables: tuple[Tensor, ...]
    written: Mapping[Tensor, Bytes]
    needed: Mapping[Tensor, Bytes]
    inner: tuple[Inner, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.written.values())))

    @property
    def inner_bytes(self) -> int:
        """The most that is in use of the inner buffers at one step."""
        return int(sum((b.high - b.low for b in self.inner), np.zeros(len(self), np.int64)).max())

    def saved(self, source: Tensor) -> int:
        """Saved bytes where the only output and an input of `needed` lie partly over each other, the input the last
        to die."""
        ((output, written),) = self.written.items()
        return max(int((self.needed[source] - written).min()) + output.type.bytes, 0)


def access_schedule(node: Node, access_order: AccessOrders) -> AccessSchedule | None:
    """The steps of a node's call; None if its kernel promises nothing.

    Raises InternalError if an access order does not end with the whole output, or reads bytes that the input does not
    have.
    """
    if len(node.outputs) != 1:
        return None
    found: dict[Tensor, list[AccessOrder]] = {}
    silent: set[Tensor] = set()
    for index, tensor in enumerate(node.inputs):
        if tensor is None or tensor.is_constant:
            continue
        said = access_order(node, index)
        if said is None:
            silent.add(tensor)
            continue
        if said.written[-1] != node.output.type.bytes or said.needed[-1] > tensor.type.bytes:
            raise InternalError(
                f"the access order of {node.op} through {tensor.name} does not fit its tensors", node.where
            )
        found.setdefault(tensor, []).append(said)
    ordered = {tensor: all_ for tensor, all_ in found.items() if tensor not in silent}
    if not ordered:
        return None
    # The byte before `written` is written in the first step that goes as far.
    written = np.unique(np.concatenate([s.written for each in ordered.values() for s in each]))
    needed = {
        tensor: np.minimum.reduce([s.needed[np.searchsorted(s.written, written)] for s in each])
        for tensor, each in ordered.items()
    }
    # When the call begins all inputs are there as a whole, and nothing is written: scratch memory lies over neither.
    begun = {tensor: np.concatenate([[0], each]) for tensor, each in needed.items()}
    variables = tuple(dict.fromkeys((*found, *silent)))
    return AccessSchedule(variables, {node.output: np.concatenate([[0], written])}, begun)


class Timeline:
    """The calls of an order of execution, in moments: each has as many as its access schedule has steps.

    -1 is the moment before the first call, as `Lifetime` has it.
    """

    def __init__(self, calls: Sequence[Node], access_schedules: Mapping[Node, AccessSchedule]) -> None:
        self.calls = calls
        self.access_schedules = access_schedules
        counts = [1, *(len(access_schedules[node]) if node in access_schedules else 1 for node in calls), 1]
        self._start = np.concatenate([[0], np.cumsum(counts)])

    @property
    def boundaries(self) -> Bytes:
        """The first moment of each call, from that before the first call on, and the one behind all."""
        return self._start

    def saving(
        self,
        aliases: AliasSets,
        position: int,
        used: Mapping[Tensor, int],
        outside: Callable[[AliasSets, Tensor], bool] = lambda _aliases, _root: False,
    ) -> Saving | None:
        """Of a call: how many bytes fewer are alive at its worst step than all that its blocks have. None where it is
        no less. used: the call at which each tensor is last used. outside: whether a block is not in the arena."""
        found = self.access_schedules.get(self.calls[position])
        if found is None or all(used[tensor] > position for tensor in found.needed):
            return None
        every = dict.fromkeys(aliases.root(t) for t in (*found.written, *found.variables))
        roots = [root for root in every if not outside(aliases, root)]
        if not roots:
            return None
        alive = np.zeros(len(found), np.int64)
        for root in roots:
            low, high = _Pieces(aliases, root).living(aliases, position, found)
            alive += np.maximum(high - low, 0)
        align = min(aliases.strictest(root) for root in roots)
        # Distances are multiples of the alignment.
        saved = (sum(aliases.size(root) for root in roots) - int(alive.max())) & -align
        return Saving(position, saved, align) if saved > 0 else None

    def live_ranges(self, aliases: AliasSets, buffers: Sequence[Buffer]) -> list[LiveRange]:
        """Of a layout's blocks, in its order, and of the buffers behind these, which are alive as a whole."""
        found = [self.extent(aliases, root) for root in aliases.roots()]
        for each in buffers[len(found) :]:
            at = np.array([self._start[each.first + 1], self._start[each.last + 2]])
            low, high = np.zeros(1, np.int64), np.array([each.bytes])
            found.append(LiveRange(each.name, at, low, high, each.bytes, each.align))
        return found

    def extent(self, aliases: AliasSets, root: Tensor) -> LiveRange:
        """Of a block whose tensors' moments are known."""
        pieces = _Pieces(aliases, root)
        written, used = {p.written for p in pieces.pieces}, {p.used for p in pieces.pieces}
        changes = written | used
        ordered = {p for p in changes if 0 <= p < len(self.calls) and self.calls[p] in self.access_schedules}
        stops = sorted({*written, *(p + 1 for p in used), *ordered, *(p + 1 for p in ordered)})
        found: list[tuple[Bytes, Bytes, Bytes]] = []
        for position in stops[:-1]:
            if position in ordered:
                low, high = pieces.living(aliases, position, self.access_schedules[self.calls[position]])
            else:
                low, high = pieces.hull(position)
            found.append((self._start[position + 1] + np.arange(len(low)), low, high))
        at, low, high = (np.concatenate(each) for each in zip(*found, strict=True))
        at = np.append(at, self._start[stops[-1] + 1])
        return live_range(root.name, at, low, high, aliases.size(root), aliases.strictest(root))


def expected_overlaps(
    aliases: AliasSets,
    number: Mapping[Tensor, int],
    access_schedule: AccessSchedule | None,
    hold: Callable[[AliasSets, Tensor], bool],
    align: int,
) -> tuple[tuple[int, int, int], ...]:
    """Overlaps to count on, of tensors alone in their blocks, the pair that saves the most bytes first. number: of
    blocks. hold: whether a tensor's block is none of the arena."""
    if access_schedule is None or len(access_schedule.written) != 1:
        return ()
    (output,) = access_schedule.written
    if aliases.size(output) != output.type.bytes or hold(aliases, output):
        return ()
    return tuple(
        (number[aliases.root(source)], number[aliases.root(output)], saved)
        for source in sorted(access_schedule.needed, key=lambda t: -access_schedule.saved(t))
        if aliases.size(source) == source.type.bytes
        and not hold(aliases, source)
        and (saved := access_schedule.saved(source) & -align) > 0
    )


def overlapping(
    aliases: AliasSets, timeline: Timeline, offsets: Mapping[str, int]
) -> dict[Node, tuple[int, ...]]:
    """The inputs, by number, that the output lies partly over, of calls where it does. offsets: of blocks by name."""
    found = {}

    def place(tensor: Tensor) -> tuple[int, int]:
        at = offsets[aliases.root(tensor).name]
        start, end = aliases.extent(tensor)
        return at + start, at + end

    for node, known in timeline.access_schedules.items():
        output = next(iter(known.written))
        if len(known.written) > 1 or known.inner:
            continue  # a fusion group, whose layers each write rows
        low, high = place(output)
        places = {t: place(t) for t in known.needed if aliases.root(t) is not aliases.root(output)}
        over = [node.inputs.index(t) for t, (start, end) in places.items() if start < high and low < end]
        if over:
            found[node] = tuple(sorted(over))
    return found


_FAR = 1 << 62


class _Pieces:
    """The pieces of a block that something is ever written to. There are few: loops are faster than arrays."""

    def __init__(self, aliases: AliasSets, root: Tensor) -> None:
        self.root = root
        self.pieces = aliases.states(root)

    def hull(self, position: int) -> tuple[Bytes, Bytes]:
        """From the first byte that is alive at a call's position to the last, (1,) each."""
        alive = [piece for piece in self.pieces if piece.written <= position <= piece.used]
        low = min((piece.start for piece in alive), default=_FAR)
        return np.array([low]), np.array([max((piece.end for piece in alive), default=0)])

    def living(
        self, aliases: AliasSets, position: int, access_schedule: AccessSchedule
    ) -> tuple[Bytes, Bytes]:
        """From the first living byte to the last at each step of a call that has an access schedule."""
        count = len(access_schedule)
        lowest, highest = _FAR, 0
        changing: list[Piece] = []
        for piece in self.pieces:
            if not piece.written <= position <= piece.used:
                continue
            if position in (piece.written, piece.used):
                changing.append(piece)
            else:
                lowest, highest = min(lowest, piece.start), max(highest, piece.end)
        low, high = np.full(count, lowest), np.full(count, highest)
        if not changing:
            return low, high
        outputs = [
            (*aliases.extent(t), written, access_schedule.needed.get(t, 0))
            for t, written in access_schedule.written.items()
            if aliases.root(t) is self.root
        ]
        reads = [
            (*aliases.extent(t), access_schedule.needed.get(t))
            for t in access_schedule.variables
            if aliases.root(t) is self.root
        ]
        for piece in changing:
            start, end = piece.start, piece.end
            first: Bytes | int = start
            last: Bytes | int = end
            writes = [(at + w, at + n) for at, to, w, n in outputs if at < end and start < to]
            if piece.written == position:
                last = np.minimum(end, _most([w for w, _ in writes]))
                if piece.used == position:
                    first = np.maximum(start, _least([n for _, n in writes]))
            elif not writes:
                needed = [None if n is None else at + n for at, to, n in reads if at < end and start < to]
                known = [n for n in needed if n is not None]
                if needed and len(known) == len(needed):
                    first = np.maximum(start, _least(known))
            there = first < last
            low = np.where(there, np.minimum(low, first), low)
            high = np.where(there, np.maximum(high, last), high)
        return low, high


def _most(values: Sequence[Bytes]) -> Bytes:
    return values[0] if len(values) == 1 else np.maximum.reduce(values)


def _least(values: Sequence[Bytes | int]) -> Bytes | int:
    return values[0] if len(values) == 1 else np.minimum.reduce(np.broadcast_arrays(*values))
