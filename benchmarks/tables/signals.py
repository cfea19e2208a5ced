# SPDX-License-Identifier: Apache-2.0
"""Tables of signals in front of networks."""

from __future__ import annotations

from benchmarks.tables.form import result, table


def keywords_from_samples() -> str:
    """The keyword example's front end and network: in two parts, in one program, as a listener."""
    rows = [
        (
            row["way"],
            f"{row['accuracy'] * 100:.2f} %",
            row["instructions"],
            row["front"],
            row["ram"],
            row["flash"],
        )
        for row in result("signals")["keywords"]
    ]
    heads = ("", "accuracy", "instructions", "of these the front end's", "bytes of RAM", "bytes of flash")
    return table(heads, 1, rows)


def fronts() -> str:
    """A log-mel front end alone, in both arithmetics, by core."""
    rows = [
        (row["core"], row["arithmetic"], row["instructions"], row["ram"], row["flash"], row["error"])
        for row in result("signals")["fronts"]
    ]
    heads = ("core", "arithmetic", "instructions a second", "bytes of RAM", "bytes of flash", "error")
    return table(heads, 2, rows)


def products_from_samples() -> str:
    """Gestures, a motor, a heart: each one program from the samples on."""
    rows = [
        (
            row["product"],
            f"{row['measure']} {row['float']:.4f}",
            f"{row['program']:.4f}",
            row["instructions"],
            row["ram"],
            row["flash"],
        )
        for row in result("from_samples")["products"]
    ]
    heads = ("", "in float", "program", "instructions a second", "bytes of RAM", "bytes of flash")
    return table(heads, 1, rows)


def transforms() -> str:
    """Fourier transforms of real values by size."""
    rows = [
        (row["size"], row["instructions"], f"{row['error_db']:.0f} dB")
        for row in result("signals")["transforms"]
    ]
    return table(("real values", "instructions", "error"), 0, rows)


def transforms_beside() -> str:
    """Fourier transforms by size, in both arithmetics, beside CMSIS-DSP's: instructions, and the error."""
    found = result("cmsis_dsp")["transforms"]
    ways = list(dict.fromkeys(row["way"] for row in found))
    sizes = list(dict.fromkeys(row["size"] for row in found))
    at = {(row["size"], row["way"]): f"{row['instructions']:,}, {row['error_db']:.0f} dB" for row in found}
    rows = [(size, *(at[size, way] for way in ways)) for size in sizes]
    return table(("real values", *ways), 0, rows)
