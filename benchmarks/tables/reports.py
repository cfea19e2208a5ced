# SPDX-License-Identifier: Apache-2.0
"""Tables of docs/reports.md: pages in a browser, models on every emulated board, and a comment on a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.tables.form import result, table

PAGES = {
    "digits": "digits",
    "keyword_spotting": "keyword spotting",
    "mobilenet_v2": "MobileNetV2, 96 × 96",
    "thousand_layers": "1,000 layers",
}


def pages() -> str:
    """Sizes of pages, and what a browser takes for them."""
    rows = [
        (PAGES[row["page"]], row["bytes"], *(f"{row[k]:,.0f}" for k in ("drawn", "sorted", "opened", "step")))
        for row in result("pages")
    ]
    heads = ("report of", "bytes", "drawn, ms", "layers sorted", "a layer opened", "slowest step")
    return table(heads, 1, rows)


def everywhere() -> str:
    """Each board, with what every model takes there."""
    found = result("everywhere")
    boards = {row["board"]: row["cpu"] for rows in found.values() for row in rows}
    taken = {(model, row["board"]): _taken(row) for model, rows in found.items() for row in rows}
    rows = [(f"`{board}`", cpu, *(taken[model, board] for model in found)) for board, cpu in boards.items()]
    return table(("board", "core", *(name.replace("_", " ") for name in found)), 2, rows)


def _taken(row: Mapping[str, Any]) -> str:
    if row["instructions"] is None:
        return str(row["verdict"])
    time = row["milliseconds"]
    said = "" if time is None else f", {time:.1f} ms"
    return f"{row['instructions']:,}{said}; {row['ram_bytes']:,} + {row['flash_bytes']:,}"


def pull_request() -> str:
    """The comment, as a quotation."""
    return "\n" + "".join(f"> {line}".rstrip() + "\n" for line in result("pull_request").splitlines())
