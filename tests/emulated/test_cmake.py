# SPDX-License-Identifier: Apache-2.0
"""Generated CMake projects build for this machine and for a board, and can be installed and found."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests import tiny_model
from tinyet.boards import load_board
from tinyet.emit.project import project_files
from tinyet.toolchain import size
from tinyet.toolchain.process import run
from tinyet.toolchain.tree import write_project

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler for this machine (cc)"),
]

_CONSUMER_CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
find_package(tiny REQUIRED)
add_executable(consumer main.c)
target_link_libraries(consumer PRIVATE tiny::tiny)
"""

_CONSUMER_MAIN = """\
#include <stdio.h>
#include "tiny.h"

int main(void) {
  for (int i = 0; i < 8; i++) {
    tiny_input_0()[i] = (int8_t)i;
  }
  if (tiny_run() != TINYET_OK) {
    return 1;
  }
  for (int i = 0; i < 4; i++) {
    printf("%d ", tiny_output_0()[i]);
  }
  return 0;
}
"""


def _cmake(*arguments: str | Path) -> str:
    return run(["cmake", *arguments], timeout=120, what="building with CMake").stdout


def _output(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, check=True, timeout=10).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = project_files("cmake", load_board("mps2_an386"), tiny_model.FACTS, tiny_model.sources())
    write_project(tmp_path / "a project", files)
    return tmp_path / "a project"


def test_builds_and_runs_on_this_machine(project: Path) -> None:
    # The application is not compiled as strictly as the model, but it would stand it.
    flags = "-DCMAKE_C_FLAGS=-Wconversion -Wsign-conversion -Werror"
    _cmake("-S", project, "-B", project / "build", flags)
    _cmake("--build", project / "build")
    pairs, mean = tiny_model.expected(tiny_model.SAMPLE)
    lines = _output(project / "build" / "tiny_app").splitlines()
    assert lines[1] == "output 0: " + " ".join(map(str, pairs))
    assert lines[3] == f"output 1: {mean:.4f}"
    assert (project / "build" / "tiny_harness").is_file()


def test_installs_and_is_found(project: Path, tmp_path: Path) -> None:
    _cmake("-S", project, "-B", project / "build", "-DTINY_PROGRAMS=OFF")
    _cmake("--build", project / "build")
    assert not (project / "build" / "tiny_app").exists()
    _cmake("--install", project / "build", "--prefix", tmp_path / "prefix")
    consumer = tmp_path / "consumer"
    consumer.mkdir()
    (consumer / "CMakeLists.txt").write_text(_CONSUMER_CMAKE)
    (consumer / "main.c").write_text(_CONSUMER_MAIN)
    _cmake("-S", consumer, "-B", consumer / "build", f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}")
    _cmake("--build", consumer / "build")
    pairs, _ = tiny_model.expected(range(8))
    assert _output(consumer / "build" / "consumer").split() == [str(value) for value in pairs]


def test_can_be_a_part_of_another_project(project: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    (outer / "CMakeLists.txt").write_text(
        _CONSUMER_CMAKE.replace("find_package(tiny REQUIRED)", f'add_subdirectory("{project}" tiny)')
    )
    (outer / "main.c").write_text(_CONSUMER_MAIN)
    _cmake("-S", outer, "-B", outer / "build")
    _cmake("--build", outer / "build")
    assert not (outer / "build" / "tiny" / "tiny_app").exists()
    assert (outer / "build" / "consumer").is_file()


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed")
def test_builds_for_the_board(project: Path) -> None:
    build = project / "build-arm"
    toolchain = project / "cmake" / "mps2_an386.cmake"
    _cmake("-S", project, "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={toolchain}")
    _cmake("--build", build)
    for program in ("tiny_app", "tiny_harness"):
        cost = size.measure(build / f"{program}.elf")
        names = {symbol.name for symbol in cost.symbols}
        assert cost.flash > 0
        assert cost.stack == load_board("mps2_an386").stack_bytes
        assert ("tinyet_fault_report" in names) == (program == "tiny_harness")
