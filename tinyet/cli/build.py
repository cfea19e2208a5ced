# SPDX-License-Identifier: Apache-2.0
"""`tinyet build`: a project with the build system of its kind."""

from __future__ import annotations

from typing import Annotated

import typer

from tinyet.budget.fit import LARGEST
from tinyet.build.size import Size, Where
from tinyet.cli import ui
from tinyet.cli.options import Directory, JsonFile
from tinyet.project import Project
from tinyet.projects import open_project
from tinyet.stack.use import StackUse


def build(
    directory: Directory,
    compiler: Annotated[
        str,
        typer.Option(metavar="NAME", help="gcc, or clang (clang-16, …) in a CMake project for a Cortex-M"),
    ] = "gcc",
    json: JsonFile = None,
) -> None:
    """Build the application and the harness of a project."""
    with ui.stages("reading the project"):
        project = open_project(directory)
    with ui.working(f"building {project.name} for {project.board.name}") as tell:
        size = project.build(compiler=compiler, on_output=tell)
    stack = project.stack
    if json is not None:
        ui.write_json(json, _record(project, size, stack))
    if json != "-":
        _show(project, size, stack)


def _record(project: Project, size: Size, stack: StackUse) -> dict[str, object]:
    """The documented, stable form of `--json` (docs/json.md)."""
    return {
        "version": 2,
        "name": project.name,
        "board": project.board.name,
        "flash_bytes": size.flash - size.sample,
        "sample_bytes": size.sample,
        "ram_bytes": size.ram,
        "ram_with_stack_bytes": stack.with_data(size.ram),
        "stack": stack.to_json(),
    }


def _show(project: Project, size: Size, stack: StackUse) -> None:
    ui.facts(
        f"{project.name} on {project.board.name}",
        [
            ("flash", f"{ui.size(size.flash)} of {ui.number(project.board.flash.bytes)}"),
            (
                "RAM",
                f"{ui.size(size.ram)} of {ui.number(project.board.ram.bytes)}, and {ui.size(size.stack)} of stack",
            ),
            *ui.stack_rows(stack, size.ram),
        ],
    )
    places: tuple[Where, ...] = ("flash", "ram")
    rows = [(symbol.name, where, symbol.bytes) for where in places for symbol in size.largest(where, LARGEST)]
    ui.table([("largest symbol", "text"), ("in", "name"), ("bytes", "number")], rows)
    ui.say(f"\nnext: tinyet validate {project.path}")
