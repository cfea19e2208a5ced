# SPDX-License-Identifier: Apache-2.0
"""Tables of whole networks: what they take on a board, in a report and on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.tables.form import NETWORKS, result, table

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


COMPARED = {**NETWORKS, "mobilenet_v1": "MobileNetV1 0.25", "mobilenet_v2": "MobileNetV2 0.35"}
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


# ---------------------------------------------------------------- sizes


def footprint() -> str:
    """Bytes that are said before a build and found by the linker, which are the same."""
    columns = ("network", "board", "constants", "parameters", "arena", "state", "folded", "code")
    rows = [[row[column] for column in columns] for row in result("footprint")]
    return table((*columns[:-1], "code and harness"), 2, rows)


# ---------------------------------------------------------------- this machine


EVALUATED = {
    "mobilenet_v2_224": "MobileNetV2 1.0, 224×224",
    "mobilenet_v2_96": "MobileNetV2 1.0, 96×96",
    "resnet8": "ResNet8, 32×32",
}
"""Those of benchmarks/evaluation.py."""


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


# ---------------------------------------------------------------- networks of benchmarks/nets.py

OTHERS = {
    "mobilenet_v1": "MobileNetV1 0.25, 96×96×3",
    "mobilenet_v2": "MobileNetV2 0.35, 96×96×3",
    "mobilenet_v2_144": "MobileNetV2 0.35, 144×144×3",
    "autoencoder": "fully connected, 640 → 8 → 640",
    "densely_connected": "densely connected, 32×32×3",
    "unet": "U-Net of two levels, 32×32×1",
    "unet_64": "U-Net of two levels, 64×64×1",
    "inception": "Inception, two modules, 32×32×3",
    "encoder_layer": "encoder layer of four heads, 128×64",
    "keyword_transformer": "Keyword Transformer, two layers of four heads, 98×40",
    "raw_audio": "raw audio, 8,000 samples",
    "ecg": "ECG, 2,000 samples",
    "accelerometer": "accelerometer, 1,000×6",
}


def memory() -> str:
    """Arena, instructions and flash, from whole layers to the input by rows; U-Nets and transformers are in results of
    their own."""
    results = (*result("memory"), *result("memory_unet"), *result("memory_heads"))
    found = {(row["network"], row["way"]): row for row in results}
    return _ways([*found.values()])


def memory_sequences() -> str:
    """The same of networks of one dimension."""
    return _ways(result("memory_sequences"))


def _ways(found: list[dict[str, Any]]) -> str:
    """Networks, each with several ways to plan its memory."""
    whole: dict[str, int] = {}
    rows = []
    for row in found:
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


def objectives_trained() -> str:
    """Instructions, stated ones, flash and arena of DS-CNN and ResNet8 by what is optimized."""
    columns = ("instructions", "stated", "flash", "arena")
    rows = [
        (NETWORKS[row["network"]], f"`{row['optimize']}`", *(row[column] for column in columns))
        for row in result("objectives_trained")
    ]
    return table(("network", "", *columns), 2, rows)


def objectives_xtensa() -> str:
    """The same on Xtensa, with instructions a product."""
    names = NETWORKS | OTHERS
    rows = [
        (
            names[row["network"]],
            f"`{row['optimize']}`",
            *(row[column] for column in ("instructions", "stated")),
            f"{row['instructions'] / row['macs']:.2f}",
            row["flash"],
            row["arena"],
        )
        for row in result("objectives_xtensa")
    ]
    return table(("network", "", "instructions", "stated", "a MAC", "flash", "arena"), 2, rows)


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


# ---------------------------------------------------------------- estimates of cycles


def cycles() -> str:
    """Estimates of both networks by the cores' tables, and how far single assumptions move them."""
    labels = {
        "refill 1": "every refill 1 cycle",
        "refill 3": "every refill 3 cycles",
        "no overlap": "no loads overlap",
    }
    return _moved_by(labels, pipelines=False)


def cycles_of_pipelines() -> str:
    """The same by the cores' pipelines."""
    labels = {
        "least": "all that is open at its least",
        "most": "all that is open at its most",
        "one in a cycle": "one instruction in a cycle",
    }
    return _moved_by(labels, pipelines=True)


def _moved_by(labels: Mapping[str, str], *, pipelines: bool) -> str:
    every = result("cycles")["assumptions"]
    found = [row for row in every if ("one in a cycle" in row["cycles"]) == pipelines]

    def moved(row: dict[str, Any], what: str) -> str:
        other = row["cycles"].get(what)
        return "–" if other is None else f"{(other / row['cycles']['table'] - 1) * 100:+.1f} %"

    heads = ("", *(f"{NETWORKS[row['network']]}, {row['core'].removeprefix('Cortex-')}" for row in found))
    rows = [
        ("estimate, cycles", *(row["cycles"]["table"] for row in found)),
        ("cycles an instruction", *(f"{row['cycles']['table'] / row['instructions']:.2f}" for row in found)),
        *((label, *(moved(row, what) for row in found)) for what, label in labels.items()),
    ]
    return table(heads, 1, rows)


def cycles_of_layers() -> str:
    """The estimate of DS-CNN on mps2_an386: the first layers, and the whole."""
    (found, *_) = result("cycles")["assumptions"]

    def cells(row: dict[str, Any]) -> tuple[object, ...]:
        a_mac = f"{row['cycles'] / row['macs']:.2f}" if row["macs"] else "–"
        milliseconds = f"{1e3 * row['cycles'] / found['clock_hz']:.3f}"
        mix = ("loads", "stores", "multiplies", "taken_branches", "wait_cycles")
        return (row["name"], row["cycles"], a_mac, milliseconds, *(row[key] for key in mix))

    rows = [*map(cells, found["layers"][:3]), ("…",), cells(found["between"]), cells(found["whole"])]
    heads = ("layer", "est. cycles", "/MAC", "est. ms", "loads", "stores", "multiplies", "branches", "waits")
    return table(heads, 1, [(*row, *[""] * (len(heads) - len(row))) for row in rows])


def cycles_of_aims() -> str:
    """What the aims of a choice of kernels come to."""

    def cells(row: dict[str, Any]) -> tuple[object, ...]:
        off = f"{(row['stated_cycles'] / row['cycles'] - 1) * 100:+.1f} %"
        counts = (row["cycles"], off, row["wait_cycles"], row["instructions"])
        return (
            row["network"],
            row["board"],
            row["optimize"],
            *counts,
            row["flash_bytes"],
            row["arena_bytes"],
        )

    heads = ("network", "board", "", "est. cycles", "stated", "waits", "instructions", "flash", "arena")
    return table(heads, 3, map(cells, result("time")))


def cycles_by_measure() -> str:
    """Plans on other cores that are compared by instructions, and by cycles: one row where both are the same."""
    return _by_measure(result("time_cores"))


def cycles_by_measure_of_pipelines() -> str:
    """The same of cores with a pipeline."""
    return _by_measure(result("time_pipelines"))


def _by_measure(compared: Sequence[Mapping[str, Any]]) -> str:
    same = ("cycles", "instructions", "flash_bytes", "arena_bytes")
    found: dict[tuple[object, ...], list[Mapping[str, Any]]] = {}
    for row in compared:
        key = (row["core"], row["network"], row["optimize"], *(row[name] for name in same))
        found.setdefault(key, []).append(row)

    def cells(rows: Sequence[Mapping[str, Any]]) -> tuple[object, ...]:
        row = min(rows, key=lambda one: one["stated_cycles"] is None)
        ends = (row[f"cycles_at_{end}"] / row["cycles"] - 1 for end in ("least", "most"))
        stated = row["stated_cycles"]
        return (
            row["core"].removeprefix("Cortex-"),
            COMPARED[row["network"]],
            f"`{row['optimize']}`",
            "either" if len(rows) > 1 else row["compared_by"],
            row["instructions"],
            row["cycles"],
            "–" if stated is None else f"{(stated / row['cycles'] - 1) * 100:+.1f} %",
            " … ".join(f"{end * 100:+.0f} %" for end in ends),
            row["flash_bytes"],
            row["arena_bytes"],
        )

    heads = (
        "core",
        "network",
        "",
        "by",
        "instructions",
        "est. cycles",
        "stated",
        "left open",
        "flash",
        "arena",
    )
    return table(heads, 4, map(cells, found.values()))


def cycles_of_flash() -> str:
    """Without and with the flash's waits; within a sentence."""
    found = result("cycles")["flash"]
    cycles, waits = found["cycles"], found["wait_cycles"]
    return (
        f"{(cycles - waits) / 1e6:.2f} M cycles without waits, {cycles / 1e6:.2f} M with them, "
        f"{found['milliseconds']} ms"
    )


# ---------------------------------------------------------------- files of TFLM and MLPerf Tiny

FILES = {
    "kws_ref_model": "MLPerf Tiny",
    "pretrainedResnet_quant": "MLPerf Tiny",
    "vww_96_int8": "MLPerf Tiny; most of its channels are constant",
    "ad01_int8": "MLPerf Tiny",
    "str_ww_ref_model": "MLPerf Tiny, streaming wakeword",
    "hello_world_int8": "",
    "micro_speech_quantized": "",
    "audio_preprocessor_int8": "a frame of 480 samples",
    "person_detect": "",
    "trained_lstm_int8": "MNIST",
    "dtln_noise_suppression": "two LSTMs, with their states",
    "micro_speech_lstm": "",
    "keyword_scrambled": "SVDF; drawn inputs saturate its layers",
    "keyword_scrambled_8bit": "states of 8 bits",
    "model_ToyCar_quant": "float activations, int8 weights",
}


def tflite() -> str:
    """Files by benchmarks/tflite.py: how they compare with TFLM's interpreter, and what they cost."""

    def equal(row: dict[str, Any]) -> str:
        if row["tflm"] == "all":
            return "bit for bit"
        if row["tflm"].startswith("does not run") and row["litert"] in ("all", "0 ulps"):
            return "not run by TFLM; LiteRT's bit for bit"
        return f"{row['tflm']}; LiteRT's: {row['litert']}"

    found = {Path(name).stem: row for name, row in result("tflite").items()}
    rows = [
        (
            f"`{name}`" + (f" ({note})" if note else ""),
            equal(found[name]),
            *(found[name][key] for key in ("instructions", "arena", "flash")),
        )
        for name, note in FILES.items()
    ]
    return table(("file", "equal to TFLM's interpreter", "instructions", "arena", "flash"), 2, rows)


# ---------------------------------------------------------------- the gallery

EXAMPLES = {
    "keyword_spotting": "keywords",
    "gesture": "gestures",
    "anomaly": "anomaly",
    "image": "images",
}


def gallery() -> str:
    """How right each example is on the board, and what it takes."""
    found = [result("gallery")[name] for name in EXAMPLES]

    def metric(row: dict[str, Any], model: str) -> str:
        (value,) = [value for name, value in row["metrics"].items() if name.endswith(f", {model}")]
        return str(value)

    def flash(row: dict[str, Any]) -> str:
        return str(row["metrics"].get("flash without the recordings", f"{row['flash_bytes']:,} bytes"))

    rows = [
        ("metric", *(next(iter(row["metrics"])).partition(",")[0] for row in found)),
        ("float", *(metric(row, "float model") for row in found)),
        ("int8 on the host", *(metric(row, "int8 on the host") for row in found)),
        ("int8 on the board", *(metric(row, "int8 on the device") for row in found)),
        ("samples on the board", *(row["samples"] for row in found)),
        ("of these not bit-exact", *(row["mismatches"] for row in found)),
        ("instructions per inference", *(row["instructions"] for row in found)),
        ("multiply-accumulates", *(row["macs"] for row in found)),
        ("arena", *(f"{row['arena_bytes']:,} bytes" for row in found)),
        ("stack", *(f"{row['stack_bytes']:,} bytes" for row in found)),
        ("flash", *(flash(row) for row in found)),
    ]
    return table(("", *EXAMPLES.values()), 5, rows)
