# SPDX-License-Identifier: Apache-2.0
"""Which of the kernels that could compute a node does: the choice over a whole graph, by what they say they cost.

The fewest instructions for every number of bytes of flash are found at once, exactly: node by node, all ways to choose
so far, but for those that another way beats in both. Code that several calls share is counted with the first that
needs it, so ways are compared only where they have the same shared code that later nodes may need, too. A network of
a microcontroller's size has some thousands of such ways; beyond MOST_WAYS they are thinned out, and the frontier says
by how many bytes that can be wrong.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.select import Choice
from tinyet.errors import UsageError
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.opset import Call, Cost, Definition
from tinyet.opset.cost import constant_bytes

Optimize = Literal["speed", "balanced", "size"]
OPTIMIZE: tuple[Optimize, ...] = get_args(Optimize)

MOST_WAYS = 60_000
"""Ways to choose that are kept at a time."""
MOST_SHARED = 16
"""Pieces of shared code of which it is known at a time whether they are there."""
LEAST_SHARED = 128
"""Bytes of the smallest array that counts once where several layers have it."""


def check_optimize(wanted: str) -> Optimize:
    """The same as a literal; raises UsageError for anything else."""
    for known in OPTIMIZE:
        if wanted == known:
            return known
    raise UsageError(f"nothing to optimize for is called {wanted!r}", hint=f"one of {', '.join(OPTIMIZE)}")


@dataclass(frozen=True)
class Objective:
    """What a choice is made for.

    flash: the most bytes of constants and code of the model; ram: of its arena and state. None: as many as it takes.
    pins: kernels that the user has named for layers, by the layers' names.
    """

    optimize: Optimize = "balanced"
    flash: int | None = None
    ram: int | None = None
    pins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Variant:
    """A kernel for a node, the call that it makes of it, and what it says that costs: None where it says nothing."""

    choice: Choice
    call: Call
    cost: Cost | None


@dataclass(frozen=True)
class Option:
    """A way to compute one node, as the solver sees it. parts: bytes of flash by what they are; a part that several
    nodes need is there once."""

    instructions: int
    parts: Mapping[Hashable, int]


@dataclass(frozen=True)
class Point:
    """A choice for all nodes that no other beats: none executes fewer instructions in as little flash.

    picks: the option of each node. flash: bytes of the parts of all of them.
    """

    instructions: int
    flash: int
    picks: tuple[int, ...]


@dataclass(frozen=True)
class Frontier:
    """points: from the smallest to the fastest. gap: bytes of flash; no choice that takes so many bytes less than a
    point executes fewer instructions than that. 0: the points are exact."""

    points: tuple[Point, ...]
    gap: int


@dataclass(frozen=True, eq=False)
class Decision:
    """What was chosen, and what there was to choose from.

    variants: of every node, in the order of asking; chosen: the one that computes it. frontier: all that was not
    beaten, within what the user has pinned and RAM allows; point: the one that was taken.
    """

    objective: Objective
    variants: Mapping[Node, tuple[Variant, ...]]
    chosen: Mapping[Node, Variant]
    frontier: Frontier
    point: Point


# ---------------------------------------------------------------- the solver


@dataclass
class _Ways:
    """Ways to choose for the first nodes, with the same shared parts. before: where each comes from, as (mask, index);
    option: the last node's."""

    flash: Int64
    instructions: Int64
    mask: Int64
    index: Int64
    option: Int64

    def at(self, which: Int64) -> _Ways:
        return _Ways(
            self.flash[which],
            self.instructions[which],
            self.mask[which],
            self.index[which],
            self.option[which],
        )


def frontier(nodes: Sequence[Sequence[Option]]) -> Frontier:
    """All choices of one option a node that are not beaten in both instructions and flash.

    Deterministic: of equal choices the one with the earlier options.
    """
    reduced = _Reduced.of(nodes)
    gap = reduced.gap
    order = reduced.order
    start = np.zeros(1, np.int64)
    ways: dict[int, _Ways] = {0: _Ways(start, start, start, start, start)}
    history: list[dict[int, _Ways]] = []
    for place in order:
        found: dict[int, list[_Ways]] = {}
        for mask, way in ways.items():
            for number, (instructions, own, needed) in enumerate(reduced.options[place]):
                added = own + reduced.bytes_of(needed & ~mask)
                behind = (mask | needed) & reduced.live[place]
                count = len(way.flash)
                found.setdefault(behind, []).append(
                    _Ways(
                        way.flash + added,
                        way.instructions + instructions,
                        np.full(count, mask, np.int64),
                        np.arange(count, dtype=np.int64),
                        np.full(count, number, np.int64),
                    )
                )
        ways = {mask: _best(_joined(parts)) for mask, parts in sorted(found.items())}
        gap += _thin(ways)
        history.append(ways)
    (last,) = ways.values()
    points = [
        Point(
            int(last.instructions[i]),
            int(last.flash[i]) + reduced.always,
            _traced(history, order, int(i)),
        )
        for i in range(len(last.flash))
    ]
    return Frontier(tuple(points), gap)


def _joined(parts: Sequence[_Ways]) -> _Ways:
    names = ("flash", "instructions", "mask", "index", "option")
    return _Ways(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _best(ways: _Ways) -> _Ways:
    """Those that no other beats, by ascending flash; of equal ones the first."""
    order = np.lexsort((np.arange(len(ways.flash)), ways.instructions, ways.flash))
    instructions = ways.instructions[order]
    least = np.minimum.accumulate(instructions)
    keep = np.ones(len(order), np.bool_)
    keep[1:] = instructions[1:] < least[:-1]
    return ways.at(np.asarray(order[keep], np.int64))


def _thin(ways: dict[int, _Ways]) -> int:
    """Of ways whose flash is within so many bytes keep the fastest, where there are too many; the bytes."""
    step, total = 0, 0
    # One for each set of shared parts is always kept.
    while sum(len(w.flash) for w in ways.values()) > max(MOST_WAYS, len(ways)):
        step = max(2 * step, 16)
        for mask, way in ways.items():
            # By ascending flash the last of a run is the fastest.
            run = way.flash // step
            last = np.append(run[1:] != run[:-1], True)
            ways[mask] = way.at(np.flatnonzero(last).astype(np.int64))
        total += step
    return total


def _traced(history: Sequence[Mapping[int, _Ways]], order: Sequence[int], index: int) -> tuple[int, ...]:
    picks = [0] * len(order)
    (mask,) = history[-1] if history else (0,)
    for place, ways in zip(reversed(order), reversed(history), strict=True):
        way = ways[mask]
        picks[place] = int(way.option[index])
        mask, index = int(way.mask[index]), int(way.index[index])
    return tuple(picks)


@dataclass(frozen=True)
class _Reduced:
    """The problem in bits: parts that matter as shared ones, everything else added up.

    options: a node's, as (instructions, bytes of its own, mask of shared parts). order: in which nodes are looked at.
    live: by node, the parts that a later node may need. always: bytes that every choice has.
    """

    options: tuple[tuple[tuple[int, int, int], ...], ...]
    order: tuple[int, ...]
    live: tuple[int, ...]
    sizes: tuple[int, ...]
    always: int
    gap: int

    def bytes_of(self, mask: int) -> int:
        return sum(size for bit, size in enumerate(self.sizes) if mask >> bit & 1)

    @staticmethod
    def of(nodes: Sequence[Sequence[Option]]) -> _Reduced:
        sizes = {part: size for node in nodes for option in node for part, size in option.parts.items()}
        sure = {part for node in nodes if node for part in set.intersection(*(set(o.parts) for o in node))}
        always = sum(sizes[part] for part in sure)
        users = Counter(part for node in nodes for part in {p for o in node for p in o.parts} - sure)
        shared = [part for part, count in users.items() if count > 1]
        # Parts that always come together are one.
        where: dict[Hashable, tuple[tuple[int, int], ...]] = {
            part: tuple(
                (n, o) for n, node in enumerate(nodes) for o, opt in enumerate(node) if part in opt.parts
            )
            for part in shared
        }
        groups: dict[tuple[tuple[int, int], ...], int] = {}
        for part in shared:
            groups[where[part]] = groups.get(where[part], 0) + sizes[part]
        # What is too much to keep track of counts with every node that needs it.
        ranked = sorted(groups, key=lambda g: (-groups[g], g))
        kept, dropped = ranked[:MOST_SHARED], ranked[MOST_SHARED:]
        gap = sum(groups[g] * (len({n for n, _ in g}) - 1) for g in dropped)
        lone = {part for part in users if part not in where or where[part] in dropped}
        bit_of = {g: bit for bit, g in enumerate(kept)}
        masks: dict[tuple[int, int], int] = {}
        for g, bit in bit_of.items():
            for use in g:
                masks[use] = masks.get(use, 0) | 1 << bit
        options = tuple(
            tuple(
                (
                    option.instructions,
                    sum(sizes[p] for p in option.parts if p in lone),
                    masks.get((n, o), 0),
                )
                for o, option in enumerate(node)
            )
            for n, node in enumerate(nodes)
        )
        any_mask = [_union(node) for node in options]
        order = tuple(sorted(range(len(nodes)), key=lambda n: (any_mask[n], n)))
        live = [0] * len(nodes)
        later = 0
        for n in reversed(order):
            live[n] = later
            later |= any_mask[n]
        return _Reduced(options, order, tuple(live), tuple(groups[g] for g in kept), always, gap)


def _union(node: Sequence[tuple[int, int, int]]) -> int:
    mask = 0
    for _, _, needed in node:
        mask |= needed
    return mask


# ---------------------------------------------------------------- nodes and kernels


def parts_of(variant: Variant, target: Target) -> dict[Hashable, int]:
    """What a variant takes of flash: constants, and code as far as it is stated. Equal functions, and equal arrays, are
    there once in a firmware."""
    call, cost = variant.call, variant.cost
    parts: dict[Hashable, int] = {}
    if cost is not None:
        parts.update(cost.shared)
        parts[call.symbol if isinstance(call.symbol, Definition) else object()] = cost.code
    rest = constant_bytes(call, target)
    for constant in call.constants:
        size = constant.data.nbytes
        if size >= LEAST_SHARED:
            digest = hashlib.sha256(np.ascontiguousarray(constant.data).tobytes()).digest()
            rest -= size
            parts[constant.data.dtype.name, digest] = size
    parts[object()] = rest
    return parts


def comparable(variants: Sequence[Variant]) -> list[int]:
    """The indices of the variants to weigh: where the first of them states no cost, it alone is taken, for the order of
    asking decides then; else all that do."""
    if variants[0].cost is None:
        return [0]
    return [i for i, variant in enumerate(variants) if variant.cost is not None]


def choose(
    variants: Mapping[Node, Sequence[Variant]],
    allowed: Mapping[Node, Sequence[int]],
    objective: Objective,
    target: Target,
) -> tuple[Frontier, Point, dict[Node, int]]:
    """The frontier of the allowed variants of each node, the point that the objective asks for, and the index of the
    variant that each node has there."""
    options = [
        [
            Option(0 if v.cost is None else v.cost.instructions, parts_of(v, target))
            for v in (variants[node][i] for i in indices)
        ]
        for node, indices in allowed.items()
    ]
    found = frontier(options)
    point = pick(found, objective.optimize, objective.flash, of_one_delegate(variants, allowed))
    picked = zip(allowed.items(), point.picks, strict=True)
    return found, point, {node: indices[option] for (node, indices), option in picked}


def of_one_delegate(variants: Mapping[Node, Sequence[Variant]], allowed: Mapping[Node, Sequence[int]]) -> int:
    """Instructions of the network by the kernels of one delegate, of the one that takes the fewest: each node by the
    first of its kernels, or, where it has none, by the first of all. No saved flash is worth more than that."""
    weighed = [[variants[node][i] for i in indices] for node, indices in allowed.items()]
    homes = dict.fromkeys(v.choice.delegate.name for found in weighed for v in found)

    def instructions(found: Sequence[Variant], home: str) -> int:
        cost = next((v for v in found if v.choice.delegate.name == home), found[0]).cost
        return 0 if cost is None else cost.instructions

    return min((sum(instructions(found, home) for found in weighed) for home in homes), default=0)


def pick(found: Frontier, optimize: Optimize, flash: int | None, most: int) -> Point:
    """One point: what is optimized for, among those that take at most `flash` bytes; the smallest where none does.

    speed: the fewest instructions. size: the least flash. balanced: the least product of instructions and the square of
    flash, so that a percent of flash is worth two percent of instructions; of what takes at most `most` instructions,
    or of all that fits where nothing of it does.
    """
    fitting = [p for p in found.points if flash is None or p.flash <= flash] or [found.points[0]]
    match optimize:
        case "speed":
            return fitting[-1]
        case "size":
            return fitting[0]
        case "balanced":
            return min([p for p in fitting if p.instructions <= most] or fitting, key=_balance)


def _balance(point: Point) -> float:
    return math.log(max(point.instructions, 1)) + 2 * math.log(max(point.flash, 1))


def pinned(
    variants: Mapping[Node, Sequence[Variant]], names: Mapping[str, Node], pins: Mapping[str, str]
) -> dict[Node, int]:
    """The index of the variant of each layer for which the user has named a kernel.

    names: of the layers. Raises UsageError, listing them, for layers that there are not, and kernels that they have
    not.
    """
    wrong, found = [], {}
    for layer, symbol in pins.items():
        node = names.get(layer)
        if node is None:
            wrong.append(f"no layer is called {layer}; there are {', '.join(names)}")
            continue
        symbols = [v.choice.kernel.symbol for v in variants[node]]
        if symbol in symbols:
            found[node] = symbols.index(symbol)
        else:
            wrong.append(f"{layer}: {symbol} does not compute it; what does: {', '.join(symbols)}")
    if wrong:
        raise UsageError(
            "; ".join(wrong), hint="`tinyet analyze` lists the kernels of each layer; --delegate allows more"
        )
    return found
