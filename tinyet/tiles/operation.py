# SPDX-License-Identifier: Apache-2.0
"""One instruction whose operands are values that have no registers yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tinyet.errors import InternalError
from tinyet.tiles.core import CorePage
from tinyet.timing.instruction import PROCESSING, Instruction

SP = "sp"
_LOADS = ("load", "load_double", "load_multiple")


@dataclass(frozen=True)
class Operation:
    """text: the operands, a value's name in braces where its register stands. writes, reads: values. base: the value,
    or sp, that an address is computed from. words: moved by a transfer of several. ascending: that the registers of
    what is moved (`moved`) must be in ascending order. moves: that the base is written, too, behind what it points at.
    step: what begins here, for a comment; empty for nothing. offset: in bytes from the base, of a load of one register.
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

    @property
    def moved(self) -> tuple[str, ...]:
        """By a transfer of several: what is loaded, or stored."""
        return self.writes or tuple(name for name in self.reads if name != self.base)

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

        single = kind in PROCESSING or kind == "load"
        results = (number(self.writes[0]),) if single and self.writes else ()
        address = (number(self.base),) if self.base and kind in ("load", "store", "load_double") else ()
        conditional = kind == "branch"
        return Instruction(kind, page.instruction_bytes, self.words, conditional, results, address=address)


def load(to: str, base: str, offset: int, step: str = "") -> Operation:
    text = f"{{{to}}}, {_address(base, offset)}"
    return Operation("ldr.w", text, (to,), _read(base), base, step=step, offset=offset)


def load_and_move(to: str, base: str, step: str = "") -> Operation:
    """From where the base points, which moves behind it."""
    return Operation("ldr", f"{{{to}}}, [{{{base}}}], #4", (to,), (base,), base, moves=True, step=step)


def load_two(first: str, second: str, base: str, offset: int, step: str = "") -> Operation:
    text = f"{{{first}}}, {{{second}}}, {_address(base, offset)}"
    return Operation("ldrd", text, (first, second), _read(base), base, 2, step=step)


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


def store_several(what: tuple[str, ...], base: str, step: str = "") -> Operation:
    """To where the base points, which moves behind them."""
    if len(what) < 2 or base in what:
        raise InternalError(f"a store of several registers of {what} at {base}")
    names = ", ".join(f"{{{name}}}" for name in what)
    text = f"{{{base}}}!, {{{{{names}}}}}"
    return Operation("stm.w", text, (), (*what, base), base, len(what), True, True, step)


def store_byte(what: str, base: str, offset: int, step: str = "") -> Operation:
    text = f"{{{what}}}, {_address(base, offset)}"
    return Operation("strb.w", text, (), (what, *_read(base)), base, step=step)


def store_byte_and_move(what: str, base: str, by: int) -> Operation:
    """To where the base points, which moves."""
    return Operation("strb", f"{{{what}}}, [{{{base}}}], #{by}", (), (what, base), base, moves=True)


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
