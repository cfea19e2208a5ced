# SPDX-License-Identifier: Apache-2.0
"""Pools with sliding windows for Helium (MVE): maxima and averages of windows side by side, of as many taps each.

Of int8 sixteen channels at a time for maxima, eight in int16 for averages; of int16 eight, and four in int32. A pointer
for each piece of a row of taps that a load's offset reaches, which moves on with its last load. What a function
executes is known to the instruction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

from tinyet.errors import InternalError
from tinyet.tiles.header import LICENCE, header_of
from tinyet.tiles.helium import INSTRUCTION_BYTES

HEADER = "tinyet_pool_mve.h"
REACH = {8: 127, 16: 254}
"""Of VLDRB and VLDRH, in bytes."""
_POINTERS = ("r0", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10")
_LOW_POINTERS = 6
"""Which loads that widen take."""
_TO, _COUNT, _CHANNELS, _SPARE = "r1", "r2", "r11", "r12"
_START = "r10"
"""Which averages have no pointer in."""
_PARAMETERS = ("const void *from", "void *to", "int32_t count")
MOST_STEP = 4095
"""Of ADDW and SUBW."""


@dataclass(frozen=True)
class Average:
    """(sum + offset, less one if the divisor is even and sum + start negative) * multiplier >> bits + shift, less bias;
    what is multiplied is below 2**bits, which are 16 for sums of int8, 32 for those of int16. start: what taps beside
    the image add, which is in the offset, too."""

    multiplier: int
    shift: int
    offset: int
    bias: int
    even: bool
    start: int
    divisor: int


@dataclass(frozen=True)
class Windows:
    """rows, columns: of taps. row, column: bytes from one to the next; step: from window to window, out_step: from
    output to output. average: None for maxima. bits: of a value, 8 or 16."""

    rows: int
    columns: int
    channels: int
    row: int
    column: int
    step: int
    out_step: int
    average: Average | None
    bits: int = 8

    @property
    def fits(self) -> bool:
        """Whether there are registers for the pointers, and constants for their steps; others have no lines."""
        size = self._bytes * self.vectors
        most = len(_POINTERS) if self.average is None else _LOW_POINTERS
        near = all(abs(step - size) <= MOST_STEP for step in (self.step, self.out_step))
        return near and len(self.pieces) <= most and self.channels < 2**16

    @property
    def name(self) -> str:
        """Says all that it is made for; most constants of averages follow from the divisor, which is the number of taps
        or stands there."""
        kind = "max"
        if self.average is not None:
            a = self.average
            kind = (
                "avg"
                if not a.start and a.divisor == self.rows * self.columns
                else f"avg_{a.divisor}_{a.start}"
            )
            kind = kind.replace("-", "m")
        steps = "_".join(str(n) for n in (self.row, self.column, self.step, self.out_step))
        return f"tinyet_{kind}_windows_s{self.bits}_{self.rows}x{self.columns}x{self.channels}_by_{steps}_mve"

    @property
    def lanes(self) -> int:
        return (128 if self.average is None else 64) // self.bits

    @property
    def _wide(self) -> int:
        """Bits of a lane."""
        return self.bits if self.average is None else 2 * self.bits

    @property
    def _bytes(self) -> int:
        """Of a vector's values."""
        return self.lanes * self.bits // 8

    @property
    def vectors(self) -> int:
        return -(-self.channels // self.lanes)

    @property
    def _whole(self) -> bool:
        """Whether a window is one whole vector."""
        return self.channels == self.lanes

    @cached_property
    def pieces(self) -> list[tuple[int, list[int]]]:
        """(bytes from the first tap to where a pointer stands, offsets from there of all its taps)."""
        found: list[tuple[int, list[int]]] = []
        for ky in range(self.rows):
            at = -1
            for kx in range(self.columns):
                place = ky * self.row + kx * self.column
                if at < 0 or place > at + REACH[self.bits]:
                    at = place
                    found.append((at, []))
                found[-1][1].append(place - at)
        return found

    def _moved(self, step: int) -> tuple[int, int]:
        """Bytes by which a pointer moves with each vector, and behind all of a window."""
        if self.vectors == 1 and step <= REACH[self.bits]:
            return step, 0
        return self._bytes, step - self._bytes * self.vectors

    @cached_property
    def before(self) -> list[str]:
        lines = ["push.w {r4-r11, lr}"]
        for register, (place, _) in zip(_POINTERS, self.pieces, strict=False):
            lines += _added(register, place)
        if (a := self.average) is not None:
            for vector, number in (("q2", a.multiplier), ("q3", a.offset)):
                lines += [*_constant(_SPARE, number, self._wide), f"vdup.{self._wide} {vector}, {_SPARE}"]
            lines += _constant(_SPARE, a.bias, self._wide)
            lines += _constant(_START, a.start, self._wide) if a.even and a.start else []
        return [*lines, f"dls lr, {_COUNT}" if self._whole else f"movw {_CHANNELS}, #{self.channels}"]

    @property
    def ahead(self) -> list[str]:
        """Of a window, before its vectors."""
        return [] if self._whole else [f"dlstp.{self._wide} lr, {_CHANNELS}"]

    @cached_property
    def vector(self) -> list[str]:
        """Of a window, with the end of the loop."""
        lines = self._maxima() if self.average is None else self._averages()
        store = f"vstr{'b' if self.bits == 8 else 'h'}.{self._wide}"
        lines.append(f"{store} q0, [{_TO}], #{self._moved(self.out_step)[0]}")
        return lines if self._whole else [*lines, "letp lr, 2b"]

    @cached_property
    def after(self) -> list[str]:
        """Of a window, behind its vectors."""
        lines = []
        for register in _POINTERS[: len(self.pieces)]:
            lines += _stepped(register, self._moved(self.step)[1])
        lines += _stepped(_TO, self._moved(self.out_step)[1])
        return (
            [*lines, "le lr, 1b"] if self._whole else [*lines, f"subs.w {_COUNT}, {_COUNT}, #1", "bne.w 1b"]
        )

    @cached_property
    def behind(self) -> list[str]:
        return ["pop.w {r4-r11, pc}"]

    def _loads(self) -> list[str]:
        """Addresses of all taps; of each pointer the last one moves it."""
        moved = self._moved(self.step)[0]
        found = []
        for register, (_, offsets) in zip(_POINTERS, self.pieces, strict=False):
            found += [f"[{register}, #{offset}]" for offset in offsets if offset]
            found.append(f"[{register}], #{moved}")
        return found

    def _maxima(self) -> list[str]:
        """Of two chains, since a maximum is there late."""
        lines, load, most = [], "vldrb.8" if self.bits == 8 else "vldrh.16", f"vmax.s{self.bits}"
        for i, address in enumerate(self._loads()):
            if i < 2:
                lines.append(f"{load} q{i}, {address}")
            else:
                lines += [f"{load} q{2 + i % 2}, {address}", f"{most} q{i % 2}, q{i % 2}, q{2 + i % 2}"]
        return [*lines, f"{most} q0, q0, q1"] if self.rows * self.columns > 1 else lines

    def _averages(self) -> list[str]:
        a, wide = self.average, self._wide
        assert a is not None
        load = f"vldr{'b' if self.bits == 8 else 'h'}.s{wide}"
        first, *others = self._loads()
        lines = [f"{load} q0, {first}"]
        for address in others:
            lines += [f"{load} q1, {address}", f"vadd.i{wide} q0, q0, q1"]
        if a.even and a.start:
            lines += [f"vadd.i{wide} q1, q0, {_START}", f"vshr.s{wide} q1, q1, #{wide - 1}"]
        elif a.even:
            lines.append(f"vshr.s{wide} q1, q0, #{wide - 1}")
        lines += [f"vadd.i{wide} q0, q0, q1"] if a.even else []
        lines += [f"vadd.i{wide} q0, q0, q3", f"vmulh.u{wide} q0, q0, q2"]
        lines += [f"vshr.u{wide} q0, q0, #{a.shift}"] if a.shift else []
        return [*lines, f"vsub.i{wide} q0, q0, {_SPARE}"]

    @property
    def lines(self) -> list[str]:
        """All of the function, labels included."""
        if not self.fits:
            raise InternalError(f"no such windows: {self}")
        return [*self.before, "1:", *self.ahead, "2:", *self.vector, *self.after, *self.behind]

    @property
    def code_bytes(self) -> int:
        return INSTRUCTION_BYTES * sum(not line.endswith(":") for line in self.lines)

    def instructions(self, calls: int, windows: int) -> int:
        """Of so many calls, for so many windows in all."""
        each = len(self.ahead) + self.vectors * len(self.vector) + len(self.after)
        return calls * (len(self.before) + len(self.behind)) + windows * each


def _added(register: str, place: int) -> list[str]:
    """Where the first tap is, and so many bytes more."""
    if register == _POINTERS[0]:
        return []
    if place <= MOST_STEP:
        return [f"addw {register}, r0, #{place}"]
    high = [f"movt {register}, #{place >> 16}"] if place >> 16 else []
    return [f"movw {register}, #{place & 0xFFFF}", *high, f"add.w {register}, {register}, r0"]


def _constant(register: str, number: int, bits: int) -> list[str]:
    """So many of its bits."""
    number %= 1 << bits
    high = [f"movt {register}, #{number >> 16}"] if number >> 16 else []
    return [f"movw {register}, #{number & 0xFFFF}", *high]


def _stepped(register: str, step: int) -> list[str]:
    return [f"{'addw' if step > 0 else 'subw'} {register}, {register}, #{abs(step)}"] if step else []


@cache
def files(windows: Windows) -> dict[str, str]:
    """{name: text} of the header and the source, one text for GCC and clang; for other cores its reference in C."""
    header = header_of(windows.name, _summary(windows), _PARAMETERS, HEADER)
    return {f"{windows.name}.h": header, f"{windows.name}.c": _source(windows)}


def _summary(w: Windows) -> str:
    kind = "Maxima" if w.average is None else "Averages"
    return f"{kind} of {w.rows} x {w.columns} taps, {w.channels} channels. Printed by tinyet/tiles."


def reference_of(w: Windows) -> str:
    """The function in C that does the same."""
    return f"tinyet_{'max' if w.average is None else 'avg'}_windows_s{w.bits}_mve_reference"


def reference_fields(w: Windows) -> dict[str, object]:
    """Of its tinyet_windows_mve, but for zeros at the end."""
    a = w.average
    names = ("rows", "columns", "channels", "row", "column", "step", "out_step")
    found: dict[str, object] = {name: getattr(w, name) for name in names}
    if a is None:
        return found
    averages = {"shift": a.shift, "bias": a.bias, "even": int(a.even), "start": a.start}
    return found | {"multiplier": f"{a.multiplier}u", "offset": a.offset} | averages


def _source(w: Windows) -> str:
    unused = ", ".join(f"TINYET_MVE_UNUSED {parameter}" for parameter in _PARAMETERS)
    numbers = ", ".join(f".{name} = {value}" for name, value in reference_fields(w).items())
    return "\n".join(
        (
            LICENCE,
            f"/* {_summary(w)} {w.code_bytes} bytes. */",
            f'#include "{w.name}.h"',
            "",
            "#if TINYET_MVE_ASM",
            f"__attribute__((naked)) void {w.name}(\n    {unused}) {{",
            "  __asm__ volatile(",
            *(f'      "{line}\\n"' for line in w.lines),
            "  );",
            "}",
            "#else",
            f"void {w.name}({', '.join(_PARAMETERS)}) {{",
            f"  static const tinyet_windows_mve shape = {{{numbers}}};",
            f"  {reference_of(w)}(from, to, count, &shape);",
            "}",
            "#endif",
            "",
        )
    )
