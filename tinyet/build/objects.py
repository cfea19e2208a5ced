# SPDX-License-Identifier: Apache-2.0
"""Compiles C sources with a compiler alone, several at a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tinyet.build import process

_COMPILE_SECONDS = 300.0


def compile_object(compiler: Sequence[str | Path], source: Path, out: Path, *, what: str) -> Path:
    """Compile `source` to `out`, and return the object's path. Raises ToolchainError with the compiler's messages.

    compiler: with its flags. what: the task, for error messages.
    """
    command = [*compiler, "-c", source, "-o", out]
    process.run(command, timeout=_COMPILE_SECONDS, what=what)
    process.check_made(out, command, what=what)
    return out


def compile_objects(
    compiler: Sequence[str | Path], sources: Sequence[Path], directory: Path, *, what: str
) -> list[Path]:
    """Compile each source to an object in `directory`, as many at a time as this machine has cores.

    Returns the objects in the order of the sources. Raises ToolchainError for the first source that fails.
    """
    directory.mkdir(parents=True, exist_ok=True)

    def compile_one(number: int) -> Path:
        # Two sources may have the same name.
        out = directory / f"{number}_{sources[number].stem}.o"
        return compile_object(compiler, sources[number], out, what=what)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compile_one, range(len(sources))))
