# SPDX-License-Identifier: Apache-2.0
"""Reads files of strangers: regular ones, and no more of them than there can be."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 20


def open_regular(path: str | Path) -> BinaryIO:
    """A file, open for reading. Raises OSError where it cannot be read, and for what is no file: a device, a pipe, a
    directory. Nothing waits for a pipe's other end."""
    # A pipe without a writer would block here; to regular files the flag means nothing.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is no regular file", str(path))


def read_bounded(path: str | Path, most: int) -> bytes:
    """The bytes of a file that has at most `most` of them. Raises OSError as `open_regular` does, and where there are
    more."""
    with open_regular(path) as file:
        # A read makes room for as much as it asks for, however short the file is.
        data = file.read(min(most, os.fstat(file.fileno()).st_size) + 1)
        while len(data) <= most and (more := file.read(_CHUNK)):
            data += more
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return data
