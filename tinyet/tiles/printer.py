# SPDX-License-Identifier: Apache-2.0
"""A tile's function as C files: one text for GCC and clang, and for cores without the instructions its reference in
C."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from tinyet.tiles.core import ARMV7E_M, CorePage
from tinyet.tiles.form import Form
from tinyet.tiles.function import function
from tinyet.tiles.header import LICENCE, header_of
from tinyet.tiles.registers import Placed
from tinyet.tiles.tile import Tile, Weights

HEADER = "tinyet_tile_dsp.h"
"""Of the reference and of what all tiles have in common; other types of tiles have their own (`types_of`)."""
_PARAMETERS = ("const int32_t *weights", "const uint32_t *pixels", "void *output", "const void *end")


class Named(Protocol):
    @property
    def name(self) -> str: ...


class Printable(Protocol):
    """A function with registers. sections: its code, cut where labels are: (label or "", code)."""

    @property
    def tile(self) -> Named: ...
    @property
    def page(self) -> CorePage: ...
    @property
    def code_bytes(self) -> int: ...
    def sections(self) -> Iterable[tuple[str, Placed]]: ...


@lru_cache(256)
def files(tile: Tile, page: CorePage = ARMV7E_M) -> Mapping[str, str]:
    """{name: text} of the header and the source. Each plan that a search looks at asks for those of the same layers."""
    # Printed files are C++, too, where a pointer to void is no other pointer.
    types = types_of(tile)
    outputs = "output, end" if tile.bits > 8 else "(int8_t *)output, (const int8_t *)end"
    reference = (
        f"const tinyet_tile{types}_shape_dsp shape = {shape_literal(tile)};",
        f"tinyet_tile{types}_dsp(weights, pixels, {outputs}, shape);",
    )
    return printed(function(tile, page), _summary(tile), _PARAMETERS, reference, f"tinyet_tile{types}_dsp.h")


def types_of(t: Tile) -> str:
    """A part of the names of the reference, of the type of its shape, and of the header of both."""
    if t.bits > 8:
        return "_lanes_s16" if t.lanes is not None else "_s16"
    return "_w4" if t.weights.int4 else ""


def printed(
    made: Printable, summary: str, parameters: Sequence[str], reference: Sequence[str], header: str = HEADER
) -> dict[str, str]:
    """The files of a function. reference: what it is in C, for cores without its instructions. header: that of the
    reference."""
    name = made.page.named(made.tile.name)
    return {
        f"{name}.h": header_of(name, summary, parameters, header),
        f"{name}.c": _source(made, summary, parameters, reference, f"{name}.h"),
    }


def library_source(
    made: Printable,
    summary: str,
    parameters: Sequence[str],
    reference: Sequence[str],
    header: str,
    returns: str = "void ",
) -> dict[str, str]:
    """The file of a function of the kernel library, whose declaration and reference are in a written header. returns:
    the type, up to the name. Its addresses are words, as those of code behind its own are computed."""
    return {
        f"{made.tile.name}.c": _source(
            made, summary, parameters, reference, header, returns, "naked, aligned(4)"
        )
    }


def _source(
    made: Printable,
    summary: str,
    parameters: Sequence[str],
    reference: Sequence[str],
    header: str,
    returns: str = "void ",
    attributes: str = "naked",
) -> str:
    name = made.page.named(made.tile.name)
    named = [f"TINYET_TILE_UNUSED {p}" for p in parameters]
    unused = ",\n    ".join(", ".join(line) for line in (named[:2], named[2:]) if line)
    return "\n".join(
        (
            LICENCE,
            f"/* {summary} {made.code_bytes} bytes. */",
            f'#include "{header}"',
            "",
            "#if TINYET_DSP_ASM",
            f"__attribute__(({attributes})) {returns}{name}(\n    {unused}) {{",
            "  __asm__ volatile(",
            *_assembly(made),
            "  );",
            "}",
            "#else",
            f"{returns}{name}({', '.join(parameters)}) {{",
            *(f"  {line}" for line in reference),
            "}",
            "#endif",
            "",
        )
    )


def _assembly(made: Printable) -> list[str]:
    lines: list[str] = []
    for label, code in made.sections():
        lines += [f'      "{label}:\\n"'] if label else []
        lines += _part(code)
    return lines


def _part(part: Placed) -> list[str]:
    lines: list[str] = []
    for operation, registers in part:
        if operation.step:
            lines.append(f"      /* {operation.step} */")
        lines.append(f'      "{operation.printed(registers)}\\n"')
    return lines


def _summary(t: Tile) -> str:
    pixels = "one pixel" if t.pixels == 1 else f"{t.pixels} pixels {t.step} bytes apart"
    weights = {1: "int16 weights", 2: "two int8 weights", 4: "four int4 weights"}[t.weights.of_word]
    two_sided = "of any factor" if t.plain else "two-sided"
    rounding = two_sided if t.exponent is None else f"one-sided, exponent {t.exponent}"
    rounding += ", of 256 times each sum" if t.alike else ""
    if t.bits > 8:
        rounding = f"to int16, exponent {t.exponent}" if t.bits == 16 else "none, sums of int16 values"
    loop = f", {t.turn} in a turn" if t.turns else ""
    return (
        f"Outputs of {pixels}, {t.channels} channels at a time; pairs of input values: {t.pairs}{loop};\n"
        f" * {weights} a word; rounding {rounding}. Printed by tinyet/tiles."
    )


def shape_literal(t: Tile) -> str:
    """The tinyet_tile_shape_dsp, or that of int16 values or int4 weights, as a C initialiser."""
    if t.bits > 8:
        wide, sums = int(t.weights is Weights.WIDE), int(t.bits == 32)
        rounding = f"{{{t.exponent or 0}, {t.low}, {t.high}}}"
        if (at := t.lanes) is not None:
            return (
                f"{{{t.channels}, /* pairs */ {t.pairs}, /* wide */ {wide}, /* sums */ {sums}, /* step */ {t.step},\n"
                f"    /* lanes */ {at.taps}, {at.stride}, {at.dilation}, {rounding}}}"
            )
        return f"{{{t.channels}, /* pairs */ {t.pairs}, /* wide */ {wide}, /* sums */ {sums}, {rounding}}}"
    form = Form.ONE_SIDED if t.exponent is not None else Form.PLAIN if t.plain else Form.TWO_SIDED
    if t.weights.int4:
        return (
            f"{{{t.pixels}, TINYET_TILE_{t.weights.name}, /* alike */ {int(t.alike)}, /* pairs */ {t.pairs}, "
            f"/* step */ {t.step},\n    {{{form.value}, {t.exponent or 0}, -128, 127}}}}"
        )
    packed, crossed = int(t.weights.packed), int(t.weights.crossed)
    return (
        f"{{{t.pixels}, {t.channels}, /* packed */ {packed}, /* crossed */ {crossed}, /* alike */ {int(t.alike)},\n"
        f"    /* pairs */ {t.pairs}, /* step */ {t.step}, {{{form.value}, {t.exponent or 0}, -128, 127}}}}"
    )
