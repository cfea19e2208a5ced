# SPDX-License-Identifier: Apache-2.0
"""One instruction whose operands are values that have no registers yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tinyet.errors import InternalError
from tinyet.tiles.core import CorePage
from tinyet.timing.instruction import PROCESSING, Instruction

SP = "sp"
_LARGEST_ADDED = 4095
"""Constant of ADDW and SUBW."""
_LOADS = ("load", "load_double", "load_multiple")
_ADDRESSED = ("load", "load_narrow", "store", "load_double", "store_double")


@dataclass(frozen=True)
class Operation:
    """text: the operands, a value's name in braces where its register stands. writes, reads: values. base: the value,
    or sp, that an address is computed from. words: moved by a transfer of several. ascending: that the registers of
    `writes` must be in ascending order. moves: that the base is written, too, behind what it points at. step: what
    begins here, for a comment; empty for nothing. offset: in bytes from the base, of a load of one register.
    """

    mnemonic: str
    text: str
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    base: str = ""
    words: int = 1
    ascending: bool = False
    moves: bool = False
    step: str = ""
    offset: int = 0

    def is_load(self, page: CorePage) -> bool:
        return page.kinds[self.mnemonic] in _LOADS

    def printed(self, registers: Mapping[str, str]) -> str:
        """As the assembler takes it."""
        return f"{self.mnemonic} {self.text.format_map(registers)}".rstrip()

    def timed(self, page: CorePage, registers: Mapping[str, str]) -> Instruction:
        """As `tinyet.timing.thumb.decode` would have it of the machine's code, as far as a table of cycles asks."""
        kind = page.kinds[self.mnemonic]

        def number(value: str) -> int:
            return page.number(registers.get(value, value))

        single = kind in PROCESSING or kind in ("load", "load_narrow")
        results = (number(self.writes[0]),) if single and self.writes else ()
        address = (number(self.base),) if self.base and kind in _ADDRESSED else ()
        conditional = kind == "branch"
        return Instruction(kind, page.instruction_bytes, self.words, conditional, results, address=address)


def load(to: str, base: str, offset: int, step: str = "") -> Operation:
    text = f"{{{to}}}, {_address(base, offset)}"
    return Operation("ldr.w", text, (to,), _read(base), base, step=step, offset=offset)


def load_half(to: str, base: str, offset: int, step: str = "") -> Operation:
    """Of 16 bits, without a sign."""
    return Operation("ldrh.w", f"{{{to}}}, {_address(base, offset)}", (to,), _read(base), base, step=step)


def load_signed_byte(to: str, base: str, offset: int, step: str = "") -> Operation:
    return Operation("ldrsb.w", f"{{{to}}}, {_address(base, offset)}", (to,), _read(base), base, step=step)


def load_and_move(to: str, base: str, step: str = "") -> Operation:
    """From where the base points, which moves behind it."""
    return Operation("ldr", f"{{{to}}}, [{{{base}}}], #4", (to,), (base,), base, moves=True, step=step)


def load_two(first: str, second: str, base: str, offset: int, step: str = "") -> Operation:
    text = f"{{{first}}}, {{{second}}}, {_address(base, offset)}"
    return Operation("ldrd", text, (first, second), _read(base), base, 2, step=step)


def load_two_and_move(first: str, second: str, base: str, by: int, step: str = "") -> Operation:
    """From where the base points, which moves."""
    text = f"{{{first}}}, {{{second}}}, [{{{base}}}], #{by}"
    return Operation("ldrd", text, (first, second), (base,), base, 2, moves=True, step=step)


def load_several(to: tuple[str, ...], base: str, step: str = "") -> Operation:
    """From where the base points, which moves behind them."""
    if len(to) < 2:
        raise InternalError(f"a load of several registers of {to}")
    names = ", ".join(f"{{{name}}}" for name in to)
    return Operation("ldm.w", f"{{{base}}}!, {{{{{names}}}}}", to, (base,), base, len(to), True, True, step)


def store(what: str, base: str, offset: int, step: str = "") -> Operation:
    return Operation(
        "str.w", f"{{{what}}}, {_address(base, offset)}", (), (what, *_read(base)), base, step=step
    )


def store_two(first: str, second: str, base: str, offset: int, step: str = "") -> Operation:
    text = f"{{{first}}}, {{{second}}}, {_address(base, offset)}"
    return Operation("strd", text, (), (first, second, *_read(base)), base, 2, step=step)


def store_half(what: str, base: str, offset: int, step: str = "") -> Operation:
    text = f"{{{what}}}, {_address(base, offset)}"
    return Operation("strh.w", text, (), (what, *_read(base)), base, step=step)


def store_byte(what: str, base: str, offset: int, step: str = "") -> Operation:
    text = f"{{{what}}}, {_address(base, offset)}"
    return Operation("strb.w", text, (), (what, *_read(base)), base, step=step)


def store_byte_and_move(what: str, base: str, by: int) -> Operation:
    """To where the base points, which moves."""
    return Operation("strb", f"{{{what}}}, [{{{base}}}], #{by}", (), (what, base), base, moves=True)


def store_half_and_move(what: str, base: str, by: int) -> Operation:
    """To where the base points, which moves."""
    return Operation("strh", f"{{{what}}}, [{{{base}}}], #{by}", (), (what, base), base, moves=True)


def constant(to: str, value: int, step: str = "") -> list[Operation]:
    """Any word; in two steps where it has more than 16 bits."""
    word = value & 0xFFFFFFFF
    found = [Operation("movw", f"{{{to}}}, #{word & 0xFFFF}", (to,), step=step)]
    if word >> 16:
        found.append(Operation("movt", f"{{{to}}}, #{word >> 16}", (to,), (to,)))
    return found


def moved(what: str, by: int, step: str = "") -> list[Operation]:
    """What is added to a value in its place, by no more instructions than it takes."""
    if by == 0:
        return []
    if abs(by) <= _LARGEST_ADDED:
        return [compute("addw" if by > 0 else "subw", what, what, behind=f"#{abs(by)}", step=step)]
    return [*constant("by", by, step), compute("add.w", what, what, "by")]


def compute(mnemonic: str, to: str, *operands: str, behind: str = "", step: str = "") -> Operation:
    """to = operation(operands); behind: what follows them, a constant or a shift."""
    names = ", ".join(f"{{{name}}}" for name in (to, *operands))
    return Operation(mnemonic, names + (f", {behind}" if behind else ""), (to,), tuple(operands), step=step)


def saturate(value: str, shift: int = 0) -> Operation:
    """To int8, shifted right before."""
    text = f"{{{value}}}, #8, {{{value}}}" + (f", asr #{shift}" if shift else "")
    return Operation("ssat", text, (value,), (value,))


def compare(a: str, b: str) -> Operation:
    return Operation("cmp.w", f"{{{a}}}, {{{b}}}", (), (a, b))


def branch_if_unequal(label: str) -> Operation:
    return Operation("bne.w", f"{label}b")


def bare(mnemonic: str, text: str, words: int = 1, step: str = "") -> Operation:
    """With the registers named already; what it writes is no value."""
    return Operation(mnemonic, text.replace("{", "{{").replace("}", "}}"), words=words, step=step)


def _address(base: str, offset: int) -> str:
    register = SP if base == SP else f"{{{base}}}"
    return f"[{register}, #{offset}]" if offset else f"[{register}]"


def _read(base: str) -> tuple[str, ...]:
    return () if base == SP else (base,)
