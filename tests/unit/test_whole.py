# SPDX-License-Identifier: Apache-2.0
"""Files are written whole or not at all, never through a link, and what a killed process leaves is removed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import small
from tinyet.cli import ui
from tinyet.errors import ProgramError, UsageError
from tinyet.files import atomic
from tinyet.files.atomic import write_new, write_whole
from tinyet.to_files import export_tflite

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and locks of POSIX")

Writer = Callable[[Path], object]
WRITERS: dict[str, Writer] = {
    "a .tet file": lambda path: small.program().save(path),
    "a .tflite file": lambda path: export_tflite(small.program(), path),
    "a report": lambda path: ui.write_json(str(path), {"a": 1}),
}


@pytest.fixture(params=WRITERS)
def writer(request: pytest.FixtureRequest) -> Writer:
    return WRITERS[request.param]


def test_no_draft_is_where_anybody_can_know_it(tmp_path: Path, writer: Writer) -> None:
    """A folder of a stranger's, with links where drafts once were; and with a link in the file's own place."""
    victim, place = tmp_path / "victim", tmp_path / "folder" / "out"
    place.parent.mkdir()
    victim.write_text("mine")
    for name in ("out.part", ".out.part", ".out.tmp", "out.tmp", "out"):
        (place.parent / name).symlink_to(victim)
    writer(place)
    assert victim.read_text() == "mine"
    assert not place.is_symlink()
    assert place.stat().st_size > 0
    assert len(list(place.parent.iterdir())) == 5


def test_a_disk_that_is_full_changes_nothing(
    tmp_path: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "out"
    place.write_text("old")
    create = atomic.create

    class Full:
        """A file that takes a few bytes, and then no more."""

        def __init__(self, path: Path) -> None:
            self._file = create(path)

        def write(self, data: bytes) -> None:
            self._file.write(data[:3])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def fileno(self) -> int:
            return self._file.fileno()

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

    monkeypatch.setattr(atomic, "create", Full)
    with pytest.raises((ProgramError, UsageError), match="No space left"):
        writer(place)
    assert place.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_device_or_a_directory_is_not_replaced(tmp_path: Path, writer: Writer) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    (tmp_path / "to_pipe").symlink_to(tmp_path / "pipe")
    for name, words in (
        ("pipe", "no regular file"),
        ("to_pipe", "no regular file"),
        ("directory", "Is a directory"),
        ("none/out", "No such file"),
    ):
        with pytest.raises((ProgramError, UsageError), match=words):
            writer(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["directory", "pipe", "to_pipe"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_new_file_is_never_an_old_one(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("victim", "link", "dangling"):
        with pytest.raises(FileExistsError):
            write_new(tmp_path / name, b"new")
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


_KILLED = """\
import os, signal, sys
from tinyet import whole
os.replace = lambda *_: (print("written", flush=True), signal.pause())
whole.write_whole(sys.argv[1], b"new")
"""


def test_what_a_killed_process_left_is_removed_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    place = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(place)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "written\n"
        (draft,) = tmp_path.iterdir()
        write_whole(place, b"first")
        assert draft.exists(), "another process is still writing it"
        other.kill()
    # Like it in name, and no draft of ours: a link, a directory, a file with two names, one of another place.
    mine = tmp_path / "mine"
    mine.write_text("mine")
    stem = draft.name.rpartition("-")[0]
    others = [tmp_path / f"{stem}-{number:016x}" for number in range(3)] + [tmp_path / f"{stem}-short"]
    others[0].symlink_to(mine)
    others[1].mkdir()
    os.link(mine, others[2])
    others[3].write_text("")
    write_whole(tmp_path / "another", b"")
    assert draft.exists()
    write_whole(place, b"second")
    assert not draft.exists()
    assert all(os.path.lexists(other) for other in others)
    assert (place.read_bytes(), mine.read_text()) == (b"second", "mine")
