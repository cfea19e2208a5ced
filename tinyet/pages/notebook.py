# SPDX-License-Identifier: Apache-2.0
"""Results as notebooks show them: `_repr_html_` of what tinyet returns. Text of models is text."""

from __future__ import annotations

import html
from collections.abc import Sequence

from tinyet.messages.text import printable

Cell = str | int | float | None
MOST_ROWS = 60
"""Of a table; a last row says how many more there are."""


def facts(title: str, pairs: Sequence[tuple[str, Cell]], more: str = "") -> str:
    """A heading, and names with their values; None is left out. more: HTML below it."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{_text(name)}</th><td style='text-align:left'>{_cell(value)}</td></tr>"
        for name, value in pairs
        if value is not None
    )
    return f"<div><b>{_text(title)}</b><table>{rows}</table>{more}</div>"


def table(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A table; numbers to the right."""
    head = "".join(f"<th style='text-align:left'>{_text(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_column, row))}</tr>" for row in rows[:MOST_ROWS])
    left = len(rows) - MOST_ROWS
    body += f"<tr><td colspan='{len(headings)}'>… and {left} more</td></tr>" if left > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _column(value: Cell) -> str:
    side = "left" if isinstance(value, str) else "right"
    return f"<td style='text-align:{side}'>{_cell(value)}</td>"


def _cell(value: Cell) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return _text(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _text(text: str) -> str:
    return html.escape(printable(text))
