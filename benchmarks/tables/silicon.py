# SPDX-License-Identifier: Apache-2.0
"""Tables of estimates beside what was published, measured on chips."""

from __future__ import annotations

from typing import Any

from benchmarks.tables.form import result, table

NETWORKS = {"kws": "KWS", "ic": "IC", "vww": "VWW", "ad": "AD"}
"""MLPerf Tiny's short names: DS-CNN, ResNet8, MobileNetV1 0.25, an autoencoder."""

OURS = ("balanced", "speed")
IN_RAM = "speed, weights in RAM"
"""The variants of benchmarks/silicon.py with which published figures are compared, and the one that moves weights."""


def _estimates() -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(row["board"], row["variant"], row["network"]): row for row in result("silicon")["estimates"]}


def _ratio(entry: dict[str, Any], variant: str, network: str) -> float:
    """Published ÷ estimated: above 1 where the estimate is lower."""
    row = _estimates()[entry["estimated"], variant, network]
    return 1e6 * entry["mcycles"][network] / row["cycles"]


def silicon() -> str:
    """Every published figure, and how many times the estimate it is, by default and for `speed`."""

    def figure(entry: dict[str, Any], network: str) -> str:
        if entry["mcycles"][network] is None:
            return "–"
        ratios = " / ".join(f"{_ratio(entry, variant, network):.2f}" for variant in OURS)
        return f"{entry['mcycles'][network]:.3g}: {ratios}"

    rows = [
        (
            f"{entry['board']}, {entry['mhz']} MHz",
            entry["runtime"],
            *(figure(entry, network) for network in NETWORKS),
        )
        for entry in result("silicon")["published"]
    ]
    return table(("board", "runtime", *NETWORKS.values()), 2, rows)


def silicon_estimates() -> str:
    """The estimates in millions of cycles, and the flash's part of them."""
    found = _estimates()
    names = {
        "balanced": "default",
        "speed": "`speed`",
        "cmsis_nn": "CMSIS-NN's kernels",
        IN_RAM: "`speed`, weights in RAM",
    }

    def figure(board: str, variant: str, network: str) -> str:
        row = found.get((board, variant, network))
        if row is None:
            return "–"
        return f"{row['cycles'] / 1e6:.3g}, {row['wait_cycles'] / row['cycles'] * 100:.0f} %"

    kinds = dict.fromkeys(
        (row["board"], row["core"], row["variant"]) for row in result("silicon")["estimates"]
    )
    rows = [
        (f"`{board}`", core, names[variant], *(figure(board, variant, network) for network in NETWORKS))
        for board, core, variant in sorted(kinds)
    ]
    return table(("board", "model", "kernels", *NETWORKS.values()), 3, rows)


def silicon_beaten() -> str:
    """How many published figures are above the estimate, and those that are not; within a sentence."""
    above, surely, below = 0, 0, []
    for entry in result("silicon")["published"]:
        for network, name in NETWORKS.items():
            if entry["mcycles"][network] is None:
                continue
            best = max(_ratio(entry, variant, network) for variant in OURS)
            above += best > 1
            surely += any(
                1e6 * entry["mcycles"][network]
                > _estimates()[entry["estimated"], variant, network]["cycles_at_most"]
                for variant in OURS
            )
            if best <= 1:
                placed = (entry["estimated"], IN_RAM, network) in _estimates()
                more = f"; {_ratio(entry, IN_RAM, network):.2f} with its weights in RAM" if placed else ""
                below.append(f"{name} by {entry['runtime']} on {entry['board']} ({best:.2f}{more})")
    return (
        f"{above} of {above + len(below)} are above the lower of both estimates, {surely} even with all that its "
        f"model leaves open at its most. Not above it: {'; '.join(below)}"
    )


def silicon_left_open() -> str:
    """How far the estimates move with all that a core's source leaves open, over networks and kernels; within a
    sentence."""
    moved: dict[str, list[float]] = {}
    for row in result("silicon")["estimates"]:
        ends = (row[f"cycles_at_{end}"] / row["cycles"] - 1 for end in ("least", "most"))
        moved.setdefault(row["core"].removeprefix("Cortex-"), []).extend(ends)
    said = (
        f"{core} {100 * min(ends):+.0f} to {100 * max(ends):+.0f} %" if any(ends) else f"{core} nothing"
        for core, ends in moved.items()
    )
    return ", ".join(said)


def silicon_cmsis_nn() -> str:
    """Published ÷ estimated where both are CMSIS-NN's kernels; within a sentence."""
    rows = []
    for entry in result("silicon")["published"]:
        if "CMSIS-NN" in entry["runtime"]:
            ratios = ", ".join(
                f"{_ratio(entry, 'cmsis_nn', network):.2f} for {name}" for network, name in NETWORKS.items()
            )
            rows.append(f"{entry['runtime']} on {entry['board']}: {ratios}")
    return "; ".join(rows)
