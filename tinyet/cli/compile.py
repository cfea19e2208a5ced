# SPDX-License-Identifier: Apache-2.0
"""`tinyet compile`: a model as a .tet file, from which everything else works without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tinyet.boards import load_board
from tinyet.cli import ui
from tinyet.cli.model import keep_evaluation, made_record, obtain, show_answers
from tinyet.cli.options import JsonFile, Model, ModelFlags, SaveEvaluation, takes_model
from tinyet.errors import UsageError
from tinyet.opening import kind_of


@takes_model()
def compile_(
    model: Model,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="TET", help="the .tet file to write")],
    board: Annotated[
        str | None, typer.Option("--board", help="make sure that every layer has a kernel for this board")
    ] = None,
    save_evaluation: SaveEvaluation = None,
    json: JsonFile = None,
    *,
    flags: ModelFlags,
) -> None:
    """Compile a model into a .tet file.

    All other commands take that, and need no torch then.
    """
    if kind_of(model) == ".tet" and flags.streaming is None and flags.hop is None:
        raise UsageError(
            "a .tet program is compiled already", model, f"tinyet generate {model} --board BOARD"
        )
    if out.suffix != ".tet":
        raise UsageError(f"{out} does not end in .tet", "-o", f"-o {out.with_suffix('.tet')}")
    if not out.parent.is_dir():
        raise UsageError(f"there is no directory {out.parent}", "-o")
    if board is not None:
        load_board(board)
    compiled = obtain(model, flags.options(board=board))
    program = compiled.program
    kept = keep_evaluation(compiled, save_evaluation, model)
    with ui.stages("encoding the program"):
        program.save(out)
    if json is not None:
        facts = {"name": program.name, "path": str(out), "bytes": out.stat().st_size}
        ui.write_json(json, made_record(program, facts, compiled.warnings))
    if json == "-":
        return
    show_answers(program, model, flags)
    ui.notes([*kept, *compiled.warnings])
    ui.say(f"{out}: program {program.name}, {out.stat().st_size} bytes")
    ui.say(f"next: tinyet generate {out} --board BOARD")
