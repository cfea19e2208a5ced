# SPDX-License-Identifier: Apache-2.0
"""Candidates: the kernels that could compute a node, each with its call and its stated cost."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UsageError
from tinyet.ir import Node
from tinyet.ir.memoize import memoize
from tinyet.ops import op_of
from tinyet.opset import Call, Cost, Definition, Kernel, cost
from tinyet.opset.cost import Measured, constant_bytes
from tinyet.planning.kernel_front import KernelSet, Option, kernel_front
from tinyet.planning.kernel_selection import Choice, Selection
from tinyet.planning.pareto import Front

LEAST_SHARED = 128
"""Bytes of the smallest array that counts once where several layers have it. The emitter prints smaller ones once, too;
each that layers share is one more bit of the state of the search for choices of kernels."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel for a node, its call and its stated cost: None if it states none."""

    choice: Choice
    call: Call
    cost: Cost | None

    @property
    def instructions(self) -> int:
        """As stated; 0 where nothing is."""
        return 0 if self.cost is None else self.cost.instructions

    @property
    def time(self) -> int:
        """As stated, by which candidates are compared; 0 where nothing is."""
        return 0 if self.cost is None else self.cost.time


Candidates = Mapping[Node, tuple[Candidate, ...]]
"""Of each node, in the order of asking."""
Allowed = Mapping[Node, Sequence[int]]
"""The indices of each node's candidates that may be chosen."""
Chosen = Mapping[Node, Candidate]


def candidates_of(selection: Selection, target: Target) -> dict[Node, tuple[Candidate, ...]]:
    """All of each node of the selection's graph."""
    return {
        node: tuple(_candidate(node, choice, target) for choice in selection.candidates[node])
        for node in selection.graph.nodes
    }


def _candidate(node: Node, choice: Choice, target: Target) -> Candidate:
    kernel = choice.kernel
    known = (*op_of(node).kernels, *choice.delegate.kernels.get(type(node.attrs), ()))
    # What is made for one plan is not kept with the node: a kernel for all sizes holds the graph at each of them.
    if not any(kernel is each for each in known):
        return Candidate(choice, *_made(node, kernel, target))
    kept = _calls_of(node, target)
    rates = cost.measured(cost.core_of(target))
    found = kept.get(id(kernel))
    # The kernel stays beside what it made, so no other one gets its identity.
    if found is None or found[1] is not rates:
        found = kept[id(kernel)] = kernel, rates, *_made(node, kernel, target)
    return Candidate(choice, *found[2:])


@memoize
def _calls_of(node: Node, target: Target) -> dict[int, tuple[Kernel, Measured | None, Call, Cost | None]]:  # noqa: ARG001
    """By a kernel's identity, with the rates that its cost is of. Plans share them: a user compares aims, and a plan
    that does not fit is made again for less."""
    return {}


def _made(node: Node, kernel: Kernel, target: Target) -> tuple[Call, Cost | None]:
    call = kernel.lower(node, target)
    return call, kernel.cost(node, target, call)


@memoize
def parts_of(candidate: Candidate, target: Target) -> Mapping[Hashable, int]:
    """A candidate's flash: constants, and code as far as it is stated. Equal functions, and equal arrays, are
    there once in a firmware."""
    call, cost = candidate.call, candidate.cost
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


def comparable(candidates: Sequence[Candidate]) -> list[int]:
    """The indices of the candidates to compare: where the first of them states no cost, it alone is taken, for the
    order of asking decides then; else all that do."""
    if candidates[0].cost is None:
        return [0]
    return [i for i, candidate in enumerate(candidates) if candidate.cost is not None]


def front_of(candidates: Candidates, allowed: Allowed, target: Target) -> Front[KernelSet]:
    """Choices of one of the allowed candidates for each node, in the order of `allowed`."""
    return kernel_front(
        [
            [
                Option(c.time, parts_of(c, target), c.instructions)
                for c in (candidates[node][i] for i in indices)
            ]
            for node, indices in allowed.items()
        ]
    )


def chosen_by(candidates: Candidates, allowed: Allowed, kernels: KernelSet) -> dict[Node, Candidate]:
    """The choice that a point of `front_of` stands for."""
    pairs = zip(allowed.items(), kernels.picks, strict=True)
    return {node: candidates[node][indices[option]] for (node, indices), option in pairs}


def of_one_delegate(candidates: Candidates, allowed: Allowed) -> int:
    """Time of the network by the kernels of one delegate, of the one that takes the least: each node by the
    first of its kernels, or, where it has none, by the first of all. No saved flash is worth more than that."""
    compared = [[candidates[node][i] for i in indices] for node, indices in allowed.items()]
    homes = dict.fromkeys(c.choice.delegate.name for found in compared for c in found)

    def time(found: Sequence[Candidate], home: str) -> int:
        return next((c for c in found if c.choice.delegate.name == home), found[0]).time

    return min((sum(time(found, home) for found in compared) for home in homes), default=0)


def pinned(candidates: Candidates, names: Mapping[str, Node], pins: Mapping[str, str]) -> dict[Node, int]:
    """The index of the candidate of each layer for which the user has named a kernel.

    names: of the layers. Raises UsageError, listing them, for layers that there are not, and kernels that they have
    not.
    """
    wrong, found = [], {}
    for layer, symbol in pins.items():
        node = names.get(layer)
        if node is None:
            wrong.append(f"no layer is called {layer}; there are {', '.join(names)}")
            continue
        symbols = [c.choice.kernel.symbol for c in candidates[node]]
        if symbol in symbols:
            found[node] = symbols.index(symbol)
        else:
            wrong.append(f"{layer}: {symbol} does not compute it; what does: {', '.join(symbols)}")
    if wrong:
        raise UsageError(
            "; ".join(wrong), hint="`tinyet analyze` lists the kernels of each layer; --delegates allows more"
        )
    return found
