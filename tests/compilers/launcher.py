# SPDX-License-Identifier: Apache-2.0
"""Compilers that make no object twice in a session, also for PlatformIO, CMake and scripts: launcher.c stands before
each of them on PATH, under its name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMPILED = "TINYET_TEST_COMPILED"
"""The environment variable that names the directory of kept objects. A test of what compilers make of the same source
again removes it: then each compilation is made."""

_NAMES = ("gcc", "g++", "cc", "c++", "clang", "clang++")
_PREFIXES = ("", "arm-none-eabi-", "riscv64-unknown-elf-", "xtensa-lx106-elf-", "avr-")


def install(directory: Path, patch: pytest.MonkeyPatch) -> None:
    """Put launchers in front of this machine's compilers, for this process and all that it starts.

    directory: of the session, for launchers and objects. Nothing where there is no compiler for this machine.
    """
    if COMPILED in os.environ or sys.platform != "linux" or shutil.which("gcc") is None:
        return
    tools, objects = directory / "tools", directory / "compiled"
    tools.mkdir()
    objects.mkdir()
    try:
        made = build(tools / "launcher", os.environ["PATH"])
    except subprocess.CalledProcessError:
        return  # Its own test fails then; others take longer.
    for name in (prefix + name for prefix in _PREFIXES for name in _NAMES):
        if shutil.which(name) is not None:
            (tools / name).hardlink_to(made)
    patch.setenv("PATH", str(tools), prepend=os.pathsep)
    patch.setenv(COMPILED, str(objects))


def build(out: Path, search_path: str, *flags: str) -> Path:
    """Compile the launcher. search_path: where compilers are that are no longer on PATH."""
    source = Path(__file__).with_name("launcher.c")
    command = ["gcc", "-std=gnu11", "-O1", *flags, f'-DSEARCH_PATH="{search_path}"']
    subprocess.run([*command, str(source), "-o", str(out)], check=True)
    return out
