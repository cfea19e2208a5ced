# SPDX-License-Identifier: Apache-2.0
"""`tinyet validate`: the proof that the device computes what the host does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tinyet.analysis import analyze
from tinyet.auditing.steps import StepCounts, count_steps
from tinyet.cli import ui
from tinyet.cli.model import tell_answers
from tinyet.cli.options import HtmlFile, JsonFile, MaxSamples, place_to_run
from tinyet.cli.validate_boards import on_boards
from tinyet.cycles.estimate import CycleEstimate
from tinyet.cycles.profile import Accesses
from tinyet.data import data_given
from tinyet.errors import MismatchError, UsageError
from tinyet.opening import look_closer
from tinyet.oracles import Agreement
from tinyet.pages.page import page_of
from tinyet.profiles.forms import folded_stacks, trace_events
from tinyet.profiles.spans import profile_of
from tinyet.projects import open_project
from tinyet.projects.together import TogetherProject
from tinyet.timing.work import Work
from tinyet.validation import DEFAULT_SQNR_SAMPLES, ValidationResult


def validate(
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="a project that `tinyet generate` made; with --boards a MODEL, too"
        ),
    ],
    on: Annotated[
        str | None,
        typer.Option(
            parser=place_to_run,
            metavar="PLACE",
            help="host, qemu, renode, simavr or serial:PORT; by default the board's first emulator",
        ),
    ] = None,
    evaluation: Annotated[
        Path | None,
        typer.Option(
            "--evaluation",
            metavar="NPZ",
            help="one array per input, and labels; by default the project's own",
        ),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="estimate cycles and milliseconds, too, layer by layer")
    ] = False,
    oracle: Annotated[
        Path | None,
        typer.Option(
            "--oracle",
            metavar="FILE",
            help="the model's original .tflite or .onnx: compare with what its own runtime gives, too",
        ),
    ] = None,
    max_samples: MaxSamples = None,
    sqnr_samples: Annotated[
        int,
        typer.Option(
            "--sqnr-samples", min=0, metavar="N", help="ask the float model for so many of them, at most"
        ),
    ] = DEFAULT_SQNR_SAMPLES,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.001, metavar="SECONDS", help="that one run may take")
    ] = 60.0,
    boards: Annotated[
        str | None,
        typer.Option(
            "--boards",
            metavar="NAMES",
            help="instead of the project's own: a table of these, as in microbit,mps2_an386, or all-emulated",
        ),
    ] = None,
    html: HtmlFile = None,
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="write one inference for a trace viewer, as ui.perfetto.dev is one",
        ),
    ] = None,
    folded: Annotated[
        str | None,
        typer.Option(
            "--folded", metavar="FILE", help="write one inference as folded stacks, for a flame graph"
        ),
    ] = None,
    json: JsonFile = None,
) -> int:
    """Prove that the device computes what the host does.

    Every sample is compared bit for bit; on a mismatch the first layer that differs is named, and the exit
    status is 1. Without --evaluation the project's own data is run, or else one synthetic sample, which says nothing
    of accuracy. --estimate needs QEMU, and a compiler for this machine. --oracle needs the runtime that the model was
    made for.
    """
    if boards is not None:
        one = {
            "--oracle": oracle,
            "--html": html,
            "--trace": trace,
            "--folded": folded,
            "--estimate": estimate or None,
        }
        if idle := [name for name, value in one.items() if value is not None]:
            raise UsageError(
                f"{', '.join(idle)}: of one board", "--boards", "leave it away, or validate a project"
            )
        return on_boards(directory, boards, evaluation, max_samples, timeout, json)
    project = open_project(directory)
    if isinstance(project, TogetherProject):
        if evaluation is not None or estimate or oracle is not None:
            raise UsageError(
                "several models are validated on patterns: leave --evaluation, --estimate and --oracle away",
                str(directory),
                "for data of one model: generate a project of it alone",
            )
        return _validate_each(project, on, max_samples, timeout, json)
    with ui.stages("reading the program") as progress:
        data = data_given(evaluation, [tensor.name for tensor in project.program.inputs])
        result = project.validate(
            evaluation=data,
            on=on,
            max_samples=max_samples,
            sqnr_samples=sqnr_samples,
            timeout=timeout,
            estimate=estimate,
            oracle=oracle,
            progress=progress,
        )
        steps = None
        if project.slices is not None and result.bit_exact:
            samples = project.samples((), None, data).first(max_samples)
            steps = count_steps(project, samples, result.on, timeout=timeout)
    agreement = result.oracle
    if html is not None:
        title = f"{project.name} on {project.board.name}"
        reports = {"validation": result.to_json(), "analysis": analyze(project).to_json()}
        ui.write_text(str(html), page_of(title, **reports, remarks=result.data_warnings))
    if trace is not None or folded is not None:
        profile = profile_of(result)
        if trace is not None:
            ui.write_json(trace, trace_events(profile, project.name))
        if folded is not None:
            ui.write_text(folded, folded_stacks(profile, project.name))
    if json is not None:
        ui.write_json(json, result.to_json() | ({} if steps is None else {"steps": steps.to_json()}))
    if "-" not in (json, trace, folded):
        if result.answers is not None and not result.answers.healthy:
            tell_answers(result.answers, look_closer(f"{project.name}.tet"))
        _show(result, project.board.clock_hz)
        if agreement is not None:
            _show_agreement(agreement)
        if steps is not None:
            _show_steps(steps)
        if result.estimate is not None:
            _show_estimate(result, result.estimate)
        told = [] if result.data_note is None or not result.bit_exact else [result.data_note]
        ui.notes([*told, *result.data_warnings])
    if not result.bit_exact:
        ui.show_error(_mismatch_error(result))
    elif agreement is not None and not agreement.agrees:
        what = f"{agreement.differing} of {agreement.runs} samples differ from {agreement.runtime}"
        ui.show_error(MismatchError(f"{what}\nfirst: {agreement.first}", str(oracle), agreement.advice))
    else:
        return 0
    return 1


def _show_steps(steps: StepCounts) -> None:
    worst = steps.worst
    longest = f"{ui.number(steps.counts[worst])} {steps.unit}, slice {worst}: {steps.layers[worst]}"
    ui.facts(
        "",
        [
            ("slices", f"{steps.plan.count}, asked for at most {steps.plan.limit.text}"),
            ("longest slice, counted", longest),
            ("retained between slices", f"{ui.size(steps.plan.retained_most)} at most"),
        ],
    )


def _validate_each(
    project: TogetherProject, on: str | None, turns: int | None, timeout: float, json: str | None
) -> int:
    """Several models: each by itself, and then in turns."""
    result = project.validate_each(on=on, max_samples=turns, timeout=timeout)
    if json is not None:
        ui.write_json(json, result.to_json())
    if json != "-":
        for name, each in result.results.items():
            ui.say(f"\n{name}")
            _show(each, project.board.clock_hz)
        said = "NO" if result.differing else "yes"
        ui.facts("", [("in turns = host reference", f"{said}, {result.turns} rounds of all models")])
    for each in result.results.values():
        if not each.bit_exact:
            ui.show_error(_mismatch_error(each))
    if result.differing:
        ui.show_error(
            MismatchError("models that run in turns disturb each other:\n" + "\n".join(result.differing))
        )
    return 0 if result.bit_exact else 1


def _show_agreement(agreement: Agreement) -> None:
    right = agreement.runs - agreement.differing
    said = f"{'yes' if agreement.agrees else 'NO'}, {right} of {agreement.runs} samples"
    if agreement.ulps is not None:
        said = f"floats within {agreement.ulps:.0f} ulps of the largest value"
    ui.facts("", [(f"device = {agreement.runtime}", said)])


def _show(result: ValidationResult, clock_hz: int) -> None:
    # Instructions of an emulator are no cycles, and neither is a time.
    unit = result.count_unit
    rows: list[tuple[str | int | None, ...]] = []
    for layer in result.layers:
        per_mac = "–" if not layer.macs or layer.count is None else f"{layer.count / layer.macs:.2f}"
        sqnr = "–" if layer.sqnr_db is None else f"{layer.sqnr_db:.1f}"
        details = (ui.kernel(layer.kernel), layer.line)
        rows.append((layer.name, layer.op, layer.macs or "–", layer.count, per_mac, sqnr, *details))
        rows += [(f"· {part.name}", "", "", part.count, "", "", "", "") for part in layer.parts]
    short = {"instructions": "instr", "nanoseconds": "ns"}.get(unit, unit)
    ui.table(
        [
            ("layer", "text"),
            ("op", "name"),
            ("MACs", "number"),
            (unit if unit == "instructions" else short, "number"),
            (f"{short}/MAC", "number"),
            ("SQNR dB", "number"),
            ("kernel", "detail"),
            ("line", "detail"),
        ],
        rows,
    )
    right = result.samples - result.mismatches
    compared = "synthetic sample" if result.synthetic else "samples"
    exact = f"{'yes' if result.bit_exact else 'NO'}, {right} of {result.samples} {compared}"
    pairs = [
        ("device = host reference", exact),
        *_beside_float(result),
        ("run on", "host" if result.on == "host" else f"{result.on}, {result.board}"),
    ]
    if result.at_sizes:
        right = sum(each.bit_exact for each in result.at_sizes)
        first, last = result.at_sizes[0], result.at_sizes[-1]
        pairs.append(
            (
                f"sizes {first.size} to {last.size}",
                f"{right} of {len(result.at_sizes)} exact, {ui.number(first.count)} to {ui.number(last.count)} {unit}",
            )
        )
    if result.accuracy is not None:
        parts = [
            f"device {ui.percent(result.accuracy)}",
            f"host reference {ui.percent(result.host_accuracy)}",
            f"float model {ui.percent(result.float_accuracy)}",
        ]
        pairs.append(("accuracy", ", ".join(parts)))
    if result.clipped is not None:
        pairs.append(("input values clipped", ui.percent(result.clipped)))
    per_mac = f", {result.count / result.macs:.2f} per MAC" if result.count and result.macs else ""
    time = (
        ""
        if result.cycles is None
        else f", {1e3 * result.cycles / clock_hz:.1f} ms at {clock_hz / 1e6:g} MHz"
    )
    pairs += [
        (f"{unit} per inference", f"{ui.number(result.count)}{per_mac}{time}"),
        ("MACs per inference", ui.number(result.macs)),
        ("arena", ui.size(result.arena_bytes)),
        ("RAM without stack", ui.size(result.ram_bytes)),
        ("flash", ui.size(result.flash_bytes)),
        ("stack, highest use", ui.size(result.stack_bytes)),
    ]
    if result.stack_bound is not None:
        pairs.append(("stack, bound", result.stack_bound.said or ui.size(result.stack_bound.bytes)))
    if result.ram_with_stack_bytes is not None:
        pairs.append(("RAM with the application's stack", ui.size(result.ram_with_stack_bytes)))
    ui.facts("", pairs)


def _beside_float(result: ValidationResult) -> list[tuple[str, str]]:
    """The other proof: the host reference against the float model."""
    if result.answers is None:
        return []
    said = result.answers.said if result.answers.healthy else f"NO, {result.answers.said}"
    return [("host reference near float", f"{'yes, ' if result.answers.healthy else ''}{said}")]


def _show_estimate(result: ValidationResult, estimate: CycleEstimate) -> None:
    ui.say()
    ui.say(f"ESTIMATED cycles, by a model of the {estimate.model}: no hardware has counted them")

    def row(name: str, work: Work, macs: int) -> tuple[str | int, ...]:
        per_mac = f"{work.cycles / macs:.2f}" if macs else "–"
        milliseconds = f"{estimate.milliseconds_of(work.cycles):.3f}"
        mix = (work.loads, work.stores, work.multiplies, work.taken_branches, work.wait_cycles)
        return (name, work.cycles, per_mac, milliseconds, *mix)

    ui.table(
        [
            ("layer", "text"),
            ("est. cycles", "number"),
            ("/MAC", "number"),
            ("est. ms", "number"),
            ("loads", "number"),
            ("stores", "number"),
            ("multiplies", "number"),
            ("branches", "number"),
            ("waits", "number"),
        ],
        [
            *(row(layer.name, layer.estimate or Work(), layer.macs) for layer in result.layers),
            row("between layers", estimate.between, 0),
            row("whole", estimate.whole, result.macs),
        ],
    )
    clock = f"{estimate.clock_hz / 1e6:g} MHz"
    ui.facts(
        "",
        [
            ("estimated cycles per inference", ui.number(estimate.cycles)),
            *_ends(estimate),
            *((f"data in {name}", _accesses_said(each)) for name, each in estimate.accesses.items()),
            ("estimated time per inference", f"{estimate.milliseconds:.3f} ms at {clock}"),
            ("cycles of instructions from", estimate.source),
            ("instructions counted in", f"QEMU, {estimate.machine}"),
        ],
    )
    ui.notes([f"the estimate assumes: {sentence}" for sentence in estimate.assumed])


def _accesses_said(found: Accesses) -> str:
    reads, writes = ui.number(found.reads), ui.number(found.writes)
    return f"{reads} reads of {ui.size(found.read_bytes)}, {writes} writes of {ui.size(found.written_bytes)}"


def _ends(estimate: CycleEstimate) -> list[tuple[str, str]]:
    if estimate.ends is None:
        return []
    least, most = estimate.ends
    return [("by what its source leaves open", f"{ui.number(least)} to {ui.number(most)} cycles")]


def _mismatch_error(result: ValidationResult) -> MismatchError:
    """The error of a result that is not bit-exact: the first layer that differs, where it could be found."""
    wrong = [each.size for each in result.at_sizes if not each.bit_exact]
    count = f"{result.mismatches} of {result.samples} samples differ from the host reference"
    if wrong:
        count += f", and {len(wrong)} of {len(result.at_sizes)} sizes, from {wrong[0]} on"
    first = result.first_mismatch
    if first is None:
        return MismatchError(
            f"{count}, but each layer looked at alone agrees",
            None,
            "run it again; if it stays, report it with the model",
        )
    index = ", ".join(map(str, first.index))
    return MismatchError(
        f"{count}\n"
        f"first layer that differs: {first.layer} {first.name} ({first.op}, {ui.kernel(first.kernel)}), "
        f"in sample {first.sample}\n"
        f"  element [{index}]: device {first.device}, host reference {first.host}\n"
        f"  elements of this layer that differ: {first.count}",
        first.source or None,
        first.error().hint,
    )
