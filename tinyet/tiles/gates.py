# SPDX-License-Identifier: Apache-2.0
"""Sums of the gates of recurrent layers (tinyet_gates_dsp.h), four rows of a matrix at a time by a tile of crossed
weights: a description, and its function.

It is called with the stream of weights, the inputs, what the sums are added to, and how each gate is scaled.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from tinyet.errors import InternalError
from tinyet.tiles import filling, printer
from tinyet.tiles.blocks import PIXELS, WEIGHTS, total
from tinyet.tiles.core import ARMV7E_M, CorePage
from tinyet.tiles.nest import Loop, Nest
from tinyet.tiles.operation import (
    SP,
    Operation,
    bare,
    branch_if_unequal,
    compare,
    compute,
    load,
    load_neighbours,
    load_two,
    moved,
    saturate,
    store,
    store_two,
)
from tinyet.tiles.pieces import placed_in_order
from tinyet.tiles.registers import Placed
from tinyet.tiles.tile import Tile, Weights

HEADER = "tinyet_gates_dsp.h"
"""Of the reference in C."""
GATES, ROWS, FOURS = "1", "2", "3"
"""Labels: of the loop over gates, of that over four rows each, and of that over inputs."""
UNITS = 4
"""Rows whose sums are in registers at a time."""
STRAIGHT, TURN = 6, 4
"""Fours of inputs, at most, without a loop; of a turn of the loop where there are more."""
# On the stack, in bytes from sp: where all sums end; the inputs; the sums; the scaling of a gate.
_ALL, _INPUTS, _SUMS, _GATE = 0, 4, 8, 12
# A tinyet_gate_scaling_dsp, in bytes; where its parts are; and what is in front of the first one.
_SCALING, _FACTOR, _END, _BEFORE, _HEADER = 24, 0, 12, 16, 8
_ONES, _BOTHS = (total(0, 0), total(2, 0)), (total(1, 0), total(3, 0))


class Scaling(enum.Enum):
    """Which factors the gates of a matrix have: below a half, which shift to the right behind the product; others,
    which shift to the left before it; both."""

    RIGHT = "right"
    LEFT = "left"
    ANY = "any"


@dataclass(frozen=True)
class Gates:
    """before: fours of inputs of straight code. turn: fours of a turn of the loop behind them; 0 for no loop. apart:
    what is added is saturated by itself, too.

    The stream of weights is that of a tile of CROSSED weights and four channels, without what rounds; behind the inputs
    is twice the sum of products of neighbours.
    """

    before: int
    turn: int
    scaling: Scaling
    apart: bool = False

    def __post_init__(self) -> None:
        if self.before < 0 or self.turn < 0 or self.before + self.turn < 1:
            raise InternalError(f"{self}: at least four inputs")
        if 0 < self.turn <= self.before:
            raise InternalError(f"{self}: fewer fours before a loop than in a turn")

    @classmethod
    def of(cls, fours: int, scaling: Scaling, apart: bool) -> Gates:
        """For so many fours of inputs."""
        if fours <= STRAIGHT:
            return cls(fours, 0, scaling, apart)
        return cls(fours % TURN, TURN, scaling, apart)

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        loop = f"_t{self.turn}" if self.turn else ""
        apart = "_apart" if self.apart else ""
        return f"tinyet_gates_{self.before}f{loop}_{self.scaling.value}{apart}_dsp"

    @property
    def tile(self) -> Tile:
        """Whose products it has."""
        pairs = 2 * (self.before + self.turn)
        straight, turn = (0, 2 * self.turn) if self.turn else (pairs, pairs)
        return Tile(1, UNITS, Weights.CROSSED, pairs, None, 0, straight=straight, turn=turn, filling=True)


def turns_of(gates: Gates, count: int, rows: int, fours: int) -> Mapping[str, int]:
    """Of each loop, of a call for `count` gates of so many rows, in whole fours, and fours of inputs."""
    return {
        GATES: count,
        ROWS: rows // UNITS,
        FOURS: (fours - gates.before) // gates.turn if gates.turn else 0,
    }


@cache
def function(gates: Gates, page: CorePage = ARMV7E_M) -> Nest[Gates]:
    entry = _entry(gates, page)
    found = [
        load("gate", SP, _GATE, "a gate"),
        *moved("gate", _SCALING),
        store("gate", SP, _GATE),
    ]
    rows = len(found)
    tile, room = gates.tile, len(page.registers) - 2 - UNITS
    found += [load(PIXELS, SP, _INPUTS, "four rows"), *filling.head(tile, room, page)]
    loops = []
    if gates.turn:
        fours = len(found)
        found += filling.turn(tile, room, page)
        found += [
            load("inputs_end", SP, 4 * (page.given + len(page.kept)), "again?"),
            compare(PIXELS, "inputs_end"),
            branch_if_unequal(FOURS),
        ]
        loops.append(Loop(fours, len(found) - 1, FOURS))
    found += _behind(gates, page)
    found += [compare("sums", "end"), branch_if_unequal(ROWS)]
    loops.append(Loop(rows, len(found) - 1, ROWS))
    found += [load("all", SP, _ALL, "the next gate"), compare("sums", "all"), branch_if_unequal(GATES)]
    loops.append(Loop(0, len(found) - 1, GATES))
    body = placed_in_order(found, loops, {WEIGHTS: page.registers[0], SP: SP}, page, gates.name)
    loops = [loop.moved(len(entry)) for loop in loops]
    return Nest(gates, page, [*entry, *body, *_leave(gates, page)], tuple(loops))


def _entry(g: Gates, page: CorePage) -> Placed:
    """Room for the end of all sums, what was given, what the caller wants back, where the inputs end."""
    given = page.registers[: page.given]
    home = {"end": page.spare, "all": given[1], "gates": given[3], SP: SP}
    pushed = (*given, *page.kept, *([page.spare] if g.turn else []), "lr")
    found = [load("end", "gates", 0, "where the inputs end")] if g.turn else []
    # The loop over gates begins by going on to the next one.
    found += moved("gates", _HEADER - _SCALING)
    found.append(bare("push.w", f"{{{', '.join(pushed)}}}", len(pushed), "what was given, and what is kept"))
    found += [load("all", "gates", 4 + _SCALING - _HEADER), store("all", SP, _ALL)]
    return [(operation, home) for operation in found]


def _leave(g: Gates, page: CorePage) -> Placed:
    popped = (*page.kept, *([page.spare] if g.turn else []), "pc")
    home: Mapping[str, str] = {SP: SP}
    return [
        (Operation("addw", f"sp, sp, #{4 * page.given}", (SP,), (SP,), step="back"), home),
        (bare("pop.w", f"{{{', '.join(popped)}}}", len(popped)), home),
    ]


def _behind(g: Gates, page: CorePage) -> list[Operation]:
    """What is behind the products of four rows."""
    found = [load("rest", PIXELS, 0, "without the products of neighbouring inputs")]
    right = g.scaling is Scaling.RIGHT
    for one, both in zip(_ONES, _BOTHS, strict=True):
        if right:
            # Twice each, as the upper word of a product wants it.
            found.append(compute("rsb.w", one, "rest", one, behind="lsl #1"))
            found.append(compute("sub.w", both, both, one, behind="asr #1"))
            found.append(compute("asr.w", both, both, behind="#7"))
        else:
            found.append(compute("sub.w", one, one, "rest", behind="asr #1"))
            found.append(compute("sub.w", both, both, one))
            found.append(compute("asr.w", both, both, behind="#8"))
    found.append(load_two("sums", "gate", SP, _SUMS, "scaling"))
    found += _scaled(g, page)
    found += _added(g, page)
    found.append(load("end", "gate", _END))
    found.append(store_two(_ONES[0], _ONES[1], "sums", 0))
    found += [*moved("sums", 8), store("sums", SP, _SUMS)]
    return found


def _scaled(g: Gates, page: CorePage) -> list[Operation]:
    sums = (_ONES[0], _BOTHS[0], _ONES[1], _BOTHS[1])
    found: list[Operation] = []
    if g.scaling is Scaling.LEFT:
        found += [load("multiplier", "gate", _FACTOR), load("before", "gate", _BEFORE)]
        for s in sums:
            found += [compute("lsl.w", s, s, "before"), compute("smmulr", s, s, "multiplier")]
        return found
    found += load_neighbours("multiplier", "offset", "gate", _FACTOR, page)
    found.append(load("shift", "gate", _FACTOR + 8))
    if g.scaling is Scaling.ANY:
        found += load_neighbours("before", "mask", "gate", _BEFORE, page)
    for s in sums:
        if g.scaling is Scaling.ANY:
            found.append(compute("lsl.w", s, s, "before"))
            found.append(compute("and.w", "corrected", "mask", s, behind="asr #31"))
            found.append(compute("add.w", "corrected", "corrected", "offset"))
        else:
            found.append(compute("add.w", "corrected", "offset", s, behind="asr #31"))
        found.append(compute("smmlar", s, s, "multiplier", "corrected"))
        found.append(compute("asr.w", s, s, "shift"))
    return found


def _added(g: Gates, page: CorePage) -> list[Operation]:
    """To the sums before, saturated."""
    found = load_neighbours("old0", "old1", "sums", 0, page, "added to what was there")
    for old, one, both in zip(("old0", "old1"), _ONES, _BOTHS, strict=True):
        if not g.apart:
            found.append(compute("sxtah", one, one, old))
            found.append(compute("sxtah", both, both, old, behind="ror #16"))
        found += [saturate(one, bits=16), saturate(both, bits=16)]
        found.append(compute("pkhbt", one, one, both, behind="lsl #16"))
        if g.apart:
            found.append(compute("qadd16", one, one, old))
    return found


@lru_cache(256)
def files(gates: Gates, page: CorePage = ARMV7E_M) -> Mapping[str, str]:
    """{name: text} of the header and the source."""
    reference = (f"tinyet_gate_rows_dsp(weights, inputs, sums, gates, /* apart */ {int(gates.apart)});",)
    parameters = (
        "const int32_t *weights",
        "const uint32_t *inputs",
        "int16_t *sums",
        "const tinyet_gates_dsp *gates",
    )
    return printer.printed(function(gates, page), _summary(gates), parameters, reference, HEADER)


def _summary(g: Gates) -> str:
    loop = f" and {g.turn} in a turn" if g.turn else ""
    added = ", each by itself and" if g.apart else ""
    return (
        f"Sums of gates, {UNITS} rows at a time; fours of inputs: {g.before}{loop}; scaled: {g.scaling.value};\n"
        f" * saturated{added} with what they are added to. Printed by tinyet/tiles."
    )
