# SPDX-License-Identifier: Apache-2.0
"""`tinyet compare`: two measured things beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tinyet.cli import ui
from tinyet.cli.options import HtmlFile, JsonFile, Optimize
from tinyet.comparison.compare import MOST_ROWS, Comparison, difference_said, shown
from tinyet.comparison.compare import compare as compare_sides
from tinyet.comparison.sides import FIGURES
from tinyet.errors import LimitError, bullet_list
from tinyet.pages.page import page_of

_WHAT = "a JSON report, a model as for `generate`, a .tet program, a project, or an ELF file"


def compare(
    before: Annotated[str, typer.Argument(metavar="A", help=_WHAT)],
    after: Annotated[str, typer.Argument(metavar="B", help="the same, to compare with it")],
    board: Annotated[
        str | None, typer.Option("--board", help="that models and programs are analyzed for")
    ] = None,
    optimize: Optimize = None,
    evaluation: Annotated[
        Path | None,
        typer.Option("--evaluation", metavar="NPZ", help="samples that both programs answer, and labels"),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if",
            metavar="CONDITION",
            help="exit with status 1 where it holds, as in 'instructions>+1%'; may be given several times",
        ),
    ] = None,
    markdown: Annotated[
        str | None,
        typer.Option("--markdown", metavar="FILE", help="write it for a pull request; - prints only that"),
    ] = None,
    html: HtmlFile = None,
    json: JsonFile = None,
) -> int:
    """Show what changed between two reports, programs, projects or firmwares.

    Figures of the same meaning stand beside each other, for the whole and for each layer; of programs the answers, too.
    """
    with ui.stages("reading both sides"):
        found = compare_sides(before, after, board=board, optimize=optimize, evaluation=evaluation)
    broken = found.broken(fail_if or ())
    if html is not None:
        title = f"{found.before.name} → {found.after.name}"
        page = page_of(title, comparison=found.to_json(), remarks=(*broken, *found.notes))
        ui.write_text(str(html), page)
    if json is not None:
        ui.write_json(json, found.to_json())
    if markdown is not None:
        ui.write_text(markdown, found.to_markdown(broken))
    if "-" not in (json, markdown):
        _show(found)
    if broken:
        ui.show_error(LimitError(f"a condition holds:\n{bullet_list(broken)}", f"{before} → {after}"))
        return 1
    return 0


def _show(found: Comparison) -> None:
    ui.facts("", [("A", _side_said(found, "before")), ("B", _side_said(found, "after"))])
    ui.table(
        [("figure", "text"), ("A", "number"), ("B", "number"), ("change", "number"), ("", "name")],
        [
            (
                FIGURES[c.figure],
                shown(c.figure, c.before),
                shown(c.figure, c.after),
                difference_said(c),
                "" if c.verdict == "same" else c.verdict,
            )
            for c in found.changes
        ],
    )
    rows = found.rows()
    if rows:
        ui.table(
            [
                ("that differ", "text"),
                ("in", "text"),
                ("A", "number"),
                ("B", "number"),
                ("change", "number"),
                ("kernel", "detail"),
            ],
            [
                (row.name, row.figure, row.before, row.after, row.change, row.kernel)
                for row in rows[:MOST_ROWS]
            ],
        )
        if len(rows) > MOST_ROWS:
            ui.say(f"… and {len(rows) - MOST_ROWS} more")
    if found.answers is not None:
        ui.facts("", [("answers", found.answers.said)])
    ui.notes(found.notes)


def _side_said(found: Comparison, which: str) -> str:
    side = found.before if which == "before" else found.after
    return f"{side.name}, {side.what}" + (f", {side.board}" if side.board else "")
