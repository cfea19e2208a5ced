# SPDX-License-Identifier: Apache-2.0
"""`tinyet validate --boards`: one model on many emulated boards."""

from __future__ import annotations

from pathlib import Path

from tinyet.cli import ui
from tinyet.data import data_given
from tinyet.errors import FitError
from tinyet.messages.stages import part
from tinyet.opening import PROJECT, ModelOptions, kind_of, read
from tinyet.projects import open_project
from tinyet.survey.everywhere import BoardResult, boards_given, validate_on


def on_boards(
    model: str, names: str, evaluation: Path | None, max_samples: int | None, timeout: float, json: str | None
) -> int:
    """A table, an error below it for each board that has no result; the exit status is 1 where one is not exact or has
    failed. That a board is too small is no failure: the table is there to show it."""
    boards = boards_given(names)
    with ui.stages("reading the program"):
        if kind_of(model) == PROJECT:
            project = open_project(model)
            program, own, optimize, delegates = (
                project.program,
                project.evaluation,
                project.optimize,
                project.delegates,
            )
        else:
            opened = read(model, ModelOptions())
            program, own, optimize, delegates = opened.program, opened.evaluation, "balanced", None
        data = own if evaluation is None else data_given(evaluation, [t.name for t in program.inputs])
        found = []
        for number, board in enumerate(boards, 1):
            with part(board.name, number, len(boards)):
                result = validate_on(
                    program,
                    board,
                    evaluation=data,
                    delegates=delegates,
                    optimize=optimize,
                    max_samples=max_samples,
                    timeout=timeout,
                )
            found.append(result)
    if json is not None:
        ui.write_json(json, {"version": 1, "name": program.name, "boards": [one.to_json() for one in found]})
    if json != "-":
        _table(found)
    for one in found:
        if one.error is not None and not isinstance(one.error, FitError):
            ui.tell(f"\n{one.board}")
            ui.show_error(one.error)
    return 0 if all(one.verdict in ("exact", "too large") for one in found) else 1


def _table(found: list[BoardResult]) -> None:
    rows = []
    for one in found:
        result = one.result
        figures: tuple[str | int | None, ...] = ("–",) * 5
        if result is not None:
            time = "–" if one.milliseconds is None else f"{one.milliseconds:.2f}"
            figures = (
                result.instructions,
                time,
                result.ram_with_stack_bytes,
                result.flash_bytes,
                ui.percent(result.accuracy),
            )
        rows.append((one.board, one.cpu, one.verdict, *figures))
    ui.table(
        [
            ("board", "name"),
            ("core", "name"),
            ("answers", "name"),
            ("instructions", "number"),
            ("est. ms", "number"),
            ("RAM", "number"),
            ("flash", "number"),
            ("accuracy", "number"),
        ],
        rows,
    )
