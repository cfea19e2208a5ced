# SPDX-License-Identifier: Apache-2.0
"""Where a stream can be halted to look at what it has computed, and which rows are there then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyet.ir import Node, Tensor
from tinyet.memory.streams import Run, Stream

Row = tuple[Tensor, int]
"""A tensor and the number of one of its rows."""


@dataclass(frozen=True)
class Stop:
    """Right behind a run of a layer, before anything moves.

    runs: how often the layer has run by then. made: the rows that this run has computed. slots: of all rows that layers
    of the stream have computed and that are still there.
    """

    node: Node
    runs: int
    made: tuple[Row, ...]
    slots: Mapping[Row, int]


def stops(stream: Stream) -> list[Stop]:
    """All of a stream, in the order of its runs."""
    found: list[Stop] = []
    done = dict.fromkeys(stream.nodes, 0)
    there: dict[Row, int] = {}
    for moment, action in enumerate(stream.actions):
        there = {(t, row): slot for (t, row), slot in there.items() if _held(stream, t, slot, moment)}
        if not isinstance(action, Run):
            continue
        output, out = action.node.outputs[0], stream.rules[action.node].out
        first = done[action.node] * out
        done[action.node] += 1
        made = {(output, first + k): action.writes + k for k in range(out)}
        there = {
            row: slot for row, slot in there.items() if row[0] is not output or slot not in made.values()
        }
        there |= made
        found.append(Stop(action.node, done[action.node], tuple(made), dict(there)))
        for drop in action.drops:
            moved = {row: slot - drop.rows for row, slot in there.items() if row[0] is drop.tensor}
            there = {row: at for row, slot in there.items() if (at := moved.get(row, slot)) >= 0}
    return found


def _held(stream: Stream, tensor: Tensor, slot: int, moment: int) -> bool:
    rows = stream.rows[tensor]
    return bool(rows.first[moment] <= slot < rows.behind[moment])


def fewest(found: Sequence[Stop]) -> list[int]:
    """The numbers of stops at which, together, each row is there once: the fewest that do, for each is put off as long
    as nothing is lost."""
    chosen: list[int] = []
    waiting: set[Row] = set()
    for number, stop in enumerate(found):
        waiting.update(stop.made)
        behind = found[number + 1].slots if number + 1 < len(found) else {}
        if not waiting <= behind.keys():
            chosen.append(number)
            waiting.clear()
    return chosen
