# SPDX-License-Identifier: Apache-2.0
"""The Pareto front of choices of kernels: one option for every node, flash against time, where options
share parts of flash.

A dynamic program over the nodes. Its state is the set of shared parts that are there already and may be
needed again; in each state are the partial solutions that no other dominates. Nodes that share parts are
visited one after another, so that few parts matter at a time; and a partial solution is dropped, too, if one
of another state takes no more flash even with all parts that it lacks. None of this loses a point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyet.numerics import Int64
from tinyet.planning.pareto import Figures, Front

MOST_PARTIAL = 100_000
"""Partial solutions that are kept at a time: five arrays of so many numbers of 64 bits, 4 MB, for each node. With more
the front has a gap, and says so."""
MOST_STATES = 10_000
"""Sets of shared parts that are told from one another at a time. With more the front has a gap, and says so."""
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


Words = npt.NDArray[np.uint64]
"""Sets of shared parts, one a row: a bit a part, the first in the lowest bit of the first word."""


@dataclass(frozen=True)
class _Partial:
    """Partial solutions: choices for the first nodes. states: the shared parts that are there, in ascending order;
    home: the state of each solution, as its number, in ascending order, and within a state by ascending flash. before:
    which one for the nodes but the last it continues; option: the last node's."""

    states: Words
    flash: Int64
    time: Int64
    home: Int64
    before: Int64
    option: Int64

    def at(self, which: Int64) -> _Partial:
        """Some of them, in this order, and the states that these are in."""
        home = self.home[which]
        first = np.append(True, home[1:] != home[:-1])
        parts = (self.flash[which], self.time[which], np.cumsum(first) - 1)
        return _Partial(self.states[home[first]], *parts, self.before[which], self.option[which])


def kernel_front(nodes: Sequence[Sequence[Option]]) -> Front[KernelSet]:
    """All choices of one option a node that none dominates, from the smallest to the fastest.

    Deterministic. Exact but where more partial solutions or states are worth keeping than there is room for.
    """
    problem = _Problem.of(nodes)
    order = problem.order()
    gap = 0
    start = np.zeros(1, np.int64)
    partial = _Partial(problem.words([0]), start, start, start, start, start)
    history: list[_Partial] = []
    for place, live in zip(order, problem.live(order), strict=True):
        partial, forgotten = problem.continued(partial, problem.options[place], live)
        if len(partial.flash) > FEW_PARTIAL:
            partial = _undominated(partial, problem)
        partial, step = _thinned(partial)
        gap += forgotten + step
        history.append(partial)
    picks = _traced(history, order, len(partial.flash))
    # Some parts whose presence was forgotten were counted too often.
    flash = problem.flash(picks)
    kept = _best(flash, partial.time, partial.home)
    points = []
    for time_, flash_, pick in zip(
        partial.time[kept].tolist(), flash[kept].tolist(), picks[kept].tolist(), strict=True
    ):
        told = sum(node[option].instructions for node, option in zip(nodes, pick, strict=True))
        points.append(KernelSet(Figures(time_, flash_, 0, told), tuple(pick)))
    return Front(tuple(points), gap)


def _distinct(states: Words) -> tuple[Words, Int64]:
    """Each state once, in ascending order; and of each of the given ones its number there."""
    order = np.lexsort(states.T)
    ordered = states[order]
    first = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(first) - 1
    return ordered[first], number


def _sorted_stably(keys: Int64) -> Int64:
    """As np.argsort of numbers that are not negative, the first of equal ones first. With their places in their lowest
    bits numbers are sorted themselves, which takes half the time."""
    bits = len(keys).bit_length()
    if int(keys.max()) >> (63 - bits):
        return np.argsort(keys, kind="stable")
    return np.sort(keys << bits | np.arange(len(keys)), kind="stable") & ((1 << bits) - 1)


def _best(flash: Int64, time: Int64, home: Int64) -> Int64:
    """The indices of solutions that no other of the same state dominates, by state and ascending flash; the
    first of equal ones."""
    order = _sorted_stably(home * (flash.max() + 1) + flash)
    time, home = time[order], home[order]
    # All numbers of a later state are less than those of the states before.
    falling = time - home * (time.max() + 1)
    keep = np.append(True, falling[1:] < np.minimum.accumulate(falling)[:-1])
    order, home = order[keep], home[keep]
    flash = flash[order]
    # The last of those with the same flash is the fastest.
    last = np.append((flash[1:] != flash[:-1]) | (home[1:] != home[:-1]), True)
    return np.asarray(order[last], np.int64)


def _undominated(partial: _Partial, problem: _Problem) -> _Partial:
    """Without solutions that one of another state dominates even with all parts added that it lacks."""
    counts = np.bincount(partial.home, minlength=len(partial.states))
    strongest = np.argsort(-counts, kind="stable")[:STRONGEST]
    # For each of the strongest and each state: the bytes of the latter's parts that the former lacks.
    lacking = problem.missing(partial.states[strongest], partial.states).T
    flash, time, home = partial.flash, partial.time, partial.home
    left = np.arange(len(home))
    for strong, lacks in zip(strongest, lacking, strict=True):
        mine = slice(*np.searchsorted(home, [strong, strong + 1]))
        if mine.start < mine.stop:
            at = np.searchsorted(flash[mine], flash - lacks[home], "right") - 1
            keep = (at < 0) | (time[mine][at] > time)
            keep[mine] = True
            if not keep.all():
                kept = np.flatnonzero(keep)
                flash, time, home, left = flash[kept], time[kept], home[kept], left[kept]
    return partial.at(left)


def _thinned(partial: _Partial) -> tuple[_Partial, int]:
    """If there are too many solutions, only the fastest of each state within so many bytes of flash; and
    these bytes."""
    step, total = 0, 0
    while len(partial.flash) > MOST_PARTIAL:
        step = max(2 * step, 16)
        # With ascending flash the last of a run is the fastest.
        run, home = partial.flash // step, partial.home
        last = np.append((run[1:] != run[:-1]) | (home[1:] != home[:-1]), True)
        fewer = partial.at(np.flatnonzero(last))
        if step > 16 and len(fewer.flash) == len(partial.flash):
            break  # one of each state is always kept
        partial, total = fewer, total + step
    return partial, total


def _traced(history: Sequence[_Partial], order: Sequence[int], count: int) -> Int64:
    """Of each of the last solutions the option of each node."""
    picks = np.zeros((count, len(order)), np.int64)
    index = np.arange(count)
    for place, partial in zip(reversed(order), reversed(history), strict=True):
        picks[:, place] = partial.option[index]
        index = partial.before[index]
    return picks


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

    @property
    def width(self) -> int:
        """Words that the shared parts take."""
        return max(-(-len(self.sizes) // 64), 1)

    def words(self, masks: Sequence[int]) -> Words:
        """Sets of shared parts, one a row."""
        raw = b"".join(mask.to_bytes(8 * self.width, "little") for mask in masks)
        return np.frombuffer(raw, "<u8").reshape(len(masks), self.width)

    def there(self, states: Words) -> npt.NDArray[np.uint8]:
        """1 for each part that is there, by state."""
        return np.unpackbits(states.view(np.uint8), axis=1, count=len(self.sizes), bitorder="little")

    def missing(self, states: Words, wanted: Words) -> Int64:
        """Bytes of the parts that are in each row of `wanted` and not in each of `states`: of all of the former by all
        of the latter. As floats, whose products are quick; sums of bytes are exact."""
        weights = self.there(wanted) * np.array(self.sizes, np.float64)
        used = np.flatnonzero(weights.any(axis=0))
        return (weights[:, used] @ (1.0 - self.there(states)[:, used].T)).astype(np.int64)

    def continued(self, partial: _Partial, choices: Sequence[_Choice], live: int) -> tuple[_Partial, int]:
        """The solutions with one of the choices for the next node, of each state those that no other dominates; and
        bytes of the parts whose presence was forgotten. live: the parts that nodes behind it may need."""
        count = len(partial.flash)
        if len(choices) == 1 and not choices[0].shared:
            (only,) = choices
            flash, time = partial.flash + only.own, partial.time + only.time
            option = np.full(count, only.number)
            return _Partial(partial.states, flash, time, partial.home, np.arange(count), option), 0
        shared = self.words([choice.shared for choice in choices])
        # By option and state: the bytes that it adds, and the number of the state behind it.
        own = np.array([[choice.own] for choice in choices], np.int64)
        added = own + self.missing(partial.states, shared)
        behind = (partial.states | shared[:, np.newaxis]) & self.words([live])
        states, number = _distinct(behind.reshape(-1, self.width))
        forgotten = self.forgotten(states)
        if forgotten:
            states, fewer = _distinct(states & ~self.words([forgotten]))
            number = fewer[number]
        home = number.reshape(len(choices), -1)[:, partial.home].ravel()
        flash = (partial.flash + added[:, partial.home]).ravel()
        time = (partial.time + np.array([[choice.time] for choice in choices], np.int64)).ravel()
        kept = _best(flash, time, home)
        which, before = np.divmod(kept, count)
        option = np.array([choice.number for choice in choices], np.int64)[which]
        found = _Partial(states, flash[kept], time[kept], home[kept], before, option)
        return found.at(np.arange(len(kept))), self.bytes_of(forgotten)

    def bytes_of(self, mask: int) -> int:
        return sum(self.sizes[bit] for bit in _bits(mask))

    def flash(self, picks: Int64) -> Int64:
        """Bytes of choices, of which each row has the option of each node."""
        own = np.full(len(picks), self.always, np.int64)
        states = np.repeat(self.words([0]), len(picks), axis=0)
        for choices, pick in zip(self.given, picks.T, strict=True):
            own += np.array([choice.own for choice in choices], np.int64)[pick]
            states |= self.words([choice.shared for choice in choices])[pick]
        return own + self.missing(self.words([0]), states)[:, 0]

    def forgotten(self, states: Words) -> int:
        """The smallest parts that must be taken for missing to have few enough states."""
        known, found = int.from_bytes(np.bitwise_or.reduce(states, axis=0).tobytes(), "little"), 0
        for bit in sorted(_bits(known), key=lambda b: (self.sizes[b], b)):
            if len(states) <= MOST_STATES:
                break
            found |= 1 << bit
            states, _ = _distinct(states & ~self.words([1 << bit]))
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
