# SPDX-License-Identifier: Apache-2.0
"""Streams as C: a loop over what is done, one case for each layer's strip, in an order that Python has found out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from tinyet.emit.literals import packed
from tinyet.emit.names import Names
from tinyet.errors import InternalError
from tinyet.ir import Node, Tensor
from tinyet.memory.streams import Action, Drop, Fill, Run, Stream, Take, row_bytes


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


def order(actions: Sequence[Hashable]) -> tuple[Order, dict[Hashable, int]]:
    """The order of actions, and the number of each distinct one, from its first on."""
    numbers: dict[Hashable, int] = {}
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
    """A case as the template prints it. layer: its number, and call, where it is a layer's strip; lines: what follows."""

    number: int
    title: str
    notes: tuple[str, ...]
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

    names: of the tensors. variables: declarations of those variables.
    """

    def __init__(self, stream: Stream, names: Mapping[Tensor, str], fresh: Names) -> None:
        self.stream = stream
        self.names = names
        self.variables: list[str] = []
        self._moving: dict[tuple[Node, int], str] = {}
        for node in stream.nodes:
            places = [(i, node.input(i)) for i in stream.rules[node].inputs] + [(_OUTPUT, node.outputs[0])]
            for index, tensor in places:
                rows = stream.rows[tensor]
                if rows.window:
                    continue
                variable = fresh.unique(f"{names[tensor]}_rows", "rows")
                const = "" if index == _OUTPUT else "const "
                start = rows.above if index == _OUTPUT else self._first(node, index)
                begin = start - rows.above
                at = self._plus(names[tensor], tensor, begin)
                self.variables.append(f"{const}{tensor.dtype.c} *{variable} = {at};")
                self._moving[node, index] = variable

    def _first(self, node: Node, index: int) -> int:
        return next(
            slot
            for action in self.stream.actions
            if isinstance(action, Run) and action.node is node
            for i, slot in action.reads
            if i == index
        )

    @staticmethod
    def _plus(name: str, tensor: Tensor, rows: int) -> str:
        count = rows * row_bytes(tensor) // tensor.dtype.bytes
        return f"{name} {'-' if count < 0 else '+'} {abs(count)}" if count else name

    def read(self, run: Run, index: int) -> str:
        """What a strip of a layer reads of an input."""
        tensor = run.node.input(index)
        if self.stream.rows[tensor].window:
            return self._plus(self.names[tensor], tensor, dict(run.reads)[index])
        return self._moving[run.node, index]

    def written(self, run: Run) -> str:
        """Where a strip of a layer goes."""
        tensor = run.node.outputs[0]
        if self.stream.rows[tensor].window:
            return self._plus(self.names[tensor], tensor, run.writes)
        return self._moving[run.node, _OUTPUT]

    def behind(self, run: Run) -> list[str]:
        """What follows a strip: variables go on, windows forget."""
        rule = self.stream.rules[run.node]
        lines = []
        for (node, index), variable in self._moving.items():
            if node is run.node:
                tensor = node.outputs[0] if index == _OUTPUT else node.input(index)
                rows = rule.out if index == _OUTPUT else rule.stride
                lines.append(f"{variable} += {rows * row_bytes(tensor) // tensor.dtype.bytes};")
        return lines + [self._drop(drop) for drop in run.drops]

    def _drop(self, drop: Drop) -> str:
        size = row_bytes(drop.tensor)
        return f"tinyet_rows_drop({self.names[drop.tensor]}, {drop.rows * size}u, {drop.kept * size}u);"

    def fill(self, action: Fill) -> str:
        rows, size = self.stream.rows[action.tensor], row_bytes(action.tensor)
        if action.tensor.dtype.bytes > 1 and action.value != 0:
            raise InternalError(f"rows of {action.tensor.name} cannot be set to {action.value}")
        at = self._plus(self.names[action.tensor], action.tensor, action.slot - rows.above)
        # The bytes of a model's input are the caller's before it runs, and the run's own then.
        return f"tinyet_rows_fill((void *)({at}), {action.value}, {action.rows * size}u);"

    def take(self, action: Take) -> str:
        """Where the caller's row goes."""
        return self._plus(self.names[action.tensor], action.tensor, action.slot)


_OUTPUT = -1


def cases(stream: Stream) -> list[Hashable]:
    """The actions as the cases tell them apart: strips of one layer differ in where windows hold their rows."""
    return [_case(stream, action) for action in stream.actions]


def _case(stream: Stream, action: Action) -> Hashable:
    if not isinstance(action, Run):
        return action
    reads = tuple((i, slot) for i, slot in action.reads if stream.rows[action.node.input(i)].window)
    writes = action.writes if stream.rows[action.node.outputs[0]].window else -1
    return Run(action.node, reads, writes, action.drops)
