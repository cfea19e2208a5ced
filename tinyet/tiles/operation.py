# SPDX-License-Identifier: Apache-2.0
"""One instruction whose operands are values that have no registers yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tinyet.errors import InternalError
from tinyet.tiles.core import NUMBERS, CorePage
from tinyet.timing.instruction import Instruction, Kind
from tinyet.timing.vectors import FLAGS

SP = "sp"
_LARGEST_ADDED = 4095
"""Constant of ADDW and SUBW."""
_LOADS = ("load", "load_double", "load_multiple")
_SHIFTED = re.compile(r", (?:asr|lsl|lsr|ror)\b")
_WITH_FLAGS = ("ands.w", "bics.w", "subs.w")
"""Of a register and a constant: they set the flags, too."""
_REGISTER = re.compile(r"\b(?:r\d+|lr|pc)\b")


@dataclass(frozen=True)
class Operation:
    """text: the operands, a value's name in braces where its register stands. writes, reads: values. base: the value,
    or sp, that an address is computed from. words: moved by a transfer of several. ascending: that the registers of
    what is moved (`moved`) must be in ascending order. moves: that the base is written, too, behind what it points at.
    step: what begins here, for a comment; empty for nothing. offset: in bytes from the base, of a load of one register.
    index: the value that is added to the base, where one is.
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
    index: str = ""

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
        """As `tinyet.timing.thumb.decode` has it of the machine's code."""
        return self.instruction(page, lambda value: NUMBERS[registers.get(value, value)])

    def instruction(self, page: CorePage, number: Callable[[str], int]) -> Instruction:
        """The same for registers of any numbers: those of its values."""
        written, reads = tuple(map(number, self.writes)), tuple(map(number, self.reads))
        kind = page.kinds[self.mnemonic]
        base = (number(self.base),) if self.base else ()
        indexed, size, words = bool(self.index), page.instruction_bytes, self.words
        if self.index:
            base = (*base, number(self.index))

        def made(
            kind: Kind = kind,
            results: tuple[int, ...] = written,
            indexed: bool = indexed,
            **roles: Any,
        ) -> Instruction:
            return Instruction(kind, size, words, results=results, indexed=indexed, **roles)

        match kind:
            case "data" | "logic" if self.mnemonic in _WITH_FLAGS:
                return made(results=(*written, FLAGS), operands=reads)
            case "data" | "logic" | "bits":
                if kind == "bits" and len(reads) == 1:
                    return made(shifted=reads)
                if kind != "bits" and _SHIFTED.search(self.text):
                    kind = "shifted"
                # The second of two registers is the one that may be shifted.
                return made(kind, written or (FLAGS,), operands=reads[:1], shifted=reads[1:])
            case "extend" | "saturate" if len(reads) == 1:
                return made(shifted=reads)
            case "multiply_dsp" | "multiply_add" | "multiply_add_long":
                return made(operands=reads[:2], late=reads[2:])
            case "load" | "load_narrow" | "load_double" | "load_multiple":
                results, updated = tuple(sorted(written)), base if self.moves else ()
                if kind == "load_double":
                    results = written
                return made(results=results, address=base, updated=updated, offset=self.offset)
            case "store":
                return made(late=reads[:1], address=base, updated=base if self.moves else ())
            case "store_double":
                return made(late=reads[:2], address=base, updated=base if self.moves else ())
            case "store_multiple" if self.base:
                moved = tuple(r for r in reads if r not in base)
                return made(late=moved, address=base, updated=base if self.moves else ())
            case "load_multiple_pc" if self.base:
                return made(address=base)
            case "table_branch":
                return made(indexed=False, address=base)
            case "store_multiple" | "load_multiple_pc":
                listed = _REGISTER.findall(self.text)
                moved = tuple(page.number(name) for name in listed if name != "pc")
                stack = (number(SP),)
                if kind == "store_multiple":
                    return made(address=stack, updated=stack, late=moved)
                return made(results=moved, address=stack, updated=stack)
            case "branch" if self.mnemonic == "b.w":
                return made()
            case "branch":
                return made(conditional=True, operands=(FLAGS,))
        return made(operands=reads)


def load(to: str, base: str, offset: int, step: str = "") -> Operation:
    text = f"{{{to}}}, {_address(base, offset)}"
    # clang has no wide form of a negative offset, which is always wide.
    mnemonic = "ldr" if offset < 0 else "ldr.w"
    return Operation(mnemonic, text, (to,), _read(base), base, step=step, offset=offset)


def load_half(to: str, base: str, offset: int, step: str = "") -> Operation:
    """Of 16 bits, without a sign."""
    text = f"{{{to}}}, {_address(base, offset)}"
    return Operation("ldrh.w", text, (to,), _read(base), base, step=step, offset=offset)


def load_signed_byte(to: str, base: str, offset: int, step: str = "") -> Operation:
    text = f"{{{to}}}, {_address(base, offset)}"
    return Operation("ldrsb.w", text, (to,), _read(base), base, step=step, offset=offset)


def load_and_move(to: str, base: str, step: str = "") -> Operation:
    """From where the base points, which moves behind it."""
    return Operation("ldr", f"{{{to}}}, [{{{base}}}], #4", (to,), (base,), base, moves=True, step=step)


def load_signed_byte_at(to: str, base: str, index: str) -> Operation:
    """From as many bytes behind the base as another value says."""
    text = f"{{{to}}}, [{{{base}}}, {{{index}}}]"
    return Operation("ldrsb.w", text, (to,), (base, index), base, index=index)


def load_and_step(to: str, base: str, by: int, step: str = "") -> Operation:
    """From where the base points, which moves by so many bytes."""
    return Operation("ldr", f"{{{to}}}, [{{{base}}}], #{by}", (to,), (base,), base, moves=True, step=step)


def load_two(first: str, second: str, base: str, offset: int, step: str = "") -> Operation:
    text = f"{{{first}}}, {{{second}}}, {_address(base, offset)}"
    return Operation("ldrd", text, (first, second), _read(base), base, 2, step=step)


def load_two_and_move(first: str, second: str, base: str, by: int, step: str = "") -> Operation:
    """From where the base points, which moves."""
    text = f"{{{first}}}, {{{second}}}, [{{{base}}}], #{by}"
    return Operation("ldrd", text, (first, second), (base,), base, 2, moves=True, step=step)


def load_neighbours(
    first: str, second: str, base: str, offset: int, page: CorePage, step: str = ""
) -> list[Operation]:
    """Of two words, by one instruction unless loads of one register have others beside them."""
    if page.beside:
        return [load(first, base, offset, step), load(second, base, offset + 4)]
    return [load_two(first, second, base, offset, step)]


def load_neighbours_and_move(
    first: str, second: str, base: str, by: int, page: CorePage, step: str = ""
) -> list[Operation]:
    """The same from where the base points, which moves."""
    if page.beside:
        return [*load_neighbours(first, second, base, 0, page, step), *moved(base, by)]
    return [load_two_and_move(first, second, base, by, step)]


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


def store_byte_at(what: str, base: str, index: str, shift: int = 0) -> Operation:
    """As many bytes behind the base as another value says, shifted to the left."""
    text = f"{{{what}}}, [{{{base}}}, {{{index}}}" + (f", lsl #{shift}]" if shift else "]")
    return Operation("strb.w", text, (), (what, base, index), base, index=index)


def store_and_move(what: str, base: str, by: int) -> Operation:
    """To where the base points, which moves."""
    return Operation("str.w", f"{{{what}}}, [{{{base}}}], #{by}", (), (what, base), base, moves=True)


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


def clamped(value: str, low: int, high: int) -> list[Operation]:
    """Between bounds that are within int8, whatever the value is: of how far it is above one, or below, its sign leaves
    all bits or none."""
    found: list[Operation] = []
    by = 0
    for bound, mnemonic, least in ((low, "bic.w", -128), (high, "and.w", 127)):
        if bound != least:
            found += [
                *moved(value, by - bound),
                compute(mnemonic, value, value, value, behind="asr #31"),
            ]
            by = bound
    return [*found, *moved(value, by)]


def compute(mnemonic: str, to: str, *operands: str, behind: str = "", step: str = "") -> Operation:
    """to = operation(operands); behind: what follows them, a constant or a shift."""
    names = "{" + "}, {".join((to, *operands)) + "}"
    return Operation(mnemonic, f"{names}, {behind}" if behind else names, (to,), operands, step=step)


def accumulate_long(low: str, high: str, *factors: str) -> Operation:
    """The 64 bits of `low` and `high`, to which both products of halves are added."""
    text = ", ".join(f"{{{name}}}" for name in (low, high, *factors))
    return Operation("smlald", text, (low, high), (*factors, low, high))


def saturate(value: str, shift: int = 0, bits: int = 8) -> Operation:
    """To so many bits with a sign, shifted right before."""
    return _saturate("ssat", value, shift, bits)


def saturate_positive(value: str, shift: int, bits: int) -> Operation:
    """To so many bits without a sign, shifted right before."""
    return _saturate("usat", value, shift, bits)


def _saturate(mnemonic: str, value: str, shift: int, bits: int) -> Operation:
    text = f"{{{value}}}, #{bits}, {{{value}}}" + (f", asr #{shift}" if shift else "")
    return Operation(mnemonic, text, (value,), (value,))


def compare(a: str, b: str) -> Operation:
    return Operation("cmp.w", f"{{{a}}}, {{{b}}}", (), (a, b))


def compare_with(a: str, number: int) -> Operation:
    return Operation("cmp.w", f"{{{a}}}, #{number}", (), (a,))


def branch_if_unequal(label: str) -> Operation:
    return Operation("bne.w", f"{label}b")


def skip_if_equal(label: str) -> Operation:
    """On to a label behind."""
    return Operation("beq.w", f"{label}f")


def bare(mnemonic: str, text: str, words: int = 1, step: str = "") -> Operation:
    """With the registers named already; what it writes is no value."""
    return Operation(mnemonic, text.replace("{", "{{").replace("}", "}}"), words=words, step=step)


def _address(base: str, offset: int) -> str:
    register = SP if base == SP else f"{{{base}}}"
    return f"[{register}, #{offset}]" if offset else f"[{register}]"


def _read(base: str) -> tuple[str, ...]:
    return () if base == SP else (base,)
