# SPDX-License-Identifier: Apache-2.0
"""Every kernel source is clean C11 and C++17: for Arm cores with and without DSP instructions, RISC-V, this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.calls import board, emulated, host, library
from tests.calls.board import Image
from tests.ops.objects import without_driver
from tinyet import assets
from tinyet.boards import load_board
from tinyet.build import clang
from tinyet.delegates import PORTABLE, kernel_sources

FLAGS = ("-O2", *library.WARNINGS, "-ffp-contract=off")
CXX = ("-x", "c++", "-std=c++17", "-Wuseless-cast")
INCLUDE = f"-I{assets.path('firmware') / 'include'}"

_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
_STANDARD = re.compile(r"^#include <([^>]+)>", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_FUNCTION = re.compile(r"^(?!static)\w[\w *]*?\b(tinyet_\w+)\(", re.MULTILINE)


def sources_in(folder: Path, names: Iterable[str]) -> list[str]:
    return [str(source) for source in kernel_sources.write(folder, sorted(names))]


def machine_of(name: str) -> tuple[str, list[str]]:
    """The prefix of a board's compilers and what tells them the core; of the host, none of either."""
    if name == "host":
        return "", []
    toolchain = load_board(name).toolchain
    return toolchain.prefix, [*load_board(name).machine_flags, *toolchain.library_flags]


def run(command: Sequence[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.emulated
@pytest.mark.parametrize("image", [None, board.M0, board.M4, board.M55, board.RISCV], ids=str)
def test_c_by_gcc(image: Image | None, tmp_path: Path) -> None:
    """Kernels of a call server, which is built with these warnings, and those that it has not."""
    if image is None:
        host.library_server()
    else:
        emulated.skip_missing([image])
        board.library(image)
    served = {source for kernel in (image.kernels if image else host.KERNELS) for source in kernel.sources}
    others = {*kernel_sources.names()} - served
    assert served
    assert others < {*kernel_sources.names()}
    prefix, machine = machine_of("host" if image is None else image.board_name)
    command = [f"{prefix}gcc", *machine, "-std=c11", *FLAGS, INCLUDE, "-fsyntax-only"]
    run([*command, *sources_in(tmp_path, others)])


@pytest.mark.emulated
@pytest.mark.parametrize("name", ["host", "nrf51_dk", "mps2_an386", "mps3_an547", "riscv32_virt"])
def test_cxx_by_gcc(name: str, tmp_path: Path) -> None:
    """All in one run: fifteen milliseconds are a compiler's start, and one is a kernel."""
    prefix, machine = machine_of(name)
    sources_in(tmp_path, kernel_sources.names())
    source = tmp_path / "all.cc"
    source.write_text(one_unit(), encoding="utf-8")
    run([f"{prefix}g++", *machine, *CXX, *FLAGS, INCLUDE, "-fsyntax-only", str(source)])


@pytest.mark.emulated
def test_cxx_by_gcc_for_avr(tmp_path: Path) -> None:
    """Kernels for all cores, whose assembly for AVR reads constants in the RAM then. An older compiler, whose int is
    int16_t: casts that others need are useless."""
    names = {source for kernel in library.kernels([PORTABLE]) for source in kernel.sources}
    sources_in(tmp_path, names)
    source = tmp_path / "all.cc"
    source.write_text(one_unit(sorted(names)), encoding="utf-8")
    prefix, machine = machine_of("arduino_uno")
    standard = ["-x", "c++", "-std=gnu++14"]
    run([f"{prefix}g++", *machine, *standard, *FLAGS, INCLUDE, "-fsyntax-only", str(source)])


@pytest.mark.emulated
def test_loops_for_helium_where_a_frame_pointer_is_asked_for(tmp_path: Path) -> None:
    """It would take a register that their assembly needs, as addresses of code that can be anywhere do."""
    names = [name for name in kernel_sources.names() if name.endswith("_mve.c")]
    sources_in(tmp_path, names)
    source = tmp_path / "all.cc"
    source.write_text(one_unit(names), encoding="utf-8")
    prefix, machine = machine_of("mps3_an547")
    made = ["-S", str(source), "-o", str(tmp_path / "all.s")]
    run([f"{prefix}g++", *machine, *CXX, "-O2", "-fno-omit-frame-pointer", "-fPIC", INCLUDE, *made])


@pytest.mark.emulated
@pytest.mark.parametrize("flags", [[], ["-fno-omit-frame-pointer", "-fPIC"]], ids=["alone", "frame pointer"])
def test_the_loop_of_most_operands_for_debugging(flags: list[str], tmp_path: Path) -> None:
    """With -Og GCC finds fewer registers for them than with -O2."""
    (source,) = sources_in(tmp_path, ["tinyet_add_s16_per_row_mve.c"])
    prefix, machine = machine_of("mps3_an547")
    made = ["-S", source, "-o", str(tmp_path / "made.s")]
    run([f"{prefix}gcc", *machine, "-std=c11", "-Og", *flags, INCLUDE, *made])


@pytest.mark.emulated
def test_conversions_that_are_not_made_conditional_for_helium(tmp_path: Path) -> None:
    """With -Os GCC writes VCVT under NE, which assemblers take for VCVTN."""
    (source,) = sources_in(tmp_path, ["tinyet_dynamic_quantize.c"])
    prefix, machine = machine_of("mps3_an547")
    run([f"{prefix}gcc", *machine, "-std=c11", "-Os", INCLUDE, "-c", source, "-o", str(tmp_path / "made.o")])


def one_unit(names: Iterable[str] | None = None) -> str:
    """A C++ file of sources, of all where none are named, each in a namespace of its own and without the macros of
    the others.

    Headers that declare what has C linkage stand before them, in no namespace, and those of the standard library. In
    none either is what calls a function that it defines: there would be two of it, with one for that is declared.
    """
    texts = {
        path.name: path.read_text(encoding="utf-8") for path in assets.path("firmware").glob("include/*.h")
    }
    sources = {name: kernel_sources.text(name) or "" for name in names or kernel_sources.names()}
    texts |= sources

    def reached(first: Iterable[str]) -> dict[str, None]:
        found = dict.fromkeys(first)
        queue = list(found)
        for name in queue:
            new = [other for other in _INCLUDED.findall(texts[name]) if other in texts and other not in found]
            found |= dict.fromkeys(new)
            queue += new
        return found

    linked = [name for name in sorted({*reached(sources)} - {*sources}) if 'extern "C"' in texts[name]]
    shared = reached(linked)
    # Whoever includes another knows on which cores.
    inner = {other for name in shared for other in _INCLUDED.findall(texts[name])}
    standard = {name for other in {*reached(sources)} - {*shared} for name in _STANDARD.findall(texts[other])}
    lines = [f"#include <{name}>" for name in sorted(standard)]
    lines += [f'#include "{name}"' for name in linked if name not in inner]
    for number, name in enumerate(sources):
        own = [texts[other] for other in reached([name]) if other not in shared]
        macros = sorted({macro for text in own for macro in _DEFINED.findall(text)})
        defined = [f"{function}(" for function in _FUNCTION.findall(sources[name])]
        apart = any(sources[name].count(function) > 1 for function in defined)
        body = f'#include "{name}"'
        lines += [body] if apart else [f"namespace unit_{number} {{", body, "}"]
        lines += [f"#undef {macro}" for macro in macros]
    return "\n".join(lines) + "\n"


@pytest.mark.emulated
@pytest.mark.parametrize("name", ["nrf51_dk", "mps3_an547"])
def test_c_by_clang(name: str, tmp_path: Path) -> None:
    for tool in ("clang", load_board(name).toolchain.compiler):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    machine = map(str, clang.command(load_board(name), "clang"))
    sources = sources_in(tmp_path, kernel_sources.names())
    command = [*machine, "-x", "c", "-std=c11", *FLAGS, INCLUDE, "-fsyntax-only"]
    run([*without_driver(command, Path(sources[0])), *sources])


NAKED_AND_WITH_AN_ARRAY = """
#include "tinyet_common.h"
void fill(char *);
__attribute__((naked, noinline)) void alone(void) { __asm__ volatile("nop"); }
int guarded(void) {
  char text[40];
  fill(text);
  return text[3];
}
"""


@pytest.mark.emulated
@pytest.mark.parametrize("name", ["nrf51_dk", "mps3_an547", "riscv32_virt"])
def test_functions_of_assembly_alone_have_no_guard(name: str, tmp_path: Path) -> None:
    """It would be written over what their callers have on the stack, by a register that has an argument."""
    (tmp_path / "a.c").write_text(NAKED_AND_WITH_AN_ARRAY, encoding="utf-8")
    prefix, machine = machine_of(name)
    flags = ["-std=c11", "-Werror", "-O2", "-fstack-protector-all", INCLUDE]
    run([f"{prefix}gcc", *machine, *flags, "-S", str(tmp_path / "a.c"), "-o", str(tmp_path / "a.s")])
    alone, guarded = re.split(
        r"^\w*guarded\w*:", (tmp_path / "a.s").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert "nop" in alone
    assert "__stack_chk" not in alone
    assert "__stack_chk_fail" in guarded


TWO_CALLS = """
#include "tinyet_concat.h"
int8_t arena[2048];
void layer(const int8_t *in, int8_t *out);
TINYET_FUNCTION void join(const void *a, const void *b, void *out) {
  tinyet_concat_part(a, out, 0u, 4u, 8u, 64u);
  tinyet_concat_part(b, out, 4u, 4u, 8u, 64u);
}
void model(void);
void model(void) {
  layer(arena + 16, arena + 512);
  join(arena + 512, arena + 768, arena);
  layer(arena, arena + 1024);
  join(arena + 512, arena + 768, arena);
  layer(arena, arena + 1024);
}
"""


@pytest.mark.emulated
@pytest.mark.parametrize("name", ["nrf51_dk", "mps2_an386"])
def test_two_layers_that_are_one_call_are_both_there(name: str, tmp_path: Path) -> None:
    """Of a copy of a function for addresses that are always the same, GCC 12 leaves the calls away."""
    toolchain = load_board(name).toolchain
    if shutil.which(toolchain.compiler) is None:
        pytest.skip(f"{toolchain.compiler} is not installed")
    source = tmp_path / "model.c"
    source.write_text(TWO_CALLS, encoding="utf-8")
    command = [toolchain.compiler, *load_board(name).machine_flags, "-O2", "-S", "-o", "-"]
    done = subprocess.run([*command, INCLUDE, str(source)], capture_output=True, text=True, check=True)
    assert done.stdout.split("\nmodel:")[1].count("\tjoin") == 2
