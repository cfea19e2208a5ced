# SPDX-License-Identifier: Apache-2.0
"""Rows of bytes widened to int16, two in every third word (tinyet_conv2d_packed_dsp.h): one function, for rows of any
number and length.

It is called with where the words go, the bytes, how many of them a row has, how many rows there are, and bytes from the
end of a row's whole words to the next row; it returns where the next words go.
"""

from __future__ import annotations

from functools import cache

from tinyet.tiles import printer
from tinyet.tiles.core import ARMV7E_M, CorePage
from tinyet.tiles.operation import (
    SP,
    Operation,
    bare,
    branch_if_unequal,
    compare,
    compare_with,
    compute,
    load,
    load_and_move,
    load_signed_byte,
    load_signed_byte_at,
    skip_if_equal,
    store_and_move,
)
from tinyet.tiles.routine import Routine, routine, table
from tinyet.timing.model import Model
from tinyet.timing.work import Work

NAME = "tinyet_widened_rows_3_dsp"
HEADER = "tinyet_conv2d_packed_dsp.h"
WIDTH = 3
"""Words from one to the next."""
FOURS = 4
"""Of straight code, each of four bytes."""
_ROW, _LOOP, _REST, _LAST, _NEXT = "1", "2", "3", "4", "5"
"""Labels: of a row, of its whole words, of what is left, of a last byte, and of what comes behind all."""
_KEPT = ("r4", "r5", "r6", "lr")
_FIXED = {
    "to": "r0",
    "from": "r1",
    "values": "r2",
    "rows": "r3",
    "end": "r4",
    "rest": "r4",
    "word": "r5",
    "even": "r6",
    "step": "r12",
    SP: SP,
}


@cache
def function(page: CorePage = ARMV7E_M) -> Routine:
    parts = [
        (
            "",
            [
                bare("push.w", f"{{{', '.join(_KEPT)}}}", len(_KEPT), "what the caller wants back"),
                load("step", SP, 4 * len(_KEPT)),
            ],
        ),
        (_ROW, _begun()),
        ("", _entered(page)),
        (
            _LOOP,
            [*(o for i in range(FOURS) for o in _four(i)), compare("from", "end"), branch_if_unequal(_LOOP)],
        ),
        (_REST, _two()),
        (_LAST, _one()),
        (_NEXT, _again()),
    ]
    return routine(NAME, parts, _FIXED, page)


def _begun() -> list[Operation]:
    return [compute("bics.w", "end", "values", behind="#3", step="a row"), skip_if_equal(_REST)]


def _entered(page: CorePage) -> list[Operation]:
    """The first turn begins where as many fours are left as are none of whole turns."""
    size = page.instruction_bytes * len(_four(0))
    behind = page.instruction_bytes
    return [
        compute("add.w", "end", "end", "from"),
        compute("ubfx", "word", "values", behind="#2, #2"),
        Operation("tbb", "[pc, {word}]", (), ("word",), "pc", index="word"),
        table([behind + size * (-fours % FOURS) for fours in range(FOURS)]),
    ]


def _four(number: int) -> list[Operation]:
    return [
        load_and_move("word", "from", "" if number else "four bytes each"),
        compute("sxtb16", "even", "word"),
        compute("sxtb16", "word", "word", behind="ror #8"),
        store_and_move("even", "to", 4 * WIDTH),
        store_and_move("word", "to", 4 * WIDTH),
    ]


def _two() -> list[Operation]:
    return [
        compute("ands.w", "rest", "values", behind="#3", step="what is left"),
        skip_if_equal(_NEXT),
        compare_with("rest", 1),
        skip_if_equal(_LAST),
        load_signed_byte("word", "from", 0),
        load_signed_byte("even", "from", 1),
        compute("pkhbt", "word", "word", "even", behind="lsl #16"),
        store_and_move("word", "to", 4 * WIDTH),
        compare_with("rest", 2),
        skip_if_equal(_NEXT),
    ]


def _one() -> list[Operation]:
    return [
        compute("and.w", "rest", "rest", behind="#2", step="a last one"),
        load_signed_byte_at("word", "from", "rest"),
        store_and_move("word", "to", 4 * WIDTH),
    ]


def _again() -> list[Operation]:
    popped = (*_KEPT[:-1], "pc")
    return [
        compute("subs.w", "rows", "rows", behind="#1", step="the next row"),
        compute("add.w", "from", "from", "step"),
        branch_if_unequal(_ROW),
        bare("pop.w", f"{{{', '.join(popped)}}}", len(popped)),
    ]


def work(core: Model, values: int, rows: int, page: CorePage = ARMV7E_M) -> Work:
    """Of a call."""
    made = function(page)
    blocks: dict[tuple[int, int, bool], int] = {}

    def add(first: int, taken: bool, times: int) -> int:
        """From a place on to the next branch; where what is behind that begins."""
        last = made.end(first)
        key = first, last, taken
        blocks[key] = blocks.get(key, 0) + times
        return last + 1

    def row(first: int, times: int) -> int:
        """Rows of which each begins there; where the last block of each begins."""
        fours, rest = divmod(values, 4)
        at = add(first, not fours, times)
        if fours:
            add(at, True, times)
            loop = made.place(_LOOP)
            turns, at = -(-fours // FOURS), loop + len(_four(0)) * (-fours % FOURS)
            if turns > 1:
                add(at, True, times)
                add(loop, True, times * (turns - 2))
                at = loop
            at = add(at, False, times)
        else:
            at = made.place(_REST)
        at = add(at, not rest, times)
        if not rest:
            return made.place(_NEXT)
        at = add(at, rest == 1, times)
        if rest == 1:
            return made.place(_LAST)
        at = add(at, rest == 2, times)
        return made.place(_NEXT) if rest == 2 else at

    behind = row(0, 1)
    row(made.place(_ROW), rows - 1)
    add(behind, True, rows - 1)
    add(add(behind, False, 1), True, 1)
    return made.work(core, blocks)


def files(page: CorePage = ARMV7E_M) -> dict[str, str]:
    """{name: text} of the source."""
    reference = ("return tinyet_widened_rows_of_dsp(to, from, values, rows, step);",)
    summary = (
        f"Rows of bytes as pairs of int16 in every third word, {4 * FOURS} bytes of straight code.\n"
        " * Printed by tinyet/tiles."
    )
    parameters = ("uint32_t *to", "const int8_t *from", "int32_t values", "int32_t rows", "int32_t step")
    return printer.library_source(
        function(page), summary, parameters, reference, HEADER, returns="uint32_t *"
    )
