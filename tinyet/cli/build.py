# SPDX-License-Identifier: Apache-2.0
"""`tinyet build`: a project with the build system of its kind."""

from __future__ import annotations

from typing import Annotated

import typer

from tinyet.budget.fit import LARGEST
from tinyet.build.size import Size, Where
from tinyet.cli import ui
from tinyet.cli.options import Directory
from tinyet.project import Project, open_project


def build(
    directory: Directory,
    compiler: Annotated[
        str,
        typer.Option(metavar="NAME", help="gcc, or clang (clang-16, …) in a CMake project for a Cortex-M"),
    ] = "gcc",
) -> None:
    """Build the application and the harness of a project."""
    with ui.stages("reading the project"):
        project = open_project(directory)
    with ui.working(f"building {project.name} for {project.board.name}") as tell:
        size = project.build(compiler=compiler, on_output=tell)
    _show(project, size)


def _show(project: Project, size: Size) -> None:
    stack = project.stack
    ui.facts(
        f"{project.name} on {project.board.name}",
        [
            ("flash", f"{ui.size(size.flash)} of {ui.number(project.board.flash.bytes)}"),
            (
                "RAM",
                f"{ui.size(size.ram)} of {ui.number(project.board.ram.bytes)}, and {ui.size(size.stack)} of stack",
            ),
            *ui.stack_rows(stack, None if stack.firmware.bytes is None else size.ram + stack.firmware.bytes),
        ],
    )
    places: tuple[Where, ...] = ("flash", "ram")
    rows = [(symbol.name, where, symbol.bytes) for where in places for symbol in size.largest(where, LARGEST)]
    ui.table([("largest symbol", "text"), ("in", "name"), ("bytes", "number")], rows)
    ui.say(f"\nnext: tinyet validate {project.path}")
