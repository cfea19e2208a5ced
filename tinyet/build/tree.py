# SPDX-License-Identifier: Apache-2.0
"""Writes a generated project to disk: all of it or nothing, and never over the user's own work.

The manifest `tinyet.json` makes a directory a tinyet project. The writer adds to it the SHA-256 of each file it
wrote, so that it later knows which files the user has changed.

New files are first laid beside the old ones, in `.tinyet-update`. The journal there makes them part of the project: a
process that ends before it is written has changed nothing; one that ends after it leaves the rest to the next
process, and every process that reads the manifest, writes or builds does that first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from tinyet.build import library_zip
from tinyet.build import manifest as manifest_file
from tinyet.build.lock import BUILD_PATIENCE, LOCK, WRITE_PATIENCE, project_lock
from tinyet.build.manifest import MANIFEST, MOST_FILES, is_inside
from tinyet.errors import InternalError, ProjectError, bullet_list
from tinyet.files.atomic import write_new
from tinyet.files.reading import read_bounded

_UPDATE = ".tinyet-update"
# In _UPDATE: the new files, the old ones that made room for them, and the pending moves.
_NEW, _OLD, _JOURNAL, _DRAFT = _PARTS = ("new", "old", "journal.json", "draft.json")
_MOST_JOURNAL_BYTES = 1 << 22


@dataclass(frozen=True)
class Written:
    """The result of writing a project: relative paths, sorted. `kept` lists files that the user changed; they were
    left alone."""

    written: tuple[str, ...]
    kept: tuple[str, ...]
    removed: tuple[str, ...]


def write_project(
    directory: Path,
    files: Mapping[str, str | bytes],
    *,
    archives: Mapping[str, str] = MappingProxyType({}),
    overwrite: bool = False,
) -> Written:
    """Write a project, or write it again.

    directory: may be a symbolic link to where the project is. Nothing is written through links inside it.
    files:     relative POSIX path -> content; `tinyet.json` must be among them. Its list "yours" names the
               files that belong to the user once they are changed (src/main.c).
    archives:  relative POSIX path of a .zip file -> the folder of the project that it holds, as it is when all else is
               written: with what is the user's in it. To the rule below it is one of the files.
    overwrite: give up the user's changes to tinyet's own files; never those to "yours".

    The rule:
    - A directory that is missing or empty gets the whole tree.
    - A directory with other content and no `tinyet.json` is refused.
    - In a project, tinyet replaces the files it wrote itself, and removes those that are no longer part of
      it. A changed file of "yours" is kept. If any other of its files was changed, or a new one would fall on
      a file of the user's, everything is refused and the files are listed. All other files are left alone.

    Raises ProjectError; then, as after any other failure, the directory is as it was before. After a killed process it
    is, too, or it is finished by the next that reads or writes it.
    """
    contents = {path: _encode(data) for path, data in files.items()}
    for path in [*contents, *archives]:
        if not is_inside(path):
            raise InternalError(f"the generated path {path!r} leaves the project")
    manifest = _manifest(contents)
    directory = Path(os.path.realpath(directory))
    try:
        is_new = not directory.exists()
        if not is_new and not is_free(directory):
            # A foreign directory does not even get a lock.
            read_manifest(directory)
        directory.mkdir(parents=True, exist_ok=True)
        try:
            with project_lock(directory, "writing the project", patience=WRITE_PATIENCE):
                _recover(directory)
                return _update(directory, contents, archives, manifest, overwrite)
        except BaseException:
            if is_new:
                with contextlib.suppress(OSError):
                    directory.rmdir()
            raise
    except OSError as error:
        raise ProjectError(
            what=f"cannot write the project: {error.strerror or error}",
            where=str(error.filename or directory),
            hint="choose a directory that you may write to, on a disk with room",
        ) from error


def is_free(directory: Path) -> bool:
    """Whether a project can be made here: the directory is missing or empty, or a killed process began one in it."""
    if not directory.exists():
        return True
    return directory.is_dir() and all(path.name in (LOCK, _UPDATE) for path in directory.iterdir())


def is_project(directory: Path) -> bool:
    """Whether there is a project here, maybe one whose first writing was cut off."""
    return (directory / MANIFEST).is_file() or (directory / _UPDATE / _JOURNAL).is_file()


@contextlib.contextmanager
def building(directory: Path, *, on_wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Build in a project: alone, and after an update that a killed process has left undone.

    on_wait: called with a line that says for whom this waits. Raises ProjectError after an hour of waiting.
    """
    with project_lock(directory, "building", patience=BUILD_PATIENCE, on_wait=on_wait):
        _recover(directory)
        yield


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return the manifest of a generated project; ProjectError when the directory is not one."""
    if (directory / _UPDATE / _JOURNAL).is_file():
        # A process that writes at this moment has removed it when the lock is free; else no process writes any more.
        with project_lock(directory, "finishing an update", patience=WRITE_PATIENCE):
            _recover(directory)
    return manifest_file.read(directory)


def _update(
    directory: Path,
    contents: Mapping[str, bytes],
    archives: Mapping[str, str],
    manifest: dict[str, Any],
    overwrite: bool,
) -> Written:
    record: dict[str, str] = {} if is_free(directory) else manifest_file.read(directory).get("files", {})
    yours = set(manifest.get("yours", ()))
    kept, changed, foreign, blocked = [], [], [], set()
    for path in sorted({*contents, *archives, *record} - {MANIFEST}):
        place = directory / path
        if barrier := _barrier(directory, path):
            blocked.add(barrier)
            continue
        if not os.path.lexists(place):
            continue
        if place.is_dir() or not (place.is_file() or place.is_symlink()):
            foreign.append(path)
            continue
        found = "" if place.is_symlink() else _digest(place.read_bytes())
        if found and (found == record.get(path) or (path in contents and found == _digest(contents[path]))):
            continue
        if path not in record:
            foreign.append(path)
        elif path in yours:
            kept.append(path)
        elif not overwrite:
            changed.append(path)
    if foreign or changed or blocked:
        raise ProjectError(
            what="generating would write over your work:\n"
            + bullet_list(
                [
                    f"{path} (not a directory that tinyet made: it writes through no link)"
                    for path in sorted(blocked)
                ]
                + [f"{path} (not written by tinyet)" for path in foreign]
                + [f"{path} (changed since tinyet wrote it)" for path in changed]
            ),
            where=str(directory),
            hint="move these files, or keep your changes in "
            + ", ".join([*sorted(yours), "files of your own"]),
        )
    gone = sorted({*record} - {*contents, *archives})
    removed = [path for path in gone if os.path.lexists(directory / path)]
    new = {path: data for path, data in contents.items() if path not in kept and path != MANIFEST}
    packed = {path: _packed(directory, folder, new, removed) for path, folder in archives.items()}
    new |= packed
    _replace(directory, new | {MANIFEST: _with_record(manifest, {**contents, **packed})}, removed)
    return Written(tuple(sorted([*new, MANIFEST])), tuple(kept), tuple(removed))


def _packed(directory: Path, folder: str, new: Mapping[str, bytes], removed: Sequence[str]) -> bytes:
    """The .zip file of a folder as it will be: present files, without removed ones, and with new ones."""
    there = {f"{folder}/{path}": data for path, data in library_zip.files_of(directory / folder).items()}
    will_be = {path: data for path, data in {**there, **new}.items() if path not in removed}
    inside = f"{folder}/"
    return library_zip.pack(
        PurePosixPath(folder).name,
        {path.removeprefix(inside): data for path, data in will_be.items() if path.startswith(inside)},
    )


def _barrier(directory: Path, path: str) -> str | None:
    """The first part of the way to a file that is a link or no directory; None where there is none."""
    way = PurePosixPath()
    for part in PurePosixPath(path).parts[:-1]:
        way /= part
        place = directory / way
        if place.is_symlink() or (os.path.lexists(place) and not place.is_dir()):
            return str(way)
    return None


# ---------------------------------------------------------------- all or nothing


def _replace(directory: Path, new: Mapping[str, bytes], removed: list[str]) -> None:
    """Put files in place of the present ones, and these back if anything goes wrong, even an interrupt."""
    update = directory / _UPDATE
    try:
        for path, data in new.items():
            place = update / _NEW / path
            place.parent.mkdir(parents=True, exist_ok=True)
            write_new(place, data)
        found = {path: _state(directory / path) for path in [*new, *removed]}
        _commit(update, _Journal(True, tuple(new), tuple(removed), found))
        _forward(directory, tuple(new), tuple(removed))
    except BaseException:
        try:
            _recover(directory, undo=True)
        except OSError as error:
            raise ProjectError(
                what=f"the project could be neither replaced nor put back: {error.strerror or error}",
                where=str(error.filename or directory),
                hint="put right what stands in the way, and run the same command again: it goes on from here",
            ) from error
        raise


@dataclass(frozen=True)
class _Journal:
    """The journal of an update. forward: complete it, else undo it. new, removed: paths; found: the earlier state of
    each."""

    forward: bool
    new: tuple[str, ...]
    removed: tuple[str, ...]
    found: Mapping[str, str]


def _commit(update: Path, journal: _Journal) -> None:
    """Write the journal, at once: from here on the update goes one way, in any process."""
    draft = update / _DRAFT
    draft.unlink(missing_ok=True)
    write_new(draft, _encode(json.dumps(vars(journal))))
    draft.replace(update / _JOURNAL)


def _recover(directory: Path, *, undo: bool = False) -> None:
    """Finish a begun update, or undo it. Does nothing without one; it may be cut off, too.

    Raises ProjectError when the journal is not one that tinyet wrote, or the user has changed a file since.
    """
    update = directory / _UPDATE
    if not os.path.lexists(update):
        return
    if update.is_symlink() or not update.is_dir():
        raise _not_ours(update)
    for place in update.iterdir():
        if place.name not in _PARTS:
            raise _not_ours(place)
    if (update / _JOURNAL).is_file():
        journal = _read_journal(directory)
        if journal.forward and undo:
            journal = dataclasses.replace(journal, forward=False)
            _commit(update, journal)
        if journal.forward:
            _check_untouched(directory, journal)
            _forward(directory, journal.new, journal.removed)
            return
        for path in [*journal.new, *journal.removed]:
            _back(directory, path, path in journal.new)
        (update / _JOURNAL).unlink()
    shutil.rmtree(update)


def _read_journal(directory: Path) -> _Journal:
    place = directory / _UPDATE / _JOURNAL
    try:
        read = json.loads(read_bounded(place, _MOST_JOURNAL_BYTES).decode("utf-8"))
        new, removed, found = read["new"], read["removed"], dict(read["found"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise _not_ours(place) from None
    if not isinstance(new, list) or not isinstance(removed, list) or len(new) + len(removed) > MOST_FILES:
        raise _not_ours(place)
    paths = [*new, *removed]
    # Each place's former content is known, or nothing is moved there, in either direction.
    known = all(isinstance(path, str) and isinstance(found.get(path), str) for path in paths)
    if not known or not isinstance(read.get("forward"), bool):
        raise _not_ours(place)
    journal = _Journal(read["forward"], tuple(new), tuple(removed), found)
    # Neither the files nor their new and old versions may be reached through a link.
    for path in paths:
        ways = [f"{folder}{path}" for folder in ("", f"{_UPDATE}/{_NEW}/", f"{_UPDATE}/{_OLD}/")]
        if not is_inside(path) or any(_barrier(directory, way) for way in ways):
            raise _not_ours(place)
    return journal


def _check_untouched(directory: Path, journal: _Journal) -> None:
    """Raise ProjectError when a file that is still to be replaced is not the one that was to be."""
    update = directory / _UPDATE
    waiting = [path for path in journal.new if os.path.lexists(update / _NEW / path)]
    waiting += [path for path in journal.removed if not os.path.lexists(update / _OLD / path)]
    now = {path: _state(directory / path) for path in waiting}
    touched = [path for path, state in now.items() if state not in ("", journal.found.get(path))]
    if touched:
        raise ProjectError(
            "an update of this project was cut off, and these files were changed since:\n"
            + bullet_list(touched),
            str(directory),
            "move them elsewhere, run the same command again, and move them back",
        )


def _state(place: Path) -> str:
    """Digest of the file at a path; empty where there is none."""
    if not os.path.lexists(place):
        return ""
    return "no file" if place.is_symlink() or not place.is_file() else _digest(place.read_bytes())


def _not_ours(place: Path) -> ProjectError:
    return ProjectError(
        "an update of this project was cut off, and this is not what tinyet left of it",
        str(place),
        "remove it, and generate the project again",
    )


def _forward(directory: Path, new: tuple[str, ...], removed: tuple[str, ...]) -> None:
    """Move each old file out of the way and each new one in, except those already moved."""
    update = directory / _UPDATE
    for path in [*removed, *new]:
        place, fresh, backup = directory / path, update / _NEW / path, update / _OLD / path
        if path in new and not os.path.lexists(fresh):
            continue
        if os.path.lexists(place) and not os.path.lexists(backup):
            backup.parent.mkdir(parents=True, exist_ok=True)
            place.rename(backup)
        if path in new:
            place.parent.mkdir(parents=True, exist_ok=True)
            fresh.rename(place)
    for path in removed:
        _remove_empty((directory / path).parent, directory)
    # It is done. The rest is useless, and no reason to fail.
    (update / _JOURNAL).unlink()
    shutil.rmtree(update, ignore_errors=True)


def _back(directory: Path, path: str, is_new: bool) -> None:
    """Undo the moves of `_forward` for a file."""
    update = directory / _UPDATE
    place, fresh, backup = directory / path, update / _NEW / path, update / _OLD / path
    if is_new and not os.path.lexists(fresh) and os.path.lexists(place):
        place.rename(fresh)
    if os.path.lexists(backup):
        place.parent.mkdir(parents=True, exist_ok=True)
        backup.rename(place)
    elif is_new:
        _remove_empty(place.parent, directory)


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and those above it, up to `top`, as long as they are empty."""
    while folder != top and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


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
