# SPDX-License-Identifier: Apache-2.0
"""Tables of programs in products: several models, the caller's memory and buffers, placement, slices."""

from __future__ import annotations

from benchmarks.tables.form import NETWORKS, result, table
from benchmarks.tables.whole import OTHERS


def together() -> str:
    """Arenas of three models by themselves, and of all under each schedule."""
    found = result("together")
    apart = found["apart"]
    rows = [(f"{name}, by itself", size) for name, size in apart.items()]
    rows.append(("all three, each with its own arena", sum(apart.values())))
    rows += [(f"`{text}`".replace("|", "\\|"), size) for text, size in found["together"].items()]
    return table(("", "bytes of arena"), 1, rows)


def buffers() -> str:
    """Arenas with inputs and outputs in them, and with the caller."""
    names = {**NETWORKS, "mobilenet_v1": "MobileNetV1 0.25, 96x96x3", "autoencoder": "autoencoder"}
    rows = [
        (
            names[row["name"]],
            row["ends"],
            *(row[f"{aim}, {w}"] for aim in ("balanced", "size") for w in ("arena", "caller")),
        )
        for row in result("buffers")["arenas"]
    ]
    heads = (
        "on M4",
        "inputs and outputs",
        "arena",
        "`--buffers caller`",
        "`size`: arena",
        "`--buffers caller`",
    )
    return table(heads, 1, rows)


def entry_points() -> str:
    """Flash and arena of three entry points by themselves, and together."""
    found = result("buffers")["entries"]
    rows = [
        (
            "three projects",
            " + ".join(f"{n:,}" for n in found["flash"]),
            sum(found["flash"]),
            sum(found["arena"]),
        ),
        ("one project", "", found["flash_together"], found["arena_together"]),
    ]
    return table(("DS-CNN with two heads", "", "flash", "arena"), 2, rows)


def placement() -> str:
    """Estimated cycles of MobileNetV2 on boards, by where arena and weights lie."""
    titles = {
        "nucleo_f446re": "STM32F446, 5 waits",
        "pico2": "RP2350, serial flash",
        "nucleo_h743zi": "STM32H743, 8 waits",
    }
    ways = {"in flash": "in flash", "copied": "copied by `weights=auto`", "placed": "`--place auto`"}
    rows = [
        (
            titles[board],
            ways[how] + (f", arena in {row['arena']}" if row["arena"] != "ram" else ""),
            *(row[key] for key in ("weights", "copied", "flash_reads", "stated_waits", "waits", "cycles")),
        )
        for board, by_how in result("placement").items()
        for how, row in by_how.items()
    ]
    heads = (
        "board",
        "weights",
        "bytes",
        "copied",
        "reads of flash",
        "stated waits",
        "est. waits",
        "est. cycles",
    )
    return table(heads, 2, rows)


def slices() -> str:
    """The longest slice of networks, as a whole and in parts, and what parts cost."""
    asked = {"": "whole layers", "100000": "`--max-step 100000`", "1ms": "`--max-step 1ms`"}
    rows = [
        (
            f"{(NETWORKS | OTHERS)[row['name']]}, {asked[row['asked']]}",
            row["slices"],
            f"{row['stated']:,} {row['unit']}",
            *(row[key] for key in ("counted", "instructions", "flash", "arena", "retained")),
        )
        for row in result("slices")
    ]
    heads = (
        "on M4",
        "slices",
        "longest, stated",
        "counted",
        "instructions of a run",
        "flash",
        "arena",
        "retained",
    )
    return table(heads, 1, rows)


def context_cost() -> str:
    """Instructions and flash of networks with static memory and with a context."""
    names = {**NETWORKS, "keywords": "keyword spotting of the examples"}
    rows = [
        (names[row["name"]], *row["instructions"], *row["flash"]) for row in result("together")["context"]
    ]
    heads = ("on M4", "instructions, static", "with a context", "flash, static", "with a context")
    return table(heads, 1, rows)
