# SPDX-License-Identifier: Apache-2.0
"""From how often each block of code ran to an estimate of cycles."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tinyet.boards import Flash
from tinyet.cycles.code import Code
from tinyet.cycles.profile import Accesses, Block, Run, Segment
from tinyet.timing.instruction import BRANCHES, Instruction
from tinyet.timing.model import Model
from tinyet.timing.work import Work, counted, total

# Layers of the harness's run that measures what telling them apart costs.
EMPTY_LAYERS = 8
# Rounds after which a loop's next one takes as long as all that follow.
_ROUNDS = 4


@dataclass(frozen=True)
class CycleEstimate:
    """An estimate of an inference's cycles, a mean over the samples.

    model: the core's name, source: where its cycles are from. assumed: a sentence for each thing that no table says.
    machine: the board that was emulated, which has the same core or one that runs the same instructions. clock_hz: of
    the board, what `milliseconds` is computed with. layers: in the order of the calls; between: what belongs to none
    of them. ends: cycles of the whole, should all that the source leaves open be at its least and at its most; None
    where it leaves nothing open. The cost of telling layers apart is in none of the figures. accesses: of data, that
    the layers made of each memory of the emulated board, by its name, as QEMU counted them; empty where nobody asked.
    """

    model: str
    source: str
    assumed: tuple[str, ...]
    machine: str
    clock_hz: int
    layers: tuple[Work, ...]
    between: Work
    ends: tuple[int, int] | None = None
    accesses: Mapping[str, Accesses] = field(default_factory=dict)

    @property
    def whole(self) -> Work:
        """The layers and what lies between them."""
        return total((*self.layers, self.between))

    @property
    def cycles(self) -> int:
        """Estimated cycles of an inference."""
        return self.whole.cycles

    @property
    def milliseconds(self) -> float:
        """Estimated time of an inference."""
        return self.milliseconds_of(self.cycles)

    def milliseconds_of(self, cycles: int) -> float:
        """Of a number of cycles at the board's clock."""
        return 1e3 * cycles / self.clock_hz

    def to_json(self) -> dict[str, object]:
        """The part of `--json` that concerns no layer (docs/json.md)."""
        return {
            "model": self.model,
            "source": self.source,
            "assumed": list(self.assumed),
            "machine": self.machine,
            "clock_hz": self.clock_hz,
            "milliseconds": self.milliseconds,
            "cycles_at_least": None if self.ends is None else self.ends[0],
            "cycles_at_most": None if self.ends is None else self.ends[1],
            **dataclasses.asdict(self.whole),
            "between": dataclasses.asdict(self.between),
            "accesses": {name: dataclasses.asdict(each) for name, each in self.accesses.items()},
        }


@dataclass(frozen=True, eq=False)
class _Decoded:
    """A block's code: its instructions, their work without cycles, and where the code behind it begins."""

    instructions: list[Instruction]
    once: Work
    end: int


class Estimator:
    """Turns runs into work, for one firmware on one core."""

    def __init__(self, model: Model, code: Code, flash: Flash | None) -> None:
        self._model = model
        self._code = code
        self._flash = flash
        self._blocks: dict[tuple[int, int], _Decoded] = {}
        self._cycles: dict[tuple[tuple[int, int], tuple[int, int] | None], int] = {}

    def mean(
        self, empty: tuple[Run, Run], runs: Iterable[Run], order: Sequence[int] | None = None
    ) -> tuple[tuple[Work, ...], Work]:
        """(the work of each layer, what lies between them), means over runs of one model, at least one.

        empty: a run without layers, and one with EMPTY_LAYERS layers without work: what they take is taken off.
        order: the layer of each run of a layer, where some run several times; None where each runs once.
        """
        nothing, marked = (self._parts(run) for run in empty)
        empty_layer = marked[0][-1]
        a_layer = (total((*marked[0], marked[1])) - nothing[1]).times(1 / EMPTY_LAYERS)
        sums: list[Work] = []
        whole, count = Work(), 0
        for run in runs:
            count += 1
            layers, between = self._parts(run)
            numbers = range(len(layers)) if order is None else order
            net = [Work()] * (max(numbers, default=-1) + 1)
            for number, layer in zip(numbers, layers, strict=True):
                net[number] += layer - empty_layer
            sums = [a + b for a, b in zip(sums, net, strict=True)] if sums else net
            whole += total((*layers, between)) - nothing[1] - a_layer.times(len(layers))
        mean = tuple(layer.times(1 / count).at_least_zero() for layer in sums)
        return mean, (whole.times(1 / count) - total(mean)).at_least_zero()

    def _parts(self, run: Run) -> tuple[list[Work], Work]:
        """(the work of each layer, what lies between them) of one run, the cost of telling them apart included."""
        return [self._work(layer) for layer in run.layers], self._work(run.between)

    def _work(self, segment: Segment) -> Work:
        gone_on: dict[tuple[int, int], int] = {}
        for block in segment.blocks:
            for before, count in block.behind.items():
                if block.start == self._block(before).end:
                    gone_on[before] = gone_on.get(before, 0) + count
        work, code_bytes = Work(), 0
        for block in segment.blocks:
            at = block.start, block.instructions
            decoded = self._block(at)
            last = decoded.instructions[-1]
            taken = 0
            if last.kind in BRANCHES:
                taken = block.count - gone_on.get(at, 0) if last.conditional else block.count
            seldom = min(taken, block.count - taken)
            cycles = self._straight(block) + taken * self._model.refill(last)
            cycles += seldom * self._model.mispredicted(last)
            work += decoded.once.times(block.count) + Work(cycles, taken_branches=taken)
            code_bytes += block.count * (decoded.end - block.start)
        waits = self._waits(segment, work.cycles / max(1, code_bytes))
        return work + Work(cycles=waits, wait_cycles=waits)

    def _straight(self, block: Block) -> int:
        """Cycles of all times that a block ran, its branch never taken."""
        at = block.start, block.instructions
        behind = sum(count * self._straight_behind(at, before) for before, count in block.behind.items())
        return behind + (block.count - sum(block.behind.values())) * self._straight_behind(at, None)

    def _straight_behind(self, at: tuple[int, int], before: tuple[int, int] | None) -> int:
        known = self._cycles.get((at, before))
        if known is None:
            earlier: list[Instruction] = []
            if before is not None:
                earlier = self._block(before).instructions * (_ROUNDS if at == before else 1)
            known = self._cycles[at, before] = self._model.straight(self._block(at).instructions, earlier)
        return known

    def _block(self, at: tuple[int, int]) -> _Decoded:
        known = self._blocks.get(at)
        if known is None:
            start, count = at
            block = self._code.block(start, count)
            end = start + sum(instruction.size for instruction in block)
            known = self._blocks[at] = _Decoded(block, counted(block), end)
        return known

    def _waits(self, segment: Segment, cycles_per_byte: float) -> int:
        """Cycles that the flash adds."""
        if self._flash is None:
            return 0
        jumps = segment.code_reads - segment.next_reads
        return round(self._flash.waits(jumps + segment.data_reads, segment.next_reads, cycles_per_byte))
