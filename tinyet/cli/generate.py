# SPDX-License-Identifier: Apache-2.0
"""`tinyet generate`: a C project for a board from a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tinyet.boards import load_board
from tinyet.budget.fit import said_of, stack_said
from tinyet.build.tree import is_free, read_manifest
from tinyet.cli import ui
from tinyet.cli.model import CaptureOptions, input_names, obtain
from tinyet.cli.options import (
    BoardOption,
    Calibration,
    CallerStack,
    ChannelsLast,
    DelegateNames,
    DumpIr,
    FloatIo,
    MaxFlash,
    MaxRam,
    Model,
    Name,
    OptimizeFor,
    Pins,
    RequireDelegate,
    RoundingOption,
    SignatureOption,
    Strict,
    delegates_of,
    pins_of,
    rounding_of,
)
from tinyet.data import Data, read_data
from tinyet.delegates.decide import check_optimize
from tinyet.emit.kinds import MODEL_ONLY, PROJECT_KINDS
from tinyet.emit.project import check_kind, check_library
from tinyet.errors import UsageError
from tinyet.project import Project
from tinyet.project import generate as generate_project


def generate(
    model: Model,
    board: BoardOption,
    project: Annotated[
        str, typer.Option(help=", ".join(kind for kind, made in PROJECT_KINDS.items() if made.application))
    ] = "platformio",
    model_only: Annotated[
        bool, typer.Option("--model-only", help="write just the C of model and kernels, no project")
    ] = False,
    calibration: Calibration = None,
    evaluation: Annotated[
        Path | None,
        typer.Option(
            "--evaluation",
            metavar="NPZ",
            help="samples and labels that the project keeps for `validate`, instead of the model's evaluation()",
        ),
    ] = None,
    name: Name = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="by default build/NAME")
    ] = None,
    optimize: OptimizeFor = "balanced",
    max_ram: MaxRam = None,
    max_flash: MaxFlash = None,
    stack: CallerStack = None,
    pin: Pins = None,
    input_rows: Annotated[
        bool,
        typer.Option(
            "--input-rows", help="the model takes its input row by row, and never holds the whole of it"
        ),
    ] = False,
    delegate: DelegateNames = None,
    require_delegate: RequireDelegate = False,
    strict: Strict = False,
    float_io: FloatIo = False,
    channels_last: ChannelsLast = False,
    dump_ir: DumpIr = None,
    rounding: RoundingOption = "tflm",
    signature: SignatureOption = None,
    library_version: Annotated[
        str | None,
        typer.Option("--library-version", metavar="X.Y.Z", help="your library's version, by default 1.0.0"),
    ] = None,
    homepage: Annotated[
        str | None,
        typer.Option("--homepage", metavar="URL", help="your library's home page, by default none"),
    ] = None,
    archive: Annotated[
        bool, typer.Option("--zip", help="write the Arduino library as a .zip file, too, for the IDE")
    ] = False,
    tflm_header: Annotated[
        bool,
        typer.Option(
            "--tflm-header", help="a C++ header, too, for sketches written for TensorFlow Lite Micro"
        ),
    ] = False,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="TET", help="save the compiled program, too")
    ] = None,
) -> None:
    """Write a C project for a board from a model."""
    # What is quickly found to be wrong is told before the minutes that calibration may take.
    target = load_board(board)
    kind = check_kind(MODEL_ONLY if model_only else project, target)
    application = PROJECT_KINDS[kind].application
    check_library(kind, library_version, homepage, archive=archive)
    delegates, pins = delegates_of(delegate, require_delegate), pins_of(pin)
    check_optimize(optimize)
    if out is not None:
        _check_out(out)
    if evaluation is not None and not application:
        raise UsageError(
            "the C files alone keep no samples", "--evaluation", "leave it away, or --model-only"
        )
    options = CaptureOptions(
        calibration,
        name,
        board,
        strict,
        float_io,
        channels_last,
        dump_ir,
        delegates,
        rounding=rounding_of(rounding),
        signature=signature,
    )
    compiled = obtain(model, options)
    data = compiled.evaluation
    if evaluation is not None:
        data = read_data(evaluation, input_names(compiled.program))
    directory = out or Path("build") / (name or compiled.program.name)
    with ui.stages("generating"):
        made = generate_project(
            compiled.program,
            target if board == target.name else board,
            directory,
            project=kind,
            name=name,
            delegates=delegates,
            require_delegate=require_delegate,
            optimize=optimize,
            max_ram=max_ram,
            max_flash=max_flash,
            stack=stack,
            pins=pins,
            input_rows=input_rows,
            evaluation=data if application else None,
            library_version=library_version,
            homepage=homepage,
            archive=archive,
            tflm_header=tflm_header,
        )
    if save is not None:
        with ui.stages("encoding the program"):
            compiled.program.save(save)
    unlabelled = application and (data is None or data.labels is None)
    ui.notes([*compiled.warnings, *([_without_labels(model, data)] if unlabelled else [])])
    _show(made)


def _without_labels(model: str, data: Data | None) -> str:
    """What is said where a project gets no labelled data, by where the model came from."""
    if data is not None:
        return "no accuracy will be known: the samples have no labels, one class index each"
    source = "the model's file has no evaluation()"
    if model.endswith((".tet", ".pt2", ".tflite")):
        source = f"a {Path(model).suffix} file holds none"
    return f"no labelled data, so `validate` cannot tell the accuracy: {source}; --evaluation FILE.npz gives some"


def _check_out(directory: Path) -> None:
    """Raise ProjectError for a place that `generate` would refuse."""
    if directory.is_dir() and not is_free(directory):
        read_manifest(directory)
    elif directory.exists() and not directory.is_dir():
        raise UsageError(
            "there is a file where the project should be", str(directory), "name another directory"
        )


def _show(project: Project) -> None:
    facts = project.manifest
    if not PROJECT_KINDS[str(facts["kind"])].application:
        ui.say(
            f"{project.path}: {project.name} for {project.board.name}, {facts['layers']} layers, "
            f"arena {ui.size(int(str(facts['arena_bytes'])))}"
        )
        ui.say(f'next: compile the .c files with your own, and include "{project.name}.h"')
        return
    plan = project.deployment.plan
    gap = plan.arena_bytes - plan.lower_bound
    proved = f"{ui.number(gap)} above its bound" if gap else "optimal"
    ui.say(
        f"{project.path}: {project.name} for {project.board.name}, {len(project.deployment.steps)} layers, "
        f"arena {ui.size(plan.arena_bytes)} ({proved}), "
        f"weights {ui.size(project.deployment.constant_bytes)}"
    )
    room = project.room
    ui.say(f"flash: {said_of(room.flash)}")
    ui.say(f"stack: {stack_said(room.stack)}")
    if project.archive is not None:
        ui.say(f"{project.archive}: for the Arduino IDE, Sketch > Include Library > Add .ZIP Library")
    ui.say(f"next: tinyet build {project.path}")
