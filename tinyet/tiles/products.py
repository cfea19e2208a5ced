# SPDX-License-Identifier: Apache-2.0
"""Sums of products of Winograd's convolutions, position by position of the transformed tiles: a description like that
of a tile, and its function.

It is called with the stream of weights, the transformed inputs and where these end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from tinyet.errors import InternalError
from tinyet.tiles import printer
from tinyet.tiles.core import ARMV7E_M, CorePage
from tinyet.tiles.function import OUTER, TURN, Function
from tinyet.tiles.operation import (
    SP,
    Operation,
    bare,
    branch_if_unequal,
    compare,
    compute,
    load,
    store,
    store_several,
)
from tinyet.tiles.registers import Placed, allocated
from tinyet.tiles.schedule import joined, ordered

TILES, CHANNELS = 4, 2
"""Whose sums are in registers at a time."""
SUMS = TILES * CHANNELS
_WEIGHTS, _INPUTS = "weights", "inputs"


def _total(channel: int, tile: int) -> str:
    return f"sum{channel}_{tile}"


_SUMS = tuple(_total(c, t) for c in range(CHANNELS) for t in range(TILES))
_LARGEST_OFFSET = 4095
# On the stack, in bytes from sp: where the inputs end, and those of a position.
_END, _POSITION_END = 0, 4


@dataclass(frozen=True)
class Products:
    """pairs: of input channels. groups: positions of a turn of the loop over these. straight: pairs of straight code,
    at most; turn: of a turn of the loop where there are more.

    The inputs, position by position: for each pair a word of each tile, then room for the sums of the first channel of
    all tiles and those of the second. The stream of weights, position by position:
      what the sums begin with, of each channel | for each pair a word of each channel
    """

    pairs: int
    groups: int
    straight: int = 32
    turn: int = 16

    def __post_init__(self) -> None:
        if self.pairs < 1 or self.groups < 1 or (self.turns and self.groups > 1):
            raise InternalError(
                f"{self}: at least one pair, and one position a turn where there is a loop in it"
            )
        if self.groups * self.step > _LARGEST_OFFSET:
            raise InternalError(f"{self}: {self.groups * self.step} bytes a turn")

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        more = f"_t{self.turn}" if self.turns else ""
        more += f"_g{self.groups}" if self.groups > 1 else ""
        return f"tinyet_products_{TILES}x{CHANNELS}_{self.pairs}p{more}_dsp"

    @property
    def units(self) -> int:
        """Positions of a turn."""
        return self.groups

    @property
    def turns(self) -> int:
        """Of the loop over pairs; 0 where all is straight."""
        return 0 if self.pairs <= self.straight else (self.pairs - 1) // self.turn

    @property
    def before(self) -> int:
        """Pairs of straight code before the loop."""
        return self.pairs - self.turns * self.turn

    @property
    def step(self) -> int:
        """Bytes of inputs and sums from position to position."""
        return 4 * (TILES * self.pairs + SUMS)

    @property
    def group_words(self) -> int:
        """Of the stream, for each position."""
        return CHANNELS * (1 + self.pairs)


@cache
def function(products: Products, page: CorePage = ARMV7E_M) -> Function[Products]:
    found, ends = _sequence(products, page)
    # One instruction stores all sums, in the order of their registers.
    fixed = dict(zip((_WEIGHTS, _INPUTS, *_SUMS), page.registers, strict=False))
    placed = allocated(found, fixed, page, products.name)
    parts = [placed[a:b] for a, b in zip((0, *ends), ends, strict=False)]
    groups = tuple((parts[i], parts[i + 1], parts[i + 2]) for i in range(0, len(parts), 3))
    return Function(products, page, _entry(page), groups, _leave(page))


def _sequence(p: Products, page: CorePage) -> tuple[list[Operation], list[int]]:
    """All of a turn of the loop over positions, and where its parts end."""
    room = len(page.registers) - 2 - SUMS
    found: list[Operation] = []
    ends: list[int] = []
    for group in range(p.groups):
        weights = 4 * group * p.group_words
        head = [load(_total(c, TILES - 1), _WEIGHTS, weights + 4 * c) for c in range(CHANNELS)]
        head += _pairs(weights + 4 * CHANNELS, p.before, begin=True)
        last = 4 * p.group_words * p.groups
        if p.turns:
            found += [
                compute(
                    "addw", "position_end", _INPUTS, behind=f"#{4 * TILES * p.pairs}", step="where it ends"
                ),
                store("position_end", SP, _POSITION_END),
            ]
        found += joined(ordered(head, room, page, _SUMS), page)
        if p.turns:
            found += _moved(4 * CHANNELS * (1 + p.before), 4 * TILES * p.before)
            ends.append(len(found))
            found += joined(ordered(_pairs(0, p.turn, begin=False), room, page, _SUMS), page)
            found += _moved(4 * CHANNELS * p.turn, 4 * TILES * p.turn)
            found += [load("turn_end", SP, _POSITION_END, "again?"), compare(_INPUTS, "turn_end")]
            found.append(branch_if_unequal(TURN))
            last = 0
        else:
            # The sums lie behind the inputs. An address that was computed right before would let the store wait.
            behind = max(i for i, operation in enumerate(found) if operation.is_load(page)) + 1
            found[behind:behind] = _moved(0, 4 * TILES * p.pairs)
            ends.append(len(found))
        ends.append(len(found))
        found.append(store_several(_SUMS, _INPUTS, "the sums"))
        if group == p.groups - 1:
            found.append(load("end", SP, _END, "the next position"))
            found += _moved(last, 0)
            found += [compare(_INPUTS, "end"), branch_if_unequal(OUTER)]
        ends.append(len(found))
    return found, ends


def _pairs(weights: int, count: int, *, begin: bool) -> list[Operation]:
    """Of so many pairs, whose inputs begin where the pointer is. weights: where theirs lie, in bytes from the other.
    begin: the sums of all tiles but the last begin with that of the last."""
    found: list[Operation] = []
    for pair in range(count):
        words = [f"w{pair}_{c}" for c in range(CHANNELS)]
        values = [f"x{pair}_{t}" for t in range(TILES)]
        at = weights + 4 * CHANNELS * pair
        found += [load(w, _WEIGHTS, at + 4 * c, "" if c else f"pair {pair}") for c, w in enumerate(words)]
        at = 4 * TILES * pair
        found += [load(x, _INPUTS, at + 4 * t) for t, x in enumerate(values)]
        # Two tiles at a time: more inputs have no room beside the weights.
        for half in (range(2), range(2, TILES)):
            for t in half:
                for c in range(CHANNELS):
                    begun = _total(c, TILES - 1 if begin and pair == 0 else t)
                    found.append(compute("smlad", _total(c, t), words[c], values[t], begun))
    return found


def _moved(weights: int, inputs: int) -> list[Operation]:
    by = ((_WEIGHTS, weights), (_INPUTS, inputs))
    return [compute("addw", name, name, behind=f"#{bytes_}") for name, bytes_ in by if bytes_]


def _pushed(page: CorePage) -> tuple[str, ...]:
    """The end of the inputs, that of a position, and what the caller wants back."""
    return (page.registers[2], page.registers[3], *page.kept)


def _entry(page: CorePage) -> Placed:
    names = _pushed(page)
    text = f"{{{', '.join((*names, 'lr'))}}}"
    return [
        (bare("push.w", text, len(names) + 1, "the end of the inputs, and what the caller wants back"), {})
    ]


def _leave(page: CorePage) -> Placed:
    popped = (*page.kept, "pc")
    return [
        (Operation("addw", "sp, sp, #8", (SP,), (SP,), step="back"), {SP: SP}),
        (bare("pop.w", f"{{{', '.join(popped)}}}", len(popped)), {SP: SP}),
    ]


@lru_cache(256)
def files(products: Products, page: CorePage = ARMV7E_M) -> dict[str, str]:
    """{name: text} of the header and the source."""
    reference = (f"tinyet_products_dsp(weights, inputs, end, /* pairs */ {products.pairs});",)
    parameters = ("const int32_t *weights", "uint32_t *inputs", "const uint32_t *end")
    return printer.printed(function(products, page), _summary(products), parameters, reference)


def _summary(p: Products) -> str:
    loop = f", {p.turn} in a turn" if p.turns else ""
    return (
        f"Sums of {CHANNELS} channels of {TILES} transformed tiles, {p.groups} positions a turn; pairs of input "
        f"channels: {p.pairs}{loop}.\n * Printed by tinyet/tiles."
    )
