# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled models: what is found in it, what is not believed, and what there is without a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import small
from tinyet.boards.cpus import HOST
from tinyet.build import process
from tinyet.deployment import deploy
from tinyet.errors import MissingTool, ToolchainError
from tinyet.native import Runs, build
from tinyet.native.build import library_of

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="nothing is compiled on Windows"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
]

_DEPLOYMENT = deploy(small.program().graph, HOST)
_IMAGE = np.zeros((1, 6, 6, 3), np.int8)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tinyet" / "native"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by a word with each run of the compiler that makes a library."""
    right = process.run
    found: list[str] = []

    def counted(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
        found.extend(str(word) for word in command if word == "-shared")
        return right(command, **options)

    monkeypatch.setattr(process, "run", counted)
    return found


def test_equal_sources_are_compiled_once(cache: Path, compiled: list[str]) -> None:
    first = library_of(_DEPLOYMENT)
    assert library_of(deploy(small.program().graph, HOST)) == first
    assert len(compiled) == 1
    assert sorted(path.suffix for path in cache.iterdir()) == [".so", ".txt"]
    assert library_of(deploy(small.program(hidden=8).graph, HOST)) != first
    assert len(compiled) == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "name cut", "name of another"])
def test_what_is_damaged_is_compiled_again(cache: Path, compiled: list[str], damage: str) -> None:
    library = library_of(_DEPLOYMENT)
    (entry,) = cache.glob("*.txt")
    right = library.read_bytes()
    match damage:
        case "cut":
            library.write_bytes(right[: len(right) // 2])
        case "changed":
            library.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
        case "gone":
            library.unlink()
        case "name cut":
            entry.write_text(entry.read_text()[:-1])
        case _:
            entry.write_text("../" + "0" * 61)
    assert library_of(_DEPLOYMENT) == library
    assert (len(compiled), library.read_bytes()) == (2, right)
    runs = Runs(small.program().graph, 1, "native")
    assert np.array_equal(runs.outputs([_IMAGE])[0], small.program().outputs_for([_IMAGE])[0])


def test_without_a_compiler(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(cache))
    with pytest.raises(
        MissingTool, match="cc is not installed; compiling the model for this machine needs it"
    ):
        Runs(small.program().graph, 1, "native")
    runs = Runs(small.program().graph, 10**9)
    for _ in range(4):
        found = runs.outputs([_IMAGE])
    assert np.array_equal(found[0], small.program().outputs_for([_IMAGE])[0])
    assert (runs.how, runs.judged) == ("numpy", 0)
    assert runs.why == "cc is not installed; compiling the model for this machine needs it"
    assert capfd.readouterr() == ("", "")


def test_a_compiler_that_fails(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bin" / "gcc"
    broken.parent.mkdir()
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\necho no >&2\nexit 1\n')
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}:{os.environ['PATH']}")
    with pytest.raises(ToolchainError, match=r"compiling the model for this machine failed .*\nno"):
        library_of(_DEPLOYMENT)
    assert list(cache.iterdir()) == []


def test_a_cache_that_others_may_write_to_is_not_believed(cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    with pytest.raises(ToolchainError, match="cache of compiled models cannot be used"):
        library_of(_DEPLOYMENT)
    cache.rmdir()
    cache.write_bytes(b"")
    with pytest.raises(ToolchainError, match="cache of compiled models cannot be used"):
        library_of(_DEPLOYMENT)


def test_the_oldest_make_room(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "MOST_LIBRARIES", 2)
    made = []
    for hidden in (0, 4, 8):
        made.append(library_of(deploy(small.program(hidden=hidden).graph, HOST)))
        for age, path in enumerate(reversed(made)):
            entry = next((e for e in cache.glob("*.txt") if e.read_text() == path.stem), None)
            if entry is not None:
                os.utime(entry, (1e9 - age, 1e9 - age))
    assert [path.exists() for path in made] == [False, True, True]
    assert len(list(cache.iterdir())) == 4


_PROCESS = """
import numpy as np
from tests import small
from tinyet.native import Runs
print(Runs(small.program().graph, 1, "native").outputs([np.zeros((1, 6, 6, 3), np.int8)])[0].tolist())
"""


def test_two_processes_at_once(cache: Path) -> None:
    root = Path(__file__).parents[2]
    both = [
        subprocess.Popen([sys.executable, "-c", _PROCESS], cwd=root, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    wanted = f"{small.program().outputs_for([_IMAGE])[0].tolist()}\n"
    assert [each.communicate()[0] for each in both] == [wanted, wanted]
    assert sorted(path.suffix for path in cache.iterdir()) == [".so", ".txt"]
