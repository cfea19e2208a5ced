# SPDX-License-Identifier: Apache-2.0
"""Which of the kernels that could compute a node does: the choice over a whole graph, by what they say they cost.

`frontier` finds the fewest instructions for every number of bytes of flash; here is what a node's options are, and
which point of the frontier is taken.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UsageError
from tinyet.ir import Node
from tinyet.opset import Call, Cost, Definition
from tinyet.opset.cost import constant_bytes
from tinyet.planning.kernel_front import Frontier, Option, Point, frontier
from tinyet.planning.kernel_selection import Choice

Optimize = Literal["speed", "balanced", "size"]
Price = tuple[bool, float, float]
OPTIMIZE: tuple[Optimize, ...] = get_args(Optimize)

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
    pins: kernels that the user has named for layers, by the layers' names. whole: no layer is computed by rows.
    input_rows: the input comes row by row.
    """

    optimize: Optimize = "balanced"
    flash: int | None = None
    ram: int | None = None
    pins: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False
    input_rows: bool = False


@dataclass(frozen=True, eq=False)
class Variant:
    """A kernel for a node, the call that it makes of it, and what it says that costs: None where it says nothing."""

    choice: Choice
    call: Call
    cost: Cost | None


@dataclass(frozen=True)
class Figures:
    """What a plan takes: instructions of an inference and bytes of flash, as far as they are stated; bytes of the arena
    and of state."""

    instructions: int
    flash: int
    ram: int

    def no_more(self, other: Figures) -> bool:
        """Than another plan takes, of anything."""
        return self.instructions <= other.instructions and self.flash <= other.flash and self.ram <= other.ram


@dataclass(frozen=True, eq=False)
class Whole:
    """What would be chosen if each layer were computed as a whole and RAM had no limit, and the arena of that."""

    chosen: Mapping[Node, Variant]
    arena_bytes: int


@dataclass(frozen=True, eq=False)
class Decision:
    """What was chosen, and what there was to choose from.

    variants: of every node, in the order of asking; chosen: the one that computes it. frontier: of the kernels that
    memory allowed at each layer, within what the user has pinned; point: the one that was taken. plans: those that were
    made and that no other of them beats, the smallest in RAM first; figures: of the one that was taken; price: by which
    it is compared with others for the same `optimize` and pins, whatever the limits. whole: where layers are computed
    by rows, what they would be otherwise.
    """

    objective: Objective
    variants: Mapping[Node, tuple[Variant, ...]]
    chosen: Mapping[Node, Variant]
    frontier: Frontier
    point: Point
    plans: tuple[Figures, ...]
    figures: Figures
    price: tuple[Price, bool, Price, int]
    whole: Whole | None = None


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


def weighed(
    variants: Mapping[Node, Sequence[Variant]], allowed: Mapping[Node, Sequence[int]], target: Target
) -> Frontier:
    """The frontier of the allowed variants of each node."""
    return frontier(
        [
            [
                Option(0 if v.cost is None else v.cost.instructions, parts_of(v, target))
                for v in (variants[node][i] for i in indices)
            ]
            for node, indices in allowed.items()
        ]
    )


def of_one_delegate(variants: Mapping[Node, Sequence[Variant]], allowed: Mapping[Node, Sequence[int]]) -> int:
    """Instructions of the network by the kernels of one delegate, of the one that takes the fewest: each node by the
    first of its kernels, or, where it has none, by the first of all. No saved flash is worth more than that."""
    weighed = [[variants[node][i] for i in indices] for node, indices in allowed.items()]
    homes = dict.fromkeys(v.choice.delegate.name for found in weighed for v in found)

    def instructions(found: Sequence[Variant], home: str) -> int:
        cost = next((v for v in found if v.choice.delegate.name == home), found[0]).cost
        return 0 if cost is None else cost.instructions

    return min((sum(instructions(found, home) for found in weighed) for home in homes), default=0)


WORTH: dict[Optimize, tuple[float, float]] = {"speed": (0, 0), "balanced": (2, 0.125), "size": (10, 5)}
"""Percents of instructions that a percent of flash is worth, and that a percent of RAM is."""


def price(figures: Figures, optimize: Optimize, most: int) -> Price:
    """What a plan is compared by; the least is the best. It is larger for all that another plan beats.

    It is the product of instructions, of flash and of RAM, each to the power that it is worth; of equal ones "balanced"
    decides. most: instructions that for "balanced" no saved flash is worth, where anything takes fewer.
    """
    logs = [math.log(max(n, 1)) for n in (figures.instructions, figures.flash, figures.ram)]
    prices = [
        logs[0] + flash * logs[1] + ram * logs[2] for flash, ram in (WORTH[optimize], WORTH["balanced"])
    ]
    return optimize == "balanced" and figures.instructions > most, prices[0], prices[1]


def pick(found: Frontier, optimize: Optimize, flash: int | None, most: int) -> Point:
    """The point with the least price among those that take at most `flash` bytes; the smallest where none does. most:
    as `price` takes it."""
    fitting = [p for p in found.points if flash is None or p.flash <= flash] or [found.points[0]]
    return min(fitting, key=lambda p: price(Figures(p.instructions, p.flash, 0), optimize, most))


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
