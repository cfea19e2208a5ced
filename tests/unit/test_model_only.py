# SPDX-License-Identifier: Apache-2.0
"""Just the C: what `--kind model` writes compiles alone, is written again over itself only, and has no harness."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests import small
from tests.cli.command import tinyet
from tinyet.data import pattern_inputs
from tinyet.errors import ProjectError
from tinyet.projects import open_project
from tinyet.projects.one import generate

_MAIN = """\
#include <stdio.h>
#include <string.h>
#include "small.h"

int main(void) {
  if (fread(small_input_0(), 1, SMALL_INPUT_0_BYTES, stdin) != SMALL_INPUT_0_BYTES || small_run() != TINYET_OK) {
    return 1;
  }
  return fwrite(small_output_0(), 1, SMALL_OUTPUT_0_BYTES, stdout) == SMALL_OUTPUT_0_BYTES ? 0 : 1;
}
"""


def _names(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}


def test_only_c_and_the_manifest(tmp_path: Path) -> None:
    generate(small.program(), "mps2_an385", tmp_path / "c", kind="model", name="small")
    names = _names(tmp_path / "c")
    assert {"small.c", "small.h", "tinyet_common.h", "tinyet_max_pool2d_s8.c", "tinyet.json"} <= names
    assert {Path(name).suffix for name in names} == {".c", ".h", ".json"}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_compiles_alone_and_answers_as_the_reference(tmp_path: Path) -> None:
    program = small.program()
    generate(program, "mps2_an385", tmp_path / "c", kind="model", name="small")
    (tmp_path / "main.c").write_text(_MAIN)
    run = tmp_path / "run"
    sources = [tmp_path / "main.c", *(tmp_path / "c").glob("*.c")]
    subprocess.run(
        ["gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path / 'c'}", *sources, "-o", run],
        check=True,
    )
    sample = pattern_inputs(program.inputs)
    done = subprocess.run([run], input=sample[0].tobytes(), capture_output=True, check=True)
    assert done.stdout == np.ascontiguousarray(program.run(*sample)[0]).tobytes()


def test_a_users_file_stays_and_a_changed_one_is_not_overwritten(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    generate(small.program(), "mps2_an385", directory, kind="model", name="small")
    (directory / "mine.c").write_text("int mine;\n")
    generate(small.program(channels=6), "mps2_an385", directory, kind="model", name="small")
    assert (directory / "mine.c").read_text() == "int mine;\n"
    (directory / "small.c").write_text("/* mine */\n")
    with pytest.raises(ProjectError, match=r"small\.c \(changed since tinyet wrote it\)"):
        generate(small.program(), "mps2_an385", directory, kind="model", name="small")
    assert (directory / "small.c").read_text() == "/* mine */\n"


def test_there_is_nothing_to_build_or_validate(tmp_path: Path) -> None:
    generate(small.program(), "mps2_an385", tmp_path / "c", kind="model", name="small")
    project = open_project(tmp_path / "c")
    with pytest.raises(ProjectError, match="add its C files to your own build"):
        project.build()
    with pytest.raises(ProjectError, match="holds the C files only"):
        project.validate(on="host")


def test_slices_are_told_of_the_files_alone(tmp_path: Path) -> None:
    saved = tmp_path / "small.tet"
    small.program().save(saved)
    options = "--board", "mps2_an386", "--kind", "model", "--context", "--max-step", "2000"
    ended = tinyet("generate", str(saved), *options, "-o", str(tmp_path / "c"))
    assert ended.status == 0
    assert "a slice longer than 2000: conv" in ended.out + ended.err
    assert "SMALL_NUM_SLICES" in (tmp_path / "c" / "small.h").read_text()


def test_on_the_command_line(tmp_path: Path) -> None:
    saved = tmp_path / "small.tet"
    small.program().save(saved)
    ended = tinyet(
        "generate", str(saved), "--board", "mps2_an385", "--kind", "model", "-o", str(tmp_path / "c")
    )
    assert ended.status == 0
    assert 'include "small.h"' in ended.out
    assert (tmp_path / "c" / "small.c").is_file()
