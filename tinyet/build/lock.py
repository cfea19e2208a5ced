# SPDX-License-Identifier: Apache-2.0
"""Lets one process at a time write to a project or build it.

The system releases the lock when the process that holds it ends, however it ends, so that a file which a killed process
left behind locks nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from tinyet.errors import ProjectError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK = ".tinyet.lock"
"""The file's name in the project. It is there while a process works on the project, and names the process."""

# A build may have a framework to download; writing takes a moment.
BUILD_PATIENCE = 3600.0
WRITE_PATIENCE = 10.0

_POLL_SECONDS = 0.1
# Neither through a link nor waiting for the other end of a pipe.
_NOT_THROUGH = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
# On Windows a locked part of a file cannot be read; the holder's name stands in front of it.
_LOCKED_BYTE = 1 << 20


@contextlib.contextmanager
def project_lock(
    directory: Path, task: str, *, patience: float, on_wait: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold the lock of a project, which may be any directory.

    task: the work meanwhile, shown to waiting processes, as in "building". patience: seconds to wait for another
    holder. on_wait: called once with a line that names the holder.

    Not reentrant. Raises ProjectError when the other one has not ended by then, or the directory cannot be written to.
    """
    path = directory / LOCK
    try:
        handle = _acquire(path, patience, on_wait)
    except OSError as error:
        raise ProjectError(
            what=f"cannot lock the project: {error.strerror or error}",
            where=str(path),
            hint="choose a directory that you may write to, and remove what lies there if it is no file of tinyet's",
        ) from error
    try:
        handle.truncate(0)
        handle.write(f"process {os.getpid()}, {task}")
        handle.flush()
        yield
    finally:
        # A process that waits for this very file finds that it is gone from its place, and takes a new one.
        with contextlib.suppress(OSError):
            path.unlink()
        handle.close()


def _acquire(path: Path, patience: float, on_wait: Callable[[str], None] | None) -> IO[str]:
    """The open file, locked."""
    polls = 0
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NOT_THROUGH, 0o666)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            # The holder's name would be written into a foreign file, or into no file at all.
            os.close(descriptor)
            raise OSError(errno.EINVAL, "it is no file of its own")
        handle = os.fdopen(descriptor, "r+", encoding="utf-8")
        if _try(handle):
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(handle.fileno()), path.stat(follow_symlinks=False)):
                    return handle
            handle.close()
            continue
        who = handle.read(200).strip() or "another process"
        handle.close()
        if polls == 0 and on_wait is not None:
            on_wait(f"waiting for {who} in {path.parent}")
        if polls * _POLL_SECONDS >= patience:
            raise ProjectError(
                what=f"somebody else is at work in this project: {who}",
                where=str(path.parent),
                hint="wait until it has ended, or end it",
            )
        polls += 1
        time.sleep(_POLL_SECONDS)


def _try(handle: IO[str]) -> bool:
    """Lock the file, unless somebody has."""
    try:
        if sys.platform == "win32":
            handle.seek(_LOCKED_BYTE)
            try:
                msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
            finally:
                handle.seek(0)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
