# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers for Helium (MVE): products of a row's inputs with the weights of eight outputs at a time, and
sixteen outputs of int8, or eight of int16, of their sums.

A row is cut into parts of up to eight vectors of inputs, sixteen bytes each, which stay in registers while the weights
of all outputs pass by; VMLADAVA has eight even general registers for its sums. What a function executes is known to the
instruction. The streams are in tinyet_linear_mve.h.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Protocol

from tinyet.errors import InternalError
from tinyet.tiles.header import LICENCE, header_of
from tinyet.tiles.helium import INSTRUCTION_BYTES, LANES
from tinyet.tiles.helium_blocks_s16 import FURTHEST_EXPONENT, bounded, multiplied, narrowed
from tinyet.tiles.helium_floats import GUARD, as_text, rounded_to_even
from tinyet.tiles.helium_order import listed

OUTPUTS = 8
"""Whose sums are in registers."""
BLOCK = 16
"""Outputs of a turn of the rounding."""
MOST_VECTORS = 8
"""Of inputs: all but two stay in registers."""
HEADER = "tinyet_linear_mve.h"
_SUMS = ("r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr")
_REGISTERS = 8
_KEPT = 4
"""Vector registers that a function need not save."""
_END = 4 * 9 + 64
"""Where the last argument of the products lies from sp."""
_GROUP, _SHIFTS = 20, 16
"""Bytes of four outputs' multipliers and shifts, and of the multipliers alone."""


@dataclass(frozen=True)
class Products:
    """Of so many vectors of inputs, added to the sums so far. bits: of an input, 8 or 16; weights are int8."""

    vectors: int
    bits: int = 8

    def __post_init__(self) -> None:
        if not 0 < self.vectors <= MOST_VECTORS or self.bits not in (8, 16):
            raise InternalError(f"no such products: {self}")

    @property
    def name(self) -> str:
        return f"tinyet_linear_products_s{self.bits}_x{self.vectors}_mve"

    @property
    def lanes(self) -> int:
        """Inputs of a vector, and bytes of one of weights."""
        return 8 * LANES // self.bits

    @property
    def parameters(self) -> tuple[str, ...]:
        return (
            "int32_t *sums",
            "const int8_t *inputs",
            "const int32_t *from",
            "const int8_t *weights",
            "const int32_t *end",
        )

    @property
    def summary(self) -> str:
        return f"Products of {self.vectors} x {self.lanes} inputs with the weights of {OUTPUTS} outputs at a time."

    @property
    def reference(self) -> str:
        kind = "" if self.bits == 8 else "s16_"
        return (
            f"tinyet_linear_products_{kind}mve_reference(sums, inputs, from, weights, end, {self.vectors});"
        )

    @property
    def _held(self) -> int:
        """Vectors that stay in registers: one is left for weights, and one for an input that does not stay."""
        return self.vectors if self.vectors < _REGISTERS else _REGISTERS - 2

    @cached_property
    def before(self) -> list[str]:
        return [
            *(
                "push.w {r4-r11, lr}",
                "vpush {d8-d15}",
                "mov.w r5, r0",
                "mov.w r9, r2",
                f"ldr.w r7, [sp, #{_END}]",
            ),
            *(f"vldrb.8 q{i}, [r1, #{LANES * i}]" for i in range(self._held)),
        ]

    @cached_property
    def turn(self) -> list[str]:
        """Of eight outputs."""
        sums, load = ", ".join(_SUMS), "vldrw.32" if self.bits == 8 else "vldrb.s16"
        lines = [f"ldm.w r9!, {{{sums}}}"]
        for i in range(self.vectors):
            vector, spare = f"q{i}", list(range(self._held, _REGISTERS))
            if i >= self._held:
                vector, spare = f"q{_REGISTERS - 2}", [_REGISTERS - 1]
                lines.append(f"vldrb.8 {vector}, [r1, #{LANES * i}]")
            for n, to in enumerate(_SUMS):
                weights = f"q{spare[n % len(spare)]}"
                lines += [
                    f"{load} {weights}, [r3], #{self.lanes}",
                    f"vmladava.s{self.bits} {to}, {vector}, {weights}",
                ]
        return [*lines, f"stm.w r5!, {{{sums}}}", "cmp.w r5, r7", "bne.w 1b"]

    @cached_property
    def behind(self) -> list[str]:
        return ["vpop {d8-d15}", "pop.w {r4-r11, pc}"]


@dataclass(frozen=True)
class Rounding:
    """Sixteen outputs at a time. one_sided: see tinyet_rounding_mve. low, high: whether an output has this bound of its
    own. zero_lowest: the zero point is -128, and outputs are one-sided: without it they are unsigned. even: sums are
    multiplied by a float and rounded to even, in the same way on both sides."""

    one_sided: bool
    low: bool
    high: bool
    zero_lowest: bool
    even: bool = False

    def __post_init__(self) -> None:
        if (self.zero_lowest and (self.low or not self.one_sided)) or (self.even and not self.one_sided):
            raise InternalError(f"no such rounding: {self}")

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        marks = "".join(f"_{n}" for n in ("low", "high", "zero_lowest") if getattr(self, n))
        side = "even" if self.even else "one" if self.one_sided else "two"
        return f"tinyet_linear_outputs_s8_{side}{marks}_mve"

    @property
    def parameters(self) -> tuple[str, ...]:
        return (
            *("const int32_t *sums", "const int8_t *ends", "int8_t *output", "int32_t blocks"),
            "const tinyet_rounding_mve *rounding",
        )

    @property
    def summary(self) -> str:
        return f"Sums to outputs, {BLOCK} at a time."

    @property
    def reference(self) -> str:
        kind = "rne_" if self.even else ""
        return f"tinyet_linear_outputs_{kind}mve_reference(sums, ends, output, blocks, rounding);"

    @property
    def _saved(self) -> str:
        return f"{{d8-d{15 if self.low or self.high else 11}}}"

    @cached_property
    def before(self) -> list[str]:
        """The pointer to multipliers and shifts is a word before them, so that the last load can move it; that to
        floats moves with each load."""
        rounding = 16 + (64 if self.low or self.high else 32)
        needed = [] if self.zero_lowest and not self.high else [f"ldr.w r12, [sp, #{rounding}]"]
        needed += [] if self.even else ["sub.w r1, r1, #4"]
        lines = ["push.w {r4-r6, lr}", f"vpush {self._saved}", *needed]
        lines.append("mov.w r4, #0x80" if self.zero_lowest else "ldr.w r4, [r12, #8]")
        if self.low:
            lines += ["ldr.w r5, [r12, #12]", "vdup.8 q6, r5"]
        if self.high:
            lines += ["ldr.w r6, [r12, #16]", "vdup.8 q7, r6"]
        return [*lines, "dls lr, r3"]

    def _vector(self, i: int) -> Iterator[str]:
        """Four sums to four values in q<i>."""
        x, spare, at = f"q{i}", f"q{_KEPT + i % 2}", 4 + _GROUP * i
        yield f"vldrw.32 {x}, [r0], #16"
        if self.even:
            yield f"vldrw.32 {spare}, [r1], #16"
            yield from rounded_to_even([x], [spare])
            return
        yield f"vldrw.32 {spare}, [r1, #{at}]"
        yield f"vqrdmulh.s32 {spare}, {x}, {spare}"
        if not self.one_sided:
            yield f"vshr.s32 {x}, {x}, #31"
            yield f"vadd.i32 {spare}, {spare}, {x}"
        last = i == _KEPT - 1
        yield f"vldrb.s32 {x}, [r1, #{at + _SHIFTS}]{'!' if last else ''}"
        yield f"vrshl.s32 {x}, {spare}, {x}"

    @cached_property
    def turn(self) -> list[str]:
        lines = [line for i in range(_KEPT) for line in self._vector(i)]
        for bottom, top in ((0, 2), (1, 3)):
            lines += [f"vqmovnb.s32 q{bottom}, q{bottom}", f"vqmovnt.s32 q{bottom}, q{top}"]
        if self.zero_lowest:
            lines += ["vqmovunb.s16 q0, q0", "vqmovunt.s16 q0, q1", "vadd.i8 q0, q0, r4"]
        else:
            lines += [
                "vqadd.s16 q0, q0, r4",
                "vqadd.s16 q1, q1, r4",
                "vqmovnb.s16 q0, q0",
                "vqmovnt.s16 q0, q1",
            ]
        lines += ["vmax.s8 q0, q0, q6"] if self.low else []
        lines += ["vmin.s8 q0, q0, q7"] if self.high else []
        return [*listed([*lines, "vstrb.8 q0, [r2], #16"]), "le lr, 1b"]

    @cached_property
    def behind(self) -> list[str]:
        return [f"vpop {self._saved}", "pop.w {r4-r6, pc}"]


@dataclass(frozen=True)
class Rounding16:
    """Eight outputs of int16 at a time. exponent: that all outputs have in common. low, high: whether an output has
    this bound of its own. last: whether fewer are left for the last turn."""

    exponent: int
    low: bool
    high: bool
    last: bool

    def __post_init__(self) -> None:
        if not 0 <= self.exponent <= FURTHEST_EXPONENT:
            raise InternalError(f"no such rounding: {self}")

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        marks = "".join(f"_{n}" for n in ("low", "high", "last") if getattr(self, n))
        return f"tinyet_linear_outputs_s16_e{self.exponent}{marks}_mve"

    @property
    def parameters(self) -> tuple[str, ...]:
        return (
            *("const int32_t *sums", "const int32_t *multipliers", "int16_t *output", "int32_t count"),
            "const tinyet_rounding_mve *rounding",
        )

    @property
    def summary(self) -> str:
        return f"Sums to outputs, {OUTPUTS} at a time."

    @property
    def reference(self) -> str:
        return f"tinyet_linear_outputs_s16_mve_reference(sums, multipliers, output, count, rounding, {self.exponent});"

    @property
    def _high(self) -> str:
        """The register of this bound: one that need not be saved, where the other bound has not taken it."""
        return "q4" if self.low else "q3"

    @property
    def _saves(self) -> bool:
        return self.low and self.high

    @cached_property
    def before(self) -> list[str]:
        lines = ["push.w {r4, r5, r6, lr}"]
        if self.low or self.high:
            lines.append("ldr.w r12, [sp, #16]")
        lines += ["vpush {d8-d9}"] if self._saves else []
        lines += ["ldr.w r5, [r12, #12]", "vdup.16 q3, r5"] if self.low else []
        lines += ["ldr.w r6, [r12, #16]", f"vdup.16 {self._high}, r6"] if self.high else []
        lines += ["add.w r4, r3, #7"] if self.last else []
        return [*lines, f"lsr.w r4, {'r4' if self.last else 'r3'}, #3", "dls lr, r4"]

    @cached_property
    def turn(self) -> list[str]:
        lines: list[str] = []
        for vector in ("q0", "q1"):
            lines += [f"vldrw.32 {vector}, [r0], #16", "vldrw.32 q2, [r1], #16"]
            lines.append(multiplied(vector, "q2", self.exponent))
        lines += narrowed("q0", "q1", self.exponent)
        lines += bounded(("q0",), "q3" if self.low else None, self._high if self.high else None)
        if self.last:
            lines += ["vctp.16 r3", "sub.w r3, r3, #8", "vpst", "vstrht.16 q0, [r2], #16"]
        else:
            lines.append("vstrh.16 q0, [r2], #16")
        return [*listed(lines), "le lr, 1b"]

    @cached_property
    def behind(self) -> list[str]:
        return [*(["vpop {d8-d9}"] if self._saves else []), "pop.w {r4, r5, r6, pc}"]


class Printed(Hashable, Protocol):
    """A function with one loop. before, turn, behind: its lines."""

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> tuple[str, ...]: ...
    @property
    def summary(self) -> str: ...
    @property
    def reference(self) -> str: ...
    @property
    def before(self) -> list[str]: ...
    @property
    def turn(self) -> list[str]: ...
    @property
    def behind(self) -> list[str]: ...


def code_bytes(printed: Printed) -> int:
    return INSTRUCTION_BYTES * (len(printed.before) + len(printed.turn) + len(printed.behind))


def instructions(printed: Printed, calls: int, turns: int) -> int:
    """Of so many calls, which make so many turns in all."""
    return calls * (len(printed.before) + len(printed.behind)) + turns * len(printed.turn)


@cache
def files(printed: Printed) -> dict[str, str]:
    """{name: text} of the header and the source, one text for GCC and clang; for other cores its reference in C."""
    summary = f"{printed.summary} Printed by tinyet/tiles."
    header = header_of(printed.name, summary, printed.parameters, HEADER)
    return {f"{printed.name}.h": header, f"{printed.name}.c": _source(printed, summary)}


def _source(printed: Printed, summary: str) -> str:
    unused = ",\n    ".join(f"TINYET_MVE_UNUSED {parameter}" for parameter in printed.parameters)
    return "\n".join(
        (
            LICENCE,
            f"/* {summary} {code_bytes(printed)} bytes. */",
            f'#include "{printed.name}.h"',
            "",
            f"#if {GUARD if isinstance(printed, Rounding) and printed.even else 'TINYET_MVE_ASM'}",
            f"__attribute__((naked)) void {printed.name}(\n    {unused}) {{",
            "  __asm__ volatile(",
            *as_text((*printed.before, "1:", *printed.turn, *printed.behind)),
            "  );",
            "}",
            "#else",
            f"void {printed.name}({', '.join(printed.parameters)}) {{",
            f"  {printed.reference}",
            "}",
            "#endif",
            "",
        )
    )
