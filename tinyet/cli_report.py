# SPDX-License-Identifier: Apache-2.0
"""How the command line shows its results: tables and blocks for a width of 100 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from tinyet import ui
from tinyet.analyze import Analysis
from tinyet.boards import Board
from tinyet.delegates import PORTABLE, Delegate
from tinyet.emit.kinds import KINDS, kinds_for
from tinyet.errors import MismatchError
from tinyet.fit import LARGEST, Contributor
from tinyet.project import Project
from tinyet.toolchain.doctor import Check
from tinyet.toolchain.size import Size, Where
from tinyet.ui import number, percent
from tinyet.validate import ValidationResult

MOST_WARNINGS = 12


def _bytes(value: int | None) -> str:
    return "–" if value is None else f"{number(value)} bytes"


def _kernel(symbol: str) -> str:
    return symbol.removeprefix("tinyet_")


def _kib(value: int) -> str:
    return f"{value // 1024}K" if value % 1024 == 0 else number(value)


def warnings(lines: Sequence[str]) -> None:
    """What a person should know of a compiled model, shortened when it is much."""
    shown = [*lines[:MOST_WARNINGS]]
    if len(lines) > MOST_WARNINGS:
        shown.append(f"… and {len(lines) - MOST_WARNINGS} more: `tinyet analyze` lists every layer")
    ui.warn("note:" if len(lines) == 1 else "notes:", shown)


def generated(project: Project) -> None:
    facts = project.manifest
    if facts["kind"] == "model":
        ui.say(
            f"{project.path}: {project.name} for {project.board.name}, {facts['layers']} layers, "
            f"arena {_bytes(int(str(facts['arena_bytes'])))}"
        )
        ui.say(f'next: compile the .c files with your own, and include "{project.name}.h"')
        return
    plan = project.deployment.plan
    ui.say(
        f"{project.path}: {project.name} for {project.board.name}, {len(project.deployment.steps)} layers, "
        f"arena {_bytes(plan.arena_bytes)}{' (optimal)' if plan.optimal else ''}, "
        f"weights {_bytes(project.deployment.constant_bytes)}"
    )
    ui.say(f"next: tinyet build {project.path}")


def built(project: Project, size: Size) -> None:
    ui.facts(
        f"{project.name} on {project.board.name}",
        [
            ("flash", f"{_bytes(size.flash)} of {number(project.board.flash.bytes)}"),
            (
                "RAM",
                f"{_bytes(size.ram)} of {number(project.board.ram.bytes)}, and {_bytes(size.stack)} of stack",
            ),
        ],
    )
    places: tuple[Where, ...] = ("flash", "ram")
    rows = [(symbol.name, where, symbol.bytes) for where in places for symbol in size.largest(where, LARGEST)]
    ui.table([("largest symbol", "cut"), ("in", "name"), ("bytes", "number")], rows)
    ui.say(f"next: tinyet validate {project.path}")


# ---------------------------------------------------------------- validate


def validated(result: ValidationResult) -> None:
    # Instructions of an emulator are no cycles, and neither is a time.
    unit = result.count_unit
    rows: list[tuple[str | int | None, ...]] = []
    for layer in result.layers:
        per_mac = "–" if not layer.macs or layer.count is None else f"{layer.count / layer.macs:.2f}"
        sqnr = "–" if layer.sqnr_db is None else f"{layer.sqnr_db:.1f}"
        rows.append((layer.name, layer.op, _kernel(layer.kernel), layer.macs, layer.count, per_mac, sqnr))
        rows += [("", "", f"· {part.name}", "", part.count, "", "") for part in layer.parts]
    short = {"instructions": "instr", "nanoseconds": "ns"}.get(unit, unit)
    ui.table(
        [
            ("layer", "cut"),
            ("op", "name"),
            ("kernel", "cut"),
            ("MACs", "number"),
            (unit if unit == "instructions" else short, "number"),
            (f"{short}/MAC", "number"),
            ("SQNR dB", "number"),
        ],
        rows,
    )
    right = result.samples - result.mismatches
    pairs = [
        (
            "device = host reference",
            f"{'yes' if result.bit_exact else 'NO'}, {right} of {result.samples} samples",
        ),
        ("run on", "host" if result.on == "host" else f"{result.on}, {result.board}"),
    ]
    if result.accuracy is not None:
        parts = [
            f"device {percent(result.accuracy)}",
            f"host reference {percent(result.host_accuracy)}",
            f"float model {percent(result.float_accuracy)}",
        ]
        pairs.append(("accuracy", ", ".join(parts)))
    per_mac = f", {result.count / result.macs:.2f} per MAC" if result.count and result.macs else ""
    pairs += [
        (f"{unit} per inference", f"{number(result.count)}{per_mac}"),
        ("MACs per inference", number(result.macs)),
        ("arena", _bytes(result.arena_bytes)),
        ("RAM without stack", _bytes(result.ram_bytes)),
        ("flash", _bytes(result.flash_bytes)),
        ("stack, highest use", _bytes(result.stack_bytes)),
    ]
    ui.facts("", pairs)


def mismatch_error(result: ValidationResult) -> MismatchError:
    """The error of a result that is not bit-exact: the first layer that differs, where it could be found."""
    count = f"{result.mismatches} of {result.samples} samples differ from the host reference"
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
        f"first layer that differs: {first.layer} {first.name} ({first.op}, {_kernel(first.kernel)}), "
        f"in sample {first.sample}\n"
        f"  element [{index}]: device {first.device}, host reference {first.host}\n"
        f"  elements of this layer that differ: {first.count}",
        first.source or None,
        first.error().hint,
    )


# ---------------------------------------------------------------- analyze


def analyzed(analysis: Analysis, board: Board) -> None:
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
            layer.op,
            _kernel(layer.kernel),
            "x".join(map(str, layer.shape)),
            layer.macs or "–",
            layer.constant_bytes or "–",
            layer.output_bytes + layer.scratch_bytes,
            layer.source or layer.name,
        )
        for layer in analysis.layers
    ]
    columns = [("#", "number"), ("op", "name"), ("kernel", "cut"), ("output", "name"), ("MACs", "number")]
    ui.table([*columns, ("flash", "number"), ("arena", "number"), ("source", "cut")], rows)
    took = Counter(layer.delegate for layer in analysis.layers)
    gap = analysis.arena_bytes - analysis.lower_bound
    bound = (
        "optimal"
        if analysis.optimal
        else f"{_bytes(gap)} above the lower bound {number(analysis.lower_bound)}"
    )
    ui.facts(
        "",
        [
            ("MACs per inference", number(analysis.macs)),
            (
                "weights and tables",
                f"{_bytes(analysis.constant_bytes)} of {number(board.flash.bytes)} of flash",
            ),
            ("arena", f"{_bytes(analysis.arena_bytes)} of {number(board.ram.bytes)} of RAM; {bound}"),
            ("layers by delegate", ", ".join(f"{name} {count}" for name, count in took.items())),
        ],
    )
    _contributors("largest in flash", analysis.largest)
    at = f"layer {analysis.peak_layer}" if 0 <= analysis.peak_layer < len(analysis.layers) else "the boundary"
    _contributors(f"alive at the peak of the arena, {at}", analysis.peak)
    # Among the portable kernels a refusal is how the right one is found; a delegate's is news.
    refused = [
        f"layer {layer.index} {layer.op}: {reason}"
        for layer in analysis.layers
        for reason in layer.refusals
        if not reason.startswith(f"{PORTABLE.name}/")
    ]
    if refused:
        ui.say("refused by a delegate:")
        for line in refused:
            ui.say(f"  - {line}")


def _contributors(title: str, contributors: Sequence[Contributor]) -> None:
    rows = [(entry.bytes, entry.text) for entry in contributors[:LARGEST]]
    if rows:
        ui.table([("bytes", "number"), (title, "text")], rows)


# ---------------------------------------------------------------- the surroundings


def delegates(found: Sequence[Delegate]) -> None:
    rows = [
        (
            delegate.name,
            "regions" if delegate.claim else "layers",
            " ".join(sorted(kind.name for kind in delegate.kernels)) or "what it claims",
        )
        for delegate in found
    ]
    ui.table([("delegate", "name"), ("takes", "name"), ("operators", "text")], rows)


def boards(found: Sequence[Board]) -> None:
    everywhere = [kind for kind in KINDS if all(kind in kinds_for(board) for board in found)]
    rows = [
        (
            board.name,
            board.title,
            board.isa,
            _kib(board.flash.bytes),
            _kib(board.ram.bytes),
            " ".join(kind for kind in kinds_for(board) if kind not in everywhere) or "–",
            " ".join(board.emulators) or "–",
        )
        for board in found
    ]
    ui.table(
        [
            ("board", "name"),
            ("what it is", "text"),
            ("ISA", "name"),
            ("flash", "number"),
            ("RAM", "number"),
            ("projects", "text"),
            ("emulators", "text"),
        ],
        rows,
    )
    if everywhere:
        ui.say(f"projects for every board: {', '.join(everywhere)}")


def board(one: Board) -> None:
    """All that a board file says, and what follows from it."""
    memories = [one.flash, one.ram, *([one.vectors] if one.vectors else []), *one.extra_memories]
    pairs = [
        (
            "core",
            " ".join([one.cpu, *sorted(one.target.features), *([one.target.mcu] if one.target.mcu else [])]),
        ),
        ("ISA", one.isa),
        ("clock", f"{one.clock_hz / 1e6:g} MHz"),
        *((m.name, f"{_bytes(m.bytes)} at {m.origin:#010x}, {m.access}") for m in memories),
        ("stack", f"{_bytes(one.stack_bytes)} of the RAM"),
    ]
    if one.uart is not None:
        pairs.append(("UART", f"{one.uart.driver} at {one.uart.base:#010x}, {one.uart.baud} baud"))
    if one.platformio is not None:
        framework = f", framework {one.platformio.framework}" if one.platformio.framework else ""
        pairs.append(("PlatformIO", f"{one.platformio.platform}: {one.platformio.board}{framework}"))
    if one.arduino is not None:
        pairs.append(("Arduino", one.arduino.fqbn))
    if one.zephyr is not None:
        pairs.append(("Zephyr", one.zephyr.board))
    pairs += [
        ("projects", " ".join(kinds_for(one))),
        ("emulators", " ".join(one.emulators) or "–"),
        ("more", one.url or "–"),
    ]
    ui.facts(one.title, pairs)


def doctor(found: Sequence[Check], basic: Collection[str]) -> None:
    rows = [
        (
            check.name,
            check.version or ("MISSING" if check.name in basic else "not here"),
            check.needed_for + ("" if check.name in basic else " (optional)"),
        )
        for check in found
    ]
    ui.table([("tool", "name"), ("found", "text"), ("for", "text")], rows)
    missing = [check for check in found if not check.ok]
    if not missing:
        ui.say("nothing is missing")
        return
    ui.say("to install what is missing:")
    # One command may bring several tools.
    for command in dict.fromkeys(check.install for check in missing):
        names = ", ".join(check.name for check in missing if check.install == command)
        ui.say(f"  # {names}")
        ui.say(f"  {command}")
