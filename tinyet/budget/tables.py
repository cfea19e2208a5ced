# SPDX-License-Identifier: Apache-2.0
"""Measured sizes: each kernel after linking on a core, and the rest of a firmware on a board.

The tables in `linked/` are written by `benchmarks/linked.py` and come with the toolchain that they were measured with.
They are all that is known before a build: the same whether there is a compiler on this machine or not.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tinyet.boards import Board
from tinyet.boards.cpus import Target
from tinyet.opset.cost import core_of

LINKED = Path(__file__).parent / "linked"
AROUND = LINKED / "around.json"


@dataclass(frozen=True)
class Library:
    """A C function of the library. needs: the functions and constants that are linked for it, itself included, by their
    names. stack: the most bytes that it takes with all that it calls."""

    needs: tuple[str, ...]
    stack: int


@dataclass(frozen=True)
class Made:
    """Functions that a kernel makes for layers. stack: the most bytes that one of the measured takes, beside the
    frame that its call states. ratio: linked bytes of all to those stated. above: the most by which one is larger than
    by that ratio, as a share of it."""

    stack: int
    ratio: float
    above: float


@dataclass(frozen=True)
class Core:
    """sizes: bytes of every function and constant of the library, by name, each at a multiple of four. library: by the
    function's name in C. made: by the kernel's."""

    toolchain: str
    sizes: Mapping[str, int]
    library: Mapping[str, Library]
    made: Mapping[str, Made]

    @functools.cached_property
    def largest(self) -> Made:
        """An upper bound over all measured kernels, for kernels without a measurement."""
        found = self.made.values()
        return Made(
            max((made.stack for made in found), default=0),
            1.0,
            max((made.above for made in found), default=0.0),
        )


@dataclass(frozen=True)
class Around:
    """The size of a firmware with the generated main(), without its model.

    ram: bytes of static data. functions: bytes by name, of every firmware; reals: of those that print real numbers.
    first, more: bytes of main.c for the first output and for each further one, by the kind of its numbers: "quantized",
    "real" or "whole". input: bytes of it for each input but the first.
    """

    ram: int
    functions: Mapping[str, int]
    reals: Mapping[str, int]
    first: Mapping[str, int]
    more: Mapping[str, int]
    input: int


def table_of(target: Target) -> str:
    """The name of a core's table: GCC's code for it, with or without an FPU."""
    return core_of(target) + ("-fpu" if "fpu" in target.features else "")


@functools.cache
def core_table(name: str) -> Core | None:
    """A core's table; None where nothing was measured."""
    path = LINKED / f"{name}.json"
    if not path.is_file():
        return None
    table = json.loads(path.read_text(encoding="utf-8"))
    return Core(
        table["toolchain"],
        table["sizes"],
        {name: Library(tuple(one["needs"]), one["stack"]) for name, one in table["library"].items()},
        {name: Made(one["stack"], one["ratio"], one["above"]) for name, one in table["made"].items()},
    )


def support_of(board: Board) -> str:
    """The sources of a bare-metal board's firmware beside the model: core, UART and counter."""
    driver = "" if board.uart is None else board.uart.driver
    return " ".join([board.cpu, *sorted(board.target.features), driver, board.counter or ""])


@functools.cache
def _supports() -> Mapping[str, Around]:
    table = json.loads(AROUND.read_text(encoding="utf-8")) if AROUND.is_file() else {}
    return {name: Around(**one) for name, one in table.items()}


def around_table(board: Board) -> Around | None:
    """The measured size of a board's own firmware without a model; None for frameworks and unmeasured boards."""
    return _supports().get(support_of(board)) if board.bare_metal else None
