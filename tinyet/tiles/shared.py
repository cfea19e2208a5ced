# SPDX-License-Identifier: Apache-2.0
"""Outputs of three neighbouring pixels, of all their channels, by twos, with two weights in an int16
(tinyet_conv2d_packed_dsp.h): one function, for any number of inputs and channels.

It is called with a tinyet_three_pixels_dsp, whose inputs are words of three pixels. The products of two pairs of inputs
are a step; some steps are straight code, which the first turn of the loop over them enters where as many are left as it
is to run.
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
    constant,
    load,
    load_several,
    load_two,
    load_two_and_move,
    saturate,
    skip_if_equal,
    store,
    store_byte_and_move,
    store_byte_at,
)
from tinyet.tiles.routine import Routine, routine
from tinyet.timing.model import Model
from tinyet.timing.work import Work

NAME = "tinyet_conv2d_packed_3x2_block_dsp"
HEADER = "tinyet_conv2d_packed_dsp.h"
PIXELS = 3
STEPS = 8
"""Of straight code."""
_STEP_PAIRS = 2
_CHANNELS, _LOOP, _TWO_SIDED, _OUTPUTS = "1", "2", "3", "4"
"""Labels: of the loop over channels, of that over inputs, of the second rounding, and of what comes behind both."""
# On the stack, in bytes from sp, behind inputs, their end, and where to begin.
_OUTPUT, _OFFSET, _LAST = 12, 20, 28
_STACK_BYTES = 32

_A, _B = ("a0", "a1", "a2"), ("b0", "b1", "b2")
"""Sums of the first of two channels, and 256 times those of the second and these."""
_X = ("x0", "x1", "x2")
_FIXED = {
    "inputs": "r0",
    "weights": "r1",
    **dict(zip((*_A, *_B), ("r2", "r3", "r4", "r5", "r6", "r7"), strict=True)),
    **dict(zip(_X, ("r8", "r9", "r10"), strict=True)),
    "word0": "r11",
    "word1": "lr",
    "end": "r12",
    # What rounds and stores.
    "multiplier_a": "r8",
    "multiplier_b": "r9",
    "shifts": "r10",
    "offset": "r11",
    "exponent": "r12",
    "corrected0": "r0",
    "corrected1": "lr",
    "corrected2": "r12",
    "output": "r0",
    "step": "lr",
    "last": "r8",
    # What a call begins with.
    "given": "r0",
    "steps": "r1",
    "all": "r2",
    "entry": "r3",
    "by": "r10",
    "straight": "r11",
    "from_output": "r4",
    "from_step": "r5",
    "from_offset": "r6",
    "from_exponent": "r7",
    "from_last": "r8",
    "from_weights": "r9",
    SP: SP,
    "pc": "pc",
}


@cache
def function(page: CorePage = ARMV7E_M) -> Routine:
    parts = [
        ("", _entry(page)),
        (_CHANNELS, _begun()),
        (_LOOP, [operation for i in range(STEPS) for operation in _step(i)] + _again()),
        ("", _one_sided()),
        (_OUTPUTS, _stored(page)),
        (_TWO_SIDED, _two_sided()),
    ]
    return routine(NAME, parts, _FIXED, page)


def _entry(page: CorePage) -> list[Operation]:
    step_bytes = page.instruction_bytes * len(_step(0))
    given = (
        *("inputs", "steps", "from_output", "from_step", "from_offset", "from_exponent"),
        *("from_last", "from_weights"),
    )
    names = ", ".join(f"{{{name}}}" for name in given)
    kept = (*page.kept, "lr")
    pushed = ("r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8")
    return [
        bare("push.w", f"{{{', '.join(kept)}}}", len(kept), "what the caller wants back"),
        Operation("ldm.w", f"{{given}}, {{{{{names}}}}}", given, ("given",), "given", len(given), True),
        *constant("all", 4 * PIXELS * _STEP_PAIRS, "where the inputs end"),
        _product("all", "all", "steps", "inputs"),
        compute("rsb.w", "entry", "steps", behind="#0", step="where the first turn begins"),
        compute("and.w", "entry", "entry", behind=f"#{STEPS - 1}"),
        *constant("by", step_bytes),
        Operation("adr.w", f"{{straight}}, {_LOOP}f", ("straight",), ("pc",)),
        _product("entry", "entry", "by", "straight"),
        compute("orr.w", "entry", "entry", behind="#1"),
        bare("push.w", f"{{{', '.join(pushed)}}}", len(pushed), "what is read again for each two channels"),
        compute("mov.w", "weights", "from_weights"),
    ]


def _product(to: str, a: str, b: str, c: str) -> Operation:
    return Operation("mla", f"{{{to}}}, {{{a}}}, {{{b}}}, {{{c}}}", (to,), (a, b, c))


def _begun() -> list[Operation]:
    """Sums begin with the biases."""
    jump = ("inputs", "end")
    return [
        load_two_and_move("a0", "b0", "weights", 8, "bias"),
        *(compute("mov.w", to, "a0") for to in _A[1:]),
        *(compute("mov.w", to, "b0") for to in _B[1:]),
        Operation("ldmia.w", "sp, {{{inputs}, {end}, pc}}", jump, (SP,), SP, 3, step="the inputs"),
    ]


def _step(number: int) -> list[Operation]:
    first = _STEP_PAIRS * number
    found = [load_two_and_move("word0", "word1", "weights", 8, f"pairs {first} and {first + 1} of a turn")]
    for word in ("word0", "word1"):
        found.append(load_several(_X, "inputs"))
        found += [compute("smlad", b, word, x, b) for b, x in zip(_B, _X, strict=True)]
        found.append(compute("sxtb16", word, word))
        found += [compute("smlad", a, word, x, a) for a, x in zip(_A, _X, strict=True)]
    return found


def _again() -> list[Operation]:
    return [compare("inputs", "end"), branch_if_unequal(_LOOP)]


def _one_sided() -> list[Operation]:
    def rounded(sums: tuple[str, ...], multiplier: str) -> list[Operation]:
        found = [compute("smmla", s, s, multiplier, "offset") for s in sums]
        return found + [compute("asr.w", s, s, "exponent") for s in sums]

    return [
        load_several(("multiplier_a", "multiplier_b", "shifts"), "weights", "rounding"),
        load_two("offset", "exponent", SP, _OFFSET),
        *(compute("sub.w", b, b, a) for a, b in zip(_A, _B, strict=True)),
        compare_with("exponent", 0),
        skip_if_equal(_TWO_SIDED),
        *(compute("lsl.w", s, s, "shifts", step="" if i else "one-sided") for i, s in enumerate(_A)),
        compute("ror.w", "shifts", "shifts", behind="#8"),
        *(compute("asr.w", s, s, "shifts") for s in _B),
        compute("uxtab", "offset", "offset", "shifts", behind="ror #8"),
        *rounded(_A, "multiplier_a"),
        compute("sxtab", "offset", "offset", "shifts", behind="ror #16"),
        *rounded(_B, "multiplier_b"),
    ]


def _two_sided() -> list[Operation]:
    found = [compute("lsl.w", s, s, behind="#1", step="" if i else "two-sided") for i, s in enumerate(_A)]
    found += [compute("asr.w", s, s, behind="#7") for s in _B]
    for sums, multiplier in ((_A, "multiplier_a"), (_B, "multiplier_b")):
        found += [
            compute("lsl.w", "corrected2", "offset", "shifts"),
            compute("asr.w", "corrected2", "corrected2", behind="#1"),
        ]
        corrected = tuple(f"corrected{i}" for i in range(PIXELS))
        found += [
            compute("add.w", c, "corrected2", s, behind="asr #31")
            for c, s in zip(corrected, sums, strict=True)
        ]
        found += [compute("smmlar", s, s, multiplier, c) for c, s in zip(corrected, sums, strict=True)]
        found += [compute("asr.w", s, s, "shifts") for s in sums]
        if sums is _A:
            found.append(compute("ror.w", "shifts", "shifts", behind="#8"))
    return [*found, Operation("b.w", f"{_OUTPUTS}b")]


def _stored(page: CorePage) -> list[Operation]:
    """And the next two channels, or the end."""
    found = [load_two("output", "step", SP, _OUTPUT, "the outputs"), load("last", SP, _LAST)]
    found += [saturate(s) for s in (*_A, *_B)]
    for sums in (_A, _B):
        found += [
            store_byte_at(sums[2], "output", "step", 1),
            store_byte_at(sums[1], "output", "step"),
            store_byte_and_move(sums[0], "output", 1),
        ]
    popped = (*page.kept, "pc")
    return [
        *found,
        store("output", SP, _OUTPUT),
        compare("output", "last"),
        branch_if_unequal(_CHANNELS),
        Operation("addw", f"sp, sp, #{_STACK_BYTES}", (SP,), (SP,), step="back"),
        bare("pop.w", f"{{{', '.join(popped)}}}", len(popped)),
    ]


def work(core: Model, steps: int, doubles: int, *, one_sided: bool, page: CorePage = ARMV7E_M) -> Work:
    """Of a call. steps: of two pairs of inputs each. doubles: two channels each."""
    made = function(page)
    blocks: dict[tuple[int, int, bool], int] = {}

    def add(first: int, taken: bool, times: int) -> int:
        """From a place on to the next branch; where what is behind that begins."""
        last = made.end(first)
        key = first, last, taken
        blocks[key] = blocks.get(key, 0) + times
        return last + 1

    add(0, True, 1)
    add(made.place(_CHANNELS), True, doubles - 1)
    loop = made.place(_LOOP)
    turns, entered = -(-steps // STEPS), loop + len(_step(0)) * (-steps % STEPS)
    if turns > 1:
        add(entered, True, doubles)
        add(loop, True, doubles * (turns - 2))
        entered = loop
    ends = add(entered, False, doubles)
    outputs = made.place(_OUTPUTS)
    begun = add(ends, not one_sided, doubles)
    if not one_sided:
        add(made.place(_TWO_SIDED), True, doubles)
        begun = outputs
    add(begun, True, doubles - 1)
    add(add(begun, False, 1), True, 1)
    return made.work(core, blocks)


def files(page: CorePage = ARMV7E_M) -> dict[str, str]:
    """{name: text} of the source."""
    reference = ("tinyet_three_pixels_of_dsp(block);",)
    summary = (
        f"All output channels of {PIXELS} pixels, by twos: two weights an int16, {2 * STEPS} pairs of input values of\n"
        " * straight code. Printed by tinyet/tiles."
    )
    return printer.library_source(
        function(page), summary, ("const tinyet_three_pixels_dsp *block",), reference, HEADER
    )
