# SPDX-License-Identifier: Apache-2.0
"""What each way to quantize costs and keeps: DS-CNN (keywords) and ResNet8 (CIFAR-10) of MLPerf Tiny.

    python benchmarks/quantization.py [ds_cnn|resnet8|digits ...] [--samples N] [--exact N] [--search] [--json FILE]
                                       [--results NAME]

Accuracy and mean squared error (of the class probabilities, against the float model) are those of the compiled program
over all samples, by the host reference (`Program.run`): of the integers that ship, not of a simulation of them in
float. The first samples also run in the generated C on this machine, with sanitizers, and must equal the reference bit
for bit. Flash (weights and tables, as the kernels of the board want them) and arena are the compiled program's, too.
--search lets `quantization.sensitivity` choose the hybrid's exceptions (minutes). `digits` is the hard case of
examples/digits/qat.py: weights of -1, 0 and 1, after training and in training.

Needs the trained models (see mlperf_tiny.py).
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "digits"))

from mlperf_tiny import data_of, load_models
from torch.export import ExportedProgram

import tinyet
from benchmarks.record import add_option, write
from tinyet import TinyetQuantizer, dynamic_config, int4_config, int8_config, int16_config
from tinyet.compiler import cost_on
from tinyet.fx.capture import capture
from tinyet.quality.search import accuracy_of, search
from tinyet.quantization.quantize import quantize_fully

BOARD = "mps2_an386"
CALIBRATION = 100
DROP = 0.01


@dataclass(frozen=True)
class Variant:
    """A way to quantize. equalize, correct, learn: the steps around it."""

    name: str
    quantizer: Callable[[], TinyetQuantizer]
    equalize: bool = False
    correct: bool = False
    learn: bool = False


# The first and the last layer of either network, which are small and hurt most.
ENDS = ("conv", "classifier")


def _ends(inner: Callable[[], tinyet.QuantConfig]) -> TinyetQuantizer:
    quantizer = TinyetQuantizer(inner())
    for name in ENDS:
        quantizer.set_module_name(name, int8_config())
    return quantizer


VARIANTS = (
    Variant("int8", TinyetQuantizer),
    Variant("int8, minmax", lambda: TinyetQuantizer(int8_config("minmax"))),
    Variant("int8, mse", lambda: TinyetQuantizer(int8_config("mse"))),
    Variant("int8, percentile", lambda: TinyetQuantizer(int8_config("percentile"))),
    Variant("int8, equalized", TinyetQuantizer, equalize=True),
    Variant("int8, biases corrected", TinyetQuantizer, correct=True),
    Variant("int8, both", TinyetQuantizer, equalize=True, correct=True),
    Variant("int8, rounding learned", TinyetQuantizer, learn=True),
    Variant("int8, rounding learned, biases corrected", TinyetQuantizer, correct=True, learn=True),
    Variant("16x8", lambda: TinyetQuantizer(int16_config())),
    Variant("int4 weights", lambda: TinyetQuantizer(int4_config())),
    Variant("int4, equalized", lambda: TinyetQuantizer(int4_config()), equalize=True),
    Variant("int4, biases corrected", lambda: TinyetQuantizer(int4_config()), correct=True),
    Variant("int4, both", lambda: TinyetQuantizer(int4_config()), equalize=True, correct=True),
    Variant("int4, rounding learned", lambda: TinyetQuantizer(int4_config()), learn=True),
    Variant(
        "int4, rounding learned, biases corrected",
        lambda: TinyetQuantizer(int4_config()),
        correct=True,
        learn=True,
    ),
    Variant("int4, rounding learned, equalized", lambda: TinyetQuantizer(int4_config()), True, learn=True),
    Variant("ternary weights", lambda: TinyetQuantizer(int4_config(bits=2))),
    Variant("ternary, biases corrected", lambda: TinyetQuantizer(int4_config(bits=2)), correct=True),
    Variant("ternary, rounding learned", lambda: TinyetQuantizer(int4_config(bits=2)), learn=True),
    Variant("hybrid: int4, ends int8, corrected", lambda: _ends(int4_config), correct=True),
    Variant("dynamic", lambda: TinyetQuantizer(dynamic_config())),
)


@dataclass(frozen=True)
class Row:
    """Figures of one variant; None where there are none (or nothing was compared). seconds: of the processor, to
    quantize it."""

    name: str
    accuracy: float
    mse: float | None = None
    flash_bytes: int | None = None
    arena_bytes: int | None = None
    exact: int | None = None
    seconds: float | None = None


def answers(program: tinyet.Program, x: torch.Tensor) -> torch.Tensor:
    """(samples, classes) of the program on this machine, real values."""
    (found,) = program.evaluate(x.numpy(), as_float=True).outputs
    return torch.from_numpy(found.reshape(len(x), -1))


def exact_on_host(program: tinyet.Program, x: torch.Tensor, count: int) -> int:
    """Of the first `count` samples: how many are equal in the generated C and in the host reference."""
    with tempfile.TemporaryDirectory(prefix="tinyet-bench-") as where:
        project = tinyet.generate(program, BOARD, Path(where) / "net", sample=[x[0].numpy()])
        result = project.validate(x[:count].numpy(), on="host")
    return result.samples - result.mismatches


def rows_of(models: ModuleType, name: str, options: argparse.Namespace, console: Console) -> list[Row]:
    network = getattr(models, name)()
    calibration, x, labels, counted = data_of(models, name)
    calibration = calibration[:: max(1, len(calibration) // CALIBRATION)]
    x, labels = x[counted][: options.samples], labels[counted][: options.samples]
    captured = capture(network, x[:1])
    with torch.no_grad():
        wanted = torch.cat([network(sample[None]) for sample in x])
    cost = cost_on(BOARD)

    def row(title: str, exported: ExportedProgram, seconds: float | None = None) -> Row:
        program = tinyet.compile(exported, name="net")
        found = answers(program, x)
        spent = cost(exported)
        exact = exact_on_host(program, x, options.exact) if options.exact else None
        accuracy = float((found.argmax(1) == labels).float().mean())
        mse = float(((found - wanted) ** 2).mean())
        result = Row(title, accuracy, mse, spent.flash_bytes, spent.arena_bytes, exact, seconds)
        console.print(f"[dim]{name}: {result}[/dim]")
        return result

    rows = [row("float", captured)]
    for variant in VARIANTS:
        if options.only and options.only not in variant.name:
            continue
        began = time.process_time()
        quantized = quantize_fully(
            captured,
            [calibration],
            variant.quantizer(),
            equalize=variant.equalize,
            correct_bias=variant.correct,
            learn_rounding=variant.learn,
        )
        seconds = time.process_time() - began
        rows.append(row(variant.name, quantized.program, seconds))
    if options.search:
        evaluate = accuracy_of([(sample[None],) for sample in x], labels.tolist())
        found = search(
            captured, [calibration], evaluate, rows[0].accuracy - DROP, TinyetQuantizer(int4_config()),
            cost=cost, correct_bias=True,
        )  # fmt: skip
        chosen = " ".join(f"{path}={kind}" for path, kind in found.exceptions.items())
        rows.append(row(f"hybrid found: int4, corrected, {chosen or 'no exception'}", found.program))
    return rows


def hard_case() -> list[Row]:
    import qat

    result = qat.compare(qat.HARD)
    return [
        Row("float", result.exact),
        Row("ternary weights, PTQ", result.ptq),
        Row("ternary weights, QAT", result.qat),
    ]


def show(console: Console, name: str, rows: list[Row]) -> None:
    table = Table(title=f"{name}, bytes on {BOARD}")
    for title in ("quantization", "accuracy", "MSE", "flash", "arena", "bit-exact", "seconds"):
        table.add_column(title, justify="left" if title == "quantization" else "right")
    for row in rows:
        figures = (row.flash_bytes, row.arena_bytes, row.exact)
        texts = ["" if value is None else f"{value:,}" for value in figures]
        texts.append("" if row.seconds is None else f"{row.seconds:.0f}")
        table.add_row(row.name, f"{row.accuracy:.2%}", "" if row.mse is None else f"{row.mse:.1e}", *texts)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ["ds_cnn", "resnet8", "digits"]
    parser.add_argument("models", nargs="*", choices=[*names, []], default=[])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--exact", type=int, default=5, help="samples that run in C, too")
    parser.add_argument("--only", default="", help="variants whose name holds this")
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--json", type=Path, default=None)
    add_option(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    console = Console(width=130)
    results = {}
    for name in options.models or names:
        rows = hard_case() if name == "digits" else rows_of(load_models(), name, options, console)
        show(console, name, rows)
        results[name] = [vars(row) for row in rows]
    write(options.results, results)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    exact = [row["exact"] for rows in results.values() for row in rows if row["exact"] is not None]
    return 0 if all(count == options.exact for count in exact) else 1


if __name__ == "__main__":
    sys.exit(main())
