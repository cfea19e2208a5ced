# SPDX-License-Identifier: Apache-2.0
"""Builds generated Zephyr projects with `west`, in the workspace that the project lies in or `$ZEPHYR_BASE` names."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tinyet.boards import Board
from tinyet.build import cmake
from tinyet.build.builder import HARNESS, Builder, OnOutput
from tinyet.build.process import run
from tinyet.errors import InternalError, ToolchainError, bullet_list

# Seconds; a first build compiles Zephyr's kernel and drivers.
_SECONDS = 1200.0

# Directory of the project -> arguments for CMake.
_BUILDS: Mapping[str, tuple[str, ...]] = {"build": (), "build-harness": ("-DEXTRA_CONF_FILE=harness.conf",)}


def elf_path(project_dir: Path, *, harness: bool) -> Path:
    """Path of the built firmware: the application, or the harness."""
    return project_dir / ("build-harness" if harness else "build") / "zephyr" / "zephyr.elf"


def build(project_dir: Path, board: Board, *, on_output: Callable[[str], None] | None = None) -> None:
    """Build the application and the harness for the board.

    on_output: called with each line that the build prints, as it appears.
    Raises ToolchainError when west or a workspace is missing (at once, with the command that installs it), or when a
    build fails.
    """
    if board.zephyr is None:
        raise InternalError(f"the board {board.name} has no name in Zephyr")
    project_dir = project_dir.absolute()
    west = _west()
    missing: dict[str, list[str]] = {}
    if west is None:
        missing["west, Zephyr's tool, is not installed"] = ["pip install west"]
    workspace = _workspace(project_dir)
    if workspace is None:
        what = "there is no workspace with Zephyr's sources, neither around the project nor in $ZEPHYR_BASE"
        missing[what] = [f"west init -l {project_dir}", *_fetch(project_dir.parent)]
    elif not any(any(workspace.glob(f"{place}Kconfig.zephyr")) for place in ("", "*/", "*/*/")):
        missing["the workspace does not have Zephyr's sources yet"] = _fetch(workspace)
    if west is None or missing:
        raise ToolchainError(
            what=f"building {project_dir.name} needs Zephyr:\n{bullet_list(list(missing))}",
            where=str(project_dir),
            hint="\n".join(command for commands in missing.values() for command in commands),
        )
    for directory, options in _BUILDS.items():
        command = [*west, "build", "-b", board.zephyr.board, "-d", directory, "-p", "auto", "."]
        run(
            [*command, "--", *options] if options else command,
            cwd=project_dir,
            timeout=_SECONDS,
            what=f"building {project_dir.name}/{directory} with west",
            on_output=on_output,
        )


def _west() -> list[str] | None:
    """The command that starts west: the one on PATH, or that of the running Python."""
    if shutil.which("west"):
        return ["west"]
    return [sys.executable, "-m", "west"] if importlib.util.find_spec("west") else None


def _workspace(project_dir: Path) -> Path | None:
    """The directory that `west init` made a workspace, or that of Zephyr's sources."""
    around = (place for place in project_dir.parents if (place / ".west" / "config").is_file())
    base = os.environ.get("ZEPHYR_BASE")
    return next(around, Path(base) if base and (Path(base) / "Kconfig.zephyr").is_file() else None)


def _fetch(workspace: Path) -> list[str]:
    """The commands that fill a workspace."""
    return [
        f"cd {workspace} && west update && west zephyr-export && west packages pip --install",
        "west sdk install",
    ]


def _build(project_dir: Path, board: Board, _compiler: str, on_output: OnOutput) -> None:
    build(project_dir, board, on_output=on_output)


def _elf(project_dir: Path, _board: Board, _model: str, env: str) -> Path:
    return elf_path(project_dir, harness=env == HARNESS)


BUILDER = Builder(
    _build,
    _elf,
    ("west", "cmake", "ninja", "dtc", "Zephyr", "Zephyr SDK"),
    framework_harness=lambda _board: HARNESS,
    check_directory=cmake.check_directory,
)
