# SPDX-License-Identifier: Apache-2.0
"""Recurrent classifiers: what they cost whole, and unrolled step by step.

    python benchmarks/recurrent.py [--only NAME ...] [--forms FORM ...] [--steps N ...] [--board NAME] [--results NAME]
    python benchmarks/recurrent.py --cores [--results NAME]

LSTM and GRU layers of 32 units over sequences of 10 features, one layer, two, and one in both directions; the last step
is classified. Instructions of one inference as QEMU counts them on an emulated board, a Cortex-M4, flash and RAM of the
application, and CPU seconds: `compile` from the module to the program, `plan` kernels, order and memory for the board.
Every run is compared with the host reference bit for bit. dB: against the float model, on other samples than those
calibrated with. Forms: `whole`; `unrolled`, each layer taken apart as torch does it; `int16`, int16 activations instead
of int8 ones; `tflm`, LSTMs in TFLM's arithmetic, as those of .tflite files. Without --only and --steps each form is
measured for the networks and the steps that FORMS has.

--cores: instead, single layers of 16 inputs and 32 units over 20 steps, in int8, on emulated boards of each core.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.export import ExportedProgram

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record
from tinyet.boards import load_board
from tinyet.deployment import deploy
from tinyet.ops.lstm import Lstm
from tinyet.program import Program
from tinyet.quantization.config import int8_config, int16_config
from tinyet.quantization.quantizer import TinyetQuantizer

BOARD = "mps2_an386"
FEATURES, UNITS, CLASSES = 10, 32, 6
CALIBRATION, EVALUATION, RUNS = 64, 16, 2


class Classifier(nn.Module):
    """Reads the last step of a recurrent layer."""

    def __init__(self, kind: Callable[..., nn.Module], **options: Any) -> None:
        super().__init__()
        self.layer = kind(FEATURES, UNITS, batch_first=True, **options)
        self.head = nn.Linear(UNITS * (2 if options.get("bidirectional") else 1), CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0][:, -1])


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: Classifier(nn.LSTM),
    "lstm, two layers": lambda: Classifier(nn.LSTM, num_layers=2),
    "lstm, both directions": lambda: Classifier(nn.LSTM, bidirectional=True),
    "gru": lambda: Classifier(nn.GRU),
    "gru, two layers": lambda: Classifier(nn.GRU, num_layers=2),
    "gru, both directions": lambda: Classifier(nn.GRU, bidirectional=True),
}


@dataclass(frozen=True)
class Form:
    """How a network is compiled, and for which networks and numbers of steps it is measured."""

    networks: tuple[str, ...]
    steps: tuple[int, ...]
    apart: bool = False
    wide: bool = False
    tflm: bool = False


FORMS = {
    "whole": Form(tuple(NETWORKS), (20, 200)),
    "unrolled": Form(("lstm", "gru", "gru, both directions"), (20,), apart=True),
    "int16": Form(("lstm", "gru"), (20, 200), wide=True),
    "tflm": Form(("lstm", "lstm, two layers"), (20, 200), tflm=True),
}


LAYERS: dict[str, Callable[..., nn.Module]] = {
    "LSTM": nn.LSTM,
    "the same in TFLM's arithmetic": nn.LSTM,
    "GRU": nn.GRU,
    "plain, tanh": nn.RNN,
}
CORES = {
    "M55, Helium": ("mps3_an547", "cortex_m,portable"),
    "M4, DSP": ("mps2_an386", "cortex_m,portable"),
    "M4, portable": ("mps2_an386", "portable"),
    "M3": ("mps2_an385", "portable"),
    "M0": ("microbit", "portable"),
    "RV32IMAC": ("riscv32_virt", "portable"),
}
"""Boards and delegates."""


class Layer(nn.Module):
    """The states of all steps."""

    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.layer = kind(16, UNITS, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


def unrolled(model: nn.Module, x: torch.Tensor) -> ExportedProgram:
    """The module's program with its recurrent layers taken apart."""
    wanted = {"aten::lstm", "aten::gru"}
    table = torch.export.default_decompositions()
    named = {op: getattr(getattr(op, "_schema", None), "name", "") for op in table}
    with torch.no_grad():
        program = torch.export.export(model, (x,))
        return program.run_decompositions({op: table[op] for op, name in named.items() if name in wanted})


def sqnr_db(exact: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> float:
    return float(10 * np.log10((exact**2).sum() / ((exact - found) ** 2).sum()))


def in_tflm(program: Program) -> Program:
    """The same layers, LSTMs in the other arithmetic."""
    nodes = [
        node.replace(attrs=replace(node.attrs, arithmetic="tflm")) if isinstance(node.attrs, Lstm) else node
        for node in program.graph.nodes
    ]
    return replace(program, graph=program.graph.replace(nodes=nodes))


def row(name: str, steps: int, board: str, form: str) -> dict[str, Any]:
    """Figures of one network. Raises SystemExit where the board computes anything else than the host."""
    torch.manual_seed(0)
    model = NETWORKS[name]().eval()
    data = torch.randn(CALIBRATION + EVALUATION, steps, FEATURES)
    calibration, evaluation = list(data[:CALIBRATION].split(1)), data[CALIBRATION:]
    quantizer = TinyetQuantizer(int16_config() if FORMS[form].wide else int8_config())
    start = time.process_time()
    if FORMS[form].apart:
        program = tinyet.compile(
            unrolled(model, calibration[0]), calibration=calibration, quantizer=quantizer
        )
    else:
        program = tinyet.compile(model, (calibration[0],), calibration=calibration, quantizer=quantizer)
    if FORMS[form].tflm:
        program = in_tflm(program)
    compiled = time.process_time()
    deployment = deploy(program.graph, load_board(board).target)
    planned = time.process_time()
    with torch.no_grad():
        exact = model(evaluation).numpy()
    found = np.concatenate([program.run(x.numpy(), as_float=True) for x in evaluation.split(1)])
    with tempfile.TemporaryDirectory() as where:
        project = tinyet.generate(program, board, Path(where) / "project", kind="cmake")
        project.build()
        result = project.validate(evaluation[:RUNS].numpy())
    if result.mismatches:
        sys.exit(f"{name}, {steps} steps: the board differs from the host")
    return {
        "network": name,
        "form": form,
        "steps": steps,
        "calls": len(deployment.steps),
        "instructions": result.count,
        "macs": result.macs,
        "flash_bytes": result.flash_bytes,
        "ram_bytes": result.ram_bytes,
        "compile_s": round(compiled - start, 1),
        "plan_s": round(planned - compiled, 1),
        "sqnr_db": round(sqnr_db(exact, found.reshape(exact.shape)), 1),
    }


def on_cores(name: str) -> dict[str, Any]:
    """Instructions of a layer on each core, and its multiply-accumulates."""
    torch.manual_seed(0)
    model, data = Layer(LAYERS[name]).eval(), torch.randn(CALIBRATION, 20, 16)
    program = tinyet.compile(model, (data[:1],), calibration=list(data.split(1)))
    if "TFLM" in name:
        program = in_tflm(program)
    found: dict[str, int] = {}
    for core, (board, delegates) in CORES.items():
        with tempfile.TemporaryDirectory() as where:
            project = tinyet.generate(
                program, board, Path(where) / "project", kind="cmake", delegates=delegates.split(",")
            )
            project.build()
            result = project.validate(data[:1].numpy())
        if result.mismatches:
            sys.exit(f"{name}: {board} differs from the host")
        (layer,) = [each for each in result.layers if each.op in ("lstm", "gru", "rnn")]
        found[core] = layer.count or 0
    return {"layer": name, "macs": layer.macs, "instructions": found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=NETWORKS)
    parser.add_argument("--forms", nargs="*", choices=FORMS, default=list(FORMS))
    parser.add_argument("--steps", nargs="*", type=int)
    parser.add_argument("--board", default=BOARD)
    parser.add_argument("--cores", action="store_true")
    record.add_option(parser)
    arguments = parser.parse_args()
    if arguments.cores:
        layers = []
        for name in LAYERS:
            layers.append(on_cores(name))
            print(layers[-1], flush=True)
        record.write(arguments.results, layers)
        return
    heads = ("calls", "instructions", "MACs", "flash", "RAM", "compile", "plan", "dB")
    print(f"{'network':24}{'form':10}{'steps':>6}", *(f"{head:>13}" for head in heads), flush=True)
    rows = []
    for form in arguments.forms:
        for name in arguments.only or FORMS[form].networks:
            for steps in arguments.steps or FORMS[form].steps:
                found = row(name, steps, arguments.board, form)
                cells = list(found.values())[3:]
                print(f"{name:24}{form:10}{steps:>6}", *(f"{cell:>13,}" for cell in cells), flush=True)
                rows.append(found)
    record.write(arguments.results, rows)


if __name__ == "__main__":
    main()
