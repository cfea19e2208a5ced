# SPDX-License-Identifier: Apache-2.0
"""What can be compared, as figures by name and the same for each part of it: a layer, or a symbol of a firmware.

A name has one meaning, wherever its figure is from: what kernels state is never compared with what was executed, nor
an estimate of cycles with a count.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tinyet.analysis import Analysis, analyze_chosen
from tinyet.boards import Board
from tinyet.build.size import is_elf, measure
from tinyet.data import Data
from tinyet.errors import DataError, TinyetError
from tinyet.files.reading import read_bounded
from tinyet.opening import PROJECT, ModelOptions, kind_of, read
from tinyet.program import Program
from tinyet.project import Project
from tinyet.projects import open_project
from tinyet.validation import ValidationResult

Comparable = str | Path | Program | Project | Analysis | ValidationResult

FIGURES: dict[str, str] = {
    "instructions": "executed instructions",
    "cycles": "cycles of hardware",
    "estimated_cycles": "estimated cycles",
    "stated_instructions": "instructions stated",
    "arena_bytes": "arena",
    "ram_bytes": "RAM without stack",
    "ram_with_stack_bytes": "RAM with stack",
    "stack_bytes": "stack, highest use",
    "flash_bytes": "flash",
    "stated_flash_bytes": "flash, stated",
    "constant_bytes": "weights and tables",
    "code_bytes": "code of kernels",
    "macs": "MACs",
    "mismatches": "samples that differ from the host",
    "accuracy": "accuracy",
    "sqnr_db": "SQNR, dB",
}
"""What a figure is called in a table. Smaller is better, but for those of BETTER_LARGER."""

BETTER_LARGER = frozenset({"accuracy", "sqnr_db"})
_LAYER_FIGURES = ("instructions", "cycles", "macs", "sqnr_db")
_MOST_BYTES = 64 << 20
"""Of a report: some kilobytes a layer."""
_MOST_PARTS = 100_000
# What tells a report by its fields, and the version of it that is known here.
_KNOWN = {"validate": ("bit_exact", 4), "analyze": ("kernel_front", 4), "build": ("sample_bytes", 2)}


@dataclass(frozen=True)
class Part:
    """A layer, or a function or object of a firmware: its figures by name."""

    name: str
    figures: Mapping[str, float]
    kernel: str = ""


@dataclass(frozen=True)
class Side:
    """One of two things that are compared.

    name: as it was given; what: its kind, in words; board: empty where it is of none; figures: by the names of FIGURES,
    those that are known; program, evaluation: where they are there, to compare answers.
    """

    name: str
    what: str
    board: str
    figures: Mapping[str, float]
    parts: tuple[Part, ...] = ()
    program: Program | None = field(default=None, compare=False)
    evaluation: Data | None = field(default=None, compare=False)


def side_of(given: Comparable, board: str | Path | Board | None, optimize: str | None) -> Side:
    """Any comparable thing as a side. board, optimize: for programs, and projects for which another is wanted.

    Raises UsageError for what cannot be compared, DataError for a report that is none; else what `tinyet.open` and
    `tinyet.analyze` raise."""
    if isinstance(given, ValidationResult):
        return _of_validation(given.to_json(), "a result of validate")
    if isinstance(given, Analysis):
        return _of_analysis(given.to_json(), "an analysis")
    if isinstance(given, (Program, Project)):
        return _analyzed(given, given.name, board, optimize, None)
    path = Path(given)
    if path.suffix == ".json" and path.is_file() and not _is_model(path):
        return _of_report(path)
    if path.is_file() and (path.suffix == ".elf" or is_elf(path)):
        return _of_elf(path)
    if kind_of(str(given)) == PROJECT:
        return _analyzed(open_project(path), str(given), board, optimize, None)
    opened = read(str(given), ModelOptions())
    return _analyzed(opened.program, str(given), board, optimize, opened.evaluation)


def _is_model(path: Path) -> bool:
    """XGBoost's models are JSON, too."""
    try:
        kind_of(str(path))
    except TinyetError:
        return False
    return True


# ---------------------------------------------------------------- programs, projects, firmwares


def _analyzed(
    given: Program | Project,
    name: str,
    board: str | Path | Board | None,
    optimize: str | None,
    data: Data | None,
) -> Side:
    """A program or a project by its analysis. data: that came with a model; a project has its own."""
    side = _of_analysis(analyze_chosen(given, board, optimize=optimize).to_json(), name)
    if isinstance(given, Project):
        what, program, data = "a project", given.program, given.evaluation
    else:
        what, program = "a program", given
    return replace(side, what=what, program=program, evaluation=data)


def _of_elf(path: Path) -> Side:
    """Flash without the demonstration's sample, static RAM, and each symbol in them."""
    size = measure(path)
    sums: dict[str, dict[str, float]] = {}
    for symbol in size.symbols:
        figures = sums.setdefault(symbol.name, {})
        for key, inside in (("flash_bytes", symbol.section.in_flash), ("ram_bytes", symbol.section.in_ram)):
            if inside:
                figures[key] = figures.get(key, 0) + symbol.bytes
    parts = tuple(Part(name, figures) for name, figures in sums.items() if figures)
    return Side(
        str(path), "a firmware", "", {"flash_bytes": size.flash - size.sample, "ram_bytes": size.ram}, parts
    )


# ---------------------------------------------------------------- reports


def _of_report(path: Path) -> Side:
    """A report of `--json`. Raises DataError for a file that is none, or of another version."""
    try:
        found = json.loads(read_bounded(path, _MOST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"the report cannot be read: {error}", str(path)) from error
    kinds = [kind for kind, (key, _) in _KNOWN.items() if isinstance(found, dict) and key in found]
    if len(kinds) != 1:
        commands = ", ".join(f"`tinyet {kind}`" for kind in _KNOWN)
        raise DataError(f"this is no report of {commands}", str(path), "write one with --json FILE")
    (kind,) = kinds
    version = _KNOWN[kind][1]
    if found.get("version") != version:
        what = f"a report of `tinyet {kind}` of version {found.get('version')!r}, and {version} is known here"
        raise DataError(what, str(path), f"write it anew: tinyet {kind} … --json FILE")
    made = {"validate": _of_validation, "analyze": _of_analysis, "build": _of_build}[kind]
    return made(found, str(path))


def _figures(record: Mapping[str, Any], keys: Mapping[str, str], where: str) -> dict[str, float]:
    """Those fields of a record that are numbers, by the names that they have here. keys: name here → field."""
    found: dict[str, float] = {}
    for name, key in keys.items():
        value = record.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise DataError(f"{key} is no number", where, "write the report anew with --json FILE")
        found[name] = value
    return found


def _records(report: Mapping[str, Any], where: str) -> list[Mapping[str, Any]]:
    layers = report.get("layers")
    if (
        not isinstance(layers, list)
        or len(layers) > _MOST_PARTS
        or not all(isinstance(layer, dict) and isinstance(layer.get("name"), str) for layer in layers)
    ):
        raise DataError("its layers are no list of layers", where, "write the report anew with --json FILE")
    return layers


def _text(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _of_validation(report: Mapping[str, Any], where: str) -> Side:
    same = (
        "instructions",
        "cycles",
        "arena_bytes",
        "ram_bytes",
        "ram_with_stack_bytes",
        "stack_bytes",
        "flash_bytes",
    )
    figures = _figures(report, {key: key for key in (*same, "macs", "mismatches", "accuracy")}, where)
    for key, field_ in (("estimate", "cycles"), ("answers", "sqnr_db")):
        part = report.get(key)
        if isinstance(part, dict):
            name = "estimated_cycles" if key == "estimate" else "sqnr_db"
            figures |= _figures(part, {name: field_}, where)
    parts = []
    for layer in _records(report, where):
        own = _figures(layer, {key: key for key in _LAYER_FIGURES}, f"{where}, layer {layer['name']}")
        estimate = layer.get("estimate")
        if isinstance(estimate, dict):
            own |= _figures(estimate, {"estimated_cycles": "cycles"}, where)
        parts.append(Part(layer["name"], own, _text(layer, "kernel")))
    board = f"{_text(report, 'board')}, {_text(report, 'on')}"
    return Side(where, "a report of validate", board, figures, tuple(parts))


def _of_analysis(report: Mapping[str, Any], where: str) -> Side:
    keys = {
        "estimated_cycles": "cycles",
        "arena_bytes": "arena_bytes",
        "ram_bytes": "ram_bytes",
        "ram_with_stack_bytes": "ram_with_stack_bytes",
        "flash_bytes": "linked_bytes",
        "constant_bytes": "constant_bytes",
        "code_bytes": "code_bytes",
        "macs": "macs",
    }
    figures = _figures(report, keys, where)
    flash = report.get("flash")
    if isinstance(flash, dict):
        figures |= _figures(flash, {"stated_flash_bytes": "stated_bytes"}, where)
    of_layers = {
        "stated_instructions": "instructions",
        "estimated_cycles": "cycles",
        "constant_bytes": "constant_bytes",
        "code_bytes": "code_bytes",
        "macs": "macs",
    }
    layers = _records(report, where)
    own = [_figures(layer, of_layers, f"{where}, layer {layer['name']}") for layer in layers]
    plans = report.get("plans")
    for plan in plans if isinstance(plans, list) else []:
        if isinstance(plan, dict) and plan.get("chosen") is True:
            figures |= _figures(plan, {"stated_instructions": "instructions"}, where)
    parts = tuple(
        Part(layer["name"], f, _text(layer, "kernel")) for layer, f in zip(layers, own, strict=True)
    )
    return Side(where, "a report of analyze", _text(report, "board"), figures, parts)


def _of_build(report: Mapping[str, Any], where: str) -> Side:
    keys = {key: key for key in ("flash_bytes", "ram_bytes", "ram_with_stack_bytes")}
    return Side(where, "a report of build", _text(report, "board"), _figures(report, keys, where))
