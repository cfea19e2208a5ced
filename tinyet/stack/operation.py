# SPDX-License-Identifier: Apache-2.0
"""The effect of one instruction on the stack pointer and on control flow, on any core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

Flow = Literal[
    "next",
    "branch",  # perhaps to `target`
    "jump",  # to `target`
    "call",  # of `target`
    "call_register",  # of what `register` holds
    "jump_register",  # to it: a call in tail position, a switch, or a return
    "inside",  # to somewhere in the same function: a switch
    "leave",  # a return, a trap
]

Word = Callable[[int], int | None]
"""The word at an address of the image; None where there is none."""


class Operation(NamedTuple):
    """One instruction.

    size: bytes. down: bytes by which the stack pointer sinks (less than 0: it rises); None: it is set from something
    that is no constant here. register, offset: where a register's jump or call goes, as register + offset. loads: a
    register and the constant that is now in it. pops: registers, as bits, whose new value was on the stack.
    makes_conditional: how many instructions behind this one are conditional.
    windowed: registers are windows of a file, and a call may spill other functions' registers.
    """

    size: int
    flow: Flow = "next"
    down: int | None = 0
    target: int = 0
    register: int = -1
    offset: int = 0
    loads: tuple[int, int] | None = None
    pops: int = 0
    makes_conditional: int = 0
    windowed: bool = False


Decoder = Callable[[int, bytes, Word], Operation]
"""Of the address of an instruction and the bytes from there on, at least as many as it has."""


def signed(value: int, bits: int) -> int:
    """The lowest `bits` of a number as a two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
