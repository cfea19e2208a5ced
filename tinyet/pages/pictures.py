# SPDX-License-Identifier: Apache-2.0
"""Single pictures of a report as SVG, for documents and notebooks: the arena over time, and the layers as bars.

Colours have other values where a reader prefers dark pages; nothing is loaded, and text of models is text.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tinyet.messages.text import printable

_LIGHT = {
    "text": "font:11px system-ui,sans-serif;fill:#1b1f24",
    ".dim": "fill:#59636e",
    ".value": "fill:#4c8dd6",
    ".scratch": "fill:#e0a83e",
    ".stacked": "fill:#6aa84f",
    ".mark": "fill:#8e63ce",
    ".block": "stroke:#fff;stroke-width:.5",
    ".axis": "stroke:#d6dce2",
    ".bound": "stroke:#b3261e;stroke-dasharray:4 3",
}
_DARK = {
    "text": "fill:#e6edf3",
    ".dim": "fill:#9aa7b4",
    ".block": "stroke:#14181d",
    ".axis": "stroke:#38424c",
    ".bound": "stroke:#ff8a80",
}
_WIDTH = 1000
_CHARACTER = 6.8
"""About the width of a letter, in the picture's units, to see whether a name fits."""
_LINE = 12.0
"""The height of a line of text."""


def arena(analysis: Mapping[str, Any]) -> str:
    """The arena: layers to the right, bytes upwards. analysis: `to_json()` of one."""
    left, right, top, bottom, height = 70, 10, 26, 26, 420
    layers, size = len(analysis["layers"]), max(analysis["arena_bytes"], 1)
    step = (_WIDTH - left - right) / (layers + 2)

    def x(layer: float) -> float:
        return left + (layer + 1) * step

    def y(offset: int) -> float:
        share: float = offset / size
        return height - bottom - share * (height - top - bottom)

    parts = [
        _text(
            left,
            14,
            f"{analysis['name']} on {analysis['board']}: arena of {size:,} bytes, layers to the right",
        )
    ]
    for number in range(5):
        at = size * number // 4
        parts.append(_text(left - 6, y(at) + 4, f"{at:,}", "dim", "end"))
        parts.append(
            f'<line class="axis" x1="{left}" x2="{_WIDTH - right}" y1="{y(at):.1f}" y2="{y(at):.1f}"/>'
        )
    names: list[tuple[float, float, str]] = []
    for block in analysis["arena"]:
        wide, tall = (
            (block["last"] + 1 - block["first"]) * step,
            y(block["offset"]) - y(block["offset"] + block["bytes"]),
        )
        at, over = x(block["first"]), y(block["offset"] + block["bytes"])
        name = block["name"] or block["kind"]
        said = f"{name}: {block['bytes']:,} bytes at {block['offset']:,}, layers {block['first']} to {block['last']}"
        said += f", {block['line']}" if block["line"] else ""
        parts.append(
            f'<rect class="block {block["kind"]}" x="{at:.1f}" y="{over:.1f}" width="{max(wide, 1):.1f}" '
            f'height="{max(tall, 1):.1f}"><title>{_escaped(said)}</title></rect>'
        )
        # Values of the same bytes begin at one place: the first has its name there, the others where one points.
        if wide > _CHARACTER * len(name) + 8 and tall > 14 and not _covered(names, at + 4, over + 12, name):
            names.append((at + 4, over + 12, name))
    parts += [_text(*each) for each in names]
    bound = y(analysis["arena_lower_bound"])
    parts.append(f'<line class="bound" x1="{left}" x2="{_WIDTH - right}" y1="{bound:.1f}" y2="{bound:.1f}"/>')
    shown = range(0, layers, max(1, layers // 16))
    parts += [_text(x(layer) + step / 2, height - 8, str(layer), "dim", "middle") for layer in shown]
    return _drawn(height, f"the arena of {analysis['name']}, {size} bytes", parts)


def layers(analysis: Mapping[str, Any]) -> str:
    """The layers as bars of estimated cycles, or of instructions on a core without a model of its cycles."""
    unit = analysis["time"]
    rows, row = analysis["layers"], 20
    most = max((layer[unit] or 0 for layer in rows), default=0) or 1
    what = "estimated cycles" if unit == "cycles" else "instructions stated"
    parts = [_text(10, 14, f"{analysis['name']} on {analysis['board']}: {what} of each layer")]
    for number, layer in enumerate(rows):
        at = 26 + row * number
        count = "not stated" if layer[unit] is None else f"{layer[unit]:,}"
        said = f"{layer['name']}, {layer['kernel']}: {count}"
        wide = (layer[unit] or 0) / most * 420
        parts.append(_text(10, at + 13, _cut(f"{layer['index']}  {layer['name']}", 42)))
        parts.append(_text(290, at + 13, _cut(layer["op"], 24), "dim"))
        parts.append(
            f'<rect class="value" x="450" y="{at}" width="{max(wide, 0.5):.1f}" height="{row - 4}">'
            f"<title>{_escaped(said)}</title></rect>"
        )
        parts.append(_text(456 + wide, at + 13, count, "dim"))
    return _drawn(30 + row * len(rows), f"the layers of {analysis['name']}", parts)


PICTURES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {"arena": arena, "layers": layers}
"""The pictures by the names that `--svg` takes."""


def _drawn(height: int, title: str, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tinyet" viewBox="0 0 {_WIDTH} {height}" role="img"'
    )
    style = f"{_rules(_LIGHT)}@media(prefers-color-scheme:dark){{{_rules(_DARK)}}}"
    return "\n".join([f'{head} aria-label="{_escaped(title)}"><style>{style}</style>', *parts, "</svg>", ""])


def _rules(colours: Mapping[str, str]) -> str:
    """For this picture alone, also within a page that has others."""
    return "".join(f"svg.tinyet {what}{{{how}}}" for what, how in colours.items())


def _covered(names: Sequence[tuple[float, float, str]], x: float, y: float, name: str) -> bool:
    """Whether a name would be printed over another."""
    return any(
        abs(y - other_y) < _LINE
        and x < other_x + _CHARACTER * len(other)
        and other_x < x + _CHARACTER * len(name)
        for other_x, other_y, other in names
    )


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    more = (f' class="{kind}"' if kind else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{_escaped(text)}</text>'


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _escaped(text: str) -> str:
    return html.escape(printable(text))
