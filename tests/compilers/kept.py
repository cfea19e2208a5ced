# SPDX-License-Identifier: Apache-2.0
"""Objects that outlive a session of tests, in pytest's cache: the next one compiles what has changed.

They are those of one set of tools. What a compiler reads that is not hashed with each object (itself, its assembler,
headers of its libraries) comes from packages, and all of it counts as changed when any package did. So nothing is kept
where no database says when packages changed. `pytest --cache-clear` and `make clean` begin anew.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

PACKAGES = Path("/var/lib/dpkg/status")
"""Debian's database of packages: each change of a package writes it."""
UNUSED_DAYS = 3
MOST_BYTES = 2 << 30


def directory(cache: Path | None, decisive: Iterable[Path], packages: Path = PACKAGES) -> Path | None:
    """The directory of objects that these files decide besides what is compiled; None where none can be kept.

    cache: where such directories lie; those of other tools are removed. Objects that no session of the last days asked
    for go, and then the longest unused ones of too many.
    """
    if cache is None or not packages.is_file():
        return None
    facts = [(str(path.resolve()), path.stat()) for path in (packages, *decisive)]
    text = "".join(f"{name} {found.st_size} {found.st_mtime_ns}\n" for name, found in facts)
    place = cache / hashlib.sha256(text.encode()).hexdigest()[:16]
    for other in cache.iterdir():
        if other != place:
            shutil.rmtree(other, ignore_errors=True)
    place.mkdir(exist_ok=True)
    _forget(place)
    return place


def _forget(place: Path) -> None:
    oldest = time.time() - UNUSED_DAYS * 86400
    room = MOST_BYTES
    files = [(path.stat(), path) for path in place.rglob("*") if path.is_file()]
    for facts, path in sorted(files, key=lambda found: -found[0].st_mtime):
        room -= facts.st_size
        if room < 0 or facts.st_mtime < oldest:
            path.unlink(missing_ok=True)
    for folder in place.iterdir():
        if folder.is_dir() and folder.stat().st_mtime < oldest and not any(folder.iterdir()):
            folder.rmdir()
