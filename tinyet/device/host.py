# SPDX-License-Identifier: Apache-2.0
"""Runs the harness as a process on this machine, under the address and undefined-behaviour sanitizers."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tinyet import assets
from tinyet.build import objects, process
from tinyet.build.gcc import HARNESS_DEFINES
from tinyet.device.child import Child
from tinyet.device.links import PipeLink

BYTES_PER_SECOND = 1e6

_SOURCES = ("harness/main.c", "harness/tinyet_harness.c", "platform/tinyet_posix.c")
_SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
_LINK_SECONDS = 300.0


def build_host(
    sources: Sequence[Path],
    include_dirs: Sequence[Path],
    out_dir: Path,
    defines: Sequence[tuple[str, str]] = (),
    *,
    sanitize: bool = True,
    flags: Sequence[str] = ("-O1",),
) -> Path:
    """Compile a model, its kernels and model_desc.c with the harness; return the executable
    `out_dir`/harness.

    sanitize: stop at the first access outside an object and at the first undefined operation.
    Raises ToolchainError with the compiler's messages.
    """
    firmware = assets.path("firmware")
    out_dir.mkdir(parents=True, exist_ok=True)
    executable = out_dir / "harness"
    compiler = [
        "gcc" if shutil.which("gcc") else "cc",
        *("-std=c11", "-g", "-ffp-contract=off", *flags, *(_SANITIZE if sanitize else ())),
        *(f"-D{name}={value}" for name, value in (*HARNESS_DEFINES, *defines)),
        *(f"-I{path}" for path in (firmware / "include", *include_dirs)),
    ]
    what = "building the harness for this machine"
    all_sources = [*(firmware / source for source in _SOURCES), *sources]
    made = objects.compile_objects(compiler, all_sources, out_dir / "objects", what=what)
    link = [*compiler, *made, "-lm", "-o", executable]
    process.run(link, timeout=_LINK_SECONDS, what=what)
    process.check_made(executable, link, what=what)
    return executable


def start(executable: Path) -> PipeLink:
    """Start the executable and return the link to it."""
    return PipeLink(Child([str(executable.resolve())], pipes=True))
