# SPDX-License-Identifier: Apache-2.0
"""Tables of classical models."""

from __future__ import annotations

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
                f"{min(r['bytes'] for r in own):,} … {max(r['bytes'] for r in own):,}",
            )
        )
    heads = ("estimator", "scikit-learn", "program", "equal answers", "fewest", "bytes of constants")
    return table(heads, 1, lines)


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
