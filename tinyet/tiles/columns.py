# SPDX-License-Identifier: Apache-2.0
"""What four pixels see of a row of int16 values, into lanes (lanes.py): a description, and its function.

It is called with the first value that they see, and where the words go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from tinyet.errors import InternalError
from tinyet.tiles import printer
from tinyet.tiles.core import ARMV7E_M, CorePage
from tinyet.tiles.lanes import PIXELS, Lanes
from tinyet.tiles.nest import Loop, Nest
from tinyet.tiles.operation import (
    Operation,
    bare,
    branch_if_unequal,
    compare,
    compute,
    constant,
    load,
    load_half,
    moved,
    store,
    store_several,
)
from tinyet.tiles.pieces import placed_in_order
from tinyet.tiles.registers import Placed

HEADER = "tinyet_tile_lanes_s16_dsp.h"
"""Of the reference in C."""
PAIRS = "1"
"""Label: of the loop over pairs."""
_FROM, _TO, _END = "from", "to", "end"
_STORED = 8
"""Words of a store, at most."""
_STRAIGHT, _TURN = 12, 8
"""Pairs without a loop, at most, and of a turn of it."""


LARGEST_REACH = 4095
"""Of an address, in bytes."""


@dataclass(frozen=True)
class Columns:
    """lanes: those that it fills. values: that lie together at each column; the last of an odd number has a lane of its
    own, whose upper halves are zero. apart: bytes from column to column."""

    lanes: Lanes
    values: int
    apart: int

    def __post_init__(self) -> None:
        if self.values < 1 or reach_of(self.lanes, self.apart) > LARGEST_REACH:
            raise InternalError(f"{self}: at least a value, and columns as far as an address reaches")

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        return f"tinyet_columns_s16_{self.values}{self.lanes.name}_s{self.apart}_dsp"

    @property
    def places(self) -> list[tuple[int, int]]:
        """(word of a lane, column) of those that pixels see."""
        at = self.lanes
        found = {
            at.place(tap, m): tap * at.dilation + m * at.stride
            for tap in range(at.taps)
            for m in range(PIXELS)
        }
        return sorted(found.items())

    @property
    def turns(self) -> int:
        """Of the loop over pairs; 0 for none."""
        pairs = self.values // 2
        return 0 if pairs <= _STRAIGHT else pairs // _TURN

    @property
    def literal(self) -> str:
        """The tinyet_columns_s16_shape_dsp as a C initialiser."""
        at = self.lanes
        return (
            f"{{{self.values}, /* apart */ {self.apart}, /* lanes */ {at.taps}, {at.stride}, {at.dilation}}}"
        )


def reach_of(lanes: Lanes, apart: int) -> int:
    """Bytes from the first value to behind the last of straight code, of columns so many bytes apart."""
    return (lanes.reach + (PIXELS - 1) * lanes.stride) * apart + 4 * (_STRAIGHT + 1)


def turns_of(columns: Columns) -> Mapping[str, int]:
    """Of each loop, of a call."""
    return {PAIRS: columns.turns}


@cache
def function(columns: Columns, page: CorePage = ARMV7E_M) -> Nest[Columns]:
    turns, pairs = columns.turns, columns.values // 2
    found: list[Operation] = []
    loops: list[Loop] = []
    if turns:
        found += [
            *constant(_END, 4 * _TURN * turns, "where the loop ends"),
            compute("add.w", _END, _END, _FROM),
        ]
        first = len(found)
        found += _pairs(columns, range(_TURN), f"{_TURN} pairs")
        found += [*moved(_FROM, 4 * _TURN), compare(_FROM, _END), branch_if_unequal(PAIRS)]
        loops.append(Loop(first, len(found) - 1, PAIRS))
    rest = range(pairs - turns * _TURN + columns.values % 2)
    found += _pairs(columns, rest, "the others" if turns else "all", last=True)
    lasting = (_FROM, _TO, _END)
    fixed = dict(zip(lasting, page.registers, strict=False))
    free = [r for r in page.registers[len(lasting) :] if r not in page.kept]
    words = sorted((*page.kept, *free), key=page.number)[:_STORED]
    fixed |= {f"w{i}": r for i, r in enumerate(words)}
    placed = placed_in_order(found, loops, fixed, page, columns.name)
    used = {registers[name] for o, registers in placed for name in (*o.reads, *o.writes)}
    saved = [r for r in page.kept if r in used] or [page.kept[0]]
    pushed, popped = (f"{{{', '.join((*saved, last))}}}" for last in ("lr", "pc"))
    begin: Placed = [(bare("push.w", pushed, len(saved) + 1, "what the caller wants back"), {})]
    end: Placed = [(bare("pop.w", popped, len(saved) + 1, "back"), {})]
    return Nest(columns, page, [*begin, *placed, *end], tuple(loop.moved(1) for loop in loops))


def _pairs(columns: Columns, pairs: range, step: str, *, last: bool = False) -> list[Operation]:
    """last: nothing comes behind them; of an odd number of values the last one is alone."""
    odd = last and columns.values % 2 > 0
    found: list[Operation] = []
    words: list[tuple[int, int, int]] = []  # of a store: the word from where `to` was, the pair, the column
    at = 0  # where `to` is

    def flush() -> None:
        nonlocal at, step
        if not words:
            return
        for i, (_, pair, column) in enumerate(words):
            one = load_half if odd and pair == pairs[-1] else load
            found.append(one(f"w{i}", _FROM, column * columns.apart + 4 * pair, step if i == 0 else ""))
        step = ""
        found.extend(moved(_TO, 4 * (words[0][0] - at)))
        names = tuple(f"w{i}" for i in range(len(words)))
        at = words[0][0]
        if len(names) == 1:
            found.append(store(names[0], _TO, 0))
        else:
            found.append(store_several(names, _TO))
            at = words[-1][0] + 1
        words.clear()

    for pair in pairs:
        for word, column in columns.places:
            place = pair * columns.lanes.width + word
            if words and (len(words) == _STORED or words[-1][0] + 1 != place):
                flush()
            words.append((place, pair, column))
    flush()
    if not last:
        found.extend(moved(_TO, 4 * (len(pairs) * columns.lanes.width - at)))
    return found


@lru_cache(256)
def files(columns: Columns, page: CorePage = ARMV7E_M) -> dict[str, str]:
    """{name: text} of the header and the source."""
    reference = (
        f"const tinyet_columns_s16_shape_dsp shape = {columns.literal};",
        "tinyet_columns_s16_dsp(from, to, shape);",
    )
    summary = (
        f"What four pixels see of a row of int16, as words in lanes: columns of {columns.values} values,\n"
        f" * {columns.apart} bytes apart. Printed by tinyet/tiles."
    )
    return printer.printed(
        function(columns, page), summary, ("const int16_t *from", "uint32_t *to"), reference, HEADER
    )
