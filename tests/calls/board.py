# SPDX-License-Identifier: Apache-2.0
"""Call servers of emulated boards: a firmware of all library kernels that the core can run, built once a session, an
emulator a worker. Requests go by semihosting: a byte of an emulated UART takes two hundred times as long."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.calls import library as kernel_library
from tests.calls.process import Process, built_once
from tests.calls.table import FunctionTable
from tests.ops.cases import WARNINGS
from tinyet import assets
from tinyet.boards import Board, load_board
from tinyet.boards.cpus import Target
from tinyet.build import clang
from tinyet.build.gcc import build_firmware
from tinyet.delegates import CORTEX_M, PORTABLE
from tinyet.device import qemu
from tinyet.opset import Kernel

STRICT = ("-O2", "-g1", *WARNINGS)
ANSWER_SECONDS = 30.0
# In headers that inline assembly reads an array of constants, whose element GCC takes for no constant.
_CALLER = '#pragma GCC diagnostic ignored "-Wcast-qual"\n'
_INTERRUPTING = Path(__file__).with_name("interrupting.c")
_ICOUNT = ("-icount", "shift=9,sleep=off,align=off")
"""Time by instructions, 16 ticks of a counter of 32 MHz each."""
_CORE = ("harness/tinyet_call_server.c", "harness/call_main.c", "harness/tinyet_semihosting.c")


@dataclass(frozen=True)
class Image:
    """A firmware that takes calls: for a board that QEMU has, by a compiler.

    portable: the portable kernels are in it, not only those for the core's own instructions. only: with what their
    symbols end, where a few of them are asked for. interrupted: calls are interrupted every few instructions, and must
    keep the registers that a function keeps (interrupting.c).
    """

    board_name: str
    compiler: str = clang.GCC
    portable: bool = True
    only: tuple[str, ...] = ("",)
    interrupted: bool = False

    def __str__(self) -> str:
        return f"{self.board_name}-{self.compiler}"

    @functools.cached_property
    def board(self) -> Board:
        return load_board(self.board_name)

    @property
    def target(self) -> Target:
        return self.board.target

    @functools.cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The library's kernels in it: the core has instructions for them."""
        delegates = (*((PORTABLE,) if self.portable else ()), CORTEX_M)
        lacking = tuple(f"_{name}" for name in ("dsp", "mve") if name not in self.target.features)
        found = kernel_library.kernels(delegates)
        return tuple(
            k for k in found if k.symbol.endswith(self.only) and not (lacking and k.symbol.endswith(lacking))
        )

    @property
    def missing(self) -> list[str]:
        """The tools that this machine does not have."""
        toolchain = self.board.toolchain
        tools = {toolchain.compiler, str(toolchain.qemu)}
        tools |= set() if self.compiler == clang.GCC else {self.compiler}
        return sorted(tool for tool in tools if shutil.which(tool) is None)


M0, M4, M55 = Image("nrf51_dk"), Image("mps2_an386"), Image("mps3_an547")
M4_CLANG = Image("mps2_an386", "clang")
M55_CLANG = Image("mps3_an547", "clang", portable=False, only=("_mve",), interrupted=True)
M3 = Image("mps2_an385", only=("_threes_3x4", "_fives_5x2", "_fives", "_chw_3x3_2x1", "_cwh_3x3_2x1"))
"""With what is faster there than on the other cores without DSP instructions."""
M7, M33 = Image("mps2_an500", portable=False), Image("mps2_an505", portable=False)
RISCV, XTENSA = Image("riscv32_virt"), Image("xtensa_lx60")

EVERY = (M0, M4, M4_CLANG, M55, RISCV, XTENSA)
"""With the portable kernels: one of each instruction set, and both compilers."""

DSP = (M4, M4_CLANG, M7, M33, M55)


def build(
    image: Image,
    folder: Path,
    kernels: Sequence[Path],
    symbols: Mapping[str, str],
    table: FunctionTable,
    *include: Path,
    flags: Sequence[str] = STRICT,
) -> Path:
    """Compile and link a server of these kernels into a folder; its path. symbols: of their functions."""
    firmware = assets.path("firmware")
    source = folder / "table.c"
    source.write_text(_CALLER + table.text(symbols), encoding="utf-8")
    sources = [*(firmware / name for name in _CORE), source, *kernels]
    sources += [_INTERRUPTING] if image.interrupted else []
    return build_firmware(
        image.board, sources, include, folder, harness=False, flags=flags, compiler=image.compiler
    )


def process(image: Image, elf: Path, table: FunctionTable) -> Process:
    """A server in an emulator. Where calls are interrupted, stack is not theirs alone."""
    # Clang aligns frames of vectors by computing on the stack pointer: those have no bound.
    unbounded = image.compiler != clang.GCC
    copy = qemu.with_semihosting(elf)
    assert copy is not None
    started = elf.with_name(f"{os.getpid()}.elf")
    started.write_bytes(copy)
    options = _ICOUNT if image.interrupted else ()
    command = qemu.command(image.board, str(started), options, semihosting=True)
    return Process(
        command,
        table,
        elf=None if image.interrupted else elf,
        unbounded=unbounded,
        answer_seconds=ANSWER_SECONDS,
    )


@functools.cache
def library(image: Image) -> Process:
    """This worker's server of the library's kernels on the board."""
    table = kernel_library.table(image.kernels)

    def made(folder: Path) -> None:
        sources = kernel_library.sources(image.kernels, folder / "kernels")
        build(image, folder, *sources, table, flags=("-O2", "-g1", *kernel_library.WARNINGS))

    return process(image, built_once(f"calls-{image}", made) / "firmware.elf", table)
