# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML file."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tinyet import assets
from tinyet.messages.text import printable

_PARTS = {"style": "page.css", "library": "d3.v7.min.js", "script": "page.js"}


def page_of(
    title: str,
    *,
    analysis: Mapping[str, object] | None = None,
    validation: Mapping[str, object] | None = None,
    comparison: Mapping[str, object] | None = None,
    quantization: Mapping[str, object] | None = None,
    remarks: Sequence[str] = (),
) -> str:
    """The page of one or more reports. title: its heading. Each report: its `to_json()`. remarks: sentences below the
    heading.

    Text of models stands in the JSON alone, whose `<` are escapes there, and the script writes it as text: nothing of a
    model becomes markup. The page may load nothing, by its Content-Security-Policy."""
    record = {
        "title": printable(title),
        "remarks": [printable(remark) for remark in remarks],
        "analysis": analysis,
        "validation": validation,
        "comparison": comparison,
        "quantization": quantization,
    }
    data = json.dumps(_packed(record), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    texts = {name: _read(file) for name, file in _PARTS.items()}
    texts |= {"title": html.escape(printable(title)), "report": data}
    page = _read("page.html")
    # From the end on: what was filled in lies behind the marker that is looked for.
    for name in ("script", "library", "report", "style", "title"):
        before, marker, after = page.partition(f"@{name}@")
        assert marker, name
        page = before + texts[name].rstrip("\n") + after
    return page


def _packed(value: Any) -> Any:
    """JSON with each list of objects that have the same keys as {"columns": keys, "rows": lists of values}, as page.js
    takes it apart: of a thousand layers the keys are half."""
    if isinstance(value, Mapping):
        return {key: _packed(item) for key, item in value.items()}
    if not isinstance(value, (list, tuple)):
        return value
    items = [_packed(item) for item in value]
    keys = list(items[0]) if items and isinstance(items[0], dict) else []
    if keys and all(isinstance(item, dict) and list(item) == keys for item in items):
        return {"columns": keys, "rows": [list(item.values()) for item in items]}
    return items


def _read(name: str) -> str:
    return (assets.path("templates") / "page" / name).read_text(encoding="utf-8")
