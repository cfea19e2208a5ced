# SPDX-License-Identifier: Apache-2.0
"""Offsets of an arena whose states lie at its start and share bytes with nothing: other models may have the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tinyet.ir import Graph, Tensor
from tinyet.memory import offsets as packing
from tinyet.memory.live_ranges import LiveRange, gaps, most_alive
from tinyet.memory.plan import MARK

ARENA_ALIGN = 16
"""Of an arena's address, of what begins behind the states, and of inputs and outputs, which may be another model's."""


def place_apart(
    graph: Graph,
    root: Callable[[Tensor], Tensor],
    buffers: Sequence[packing.Buffer],
    live_ranges: Sequence[LiveRange],
    budget: int,
) -> packing.Placement:
    """The placement of buffers: those of states one after another, and all others behind them, as small as they get.

    root: the tensor that a tensor's block has the name of. live_ranges: of the same buffers.
    """
    states = {root(state.value).name for state in graph.states} | {MARK}
    ends = {root(t).name for t in (*graph.inputs, *graph.outputs)}
    offsets, size = dict[str, int](), 0
    for buffer in sorted((b for b in buffers if b.name in states), key=lambda b: -b.align):
        offsets[buffer.name] = packing.align_up(size, buffer.align)
        size = offsets[buffer.name] + buffer.bytes
    start = packing.align_up(size, ARENA_ALIGN)
    others = [
        replace(b, align=max(b.align, ARENA_ALIGN)) if b.name in ends else b
        for b in buffers
        if b.name not in states
    ]
    ranges = [each for each in live_ranges if each.name not in states]
    found = packing.place(others, gaps=gaps(ranges), floor=most_alive(ranges), budget=budget)
    return packing.Placement(
        offsets | {name: start + at for name, at in found.offsets.items()},
        start + found.peak,
        start + found.lower_bound,
        found.optimal,
        kept_bytes=start,
    )
