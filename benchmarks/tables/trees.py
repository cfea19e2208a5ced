# SPDX-License-Identifier: Apache-2.0
"""Tables of classical models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.tables.form import result, table


def trees_agreement() -> str:
    """By estimator: over all data sets, accuracies, equal answers, the data set with the fewest, bytes."""
    rows = result("trees_agreement")
    lines = []
    for title in dict.fromkeys(row["estimator"] for row in rows):
        own = [row for row in rows if row["estimator"] == title]
        samples, same = sum(r["samples"] for r in own), sum(r["same"] for r in own)
        worst = min(own, key=lambda r: r["same"] / r["samples"])
        where = (
            ""
            if worst["same"] == worst["samples"]
            else f"{worst['data']}: {worst['same']} of {worst['samples']}"
        )
        means = [sum(r[k] for r in own) / len(own) for k in ("accuracy_sklearn", "accuracy")]
        lines.append(
            (
                title,
                *(f"{100 * mean:.2f} %" for mean in means),
                f"{same:,} of {samples:,}",
                where,
                f"{min(map(flash, own)):,} … {max(map(flash, own)):,}",
                fixed(own, samples),
                instructions(own, "instructions_int16"),
            )
        )
    heads = ("estimator", "scikit-learn", "program", "equal answers", "fewest", "bytes")
    return table((*heads, "equal with int16 leaves", "their instructions"), 1, lines)


def flash(row: dict[str, Any]) -> int:
    """Trees, weights and parameters, and their code as far as it is stated."""
    return int(row["bytes"]) + int(row["code"])


def instructions(rows: Sequence[dict[str, Any]], key: str) -> str:
    """The range of those that are stated."""
    found = [row[key] for row in rows if row.get(key) is not None]
    return f"{min(found):,} … {max(found):,}" if found else ""


def fixed(rows: Sequence[dict[str, Any]], samples: int) -> str:
    found = [row["same_int16"] for row in rows if "same_int16" in row]
    return f"{sum(found):,} of {samples:,}" if found else ""


BOARDS = {"microbit": "M0", "mps2_an386": "M4", "riscv32_virt": "RV32IMAC", "atmega1284p": "AVR"}


def against_emlearn() -> str:
    """Forests by both, on both boards."""
    lines = [
        (
            row["forest"], row["features"], row["way"], BOARDS[row["board"]], f"{row['same']} of {row['rows']}",
            f"{row['instructions']:,}", f"{row['flash']:,}",
        )
        for row in result("against_emlearn")
    ]  # fmt: skip
    heads = ("forest", "features", "by", "core", "equal to scikit-learn's", "instructions", "bytes")
    return table(heads, 4, lines)


def trees_programs() -> str:
    """By program and board; the AVR's simulator counts cycles."""
    lines = [
        (
            row["program"], BOARDS[row["board"]], f"{row['own']:.1%}", f"{row['accuracy']:.1%}",
            "exact" if row["exact"] else "**differs**",
            f"{row['instructions']:,}" if "instructions" in row else f"{row['cycles']:,} cycles",
            f"{row['ram']:,}", f"{row['flash']:,}",
        )
        for row in result("trees_programs")
    ]  # fmt: skip
    heads = ("program", "core", "in Python", "program's accuracy", "bits", "instructions", "RAM", "flash")
    return table(heads, 2, lines)
