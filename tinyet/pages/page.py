# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML file."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tinyet import assets
from tinyet.messages.text import printable

MOST_CHARACTERS = 12
"""Of a text that stands where it is used: longer ones, such as names of kernels, come again and again."""
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
    data = json.dumps(packed(record), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    texts = {name: _read(file) for name, file in _PARTS.items()}
    texts |= {"title": html.escape(printable(title)), "report": data}
    page = _read("page.html")
    # From the end on: what was filled in lies behind the marker that is looked for.
    for name in ("script", "library", "report", "style", "title"):
        before, marker, after = page.partition(f"@{name}@")
        assert marker, name
        page = before + texts[name].rstrip("\n") + after
    return page


def packed(value: Any) -> dict[str, Any]:
    """JSON as {"keys", "texts", "report"}, as page.js takes it apart. In the report each list of objects that have the
    same keys is {"columns": the place of these in `keys`, "rows": lists of values}, and a text of MOST_CHARACTERS or
    more is {"t": its place in `texts`}. Of a thousand layers this is half."""
    keys: dict[tuple[str, ...], int] = {}
    texts: dict[str, int] = {}

    def of(value: Any) -> Any:
        if isinstance(value, str) and len(value) >= MOST_CHARACTERS:
            return {"t": texts.setdefault(value, len(texts))}
        if isinstance(value, Mapping):
            return {key: of(item) for key, item in value.items()}
        if not isinstance(value, (list, tuple)):
            return value
        items = [of(item) for item in value]
        objects = bool(value) and all(isinstance(item, Mapping) for item in value)
        if objects and all(list(item) == list(items[0]) for item in items):
            columns = keys.setdefault(tuple(items[0]), len(keys))
            return {"columns": columns, "rows": [list(item.values()) for item in items]}
        return items

    report = of(value)
    return {"keys": [list(each) for each in keys], "texts": list(texts), "report": report}


def unpacked(found: Mapping[str, Any]) -> Any:
    """What `packed` was given, tuples as lists."""
    keys, texts = found["keys"], found["texts"]

    def of(value: Any) -> Any:
        if isinstance(value, list):
            return [of(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"t"} and isinstance(value["t"], int):
            return texts[value["t"]]
        if value.keys() == {"columns", "rows"}:
            return [dict(zip(keys[value["columns"]], map(of, row), strict=True)) for row in value["rows"]]
        return {key: of(item) for key, item in value.items()}

    return of(found["report"])


def _read(name: str) -> str:
    return (assets.path("templates") / "page" / name).read_text(encoding="utf-8")
