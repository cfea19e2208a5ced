# SPDX-License-Identifier: Apache-2.0
"""DS-CNN and ResNet8 of MLPerf Tiny by three ways into the quantizer: the PyTorch module, a float .onnx (torch.onnx)
and a float .tflite of it.

    python benchmarks/file_quantization.py [ds_cnn|resnet8 ...] [--board mps2_an386] [--results NAME]

Needs the trained models and their data: TINYET_MLPERF_DIR, as benchmarks/mlperf_tiny.py. The .tflite is what
`tinyet export` writes of the float program, with images in channels last. Accuracy is that of the host reference;
instructions are executed ones, of one inference on the emulated board.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record
from benchmarks.mlperf_tiny import DEFAULT_SAMPLES, data_of, load_models
from tinyet.program import Program

Figures = dict[str, object]
Arrays = np.ndarray[Any, Any]


def files_of(network: nn.Module, example: torch.Tensor, folder: Path, name: str) -> tuple[Path, Path]:
    """(float .onnx, float .tflite) of a module."""
    onnx, tflite = folder / f"{name}.onnx", folder / f"{name}.tflite"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (example,), onnx, dynamo=False, opset_version=17)
    program = tinyet.compile(network, (example,), name=name, channels_last=True)
    tinyet.export_tflite(program, tflite)
    return onnx, tflite


def accuracy(program: Program, x: Arrays, labels: Arrays) -> float:
    found = program.evaluate(x, labels=labels, as_float=True).accuracy
    assert found is not None
    return found


def instructions(program: Program, board: str, sample: Arrays, folder: Path) -> int:
    project = tinyet.generate(program, board, folder, sample=[sample])
    project.build()
    found = project.validate(sample[None], on="qemu").instructions
    assert found is not None
    return found


def run(name: str, board: str, folder: Path) -> list[Figures]:
    """Each way's figures, the PyTorch module's first."""
    models = load_models()
    network = getattr(models, name)()
    calibration, x, labels, counted = data_of(models, name)
    x, labels = x[counted], labels[counted].numpy()
    example = x[:1]
    onnx, tflite = files_of(network, example, folder, name)

    def last(images: torch.Tensor) -> torch.Tensor:
        return images.permute(0, 2, 3, 1).contiguous()

    ways: Sequence[tuple[str, Callable[..., Program], Callable[[torch.Tensor], torch.Tensor]]] = (
        ("PyTorch", lambda **given: tinyet.compile(network, (example,), name=name, **given), lambda t: t),
        ("float .onnx", lambda **given: tinyet.from_onnx(onnx, **given), lambda t: t),
        ("float .tflite", lambda **given: tinyet.from_tflite(tflite, **given), last),
    )
    rows: list[Figures] = []
    first: Arrays | None = None
    for way, make, order in ways:
        data = order(x).numpy()
        program = make(calibration=order(calibration).split(10))
        answers = program.evaluate(data, as_float=True).outputs[0]
        first = answers if first is None else first
        rows.append(
            {
                "network": name,
                "way": way,
                "samples": len(data),
                "accuracy_float": accuracy(make(), data, labels),
                "accuracy": accuracy(program, data, labels),
                "same_answers": int((answers.argmax(-1) == first.argmax(-1)).sum()),
                "instructions": instructions(program, board, data[0], folder / way.split(".")[-1]),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", choices=[*DEFAULT_SAMPLES, []], default=[])
    parser.add_argument("--board", default="mps2_an386")
    record.add_option(parser)
    options = parser.parse_args()
    rows: list[Figures] = []
    for name in options.models or list(DEFAULT_SAMPLES):
        with tempfile.TemporaryDirectory(prefix="tinyet-files-") as where:
            rows += run(name, options.board, Path(where))
    table = Table(title=f"three ways into the quantizer, {options.board}")
    for title in rows[0]:
        table.add_column(title.replace("_", " "))
    for row in rows:
        table.add_row(*(f"{v:.4f}" if isinstance(v, float) else str(v) for v in row.values()))
    Console(width=150).print(table)
    record.write(options.results, rows)


if __name__ == "__main__":
    main()
