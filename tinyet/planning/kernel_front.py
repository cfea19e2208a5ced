# SPDX-License-Identifier: Apache-2.0
"""The Pareto front of choices of kernels: one option for every node, flash against time, where options
share parts of flash.

A dynamic program over the nodes. Its state is the set of shared parts that are there already and may be
needed again; in each state are the partial solutions that no other dominates. Nodes that share parts are
visited one after another, so that few parts matter at a time; and a partial solution is dropped, too, if one
of another state takes no more flash even with all parts that it lacks. None of this loses a point.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyet.numerics import Int64
from tinyet.planning.pareto import Figures, Front

MOST_PARTIAL = 100_000
"""Partial solutions that are kept at a time: five arrays of so many numbers of 64 bits, 4 MB, for each node. With more
the front has a gap, and says so."""
MOST_STATES = 10_000
"""Sets of shared parts that are told from one another at a time; a Python integer each. With more the front has a gap,
and says so."""
FEW_PARTIAL = 500
"""Partial solutions, so few that to carry them on is quicker than to compare states. No point depends on it."""
STRONGEST = 12
"""States with most partial solutions, with which all others are compared. No point depends on it: a solution
that is not found to be dominated is carried on."""


@dataclass(frozen=True)
class Option:
    """A way to compute one node, as the solver sees it. parts: bytes of flash by part; a part that several nodes need
    is there once. instructions: told, not compared."""

    time: int
    parts: Mapping[Hashable, int]
    instructions: int = 0


@dataclass(frozen=True)
class KernelSet:
    """A choice of one option for each node. figures: without RAM, which kernels alone do not have; flash: bytes of the
    parts of all of them. picks: the option of each node."""

    figures: Figures
    picks: tuple[int, ...]


@dataclass(frozen=True)
class _Choice:
    """An option of a node in bits. own: bytes that no other node needs; shared: a mask of parts; number: the option's
    place at its node."""

    time: int
    own: int
    shared: int
    number: int


@dataclass(frozen=True)
class _Partial:
    """Partial solutions: choices for the first nodes. states: masks of the shared parts that are there; home: the state
    of each, as its number, in ascending order, and within a state by ascending flash. before: which one for the nodes
    but the last it continues; option: the last node's."""

    states: tuple[int, ...]
    flash: Int64
    time: Int64
    home: Int64
    before: Int64
    option: Int64

    def at(self, which: Int64 | npt.NDArray[np.bool_]) -> _Partial:
        """Some of them, and the states that these are in."""
        used, home = np.unique(self.home[which], return_inverse=True)
        parts = (self.before[which], self.option[which])
        states = tuple(self.states[i] for i in used)
        return _Partial(states, self.flash[which], self.time[which], home, *parts)


def kernel_front(nodes: Sequence[Sequence[Option]]) -> Front[KernelSet]:
    """All choices of one option a node that none dominates, from the smallest to the fastest.

    Deterministic. Exact but where more partial solutions or states are worth keeping than there is room for.
    """
    problem = _Problem.of(nodes)
    order = problem.order()
    bytes_of = functools.cache(problem.bytes_of)
    gap = 0
    start = np.zeros(1, np.int64)
    partial = _Partial((0,), start, start, start, start, start)
    history: list[_Partial] = []
    for place, live in zip(order, problem.live(order), strict=True):
        # By option and state: the bytes that it adds, and the state behind it.
        options = problem.options[place]
        added = [
            [choice.own + bytes_of(choice.shared & ~state) for state in partial.states] for choice in options
        ]
        behind = [[(state | choice.shared) & live for state in partial.states] for choice in options]
        forgotten = problem.forgotten({state for row in behind for state in row})
        gap += problem.bytes_of(forgotten)
        behind = [[state & ~forgotten for state in row] for row in behind]
        states = sorted({state for row in behind for state in row})
        number = {state: i for i, state in enumerate(states)}
        count = len(partial.flash)
        found = _Partial(
            tuple(states),
            np.concatenate([partial.flash + np.array(row, np.int64)[partial.home] for row in added]),
            np.concatenate([partial.time + choice.time for choice in options]),
            np.concatenate([np.array([number[s] for s in row], np.int64)[partial.home] for row in behind]),
            np.tile(np.arange(count, dtype=np.int64), len(options)),
            np.repeat(np.array([choice.number for choice in options], np.int64), count),
        )
        partial = found.at(_best(found.flash, found.time, found.home))
        if len(partial.flash) > FEW_PARTIAL:
            partial = _undominated(partial, problem.sizes)
        partial, step = _thinned(partial)
        gap += step
        history.append(partial)
    picks = [_traced(history, order, index) for index in range(len(partial.flash))]
    flash = np.array([problem.flash(pick) for pick in picks], np.int64)
    # Some parts whose presence was forgotten were counted too often.
    kept = _best(flash, partial.time, partial.home)
    told = [sum(node[pick].instructions for node, pick in zip(nodes, each, strict=True)) for each in picks]
    points = (KernelSet(Figures(int(partial.time[i]), int(flash[i]), 0, told[i]), picks[i]) for i in kept)
    return Front(tuple(points), gap)


def _best(flash: Int64, time: Int64, home: Int64) -> Int64:
    """The indices of solutions that no other of the same state dominates, by state and ascending flash; the
    first of equal ones."""
    order = np.argsort(home * (flash.max() + 1) + flash, kind="stable")
    flash, time, home = flash[order], time[order], home[order]
    # All numbers of a later state are less than those of the states before.
    falling = time - home * (time.max() + 1)
    keep = np.ones(len(order), np.bool_)
    keep[1:] = falling[1:] < np.minimum.accumulate(falling)[:-1]
    order, flash, home = order[keep], flash[keep], home[keep]
    # The last of those with the same flash is the fastest.
    last = np.append((flash[1:] != flash[:-1]) | (home[1:] != home[:-1]), True)
    return np.asarray(order[last], np.int64)


def _undominated(partial: _Partial, sizes: Sequence[int]) -> _Partial:
    """Without solutions that one of another state dominates even with all parts added that it lacks."""
    there = np.array([[state >> bit & 1 for bit in range(len(sizes))] for state in partial.states], np.int64)
    strongest = np.argsort(-np.bincount(partial.home, minlength=len(there)), kind="stable")[:STRONGEST]
    # For each state and each of the strongest: the bytes of the former's parts that the latter lacks.
    lacking = (there * np.array(sizes, np.int64)) @ (1 - there[strongest]).T
    flash, time, home = partial.flash, partial.time, partial.home
    left = np.arange(len(home))
    for column, strong in enumerate(strongest):
        mine = home == strong
        if mine.any():
            at = np.searchsorted(flash[mine], flash - lacking[home, column], "right") - 1
            keep = (at < 0) | (time[mine][at] > time) | mine
            flash, time, home, left = flash[keep], time[keep], home[keep], left[keep]
    return partial.at(left)


def _thinned(partial: _Partial) -> tuple[_Partial, int]:
    """If there are too many solutions, only the fastest of each state within so many bytes of flash; and
    these bytes."""
    step, total = 0, 0
    while len(partial.flash) > MOST_PARTIAL:
        step = max(2 * step, 16)
        # With ascending flash the last of a run is the fastest.
        run = partial.flash // step
        fewer = partial.at(np.append((run[1:] != run[:-1]) | (partial.home[1:] != partial.home[:-1]), True))
        if step > 16 and len(fewer.flash) == len(partial.flash):
            break  # one of each state is always kept
        partial, total = fewer, total + step
    return partial, total


def _traced(history: Sequence[_Partial], order: Sequence[int], index: int) -> tuple[int, ...]:
    picks = [0] * len(order)
    for place, partial in zip(reversed(order), reversed(history), strict=True):
        picks[place] = int(partial.option[index])
        index = int(partial.before[index])
    return tuple(picks)


def _bits(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


@dataclass(frozen=True)
class _Problem:
    """The options of the nodes, except those that another option of the node always dominates.

    always: bytes that every choice has. sizes: bytes of the shared parts, by bit.
    """

    options: tuple[tuple[_Choice, ...], ...]
    sizes: tuple[int, ...]
    always: int
    given: Sequence[Sequence[_Choice]]

    def bytes_of(self, mask: int) -> int:
        return sum(self.sizes[bit] for bit in _bits(mask))

    def flash(self, picks: Sequence[int]) -> int:
        """Bytes of a choice."""
        own, mask = self.always, 0
        for choices, pick in zip(self.given, picks, strict=True):
            own += choices[pick].own
            mask |= choices[pick].shared
        return own + self.bytes_of(mask)

    def forgotten(self, states: Set[int]) -> int:
        """The smallest parts that must be taken for missing to have few enough states."""
        known, found = functools.reduce(operator.or_, states, 0), 0
        for bit in sorted(_bits(known), key=lambda b: (self.sizes[b], b)):
            if len(states) <= MOST_STATES:
                break
            found |= 1 << bit
            states = {state & ~found for state in states}
        return found

    def needs(self) -> list[int]:
        """The shared parts that some option of each node needs."""
        found = [0] * len(self.options)
        for place, choices in enumerate(self.options):
            for choice in choices:
                found[place] |= choice.shared
        return found

    def order(self) -> list[int]:
        """The nodes, always next the one after which fewest parts matter."""
        alike: dict[frozenset[int], list[int]] = {}
        for place, mask in enumerate(self.needs()):
            alike.setdefault(frozenset(_bits(mask)), []).append(place)
        users = Counter({bit: 0 for bits in alike for bit in bits})
        for bits, places in alike.items():
            users.update(dict.fromkeys(bits, len(places)))
        seen: set[int] = set()
        found: list[int] = []

        def more(bits: frozenset[int]) -> int:
            """Parts that begin to matter, less those that cease to."""
            last = {bit for bit in bits if users[bit] == 1}
            return len(bits - seen - last) - len(last & seen)

        while alike:
            bits = min(alike, key=lambda one: (more(one), alike[one][0]))
            found.append(alike[bits].pop(0))
            if not alike[bits]:
                del alike[bits]
            seen |= bits
            users.subtract(bits)
        return found

    def live(self, order: Sequence[int]) -> list[int]:
        """The parts that nodes behind each of the order may need."""
        needs, later, found = self.needs(), 0, []
        for place in reversed(order):
            found.append(later)
            later |= needs[place]
        return found[::-1]

    @staticmethod
    def of(nodes: Sequence[Sequence[Option]]) -> _Problem:
        sizes = {part: size for node in nodes for option in node for part, size in option.parts.items()}
        sure = {part for node in nodes if node for part in set.intersection(*(set(o.parts) for o in node))}
        # In the order of the options: a part's bit decides between equal points.
        users = Counter(
            part
            for node in nodes
            for part in dict.fromkeys(p for o in node for p in o.parts if p not in sure)
        )
        # Parts that always come together are one.
        where: dict[Hashable, list[tuple[int, int]]] = {part: [] for part, n in users.items() if n > 1}
        for n, node in enumerate(nodes):
            for o, option in enumerate(node):
                for part in option.parts.keys() & where.keys():
                    where[part].append((n, o))
        together: dict[tuple[tuple[int, int], ...], int] = {}
        for part, places in where.items():
            together[tuple(places)] = together.get(tuple(places), 0) + sizes[part]
        masks: dict[tuple[int, int], int] = {}
        for bit, places_ in enumerate(together):
            for use in places_:
                masks[use] = masks.get(use, 0) | 1 << bit
        lone = users.keys() - where.keys()
        given = tuple(
            tuple(
                _Choice(
                    option.time,
                    sum(sizes[part] for part in option.parts.keys() & lone),
                    masks.get((n, o), 0),
                    o,
                )
                for o, option in enumerate(node)
            )
            for n, node in enumerate(nodes)
        )
        given_all = _Problem(given, tuple(together.values()), sum(sizes[part] for part in sure), given)
        worth = tuple(
            tuple(choice for choice in choices if not given_all.dominated(choice, choices))
            for choices in given
        )
        return _Problem(worth, given_all.sizes, given_all.always, given)

    def dominated(self, choice: _Choice, choices: Sequence[_Choice]) -> bool:
        """Whether another one of the node needs no more, even if all parts that it lacks are its own; of equal ones the
        first is not."""

        def cost(other: _Choice) -> tuple[int, int]:
            return other.time, other.own + self.bytes_of(other.shared & ~choice.shared)

        mine = choice.time, choice.own
        for other in choices:
            theirs = cost(other)
            no_more = theirs[0] <= mine[0] and theirs[1] <= mine[1]
            if other is not choice and no_more and (theirs != mine or other.number < choice.number):
                return True
        return False
