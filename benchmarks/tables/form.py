# SPDX-License-Identifier: Apache-2.0
"""Results of benchmarks, and the Markdown of tables of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent.parent / "results"

NETWORKS = {"ds_cnn": "DS-CNN", "resnet8": "ResNet8"}
"""What documents call the networks of benchmarks."""


@cache
def result(name: str) -> Any:
    """The figures of a result."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["figures"]


def table(heads: Sequence[str], right: int, rows: Iterable[Sequence[object]]) -> str:
    """In Markdown, between empty lines. right: from this column on, numbers, which stand at the right."""
    lines = [f"| {' | '.join(heads)} |".replace("|  |", "| |")]
    lines.append("|" + "".join("---|" if i < right else "--:|" for i in range(len(heads))))
    lines += [f"| {' | '.join(map(cell, row))} |".replace("|  |", "| |") for row in rows]
    return "\n" + "\n".join(lines) + "\n"


def cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
