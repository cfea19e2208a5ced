# SPDX-License-Identifier: Apache-2.0
"""Where a fusion group can be halted to read its results, and which rows are there then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyet.ir import Node, Tensor
from tinyet.memory.fusion import FusionGroup, Move, Run
from tinyet.memory.tile_records import Close, Place

Row = tuple[Tensor, int]
"""A tensor and the number of one of its rows."""


@dataclass(frozen=True)
class Breakpoint:
    """Right behind a run of a layer, before anything moves.

    runs: how often the layer has run by then. made: the rows that this run has computed. places: of all rows that
    layers of the fusion group have computed and that are still there.
    """

    node: Node
    runs: int
    made: tuple[Row, ...]
    places: Mapping[Row, Place]


def breakpoints(fusion_group: FusionGroup) -> list[Breakpoint]:
    """All of a fusion group, in the order of its runs."""
    found: list[Breakpoint] = []
    done = dict.fromkeys(fusion_group.nodes, 0)
    slots: dict[Row, int] = {}
    for moment, action in enumerate(fusion_group.actions):
        slots = {row: slot for row, slot in slots.items() if _held(fusion_group, row[0], slot, moment)}
        match action:
            case Run(node, _, place):
                output, rule = node.outputs[0], fusion_group.rules[node]
                first = rule.first_written(node, done[node])
                made = {(output, first + k): place.slot + k for k in range(rule.out)}
                done[node] += 1
                new = set(made.values())
                slots = {row: s for row, s in slots.items() if row[0] is not output or s not in new} | made
                places = {
                    row: Place(slot, int(fusion_group.rows[row[0]].start[moment]))
                    for row, slot in slots.items()
                }
                found.append(Breakpoint(node, done[node], tuple(made), places))
            case Move(tensor, gone):
                slots = _without(slots, tensor, gone)
            case Close(tensor, gone):
                slots = _without(slots, tensor, gone // fusion_group.rows[tensor].row_bytes)
    return found


def _without(slots: Mapping[Row, int], tensor: Tensor, gone: int) -> dict[Row, int]:
    """The remaining rows after a window drops its oldest ones."""
    moved = {row: slot - gone if row[0] is tensor else slot for row, slot in slots.items()}
    return {row: slot for row, slot in moved.items() if slot >= 0}


def _held(fusion_group: FusionGroup, tensor: Tensor, slot: int, moment: int) -> bool:
    rows = fusion_group.rows[tensor]
    return bool(rows.first[moment] <= slot < rows.behind[moment])


def fewest(found: Sequence[Breakpoint]) -> list[int]:
    """The numbers of stops at which, together, each row is there once: the fewest that do, for each is put off as long
    as nothing is lost."""
    chosen: list[int] = []
    waiting: set[Row] = set()
    for number, breakpoint_ in enumerate(found):
        waiting.update(breakpoint_.made)
        behind = found[number + 1].places if number + 1 < len(found) else {}
        if not waiting <= behind.keys():
            chosen.append(number)
            waiting.clear()
    return chosen
