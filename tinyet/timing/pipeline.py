# SPDX-License-Identifier: Apache-2.0
"""A model of a core that executes in order: when each instruction of a block is issued, by operands and units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tinyet.timing.instruction import BRANCHES, Instruction, Kind

_LONG_AGO = -100


@dataclass(frozen=True)
class Timing:
    """How instructions of a kind go through a pipeline. Stages are counted from the issue, which is 0.

    stages: those in which it may compute, ascending; it takes the first in which its operands are there. result:
    cycles from that stage until another may read what it computes. address, shifted, late: the stages in which it
    reads these of its registers: the first as such, the others relative to the one in which it computes. Its other
    operands are read where it computes. units: which it needs, each for `busy` cycles. words: how many registers it
    moves in a cycle, for which nothing else is issued; 0: it holds up nothing. hold: cycles for which nothing else is
    issued, for one that moves no words. first: nothing is issued before it in its cycle. alone: nothing beside it.
    free: it takes no place in a cycle.
    """

    stages: tuple[int, ...] = (0,)
    result: int = 1
    address: int = 0
    shifted: int = 0
    late: int = 0
    units: tuple[str, ...] = ()
    busy: int = 1
    words: int = 0
    hold: int = 1
    first: bool = False
    alone: bool = False
    free: bool = False


USUAL = Timing()
"""Of kinds that a core says nothing of."""

Pair = Callable[[Instruction, Instruction], bool]
"""Whether the second of two instructions may be issued beside the first, as far as units and operands allow it."""


@dataclass(frozen=True)
class Pipeline:
    """A core that issues in order.

    title, source, assumed: as a model has them. timings: of each kind; of one that is not there, `Timing()`. width:
    how many are issued in a cycle at most. pair: which go together. delays: (kind that computes, kind that reads) →
    how many cycles later an operand is there, but for those that are read in a stage of their own. distances: kind →
    how many cycles at least it is issued behind others, by their kinds. taken: cycles that pass when control goes
    elsewhere. missed: those that pass when a conditional branch goes where it seldom goes.
    """

    title: str
    source: str
    assumed: tuple[str, ...]
    timings: Mapping[Kind, Timing]
    width: int
    pair: Pair
    delays: Mapping[tuple[Kind, Kind], int] = field(default_factory=dict)
    distances: Mapping[Kind, Mapping[Kind, int]] = field(default_factory=dict)
    taken: Mapping[Kind, int] = field(default_factory=dict)
    missed: int = 0

    def straight(self, block: Sequence[Instruction], before: Sequence[Instruction] = ()) -> int:
        """Cycles from the end of what ran before until the next block may be issued."""
        board = Scoreboard(self)
        for instruction in before:
            board.issue(instruction)
        began = board.close()
        for instruction in block:
            board.issue(instruction)
        return board.close() - began

    def refill(self, last: Instruction) -> int:
        """Cycles more when control goes elsewhere behind an instruction."""
        return self.taken.get(last.kind, 0)

    def mispredicted(self, last: Instruction) -> int:
        """Cycles more when a conditional branch goes where it seldom goes."""
        predicted = last.conditional and last.kind in ("branch", "compare_branch")
        return self.missed if predicted else 0


class Scoreboard:
    """When registers are there and units free, while instructions are issued one behind the other."""

    def __init__(self, core: Pipeline) -> None:
        self._core = core
        self._now = 0
        self._group: list[Instruction] = []
        self._ready: dict[int, tuple[int, Kind]] = {}
        self._free: dict[str, int] = {}
        self._issued: dict[Kind, int] = {}

    def issue(self, what: Instruction) -> None:
        """Issue an instruction as early as it may be."""
        timing = self._core.timings.get(what.kind, USUAL)
        if timing.free:
            return
        cycle, stage = self._earliest(what, timing)
        if cycle > self._now:
            self._next(cycle)
        self._group.append(what)
        at = self._now + stage
        hold = -(-what.registers // timing.words) if timing.words else timing.hold
        # The last of several registers is there last; each is as late as that one.
        for register in what.results:
            self._ready[register] = (at + timing.result + hold - 1, what.kind)
        for register in what.updated:
            self._ready[register] = (self._now + timing.address + 1, what.kind)
        for unit in timing.units:
            self._free[unit] = self._now + max(timing.busy, hold)
        self._issued[what.kind] = self._now
        if hold > 1:
            self._next(self._now + hold)
        elif timing.alone or what.kind in BRANCHES or len(self._group) == self._core.width:
            self._next(self._now + 1)

    def earliest(self, what: Instruction) -> int:
        """The cycle in which an instruction would be issued next; this one, where it takes no place."""
        timing = self._core.timings.get(what.kind, USUAL)
        return self._now if timing.free else self._earliest(what, timing)[0]

    def close(self) -> int:
        """End the cycle that has begun; the one that follows."""
        if self._group:
            self._next(self._now + 1)
        return self._now

    def _next(self, cycle: int) -> None:
        self._now = cycle
        self._group = []

    def _earliest(self, what: Instruction, timing: Timing) -> tuple[int, int]:
        """(cycle, stage): where an instruction may be issued, and the first stage in which it finds its operands then.
        Everything that it waits for says a cycle from which on it need not, so the last of them does."""
        kind, ready = what.kind, self._ready
        cycle = self._now if not self._group or self._beside(what, timing) else self._now + 1
        for unit in timing.units:
            cycle = max(cycle, self._free.get(unit, 0))
        if kind in self._core.distances:
            for earlier, distance in self._core.distances[kind].items():
                cycle = max(cycle, self._issued.get(earlier, -distance) + distance)
        for register in what.address:
            if register in ready:
                cycle = max(cycle, ready[register][0] - timing.address)
        # The cycle in which it may compute at the earliest.
        soonest = _LONG_AGO
        for register in what.operands:
            if register in ready:
                there, computer = ready[register]
                soonest = max(soonest, there + self._core.delays.get((computer, kind), 0))
        for register in what.shifted:
            if register in ready:
                soonest = max(soonest, ready[register][0] - timing.shifted)
        for register in what.late:
            if register in ready:
                soonest = max(soonest, ready[register][0] - timing.late)
        cycle = max(cycle, soonest - timing.stages[-1])
        return cycle, next(stage for stage in timing.stages if soonest <= cycle + stage)

    def _beside(self, what: Instruction, timing: Timing) -> bool:
        """Whether it may be issued in the cycle that has begun, as far as the kinds say."""
        if timing.first or timing.alone:
            return False
        pair = self._core.pair
        return all(pair(one, what) for one in self._group)
