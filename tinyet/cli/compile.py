# SPDX-License-Identifier: Apache-2.0
"""`tinyet compile`: a model as a .tet file, from which everything else works without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tinyet.boards import load_board
from tinyet.cli import ui
from tinyet.cli.model import CaptureOptions, keep_evaluation, obtain
from tinyet.cli.options import (
    Calibration,
    ChannelsLast,
    DumpIr,
    FloatIo,
    Model,
    Name,
    RoundingOption,
    SaveEvaluation,
    SignatureOption,
    Strict,
    rounding_of,
)
from tinyet.errors import UsageError
from tinyet.errors.arguments import over_time_given


def compile_(
    model: Model,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="TET", help="the .tet file to write")],
    calibration: Calibration = None,
    name: Name = None,
    board: Annotated[
        str | None, typer.Option("--board", help="make sure that every layer has a kernel for this board")
    ] = None,
    strict: Strict = False,
    float_io: FloatIo = False,
    channels_last: ChannelsLast = False,
    dump_ir: DumpIr = None,
    save_evaluation: SaveEvaluation = None,
    rounding: RoundingOption = "tflm",
    signature: SignatureOption = None,
    stateful: Annotated[
        bool,
        typer.Option("--stateful", help="recurrent layers begin each run where the run before has stopped"),
    ] = False,
    streaming: Annotated[
        int | None,
        typer.Option(
            "--streaming",
            metavar="AXIS",
            help="this axis of the inputs is time: the program takes the newest frames only; of a .tet, too",
        ),
    ] = None,
    hop: Annotated[
        int | None, typer.Option("--hop", metavar="FRAMES", help="with --streaming: frames of a run")
    ] = None,
    edges: Annotated[
        str,
        typer.Option(
            "--edges",
            help="with --streaming: exact, or continue to have frames in the place of padding in time",
        ),
    ] = "exact",
) -> None:
    """Compile a model into a .tet file.

    All other commands take that, and need no torch then.
    """
    if streaming is None and (hop is not None or edges != "exact"):
        raise UsageError(
            "--hop and --edges are about --streaming", hint="--streaming AXIS, the one that is time"
        )
    if streaming is not None and stateful:
        raise UsageError("--streaming is stateful already", hint="leave --stateful away")
    over_time = None if streaming is None else over_time_given(streaming, hop, edges)
    if model.endswith(".tet") and over_time is None:
        raise UsageError(
            "a .tet program is compiled already", model, f"tinyet generate {model} --board BOARD"
        )
    if out.suffix != ".tet":
        raise UsageError(f"{out} does not end in .tet", "-o", f"-o {out.with_suffix('.tet')}")
    if not out.parent.is_dir():
        raise UsageError(f"there is no directory {out.parent}", "-o")
    if board is not None:
        load_board(board)
    options = CaptureOptions(
        calibration,
        name,
        board,
        strict,
        float_io,
        channels_last,
        dump_ir,
        over_time=over_time,
        stateful=stateful,
        rounding=rounding_of(rounding),
        signature=signature,
    )
    compiled = obtain(model, options)
    keep_evaluation(compiled, save_evaluation, model)
    with ui.stages("encoding the program"):
        compiled.program.save(out)
    ui.notes(compiled.warnings)
    ui.say(f"{out}: program {compiled.program.name}, {out.stat().st_size} bytes")
    ui.say(f"next: tinyet generate {out} --board BOARD")
