# SPDX-License-Identifier: Apache-2.0
"""Compiler runs are counted and shown; what was compiled before is not compiled again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.ops import objects
from tests.slowest import compiler_runs

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["/usr/bin/gcc", "-O2", "-Isrc.c", "a.c", Path("b.c"), "c.o", "-o", "x"], 2),
        (["arm-none-eabi-g++", "-fsyntax-only", "a.cpp"], 1),
        (["gcc", "a.o", "b.o", "-o", "x"], 0),
        ([sys.executable, "-m", "platformio", "run", "-d", "p"], 1),
        ([sys.executable, "-m", "platformio", "project", "config"], 0),
        (["cmake", "--build", "b"], 1),
        (["qemu-system-arm", "-kernel", "firmware.elf"], 0),
        ("gcc a.c", 0),
        ([], 0),
    ],
)
def test_compiler_runs_in_a_command(words: object, count: int) -> None:
    assert compiler_runs(words) == count


@pytest.mark.skipif(sys.platform == "win32", reason="the compiler that is played here is a shell script")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_session_lists_what_its_files_compile(tmp_path: Path, workers: int) -> None:
    """Also when workers run the tests, and whichever function starts the compiler."""
    compiler = tmp_path / "gcc"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    (tmp_path / "tests").mkdir()
    for name, how in (("few", "'a.c'"), ("many", "*['a.c'] * 40")):
        (tmp_path / "tests" / f"test_{name}.py").write_text(
            "import os, subprocess\n"
            f"def test_it(): subprocess.run([{str(compiler)!r}, {how}], check=True)\n"
            f"def test_again(): subprocess.run([{str(compiler)!r}, 'x.o'], check=True)\n"
        )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.slowest"),
            *("-p", "tests.workers", "--workers", str(workers)),
            *("-c", os.devnull, "--rootdir", tmp_path, tmp_path / "tests"),
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    assert re.search(r"s    40 compiler runs  tests/test_many\.py$", done.stdout, re.MULTILINE)
    assert re.search(r"s     1 compiler runs  tests/test_few\.py$", done.stdout, re.MULTILINE)


class Compiler:
    """Notes what it is asked to compile."""

    def __init__(self) -> None:
        self.compiled: list[str] = []

    def __call__(self, compiler: Sequence[str | Path], source: Path, out: Path, *, what: str) -> Path:
        self.compiled.append(f"{what}: {compiler[-1]}")
        out.write_bytes(source.read_bytes())
        return out


def test_an_object_is_made_anew_when_anything_in_it_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "directory", lambda: tmp_path)
    monkeypatch.delenv(objects.COMPILED, raising=False)
    compiler = Compiler()
    once = objects.stored(compiler)

    def compiles(place: str, *flags: str, files: dict[str, str] | None = None) -> bool:
        """Whether a source is compiled when it and its headers lie in `place`."""
        texts = {"a.c": '#include "in/one.h"\n', "in/one.h": ' # include <two.h>\n#include "string.h"\n'}
        for name, text in (texts | {"lib/two.h": "int two;\n"} | (files or {})).items():
            (tmp_path / place / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / place / name).write_text(text)
        before = len(compiler.compiled)
        words = [sys.executable, *flags, f"-I{tmp_path / place}", f"-I{tmp_path / place / 'lib'}"]
        made = once(words, tmp_path / place / "a.c", tmp_path / "a.o", what="x")
        assert made.read_bytes() == (tmp_path / place / "a.c").read_bytes()
        return len(compiler.compiled) > before

    assert compiles("first")
    assert not compiles("first")
    assert not compiles("other place")
    assert not compiles("third", files={"unrelated.h": "int x;\n"})
    assert compiles("first", "-O2")
    # Warnings make no other object, but an error of them.
    assert not compiles("first", "-O2", "-Wall")
    assert compiles("first", "-O2", "-Wall", "-Werror")
    assert not compiles("first", "-O2", "-Wall", "-Werror")
    assert compiles("first", "-O2", "-Wextra", "-Werror")
    assert not compiles("first", "-O2", "-Wshadow")
    # Kernels do not look at the trace, which common.h declares.
    common = {"in/one.h": '#include "tinyet_common.h"\n', "lib/tinyet_common.h": "#if TINYET_TRACE\n#endif\n"}
    assert compiles("kernel", files=common)
    assert not compiles("kernel", "-DTINYET_TRACE=1", files=common)
    model = common | {"a.c": '#include "in/one.h"\nint y = TINYET_LAYER_BEGIN(1);\n'}
    assert compiles("model", files=model)
    assert compiles("model", "-DTINYET_TRACE=1", files=model)
    assert compiles("source", files={"a.c": '#include "in/one.h"\nint x;\n'})
    assert compiles("header", files={"lib/two.h": "int three;\n"})
    # A header that is found before the one that was taken.
    assert compiles("hidden", files={"in/two.h": "int hidden;\n"})
    assert compiles("hidden too", files={"two.h": "int other;\n"})
    assert compiles("the system's", files={"in/string.h": "int own;\n"})
    with pytest.raises(AssertionError, match="what only the compiler knows"):
        compiles("computed", files={"a.c": "#include HEADER\n"})
    assert all(note.startswith("x: -I") for note in compiler.compiled)
