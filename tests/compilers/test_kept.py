# SPDX-License-Identifier: Apache-2.0
"""Objects stay from session to session as long as the tools are the same and somebody asks for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.compilers import kept
from tests.ops.objects import COMPILED, stored, stored_together


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    path = tmp_path / "status"
    path.write_text("gcc 12\n")
    return path


def test_a_directory_is_of_one_set_of_tools(tmp_path: Path, packages: Path) -> None:
    cache, tool = tmp_path / "cache", tmp_path / "gcc"
    cache.mkdir()
    tool.write_text("one")

    def place() -> Path:
        found = kept.directory(cache, [tool], packages)
        assert found is not None
        return found

    first = place()
    (first / "a").touch()
    assert place() == first
    assert (first / "a").exists()
    for changed in (tool, packages):
        before = place()
        changed.write_text(changed.read_text() + "more")
        assert place() != before
        # A session that began before may still run.
        assert {*cache.iterdir()} >= {before, place()}
    assert kept.directory(None, [tool], packages) is None
    assert kept.directory(cache, [tool], tmp_path / "no database") is None


def test_what_nobody_asks_for_goes(tmp_path: Path, packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    place = kept.directory(cache, [], packages)
    assert place is not None
    old = time.time() - (kept.UNUSED_DAYS + 1) * 86400
    (place / "shelf").mkdir()
    for name, when in (("old", old), ("new", None), ("shelf/old", old), ("older", time.time() - 99)):
        (place / name).write_bytes(bytes(100))
        if when is not None:
            os.utime(place / name, (when, when))
    (cache / "of old tools").mkdir()
    os.utime(cache / "of old tools", (old, old))

    def left() -> set[str]:
        assert kept.directory(cache, [], packages) == place
        return {path.name for path in place.iterdir()}

    assert left() == {"new", "older", "shelf"}
    assert list(cache.iterdir()) == [place]
    os.utime(place / "shelf", (old, old))
    assert left() == {"new", "older"}
    monkeypatch.setattr(kept, "MOST_BYTES", 199)
    assert left() == {"new"}


def test_an_object_of_an_earlier_session_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMPILED, str(tmp_path / "kept"))
    (tmp_path / "kept").mkdir()
    made = []

    def compile_it(compiler: Sequence[str | Path], source: Path, out: Path, *, what: str) -> Path:
        made.append((tuple(compiler), source, what))
        out.write_text(source.read_text())
        return out

    source = tmp_path / "a.c"

    def object_of(text: str, *flags: str) -> Path:
        source.write_text(text)
        found = stored(compile_it)(["gcc", *flags], source, tmp_path / "a.o", what="a test")
        assert found.read_text() == text
        return found

    first = object_of("int a;")
    os.utime(first, (0, 0))
    assert object_of("int a;") == first
    assert first.stat().st_mtime > 0
    assert len(made) == 1
    object_of("int b;")
    assert len(made) == 2
    # More warnings than it was made with, which would be errors; then fewer.
    object_of("int a;", "-Wall", "-Wextra", "-Werror")
    assert len(made) == 3
    object_of("int a;", "-Wextra", "-Werror")
    assert len(made) == 3
    object_of("int a;", "-Wextra", "-Wno-comment", "-Werror")
    object_of("int a;", "-Wshadow", "-Werror")
    assert len(made) == 5
    # A board's macro that nothing names.
    object_of("int a;", "-DTINYET_CLOCK_HZ=1")
    assert len(made) == 5
    object_of("int a = TINYET_CLOCK_HZ;", "-DTINYET_CLOCK_HZ=1")
    object_of("int a = TINYET_CLOCK_HZ;", "-DTINYET_CLOCK_HZ=2")
    assert len(made) == 7
    # Debug information, of a kernel of whatever kind.
    object_of("int a;", "-g")
    object_of("int a;", "-g", "-g1")
    assert len(made) == 9
    source = tmp_path / "tinyet_a.c"
    object_of("int a;", "-g")
    object_of("int a;", "-g", "-g1")
    assert len(made) == 10
    object_of("int a;")
    assert len(made) == 11


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
def test_clang_makes_in_one_process_what_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMPILED, str(tmp_path / "kept"))
    (tmp_path / "kept").mkdir()
    build = tmp_path / "build"
    build.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(build))
    alone: list[str] = []

    def compile_it(compiler: Sequence[str | Path], source: Path, out: Path, *, what: str) -> Path:  # noqa: ARG001
        alone.append(source.name)
        subprocess.run([*compiler, "-c", source, "-o", out], check=True, capture_output=True)
        return out

    def compile_all(
        compiler: Sequence[str | Path], sources: Sequence[Path], directory: Path, *, what: str
    ) -> list[Path]:
        return [stored(compile_it)(compiler, source, directory, what=what) for source in sources]

    def made(*sources: Path) -> list[Path]:
        compiler = ["clang", "-O1", "-Wall"]
        return stored_together(compile_all)(compiler, sources, tmp_path / "objects", what="a test")

    one, two, doubtful, elsewhere = sources = [
        *(build / name for name in ("one.c", "two.c", "doubtful.c")),
        tmp_path / "elsewhere.c",
    ]
    for source in sources:
        # Each a unit of its own: the name is one function in all of them.
        source.write_text(f"static int f(void) {{ return 3; }}\nint {source.stem}(void) {{ return f(); }}\n")
    doubtful.write_text("static int f;\n")
    told = build / "told.c"
    told.write_text('#pragma GCC diagnostic ignored "-Wunused-variable"\nstatic int f;\n')
    for source, kept_as in zip([one, two], made(one, two), strict=True):
        by_driver = tmp_path / "one.o"
        subprocess.run(["clang", "-O1", "-Wall", "-c", source, "-o", by_driver], check=True)
        assert kept_as.read_bytes() == by_driver.read_bytes()
    assert not alone
    assert sorted(path.name for path in build.iterdir()) == ["doubtful.c", "one.c", "told.c", "two.c"]
    made(one, two)
    assert not alone
    # What the compiler warns of it says where it is compiled alone; no object is put beside what is not temporary.
    made(two, doubtful, elsewhere)
    assert alone == ["doubtful.c", "elsewhere.c"]
    assert not list(tmp_path.glob("elsewhere.o"))
    alone.clear()
    made(told, doubtful)
    assert alone == ["told.c"]
