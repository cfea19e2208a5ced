# SPDX-License-Identifier: Apache-2.0
"""The .zip file that the Arduino IDE installs a library from: Sketch > Include Library > Add .ZIP Library."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from tinyet.errors import ProjectError
from tinyet.files.reading import read_bounded

# The earliest that the format knows; the same library gives the same bytes whenever and wherever it is packed.
_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16
_UNIX = 3
# Of a library whose archive fits into memory, and onto no board.
_MOST_BYTES = 1 << 30


def files_of(library: Path) -> dict[str, bytes]:
    """The files that are in a library's folder, by their relative POSIX paths; but for hidden ones and links.

    Raises ProjectError for a folder with more than a gibibyte in it.
    """
    files: dict[str, bytes] = {}
    left = _MOST_BYTES
    for path in sorted(library.rglob("*")):
        inside = path.relative_to(library)
        if path.is_symlink() or not path.is_file() or any(part.startswith(".") for part in inside.parts):
            continue
        if path.stat().st_size > left:
            raise ProjectError(
                f"the library's folder holds more than {_MOST_BYTES:,} bytes, too much for its .zip file",
                str(path),
                "move what is not the library's elsewhere",
            )
        files[inside.as_posix()] = read_bounded(path, left)
        left -= len(files[inside.as_posix()])
    return files


def pack(name: str, files: Mapping[str, bytes]) -> bytes:
    """The archive of a library: one folder, called `name`, and in it the files, but for hidden ones.

    files: relative POSIX path -> content. Nothing is compressed, because compressed bytes depend on the machine's
    zlib.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(files, key=PurePosixPath):
            if any(part.startswith(".") for part in PurePosixPath(path).parts):
                continue
            entry = zipfile.ZipInfo(f"{name}/{path}", _DATE)
            entry.create_system, entry.external_attr = _UNIX, _MODE
            archive.writestr(entry, files[path])
    return packed.getvalue()
