# SPDX-License-Identifier: Apache-2.0
"""Compilers that make no object twice, also for PlatformIO, CMake and scripts: launcher.c stands before each of them on
PATH, under its name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compilers import kept
from tests.ops import objects as made_by
from tests.ops.objects import COMPILED, TOOLS

SOURCE = Path(__file__).with_name("launcher.c")

_NAMES = ("gcc", "g++", "cc", "c++", "clang", "clang++")
_PREFIXES = ("", "arm-none-eabi-", "riscv64-unknown-elf-", "xtensa-lx106-elf-", "avr-")


def install(directory: Path, cache: Path | None, patch: pytest.MonkeyPatch) -> None:
    """Put launchers in front of this machine's compilers, for this process and all that it starts.

    directory: of the session, for launchers and, without a cache, for objects. cache: where objects stay for the next
    session. Nothing where there is no compiler for this machine.
    """
    if COMPILED in os.environ or sys.platform != "linux" or shutil.which("gcc") is None:
        return
    found = [tool for name in compilers() if (tool := shutil.which(name)) is not None]
    tools = directory / TOOLS
    tools.mkdir()
    objects = kept.directory(cache, [*map(Path, found), SOURCE, Path(made_by.__file__)])
    if objects is None:
        objects = directory / "compiled"
        objects.mkdir()
    try:
        made = build(tools / "launcher", os.environ["PATH"])
    except subprocess.CalledProcessError:
        return  # Its own test fails then; others take longer.
    for tool in found:
        (tools / Path(tool).name).hardlink_to(made)
    patch.setenv("PATH", str(tools), prepend=os.pathsep)
    patch.setenv(COMPILED, str(objects))


def compilers() -> list[str]:
    return [prefix + name for prefix in _PREFIXES for name in _NAMES]


def build(out: Path, search_path: str, *flags: str) -> Path:
    """Compile the launcher. search_path: where compilers are that are no longer on PATH."""
    command = ["gcc", "-std=gnu11", "-O1", *flags, f'-DSEARCH_PATH="{search_path}"']
    subprocess.run([*command, str(SOURCE), "-o", str(out)], check=True)
    return out
