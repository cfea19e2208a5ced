# SPDX-License-Identifier: Apache-2.0
"""Where a stream can be halted to look at what it has computed, and which rows are there then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tinyet.ir import Node, Tensor
from tinyet.memory.streams import Move, Place, Run, Stream

Row = tuple[Tensor, int]
"""A tensor and the number of one of its rows."""


@dataclass(frozen=True)
class Stop:
    """Right behind a run of a layer, before anything moves.

    runs: how often the layer has run by then. made: the rows that this run has computed. places: of all rows that layers
    of the stream have computed and that are still there.
    """

    node: Node
    runs: int
    made: tuple[Row, ...]
    places: Mapping[Row, Place]


def stops(stream: Stream) -> list[Stop]:
    """All of a stream, in the order of its runs."""
    found: list[Stop] = []
    done = dict.fromkeys(stream.nodes, 0)
    there: dict[Row, Place] = {}
    for moment, action in enumerate(stream.actions):
        there = {row: at for row, at in there.items() if _held(stream, row[0], at, moment)}
        match action:
            case Run(node, _, place):
                output, out = node.outputs[0], stream.rules[node].out
                made = {(output, done[node] * out + k): _slot(place, k) for k in range(out)}
                done[node] += 1
                there = _written(there, made)
                found.append(Stop(node, done[node], tuple(made), dict(there)))
            case Move(tensor, source, target, count):
                moved = {_slot(source, k): _slot(target, k) for k in range(count)}
                rows = {row: moved[at] for row, at in there.items() if row[0] is tensor and at in moved}
                there = _written(there, rows)
    return found


def _slot(place: Place, k: int) -> Place:
    """The one `k` rows behind."""
    return replace(place, slot=place.slot + k)


def _written(there: Mapping[Row, Place], rows: Mapping[Row, Place]) -> dict[Row, Place]:
    """What is there when these rows of one tensor come to their places, in which nothing else stays."""
    taken = {(row[0], at) for row, at in rows.items()}
    return {row: at for row, at in there.items() if row not in rows and (row[0], at) not in taken} | dict(
        rows
    )


def _held(stream: Stream, tensor: Tensor, place: Place, moment: int) -> bool:
    rows = stream.rows[tensor]
    area = rows.waiting if place.waiting else rows.area
    return area is not None and bool(area.first[moment] <= place.slot < area.behind[moment])


def fewest(found: Sequence[Stop]) -> list[int]:
    """The numbers of stops at which, together, each row is there once: the fewest that do, for each is put off as long
    as nothing is lost."""
    chosen: list[int] = []
    waiting: set[Row] = set()
    for number, stop in enumerate(found):
        waiting.update(stop.made)
        behind = found[number + 1].places if number + 1 < len(found) else {}
        if not waiting <= behind.keys():
            chosen.append(number)
            waiting.clear()
    return chosen
