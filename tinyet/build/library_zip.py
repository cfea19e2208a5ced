# SPDX-License-Identifier: Apache-2.0
"""The .zip file that the Arduino IDE installs a library from: Sketch > Include Library > Add .ZIP Library."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tinyet.errors import ProjectError

# The earliest that the format knows; the same library gives the same bytes whenever and wherever it is packed.
_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16
_UNIX = 3


def check_zip(target: Path) -> None:
    """Raise ProjectError for a file in the archive's place, where tinyet has written none before."""
    if target.exists():
        raise ProjectError(
            "the library's .zip file would replace one that tinyet did not write",
            str(target),
            "move that file",
        )


def write_zip(library: Path, target: Path) -> None:
    """Pack a library's folder: one folder in the archive, and in it all files, but for hidden ones and links.

    Nothing is compressed, since what compression gives depends on the machine's zlib. `target` is there whole or not.
    """
    draft = target.with_name(f".{target.name}.part")
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive:
            for path in sorted(library.rglob("*")):
                inside = path.relative_to(library)
                if (
                    path.is_symlink()
                    or not path.is_file()
                    or any(part.startswith(".") for part in inside.parts)
                ):
                    continue
                entry = zipfile.ZipInfo(f"{library.name}/{inside.as_posix()}", _DATE)
                entry.create_system, entry.external_attr = _UNIX, _MODE
                archive.writestr(entry, path.read_bytes())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
