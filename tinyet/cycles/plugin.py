# SPDX-License-Identifier: Apache-2.0
"""Builds the plugin of QEMU's that the estimate needs, and says what is missing where it cannot."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from tinyet import assets
from tinyet.boards import Board
from tinyet.build import process
from tinyet.errors import MissingTool, ToolchainError, UsageError, bullet_list
from tinyet.timing.cores import CORES, WITHOUT_MODEL
from tinyet.timing.model import Model

_BUILD_SECONDS = 60.0
_HELP_SECONDS = 30.0
# The first QEMU that refuses version 1 of its interface to plugins.
_FIRST_WITH_VERSION_2 = 9
_FOR_CYCLES = "estimating cycles"
_REAL_CYCLES = "a real board counts cycles: tinyet validate DIR --on serial:PORT"


def core_of(board: Board) -> Model:
    """The model of a board's core. Raises UsageError where there is none, with the reason."""
    core = CORES.get(board.core)
    if core is None:
        raise UsageError(
            f"there is no model of the cycles of {board.core}: {WITHOUT_MODEL[board.core]}",
            board.name,
            f"leave --estimate out; there are models for {', '.join(CORES)}; {_REAL_CYCLES}",
        )
    return core


def build_plugin(machine: Board, where: Path) -> Path:
    """Compile the plugin for the QEMU that emulates a board; return the shared object in the directory `where`.

    Raises UsageError: this system has no plugins of QEMU's, or its QEMU was built without them; MissingTool, with all
    that is missing; ToolchainError.
    """
    if sys.platform == "win32":
        raise UsageError(
            "--estimate needs a plugin of QEMU's, which tinyet builds on Linux and macOS only",
            hint=f"leave --estimate out; {_REAL_CYCLES}",
        )
    qemu = str(machine.toolchain.qemu)
    compiler = "gcc" if shutil.which("gcc") else "cc"
    missing = [tool for tool in (compiler, qemu) if shutil.which(tool) is None]
    if missing:
        raise MissingTool(
            f"{_FOR_CYCLES} needs what is not installed:\n"
            + bullet_list(["a C compiler for this machine (gcc or cc)" if t == "cc" else t for t in missing]),
            "PATH",
            "\n".join(process.install_command(tool) for tool in missing),
        )
    out = where / "tinyet_profile.so"
    command = [
        *(compiler, "-std=gnu11", "-O2", "-shared", "-fPIC"),
        # What the plugin calls is in QEMU itself.
        *(("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()),
        f"-DTINYET_QEMU_PLUGIN_API={plugin_api(qemu)}",
        assets.path("qemu") / "tinyet_profile.c",
        *("-o", out),
    ]
    what = "building the plugin of QEMU's that counts instructions"
    process.run(command, timeout=_BUILD_SECONDS, what=what)
    process.check_made(out, command, what=what)
    return out


def plugin_api(qemu: str) -> int:
    """The version of the interface to plugins that an installed QEMU takes. Raises UsageError where it takes none."""
    help_text = process.run([qemu, "-help"], timeout=_HELP_SECONDS, what=_FOR_CYCLES).stdout
    if re.search(r"^-plugin\b", help_text, re.MULTILINE) is None:
        raise UsageError(
            f"{qemu} was built without plugins, and --estimate needs one",
            str(shutil.which(qemu)),
            "take a QEMU with them, such as Debian's, configure yours with --enable-plugins, or leave --estimate out",
        )
    version = re.search(r"version (\d+)\.", help_text)
    if version is None:
        raise ToolchainError(
            f"{qemu} does not tell its version", str(shutil.which(qemu)), f"{qemu} -help: is it QEMU?"
        )
    return 1 if int(version.group(1)) < _FIRST_WITH_VERSION_2 else 2
