# SPDX-License-Identifier: Apache-2.0
"""A deployment's C as a shared library in the user's cache: compiled by one command, once for equal sources.

The key of an entry is the digest of the sources, the flags, the compiler's version and the machine. `KEY.txt` names
the library by the digest of its own bytes, `DIGEST.so`, and both are written whole or not at all: of processes that
compile the same, each replaces the other's files by equal ones. A damaged library is not loaded, but compiled again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tinyet import assets
from tinyet.build import process
from tinyet.deployment import Deployment
from tinyet.emit.model import model_files
from tinyet.errors import ToolchainError
from tinyet.files.atomic import write_whole
from tinyet.messages.stages import stage

NAME = "evaluated"
"""Of the model in its C: the same for all, so that equal graphs have equal sources."""

# No flag names this machine's own instructions: a library in a home directory may be loaded on several, and GCC 12
# makes nothing faster of them (MobileNetV2 and ResNet8, AVX-512 against SSE2).
FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-fPIC", "-shared")

MOST_LIBRARIES = 64
"""Libraries that the cache keeps: those that were loaded last."""

_COMPILE_SECONDS = 600.0
_VERSION_SECONDS = 30.0
_WHAT = "compiling the model for this machine"


def library_of(deployment: Deployment) -> Path:
    """The library of a deployment for this machine, compiled if the cache does not have it.

    Raises ToolchainError where there is no compiler, it fails, or the cache cannot be used.
    """
    if sys.platform == "win32":
        raise ToolchainError(
            "libraries are not compiled on Windows", hint="the host reference evaluates there"
        )
    compiler = "gcc" if shutil.which("gcc") else "cc"
    found = process.find_tool(compiler, what=_WHAT)
    stage("preparing the model's C")
    files = model_files(deployment, NAME, ["Evaluated on the machine that has generated it."])
    try:
        folder = _folder()
        key = _key(files, _version(found, found.stat().st_mtime_ns))
        library = _cached(folder, key)
        if library is None:
            library = _stored(folder, key, _compiled(found, files, folder))
            _prune(folder)
    except OSError as error:
        raise ToolchainError(
            f"the cache of compiled models cannot be used: {error.strerror or error}",
            str(assets.cache_dir()),
            "XDG_CACHE_HOME names another directory",
        ) from error
    return library


def _folder() -> Path:
    """The cache's directory. Raises PermissionError where others than this user may put code."""
    folder = assets.cache_dir() / "native"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(1, f"others than you may write to {folder}")
    return folder


@functools.cache
def _version(compiler: Path, _changed: int) -> str:
    """What the compiler says of itself."""
    return process.run([compiler, "--version"], timeout=_VERSION_SECONDS, what=_WHAT).stdout


def _key(files: Mapping[str, str], version: str) -> str:
    facts = [sorted(files.items()), FLAGS, version, platform.machine(), platform.system()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _cached(folder: Path, key: str) -> Path | None:
    """The entry's library; None where there is none, or one that is not as it was written."""
    entry = folder / f"{key}.txt"
    try:
        digest = entry.read_text(encoding="ascii")
        if len(digest) != hashlib.sha256().digest_size * 2 or not digest.isalnum():
            return None
        library = folder / f"{digest}.so"
        if hashlib.sha256(library.read_bytes()).hexdigest() != digest:
            return None
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    os.utime(entry)
    return library


def _compiled(compiler: Path, files: Mapping[str, str], folder: Path) -> bytes:
    stage("compiling the model for this machine")
    with tempfile.TemporaryDirectory(prefix="compiling-", dir=folder) as name:
        where = Path(name)
        for file, text in files.items():
            (where / file).parent.mkdir(parents=True, exist_ok=True)
            (where / file).write_text(text, encoding="utf-8", newline="\n")
        sources = sorted(file for file in files if file.endswith(".c"))
        include = assets.path("firmware") / "include"
        command: list[str | Path] = [
            compiler,
            *FLAGS,
            "-I.",
            f"-I{include}",
            *sources,
            "-o",
            "model.so",
            "-lm",
        ]
        process.run(command, cwd=where, timeout=_COMPILE_SECONDS, what=_WHAT)
        process.check_made(where / "model.so", command, what=_WHAT)
        return (where / "model.so").read_bytes()


def _stored(folder: Path, key: str, data: bytes) -> Path:
    digest = hashlib.sha256(data).hexdigest()
    library = folder / f"{digest}.so"
    write_whole(library, data)
    write_whole(folder / f"{key}.txt", digest.encode("ascii"))
    return library


def _prune(folder: Path) -> None:
    """Remove what was not loaded for longest. A process that has loaded a library keeps it."""
    with contextlib.suppress(OSError):
        entries = sorted(folder.glob("*.txt"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for entry in entries[MOST_LIBRARIES:]:
            entry.unlink(missing_ok=True)
        kept = {f"{entry.read_text(encoding='ascii')}.so" for entry in entries[:MOST_LIBRARIES]}
        for library in folder.glob("*.so"):
            if library.name not in kept:
                library.unlink(missing_ok=True)
