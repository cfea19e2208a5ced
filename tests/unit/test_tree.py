# SPDX-License-Identifier: Apache-2.0
"""Projects on disk when things go wrong: a killed process at every step, links, and two at once."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import small
from tinyet.build import lock, tree
from tinyet.build.lock import LOCK, project_lock
from tinyet.build.tree import building, is_free, is_project, read_manifest, write_project
from tinyet.errors import ProjectError, ToolchainError
from tinyet.files import atomic
from tinyet.projects.one import generate

_MANIFEST = json.dumps({"yours": ["src/main.c"]})
OLD = {"tinyet.json": _MANIFEST, "src/main.c": "old", "lib/a.c": "old", "lib/gone/b.c": "old", "same": "same"}
NEW = {"tinyet.json": _MANIFEST, "src/main.c": "new", "lib/a.c": "new", "come/c.c": "new", "same": "same"}


def _snapshot(directory: Path) -> dict[str, str]:
    return {
        path.relative_to(directory).as_posix(): path.read_text()
        for path in directory.rglob("*")
        if path.is_file()
    }


def _whole(tmp_path: Path, files: dict[str, str]) -> dict[str, str]:
    """What a project of these files is on disk."""
    place = tmp_path / f"whole-{len(list(tmp_path.iterdir()))}"
    write_project(place, files)
    return _snapshot(place)


# ---- killed ----


class Killed(BaseException):
    """The process is gone: nothing that it does from here on reaches the disk."""


class _Disk:
    """Counts what changes the disk, and lets nothing through from the operation `last` on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.last = 0, 10**9
        for name in ("rename", "replace", "unlink", "rmdir", "mkdir"):
            monkeypatch.setattr(os, name, self.wrapped(getattr(os, name)))
        write = atomic.write_new

        def write_new(path: Path, data: bytes) -> None:
            try:
                self.step()
            except Killed:
                if self.count == self.last:
                    write(path, data[: len(data) // 2])  # some of it
                raise
            write(path, data)

        monkeypatch.setattr(tree, "write_new", write_new)

    def step(self) -> None:
        self.count += 1
        if self.count >= self.last:
            raise Killed

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*args: Any, **options: Any) -> Any:
            self.step()
            return function(*args, **options)

        return operation


@pytest.mark.parametrize("finish", ["read", "build", "generate"])
@pytest.mark.parametrize("again", [True, False])
def test_after_a_kill_at_any_operation_a_project_is_old_or_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finish: str, again: bool
) -> None:
    """And it is so for whoever reads or builds it next; writing it again gives the new one."""
    old, new = _whole(tmp_path, OLD), _whole(tmp_path, NEW)
    seen = set()
    disk = _Disk(monkeypatch)
    for step in range(1, 10**6):
        place = tmp_path / str(step)
        if again:
            write_project(place, OLD)
            (place / "mine.txt").write_text("mine")
        disk.count, disk.last = 0, step
        try:
            write_project(place, NEW)
        except Killed:
            pass
        else:
            disk.last = 10**9
            assert step > 20, "a kill at each operation"
            break
        finally:
            disk.last = 10**9
        own = {"mine.txt": "mine"} if again else {}
        if finish == "generate":
            write_project(place, NEW)
        elif is_project(place):
            read_manifest(place) if finish == "read" else _build(place)
        else:
            assert is_free(place)
            assert not again
            seen.add("nothing")
            continue
        found = _snapshot(place)
        found.pop(LOCK, None)  # of the killed process: it locks nothing
        found = {path: text for path, text in found.items() if not path.startswith(".tinyet-update/")}
        assert found in ([new | own] if finish == "generate" else [old | own, new | own]), step
        seen.add("new" if found == new | own else "old")
        if finish != "read":  # reading leaves files that nobody misses
            assert {path.name for path in place.iterdir() if path.name.startswith(".")} == set()
    assert seen == ({"new"} if finish == "generate" else {"old" if again else "nothing", "new"})


def _build(place: Path) -> None:
    with building(place):
        pass


def test_a_kill_while_things_are_put_back_is_no_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails in the middle, and the end of the process at each operation of undoing it."""
    old = _whole(tmp_path, OLD)
    disk = _Disk(monkeypatch)
    forward = tree._forward

    def failing(*args: Any) -> None:
        moves = disk.count
        disk_step = disk.step

        def step() -> None:
            if disk.count - moves == 4:
                disk.step = disk_step  # type: ignore[method-assign]
                disk.count, disk.last = 0, last
                raise OSError(5, "Input/output error")
            disk_step()

        disk.step = step  # type: ignore[method-assign]
        forward(*args)

    for last in range(1, 10**6):
        place = tmp_path / str(last)
        write_project(place, OLD)
        with monkeypatch.context() as patch:
            patch.setattr(tree, "_forward", failing)
            try:
                write_project(place, NEW)
            except Killed:
                killed = True
            except ProjectError:
                killed = False
        disk.last = 10**9
        with building(place):
            found = _snapshot(place)
        found.pop(LOCK)
        assert found == old or (killed and found == _whole(tmp_path, NEW)), last
        if not killed:
            assert last > 8
            break


def test_an_update_that_was_cut_off_does_not_go_on_over_new_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = _Disk(monkeypatch)
    write_project(tmp_path / "p", OLD)
    with monkeypatch.context() as patch:
        patch.setattr(tree, "_forward", lambda *_args: (_ for _ in ()).throw(Killed))
        patch.setattr(tree, "_back", lambda *_args: (_ for _ in ()).throw(Killed))
        patch.setattr(tree, "_recover", lambda *_args, **_options: None)
        with pytest.raises(Killed):
            write_project(tmp_path / "p", NEW)
    assert disk.count
    (tmp_path / "p/src/main.c").write_text("hours of work")
    with pytest.raises(ProjectError, match=r"changed since:\n.*src/main\.c"):
        read_manifest(tmp_path / "p")
    assert (tmp_path / "p/src/main.c").read_text() == "hours of work"
    (tmp_path / "p/src/main.c").unlink()
    read_manifest(tmp_path / "p")
    assert _snapshot(tmp_path / "p") == _whole(tmp_path, NEW)


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        '{"forward": true, "new": [], "removed": ["../mine.txt"], "found": {}}',
        '{"forward": false, "new": ["link/mine.txt"], "removed": [], "found": {}}',
        '{"forward": true, "new": [], "removed": [7], "found": {}}',
    ],
)
def test_a_journal_is_not_trusted(tmp_path: Path, text: str) -> None:
    write_project(tmp_path / "p", OLD)
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "p/link").symlink_to(tmp_path)
    (tmp_path / "p/.tinyet-update").mkdir()
    (tmp_path / "p/.tinyet-update/journal.json").write_text(text)
    before = _snapshot(tmp_path)
    for attempt in (read_manifest, _build, lambda place: write_project(place, NEW)):
        with pytest.raises(ProjectError, match="not what tinyet left"):
            attempt(tmp_path / "p")
    assert _snapshot(tmp_path) == before


# ---- links ----


def test_a_link_to_a_directory_is_a_place_for_a_project(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    (tmp_path / "later").symlink_to(tmp_path / "not" / "yet")
    for out, real in (("out", "real"), ("later", "not/yet")):
        for _ in range(2):
            write_project(tmp_path / out, NEW)
            assert (tmp_path / out).is_symlink()
            assert _snapshot(tmp_path / real) == _snapshot(tmp_path / out) == _whole(tmp_path, NEW)


def test_nothing_is_written_through_a_link_in_a_project(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "p", tmp_path / "elsewhere"
    write_project(project, OLD)
    (project / "lib").rename(elsewhere)
    (project / "lib").symlink_to(elsewhere)
    (project / "come").write_text("a file where a directory should be")
    for overwrite in (False, True):
        with pytest.raises(ProjectError, match=r"come \(.*\n.*lib \(not a directory that tinyet made"):
            write_project(project, NEW, overwrite=overwrite)
    assert _snapshot(elsewhere) == {"a.c": "old", "gone/b.c": "old"}


def test_a_link_in_place_of_a_file_is_the_users(tmp_path: Path) -> None:
    project, mine = tmp_path / "p", tmp_path / "mine.c"
    write_project(project, OLD)
    mine.write_text("mine")
    (project / "src/main.c").unlink()
    (project / "src/main.c").symlink_to(mine)
    assert write_project(project, NEW).kept == ("src/main.c",)
    assert (project / "src/main.c").is_symlink()
    (project / "lib/a.c").unlink()
    (project / "lib/a.c").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ProjectError, match=r"lib/a\.c \(changed"):
        write_project(project, OLD)
    write_project(project, OLD, overwrite=True)
    assert not (project / "lib/a.c").is_symlink()
    assert mine.read_text() == "mine"


# ---- two at once ----

_HOLDER = """\
import sys
from pathlib import Path
from tinyet.build.lock import project_lock
with project_lock(Path(sys.argv[1]), "building", patience=0):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_one_waits_and_tells_for_whom_and_a_killed_one_locks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path, OLD)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        monkeypatch.setattr(tree, "WRITE_PATIENCE", 0.0)
        with pytest.raises(ProjectError, match=f"at work in this project: process {other.pid}, building"):
            write_project(tmp_path, NEW)
        lines: list[str] = []

        def kill(line: str) -> None:
            lines.append(line)
            other.kill()

        with building(tmp_path, on_wait=kill):
            assert (tmp_path / LOCK).exists()
    assert lines == [f"waiting for process {other.pid}, building in {tmp_path}"]
    assert not (tmp_path / LOCK).exists()
    (tmp_path / LOCK).write_text("process 1, of a machine that lost its power")
    write_project(tmp_path, NEW)
    assert not (tmp_path / LOCK).exists()


def test_two_builds_at_once_are_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = generate(small.program(), "mps2_an386", tmp_path / "p", kind="cmake")
    inside, lines, started, both = 0, list[str](), threading.Event(), threading.Event()

    def build(path: Path, _board: object, *, compiler: str, on_output: object) -> None:
        nonlocal inside
        assert compiler == "gcc"
        assert (path / LOCK).exists()
        assert on_output is not None
        inside += 1
        started.set()
        assert both.wait(60)
        while not lines and other.is_alive():  # until the second one waits
            time.sleep(0.001)
        assert inside == 1
        inside -= 1
        raise ToolchainError("that is all")

    def work() -> None:
        with pytest.raises(ToolchainError, match="that is all"):
            project.build(on_output=lines.append)

    monkeypatch.setattr("tinyet.build.cmake.build", build)
    first, other = threading.Thread(target=work), threading.Thread(target=work)
    first.start()
    assert started.wait(60)
    other.start()
    both.set()
    first.join(60)
    other.join(60)
    assert lines == [f"waiting for process {os.getpid()}, building in {project.path}"]


def test_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many threads, of which each makes and removes the lock's file again and again."""
    monkeypatch.setattr(lock, "_POLL_SECONDS", 0.0001)
    inside, most, done = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, done
        for _ in range(20):
            with project_lock(tmp_path, "testing", patience=60):
                inside += 1
                most = max(most, inside)
                done += 1
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, done) == (1, 160)


def test_a_lock_is_never_a_link(tmp_path: Path) -> None:
    write_project(tmp_path / "p", OLD)
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "p" / LOCK).symlink_to(tmp_path / "mine")
    with pytest.raises(ProjectError, match="cannot lock"):
        write_project(tmp_path / "p", NEW)
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.skipif(sys.platform == "win32", reason="hard links and pipes of POSIX")
@pytest.mark.parametrize("what", ["hard link", "pipe"])
def test_a_lock_is_a_file_of_its_own(tmp_path: Path, what: str) -> None:
    """What an archive that was unpacked can leave in its place."""
    write_project(tmp_path / "p", OLD)
    (tmp_path / "mine").write_text("mine")
    if what == "pipe":
        os.mkfifo(tmp_path / "p" / LOCK)
    else:
        os.link(tmp_path / "mine", tmp_path / "p" / LOCK)
    for attempt in (_build, lambda place: write_project(place, NEW)):
        with pytest.raises(ProjectError, match="cannot lock the project: it is no file of its own"):
            attempt(tmp_path / "p")
    assert (tmp_path / "mine").read_text() == "mine"
    assert (tmp_path / "p" / LOCK).exists()


# ---- archives ----

_ARCHIVED: dict[str, str | bytes] = {**OLD, "lib/.hidden": "hidden"}


def _names(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as opened:
        return opened.namelist()


def _archive(place: Path, files: Mapping[str, str | bytes] = _ARCHIVED) -> tree.Written:
    return write_project(place, files, archives={"lib.zip": "lib"})


def test_an_archive_holds_the_folder_as_it_is_after_the_update(tmp_path: Path) -> None:
    place = tmp_path / "p"
    assert "lib.zip" in _archive(place).written
    assert _names(place / "lib.zip") == ["lib/a.c", "lib/gone/b.c"]
    (place / "lib/mine.h").write_text("mine")
    (place / "lib/link.h").symlink_to(place / "same")
    _archive(place, NEW)
    assert _names(place / "lib.zip") == ["lib/a.c", "lib/mine.h"]
    with zipfile.ZipFile(place / "lib.zip") as opened:
        assert (opened.read("lib/a.c"), opened.read("lib/mine.h")) == (b"new", b"mine")
    assert write_project(place, NEW).removed == ("lib.zip",)


@pytest.mark.parametrize("name", [".lib.zip.part", ".lib.zip", "lib.zip.part"])
def test_no_archive_is_written_through_a_link(tmp_path: Path, name: str) -> None:
    place, victim = tmp_path / "p", tmp_path / "victim"
    write_project(place, OLD)
    victim.write_text("mine")
    (place / name).symlink_to(victim)
    _archive(place)
    (place / "lib.zip").unlink()
    (place / "lib.zip").symlink_to(victim)
    with pytest.raises(ProjectError, match=r"lib\.zip \(changed since"):
        _archive(place)
    assert victim.read_text() == "mine"
    assert (place / name).is_symlink()


def test_a_manifest_that_names_the_users_archive_gives_nothing_away(tmp_path: Path) -> None:
    """Only a file with the digest that the manifest holds is replaced, or removed."""
    place = tmp_path / "p"
    write_project(place, OLD)
    (place / "mine.zip").write_text("mine")
    found = json.loads((place / "tinyet.json").read_text())
    (place / "tinyet.json").write_text(json.dumps(found | {"archive": "mine.zip"}))
    write_project(place, OLD)
    assert (place / "mine.zip").read_text() == "mine"
    (place / "tinyet.json").write_text(json.dumps(found | {"archive": "mine.zip"}))
    with pytest.raises(ProjectError, match=r"mine\.zip \(not written by tinyet\)"):
        write_project(place, OLD, archives={"mine.zip": "lib"})
    (place / "mine.zip").unlink()
    write_project(place, OLD, archives={"mine.zip": "lib"})
    (place / "mine.zip").write_text("mine again")
    for archives in ({}, {"mine.zip": "lib"}):
        with pytest.raises(ProjectError, match=r"mine\.zip \(changed since tinyet wrote it\)"):
            write_project(place, OLD, archives=archives)
    assert (place / "mine.zip").read_text() == "mine again"


def test_a_disk_that_is_full_while_an_archive_is_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _archive(tmp_path / "p")
    before = {path: path.read_bytes() for path in (tmp_path / "p").rglob("*") if path.is_file()}
    write = atomic.write_new

    def full(path: Path, data: bytes) -> None:
        if path.suffix == ".zip":
            write(path, data[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, data)

    monkeypatch.setattr(tree, "write_new", full)
    with pytest.raises(ProjectError, match="cannot write the project: No space left"):
        _archive(tmp_path / "p", NEW)
    assert {path: path.read_bytes() for path in (tmp_path / "p").rglob("*") if path.is_file()} == before


def test_a_kill_at_any_operation_leaves_an_archive_old_or_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, seen = _Disk(monkeypatch), set[str]()
    for step in range(1, 10**6):
        place = tmp_path / str(step)
        _archive(place, {"tinyet.json": "{}", "lib/a.c": "old"})
        disk.count, disk.last = 0, step
        try:
            _archive(place, {"tinyet.json": "{}", "lib/b.c": "new"})
        except Killed:
            pass
        else:
            break
        finally:
            disk.last = 10**9
        with building(place):
            names = _names(place / "lib.zip")
        assert names == [path.relative_to(place).as_posix() for path in (place / "lib").iterdir()], step
        assert {path.name for path in place.iterdir()} == {"tinyet.json", "lib", "lib.zip"}
        seen.add(*names)
    assert seen == {"lib/a.c", "lib/b.c"}


def test_what_lies_among_the_drafts_and_is_not_tinyets_stays(tmp_path: Path) -> None:
    write_project(tmp_path / "p", OLD)
    (tmp_path / "p/.tinyet-update").mkdir()
    (tmp_path / "p/.tinyet-update/thesis.txt").write_text("mine")
    with pytest.raises(ProjectError, match="not what tinyet left"):
        write_project(tmp_path / "p", NEW)
    assert (tmp_path / "p/.tinyet-update/thesis.txt").read_text() == "mine"
