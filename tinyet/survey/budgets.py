# SPDX-License-Identifier: Apache-2.0
"""Budgets: models, the boards that they are for, and what they may take there, from a project's `pyproject.toml`.

[[tool.tinyet.budgets]]
model = "models/keywords.py"
board = "nucleo_f446re"
flash_bytes = "96K"
arena_bytes = "24K"
milliseconds = 12.5
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyet.errors import DataError, bullet_list
from tinyet.files.reading import read_bounded
from tinyet.survey.look import Check

FIGURES = ("macs", "constant_bytes", "arena_bytes", "flash_bytes", "stack_bytes", "cycles", "milliseconds")
"""What has a limit, as `Check.to_json` names it."""

_MOST_BYTES = 1 << 20
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20}


@dataclass(frozen=True)
class Budget:
    """model: a path, relative to the file's folder resolved. limits: figure → the most of it."""

    model: str
    board: str
    limits: Mapping[str, float]

    def broken(self, found: Check) -> tuple[str, ...]:
        """The limits that a model of `check` is above, or whose figure nobody knows, a line each; of a model that is
        refused or does not fit none, because that is an error already."""
        record = found.to_json()
        lines = []
        for name, most in self.limits.items():
            value = record[name]
            if value is None and found.analysis is not None:
                lines.append(f"{name} is not known for {found.board}, and at most {most:,g} are asked for")
            elif isinstance(value, (int, float)) and value > most:
                lines.append(f"{name}: {value:,g}, at most {most:,g}")
        return tuple(lines)


def read_budgets(path: Path) -> tuple[Budget, ...]:
    """The budgets in a TOML file. Raises DataError that lists all that is wrong with it, and for a file without any."""
    try:
        given = tomllib.loads(read_bounded(path, _MOST_BYTES).decode())
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"the budgets cannot be read: {error}", str(path)) from error
    found: Any = given
    for key in ("tool", "tinyet", "budgets"):
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, list) or not found:
        raise DataError("there are no budgets in this file", str(path), "[[tool.tinyet.budgets]] begins each")
    wrong: list[str] = []
    budgets = [_budget(one, number, path.parent, wrong) for number, one in enumerate(found, 1)]
    if wrong:
        hint = f"each has model, board, and limits of {', '.join(FIGURES)}: a number, or text as in 64K"
        raise DataError(f"budgets that are none:\n{bullet_list(wrong)}", str(path), hint)
    return tuple(budgets)


def _budget(given: object, number: int, folder: Path, wrong: list[str]) -> Budget:
    """One of them; what is wrong with it is added to the list."""
    if not isinstance(given, dict):
        wrong.append(f"budget {number} is no table")
        return Budget("", "", {})
    texts = {}
    for key in ("model", "board"):
        value = given.get(key)
        if not isinstance(value, str) or not value:
            wrong.append(f"budget {number} has no {key}")
        texts[key] = value if isinstance(value, str) else ""
    limits = {}
    for key, value in given.items():
        if key in texts:
            continue
        if key not in FIGURES:
            wrong.append(f"budget {number}: there is no figure {key}")
        elif (most := _number(value)) is None:
            wrong.append(f"budget {number}: {key} is {value!r}, no number above 0")
        else:
            limits[key] = most
    if not limits:
        wrong.append(f"budget {number} limits nothing")
    board = texts["board"]
    return Budget(
        str(folder / texts["model"]), str(folder / board) if board.endswith(".toml") else board, limits
    )


def _number(value: object) -> float | None:
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([KM]?)", value.strip(), re.ASCII)
        value = float(match[1]) * _FACTORS[match[2]] if match else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 < value < float("inf") else None
