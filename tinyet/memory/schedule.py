# SPDX-License-Identifier: Apache-2.0
"""The order of execution that needs the least memory at its worst step.

The live bytes between two steps depend on the set of steps already executed, not on their order. So the
best order is a path through the sets that are closed under "needs", from the empty set to the full one,
whose largest cost is smallest: Dijkstra's algorithm with the maximum in place of the sum. Networks are long and
narrow, which keeps the number of such sets small. Otherwise the search stops after a fixed amount of work and a beam
search answers, and the given order remains if nothing better was found.
"""

from __future__ import annotations

import functools
import heapq
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

from tinyet.errors import InternalError

DEFAULT_BUDGET = 100_000
"""Step limit of the exact search: about half a second of Python."""
_REMEMBERED = 64
"""Orders that are kept, those asked for last: of some tens of kilobytes each, with what was asked."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call to order. Blocks of memory are numbers, indices into the sizes given to `schedule`.

    after:      indices of the steps whose results it needs.
    reads:      blocks that it reads.
    writes:     blocks that it writes; several steps may write parts of one block (an alias group).
    scratch:    bytes that it needs for itself while it runs.
    overwrites: pairs (read block, written block): permission to put the second where the first is, if the
                first is not needed any more and both have the same size.
    overlaps:   (read block, written block, bytes): both together need so many bytes less than each for itself, if the
                first is not needed any more.
    """

    after: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    scratch: int = 0
    overwrites: tuple[tuple[int, int], ...] = ()
    overlaps: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Schedule:
    """An order of execution.

    order:      indices of steps.
    peak:       largest number of bytes alive at one moment.
    given_peak: the same for the order in which the steps were given.
    optimal:    no order has a smaller peak.
    looks:      how often the search has looked at a step.
    """

    order: tuple[int, ...]
    peak: int
    given_peak: int
    optimal: bool
    looks: int = field(default=0, compare=False)


def schedule(
    steps: Sequence[Step],
    sizes: Sequence[int],
    *,
    inputs: frozenset[int] = frozenset(),
    outputs: frozenset[int] = frozenset(),
    budget: int = DEFAULT_BUDGET,
) -> Schedule:
    """Order `steps` (given in an order that is possible) so that little memory is alive at once.

    Args:
        sizes: bytes of each block. A block is alive from its first writer to the last step that touches it.
        inputs: blocks that are alive from before the first step. All are alive together at that moment.
        outputs: blocks that stay alive after the last step.
        budget: how often the exact search may look at a step; with 0 the given order stays.

    The given order is returned when no better one is found; among better ones, the first in the order of
    step numbers that has the smallest peak, as far as the budget reaches.

    Raises:
        InternalError: a step needs one that does not come before it.
    """
    for number, step in enumerate(steps):
        if any(not 0 <= needed < number for needed in step.after):
            raise InternalError(
                f"step {number} needs step {max(step.after)}, which is not before it", "scheduler"
            )
    graph = _Graph(steps, sizes, inputs, outputs)
    given = tuple(range(len(steps)))
    given_peak = graph.peak(given)
    if given_peak <= graph.lower_bound():
        return Schedule(given, given_peak, given_peak, True)
    if budget == 0:
        return Schedule(given, given_peak, given_peak, False)
    path = _search(graph, given_peak, budget)
    optimal = path is not None
    if path is None:
        path = _beam(graph, budget)
    peak = graph.peak(path) if path else given_peak
    if peak >= given_peak:
        return Schedule(given, given_peak, given_peak, optimal, graph.runs)
    first = _first_in_order(graph, peak, budget) if optimal else None
    return Schedule(first or path, peak, given_peak, optimal, graph.runs)


@functools.lru_cache(maxsize=_REMEMBERED)
def scheduled(
    steps: tuple[Step, ...],
    sizes: tuple[int, ...],
    inputs: frozenset[int],
    outputs: frozenset[int],
    budget: int,
) -> Schedule:
    """`schedule`, with hashable arguments. A plan asks for the same order wherever calls do not work in place, and so
    do plans for other kernels."""
    return schedule(steps, sizes, inputs=inputs, outputs=outputs, budget=budget)


class _Graph:
    """Bit masks of steps, and the cost of a step after a set of steps."""

    def __init__(
        self, steps: Sequence[Step], sizes: Sequence[int], inputs: frozenset[int], outputs: frozenset[int]
    ) -> None:
        self.steps = steps
        self.sizes = sizes
        self.outputs = outputs
        self.runs = 0  # number of visits of steps: the measure of work
        self.full = (1 << len(steps)) - 1
        self.needs = [sum(1 << needed for needed in set(step.after)) for step in steps]
        self.enables: list[list[int]] = [[] for _ in steps]
        for number, step in enumerate(steps):
            for needed in set(step.after):
                self.enables[needed].append(number)
        self.touched = [tuple(dict.fromkeys((*step.reads, *step.writes))) for step in steps]
        self.touching = [0] * len(sizes)
        # An input is written by something that is part of every set.
        always = 1 << len(steps)
        self.writing = [always if block in inputs else 0 for block in range(len(sizes))]
        self.entry = sum(sizes[block] for block in inputs)
        self.always = always
        for number, step in enumerate(steps):
            for block in self.touched[number]:
                self.touching[block] |= 1 << number
            for block in step.writes:
                self.writing[block] |= 1 << number
        self.start = sum(sizes[block] for block in range(len(sizes)) if self.alive(block, 0))
        # Tensors wholly over another come first, because they save the most.
        self.shared = [
            (*((r, w, sizes[w]) for r, w in step.overwrites if sizes[r] == sizes[w]), *step.overlaps)
            for step in steps
        ]
        # Of all other steps it is the same to a step whether they are done: its change of the bytes alive is looked up.
        self.near = [
            functools.reduce(
                operator.or_,
                (self.touching[b] for b in {*touched, *(b for each in shared for b in each[:2])}),
                0,
            )
            for touched, shared in zip(self.touched, self.shared, strict=True)
        ]
        self.changes: list[dict[int, tuple[int, int]]] = [{} for _ in steps]

    def alive(self, block: int, done: int) -> bool:
        """Does the block hold something that is needed after the steps of the set `done`?"""
        written = self.writing[block] & (done | self.always)
        return bool(written) and (block in self.outputs or bool(self.touching[block] & ~done))

    @property
    def first_ready(self) -> int:
        """The steps that need none, as a mask."""
        return sum(1 << number for number, needs in enumerate(self.needs) if not needs)

    def ready_after(self, done: int, ready: int, number: int) -> int:
        """The steps that can run after `number`, one of the steps that were `ready`, has completed the set `done`."""
        for other in self.enables[number]:
            if not self.needs[other] & ~done:
                ready |= 1 << other
        return ready & ~(1 << number)

    def run(self, done: int, live: int, number: int) -> tuple[int, int]:
        """Bytes in use while step `number` runs, and bytes alive after it, given `live` bytes before."""
        self.runs += 1
        near, known = done & self.near[number], self.changes[number]
        change = known.get(near)
        if change is None:
            change = known[near] = self._change(near, number)
        return live + change[0], live + change[1]

    def _change(self, done: int, number: int) -> tuple[int, int]:
        """What a step adds to the bytes alive, while it runs and behind it."""
        step = self.steps[number]
        after = done | 1 << number
        during, left = step.scratch, 0
        for block in self.touched[number]:
            before, behind = self.alive(block, done), self.alive(block, after)
            if not before:
                during += self.sizes[block]
            left += (behind - before) * self.sizes[block]
        taken: set[int] = set()
        for read, written, saved in self.shared[number]:
            if read in taken or written in taken or self.alive(written, done):
                continue
            if self.alive(read, done) and not self.alive(read, after):
                taken |= {read, written}
                during -= saved
        return during, left

    def peak(self, order: Sequence[int]) -> int:
        done, live, peak = 0, self.start, self.entry
        for number in order:
            during, live = self.run(done, live, number)
            done |= 1 << number
            peak = max(peak, during, live)
        return max(peak, live)

    def lower_bound(self) -> int:
        """A lower bound of any order's peak: the blocks of a step, less the most that can lie over others."""
        bound = max(self.entry, sum(self.sizes[block] for block in self.outputs))
        for number, step in enumerate(self.steps):
            need = step.scratch + sum(self.sizes[block] for block in self.touched[number])
            most: dict[int, int] = {}
            for _, written, saved in self.shared[number]:
                most[written] = max(saved, most.get(written, 0))
            bound = max(bound, need - sum(most.values()))
        return bound

    def settle(self, done: int, live: int, ready: int, limit: int) -> tuple[int, int, int, list[int]]:
        """Run every ready step that stays within `limit` and leaves no more alive than before.

        Running such a step at once costs nothing later: it frees at least as much and creates at most as
            much at any later moment, so each later set with it is no larger than the same set without it.

        Returns the new set, its live bytes, the steps that are ready then, and the executed steps in order.
        """
        ran: list[int] = []
        moved = True
        while moved:
            moved = False
            for number in _numbers(ready):
                during, left = self.run(done, live, number)
                if during <= limit and left <= live:
                    done, live, moved = done | 1 << number, left, True
                    ready = self.ready_after(done, ready, number)
                    ran.append(number)
        return done, live, ready, ran


def _numbers(mask: int) -> list[int]:
    """The steps of a mask, in their order."""
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found


def _search(graph: _Graph, limit: int, budget: int) -> tuple[int, ...] | None:
    """An order with the smallest peak below `limit`, () if there is none, None if the budget ran out."""
    floor = max(graph.entry, graph.start)
    done, live, ready, ran = graph.settle(0, graph.start, graph.first_ready, floor)
    # Peak first; among equals, the set with the most steps, so that an easy graph is walked straight through.
    heap = [(floor, -done.bit_count(), done, live, ready)]
    came: dict[int, tuple[int, list[int]]] = {done: (-1, ran)}
    closed: set[int] = set()
    best = {done: floor}
    while heap:
        peak, _, done, live, ready = heapq.heappop(heap)
        if done in closed:
            continue
        if done == graph.full:
            order: list[int] = []
            while done >= 0:
                done, ran = came[done]
                order[:0] = ran
            return tuple(order)
        closed.add(done)
        if graph.runs > budget:
            return None
        for number in _numbers(ready):
            during, left = graph.run(done, live, number)
            reached = max(peak, during, left)
            if reached >= limit:
                continue
            after = done | 1 << number
            next_ready = graph.ready_after(after, ready, number)
            after, left, next_ready, ran = graph.settle(after, left, next_ready, reached)
            if after not in closed and reached < best.get(after, limit):
                best[after] = reached
                came[after] = (done, [number, *ran])
                heapq.heappush(heap, (reached, -after.bit_count(), after, left, next_ready))
    return ()


def _first_in_order(graph: _Graph, limit: int, budget: int) -> tuple[int, ...] | None:
    """The first order by step numbers that stays within `limit` (which some order does), or None for the
    budget."""
    budget += graph.runs
    dead: set[int] = set()
    order: list[int] = []
    states = [(0, graph.start, graph.first_ready)]
    choices = [graph.first_ready]
    while len(order) < len(graph.steps):
        done, live, ready = states[-1]
        if not choices[-1]:
            # Settling does not change whether a set can be completed, so the settled set stands for all
            # that reach it.
            dead.add(graph.settle(done, live, ready, limit)[0])
            if graph.runs > budget:
                return None
            states.pop()
            choices.pop()
            order.pop()
            continue
        lowest = choices[-1] & -choices[-1]
        choices[-1] ^= lowest
        number = lowest.bit_length() - 1
        during, left = graph.run(done, live, number)
        after = done | lowest
        next_ready = graph.ready_after(after, ready, number)
        if max(during, left) > limit or (dead and graph.settle(after, left, next_ready, limit)[0] in dead):
            continue
        order.append(number)
        states.append((after, left, next_ready))
        choices.append(next_ready)
    return tuple(order)


def _beam(graph: _Graph, budget: int) -> tuple[int, ...]:
    """A good order for a graph too wide to search: keep the most promising sets of each size."""
    count = len(graph.steps)
    beam: list[tuple[int, int, int, tuple[int, ...], int]] = [
        (graph.entry, graph.start, 0, (), graph.first_ready)
    ]
    # As much work as the exact search was allowed, shared among the levels.
    width = max(1, min(64, budget // max(1, count * count)))
    for _ in range(count):
        found: dict[int, tuple[int, int, int, tuple[int, ...], int]] = {}
        for peak, live, done, order, ready in beam:
            for number in _numbers(ready):
                during, left = graph.run(done, live, number)
                after = done | 1 << number
                next_ready = graph.ready_after(after, ready, number)
                candidate = (max(peak, during, left), left, after, (*order, number), next_ready)
                if after not in found or candidate < found[after]:
                    found[after] = candidate
        beam = heapq.nsmallest(width, found.values())
    return min(beam)[3]
