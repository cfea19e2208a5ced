# SPDX-License-Identifier: Apache-2.0
"""A generated CMake project in somebody's firmware: of C++ alone, with its own optimization and warnings, and with
memories of its own for arena and weights."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests import small
from tests.compilers import quick_cmake
from tests.emulated.test_cmake import _cmake, _in_qemu
from tests.ops.emulated import require_emulator
from tinyet import assets
from tinyet.boards import load_board
from tinyet.boards.linker import linker_script
from tinyet.build.process import run
from tinyet.data import pattern_inputs
from tinyet.deployment import deploy
from tinyet.errors import ToolchainError
from tinyet.projects.one import generate

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed"),
    pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler for this machine (c++)"),
]

# The model before everything else in C, so that it is the model that makes a build for C++ one for C, too.
_CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(firmware LANGUAGES CXX)
if(SDK)
  find_package(small REQUIRED)
else()
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ${WITH_LTO})
  if(SUPPORT)
    set(SMALL_WEIGHTS_SECTION .weights)
  endif()
  add_subdirectory("${MODEL}" small)
  unset(CMAKE_INTERPROCEDURAL_OPTIMIZATION)
endif()
add_executable(firmware main.cpp)
target_compile_options(firmware PRIVATE
  -Wall -Wextra -Wold-style-cast -Wuseless-cast -Wcast-qual -Wzero-as-null-pointer-constant -Werror)
target_link_libraries(firmware PRIVATE small::small)
if(SUPPORT)
  add_subdirectory(support)
  # Not C++'s own library, which not every package of a compiler has.
  target_link_libraries(firmware PRIVATE support -nodefaultlibs -lc_nano -lgcc)
  target_compile_options(firmware PRIVATE -flto)
  target_link_options(firmware PRIVATE -flto -nostartfiles -T${CMAKE_CURRENT_SOURCE_DIR}/own.ld -Wl,--gc-sections)
endif()
"""
_SUPPORT_CMAKE = """\
project(support LANGUAGES C)
file(GLOB sources "${SUPPORT}/tinyet_*.c")
list(FILTER sources EXCLUDE REGEX posix)
add_library(support OBJECT ${sources})
target_compile_definitions(support PRIVATE @DEFINES@)
"""
_MAIN = """\
#include <stdio.h>
#include <string.h>
#include "small.h"

int main() {
  static const int8_t input[] = {@INPUT@};
  memcpy(small_input_0(), input, sizeof input);
  if (small_run() != TINYET_OK) {
    return 1;
  }
  for (unsigned i = 0; i < SMALL_OUTPUT_0_COUNT; i++) {
    printf("%d ", small_output_0()[i]);
  }
  printf("\\n");
  fflush(stdout);
  return 0;
}
"""


@pytest.fixture(autouse=True)
def _as_users(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_cmake.as_users(monkeypatch)


@pytest.fixture
def consumer(tmp_path: Path) -> Path:
    """Beside it the model in `model`."""
    program, place = small.program(), tmp_path / "consumer"
    generate(program, "mps2_an386", tmp_path / "model", kind="cmake", name="small")
    place.mkdir()
    (image,) = pattern_inputs(program.inputs)
    (place / "CMakeLists.txt").write_text(_CMAKE)
    (place / "main.cpp").write_text(_MAIN.replace("@INPUT@", ", ".join(map(str, image.ravel()))))
    return place


def _wanted() -> list[str]:
    program = small.program()
    values = program.values(pattern_inputs(program.inputs))
    return [str(value) for value in np.ravel(values[program.outputs[0]])]


def _flags(build: Path, file: str) -> list[str]:
    """With what a source was compiled."""
    text = (build / "compile_commands.json").read_text()
    (command,) = re.findall(rf'"command": "(.*{re.escape(file)})"', text)
    return shlex.split(command.replace("\\", ""))


@pytest.mark.parametrize("how", ["add_subdirectory", "find_package"])
def test_a_program_of_cxx_alone(how: str, consumer: Path) -> None:
    """What it warns of in its own files, it does not in the model's headers."""
    model, build = consumer.parent / "model", consumer / "build"
    options: list[str | Path] = [f"-DMODEL={model}"]
    if how == "find_package":
        _cmake("-S", model, "-B", model / "build", "-DSMALL_PROGRAMS=OFF")
        _cmake("--build", model / "build")
        _cmake("--install", model / "build", "--prefix", consumer.parent / "sdk")
        options = ["-DSDK=ON", f"-DCMAKE_PREFIX_PATH={consumer.parent / 'sdk'}"]
    export = "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"
    _cmake("-S", consumer, "-B", build, export, "-DCMAKE_CXX_FLAGS=-fno-rtti -Os", *options)
    _cmake("--build", build)
    assert run([build / "firmware"], timeout=10, what="running").stdout.split() == _wanted()
    if how == "add_subdirectory":
        flags = _flags(build, "small.c")
        assert "-fno-rtti" not in flags
        assert [flag for flag in flags if flag.startswith("-O")][-1] == "-Os"


def test_c_for_another_machine_is_refused(consumer: Path) -> None:
    require_emulator("mps2_an386")
    options = ("-DCMAKE_C_COMPILER=arm-none-eabi-gcc", "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY")
    model = f"-DMODEL={consumer.parent / 'model'}"
    with pytest.raises(ToolchainError, match=r"is\s+for\s+another\s+machine"):
        _cmake("-S", consumer, "-B", consumer / "build", model, *options)


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ((), "-O2"),
        (("-DCMAKE_C_FLAGS=-Os",), "-Os"),
        (("-DCMAKE_BUILD_TYPE=MinSizeRel",), "-Os"),
        (("-DCMAKE_BUILD_TYPE=Debug",), "-O2"),
        (("-DCMAKE_C_FLAGS=-Ofast",), "-Ofast"),
    ],
    ids=["nothing", "C flags", "small", "debug", "fast"],
)
def test_the_optimization_is_the_builds_own(options: tuple[str, ...], level: str, consumer: Path) -> None:
    """What exactness needs stands behind it."""
    model, build = consumer.parent / "model", consumer.parent / "build"
    _cmake("-S", model, "-B", build, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DSMALL_PROGRAMS=OFF", *options)
    flags = _flags(build, "small.c")
    assert [flag for flag in flags if flag.startswith("-O")][-1] == level
    assert flags.index(level) < flags.index("-fno-fast-math") < flags.index("-ffp-contract=off")


def test_arena_and_weights_are_where_a_firmware_wants_them(consumer: Path) -> None:
    """In C++ alone, for size, with link-time optimization: it is said in the code, so that no option counts."""
    require_emulator("mps2_an386")
    board = load_board("mps2_an386")
    toolchain = consumer / "cxx.cmake"
    flags = shlex.join((*board.machine_flags, *board.toolchain.library_flags))
    toolchain.write_text(
        "set(CMAKE_SYSTEM_NAME Generic)\nset(CMAKE_SYSTEM_PROCESSOR arm)\n"
        f"set(CMAKE_CXX_COMPILER {board.toolchain.prefix}g++)\n"
        f'set(CMAKE_CXX_FLAGS_INIT "{flags}")\nset(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n'
    )
    script = linker_script(board)
    for old, new in {
        "  .text : ALIGN(8) {": "  .weights : { __weights = .; *(.weights) } > FLASH\n  .text : ALIGN(8) {",
        "  __free_start = __bss_end;": "  .retained (NOLOAD) : ALIGN(16) { *(.retained) . = ALIGN(8); __retained = .; }"
        " > RAM\n  __free_start = __retained;",
    }.items():
        assert script.count(old) == 1
        script = script.replace(old, new)
    (consumer / "own.ld").write_text(script)
    (consumer / "support").mkdir()
    defines = " ".join(f"{name}={value}" for name, value in board.defines)
    (consumer / "support" / "CMakeLists.txt").write_text(_SUPPORT_CMAKE.replace("@DEFINES@", defines))
    build = consumer / "build"
    _cmake(
        *("-S", consumer, "-B", build, "--toolchain", toolchain, f"-DMODEL={consumer.parent / 'model'}"),
        f"-DSUPPORT={consumer.parent / 'model' / 'platform' / 'support'}",
        *("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DWITH_LTO=ON"),
        "-DSMALL_ARENA_SECTION=.retained",
    )
    _cmake("--build", build)
    assert "-flto" in " ".join(_flags(build, "small.c"))
    assert _in_qemu(board, build / "firmware").split() == _wanted()
    headers = run(
        [f"{board.toolchain.prefix}objdump", "-h", build / "firmware"], timeout=10, what="reading"
    ).stdout
    found = {
        name: (int(size, 16), kinds)
        for name, size, kinds in re.findall(r"^ +\d+ (\.\w+) +(\w{8}) .*\n +(.*)$", headers, re.MULTILINE)
    }
    deployment = deploy(small.program().graph, board.target)
    arena, kinds = found[".retained"]
    assert deployment.plan.arena_bytes <= arena < deployment.plan.arena_bytes + 16
    assert "LOAD" not in kinds.split(", ")
    weights, kinds = found[".weights"]
    assert weights >= deployment.constant_bytes > 0
    assert {"LOAD", "READONLY", "DATA"} <= set(kinds.split(", "))


def test_a_core_with_the_highest_byte_first_is_refused(tmp_path: Path) -> None:
    """By the preprocessor, whose macros another compiler's are here."""
    include = assets.path("firmware") / "include"
    (tmp_path / "model.c").write_text('#include "tinyet_common.h"\n')
    swap = ("-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__")
    command: list[str | Path] = ["cc", "-fsyntax-only", f"-I{include}", tmp_path / "model.c"]
    run(command, timeout=10, what="compiling")
    with pytest.raises(ToolchainError, match="little-endian cores"):
        run([*command, *swap], timeout=10, what="compiling")
