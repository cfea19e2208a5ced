# SPDX-License-Identifier: Apache-2.0
"""A fusion group's effect on the arena, action by action: for the checker, which trusts only the operators' rules.
Each row is a value of its own, also padding rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tinyet.errors import InternalError
from tinyet.ir import Node, Tensor
from tinyet.memory.accesses import Access, Alias, Copy, Piece, Span
from tinyet.memory.fusion import FusionGroup, Move, Run, Shift
from tinyet.memory.plan import MemoryPlan
from tinyet.memory.tile_records import Fill, Place, Repeat, Take
from tinyet.opset import TileMap


def _row(tensor: Tensor, row: int) -> str:
    """No tensor's name holds a space."""
    return f"row {row} of {tensor.name}"


def _row_bytes(tensor: Tensor) -> int:
    return tensor.type.bytes // tensor.shape[1]


def _left(tensor: Tensor, tiles: int) -> str:
    """The sums that so many tiles of a reducing layer leave for the next one."""
    return f"what {tiles} tiles make of {tensor.name}"


def _padding(fusion_group: FusionGroup, tensor: Tensor, value: int | str) -> None:
    """Raise InternalError if a layer that reads a tensor has other rows around it."""
    for node, rule in fusion_group.rules.items():
        if (
            any(node.input(i) is tensor for i in rule.inputs)
            and _pads(node, rule, tensor)
            and rule.fill != value
        ):
            raise InternalError(f"around {tensor.name} is {value}, not {rule.fill}", "memory planner")


def _pads(node: Node, rule: TileMap, tensor: Tensor) -> bool:
    last = ((rule.tiles(node) or 0) - 1) * rule.stride - rule.before + rule.window
    return rule.before > 0 or last > tensor.shape[1]


def tile_aliases(fusion_group: FusionGroup) -> list[Alias]:
    """Whole tensors that fusion groups read or write consist of rows."""
    made = {t for node in fusion_group.nodes for t in node.outputs}
    found = []
    for tensor, rows in fusion_group.rows.items():
        size = _row_bytes(tensor)
        if rows.window:
            continue
        if tensor in made:
            pieces = (Piece(r * size, size, _row(tensor, r), 0) for r in range(tensor.shape[1]))
            found.append(Alias(tensor.name, tuple(pieces)))
        else:
            found += [
                Alias(_row(tensor, r), (Piece(0, size, tensor.name, r * size),))
                for r in range(tensor.shape[1])
            ]
    return found


def tile_steps(
    plan: MemoryPlan,
    fusion_group: FusionGroup,
    span: Callable[[Tensor], Span],
    scratch: Mapping[Node, int],
    align: int,
    scratch_align: int,
) -> list[Access | Copy]:
    """The actions in order. The n-th tile of a layer has to find the rows that its operator's rule says.

    Raises InternalError if a layer is not computed as a whole, or a row is set that is no padding.
    """
    done = dict.fromkeys(fusion_group.nodes, 0)
    made = {t for node in fusion_group.nodes for t in node.outputs}
    there = {t for t, rows in fusion_group.rows.items() if not rows.window and t not in made}
    next_row = {t: t.shape[1] if t in there else 0 for t in fusion_group.rows}
    steps: list[Access | Copy] = []

    def at(tensor: Tensor, place: Place) -> int:
        slot = place.slot - fusion_group.rows[tensor].above
        return plan.offset(tensor) + place.start + slot * _row_bytes(tensor)

    def several(tensor: Tensor, row: int, rows: int, place: Place, alignment: int = 1) -> list[Span]:
        """Rows one after another, the first of them aligned."""
        start, size = at(tensor, place), _row_bytes(tensor)
        return [
            Span(_row(tensor, row + k), start + k * size, size, alignment if k == 0 else 1)
            for k in range(rows)
        ]

    def left(node: Node, tiles: int) -> Span:
        return Span(
            _left(node.outputs[0], tiles), plan.scratch.get(node, 0), scratch.get(node, 0), scratch_align
        )

    steps += [
        Access(f"{node.op} {node.outputs[0].name} begins", (), (left(node, 0),))
        for node in fusion_group.nodes
        if fusion_group.rules[node].reduces
    ]
    for number, action in enumerate(fusion_group.actions):
        match action:
            case Fill(tensor, place, count, value):
                rows = fusion_group.rows[tensor]
                above = next_row[tensor] == 0 if rows.window else place.slot < rows.above
                first = -count if above else next_row[tensor]
                if not above and first < tensor.shape[1]:
                    raise InternalError(f"row {first} of {tensor.name} is set to {value}", "memory planner")
                next_row[tensor] += 0 if above else count
                _padding(fusion_group, tensor, value)
                spans = several(tensor, first, count, place)
                steps.append(Access(f"around {tensor.name}", (), tuple(spans)))
            case Repeat(tensor, place, count, above):
                first, source = (-count, 0) if above else (next_row[tensor], tensor.shape[1] - 1)
                if not above and first < tensor.shape[1]:
                    raise InternalError(f"row {first} of {tensor.name} is a copy", "memory planner")
                next_row[tensor] += 0 if above else count
                _padding(fusion_group, tensor, "edge")
                beside = Place(place.slot + (count if above else -1), place.start)
                spans = several(tensor, first, count, place)
                read_row = several(tensor, source, 1, beside)
                steps.append(Access(f"the edge of {tensor.name}", tuple(read_row), tuple(spans)))
            case Take(tensor, place):
                spans = several(tensor, next_row[tensor], 1, place)
                steps.append(Access(f"rows of {tensor.name}", (), tuple(spans)))
                next_row[tensor] += 1
            case Move(tensor, gone, kept):
                source = at(tensor, Place(gone))
                moved = kept * _row_bytes(tensor)
                steps.append(Copy(f"{tensor.name} moves", at(tensor, Place(0)), source, moved))
            case Shift(tensor, start, moved, by):
                source = plan.offset(tensor) + start
                steps.append(Copy(f"what is above {tensor.name} moves", source + by, source, moved))
            case Run(node, reads, place):
                rule, output = fusion_group.rules[node], node.outputs[0]
                first = done[node] * rule.stride - rule.before
                read = []
                for index, where in reads:
                    tensor = node.input(index)
                    read += several(tensor, first, rule.window, where, max(align, tensor.dtype.bytes))
                others = (t for i, t in enumerate(node.inputs) if i not in dict(reads))
                read += [span(t) for t in others if t is not None and not t.is_constant]
                if rule.reduces:
                    before, after = left(node, done[node]), left(node, done[node] + 1)
                    done[node] += 1
                    complete = [span(output)] if done[node] == rule.tiles(node) else []
                    steps.append(
                        Access(
                            f"{node.op} {output.name}, tile {done[node]}",
                            tuple(dict.fromkeys((*read, before))),
                            (after, *complete),
                            overwrites=frozenset({(before.tensor, after.tensor)}),
                        )
                    )
                    continue
                row = done[node] * rule.out
                written = several(output, row, rule.out, place, max(align, output.dtype.bytes))
                size = scratch.get(node, 0)
                top = (
                    plan.offset(fusion_group.stacked_buffers[0]) + int(fusion_group.heights[number])
                    if fusion_group.stacked_buffers
                    else 0
                )
                start = (
                    -(-top // scratch_align) * scratch_align
                    if fusion_group.stacked_buffers
                    else plan.scratch.get(node, 0)
                )
                area = (start, size, scratch_align) if size else None
                name = f"{node.op} {output.name}, rows from {row}"
                steps.append(Access(name, tuple(dict.fromkeys(read)), tuple(written), area))
                done[node] += 1
                next_row[output] += rule.out
    if (
        fusion_group.tiled_input is not None
        and next_row[fusion_group.tiled_input.tensor] < fusion_group.tiled_input.tensor.shape[1]
    ):
        raise InternalError(
            f"not all rows of {fusion_group.tiled_input.tensor.name} are taken", "memory planner"
        )
    for node, count in done.items():
        if count != fusion_group.rules[node].tiles(node):
            raise InternalError(f"{node.op} is computed {count} times by rows", "memory planner")
    return steps
