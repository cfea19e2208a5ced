# SPDX-License-Identifier: Apache-2.0
"""`tinyet generate`: a C project for a board from a model."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from tinyet.accounts.buffers import buffers_of, copies_noted
from tinyet.boards import load_board
from tinyet.budget.fit import said_of, stack_said
from tinyet.budget.placing import placed
from tinyet.build.tree import is_free, read_manifest
from tinyet.cli import ui
from tinyet.cli.model import input_names, judged, made_record, obtain, show_answers
from tinyet.cli.options import (
    BoardOption,
    Buffers,
    CallerStack,
    DelegateNames,
    InputRows,
    JsonFile,
    MaxFlash,
    MaxRam,
    ModelFlags,
    Optimize,
    Pins,
    Place,
    RequireDelegate,
    delegates_of,
    pins_of,
    place_of,
    takes_model,
)
from tinyet.cli.together import tell_together
from tinyet.data import Data, read_data
from tinyet.emit.kinds import KINDS, PROJECT_KINDS
from tinyet.emit.project import check_kind, check_library
from tinyet.emit.slices import SlicePlan
from tinyet.errors import UsageError
from tinyet.files.model_name import check_name
from tinyet.opening import kind_of, read_entries
from tinyet.opening.loader import declares_entries
from tinyet.planning.objective import check_buffers, check_optimize
from tinyet.program import Program, load
from tinyet.project import Project
from tinyet.projects import generate as generate_project


@takes_model()
def generate(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="file.py, file.py:factory, a saved .pt2, a .tflite, an .onnx, or a .tet program; or several .tet "
            "programs, which become one project",
        ),
    ],
    board: BoardOption,
    kind: Annotated[
        str,
        typer.Option(
            "--kind", help=f"of project: {', '.join(KINDS)}; model is just the C of model and kernels"
        ),
    ] = "platformio",
    evaluation: Annotated[
        Path | None,
        typer.Option(
            "--evaluation",
            metavar="NPZ",
            help="samples and labels that the project keeps for `validate`, instead of the model's evaluation()",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="by default build/NAME")
    ] = None,
    optimize: Optimize = None,
    max_ram: MaxRam = None,
    max_flash: MaxFlash = None,
    stack: CallerStack = None,
    pin: Pins = None,
    place: Place = None,
    input_rows: InputRows = False,
    buffers: Buffers = None,
    context: Annotated[
        bool,
        typer.Option(
            "--context",
            help="the caller gives the memory of each instance of the model, and may have several; nothing is static",
        ),
    ] = False,
    delegates: DelegateNames = None,
    require_delegate: RequireDelegate = False,
    selftest: Annotated[
        bool,
        typer.Option(
            "--selftest",
            help="a function that checks the model's constants, and an input whose outputs are known, at start",
        ),
    ] = False,
    max_step: Annotated[
        str | None,
        typer.Option(
            "--max-step",
            metavar="LENGTH",
            help="a run can be left between slices that are no longer: instructions, or an estimated time, as in 1ms",
        ),
    ] = None,
    library_version: Annotated[
        str | None,
        typer.Option("--library-version", metavar="X.Y.Z", help="your library's version, by default 1.0.0"),
    ] = None,
    homepage: Annotated[
        str | None,
        typer.Option("--homepage", metavar="URL", help="your library's home page, by default none"),
    ] = None,
    archive: Annotated[
        bool, typer.Option("--archive", help="write the Arduino library as a .zip file, too, for the IDE")
    ] = False,
    tflm_header: Annotated[
        bool,
        typer.Option(
            "--tflm-header", help="a C++ header, too, for sketches written for TensorFlow Lite Micro"
        ),
    ] = False,
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="TEXT",
            help='of several models, who runs when: "a | b" never at the same time, "a > b" b takes a\'s output, '
            '"a(b)" in the midst, "a, b" at any time',
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="TET", help="save the compiled program, too")
    ] = None,
    json: JsonFile = None,
    *,
    flags: ModelFlags,
) -> None:
    """Write a C project for a board from a model."""
    # Errors that are quickly found are told before the minutes that calibration may take.
    target = load_board(board)
    wanted = check_kind(kind, target)
    application = PROJECT_KINDS[wanted].application
    check_library(wanted, library_version, homepage, archive=archive)
    asked, pins = delegates_of(delegates, require_delegate), pins_of(pin)
    placed = place_of(place)
    check_optimize(optimize or "balanced")
    check_buffers(buffers or "arena", input_rows=input_rows)
    model, *others = models
    if flags.name is not None:
        check_name(flags.name, "--name")
    if out is not None:
        _check_out(out)
    if evaluation is not None and not application:
        raise UsageError(
            "the C files alone keep no samples", "--evaluation", "leave it away, or --kind model"
        )
    entries = not others and declares_entries(model)
    if others or entries:
        programs = _entries(model, flags) if entries else _programs(models, flags)
        with ui.stages("generating"):
            together = generate_project(
                programs,
                target if board == target.name else board,
                out or Path("build") / (flags.name or "models"),
                kind=wanted,
                name=flags.name,
                delegates=asked,
                require_delegate=require_delegate,
                optimize=optimize or "balanced",
                max_ram=max_ram,
                max_flash=max_flash,
                stack=stack,
                pins=pins or None,
                place=placed or None,
                input_rows=input_rows,
                buffers=buffers or "arena",
                context=context,
                selftest=selftest,
                max_step=max_step,
                evaluation=evaluation,
                library_version=library_version,
                homepage=homepage,
                archive=archive,
                tflm_header=tflm_header,
                schedule=schedule,
            )
        tell_together(together, json)
        if json != "-" and application:
            ui.say(f"next: tinyet build {together.path}")
        return
    # A program that is compiled keeps its name; the C that is generated of it may have another.
    is_program = kind_of(model) == ".tet"
    compiled = obtain(model, flags.options(name=None) if is_program else flags.options())
    data = compiled.evaluation
    if evaluation is not None:
        data = read_data(evaluation, input_names(compiled.program))
    program = judged(compiled.program, data)
    directory = out or Path("build") / (flags.name or compiled.program.name)
    with ui.stages("generating"):
        made = generate_project(
            program,
            target if board == target.name else board,
            directory,
            kind=wanted,
            name=flags.name,
            delegates=asked,
            require_delegate=require_delegate,
            optimize=optimize or "balanced",
            max_ram=max_ram,
            max_flash=max_flash,
            stack=stack,
            pins=pins,
            place=placed,
            input_rows=input_rows,
            buffers=buffers or "arena",
            context=context,
            selftest=selftest,
            max_step=max_step,
            evaluation=data if application else None,
            library_version=library_version,
            homepage=homepage,
            archive=archive,
            tflm_header=tflm_header,
            schedule=schedule,
        )
    if save is not None:
        with ui.stages("encoding the program"):
            program.save(save)
    unlabelled = application and (data is None or data.labels is None)
    notes = [*compiled.warnings, *([_without_labels(model, data)] if unlabelled else [])]
    notes += copies_noted(made.deployment) if buffers == "caller" and application else ()
    if made.slices is not None:
        notes += made.slices.notes
    if json is not None:
        facts = {"name": made.name, "board": made.board.name, "kind": wanted, "path": str(made.path)}
        ui.write_json(json, made_record(program, facts, notes))
    if json != "-":
        show_answers(program, model, flags)
        ui.notes(notes)
        _show(made)


def _entries(model: str, flags: ModelFlags) -> list[Program]:
    """The programs of a Python file's entry points."""
    with ui.stages("reading the model") as progress:
        found = read_entries(model, flags.options().reporting(progress))
    for opened in found.values():
        ui.say(f"{opened.program.name}:")
        show_answers(opened.program, model, flags)
        ui.notes(opened.warnings)
    return [opened.program for opened in found.values()]


def _programs(models: list[str], flags: ModelFlags) -> list[Program]:
    """Several programs. Raises UsageError, listing them, for files that are none: each compiles in its own way."""
    wrong = [model for model in models if kind_of(model) != ".tet"]
    if wrong:
        raise UsageError(
            f"several models are .tet programs, and these are none: {', '.join(wrong)}",
            hint="tinyet compile MODEL --name NAME -o NAME.tet, for each",
        )
    given = [
        field.name
        for field in fields(ModelFlags)
        if field.name != "name" and getattr(flags, field.name) != field.default
    ]
    if given:
        raise UsageError(
            f"programs are compiled already: {', '.join(given)} cannot be said of them",
            hint="say it to `tinyet compile`",
        )
    return [load(Path(model)) for model in models]


def _without_labels(model: str, data: Data | None) -> str:
    """The note for a project without labelled data, by the origin of the model."""
    if data is not None:
        return "no accuracy will be known: the samples have no labels, one class index each"
    source = "the model's file has no evaluation()"
    if (kind := kind_of(model)) != ".py":
        source = f"a {kind} file holds none"
    return f"no labelled data, so `validate` cannot tell the accuracy: {source}; --evaluation FILE.npz gives some"


def _check_out(directory: Path) -> None:
    """Raise ProjectError for a place that `generate` would refuse."""
    if directory.is_dir() and not is_free(directory):
        read_manifest(directory)
    elif directory.exists() and not directory.is_dir():
        raise UsageError(
            "there is a file where the project should be", str(directory), "name another directory"
        )


def _slices_said(slices: SlicePlan) -> str:
    stated = max((s.cost for s in slices.segments if s.cost is not None), default=None)
    most = "" if stated is None else f", at most {ui.number(stated)} {slices.unit} as stated"
    return f"steps: {slices.count} slices{most}; {ui.size(slices.retained_most)} of the arena live between them at most"


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
    if given := buffers_of(project.deployment):
        ui.say(f"inputs and outputs: {ui.size(sum(each.bytes for each in given))}, in the caller's buffers")
    room = project.room
    ui.say(f"flash: {said_of(room.flash)}")
    ui.say(f"stack: {stack_said(room.stack)}")
    places = project.deployment.places
    by_memory = {
        memory.name: [each for each in placed(project.deployment, project.board) if each.memory == memory]
        for memory in places.memories
    }
    for memory, there in by_memory.items():
        copied = sum(each.bytes for each in there if each.copied)
        said = ", ".join(each.name for each in there if not each.layer) or "weights"
        more = f", {ui.size(copied)} of them weights that are copied at the start" if copied else ""
        ui.say(f"{memory}: {said}, {ui.size(sum(each.bytes for each in there))}{more}")
    if (slices := project.slices) is not None:
        ui.say(_slices_said(slices))
    if project.archive is not None:
        ui.say(f"{project.archive}: for the Arduino IDE, Sketch > Include Library > Add .ZIP Library")
    ui.say(f"next: tinyet build {project.path}")
