# SPDX-License-Identifier: Apache-2.0
"""Streams as C: a loop over what is done, one case for each layer's strip, in an order that Python has found out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tinyet.emit.literals import packed
from tinyet.emit.names import Names
from tinyet.errors import InternalError
from tinyet.ir import Node, Tensor
from tinyet.memory import MemoryPlan
from tinyet.memory.streams import Fill, Move, Place, Run, Stream, Take, row_bytes


@dataclass(frozen=True)
class Part:
    """`length` entries of the order, which are done `times` times."""

    length: int
    times: int


@dataclass(frozen=True)
class Order:
    """What a stream does, as numbers of its cases, in parts that repeat."""

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
class CaseView:
    """A case as the template prints it. ahead: what comes first. layer: its number, and call, where it is a layer's
    strip; lines: what follows."""

    number: int
    title: str
    notes: tuple[str, ...]
    ahead: Sequence[str]
    layer: int | None
    call: object
    lines: Sequence[str]


@dataclass(frozen=True)
class StreamView:
    """A stream as the template prints it. notes: its layers. pointers: declarations before the loop."""

    title: str
    notes: tuple[str, ...]
    pointers: tuple[str, ...]
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
    """What points at the rows of a stream's tensors: at slots of windows; and variables that go on with every strip
    where a tensor is whole.

    names: of the tensors. waiting: where rows of windows wait, as declarations. variables: those that go on, likewise.
    """

    def __init__(self, plan: MemoryPlan, stream: Stream, names: Mapping[Tensor, str], fresh: Names) -> None:
        self.stream = stream
        self.names = names
        self.variables: list[str] = []
        self.waiting: list[str] = []
        self._waiting: dict[Tensor, str] = {}
        self._moving: dict[tuple[Node, int], str] = {}
        for rows in stream.windows:
            if rows.waiting is not None:
                name = self._waiting[rows.tensor] = fresh.unique(f"{names[rows.tensor]}_waiting", "rows")
                ctype, offset = rows.tensor.dtype.c, plan.waiting[rows.tensor]
                through = "(void *)" if rows.tensor.dtype.bytes > 1 else ""
                self.waiting.append(f"{ctype} *const {name} = ({ctype} *){through}(arena + {offset});")
        starts = _starts(stream)
        for node in stream.nodes:
            places = [(i, node.input(i)) for i in stream.rules[node].inputs] + [(_OUTPUT, node.outputs[0])]
            for index, tensor in places:
                if stream.rows[tensor].window:
                    continue
                variable = fresh.unique(f"{names[tensor]}_rows", "rows")
                const = "" if index == _OUTPUT else "const "
                self.variables.append(
                    f"{const}{tensor.dtype.c} *{variable} = {self._at(tensor, starts[node, index])};"
                )
                self._moving[node, index] = variable

    def _at(self, tensor: Tensor, place: Place) -> str:
        rows = self.stream.rows[tensor]
        name = self._waiting[tensor] if place.waiting else self.names[tensor]
        count = (place.slot - rows.above) * rows.row_bytes // tensor.dtype.bytes
        return f"{name} {'-' if count < 0 else '+'} {abs(count)}" if count else name

    def read(self, run: Run, index: int) -> str:
        """What a strip of a layer reads of an input."""
        moving = self._moving.get((run.node, index))
        return moving or self._at(run.node.input(index), dict(run.reads)[index])

    def written(self, run: Run) -> str:
        """Where a strip of a layer goes."""
        return self._moving.get((run.node, _OUTPUT)) or self._at(run.node.outputs[0], run.writes)

    def behind(self, run: Run) -> list[str]:
        """What follows a strip: variables go on."""
        rule = self.stream.rules[run.node]
        lines = []
        for (node, index), variable in self._moving.items():
            if node is run.node:
                tensor = node.outputs[0] if index == _OUTPUT else node.input(index)
                rows = rule.out if index == _OUTPUT else rule.stride
                lines.append(f"{variable} += {rows * row_bytes(tensor) // tensor.dtype.bytes};")
        return lines

    def move(self, action: Move) -> str:
        target, source = (self._at(action.tensor, place) for place in (action.target, action.source))
        return f"tinyet_rows_move({target}, {source}, {action.rows * row_bytes(action.tensor)}u);"

    def fill(self, action: Fill) -> str:
        if action.tensor.dtype.bytes > 1 and action.value != 0:
            raise InternalError(f"rows of {action.tensor.name} cannot be set to {action.value}")
        # The bytes of a model's input are the caller's before it runs, and the run's own then.
        at = f"(void *)({self._at(action.tensor, action.target)})"
        return f"tinyet_rows_fill({at}, {action.value}, {action.rows * row_bytes(action.tensor)}u);"

    def take(self, action: Take) -> str:
        """Where the caller's row goes."""
        return self._at(action.tensor, action.target)


_OUTPUT = -1


def _starts(stream: Stream) -> dict[tuple[Node, int], Place]:
    """Where each layer begins to read each input, and to write."""
    found: dict[tuple[Node, int], Place] = {}
    for action in stream.actions:
        if isinstance(action, Run):
            for index, place in (*action.reads, (_OUTPUT, action.writes)):
                found.setdefault((action.node, index), place)
    return found


@dataclass(frozen=True)
class Case:
    """What is done at once: a strip of a layer, rows around an image or rows from the caller, and what moves for it.
    Strips of one layer differ in where windows hold their rows."""

    ahead: tuple[Move, ...]
    action: Run | Fill | Take
    behind: tuple[Move, ...]


def cases(stream: Stream) -> list[Case]:
    """All of a stream, in order."""
    found: list[Case] = []
    ahead: list[Move] = []
    for action in stream.actions:
        if not isinstance(action, Move):
            found.append(Case(tuple(ahead), _settled(stream, action), ()))
            ahead = []
        elif action.ahead:
            ahead.append(action)
        else:
            found[-1] = replace(found[-1], behind=(*found[-1].behind, action))
    return found


def _settled(stream: Stream, action: Run | Fill | Take) -> Run | Fill | Take:
    """The action without the places that variables know."""
    if not isinstance(action, Run):
        return action
    reads = tuple((i, place) for i, place in action.reads if stream.rows[action.node.input(i)].window)
    window = stream.rows[action.node.outputs[0]].window
    return Run(action.node, reads, action.writes if window else Place(0))
