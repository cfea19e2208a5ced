# SPDX-License-Identifier: Apache-2.0
"""How a kind of project is built, and the places of the results. Its content: `emit/kinds/`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tinyet.boards import Board

HARNESS = "harness"
"""The environment of the harness; that of the application has the board's name."""

OnOutput = Callable[[str], None] | None
"""Called with each line that a build prints, as it appears."""


def _no_framework(_board: Board) -> str | None:
    return None


@dataclass(frozen=True)
class Builder:
    """The build of one kind of project.

    build: (project's directory, board, compiler, on_output): application and harness. Raises ToolchainError.
    elf: (project's directory, board, model's name, environment) → the place of the built firmware. tools: those it
    requires beside the capture of a model, by the names of `doctor.checks`: up to a firmware that has been built and,
    if an emulator runs it, validated.
    emulated: whether emulators run the harness that it builds for a bare-metal board; otherwise that is a framework's,
    and the same C files are compiled for the bare board.
    framework_harness: the environment of the harness that a framework builds for the real board, or None. chooses:
    whether the compiler may be chosen. check_directory: raises ProjectError for a directory in which it cannot build.
    """

    build: Callable[[Path, Board, str, OnOutput], None]
    elf: Callable[[Path, Board, str, str], Path]
    tools: tuple[str, ...]
    emulated: bool = False
    framework_harness: Callable[[Board], str | None] = _no_framework
    chooses: bool = False
    check_directory: Callable[[Path], None] = lambda _path: None
