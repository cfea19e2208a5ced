# SPDX-License-Identifier: Apache-2.0
"""`tinyet analyze`: what each layer costs on a board, before anything is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tinyet.boards import DEFAULT_BOARD, Board, load_board
from tinyet.cli import ui
from tinyet.cli.options import (
    Buffers,
    CallerStack,
    DelegateNames,
    HtmlFile,
    InputRows,
    JsonFile,
    MaxFlash,
    MaxRam,
    ModelFlags,
    Optimize,
    Pins,
    Place,
    RequireDelegate,
    Svg,
    delegates_of,
    pictures_of,
    pins_of,
    place_of,
    takes_model,
)
from tinyet.errors import UsageError
from tinyet.pages.page import page_of
from tinyet.pages.pictures import PICTURES
from tinyet.planning.places import ARENA, SECOND

if TYPE_CHECKING:
    from tinyet.accounts.code import KernelAnalysis
    from tinyet.accounts.fronts import KernelFrontPoint, PlanAnalysis
    from tinyet.accounts.layers import CandidateAnalysis
    from tinyet.advising.trials import Advice
    from tinyet.analysis import Analysis
    from tinyet.budget.fit import Contributor
    from tinyet.program import Program
    from tinyet.project import Project


@takes_model()
def analyze(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL|DIR", help="a model as for `generate`, a .tet program, or a project"),
    ],
    board: Annotated[
        str | None,
        typer.Option("--board", help=f"by default the project's own, or {DEFAULT_BOARD} for a model"),
    ] = None,
    optimize: Optimize = None,
    max_ram: MaxRam = None,
    max_flash: MaxFlash = None,
    stack: CallerStack = None,
    pin: Pins = None,
    place: Place = None,
    input_rows: InputRows = False,
    buffers: Buffers = None,
    delegates: DelegateNames = None,
    require_delegate: RequireDelegate = False,
    advice: Annotated[
        bool,
        typer.Option(
            "--advice", help="try what could help, a plan each, and say what it brings: takes seconds"
        ),
    ] = False,
    html: HtmlFile = None,
    svg: Svg = None,
    json: JsonFile = None,
    *,
    flags: ModelFlags,
) -> None:
    """Show what each layer costs on a board, before anything is built."""
    # Who asks for help waits for no planner.
    from tinyet.analysis import analyze as analyze_program
    from tinyet.cli.model import obtain, spelled
    from tinyet.cli.together import tell_together
    from tinyet.opening import PROJECT, kind_of
    from tinyet.projects import open_project
    from tinyet.projects.together import TogetherProject

    target = None if board is None else load_board(board)
    asked, pins = delegates_of(delegates, require_delegate), pins_of(pin)
    pictures = pictures_of(svg)
    placed = place_of(place)
    warnings: tuple[str, ...] = ()
    subject: Program | Project
    if kind_of(model) == PROJECT:
        if idle := flags.options().given:
            raise UsageError(f"{spelled(idle)}: a project is generated already", model, "leave it away")
        with ui.stages("reading the program"):
            subject = open_project(model)
            shown = target or subject.board
        if isinstance(subject, TogetherProject):
            tell_together(subject, json)
            return
    else:
        compiled = obtain(model, flags.options())
        subject, warnings = compiled.program, compiled.warnings
        shown = target or load_board(DEFAULT_BOARD)
    with ui.stages("analyzing"):
        analysis = analyze_program(
            subject,
            target,
            delegates=asked,
            require_delegate=require_delegate,
            optimize=optimize,
            max_ram=max_ram,
            max_flash=max_flash,
            stack=stack,
            pins=pins,
            place=placed,
            input_rows=input_rows,
            buffers=buffers,
            advice=advice,
        )
    if html is not None:
        page = page_of(f"{analysis.name} on {analysis.board}", analysis=analysis.to_json(), remarks=warnings)
        ui.write_text(str(html), page)
    for picture, file in pictures.items():
        ui.write_text(str(file), PICTURES[picture](analysis.to_json()))
    if json is not None:
        ui.write_json(json, analysis.to_json())
    if json != "-":
        ui.notes(warnings)
        _show(analysis, shown)


def _arena_said(analysis: Analysis, board: Board) -> str:
    pieces = [each for each in analysis.placed if each.name in (ARENA, SECOND)]
    if len(pieces) > 1:
        said = (f"{ui.size(p.bytes)} of {ui.number(p.memory.bytes)} of {p.memory.name}" for p in pieces)
        return f"{ui.size(analysis.arena_bytes)}: {', '.join(said)}"
    memory = pieces[0].memory if pieces else board.ram
    name = "RAM" if memory == board.ram else memory.name
    return f"{ui.size(analysis.arena_bytes)} of {ui.number(memory.bytes)} of {name}"


def _show_places(analysis: Analysis) -> None:
    """Where things lie, if any of them does not lie where things usually do."""
    usual = {"flash": True, "ram": False}
    if all(usual.get(each.memory.name) is bool(each.layer) for each in analysis.placed):
        return
    ui.table(
        [
            ("object", "text"),
            ("bytes", "number"),
            ("memory", "name"),
            ("how", "name"),
            ("est. waits", "number"),
        ],
        [
            (
                each.name,
                each.bytes,
                each.memory.name,
                "copied ahead" if each.ahead else "copied at the start" if each.copied else "there",
                "–" if each.waits is None else round(each.waits),
            )
            for each in analysis.placed
        ],
    )
    said = [
        (m.name, f"{ui.size(m.model_bytes)} of {ui.number(m.bytes)} for arena, state and weights")
        for m in analysis.memories
    ]
    ui.facts("", said)


def _show_trees(analysis: Analysis) -> None:
    """Of layers of decision trees: how many there are, and the comparisons of a row."""
    rows = [
        (
            layer.name,
            found.trees,
            found.nodes,
            found.leaves,
            found.depth,
            found.worst_path,
            round(found.mean_path),
            "–" if found.sampled_path is None else round(found.sampled_path),
        )
        for layer in analysis.layers
        if (found := layer.trees) is not None
    ]
    if not rows:
        return
    heads = ("trees", "nodes", "leaves", "depth", "comparisons at most", "even odds", "training")
    ui.table([("layer", "text"), *((head, "number") for head in heads)], rows)


def _show(analysis: Analysis, board: Board) -> None:
    from tinyet.budget.fit import said_of, stack_said
    from tinyet.delegates import PORTABLE

    ui.facts(
        f"{analysis.name} on {analysis.board} ({analysis.cpu})",
        [
            *(("input", text) for text in analysis.inputs),
            *(("output", text) for text in analysis.outputs),
        ],
    )
    rows = [
        (
            layer.index,
            layer.name,
            layer.op,
            "x".join(map(str, layer.shape)),
            layer.macs or "–",
            _dash(layer.instructions if analysis.cycles is None else layer.cycles),
            layer.constant_bytes or "–",
            "–" if layer.code_bytes is None else layer.code_bytes,
            layer.output_bytes + layer.scratch_bytes,
            ui.kernel(layer.kernel),
            layer.line,
        )
        for layer in analysis.layers
    ]
    ui.table(
        [
            ("#", "number"),
            ("layer", "text"),
            ("op", "name"),
            ("output", "name"),
            ("MACs", "number"),
            ("instructions" if analysis.cycles is None else "est. cycles", "number"),
            ("constants", "number"),
            ("code", "number"),
            ("arena", "number"),
            ("kernel", "detail"),
            ("line", "detail"),
        ],
        rows,
    )
    _show_trees(analysis)
    _show_places(analysis)
    took = Counter(layer.delegate for layer in analysis.layers)
    over = sum(1 for layer in analysis.layers if layer.over)
    ui.facts(
        "",
        [
            ("MACs per inference", ui.number(analysis.macs)),
            ("time", _time_said(analysis, board)),
            (
                "weights and tables",
                f"{ui.size(analysis.constant_bytes)} of {ui.number(board.flash.bytes)} of flash",
            ),
            ("code of the kernels", _code_said(analysis)),
            ("flash, stated", said_of(analysis.flash)),
            ("stack, planned", stack_said(analysis.planned_stack)),
            ("arena", _arena_said(analysis, board)),
            ("its bound", _bound_said(analysis)),
            *([("layers over their input", f"{over} of {len(analysis.layers)}, row by row")] if over else []),
            *([] if analysis.stack is None else ui.stack_rows(analysis.stack, analysis.ram_bytes)),
            ("layers by delegate", ", ".join(f"{name} {count}" for name, count in took.items())),
        ],
    )
    _plans(analysis)
    if analysis.advice is not None:
        _advice(analysis, analysis.advice)
    _streams(analysis)
    _contributors("largest in flash", analysis.largest_constants)
    _code(analysis)
    at = (
        analysis.layers[analysis.peak_layer].name
        if 0 <= analysis.peak_layer < len(analysis.layers)
        else "the boundary"
    )
    _contributors(f"alive at the peak of the arena, at {at}", analysis.peak)
    if analysis.stack is not None:
        calls = [(frame.bytes, frame.function) for frame in analysis.stack.needed.chain]
        ui.table([("bytes", "number"), ("deepest calls, from the first on", "name")], calls)
    _kernels(analysis)
    # Among the portable kernels refusals find the right one; a delegate's refusal is worth showing.
    refused = [
        f"{layer.label}: {reason}"
        for layer in analysis.layers
        for reason in layer.refusals
        if not reason.startswith(f"{PORTABLE.name}/")
    ]
    if refused:
        ui.say("\nkernels that were asked first and do not apply (no failure: the next one took the layer):")
        for line in refused:
            ui.say(f"  - {line}")


def _bound_said(analysis: Analysis) -> str:
    """The lower bound of the arena, and its meaning."""
    if analysis.arena_bytes == analysis.arena_least:
        return "optimal: the inputs or an output alone take as much"
    if analysis.arena_optimal:
        said = "optimal for these kernels in this order"
    else:
        gap = ui.size(analysis.arena_bytes - analysis.arena_lower_bound)
        said = f"{gap} above what is alive at once with these kernels in this order"
        if analysis.arena_searched:
            said += "; no addresses do better"
    return f"{said}; with any, {ui.number(analysis.arena_least)} at least"


def _time_said(analysis: Analysis, board: Board) -> str:
    """What layers are compared by, and its sum."""
    if analysis.cycles is None:
        return f"instructions: kernels state no cycles of {analysis.cpu}"
    waits = 0 if board.flash_timing is None else board.flash_timing.wait_states
    return (
        f"{ui.number(analysis.cycles)} cycles estimated, {ui.number(analysis.milliseconds, 1)} ms at "
        f"{ui.number(board.clock_hz / 1e6)} MHz with {waits} wait states"
    )


def _dash(number: int | None) -> int | str:
    return "–" if number is None else number


def _cost_columns(analysis: Analysis, more: str = "") -> list[tuple[str, ui.Kind]]:
    """Of stated instructions, and of cycles where the core has a model."""
    cycles: list[tuple[str, ui.Kind]] = [] if analysis.cycles is None else [(f"est. cycles{more}", "number")]
    return [(f"instructions{more}", "number"), *cycles]


def _costs(
    analysis: Analysis, one: KernelAnalysis | KernelFrontPoint | PlanAnalysis | CandidateAnalysis
) -> tuple[int | str, ...]:
    """What stands in these columns."""
    return _dash(one.instructions), *(() if analysis.cycles is None else (_dash(one.cycles),))


def _plans(analysis: Analysis) -> None:
    """The front of time, flash and RAM, with what each aim takes."""
    if len(analysis.plans) < 2:
        return
    ui.table(
        [
            ("", "text"),
            ("plans that no other beats", "text"),
            ("RAM", "number"),
            ("flash", "number"),
            *_cost_columns(analysis, ", all counted"),
        ],
        [
            (
                "chosen" if p.chosen else "",
                ", ".join(p.optimize),
                p.ram_bytes,
                p.flash_bytes,
                *_costs(analysis, p),
            )
            for p in analysis.plans
        ],
    )


def _advice(analysis: Analysis, tried: Sequence[Advice]) -> None:
    """What helps, with what it brings; and what was tried beside it."""
    helping = [one for one in tried if one.helps]
    if helping:
        ui.table(
            [
                ("what would help, each planned", "text"),
                ("arena", "number"),
                ("flash", "number"),
                ("instructions" if analysis.cycles is None else "est. cycles", "number"),
                ("by", "detail"),
            ],
            [
                (
                    one.what,
                    _change(one.arena_bytes, analysis.arena_bytes),
                    _change(one.flash_bytes, analysis.flash.stated),
                    *_changed_time(analysis, one),
                    one.do,
                )
                for one in helping
            ],
        )
    for one in tried:
        if not one.helps:
            ui.say(f"  tried, {'impossible' if one.refused else 'no gain'}: {one.what}" + _why(one))


def _why(one: Advice) -> str:
    return "" if one.refused is None else f": {one.refused.splitlines()[0]}"


def _changed_time(analysis: Analysis, one: Advice) -> tuple[str]:
    plan = next(plan for plan in analysis.plans if plan.chosen)
    if one.cycles is None or plan.cycles is None:
        return (_change(one.instructions, plan.instructions),)
    return (_change(one.cycles, plan.cycles),)


def _change(more: int, of: int) -> str:
    if not more:
        return "="
    share = f" ({100 * more / of:+.0f} %)" if of else ""
    return f"{'+' if more > 0 else '-'}{ui.number(abs(more))}{share}"


def _streams(analysis: Analysis) -> None:
    """The layers computed by rows, and their cost."""
    if analysis.whole_arena_bytes is None:
        return
    ui.say(f"\ncomputed by rows, or the arena would be {ui.size(analysis.whole_arena_bytes)}:")
    for one in analysis.fusion_groups:
        cost = f"{ui.number(one.added_macs)} MACs more, {ui.size(one.moved_bytes)} moved"
        for what, rows, whole in (
            ("instructions stated", one.instructions, one.whole_instructions),
            ("cycles estimated", one.cycles, one.whole_cycles),
        ):
            if rows is not None and whole is not None:
                cost += f"; {ui.number(rows)} {what}, as whole layers {ui.number(whole)}"
        ui.say(f"  layers {_numbers(one.layers)}: {cost}")
    ui.table(
        [("rows", "number"), ("of", "number"), ("bytes", "number"), ("value", "text")],
        [(w.rows, w.of, w.bytes, w.value) for one in analysis.fusion_groups for w in one.line_buffers],
    )


def _code_said(analysis: Analysis) -> str:
    unknown = [layer.name for layer in analysis.layers if layer.code_bytes is None]
    stated = ui.size(analysis.code_bytes) + (
        f", but for {len(unknown)} that do not state it" if unknown else ""
    )
    if analysis.linked_bytes is None:
        return stated
    return f"{stated}; the firmware takes {ui.number(analysis.linked_bytes)} of flash in all"


def _code(analysis: Analysis) -> None:
    """Flash by kernel, and each function once with the layers that share it."""
    ui.table(
        [
            ("kernel", "name"),
            ("layers", "number"),
            *_cost_columns(analysis),
            ("code", "number"),
            ("constants", "number"),
        ],
        [
            (
                ui.kernel(one.kernel),
                len(one.layers),
                *_costs(analysis, one),
                "–" if one.code_bytes is None else one.code_bytes,
                one.constant_bytes or "–",
            )
            for one in analysis.kernels
        ],
    )
    built = analysis.linked_bytes is not None
    rows: list[tuple[str | int, ...]] = []
    for one in analysis.functions:
        linked = "in its caller" if one.linked_bytes is None else one.linked_bytes
        rows.append(
            (
                one.name,
                "–" if one.bytes is None else one.bytes,
                *((linked,) if built else ()),
                _numbers(one.layers),
            )
        )
    columns: list[tuple[str, ui.Kind]] = [("function", "name"), ("stated", "number")]
    if built:
        columns.append(("linked", "number"))
    ui.table([*columns, ("layers that need it", "text")], rows)


def _numbers(indices: Sequence[int]) -> str:
    """1-3, 5 for 1, 2, 3, 5."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _kernels(analysis: Analysis) -> None:
    """The candidate kernels, where there was a choice."""
    if len(analysis.kernel_front) > 1:
        ui.table(
            [(analysis.optimize, "text"), ("flash", "number"), *_cost_columns(analysis)],
            [
                ("chosen" if p.chosen else "", p.flash_bytes, *_costs(analysis, p))
                for p in analysis.kernel_front
            ],
        )
        if analysis.kernel_front_gap:
            ui.say(f"  found with a gap: better choices may take {analysis.kernel_front_gap} bytes less")
    rows = [
        (
            layer.index,
            layer.name,
            "*" if (candidate.kernel, candidate.delegate) == (layer.kernel, layer.delegate) else "",
            ui.kernel(candidate.kernel),
            *_costs(analysis, candidate),
            candidate.flash_bytes,
            candidate.scratch_bytes or "–",
        )
        for layer in analysis.layers
        for candidate in layer.candidates
        if len(layer.candidates) > 1
    ]
    if rows:
        ui.table(
            [
                ("#", "number"),
                ("layer", "text"),
                ("", "text"),
                ("kernels that compute it", "name"),
                *_cost_columns(analysis),
                ("flash", "number"),
                ("scratch", "number"),
            ],
            rows,
        )


def _contributors(title: str, contributors: Sequence[Contributor]) -> None:
    from tinyet.budget.fit import LARGEST

    rows = [(entry.bytes, entry.text) for entry in contributors[:LARGEST]]
    if rows:
        ui.table([("bytes", "number"), (title, "text")], rows)
