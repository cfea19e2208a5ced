# SPDX-License-Identifier: Apache-2.0
"""Reads files of strangers: regular ones, and no more of them than there can be."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_bounded(path: str | Path, most: int) -> bytes:
    """The bytes of a file that has at most `most` of them.

    Raises OSError, as for a file that cannot be read, where there are more, and for what is no file: a device, a pipe,
    a directory. Nothing waits for a pipe's other end.
    """
    # A pipe without a writer would block here; what the flag is to other files, no one notices.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return data
