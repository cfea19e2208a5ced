# SPDX-License-Identifier: Apache-2.0
"""A fusion group's effect on the arena, action by action: for the checker, which trusts only the operators' rules.
Each strip is a value of its own, also of padding: the rows between two at which a tile or a move begins or ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping

from tinyet.errors import InternalError
from tinyet.ir import Node, Tensor
from tinyet.memory.accesses import Access, Alias, Copy, Piece, Span
from tinyet.memory.fusion import FusionGroup, Move, Run, Shift
from tinyet.memory.plan import MemoryPlan
from tinyet.memory.tile_records import Close, Fill, Open, Place, Repeat, Take
from tinyet.opset import TileMap, in_pieces


def _strip(tensor: Tensor, first: int, end: int) -> str:
    """No tensor's name holds a space."""
    rows = f"row {first}" if end - first == 1 else f"rows {first} to {end - 1}"
    return f"{rows} of {tensor.name}"


def _row_axes(fusion_group: FusionGroup) -> dict[Tensor, int]:
    """The axis that is a tensor's rows. Raise InternalError if it is another one for another layer, if a tensor is
    whole whose rows are in pieces, or a layer takes several such rows at once."""
    found: dict[Tensor, int] = {}
    for node, rule in fusion_group.rules.items():
        reads = [(node.input(index), rule.read, rule.window) for index in rule.inputs]
        for tensor, axis, rows in (*reads, (node.outputs[0], rule.axis, rule.out)):
            if rows and found.setdefault(tensor, axis) != axis:
                raise InternalError(f"{tensor.name} has rows along two axes", "memory planner")
            apart = rows and in_pieces(tensor, axis)
            if apart and (rows > 1 or not fusion_group.rows[tensor].window):
                raise InternalError(f"rows of {tensor.name} do not lie together", "memory planner")
    return found


def _left(tensor: Tensor, tiles: int) -> str:
    """The sums that so many tiles of a reducing layer leave for the next one."""
    return f"what {tiles} tiles make of {tensor.name}"


def _padding(fusion_group: FusionGroup, tensor: Tensor, value: int | str) -> None:
    """Raise InternalError if a layer that reads a tensor has other rows around it."""
    for node, rule in fusion_group.rules.items():
        if (
            any(node.input(i) is tensor for i in rule.inputs)
            and _pads(node, rule, tensor.shape[rule.read])
            and rule.fill != value
        ):
            raise InternalError(f"around {tensor.name} is {value}, not {rule.fill}", "memory planner")


def _pads(node: Node, rule: TileMap, height: int) -> bool:
    last = rule.first_read(node, rule.tiles(node) - 1) + rule.window
    return rule.before > 0 or last > height


class _Strips:
    """Where the rows of a fusion group's tensors are parted. heights: the rows of each."""

    def __init__(self, fusion_group: FusionGroup) -> None:
        self.heights = {t: t.shape[axis] for t, axis in _row_axes(fusion_group).items()}
        parted: dict[Tensor, set[int]] = {t: {0, self.heights[t]} for t in fusion_group.rows}
        for node, rule in fusion_group.rules.items():
            for tile in range(rule.tiles(node)):
                first = rule.first_read(node, tile)
                for index in rule.inputs:
                    parted[node.input(index)] |= {first, first + rule.window}
                if not rule.reduces:
                    first = rule.first_written(node, tile)
                    parted[node.outputs[0]] |= {first, first + rule.out}
            for tensor in (node.input(index) for index in rule.inputs):
                if rule.fill == "edge":
                    parted[tensor] |= {1, self.heights[tensor] - 1}
        if fusion_group.tiled_input is not None:
            tensor = fusion_group.tiled_input.tensor
            parted[tensor] |= {*range(self.heights[tensor])}
        self._parted = {tensor: sorted(rows) for tensor, rows in parted.items()}

    def row_bytes(self, tensor: Tensor) -> int:
        """Of a row."""
        return tensor.type.bytes // self.heights[tensor]

    def of(self, tensor: Tensor, row: int, rows: int) -> list[tuple[int, int]]:
        """(first row, behind the last) of each strip of some rows."""
        parted = self._parted[tensor]
        inner = parted[bisect_right(parted, row) : bisect_right(parted, row + rows - 1)]
        ends = [*inner, row + rows]
        return list(zip([row, *inner], ends, strict=True))


class _Windows:
    """Where the stacked windows begin and end by what the generated C knows of them."""

    def __init__(self, fusion_group: FusionGroup) -> None:
        self._number = {t: rows.number for t, rows in fusion_group.rows.items() if rows.number is not None}
        self._start = [0] * fusion_group.windows
        self._end = [0] * fusion_group.windows

    def change(self, action: Open | Close) -> None:
        """Rows are added, or dropped."""
        k = self._number[action.tensor]
        if isinstance(action, Close):
            self._start[k] += action.bytes
            return
        if action.behind is not None:
            self._start[k] = self._end[k] = self._end[action.behind] if action.behind >= 0 else 0
        self._end[k] += action.bytes

    def move(self, shift: Shift) -> None:
        """Raise InternalError unless these are the bytes of the windows."""
        if (self._start[shift.first], self._end[shift.last]) != (shift.start, shift.start + shift.bytes):
            raise InternalError("other bytes are moved than those of windows", "memory planner")
        for k in range(shift.first, shift.last + 1):
            if self._end[k] > self._start[k]:
                self._start[k] += shift.by
                self._end[k] += shift.by

    def check(self, tensor: Tensor, place: Place) -> None:
        """Raise InternalError unless the window of a tensor begins where a place says."""
        k = self._number.get(tensor)
        if k is not None and self._start[k] != place.start:
            raise InternalError(f"the window of {tensor.name} does not begin there", "memory planner")


def tile_aliases(fusion_group: FusionGroup) -> list[Alias]:
    """Whole tensors that fusion groups read or write consist of rows."""
    made, strips = {t for node in fusion_group.nodes for t in node.outputs}, _Strips(fusion_group)
    found = []
    for tensor, rows in fusion_group.rows.items():
        if rows.window:
            continue
        size = strips.row_bytes(tensor)
        places = [
            (a * size, (b - a) * size, _strip(tensor, a, b))
            for a, b in strips.of(tensor, 0, strips.heights[tensor])
        ]
        if tensor in made:
            found.append(Alias(tensor.name, tuple(Piece(at, count, name, 0) for at, count, name in places)))
        else:
            found += [Alias(name, (Piece(0, count, tensor.name, at),)) for at, count, name in places]
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
    done, strips = dict.fromkeys(fusion_group.nodes, 0), _Strips(fusion_group)
    made = {t for node in fusion_group.nodes for t in node.outputs}
    there = {t for t, rows in fusion_group.rows.items() if not rows.window and t not in made}
    heights = strips.heights
    next_row = {t: heights[t] if t in there else 0 for t in fusion_group.rows}
    steps: list[Access | Copy] = []
    windows = _Windows(fusion_group)

    def at(tensor: Tensor, place: Place) -> int:
        slot = place.slot - fusion_group.rows[tensor].above
        windows.check(tensor, place)
        return plan.offset(tensor) + place.start + slot * strips.row_bytes(tensor)

    def several(tensor: Tensor, row: int, rows: int, place: Place, alignment: int = 1) -> list[Span]:
        """Rows one after another, the first of them aligned."""
        start, size = at(tensor, place), strips.row_bytes(tensor)
        return [
            Span(_strip(tensor, a, b), start + (a - row) * size, (b - a) * size, alignment if a == row else 1)
            for a, b in strips.of(tensor, row, rows)
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
                if not above and first < heights[tensor]:
                    raise InternalError(f"row {first} of {tensor.name} is set to {value}", "memory planner")
                next_row[tensor] += 0 if above else count
                _padding(fusion_group, tensor, value)
                spans = several(tensor, first, count, place)
                steps.append(Access(f"around {tensor.name}", (), tuple(spans)))
            case Repeat(tensor, place, count, above):
                first, source = (-count, 0) if above else (next_row[tensor], heights[tensor] - 1)
                if not above and first < heights[tensor]:
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
                moved = kept * strips.row_bytes(tensor)
                steps.append(Copy(f"{tensor.name} moves", at(tensor, Place(0)), source, moved))
            case Shift(_, _, start, moved, by):
                source = plan.offset(fusion_group.stacked_buffers[0]) + start
                steps.append(Copy("stacked windows move", source + by, source, moved))
                windows.move(action)
            case Open() | Close():
                windows.change(action)
            case Run(node, reads, place):
                rule, output = fusion_group.rules[node], node.outputs[0]
                first = rule.first_read(node, done[node])
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
                row = rule.first_written(node, done[node])
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
                again = frozenset(
                    _strip(output, a, b) for a, b in strips.of(output, row, rule.out) if b <= next_row[output]
                )
                steps.append(Access(name, tuple(dict.fromkeys(read)), tuple(written), area, again=again))
                done[node] += 1
                next_row[output] = row + rule.out
    if (
        fusion_group.tiled_input is not None
        and next_row[fusion_group.tiled_input.tensor] < heights[fusion_group.tiled_input.tensor]
    ):
        raise InternalError(
            f"not all rows of {fusion_group.tiled_input.tensor.name} are taken", "memory planner"
        )
    for node, count in done.items():
        if count != fusion_group.rules[node].tiles(node):
            raise InternalError(f"{node.op} is computed {count} times by rows", "memory planner")
    return steps
