# SPDX-License-Identifier: Apache-2.0
"""Generated CMake projects build for this machine and for every board, are installed and found, and give in another
project's program, on each machine, what the reference gives."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest

import tinyet
from tests import small, tiny_model
from tests.compilers import quick_cmake
from tinyet.boards import Board, all_boards, load_board
from tinyet.build import cmake, size
from tinyet.build.process import run
from tinyet.build.tree import write_project
from tinyet.device import qemu
from tinyet.emit.project import project_files
from tinyet.errors import ProjectError, ToolchainError
from tinyet.projects.one import generate

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler for this machine (cc)"),
]

HOST = "host"
MACHINES = (HOST, "mps2_an386", "riscv32_virt")
INPUT = (-128, -7, 0, 3, 40, 41, 100, 127)

_CONSUMER_CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
@FIND@
add_executable(consumer main.c)
target_link_libraries(consumer PRIVATE tiny::tiny)
if(CMAKE_CROSSCOMPILING)
  # A firmware of one's own has these already: startup code, a UART to print to, a linker script.
  file(GLOB support "${SUPPORT}/tinyet_*.c")
  list(FILTER support EXCLUDE REGEX posix)
  target_sources(consumer PRIVATE ${support})
  target_compile_definitions(consumer PRIVATE @DEFINES@)
  target_link_options(consumer PRIVATE -nostartfiles -T${SUPPORT}/linker.ld -Wl,--gc-sections)
endif()
"""

_CONSUMER_MAIN = """\
#include <stdio.h>
#include <string.h>
#include "tiny.h"

int main(void) {
  static const int8_t input[] = {@INPUT@};
  memcpy(tiny_input_0(), input, sizeof input);
  if (tiny_run() != TINYET_OK) {
    return 1;
  }
  for (int i = 0; i < 4; i++) {
    printf("%d ", tiny_output_0()[i]);
  }
  uint32_t bits;
  memcpy(&bits, tiny_output_1(), sizeof bits);
  printf("%lu\\n", (unsigned long)bits);
  fflush(stdout);
  return 0;
}
"""


@pytest.fixture(autouse=True)
def _as_users(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_cmake.as_users(monkeypatch)


def _cmake(*arguments: str | Path) -> str:
    return run(["cmake", *arguments], timeout=120, what="building with CMake").stdout


def _project(directory: Path, board: str) -> Path:
    write_project(
        directory, project_files("cmake", load_board(board), tiny_model.FACTS, tiny_model.sources())
    )
    return directory


def _require(board: Board) -> None:
    for tool in (board.toolchain.compiler, str(board.toolchain.qemu)):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def _in_qemu(board: Board, elf: Path) -> str:
    """The first line that a firmware prints."""
    link = qemu.start(board, elf)
    try:
        deadline = time.monotonic() + 20
        text = b""
        while b"\n" not in text:
            text += link.read(deadline)
        return text.decode().splitlines()[0]
    finally:
        link.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return _project(tmp_path / "a project", "mps2_an386")


def test_builds_and_runs_on_this_machine(project: Path) -> None:
    # The application is not compiled as strictly as the model, but it would stand it.
    flags = "-DCMAKE_C_FLAGS=-Wconversion -Wsign-conversion -Werror"
    _cmake("-S", project, "-B", project / "build", flags)
    _cmake("--build", project / "build")
    pairs, mean = tiny_model.expected(tiny_model.SAMPLE)
    output = subprocess.run(
        [project / "build" / "tiny_app"], capture_output=True, text=True, check=True, timeout=10
    ).stdout
    lines = output.splitlines()
    assert lines[1] == "output 0: " + " ".join(map(str, pairs))
    assert lines[3] == f"output 1: {mean:.4f}"
    assert (project / "build" / "tiny_harness").is_file()


STRANGE = "it's a (strange) folder, $x @z@ & 100% *+ > [v] ünï ~!^="


def test_the_directory_may_be_called_almost_anything(tmp_path: Path) -> None:
    """Whatever CMake itself can build in, for this machine and by the project's own build for a board."""
    project = _project(tmp_path / STRANGE, "mps2_an386")
    _cmake("-S", project, "-B", project / "build")
    _cmake("--build", project / "build")
    output = subprocess.run(
        [project / "build" / "tiny_app"], capture_output=True, text=True, check=True, timeout=10
    )
    assert output.stdout.endswith("done\n")
    _cmake("--install", project / "build", "--prefix", project / "sdk")
    assert (project / "sdk" / "include" / "tiny" / "tiny.h").is_file()
    board = load_board("mps2_an386")
    if shutil.which(board.toolchain.compiler):
        cmake.build(project, board)
        assert cmake.elf_path(project, board, "tiny_harness").is_file()


@pytest.mark.parametrize(
    "name",
    [
        "semi;colon",
        'quo"te',
        "back\\slash",
        "$(x)",
        "$<x>",
        "${x}",
        "$ENV{HOME}",
        "open[",
        "co:lon",
        "li\nne",
    ],
)
def test_a_directory_that_cmake_cannot_build_in_is_refused_before_anything_is_written(
    tmp_path: Path, name: str
) -> None:
    for kind, board in (("cmake", "mps2_an386"), ("zephyr", "nano_33_ble")):
        with pytest.raises(ProjectError, match="CMake builds in no directory whose path has"):
            generate(small.program(), board, tmp_path / name, kind=kind)  # type: ignore[arg-type]
    assert not (tmp_path / name).exists()
    generate(small.program(), "mps2_an386", tmp_path / name, kind="model")
    with pytest.raises(ProjectError, match="CMake builds in no"):
        cmake.build(tmp_path / name, load_board("mps2_an386"))


@pytest.mark.parametrize("how", ["find_package", "add_subdirectory"])
@pytest.mark.parametrize("machine", MACHINES)
def test_another_project_computes_the_same_with_it(machine: str, how: str, tmp_path: Path) -> None:
    board = load_board("mps2_an386" if machine == HOST else machine)
    toolchain: list[str | Path] = []
    project = _project(tmp_path / "a project", board.name)
    if machine != HOST:
        _require(board)
        toolchain = ["--toolchain", project / "cmake" / f"{machine}.cmake"]
    consumer, build = tmp_path / "consumer", tmp_path / "consumer" / "build"
    consumer.mkdir()
    if how == "find_package":
        _cmake("-S", project, "-B", project / "build", "-DTINY_PROGRAMS=OFF", *toolchain)
        _cmake("--build", project / "build")
        assert not list((project / "build").glob("tiny_app*"))
        _cmake("--install", project / "build", "--prefix", tmp_path / "prefix")
        # What is installed does not know where it was built, nor where it was installed to.
        (tmp_path / "prefix").rename(tmp_path / "elsewhere")
        find = "find_package(tiny 1 REQUIRED)"
    else:
        find = f'add_subdirectory("{project}" tiny)'
    defines = " ".join(f"{name}={value}" for name, value in board.defines)
    (consumer / "CMakeLists.txt").write_text(
        _CONSUMER_CMAKE.replace("@FIND@", find).replace("@DEFINES@", defines)
    )
    (consumer / "main.c").write_text(_CONSUMER_MAIN.replace("@INPUT@", ", ".join(map(str, INPUT))))
    support = project / "platform" / "support"
    prefix = f"-DCMAKE_PREFIX_PATH={tmp_path / 'elsewhere'}"
    _cmake("-S", consumer, "-B", build, prefix, f"-DSUPPORT={support}", *toolchain)
    _cmake("--build", build)
    if machine == HOST:
        line = subprocess.run(
            [build / "consumer"], capture_output=True, text=True, check=True, timeout=10
        ).stdout
    else:
        line = _in_qemu(board, build / "consumer")
    assert line.split() == _expected_words(INPUT)
    # A part of another project brings no programs of its own.
    assert not list((build / "tiny").glob("tiny_app*"))


def _expected_words(values: tuple[int, ...]) -> list[str]:
    pairs, mean = tiny_model.expected(values)
    return [*map(str, pairs), str(struct.unpack("<I", struct.pack("<f", mean))[0])]


def test_what_is_installed(project: Path, tmp_path: Path) -> None:
    _cmake("-S", project, "-B", project / "build", "-DTINY_PROGRAMS=OFF")
    _cmake("--build", project / "build")
    prefix = tmp_path / "prefix"
    _cmake("--install", project / "build", "--prefix", prefix)
    files = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if path.is_file()}
    # Debian and its kin have a directory of their own for each architecture.
    names = {re.sub(r"^lib/[\w-]+-linux-gnu/", "lib/", name) for name in files}
    assert names == {
        "include/tiny/tiny.h",
        "include/tiny/tinyet_common.h",
        "lib/libtiny.a",
        "lib/cmake/tiny/tinyConfig.cmake",
        "lib/cmake/tiny/tinyConfig-release.cmake",
        "lib/cmake/tiny/tinyConfigVersion.cmake",
        "share/licenses/tiny/LICENSE",
    }
    for name in files:
        assert str(tmp_path).encode() not in (prefix / name).read_bytes()


def test_a_library_for_another_machine_is_not_found(tmp_path: Path) -> None:
    board = load_board("mps2_an386")
    _require(board)
    project = _project(tmp_path / "p", board.name)
    toolchain = project / "cmake" / f"{board.name}.cmake"
    _cmake("-S", project, "-B", project / "build", "-DTINY_PROGRAMS=OFF", "--toolchain", toolchain)
    _cmake("--build", project / "build")
    _cmake("--install", project / "build", "--prefix", tmp_path / "prefix")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(c LANGUAGES C)\nfind_package(tiny 1 REQUIRED)\n"
    )
    with pytest.raises(ToolchainError, match="32bit"):
        _cmake("-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}")


@pytest.mark.parametrize("board", ["mps2_an386", "riscv32_virt"])
def test_builds_for_a_bare_metal_board(board: str, tmp_path: Path) -> None:
    facts = load_board(board)
    _require(facts)
    project = _project(tmp_path / "a project", board)
    cmake.build(project, facts)
    for program in ("tiny_app", "tiny_harness"):
        elf = cmake.elf_path(project, facts, program)
        cost = size.measure(elf)
        names = {symbol.name for symbol in cost.symbols}
        assert cost.flash > 0
        assert cost.stack == facts.stack_bytes
        assert ("tinyet_fault_report" in names) == (program == "tiny_harness")
    assert _in_qemu(facts, cmake.elf_path(project, facts, "tiny_app")).startswith("tiny: ")


# One for each family of cores.
FRAMEWORK_BOARDS = {board.target.family: board.name for board in all_boards() if not board.bare_metal}


@pytest.mark.parametrize("name", sorted(FRAMEWORK_BOARDS.values()))
def test_a_board_of_a_framework_gets_a_library(name: str, tmp_path: Path) -> None:
    """With kernels of tinyet's own in it, which compile there without a warning."""
    board = load_board(name)
    project = tinyet.generate(small.program(), name, tmp_path / "p", kind="cmake").path
    assert not (project / "platform" / "support" / "linker.ld").exists()
    if board.target.toolchain is None:
        assert not (project / "cmake").exists()
        return
    if shutil.which(board.toolchain.compiler) is None:
        pytest.skip(f"{board.toolchain.compiler} is not installed")
    toolchain = project / "cmake" / f"{name}.cmake"
    _cmake("-S", project, "-B", project / "build", "--toolchain", toolchain)
    _cmake("--build", project / "build")
    assert (project / "build" / "libsmall.a").is_file()
    assert not list((project / "build").glob("small_app*"))
    with pytest.raises(ToolchainError, match="no startup code"):
        _cmake("-S", project, "-B", project / "build", "-DSMALL_PROGRAMS=ON")


@pytest.mark.parametrize("name", sorted(FRAMEWORK_BOARDS.values()))
def test_a_library_is_not_built_by_tinyet(name: str, tmp_path: Path) -> None:
    board = load_board(name)
    project = _project(tmp_path / "p", board.name)
    with pytest.raises(ToolchainError, match="is a library") as caught:
        cmake.build(project, board)
    assert "--on host" in str(caught.value.hint)
    # but its programs run on this machine
    _cmake("-S", project, "-B", project / "build")
    _cmake("--build", project / "build")
    pairs, _ = tiny_model.expected(tiny_model.SAMPLE)
    printed = run([project / "build" / "tiny_app"], timeout=10, what="running the application").stdout
    assert printed.splitlines()[1] == "output 0: " + " ".join(map(str, pairs))


def test_presets(project: Path) -> None:
    names = run(["cmake", "--list-presets"], cwd=project, timeout=60, what="listing presets").stdout
    assert re.findall(r'"([\w-]+)"', names) == ["host", "mps2_an386", "mps2_an386-clang"]
    run(["cmake", "--preset", "host"], cwd=project, timeout=60, what="configuring")
    run(["cmake", "--build", "--preset", "host"], cwd=project, timeout=60, what="building")
    assert (project / "build" / "tiny_app").is_file()
    # No toolchain file, no preset.
    values = json.loads((_project(project.parent / "esp", "esp32") / "CMakePresets.json").read_text())
    assert [preset["name"] for preset in values["configurePresets"]] == ["host"]


def test_the_commands_of_the_page_on_generated_code_run_as_they_stand(tmp_path: Path) -> None:
    _require(load_board("mps2_an386"))
    page = (Path(__file__).parents[2] / "docs" / "generated-code.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    project = generate(small.program(), "mps2_an386", tmp_path / "kws", kind="cmake", name="kws").path
    for block in blocks:
        # Compiled by hand it is from inside the project, by CMake from beside it.
        place = project if " lib/kws" in block else tmp_path
        run(["sh", "-ec", block], cwd=place, timeout=120, what="running what the page says")
    assert (project / "kws.o").is_file()
    assert (tmp_path / "sdk" / "lib" / "libkws.a").is_file()
    assert (tmp_path / "sdk" / "include" / "kws" / "kws.h").is_file()
