# SPDX-License-Identifier: Apache-2.0
"""A project of one model, made from its program: `generate` reads from top to bottom: deploy, fit, samples, facts,
tree, write."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from tinyet.boards import Board, file_of, load_board
from tinyet.budget.fit import (
    FitRequest,
    check_fit,
    fitted,
    limits_given,
    objective_of,
)
from tinyet.budget.placing import check_context, check_sections, for_framework, places_given
from tinyet.budget.room import room_of
from tinyet.build.builders import BUILDERS
from tinyet.build.tree import write_project
from tinyet.custom import CustomAttrs
from tinyet.data import (
    Data,
    data_given,
    demonstration,
    encode_data,
)
from tinyet.delegates import Delegates, delegates_or_default
from tinyet.emit.facts import DEFAULT_LIBRARY_VERSION, facts_of
from tinyet.emit.kinds import PROJECT_KINDS
from tinyet.emit.model import model_files
from tinyet.emit.project import (
    Kind,
    Options,
    check_kind,
    check_library,
    framework_of,
    is_bare,
    project_files,
)
from tinyet.emit.selftest import Golden
from tinyet.emit.slices import slices_given
from tinyet.emit.tflm import tflm_files
from tinyet.errors import UsageError
from tinyet.errors.arguments import (
    described,
    instance_given,
    path_given,
    text_given,
)
from tinyet.files.model_name import check_name
from tinyet.ir import Array
from tinyet.messages.stages import stage
from tinyet.program import Program
from tinyet.project import EVALUATION, Project, Written
from tinyet.version import __version__

_PROGRAM = "program = tinyet.compile(model, example_inputs, calibration=batches), or tinyet.open(path)"


def generate(
    program: Program,
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
) -> Project:
    """Write a project of one model for a board; `tinyet.generate` says what the arguments are.

    Raises FitError when the model does not fit, UnsupportedOp when an operator has no kernel for the board,
    ProjectError when the directory cannot be used. Nothing is written unless everything is.
    """
    instance_given(program, Program, "generate takes a Program", _PROGRAM)
    directory = path_given(out, "out is the project's directory")
    for text, what in ((name, "name"), (library_version, "library_version"), (homepage, "homepage")):
        if text is not None:
            text_given(text, what, "or leave it away")
    if sample is not None and not isinstance(sample, (list, tuple)):
        raise UsageError(
            f"sample is {described(sample)}", hint="a list of one array per input: sample=[image]"
        )
    evaluation = data_given(evaluation, [t.name for t in program.inputs])
    target = load_board(board)
    project_kind = PROJECT_KINDS[check_kind(kind, target)]
    framework = framework_of(kind, target)
    target = for_framework(target, framework)
    if not project_kind.application and (sample is not None or evaluation is not None):
        raise UsageError(
            "the C files alone have no application and keep no samples",
            hint="leave sample and evaluation away, or generate another kind of project",
        )
    check_library(kind, library_version, homepage, archive=archive)
    model = check_name(name or program.name)
    chosen = delegates_or_default(delegates, require=require_delegate)
    limits = limits_given(max_ram, max_flash, stack, bare=is_bare(kind, target))
    wanted = places_given(place)
    if context:
        check_context(wanted)
    objective = objective_of(
        target, optimize, limits, pins=pins, input_rows=input_rows, buffers=buffers, place=wanted
    )
    asked = FitRequest(
        program.graph, target, objective, limits, tuple(chosen), require_delegate, program.size
    )
    whole = fitted(asked)
    deployment, slices = slices_given(whole, target, max_step, context=context)
    check_fit(deployment, target, limits)
    if framework is not None:
        check_sections(target, deployment.places, framework)
    room = room_of(deployment, target, bare=limits.bare, stack=limits.stack)
    # What is counted is what the linker script reserves.
    target = dataclasses.replace(target, stack_bytes=room.stack.total)
    inputs = demonstration(program.inputs, sample, evaluation)
    expected = program.outputs_for(inputs) if project_kind.tells_outputs else ()
    golden = Golden(tuple(inputs), tuple(program.outputs_for(inputs))) if selftest else None
    facts = dataclasses.replace(
        facts_of(deployment, model, program.hash, inputs, expected),
        library_version=library_version or DEFAULT_LIBRARY_VERSION,
        homepage=homepage,
        context=context,
        selftest=selftest,
        slices=0 if slices is None else slices.count,
        stack=room.stack.inference or 0,
    )
    banner = [
        f"{model}: generated by tinyet {__version__} for {target.cpu}; do not edit, generate it again.",
        f"program {program.hash}",
    ]
    library = project_kind.archive(model) if archive and project_kind.archive else ""
    archives = {f"{library}.zip": library} if library else {}
    options = Options(
        delegates=tuple(delegate.name for delegate in chosen),
        require_delegate=require_delegate,
        max_ram=limits.max_ram,
        max_flash=limits.max_flash,
        stack=limits.stack,
        reserved=room.stack.total,
        optimize=objective.optimize,
        pins=objective.pins,
        place=objective.place,
        input_rows=input_rows,
        buffers=objective.buffers,
        context=context,
        selftest=selftest,
        max_step=None if slices is None else slices.limit.text,
        operators=tuple(sorted({n.op for n in program.graph.nodes if isinstance(n.attrs, CustomAttrs)})),
        archive=next(iter(archives), None),
        tflm_header=tflm_header,
    )
    stage("generating C")
    sources = model_files(
        deployment,
        model,
        banner,
        labels=program.labels,
        program_hash=program.hash,
        context=context,
        golden=golden,
        slices=slices,
        stack=facts.stack,
    )
    sources |= tflm_files(deployment, facts) if tflm_header else {}
    files = project_files(kind, target, facts, sources, options)
    stage("writing the project")
    if (builder := BUILDERS.get(kind)) is not None:
        builder.check_directory(directory)
    data = file_of(board, target)
    if project_kind.application:
        data[f"{model}.tet"] = program.data
    if project_kind.application and evaluation is not None:
        data[EVALUATION] = encode_data(evaluation, [t.name for t in program.inputs])
    write_project(directory, {**files, **data}, archives=archives)
    project = Project(directory)
    vars(project)["written"] = Written(program, asked, whole)
    if not project_kind.application:
        # The program is not kept beside the C, so this cannot be found out again.
        vars(project)["_made"] = deployment, slices
    return project
