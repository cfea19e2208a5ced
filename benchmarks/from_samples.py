# SPDX-License-Identifier: Apache-2.0
"""Products from a converter's samples to the answer, each one program: gestures, a motor, a heart.

    python benchmarks/from_samples.py [--board mps2_an386] [--samples 4] [--results NAME]

Every program runs on the emulated board, where every byte must be the host's. Instructions are those of one second of
the signal, by the length of a window; RAM is the firmware's static data, flash without the demonstration's sample.
The motor's figure is the area under the ROC curve: how often a faulty one has the larger score of the two.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@dataclass(frozen=True)
class Product:
    """seconds: of the signal in a window. figure: what answers of the whole data are worth, from model and program to
    the float model's and the program's."""

    name: str
    file: str
    seconds: float
    figure: Callable[[ModuleType, tinyet.Program], tuple[float, float]]
    measure: str = "accuracy"


def accuracy(example: ModuleType, program: tinyet.Program) -> tuple[float, float]:
    inputs, labels = example.evaluation()
    with torch.no_grad():
        right = example.model()(inputs).argmax(1) == labels
    found = program.evaluate(inputs.numpy(), labels=labels.numpy()).accuracy
    assert found is not None
    return float(right.float().mean()), found


def told_apart(example: ModuleType, program: tinyet.Program) -> tuple[float, float]:
    samples, faulty = example.motors()
    with torch.no_grad():
        real = example.model("float")(torch.from_numpy(samples)).numpy().reshape(-1)
    found = np.asarray(program.evaluate(samples).outputs[0]).reshape(-1)
    return area(real, faulty), area(found, faulty)


def area(scores: np.ndarray, faulty: np.ndarray) -> float:
    """Under the ROC curve."""
    good, bad = scores[~faulty], scores[faulty, None]
    return float((bad > good).mean() + 0.5 * (bad == good).mean())


PRODUCTS = (
    Product("gestures", "gesture/buffer.py", 1.28, accuracy),
    Product("a motor", "anomaly/vibration.py", 0.256, told_apart, "ROC AUC"),
    Product("a heart", "heartbeat/model.py", 5.0, accuracy),
)


def example_of(product: Product) -> ModuleType:
    """The example's file as a module. Its neighbours, which have one name in several folders, are forgotten before."""
    for name in ("model", "motion", "motor", "heart"):
        sys.modules.pop(name, None)
    path = EXAMPLES / product.file
    spec = util.spec_from_file_location(f"example_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def measure(product: Product, board: str, folder: Path, count: int) -> dict[str, Any]:
    example = example_of(product)
    program = tinyet.compile(
        example.model(), example.example_inputs(), calibration=example.calibration(), name="product"
    )
    real, found = product.figure(example, program)
    project = tinyet.generate(program, board, folder)
    size = project.build()
    result = project.validate(example.evaluation()[0].numpy()[:count], on="qemu")
    assert result.bit_exact, f"{product.name}: not what the host computes"
    return {
        "product": product.name,
        "measure": product.measure,
        "float": real,
        "program": found,
        "instructions": round(result.instructions / product.seconds),
        "ram": size.ram,
        "flash": size.flash - size.sample,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--samples", default=4, type=int, help="windows that each program runs on the board")
    record.add_option(parser)
    options = parser.parse_args()
    found = list(measured(options.board, options.samples))
    record.write(options.results, {"products": found})


def measured(board: str, count: int) -> Iterable[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="tinyet-products-") as where:
        for product in PRODUCTS:
            row = measure(product, board, Path(where) / product.name.replace(" ", "_"), count)
            sys.stdout.write(f"{row}\n")
            yield row


if __name__ == "__main__":
    main()
