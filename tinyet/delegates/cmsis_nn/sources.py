# SPDX-License-Identifier: Apache-2.0
"""The origin of the CMSIS-NN sources, and the proof that they are the pinned release.

`$TINYET_CMSIS_NN`, else tinyet's cache, else the release archive, which is downloaded into the cache once. The bytes of
GitHub's archives are not guaranteed to stay the same, so it is the content that is checked: a SHA-256 over the sorted
(path, SHA-256) of every file that tinyet may use.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.client
import shutil
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import zlib
from pathlib import Path, PurePosixPath

from tinyet import assets
from tinyet.errors import ToolchainError
from tinyet.files.atomic import create, write_new

VERSION = assets.CMSIS_NN_VERSION
URL = f"https://github.com/ARM-software/CMSIS-NN/archive/refs/tags/v{VERSION}.tar.gz"
DIGEST = "1f7ed11327b7c2d1adeb1cd1304d202ea18678f78cafd757c422c6dc44b75c6d"
"""Of the content: see `digest`."""

_PARTS = ("Source", "Include", "LICENSE")
_SECONDS = 60.0
"""Without a byte from the server."""
_MOST_BYTES = 2**26
"""Of the archive, which has 2 MB, and of all files in it together."""
_LEFT_SECONDS = 86400.0
"""After which nobody downloads any more: what lies there then is of a process that was killed."""
_DRAFT = ".download-"
_PIECE = 1 << 16


def digest(directory: Path) -> str:
    """SHA-256, in hexadecimal, over "path sha256" lines of the C files below Source and Include and of LICENSE.

    Paths are relative, with slashes, sorted. Line ends of Windows count as those of the archive.
    """
    found = [directory / "LICENSE"]
    for part in _PARTS[:2]:
        found += [p for p in (directory / part).rglob("*") if p.suffix in (".c", ".h")]
    rows = {
        path.relative_to(directory).as_posix(): hashlib.sha256(
            path.read_bytes().replace(b"\r\n", b"\n")
        ).hexdigest()
        for path in found
        if path.is_file()
    }
    return hashlib.sha256("".join(f"{path} {rows[path]}\n" for path in sorted(rows)).encode()).hexdigest()


def directory() -> Path:
    """The directory of the pinned release, downloaded if it is nowhere on this machine.

    Raises ToolchainError when it cannot be had, or when what is there is not that release.
    """
    found = assets.cmsis_nn_dir()
    if found is None:
        found = assets.cmsis_nn_place()
        if assets.cmsis_nn_is_given():
            raise ToolchainError(
                "TINYET_CMSIS_NN names a directory without CMSIS-NN",
                str(found),
                f"check out the tag v{VERSION} of https://github.com/ARM-software/CMSIS-NN there, or unset it",
            )
        _download(found)
    return _verified(found)


@functools.cache
def _verified(place: Path) -> Path:
    if digest(place) != DIGEST:
        raise ToolchainError(
            f"these sources are not those of CMSIS-NN {VERSION}, which tinyet's kernels are proved for",
            str(place),
            f"check out the tag v{VERSION} there"
            if assets.cmsis_nn_is_given()
            else "remove this directory: the next run downloads it again",
        )
    return place


def _download(place: Path) -> None:
    """Put the release at `place`, which does not exist yet: all of it or nothing."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _remove_left(place.parent)
        with tempfile.TemporaryDirectory(prefix=_DRAFT, dir=place.parent) as temporary:
            archive, tree = Path(temporary) / "archive.tar.gz", Path(temporary) / "tree"
            _fetch(archive)
            _unpack(archive, tree)
            if digest(tree) != DIGEST:
                raise _failure("the archive does not hold the files of the release")
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()
            try:
                tree.rename(place)
            except OSError:
                # Another process was first; what it left is verified like everything else.
                if not (place / "Include").is_dir():
                    raise
    except OSError as error:
        raise _failure(f"{error.strerror or error}", error.filename) from error


def _remove_left(cache: Path) -> None:
    """Remove what downloads that were killed have left in the cache."""
    for left in cache.glob(f"{_DRAFT}*"):
        # Another process may remove it first.
        with contextlib.suppress(OSError):
            if not left.is_symlink() and left.is_dir() and left.stat().st_mtime < time.time() - _LEFT_SECONDS:
                shutil.rmtree(left)


def _fetch(archive: Path) -> None:
    try:
        with urllib.request.urlopen(URL, timeout=_SECONDS) as answer, create(archive) as out:
            length = answer.headers.get("Content-Length")
            while piece := answer.read(_PIECE):
                out.write(piece)
                if out.tell() > _MOST_BYTES:
                    raise _failure("the server sends more than the release")
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError) as error:
        reason = getattr(error, "reason", None)
        raise _failure(f"cannot be downloaded: {reason or error}") from error
    if length is not None and archive.stat().st_size != int(length):
        raise _failure("the download ended early")


def _unpack(archive: Path, tree: Path) -> None:
    """The needed files of the archive, whose top directory is dropped. Nothing is written outside `tree`."""
    try:
        left = _MOST_BYTES
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                parts = PurePosixPath(member.name).parts[1:]
                if not member.isfile() or not parts or parts[0] not in _PARTS or ".." in parts:
                    continue
                data = tar.extractfile(member)
                left -= member.size
                if data is None or left < 0:
                    raise _failure("the archive holds something else than the release")
                target = tree.joinpath(*parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                write_new(target, data.read())
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise _failure(f"the archive is damaged ({error})") from error


def _failure(what: str, where: object = None) -> ToolchainError:
    return ToolchainError(
        f"CMSIS-NN {VERSION} is not on this machine, and {what}"
        if what.startswith("cannot")
        else f"CMSIS-NN {VERSION} is not on this machine and could not be fetched: {what}",
        str(where or URL),
        f"check the connection; or check out the tag v{VERSION} of https://github.com/ARM-software/CMSIS-NN "
        "yourself and set TINYET_CMSIS_NN to its directory",
    )
