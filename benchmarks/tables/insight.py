# SPDX-License-Identifier: Apache-2.0
"""Pages of reports, models on every board, and the comment on a pull request."""

from __future__ import annotations

from benchmarks.tables.form import result, table

_PAGES = {
    "digits": "digits, validated",
    "keyword_spotting": "keyword spotting, validated",
    "image": "image classification, validated",
    "thousand_layers": "1,000 layers",
}
_MODELS = {"gesture": "gestures", "anomaly": "anomalies", "digits": "digits", "keyword_spotting": "keywords"}


def report_pages() -> str:
    """Bytes of pages, and milliseconds in a browser."""
    rows = [
        (
            _PAGES[row["page"]],
            row["bytes"],
            *(f"{row[key]:.0f}" for key in ("drawn", "sorted", "opened", "step")),
        )
        for row in result("pages")
    ]
    heads = ("report", "bytes", "drawn, ms", "sorted, ms", "a layer opened, ms", "slowest step, ms")
    return table(heads, 1, rows)


def every_board() -> str:
    """Models on emulated boards: executed instructions, and RAM and flash in kilobytes."""
    found = result("everywhere")
    by_board: dict[tuple[str, str], list[str]] = {}
    for rows in found.values():
        for row in rows:
            said = row["verdict"] if row["instructions"] is None else _said(row)
            by_board.setdefault((row["board"], row["cpu"]), []).append(said)
    heads = ("board", "core", *(_MODELS[name] for name in found))
    return table(heads, 2, [(*board, *cells) for board, cells in by_board.items()])


def _said(row: dict[str, int]) -> str:
    kilobytes = " + ".join(
        f"{row[key] / 1024:.1f}" for key in ("ram_bytes", "flash_bytes") if row[key] is not None
    )
    return f"{row['instructions']:,}; {kilobytes} KB"


def pull_request() -> str:
    """The comment, as it is."""
    return "\n\n" + str(result("pull_request")).strip() + "\n\n"
