# SPDX-License-Identifier: Apache-2.0
"""Writes what benchmarks have measured into the documents, from `benchmarks/results/`.

    python scripts/figures.py            # write
    python scripts/figures.py --check    # exit status 1 where a page is not what the results give

A page says where a figure belongs: `<!-- figures: NAME -->`, and `<!-- end -->` behind it, around a table or within a
sentence. NAME is a function of FIGURES below, which gives the text. To measure anew, run the command that the result's
file has, then this.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
MARKED = re.compile(r"(<!-- figures: (\w+) -->)(.*?)(<!-- end -->)", re.DOTALL)

NETWORKS = {"ds_cnn": "DS-CNN", "resnet8": "ResNet8"}
"""What documents call the networks of benchmarks."""

EVALUATED = {
    "mobilenet_v2_224": "MobileNetV2 1.0, 224×224",
    "mobilenet_v2_96": "MobileNetV2 1.0, 96×96",
    "resnet8": "ResNet8, 32×32",
}
"""Those of benchmarks/evaluation.py."""


@cache
def result(name: str) -> Any:
    """The figures of a result."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["figures"]


def table(heads: Sequence[str], right: int, rows: Iterable[Sequence[object]]) -> str:
    """In Markdown, between empty lines. right: from this column on, numbers, which stand at the right."""
    lines = [f"| {' | '.join(heads)} |".replace("|  |", "| |")]
    lines.append("|" + "".join("---|" if i < right else "--:|" for i in range(len(heads))))
    lines += [f"| {' | '.join(map(_cell, row))} |".replace("|  |", "| |") for row in rows]
    return "\n" + "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


# ---------------------------------------------------------------- DS-CNN and ResNet8


def networks_measured() -> str:
    """The README's table: what runs on the board, how right, and what it takes."""
    found = {row["network"]: row for row in result("mlperf_tiny")}
    ways = {(row["network"], row["way"]): row for row in result("memory")}
    names = ("ds_cnn", "resnet8")
    rows = [found[name] for name in names]
    by_rows = [ways[name, "rows, overlap"] for name in names]
    costs = [
        by_row["instructions"] / ways[name, "whole layers"]["instructions"] - 1
        for name, by_row in zip(names, by_rows, strict=True)
    ]
    more = " and ".join(f"{cost * 100:.0f}" for cost in costs)
    lines = [
        (
            "samples run on the board, bit-exact",
            *(f"{row['samples'] - row['mismatches']} of {row['samples']}" for row in rows),
        ),
        (
            "accuracy, float model / int8 on the board",
            *(
                f"{row['accuracy_float'] * 100:.2f} % / {row['accuracy'] * 100:.2f} %, "
                f"of {row['counted']} samples not used for calibration"
                for row in rows
            ),
        ),
        ("instructions per inference", *(row["instructions"] for row in rows)),
        (
            "for comparison: TFLM with CMSIS-NN, its strongest bit-exact build",
            *(row["tflm"]["instructions"] for row in rows),
        ),
        (
            f"arena; with layers [by rows](docs/memory.md) where RAM is short, for {more} % more instructions",
            *(
                f"{row['arena_bytes']:,} bytes; {by_row['arena']:,}"
                for row, by_row in zip(rows, by_rows, strict=True)
            ),
        ),
        ("static RAM / stack", *(f"{row['ram_bytes']:,} / {row['stack_bytes']:,} bytes" for row in rows)),
        ("flash, code and weights", *(f"{row['flash_bytes']:,} bytes" for row in rows)),
    ]
    return table(("", "DS-CNN (keywords)", "ResNet8 (images)"), 3, lines)


CORES = {"mps2_an386": "Cortex-M4", "mps3_an547": "Cortex-M55"}


def delegate_cmsis_nn() -> str:
    """Instructions with CMSIS-NN, TFLM's with the same library in brackets."""
    found = {(row["network"], row["board"]): row for row in result("cmsis_nn")}
    rows = [
        (
            CORES[board] + (", Helium" if board == "mps3_an547" else ""),
            *(
                f"{row['instructions']:,} ({row['tflm']['instructions']:,})"
                for row in (found[name, board] for name in ("ds_cnn", "resnet8"))
            ),
        )
        for board in CORES
    ]
    return table(("instructions per inference", "DS-CNN", "ResNet8"), 3, rows)


def delegate_cmsis_nn_arenas() -> str:
    """The same with arenas."""
    rows = [
        (
            NETWORKS[row["network"]],
            CORES[row["board"]],
            row["instructions"],
            row["arena_bytes"],
            row["tflm"]["instructions"],
            row["tflm"]["arena_bytes"],
        )
        for row in result("cmsis_nn")
    ]
    heads = ("model", "core", "tinyet with cmsis_nn", "arena", "TFLM with CMSIS-NN", "arena")
    return table(heads, 2, rows)


def delegate_cmsis_nn_helium() -> str:
    """Instructions of DS-CNN and ResNet8 on the M55; within a sentence."""
    counts = [row["instructions"] for row in result("cmsis_nn") if row["board"] == "mps3_an547"]
    return " and ".join(f"{count:,}" for count in counts)


def pruning() -> str:
    """The same pruned network with its channels, and without."""
    columns = ("macs", "weight_bytes", "flash_bytes", "arena_bytes", "instructions")
    rows = [(row["channels"], *(row[column] for column in columns)) for row in result("pruning")]
    return table(("channels", "MACs", "weight bytes", "flash", "arena", "instructions"), 1, rows)


def against_cmsis_nn() -> str:
    """How many times as many instructions DS-CNN takes with CMSIS-NN's kernels; within a sentence."""
    *layers, whole = result("against_cmsis_nn")["ds_cnn"]
    first, *others = [row for row in layers if row["op"] == "conv2d"]
    depthwise = [row for row in others if "depthwise" in row["kernel"]]
    pointwise = [row for row in others if row not in depthwise]

    def ratio(*rows: dict[str, Any]) -> str:
        return f"{sum(row['other'] for row in rows) / sum(row['instructions'] for row in rows):.2f}"

    return (
        f"{ratio(whole)} times as many instructions on mps2_an386: the first layer {ratio(first)}, "
        f"depthwise ones {ratio(*depthwise)}, pointwise ones {ratio(*pointwise)}"
    )


# ---------------------------------------------------------------- single layers


ELEMENTWISE = (
    "a + b, of one shape",
    "a + b, b of each channel",
    "a + b, b of each pixel",
    "a * b, of one shape",
    "a * b, b of each channel (squeeze and excite)",
    "a * b, b of each pixel",
    "maximum, minimum",
    "clamp in one scale, maximum with a scalar",
    "requantization; sum and product with a scalar (portable: a table of 256 bytes besides)",
    "a lone batch norm",
    "bilinear, twice as large",
    "bilinear, twice as large, aligned corners",
    "mean of an image",
    "softmax of rows of 32",
)
"""What documents call the nodes of benchmarks/kernels.py elementwise, in its order."""


def elementwise() -> str:
    """Instructions a value, by the kernels for DSP and by the portable ones."""
    rows = [
        (
            label,
            f"`{row['kernel']}`",
            f"{row['instructions'] / row['times']:.1f}",
            f"{row['portable'] / row['times']:.1f}",
        )
        for label, row in zip(ELEMENTWISE, result("elementwise")["elementwise"], strict=True)
    ]
    return table(("operator", "kernel", "now", "portable"), 2, rows)


def widths() -> str:
    """int16 activations and int4 weights beside int8: instructions a product, and how many times int8's."""
    rows = []
    for name, found in result("widths")["weights as they are"].items():
        (_, base), *others = found
        label = (
            re.sub(r"(?<=\d)x(?=\d)", "×", name).replace("->", "→").replace("linear ", "fully connected, ")
        )
        cells = [cell for _, count in others for cell in (f"{count:.2f}", f"{count / base:.2f}")]
        rows.append((label, f"{base:.2f}", *cells))
    return table(("layer", "int8", "int16 activations", "", "int4 weights", ""), 1, rows)


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


# ---------------------------------------------------------------- sizes


def footprint() -> str:
    """Bytes that are said before a build and found by the linker, which are the same."""
    columns = ("network", "board", "constants", "parameters", "arena", "state", "folded", "code")
    rows = [[row[column] for column in columns] for row in result("footprint")]
    return table((*columns[:-1], "code and harness"), 2, rows)


# ---------------------------------------------------------------- this machine


def evaluation() -> str:
    """Milliseconds of a sample, in torch, in numpy and as compiled C, and the seconds before the first."""
    rows = [
        (
            EVALUATED[row["network"]],
            f"{row['torch_ms']:.2f} ms",
            *(f"{row[way]:.2f} ms, {row[way] / row['torch_ms']:.1f}" for way in ("numpy_ms", "native_ms")),
            f"{row['prepare_s'] + row['compile_s']:.1f} s, {row['prepare_s']:.1f}",
        )
        for row in result("evaluation")["networks"]
    ]
    heads = (
        "a sample, on one thread",
        "float model in torch",
        "host reference, times torch",
        "compiled C, times torch",
        "to compile, from the cache",
    )
    return table(heads, 1, rows)


def evaluation_machine() -> str:
    """The processor and the compiler; within a sentence."""
    machine = result("evaluation")["machine"]
    return f"{machine['processor']}, {machine['gcc']}, numpy {machine['numpy']}"


def evaluation_all() -> str:
    """Many samples of ResNet8, by numpy and as compiled C; within a sentence."""
    (row,) = [row for row in result("evaluation")["networks"] if row["network"] == "resnet8"]
    return (
        f"{row['samples']:,} images of ResNet8 take {row['all_native_s']:.0f} s, {row['judged']} of them judged; "
        f"{row['all_numpy_s']:.0f} s by numpy"
    )


# ---------------------------------------------------------------- ways to quantize


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


# ---------------------------------------------------------------- networks of benchmarks/nets.py

OTHERS = {
    "mobilenet_v1": "MobileNetV1 0.25, 96×96×3",
    "mobilenet_v2": "MobileNetV2 0.35, 96×96×3",
    "mobilenet_v2_144": "MobileNetV2 0.35, 144×144×3",
    "autoencoder": "fully connected, 640 → 8 → 640",
    "densely_connected": "densely connected, 32×32×3",
    "unet": "U-Net of two levels, 32×32×1",
    "unet_64": "the same, 64×64×1",
    "inception": "Inception, two modules, 32×32×3",
}


def memory() -> str:
    """Arena, instructions and flash, from whole layers to the input by rows."""
    whole: dict[str, int] = {}
    rows = []
    for row in result("memory"):
        name = row["network"]
        first = name not in whole
        whole.setdefault(name, row["instructions"])
        target = "" if row["target"] is None else f" ({row['target']:,})"
        rows.append(
            (
                (NETWORKS | OTHERS)[name] if first else "",
                row["way"],
                f"{row['arena']:,}{target}",
                row["bound"],
                row["by_rows"] or "",
                f"{row['added_macs'] / row['macs'] * 100:.1f} %" if row["by_rows"] else "",
                row["instructions"],
                "" if first else f"{(row['instructions'] / whole[name] - 1) * 100:+.1f} %",
                row["stack"],
                row["flash"],
            )
        )
    heads = (
        "network",
        "",
        "arena",
        "bound",
        "layers by rows",
        "MACs added",
        "instructions",
        "",
        "stack",
        "flash",
    )
    return table(heads, 2, rows)


def objectives() -> str:
    """Instructions, flash and arena by what is optimized; equal rows of one network as one."""
    found: dict[tuple[Any, ...], list[str]] = {}
    for row in result("optimize"):
        figures = tuple(row[key] for key in ("network", "instructions", "macs", "flash", "arena"))
        found.setdefault(figures, []).append(row["optimize"])
    rows, before = [], ""
    for (name, instructions, macs, flash, arena), ways in found.items():
        said = ", ".join(f"`{way}`" for way in ways)
        head = "" if name == before else OTHERS[name]
        rows.append((head, said, instructions, f"{instructions / macs:.2f}", flash, arena))
        before = name
    return table(("network", "", "instructions", "a MAC", "flash", "arena"), 2, rows)


# ---------------------------------------------------------------- the newest frames only

STREAMED = {
    "temporal": "`temporal`: causal blocks, dilations 1 to 16, 32 channels",
    "wavenet": "`wavenet`: gated, dilations 1 to 256, 16 channels",
    "spectrogram": "`spectrogram`: three 2-d convolutions, pools, mean",
    "lstm": "`lstm`: 48 units, last step",
    "gru": "`gru`: 48 units, last step",
    "keywords": "`keywords`: examples/keyword_spotting",
    "gestures": "`gestures`: examples/gesture",
}
"""Networks of benchmarks/streaming.py."""


def streaming() -> str:
    """Instructions of a run and RAM, over the whole window and of the newest frames."""
    found = {row["name"]: row for row in result("streaming")}
    rows = [
        (text, row["frames"], row["hop"], *row["instructions"], *row["ram"])
        for name, text in STREAMED.items()
        for row in (found[name],)
    ]
    heads = ("network", "frames", "a run takes", "windowed", "streaming", "RAM windowed", "streaming")
    return table(heads, 1, rows)


def streaming_compared() -> str:
    """Frames and differing answers of all networks; within a sentence."""
    rows = result("streaming")
    compared, differ = (sum(row[name] for row in rows) for name in ("compared", "differ"))
    return f"{compared:,} answers, of which {differ or 'none'} differed"


FIGURES: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (
        networks_measured,
        delegate_cmsis_nn,
        delegate_cmsis_nn_arenas,
        delegate_cmsis_nn_helium,
        pruning,
        against_cmsis_nn,
        elementwise,
        widths,
        quality,
        quantization_ds_cnn,
        quantization_resnet8,
        memory,
        objectives,
        streaming,
        streaming_compared,
        footprint,
        evaluation,
        evaluation_machine,
        evaluation_all,
    )
}


def pages() -> list[Path]:
    """The documents that hold figures."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [path for path in found if MARKED.search(path.read_text(encoding="utf-8"))]


def text(path: Path) -> str:
    """A page as it should be. Raises KeyError for a figure that FIGURES does not have."""
    return MARKED.sub(lambda m: m[1] + FIGURES[m[2]]() + m[4], path.read_text(encoding="utf-8"))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale = [path for path in pages() if path.read_text(encoding="utf-8") != text(path)]
    for path in stale:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
        if not check:
            path.write_text(text(path), encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
