# SPDX-License-Identifier: Apache-2.0
"""Writes a generated project to disk: all of it or nothing, and never over the user's own work.

The manifest `tinyet.json` makes a directory a tinyet project. The writer adds to it the SHA-256 of each file
it wrote, which is how it later knows what the user has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tinyet.errors import InternalError, ProjectError, bullet_list

MANIFEST = "tinyet.json"


@dataclass(frozen=True)
class Written:
    """What became of the project: relative paths, sorted. `kept` are the user's changed files, left alone."""

    written: tuple[str, ...]
    kept: tuple[str, ...]
    removed: tuple[str, ...]


def write_project(directory: Path, files: Mapping[str, str | bytes], *, overwrite: bool = False) -> Written:
    """Write a project, or write it again.

    files:     relative POSIX path -> content; `tinyet.json` must be among them. Its list "yours" names the
               files that belong to the user once they are changed (src/main.c).
    overwrite: give up the user's changes to tinyet's own files; never those to "yours".

    The rule:
    - A directory that is missing or empty gets the whole tree at once.
    - A directory with other content and no `tinyet.json` is refused.
    - In a project, tinyet replaces the files it wrote itself, and removes those that are no longer part of
      it. A changed file of "yours" is kept. If any other of its files was changed, or a new one would fall on
      a file of the user's, everything is refused and the files are listed. All other files are left alone.

    Raises ProjectError; then, as after any other failure, the directory is as it was before.
    """
    contents = {path: _encode(data) for path, data in files.items()}
    for path in contents:
        if not _is_inside(path):
            raise InternalError(f"the generated path {path!r} leaves the project")
    manifest = _manifest(contents)
    try:
        if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
            _create(directory, contents | {MANIFEST: _with_record(manifest, contents)})
            return Written(tuple(sorted(contents)), (), ())
        return _update(directory, contents, manifest, overwrite)
    except OSError as error:
        raise ProjectError(
            what=f"cannot write the project: {error.strerror or error}",
            where=str(error.filename or directory),
            hint="choose a directory that you may write to, on a disk with room",
        ) from error


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return the manifest of a generated project; ProjectError when the directory is not one."""
    place = directory / MANIFEST
    try:
        manifest = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ProjectError(
            what=f"this directory is not a tinyet project: it has no {MANIFEST}",
            where=str(directory),
            hint="choose a directory that is new, empty or made by `tinyet generate`",
        ) from None
    except (OSError, ValueError) as error:
        raise ProjectError(
            what=f"cannot read the manifest: {error}", where=str(place), hint="generate into a new directory"
        ) from error
    record = manifest.get("files", {}) if isinstance(manifest, dict) else None
    # The paths are about to be replaced or removed, so what the file says is not taken on trust.
    if not isinstance(record, dict) or not all(_is_inside(path) for path in record):
        raise ProjectError(
            what="the manifest is not one that tinyet wrote",
            where=str(place),
            hint="generate into a new directory",
        )
    return dict(manifest)


def _create(directory: Path, contents: Mapping[str, bytes]) -> None:
    """Write a tree beside its place and move it there."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}-", dir=directory.parent) as temporary:
        # A temporary directory is private to its owner; the project inside gets the usual rights.
        tree = Path(temporary) / "tree"
        _write_all(tree, contents)
        with contextlib.suppress(FileNotFoundError):
            directory.rmdir()
        tree.rename(directory)


def _update(
    directory: Path, contents: Mapping[str, bytes], manifest: dict[str, Any], overwrite: bool
) -> Written:
    record: dict[str, str] = read_manifest(directory).get("files", {})
    yours = set(manifest.get("yours", ()))
    kept, changed, foreign = [], [], []
    for path in sorted({*contents, *record} - {MANIFEST}):
        place = directory / path
        if not place.exists():
            continue
        if not place.is_file():
            foreign.append(path)
            continue
        found = _digest(place.read_bytes())
        if found == record.get(path) or (path in contents and found == _digest(contents[path])):
            continue
        if path not in record:
            foreign.append(path)
        elif path in yours:
            kept.append(path)
        elif not overwrite:
            changed.append(path)
    if foreign or changed:
        raise ProjectError(
            what="generating would write over your work:\n"
            + bullet_list(
                [f"{path} (not written by tinyet)" for path in foreign]
                + [f"{path} (changed since tinyet wrote it)" for path in changed]
            ),
            where=str(directory),
            hint="move these files, or keep your changes in "
            + ", ".join([*sorted(yours), "files of your own"]),
        )
    removed = [path for path in sorted(record) if path not in contents and (directory / path).exists()]
    new = {path: data for path, data in contents.items() if path not in kept and path != MANIFEST}
    _replace(directory, new | {MANIFEST: _with_record(manifest, contents)}, removed)
    return Written(tuple(sorted([*new, MANIFEST])), tuple(kept), tuple(removed))


def _replace(directory: Path, new: Mapping[str, bytes], removed: list[str]) -> None:
    """Put files in place of the present ones, and these back if anything goes wrong, even an interrupt."""
    temporary = Path(tempfile.mkdtemp(prefix=".tinyet-", dir=directory))
    fresh, old = temporary / "new", temporary / "old"
    touched: list[str] = []
    try:
        _write_all(fresh, new)
        for path in [*removed, *new]:
            # Noted before it is done: going back looks at what is really there.
            touched.append(path)
            place, backup = directory / path, old / path
            if place.exists():
                backup.parent.mkdir(parents=True, exist_ok=True)
                place.rename(backup)
            if path in new:
                place.parent.mkdir(parents=True, exist_ok=True)
                (fresh / path).rename(place)
    except BaseException:
        _go_back(directory, temporary, touched, new)
        raise
    shutil.rmtree(temporary)
    for path in removed:
        _remove_empty((directory / path).parent, directory)


def _go_back(directory: Path, temporary: Path, touched: list[str], new: Container[str]) -> None:
    """Undo a replacement. The old files are deleted only once every one of them is back in its place."""
    try:
        for path in touched:
            place, backup = directory / path, temporary / "old" / path
            if backup.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                backup.replace(place)
            elif path in new:
                if not (temporary / "new" / path).exists():
                    # There was no old file, and the new one no longer waits: it has been placed.
                    place.unlink(missing_ok=True)
                _remove_empty(place.parent, directory)
    except OSError as error:
        raise ProjectError(
            what=f"the project could be neither replaced nor put back: {error.strerror or error}",
            where=str(error.filename or directory),
            hint=f"move the files in {temporary / 'old'} back to {directory}",
        ) from error
    shutil.rmtree(temporary)


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and those above it, up to `top`, as long as they are empty."""
    while folder != top and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _write_all(root: Path, contents: Mapping[str, bytes]) -> None:
    root.mkdir()
    for path, data in contents.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def _manifest(contents: Mapping[str, bytes]) -> dict[str, Any]:
    if MANIFEST not in contents:
        raise InternalError(f"the generated project has no {MANIFEST}")
    return dict(json.loads(contents[MANIFEST]))


def _with_record(manifest: dict[str, Any], contents: Mapping[str, bytes]) -> bytes:
    """Return the manifest with the digest of each file that tinyet generated."""
    record = {path: _digest(data) for path, data in sorted(contents.items()) if path != MANIFEST}
    return _encode(json.dumps(manifest | {"files": record}, indent=2) + "\n")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _encode(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data


def _is_inside(path: str) -> bool:
    """Return whether a relative POSIX path stays below the directory it is joined to."""
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts and "\\" not in path
