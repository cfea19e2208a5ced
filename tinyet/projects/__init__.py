# SPDX-License-Identifier: Apache-2.0
"""Projects of one model, and of several: made, and opened again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tinyet import ops
from tinyet.boards import Board
from tinyet.build.tree import is_project
from tinyet.data import Data
from tinyet.delegates import Delegates
from tinyet.emit.project import Kind
from tinyet.errors import ProjectError, UsageError
from tinyet.errors.arguments import path_given
from tinyet.ir import Array
from tinyet.program import Program
from tinyet.project import Project
from tinyet.projects.one import generate as generate_one
from tinyet.projects.together import TogetherProject, generate_together


def generate(
    program: Program | Sequence[Program],
    board: str | Path | Board,
    out: str | Path,
    *,
    kind: Kind = "platformio",
    name: str | None = None,
    delegates: Delegates | None = None,
    require_delegate: bool = False,
    optimize: str = "balanced",
    max_ram: int | None = None,
    max_flash: int | None = None,
    stack: int | None = None,
    pins: Mapping[str, str] | None = None,
    place: Mapping[str, str] | None = None,
    input_rows: bool = False,
    buffers: str = "arena",
    context: bool = False,
    selftest: bool = False,
    max_step: int | str | None = None,
    sample: Sequence[Array] | None = None,
    evaluation: Data | str | Path | None = None,
    library_version: str | None = None,
    homepage: str | None = None,
    archive: bool = False,
    tflm_header: bool = False,
    schedule: str | None = None,
) -> Project:
    """Write a project for a board.

    kind: of project: platformio, cmake, arduino or zephyr, or model for the C files alone.
    board: a name, the path of a board file (which is copied into the project), or a Board that comes with tinyet.
    out: a directory that is new, empty, or an earlier project (whose src/main.c is kept when it was changed).
    delegates: who is asked for kernels, in this order, each by name (`tinyet delegates` lists them) or as an object,
    which `register_delegate` must know when the project is opened again. require_delegate: nobody else may compute
    anything; without it the portable kernels take what these refuse.
    optimize: what kernels are chosen for, "speed", "balanced" or "size", of those that the delegates bring.
    max_ram, max_flash: limits in bytes, the board's own by default. stack: bytes of it that are reserved for who
    calls an inference and for interrupts. pins: {layer: kernel} where the choice is yours.
    place: {object: memory} of "arena", "state", "weights" or a layer, whose weights are meant; of the board's memories,
    of weights also "arena", ahead of each call; or "auto", by the estimate of accesses. Weights that are placed in a
    RAM are copied there before the first run.
    input_rows: the model takes its input row by row, as a camera gives it, and never holds the whole of it.
    buffers: where inputs and outputs lie: "arena", or "caller", in buffers that each run is given, and that need no
    copy; inputs are only read there.
    context: the caller gives the memory of each instance of the model, and may have several; without it there is one,
    in static memory. selftest: the model has a function for a device's start that checks its constants, and runs an
    input (of `sample`, `evaluation` or the pattern) whose outputs are known. max_step: a run can be left between slices
    that are no longer: instructions, or an estimated time ("1ms"); only with context.
    sample: one array per input for the demonstration; by default the first of `evaluation`, or a fixed pattern.
    evaluation: samples to keep, for `validate`: Data, or the path of a .npz file with one array per input, and labels.
    library_version, homepage: of the library that the project has: three numbers, 1.0.0 by default, and an address, by
    default none. archive: write the .zip file of an Arduino library, too; tflm_header: a C++ header for applications
    that were written for TensorFlow Lite Micro.
    schedule: of several models, which of them never run at the same time (`tinyet/together/schedule.py`); without it
    any may. A list of programs becomes one project with one arena, a `TogetherProject`; it takes no pins, place,
    input_rows, selftest, max_step, sample, evaluation, and nothing of a library.
    Raises FitError when the model does not fit, UnsupportedOp when an operator has no kernel for the board,
    ProjectError when the directory cannot be used. Nothing is written unless everything is.
    """
    if isinstance(program, list | tuple):
        own: dict[str, object] = {
            "pins": pins,
            "place": place,
            "input_rows": input_rows,
            "sample": sample,
            "evaluation": evaluation,
        }
        own |= {"selftest": selftest, "max_step": max_step}
        own |= {"library_version": library_version, "homepage": homepage, "archive": archive}
        if unknown := [what for what, value in {**own, "tflm_header": tflm_header}.items() if value]:
            raise UsageError(
                f"a project of several models takes no {', '.join(unknown)}",
                hint="leave it away, or generate a project for each model",
            )
        return generate_together(
            program,
            board,
            out,
            schedule=schedule,
            kind=kind,
            name=name,
            buffers=buffers,
            context=context,
            delegates=delegates,
            require_delegate=require_delegate,
            optimize=optimize,
            max_ram=max_ram,
            max_flash=max_flash,
            stack=stack,
        )
    if schedule is not None:
        raise UsageError("a schedule is of several models", "--schedule", "generate([one, other], …)")
    # Whatever else it is, that says so.
    return generate_one(
        program,  # type: ignore[arg-type]
        board,
        out,
        kind=kind,
        name=name,
        delegates=delegates,
        require_delegate=require_delegate,
        optimize=optimize,
        max_ram=max_ram,
        max_flash=max_flash,
        stack=stack,
        pins=pins,
        place=place,
        input_rows=input_rows,
        buffers=buffers,
        context=context,
        selftest=selftest,
        max_step=max_step,
        sample=sample,
        evaluation=evaluation,
        library_version=library_version,
        homepage=homepage,
        archive=archive,
        tflm_header=tflm_header,
    )


def open_project(path: str | Path) -> Project:
    """A project that exists. Raises ProjectError when the directory is none."""
    place = path_given(path, "open_project takes the directory of a project")
    project = Project(place)
    if not is_project(place):
        raise ProjectError(
            "this directory is not a tinyet project",
            str(path),
            "make one: tinyet generate MODEL --board BOARD",
        )
    operators = project.manifest.get("operators")
    unknown = [n for n in operators if ops.by_name(str(n)) is None] if isinstance(operators, list) else []
    if unknown:
        raise ProjectError(
            f"this program uses the operator {', '.join(map(str, unknown))}, which tinyet does not know",
            str(path),
            "load the Python file that registers it first: tinyet --plugin FILE.py …, or import it",
        )
    return TogetherProject(place) if project.manifest.get("models") else project
