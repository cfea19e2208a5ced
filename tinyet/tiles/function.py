# SPDX-License-Identifier: Apache-2.0
"""A tile's function: its parts with registers, in the order in which they run, and what they cost.

It is called with the stream of weights, the inputs, the outputs of the first pixel, and where these end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Generic, Protocol, TypeVar

from tinyet.errors import InternalError
from tinyet.tiles import blocks, filling
from tinyet.tiles.blocks import PIXELS, WEIGHTS
from tinyet.tiles.core import ARMV7E_M, CorePage
from tinyet.tiles.operation import (
    SP,
    Operation,
    bare,
    branch_if_unequal,
    compare,
    compute,
    load,
    load_two,
    store,
    store_byte_and_move,
    store_half_and_move,
)
from tinyet.tiles.registers import Placed, allocated
from tinyet.tiles.schedule import joined, ordered, stepped
from tinyet.tiles.tile import Tile
from tinyet.timing.instruction import Instruction
from tinyet.timing.model import Model
from tinyet.timing.work import Work, straight, total

OUTER, TURN = "1", "2"
"""Labels: of the loop over groups of channels, and of that over pairs."""
# On the stack, in bytes from sp; of what has no place among what was given, behind the registers that are kept.
_PIXELS, _OUTPUT = 0, 4

_Block = tuple[Instruction, ...]


class Described(Protocol):
    """What a function is made for. units: that a turn of its outer loop computes. turns: of the loop over pairs."""

    @property
    def name(self) -> str: ...
    @property
    def units(self) -> int: ...
    @property
    def turns(self) -> int: ...


D_co = TypeVar("D_co", bound=Described, covariant=True)


@dataclass(frozen=True)
class Function(Generic[D_co]):
    """entry: before the outer loop, that over groups of channels. groups: of one of its turns, what comes before the
    loop over pairs, a turn of that, and what comes behind it; where there is no such loop the turn is empty. leave:
    behind all.
    """

    tile: D_co
    page: CorePage
    entry: Placed
    groups: tuple[tuple[Placed, Placed, Placed], ...]
    leave: Placed

    def sections(self) -> Iterator[tuple[str, Placed]]:
        """All of it, cut where labels are: (label or "", code)."""
        yield "", self.entry
        outer = OUTER
        for head, turn, tail in self.groups:
            yield outer, head
            yield TURN if turn else "", turn
            yield "", tail
            outer = ""
        yield "", self.leave

    @property
    def code_bytes(self) -> int:
        """Of machine code."""
        parts = [self.entry, *(part for group in self.groups for part in group), self.leave]
        return self.page.instruction_bytes * sum(map(len, parts))

    def work(self, core: Model, units: int) -> Work:
        """What a call executes for so many units, of a tile its channels, a multiple of those of a turn. Not fitted:
        summed up."""
        turns, rest = divmod(units, self.tile.units)
        if rest or not turns:
            raise InternalError(f"{units} units by {self.tile.name}, {self.tile.units} at a time")
        begin, others = self._turn(core)
        once = straight(core, begin) + others
        first = straight(core, self._timed(self.entry) + begin) + others
        leave = _taken(core, self._timed(self.leave))
        back = branch_if_unequal(OUTER).timed(self.page, {})
        again = Work(cycles=core.refill(back), taken_branches=1)
        # Behind a loop over pairs the first turn's end is in the same block as the others'.
        alike = turns + bool(self.groups[-1][1])
        return first + leave + (once + again).times(turns - 1) + _seldom(core, back, alike)

    def _turn(self, core: Model) -> tuple[_Block, Work]:
        """Of the loop over groups of channels, whose branch is not taken: the block that it begins with, which in the
        first turn is one with what runs before it, and all the rest."""
        blocks: list[_Block] = []
        rest = Work()
        block: _Block = ()
        for group in self.groups:
            head, turn, tail = map(self._timed, group)
            block += head
            if turn:
                # The first turn is no block of its own, and the last one's branch is not taken.
                blocks.append(block + turn)
                rest += self._again(core, turn)
                block = ()
            block += tail
        begin, *others = *blocks, block
        return begin, total([rest, *(straight(core, other) for other in others)])

    def _again(self, core: Model, turn: _Block) -> Work:
        """Of all turns but the first of the loop over pairs, and of going back for them."""
        turns = self.tile.turns
        return _taken(core, turn).times(turns - 1) + _seldom(core, turn[-1], turns)

    def _timed(self, part: Placed) -> _Block:
        return tuple(operation.timed(self.page, registers) for operation, registers in part)


def _taken(core: Model, block: _Block) -> Work:
    """Of a block whose last instruction goes elsewhere. Loads begin it, which wait for nothing that ran before."""
    return straight(core, block) + Work(cycles=core.refill(block[-1]), taken_branches=1)


def _seldom(core: Model, back: Instruction, turns: int) -> Work:
    """Of the end of a loop whose branch mostly goes back: the first turn has a branch of its own in what emulators and
    predictors see, for another address came before."""
    return Work(cycles=core.mispredicted(back) if turns > 2 else 0)


@cache
def function(tile: Tile, page: CorePage = ARMV7E_M) -> Function[Tile]:
    """Raises InternalError for a tile that does not fit the core."""
    sequence, ends = _sequence(tile, page)
    placed = allocated(sequence, {WEIGHTS: page.registers[0]}, page, tile.name)
    parts = [placed[a:b] for a, b in zip((0, *ends), ends, strict=False)]
    groups = tuple((parts[i], parts[i + 1], parts[i + 2]) for i in range(0, len(parts), 3))
    return Function(tile, page, _entry(tile, page), groups, _leave(tile, page))


def _sequence(t: Tile, page: CorePage) -> tuple[list[Operation], list[int]]:
    """All of a turn of the loop over channels, and where its parts end."""
    # Registers beside the pointers and the sums.
    room = len(page.registers) - 2 - t.pixels * t.bias_words
    found: list[Operation] = []
    ends: list[int] = []
    for group in range(t.groups):
        head, turn, tail = (_filled if t.filling else _ordered)(t, room, page)
        found += head
        ends.append(len(found))
        if t.turns:
            found += turn
            found.append(load("inputs_end", SP, 4 * (page.given - 1 + len(page.kept)), "again?"))
            found.append(compare(PIXELS, "inputs_end"))
            found.append(branch_if_unequal(TURN))
        ends.append(len(found))
        found += _end(tail + _stored(t, group), room, page)
        ends.append(len(found))
    return found, ends


def _end(operations: list[Operation], room: int, page: CorePage) -> list[Operation]:
    """Rounding and stores, in the core's own order; what ends a turn of the loop over channels stays at the end."""
    if not page.pipeline:
        return operations
    kept = next((i for i, o in enumerate(operations) if page.kinds[o.mnemonic] == "branch"), len(operations))
    return ordered(operations[:kept], room, page) + operations[kept:]


_Parts = tuple[list[Operation], list[Operation], list[Operation]]
"""Of a group of channels: before the loop over pairs, a turn of it, and behind it."""


def _ordered(t: Tile, room: int, page: CorePage) -> _Parts:
    """room: registers for what is neither a pointer nor a sum."""
    head = [blocks.biases(t), load(PIXELS, SP, _PIXELS, "the inputs")]
    head += _looped(t, 0, t.before, room, page)
    turn = _looped(t, t.before, t.turn, room, page) if t.turns else []
    return head, turn, blocks.rounding(t)


def _looped(t: Tile, first: int, pairs: int, room: int, page: CorePage) -> list[Operation]:
    """The products of so many pairs, and the pointers behind them; that of the inputs where more come."""
    sums = {blocks.total(channel, m) for channel in range(t.channels) for m in range(t.pixels)}
    found = ordered(blocks.products(t, first, pairs, page, begin=first == 0), room, page, sums)
    moves = [(WEIGHTS, 4 * pairs * t.words), (PIXELS, 4 * t.words_of(pairs))][: 2 if t.turns else 1]
    if t.at_once:
        moves = []
    if t.lanes is None:
        return [*found, *(_moved(*move) for move in moves)]
    behind = []
    for base, by in moves:
        by_load = stepped(found, base, by)
        if by_load is None:
            behind.append(_moved(base, by))
        else:
            found = by_load
    return [*joined(found, page), *behind]


def _moved(base: str, by: int) -> Operation:
    return compute("addw", base, base, behind=f"#{by}")


def _filled(t: Tile, room: int, page: CorePage) -> _Parts:
    """The same where loads fill the registers."""
    first = [load(PIXELS, SP, _PIXELS, "the inputs")]
    if not t.turns:
        return first + filling.whole(t, room, page), [], []
    return first + filling.head(t, room, page), filling.turn(t, room, page), filling.tail(t, room, page)


def _stored(t: Tile, group: int) -> list[Operation]:
    step = t.channels * t.bits // 8
    first = group * step
    if group < t.groups - 1:
        found = [load("output", SP, _OUTPUT, "the outputs"), *blocks.stores(t, "output", first)]
        return [*found, blocks.stored(t, blocks.total(0, 0), "output", first)]
    found = [load_two("output", "output_end", SP, _OUTPUT, "the outputs"), *blocks.stores(t, "output", first)]
    if group or t.bits == 32:
        found.append(blocks.stored(t, blocks.total(0, 0), "output", first))
        found.append(compute("addw", "output", "output", behind=f"#{step * t.groups}"))
    else:
        store_and_move = store_half_and_move if t.bits == 16 else store_byte_and_move
        found.append(store_and_move(blocks.total(0, 0), "output", step))
    return [
        *found,
        store("output", SP, _OUTPUT),
        compare("output", "output_end"),
        branch_if_unequal(OUTER),
    ]


def _entry(t: Tile, page: CorePage) -> Placed:
    """What is pushed lies in the order of the registers' numbers: first what was given, last the return address."""
    pushed = (*page.registers[1 : page.given], *page.kept)
    home: Mapping[str, str] = {"end": page.spare, "pixels": page.registers[1]}
    found: list[Operation] = []
    if t.turns:
        size = 4 * t.words_of(t.pairs)
        if size > 0xFFFF:
            raise InternalError(f"tile {t.name}: {size} bytes of inputs")
        found.append(Operation("movw", f"{{end}}, #{size}", ("end",), step="where the inputs end"))
        found.append(compute("add.w", "end", "end", "pixels"))
        pushed = (*pushed, page.spare)
    text = f"{{{', '.join((*pushed, 'lr'))}}}"
    found.append(
        bare("push.w", text, len(pushed) + 1, "inputs, outputs, their end, and what the caller wants back")
    )
    return [(operation, home) for operation in found]


def _leave(t: Tile, page: CorePage) -> Placed:
    popped = (*page.kept, *([page.spare] if t.turns else []), "pc")
    home: Mapping[str, str] = {SP: SP}
    return [
        (Operation("addw", f"sp, sp, #{4 * (page.given - 1)}", (SP,), (SP,), step="back"), home),
        (bare("pop.w", f"{{{', '.join(popped)}}}", len(popped)), home),
    ]
