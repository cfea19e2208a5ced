# SPDX-License-Identifier: Apache-2.0
"""Tables of what quantization does to answers, and of recurrent layers, what they cost."""

from __future__ import annotations

from benchmarks.tables.form import NETWORKS, result, table

# ---------------------------------------------------------------- answers


def quality() -> str:
    """What quantization does to answers, what the alarm says, and whether what it says to do helps."""
    heads = (
        "network",
        "alarm",
        "the report says",
        "figure",
        "float",
        "plain",
        "default",
        "after",
        "compile, s",
        "report, s",
    )
    rows = []
    for row in result("quality"):
        scores = [row[name] for name in ("float_score", "plain", "default", "after")]
        rows.append(
            (
                row["network"],
                "**rings**" if row["rings"] else "silent",
                f"`{row['advice']}`" if row["advice"] else "",
                row["figure"],
                *("" if score is None else f"{100 * score:.1f} %" for score in scores),
                row["compile_seconds"],
                "" if row["report_seconds"] is None else row["report_seconds"],
            )
        )
    return table(heads, 4, rows)


# ---------------------------------------------------------------- ways to quantize


def file_quantization() -> str:
    """The PyTorch module and float files of it: accuracy, answers in common, and instructions."""
    rows = [
        (
            NETWORKS[row["network"]],
            row["way"],
            f"{row['accuracy_float'] * 100:.2f} %",
            f"{row['accuracy'] * 100:.2f} %",
            f"{row['same_answers']:,} of {row['samples']:,}",
            row["instructions"],
        )
        for row in result("file_quantization")
    ]
    return table(("network", "from", "float", "int8", "same answers", "instructions"), 2, rows)


def quantization_ds_cnn() -> str:
    """What each way to quantize DS-CNN keeps and costs."""
    return _quantized("ds_cnn")


def quantization_resnet8() -> str:
    return _quantized("resnet8")


SAID = {
    "int8": "int8 (`histogram`)",
    "16x8": "int16",
    "int4 weights": "int4",
    "ternary weights": "ternary",
    "hybrid: int4, ends int8, corrected": "int4, first and last layer int8, biases corrected",
}
"""What the page calls some ways of benchmarks/quantization.py."""


def _quantized(network: str) -> str:
    rows = [
        (
            SAID.get(row["name"], row["name"]),
            f"{row['accuracy'] * 100:.2f} %",
            "0" if row["mse"] < 1e-12 else f"{row['mse']:.1e}",
            row["flash_bytes"],
            row["arena_bytes"],
            "" if row["seconds"] is None else f"{row['seconds']:.0f}",
        )
        for row in result("quantization")[network]
    ]
    return table(("", "accuracy", "MSE", "flash", "arena", "seconds"), 1, rows)


# ---------------------------------------------------------------- recurrent layers, and other small networks

FORMS = {"whole": "", "unrolled": ", unrolled", "int16": ", int16", "tflm": ", TFLM's arithmetic"}
"""What documents call the forms of benchmarks/recurrent.py."""


def recurrent() -> str:
    """What classifiers with a recurrent layer cost, whole, unrolled, in int16 and in TFLM's arithmetic."""
    rows = [
        (
            row["network"] + FORMS[row["form"]],
            row["steps"],
            row["calls"],
            row["instructions"],
            f"{row['instructions'] / row['macs']:.1f}",
            row["flash_bytes"],
            row["ram_bytes"],
            *(f"{row[key]:.1f}" for key in ("compile_s", "plan_s", "sqnr_db")),
        )
        for row in sorted(result("recurrent"), key=lambda row: (row["network"], row["steps"]))
    ]
    heads = (
        *("network", "steps", "calls", "instructions", "a MAC"),
        *("flash", "RAM", "compile, s", "plan, s", "dB"),
    )
    return table(heads, 1, rows)


def unrolled() -> str:
    """How many times the flash and the RAM of whole layers unrolled ones take; within a sentence."""
    found = {(row["network"], row["steps"], row["form"]): row for row in result("recurrent")}
    pairs = [
        (row, found[network, steps, "whole"])
        for (network, steps, form), row in found.items()
        if form == "unrolled"
    ]

    def times(key: str) -> str:
        ratios = [apart[key] / whole[key] for apart, whole in pairs]
        return f"{min(ratios):.0f} to {max(ratios):.0f} times"

    return f"{times('flash_bytes')} the flash and {times('ram_bytes')} the RAM"


RECURRENT = (
    "GRU",
    "GRU both ways, without biases",
    "LSTM",
    "LSTM of two layers, both ways",
    "LSTM with a projection, from a state to a state",
    "RNN of two layers",
    "a cell of ReLU",
)


def recurrent_quality() -> str:
    """SQNR of small recurrent networks beside plain PT2E's."""
    found = {row["name"]: row for row in result("networks")}
    rows = [(name, found[name]["ours_db"], found[name]["plain_db"]) for name in RECURRENT]
    return table(("network", "tinyet, dB", "plain PT2E, dB"), 1, rows)


def networks_compared() -> str:
    """How the suite's networks lie to plain PT2E; within a sentence."""
    differences = [row["ours_db"] - row["plain_db"] for row in result("networks")]
    better, worse = (sum(sign * each > 1.0 for each in differences) for sign in (1, -1))
    return (
        f"{len(differences)} networks, {len(differences) - better - worse} are within 1 dB of plain PT2E, {better} "
        f"better by more and {worse} worse by more; the mean difference is "
        f"{sum(differences) / len(differences):+.1f} dB"
    )
