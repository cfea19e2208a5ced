# SPDX-License-Identifier: Apache-2.0
"""Objects that outlive a session of tests, in pytest's cache: the next one compiles what has changed.

They are those of one set of tools. What a compiler reads that is not hashed with each object (itself, its assembler,
headers of its libraries) comes from packages, and all of it counts as changed when any package did. So nothing is kept
where no database says when packages changed. `pytest --cache-clear` and `make clean` begin anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

PACKAGES = Path("/var/lib/dpkg/status")
"""Debian's database of packages: each change of a package writes it."""
UNUSED_DAYS = 3
MOST_BYTES = 2 << 30


def directory(cache: Path | None, decisive: Iterable[Path], packages: Path = PACKAGES) -> Path | None:
    """The directory of objects that these files decide besides what is compiled; None where none can be kept.

    cache: where such directories lie. Objects that no session of the last days asked for go, then the longest unused
    ones of too many. Others stay: a session that began before a tool changed may still run.
    """
    if cache is None or not packages.is_file():
        return None
    facts = [(str(path.resolve()), path.stat()) for path in (packages, *decisive)]
    text = "".join(f"{name} {found.st_size} {found.st_mtime_ns}\n" for name, found in facts)
    _forget(cache)
    place = cache / hashlib.sha256(text.encode()).hexdigest()[:16]
    place.mkdir(exist_ok=True)
    os.utime(place)
    return place


def _forget(cache: Path) -> None:
    oldest = time.time() - UNUSED_DAYS * 86400
    room = MOST_BYTES
    files: list[tuple[float, int, Path]] = []
    folders: list[tuple[float, int, Path]] = []
    for path in (Path(at, name) for at, below, here in os.walk(cache) for name in (*below, *here)):
        # Another session may remove it at this moment.
        with contextlib.suppress(FileNotFoundError):
            (folders if path.is_dir() else files).append((path.stat().st_mtime, path.stat().st_size, path))
    for used, size, path in sorted(files, reverse=True):
        room -= size
        if room < 0 or used < oldest:
            path.unlink(missing_ok=True)
    for used, _, folder in reversed(folders):
        if used < oldest:
            with contextlib.suppress(OSError):  # It is not empty.
                folder.rmdir()
