# SPDX-License-Identifier: Apache-2.0
"""Fusion groups as C: a loop over actions, one case for each layer's tile, in the order that Python has found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tinyet.emit.literals import packed
from tinyet.emit.names import Names
from tinyet.errors import InternalError
from tinyet.ir import Node, Tensor
from tinyet.memory import MemoryPlan
from tinyet.memory.fusion import FusionGroup, Move, Run, Shift
from tinyet.memory.tile_records import Close, Fill, Open, Place, Repeat, Take
from tinyet.opset.call import wrapped


@dataclass(frozen=True)
class Part:
    """`length` entries of the order, which are done `times` times."""

    length: int
    times: int


@dataclass(frozen=True)
class Order:
    """The order of a fusion group's cases, by number, in repeating parts."""

    codes: tuple[int, ...]
    parts: tuple[Part, ...]


def order(actions: Sequence[Case]) -> tuple[Order, dict[Case, int]]:
    """The order of cases, and the number of each distinct one, from its first on."""
    numbers: dict[Case, int] = {}
    codes = [numbers.setdefault(action, len(numbers)) for action in actions]
    kept: list[int] = []
    parts: list[Part] = []
    once = 0  # entries before this one that do not repeat
    at = 0
    while at < len(codes):
        length, times = _repeated(codes, at)
        if times > 1:
            if once:
                parts.append(Part(once, 1))
            parts.append(Part(length, times))
            kept += codes[at : at + length]
            at, once = at + length * times, 0
        else:
            kept.append(codes[at])
            at, once = at + 1, once + 1
    if once:
        parts.append(Part(once, 1))
    return Order(tuple(kept), tuple(parts)), numbers


_WORTH = 6
"""Entries that a repetition has to save: a part of its own takes four bytes."""


def _repeated(codes: Sequence[int], at: int) -> tuple[int, int]:
    """(length, times) of the repetition from `at` on that saves most; (1, 1) where none saves enough."""
    best, saved = (1, 1), _WORTH - 1
    for length in range(1, (len(codes) - at) // 2 + 1):
        times = 1
        while codes[at + times * length : at + (times + 1) * length] == codes[at : at + length]:
            times += 1
        if length * (times - 1) > saved:
            best, saved = (length, times), length * (times - 1)
    return best


@dataclass(frozen=True)
class ParamsView:
    name: str
    ctype: str
    text: str


@dataclass(frozen=True)
class CallView:
    """statement: its lines. copied: the parameters that the call wants in RAM, where they are kept elsewhere, or depend
    on the size of the run; sets: the statements that make the copy those of the size."""

    statement: tuple[str, ...]
    copied: ParamsView | None
    sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class CaseView:
    """A case as the template prints it. ahead: lines before. layer: its number, and call, if it is a layer's tile;
    lines: lines after. takes: the place of a row of the caller's."""

    number: int
    title: str
    notes: tuple[str, ...]
    ahead: Sequence[str]
    layer: int | None
    call: CallView | None
    lines: Sequence[str]
    takes: str = ""


@dataclass(frozen=True)
class FusionGroupView:
    """A fusion group as the template prints it. notes: its layers. pointers: declarations before the loop.
    kept: declarations of variables that advance with the rows; starts: their initial values. tiled_input: the value
    that the caller gives row by row, or nothing. ahead: it comes before the one that takes rows."""

    title: str
    notes: tuple[str, ...]
    pointers: tuple[str, ...]
    kept: tuple[str, ...]
    starts: tuple[str, ...]
    tiled_input: str
    ahead: bool
    code_type: str
    order: tuple[str, ...]
    order_count: int
    parts: tuple[str, ...]
    part_count: int
    cases: tuple[CaseView, ...]


def order_lines(found: Order) -> tuple[str, ...]:
    """The entries as rows of numbers."""
    return tuple(packed([f"{code}," for code in found.codes]))


def part_lines(found: Order) -> tuple[str, ...]:
    """Entries and times of each part."""
    return tuple(packed([f"{{{part.length}u, {part.times}u}}," for part in found.parts]))


class RowPointers:
    """Pointers to the rows of a fusion group's tensors: to slots of windows, and variables that advance with every
    tile of a whole tensor.

    names: of the tensors. at: the address of an offset in the arena. field: before the name of a variable, where it is
    one of a context. variables: declarations of variables that advance, and of the stacked windows' starts; starts:
    statements that set them before the first row.
    """

    def __init__(
        self,
        plan: MemoryPlan,
        fusion_group: FusionGroup,
        names: Mapping[Tensor, str],
        fresh: Names,
        at: Callable[[int], str],
        field: str = "",
    ) -> None:
        self._plan = plan
        self._address = at
        self.fusion_group = fusion_group
        self.names = names
        self.variables: list[str] = []
        self.starts: list[str] = []
        self._moving: dict[tuple[Node, int], str] = {}
        window = fresh.unique("window", "rows")
        self._window = field + window
        self._base = ""
        if fusion_group.stacked_buffers:
            count = fusion_group.windows
            self._base = at(plan.offset(fusion_group.stacked_buffers[0]))
            self.variables.append("/* Where the rows of each window begin, and where they end:")
            for number in range(count):
                there = [
                    names[t] for t in fusion_group.stacked_buffers if fusion_group.rows[t].number == number
                ]
                self.variables += wrapped(f" * {number}: {', '.join(there)}")
            self.variables += [" */", f"uint8_t *{window}[{count}][2];"]
            self.starts.append(f"for (uint32_t i = 0u; i < {count}u; i++) {{")
            self.starts.append(f"  {self._window}[i][0] = {self._window}[i][1] = {self._base};")
            self.starts.append("}")
        starts = _starts(fusion_group)
        for node in fusion_group.nodes:
            places = [(i, node.input(i)) for i in fusion_group.rules[node].inputs]
            if not fusion_group.rules[node].reduces:
                places.append((_OUTPUT, node.outputs[0]))
            for index, tensor in places:
                if fusion_group.rows[tensor].window or fusion_group.rows[tensor].stacked:
                    continue
                variable = fresh.unique(f"{names[tensor]}_rows", "rows")
                const = "" if index == _OUTPUT else "const "
                self.variables.append(f"{const}{tensor.dtype.c} *{variable};")
                self.starts.append(f"{field}{variable} = {self._at(tensor, starts[node, index])};")
                self._moving[node, index] = field + variable

    def _at(self, tensor: Tensor, place: Place) -> str:
        rows = self.fusion_group.rows[tensor]
        size, ctype = tensor.dtype.bytes, tensor.dtype.c
        count = (place.slot - rows.above) * rows.row_bytes // size
        name = self.names[tensor]
        if rows.stacked:
            through = "(void *)" if size > 1 else ""
            name = f"({ctype} *){through}{self._window}[{rows.number}][0]"
        return f"{name} {'-' if count < 0 else '+'} {abs(count)}" if count else name

    def read(self, run: Run, index: int) -> str:
        """The input rows of a layer's tile."""
        moving = self._moving.get((run.node, index))
        return moving or self._at(run.node.input(index), dict(run.reads)[index])

    def written(self, run: Run) -> str:
        """The destination of a layer's tile."""
        if self.fusion_group.rules[run.node].reduces:
            return self.names[run.node.outputs[0]]
        moving = self._moving.get((run.node, _OUTPUT))
        return moving or self._new(run.node.outputs[0], run.writes, self.fusion_group.rules[run.node].out)

    def _new(self, tensor: Tensor, place: Place, rows: int) -> str:
        """The destination of new rows: for a stacked window, at the end to which it has just grown."""
        if not self.fusion_group.rows[tensor].stacked:
            return self._at(tensor, place)
        through = "(void *)" if tensor.dtype.bytes > 1 else ""
        buffer = self.fusion_group.rows[tensor]
        end = f"{self._window}[{buffer.number}][1]"
        return f"({tensor.dtype.c} *){through}({end} - {rows * buffer.row_bytes})"

    def top(self, run: Run) -> str:
        """Scratch memory on top of the stacked buffers."""
        if not self.fusion_group.stacked_buffers:
            return ""
        return f"tinyet_line_buffer_top({self._window}[{run.top}][1])"

    def behind(self, run: Run) -> list[str]:
        """The updates after a tile: variables advance."""
        rule = self.fusion_group.rules[run.node]
        lines = []
        for (node, index), variable in self._moving.items():
            if node is run.node:
                tensor = node.outputs[0] if index == _OUTPUT else node.input(index)
                rows = rule.out - run.again if index == _OUTPUT else self._read_on(run)
                count = rows * self.fusion_group.rows[tensor].row_bytes // tensor.dtype.bytes
                lines.append(f"{variable} += {count};")
        return lines

    def _read_on(self, run: Run) -> int:
        """How many rows of its inputs a layer's next tile lies further."""
        rule = self.fusion_group.rules[run.node]
        return rule.stride - (run.again * rule.stride // rule.out if run.again else 0)

    def opened(self, action: Open) -> list[str]:
        """The window of a tensor grows."""
        window = f"{self._window}[{self.fusion_group.rows[action.tensor].number}]"
        if action.behind is None:
            return [f"{window}[1] += {action.bytes};"]
        below = self._base if action.behind < 0 else f"{self._window}[{action.behind}][1]"
        return [f"{window}[0] = {below};", f"{window}[1] = {window}[0] + {action.bytes};"]

    def shift(self, action: Shift) -> str:
        """The move of several windows."""
        return f"tinyet_line_buffer_shift({self._window}, {action.first}u, {action.last}u, {action.by});"

    def drop(self, action: Move | Close) -> str:
        """The oldest rows of a window are not needed any more."""
        if isinstance(action, Close):
            number = self.fusion_group.rows[action.tensor].number
            return f"{self._window}[{number}][0] += {action.bytes};"
        size = self.fusion_group.rows[action.tensor].row_bytes
        return f"tinyet_line_buffer_drop({self.names[action.tensor]}, {action.gone * size}u, {action.kept * size}u);"

    def fill(self, action: Fill) -> str:
        width = action.tensor.dtype.bytes
        if width > 2 and action.value != 0:
            raise InternalError(f"rows of {action.tensor.name} cannot be set to {action.value}")
        function = (
            "tinyet_line_buffer_fill_s16" if width == 2 and action.value != 0 else "tinyet_line_buffer_fill"
        )
        at = f"(void *)({self._new(action.tensor, action.target, action.rows)})"
        if self._fills_around(action):
            at = self._around(action)
        size = action.rows * self.fusion_group.rows[action.tensor].row_bytes
        return f"{function}({at}, {action.value}, {size}u);"

    def repeat(self, action: Repeat) -> str:
        size, tensor = self.fusion_group.rows[action.tensor].row_bytes, action.tensor
        # Below the image they are at the end of a stacked window, above it at its start.
        place = (
            self._at(tensor, action.target) if action.above else self._new(tensor, action.target, action.rows)
        )
        if self._fills_around(action):
            place = self._around(action)
        where = "above" if action.above else "below"
        return f"tinyet_line_buffer_edge_{where}((void *)({place}), {size}u, {action.rows}u);"

    def _around(self, action: Fill | Repeat) -> str:
        """The address of rows around a whole tensor."""
        rows = self.fusion_group.rows[action.tensor]
        return self._address(self._plan.row_offset(rows, action.target))

    def _fills_around(self, action: Fill | Repeat) -> bool:
        """Whether it sets rows around a whole tensor that the fusion group reads: its own pointer is one to
        constants."""
        rows = self.fusion_group.rows[action.tensor]
        computed = any(action.tensor in node.outputs for node in self.fusion_group.nodes)
        return not (rows.window or rows.stacked or computed)

    def take(self, action: Take) -> str:
        """The destination of the caller's row."""
        return self._new(action.tensor, action.target, 1)


_OUTPUT = -1


def _starts(fusion_group: FusionGroup) -> dict[tuple[Node, int], Place]:
    """The first read position of each input of each layer, and its first write position."""
    found: dict[tuple[Node, int], Place] = {}
    for action in fusion_group.actions:
        if isinstance(action, Run):
            for index, place in (*action.reads, (_OUTPUT, action.writes)):
                found.setdefault((action.node, index), place)
    return found


Tiled = Run | Fill | Repeat | Take | Shift


@dataclass(frozen=True)
class Case:
    """One case of a fusion group: a tile of a layer, padding rows or rows from the caller, with the room that it
    needs and leaves; or a move of stacked windows. Tiles of one layer differ in the slots of their rows."""

    ahead: tuple[Open, ...]
    action: Tiled
    behind: tuple[Move | Close, ...]


def cases(fusion_group: FusionGroup, scratch: Collection[Node]) -> list[Case]:
    """All of a fusion group, in order. scratch: layers whose scratch memory is on top of the stacked buffers."""
    found: list[Case] = []
    ahead: list[Open] = []
    for action in fusion_group.actions:
        match action:
            case Open():
                ahead.append(action)
            case Close() | Move():
                found[-1] = replace(found[-1], behind=(*found[-1].behind, action))
            case Shift(first, last, _, _, by):
                found.append(Case((), Shift(first, last, 0, 0, by), ()))
            case Run(node) if node not in scratch:
                found.append(Case(tuple(ahead), _settled(fusion_group, action._replace(top=0)), ()))
                ahead = []
            case _:
                found.append(Case(tuple(ahead), _settled(fusion_group, action), ()))
                ahead = []
    return found


def _settled(fusion_group: FusionGroup, action: Run | Fill | Repeat | Take) -> Tiled:
    """The action without the places that variables know: rows of whole tensors, and stacked windows, except the rows
    of a window that are read."""
    if not isinstance(action, Run):
        known = fusion_group.rows[action.tensor].stacked
        return replace(action, target=Place(0 if known else action.target.slot))
    reads = []
    for index, place in action.reads:
        rows = fusion_group.rows[action.node.input(index)]
        if rows.window or rows.stacked:
            reads.append((index, Place(place.slot)))
    written = fusion_group.rows.get(action.node.outputs[0])
    slot = action.writes.slot if written is not None and written.window and not written.stacked else 0
    return Run(action.node, tuple(reads), Place(slot), action.again, action.top)
