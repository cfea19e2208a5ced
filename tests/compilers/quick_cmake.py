# SPDX-License-Identifier: Apache-2.0
"""CMake for tests that want a firmware, and not CMake: Ninja starts the compilers, where it is here (make takes a third
of a second more for each project), and what CMake found out about a compiler it is not asked again.

Both only change how soon the same compilers are started with the same arguments. Tests of the generated CMake projects
themselves build as users do (`as_users`).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ops.objects import TOOLS
from tinyet.build import cmake, process

GENERATOR = "CMAKE_GENERATOR"
"""CMake's own environment variable; what stands in it says that the session builds quickly."""
NINJA = "Ninja"

Run = Callable[..., subprocess.CompletedProcess[str]]


def install(directory: Path, patch: pytest.MonkeyPatch) -> None:
    """For this process and all that it starts. directory: of the session. Nothing where Ninja is not here."""
    if GENERATOR not in os.environ:
        found = shutil.which("ninja") or shutil.which("ninja", path=str(Path(sys.executable).parent))
        if found is None:
            return
        if shutil.which("ninja") is None:
            tools = directory / TOOLS
            tools.mkdir(exist_ok=True)
            (tools / "ninja").symlink_to(found)
            patch.setenv("PATH", str(tools), prepend=os.pathsep)
        patch.setenv(GENERATOR, NINJA)
    patch.setattr(cmake, "run", remembering(process.run, directory / "cmake"))


def as_users(patch: pytest.MonkeyPatch) -> None:
    """Build with CMake's own choice of a generator, and from nothing."""
    patch.delenv(GENERATOR, raising=False)


def remembering(run: Run, known: Path) -> Run:
    """The same function, which gives a first configuration what an earlier one found out about the same compiler: the
    directory that CMake itself takes over when it configures again.

    known: where such directories lie.
    """

    def run_it(command: list[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in command]
        if os.environ.get(GENERATOR) != NINJA or "--toolchain" not in words:
            return run(command, **options)
        build, toolchain = (Path(words[words.index(option) + 1]) for option in ("-B", "--toolchain"))
        if build.exists():
            return run(command, **options)
        place = known / _digest(words, toolchain)
        if place.is_dir():
            shutil.copytree(place, build / "CMakeFiles", symlinks=True)
            for system in build.glob("CMakeFiles/*/CMakeSystem.cmake"):
                text = system.read_text(encoding="utf-8")
                system.write_text(text.replace(_TOOLCHAIN, str(toolchain)), encoding="utf-8")
            # Else CMake takes the directory for one whose cache was removed.
            command = [*command, "-DCMAKE_PLATFORM_INFO_INITIALIZED=1", "--no-warn-unused-cli"]
            return run(command, **options)
        done = run(command, **options)
        _remember(build, toolchain, place)
        return done

    return run_it


_TOOLCHAIN = "@THE TOOLCHAIN@"


def _digest(words: list[str], toolchain: Path) -> str:
    """Of all that decides what CMake finds out: the toolchain file, options, and what the environment says."""
    options = [word for word in words if word.startswith("-D")]
    said = [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name in ("PATH", "CC", "CFLAGS", "LDFLAGS") or name.startswith("CMAKE_")
    ]
    parts = [toolchain.read_text(encoding="utf-8"), toolchain.name, *options, *said]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _remember(build: Path, toolchain: Path, place: Path) -> None:
    """Keep what CMake found out in a directory that it has configured; at once, so that another worker sees all or
    none."""
    found = [path.parent for path in build.glob("CMakeFiles/*/CMakeSystem.cmake")]
    if len(found) != 1:
        return
    place.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as where:
        made = Path(where, "CMakeFiles")
        shutil.copytree(found[0], made / found[0].name, ignore=shutil.ignore_patterns("CompilerId*", "*.bin"))
        system = made / found[0].name / "CMakeSystem.cmake"
        text = system.read_text(encoding="utf-8")
        if f'"{toolchain}"' not in text:
            return  # It is written in a way that is not known here.
        system.write_text(text.replace(str(toolchain), _TOOLCHAIN), encoding="utf-8")
        if not place.exists():
            try:
                made.rename(place)
            except OSError:  # Another worker was first.
                return
