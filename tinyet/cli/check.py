# SPDX-License-Identifier: Apache-2.0
"""`tinyet check`: a look at models before there is data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tinyet.boards import DEFAULT_BOARD, load_board
from tinyet.build.tree import is_project
from tinyet.cli import ui
from tinyet.cli.options import DelegateNames, JsonFile, Optimize, delegates_of
from tinyet.errors import LimitError, TinyetError, UsageError, bullet_list
from tinyet.messages.stages import part

if TYPE_CHECKING:
    from tinyet.survey.budgets import Budget
    from tinyet.survey.look import Check

_INTEGERS = {
    "its own": "its own integers",
    "by noise": "int8 by noise in place of data: sizes and times hold, answers mean nothing",
    "none": "float32",
}


def check(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL…", help="models as for `generate`, or folders of them"),
    ] = None,
    board: Annotated[
        str, typer.Option("--board", help="a name (see `tinyet boards`), or your own board's .toml file")
    ] = DEFAULT_BOARD,
    budgets: Annotated[
        Path | None,
        typer.Option(
            "--budgets",
            metavar="TOML",
            help="check the models of this file, as pyproject.toml, against their limits there",
        ),
    ] = None,
    delegates: DelegateNames = None,
    optimize: Optimize = None,
    json: JsonFile = None,
) -> int:
    """Say in seconds whether models can become firmware of a board, before there is data for them.

    Every operator that is not supported is named, with its line; of the others what they cost, and what stays float.
    The exit status is 1 where a model is refused, does not fit, or is above its budget.
    """
    if not models and budgets is None:
        raise UsageError("there is no model to check", hint="name models or folders, or --budgets FILE.toml")
    # Who asks for help waits for no planner.
    from tinyet.survey.budgets import read_budgets
    from tinyet.survey.look import Check
    from tinyet.survey.look import check as look

    wanted = [] if budgets is None else list(read_budgets(budgets))
    named = [path for given in models or () for path in _paths(given)]
    pairs: list[tuple[str, str, TinyetError | None]] = [(path, board, None) for path in named]
    pairs += [(one.model, one.board, _missing(one)) for one in wanted]
    chosen = delegates_of(delegates, require=False)
    found: list[Check] = []
    with ui.stages("reading"):
        for number, (path, place, missing) in enumerate(pairs, 1):
            with part(path, number, len(pairs)):
                found.append(
                    look(path, board=place, delegates=chosen, optimize=optimize or "balanced")
                    if missing is None
                    else Check(path, place, missing)
                )
    above = [
        (one, lines)
        for one, budget in zip(found[len(found) - len(wanted) :], wanted, strict=True)
        if (lines := budget.broken(one))
    ]
    if json is not None:
        ui.write_json(json, {"version": 1, "models": [one.to_json() for one in found]})
    if json != "-":
        if len(found) == 1:
            _show(found[0])
        else:
            _table(found)
        for one in found:
            for error in (one.error, one.too_large):
                if error is not None:
                    ui.tell(f"\n{one.path}")
                    ui.show_error(error)
        for one, lines in above:
            ui.show_error(
                LimitError(f"above the budget:\n{bullet_list(lines)}", f"{one.path} on {one.board}")
            )
    return 0 if all(one.ok for one in found) and not above else 1


def _missing(budget: Budget) -> TinyetError | None:
    """Why a budget has no model or no board; the others of its file are checked all the same."""
    from tinyet.survey.look import require_model

    try:
        load_board(budget.board)
        require_model(budget.model)
    except TinyetError as error:
        return error
    return None


def _paths(given: str) -> list[str]:
    from tinyet.survey.folder import models_below

    place = Path(given)
    # A generated project is a folder, too: `look` says what to do with it.
    if place.is_dir() and not is_project(place):
        return [str(path) for path in models_below(place)]
    return [given]


def _show(one: Check) -> None:
    found = one.analysis
    if found is None:
        return
    count = sum(one.operators.values())
    ui.facts(
        f"{one.path} on {one.board}: {one.verdict}",
        [
            *(("input", text) for text in found.inputs),
            *(("output", text) for text in found.outputs),
            ("computed in", _INTEGERS[one.integers]),
            ("layers", f"{count}: " + ", ".join(f"{n} {op}" for op, n in one.operators.items())),
            ("MACs per inference", ui.number(found.macs)),
            ("weights and tables", ui.size(found.constant_bytes)),
            ("arena", ui.size(found.arena_bytes)),
            ("flash, at most", ui.size(found.flash.at_most)),
            ("time, estimated", "–" if found.milliseconds is None else f"{found.milliseconds:.1f} ms"),
        ],
    )
    if one.floats:
        ui.table([("in float32", "text")], [(line,) for line in one.floats])
    ui.notes(one.notes)


def _table(found: list[Check]) -> None:
    ui.table(
        [
            ("model", "text"),
            ("board", "name"),
            ("", "name"),
            ("MACs", "number"),
            ("weights", "number"),
            ("arena", "number"),
            ("flash", "number"),
            ("est. ms", "number"),
            ("in float", "number"),
        ],
        [
            (
                one.path,
                one.board,
                one.verdict,
                *(
                    ("–",) * 6
                    if one.analysis is None
                    else (
                        one.analysis.macs,
                        one.analysis.constant_bytes,
                        one.analysis.arena_bytes,
                        one.analysis.flash.at_most,
                        "–" if one.analysis.milliseconds is None else f"{one.analysis.milliseconds:.1f}",
                        len(one.floats) or "–",
                    )
                ),
            )
            for one in found
        ],
    )
