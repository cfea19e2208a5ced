# SPDX-License-Identifier: Apache-2.0
"""DS-CNN (keywords) and ResNet8 (CIFAR-10) of MLPerf Tiny on an emulated board: exactness, accuracy, memory,
instructions.

    python benchmarks/mlperf_tiny.py [ds_cnn|resnet8 ...] [--board mps2_an386] [--optimize speed] [--samples N]
                                     [--json FILE] [--results NAME]

Needs the trained models and their data: TINYET_MLPERF_DIR (default ../shared/mlperf_tiny), with a `models.py` that has
ds_cnn(), resnet8(), keyword_test() and cifar10(split). Baselines of TFLM with CMSIS-NN are read from TINYET_BASELINES
(default ../shared/baselines/mlperf_tiny.json) where they exist. Counts are executed instructions, not cycles.
"""

import argparse
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record
from tinyet.boards import load_board
from tinyet.delegates import DEFAULT, Delegate
from tinyet.delegates.decide import OPTIMIZE, Optimize, check_optimize
from tinyet.validate import ValidationResult

Figures = dict[str, object]

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_SAMPLES = {"ds_cnn": 1000, "resnet8": 200}


def load_models() -> ModuleType:
    """The user's copy of the trained models."""
    place = Path(os.environ.get("TINYET_MLPERF_DIR", ROOT / "../shared/mlperf_tiny")) / "models.py"
    if not place.is_file():
        sys.exit(f"no trained models at {place}: set TINYET_MLPERF_DIR")
    spec = importlib.util.spec_from_file_location("mlperf_models", place)
    if spec is None or spec.loader is None:
        sys.exit(f"{place} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mlperf_models"] = module
    spec.loader.exec_module(module)
    return module


def load_baselines(model: str, cpu: str) -> dict[str, dict[str, object]]:
    """Builds of TFLM for the same model and core: name → figures; empty when there are none."""
    place = Path(os.environ.get("TINYET_BASELINES", ROOT / "../shared/baselines/mlperf_tiny.json"))
    if not place.is_file():
        return {}
    return json.loads(place.read_text(encoding="utf-8"))["models"].get(model, {}).get(cpu, {})


def strongest(model: str, cpu: str) -> tuple[str, dict[str, object]] | None:
    """The build of TFLM with CMSIS-NN that executes the fewest instructions: (name, figures)."""
    found = [
        (int(str(figures["instructions"])), build, figures)
        for build, figures in load_baselines(model, cpu).items()
        if build.startswith("tflm_cmsis_nn") and "instructions" in figures
    ]
    return min(found, key=lambda entry: entry[:2])[1:] if found else None


def data_of(models: ModuleType, name: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """(calibration, test inputs, labels, which test samples count for accuracy)."""
    if name == "ds_cnn":
        x, labels = models.keyword_test()
        counted = torch.ones(len(x), dtype=torch.bool)
        counted[::10] = False
        return x[::10], x, labels, counted
    calibration, _ = models.cifar10("calibration")
    x, labels = models.cifar10("test")
    # The test set is sorted by class; a stride takes all classes alike.
    order = torch.arange(len(x)).reshape(10, -1).T.reshape(-1)
    return calibration, x[order], labels[order], torch.ones(len(x), dtype=torch.bool)


def run(
    models: ModuleType,
    name: str,
    board_name: str,
    count: int,
    console: Console,
    delegates: Sequence[Delegate] = DEFAULT,
    optimize: Optimize = "balanced",
) -> tuple[ValidationResult, Figures]:
    """What the board computed, and the figures of it that documents show."""
    network = getattr(models, name)()
    calibration, x, labels, counted = data_of(models, name)
    program = tinyet.compile(network, (x[:1],), calibration=calibration.split(10), name=name)
    x, labels, counted = x[:count], labels[:count], counted[:count]
    with tempfile.TemporaryDirectory(prefix="tinyet-bench-") as where:
        project = tinyet.generate(
            program,
            board_name,
            Path(where) / name,
            sample=[x[0].numpy()],
            delegates=delegates,
            optimize=optimize,
        )
        project.build()
        result = project.validate(x.numpy(), labels=labels.numpy(), on="qemu")
        stated = project.deployment.decision.figures.instructions
    with torch.no_grad():
        exact = network(x).argmax(-1)
    device = torch.tensor([int(o[0].argmax()) for o in result.outputs])
    share = float((device == labels)[counted].float().mean())
    wanted = float((exact == labels)[counted].float().mean())
    board = load_board(board_name)
    baselines = load_baselines(name, board.cpu)
    report(console, name, board.title, result, share, wanted, baselines)
    theirs = strongest(name, board.cpu)
    figures: Figures = {
        "network": name,
        "board": board_name,
        "optimize": optimize,
        "delegates": [delegate.name for delegate in delegates],
        "samples": result.samples,
        "mismatches": result.mismatches,
        "counted": int(counted.sum()),
        "accuracy_float": wanted,
        "accuracy": share,
        "instructions": result.instructions,
        "stated": stated,
        "arena_bytes": result.arena_bytes,
        "ram_bytes": result.ram_bytes,
        "stack_bytes": result.stack_bytes,
        "flash_bytes": result.flash_bytes,
        "tflm": None
        if theirs is None
        else {"build": theirs[0], **{key: theirs[1][key] for key in ("instructions", "arena_bytes")}},
    }
    return result, figures


def report(
    console: Console,
    name: str,
    board: str,
    result: ValidationResult,
    accuracy: float,
    float_accuracy: float,
    baselines: dict[str, dict[str, object]],
) -> None:
    theirs = next(
        (b["layers_tflm_cmsis_nn.O2"] for k, b in [("", baselines)] if "layers_tflm_cmsis_nn.O2" in b), []
    )
    table = Table(title=f"{name} on {board}: executed instructions per layer")
    for title in (
        "layer",
        "kernel",
        "output",
        "MACs",
        "instructions",
        "per MAC",
        "TFLM+CMSIS-NN",
        "ratio",
        "SQNR dB",
    ):
        table.add_column(title, justify="left" if title in ("layer", "kernel") else "right")
    rest = [row for row in theirs if isinstance(row, dict)]
    for layer in result.layers:
        match = next((row for row in rest if layer.macs and row["macs"] == layer.macs), None)
        if match is not None:
            rest.remove(match)
        count = layer.count or 0
        table.add_row(
            layer.op,
            layer.kernel,
            layer.name,
            f"{layer.macs:,}" if layer.macs else "",
            f"{count:,}",
            f"{count / layer.macs:.2f}" if layer.macs else "",
            f"{match['instructions']:,}" if match else "",
            f"{match['instructions'] / count:.2f}" if match and count else "",
            "" if layer.sqnr_db is None else f"{layer.sqnr_db:.1f}",
        )
    console.print(table)
    console.print(f"samples {result.samples}   bit_exact {result.bit_exact}   mismatches {result.mismatches}")
    console.print(f"accuracy: float {float_accuracy:.2%}, int8 on the device {accuracy:.2%}")
    console.print(
        f"instructions {result.instructions:,}   arena {result.arena_bytes:,}   static RAM {result.ram_bytes:,}   "
        f"stack {result.stack_bytes:,}   flash {result.flash_bytes:,}"
    )
    for key in sorted(baselines):
        figures = baselines[key]
        if isinstance(figures, dict) and "instructions" in figures and result.instructions:
            ratio = int(str(figures["instructions"])) / result.instructions
            console.print(
                f"  {key:28} instructions {figures['instructions']:>12,}   arena {figures['arena_bytes']:>7,}   "
                f"ratio {ratio:.2f}"
            )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", choices=[*DEFAULT_SAMPLES, []], default=[])
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--optimize", choices=OPTIMIZE, default="balanced")
    parser.add_argument("--samples", type=int, default=None)
    parser.add_argument("--json", type=Path, default=None)
    record.add_option(parser)
    options = parser.parse_args()
    models = load_models()
    console = Console(width=150)
    found: dict[str, dict[str, object]] = {}
    rows: list[Figures] = []
    for name in options.models or list(DEFAULT_SAMPLES):
        samples = options.samples or DEFAULT_SAMPLES[name]
        optimize = check_optimize(options.optimize)
        result, figures = run(models, name, options.board, samples, console, optimize=optimize)
        found[name] = result.to_json()
        rows.append(figures)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    record.write(options.results, rows)
    return 0 if all(r["bit_exact"] for r in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
