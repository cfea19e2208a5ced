# SPDX-License-Identifier: Apache-2.0
"""Writes files whole or not at all, and never through a link: whatever lies at a path, nothing elsewhere changes.

A file is first a draft beside its place, under a name that nobody can know before. Who writes it holds a lock on it, so
that what a killed process left behind is told from what is being written.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
import sys
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

_TRIES = 100


def create(path: str | Path) -> BinaryIO:
    """A new file, open for writing. Raises FileExistsError for whatever lies in its place: a link, too, wherever it
    leads."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o666), "wb")


def write_new(path: str | Path, data: bytes) -> None:
    """Write a file that is not there yet. Raises OSError as `create` does, and where it cannot be written."""
    with create(path) as file:
        file.write(data)


def write_whole(path: str | Path, data: bytes) -> None:
    """Write a file, or replace it: all of it or, as after any failure, nothing.

    A link at the path is replaced, and what it leads to stays. Raises OSError: it cannot be written, or there is
    something at the path that is no file (a device, a directory). What a killed process has left of an earlier attempt
    at the same path is removed.
    """
    place = Path(path)
    _refuse_what_is_no_file(place)
    _remove_drafts(place)
    draft, file = _draft(place)
    try:
        with file:
            file.write(data)
            file.flush()
            if sys.platform != "win32":
                # Under the lock: nobody takes it for one that was left behind.
                draft.replace(place)
        if sys.platform == "win32":
            draft.replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def _refuse_what_is_no_file(place: Path) -> None:
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(place))


def _draft(place: Path) -> tuple[Path, BinaryIO]:
    """A new draft for a place, locked where the file system can."""
    for _ in range(_TRIES):
        draft = place.with_name(f"{_prefix(place)}{secrets.token_hex(8)}")
        try:
            file = create(draft)
        except FileExistsError:
            continue
        if _lock(file):
            return draft, file
        # Somebody took it for one that was left behind, in the moment before the lock.
        file.close()
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))


def _prefix(place: Path) -> str:
    """The prefix of the names of a place's drafts: short, however long its own name is."""
    return f".tinyet-{hashlib.sha256(place.name.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}-"


def _lock(file: BinaryIO) -> bool:
    """Lock a draft. False where another process holds or has removed it; True, too, where nothing can be locked."""
    if sys.platform == "win32":
        # An open file can be removed by nobody.
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return os.fstat(file.fileno()).st_nlink == 1


def _remove_drafts(place: Path) -> None:
    """Remove drafts of a place that nobody writes any more: own files, by their names and what they are."""
    if sys.platform == "win32":
        return
    form = re.compile(re.escape(_prefix(place)) + "[0-9a-f]{16}")
    with contextlib.suppress(OSError):
        for path in place.parent.iterdir():
            if form.fullmatch(path.name):
                with contextlib.suppress(OSError):
                    _remove_if_left(path)


def _remove_if_left(draft: Path) -> None:
    with os.fdopen(os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.unlink()
