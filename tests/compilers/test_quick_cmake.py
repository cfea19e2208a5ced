# SPDX-License-Identifier: Apache-2.0
"""What is built quickly is what users build: the same programs, also from what was found out for another project."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import tiny_model
from tests.compilers import quick_cmake
from tinyet.boards import load_board
from tinyet.build import cmake, process
from tinyet.build.tree import write_project
from tinyet.emit.project import project_files

pytestmark = [
    pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed"),
    pytest.mark.skipif(
        os.environ.get(quick_cmake.GENERATOR) != quick_cmake.NINJA, reason="Ninja is not installed"
    ),
]


@pytest.mark.parametrize(
    ("name", "compiler"), [("mps2_an386", "gcc"), ("mps2_an386", "clang"), ("xtensa_lx60", "gcc")]
)
def test_programs_are_the_same(
    name: str, compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = load_board(name)
    for tool in (board.toolchain.compiler, compiler):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    started: list[list[str]] = []

    def run(command: Sequence[str | Path], **options: Any) -> object:
        started.append([str(word) for word in command])
        return process.run(command, **options)

    monkeypatch.setattr(cmake, "run", quick_cmake.remembering(run, tmp_path / "known"))  # type: ignore[arg-type]

    def built(folder: str, files: str) -> list[bytes]:
        project = tmp_path / folder / "a project"
        write_project(project, project_files("cmake", board, tiny_model.FACTS, tiny_model.sources()))
        started.clear()
        cmake.build(project, board, compiler=compiler)
        directory = cmake.build_dir(project, board)
        assert (directory / files).is_file()
        # What knows of the first project does not lead there.
        cache = (directory / "CMakeCache.txt").read_text(encoding="utf-8")
        assert folder == "first" or str(tmp_path / "first") not in cache
        return [cmake.elf_path(project, board, f"tiny_{what}").read_bytes() for what in ("app", "harness")]

    known = "-DCMAKE_PLATFORM_INFO_INITIALIZED=1"
    first = built("first", "build.ninja")
    assert known not in started[0]
    shutil.rmtree(tmp_path / "first")
    again = built("again", "build.ninja")
    assert known in started[0]
    quick_cmake.as_users(monkeypatch)
    as_users = built("as users", "Makefile")
    assert known not in started[0]
    assert first == again == as_users


def test_another_compiler_is_asked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever CMake may have asked for: flags, the toolchain file, the search path."""
    toolchain = tmp_path / "board.cmake"
    given: list[bool] = []

    def run(command: Sequence[str | Path], **_options: object) -> object:
        words = [str(word) for word in command]
        given.append("-DCMAKE_PLATFORM_INFO_INITIALIZED=1" in words)
        found = Path(words[words.index("-B") + 1], "CMakeFiles", "3")
        found.mkdir(parents=True, exist_ok=True)
        system = found / "CMakeSystem.cmake"
        if given[-1]:
            assert system.read_text() == f'include("{toolchain}")'
        else:
            system.write_text(f'include("{toolchain}")')
        return None

    configure = quick_cmake.remembering(run, tmp_path / "known")  # type: ignore[arg-type]

    def configured(text: str, *options: str) -> bool:
        """Whether what is known was given to CMake."""
        toolchain.write_text(text)
        build = tmp_path / f"build {len(given)}"
        configure(["cmake", "-S", "p", "-B", build, "--toolchain", toolchain, *options])
        return given[-1]

    assert [configured("one"), configured("one")] == [False, True]
    assert [configured("two"), configured("two")] == [False, True]
    assert [configured("two", "-DX=1"), configured("two", "-DX=2"), configured("two", "-DX=1")] == [
        False,
        False,
        True,
    ]
    monkeypatch.setenv("CFLAGS", "-O1")
    assert not configured("two")
    monkeypatch.delenv("CFLAGS")
    assert configured("two")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert not configured("two")
    # A directory that is there already CMake knows itself.
    (tmp_path / f"build {len(given)}").mkdir()
    assert not configured("two")
    monkeypatch.setattr("tests.compilers.quick_cmake.NINJA", "another")
    assert not configured("two")


def test_the_environments_ninja_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pip installs it: beside Python, where PATH does not lead."""
    scripts, session = tmp_path / "bin", tmp_path / "session"
    for folder in (scripts, session):
        folder.mkdir()
    monkeypatch.setattr("sys.executable", str(scripts / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    quick_cmake.as_users(monkeypatch)
    quick_cmake.install(session, monkeypatch)
    assert quick_cmake.GENERATOR not in os.environ
    assert shutil.which("ninja") is None
    (scripts / "ninja").write_text("#!/bin/sh\n")
    (scripts / "ninja").chmod(0o755)
    quick_cmake.install(session, monkeypatch)
    assert os.environ[quick_cmake.GENERATOR] == quick_cmake.NINJA
    assert Path(shutil.which("ninja") or "").resolve() == scripts / "ninja"
    # A worker inherits it.
    quick_cmake.install(session, monkeypatch)
