# SPDX-License-Identifier: Apache-2.0
"""Each layer of a network by the kernel that tinyet chooses, beside the same layer by CMSIS-NN.

    python benchmarks/against_cmsis_nn.py [NETWORK ...] [--board mps2_an386] [--optimize balanced] [--results NAME]

Networks are ds_cnn and resnet8 of MLPerf Tiny (trained), and those of benchmarks/nets.py (random weights); by default
the first two and mobilenet_v2. Two firmwares a network, run in QEMU on one sample and compared bit for bit with the
reference: one with the default kernels, one with those of CMSIS-NN alone, where portable ones take what it cannot do.
Counts are executed instructions, not cycles; a ratio above 1 says how many times more CMSIS-NN's kernel takes. Needs
CMSIS-NN's sources.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record
from benchmarks.nets import NETWORKS
from benchmarks.programs import TRAINED, program_of, show
from tinyet.delegates import CMSIS_NN, DEFAULT, Delegate
from tinyet.delegates.decide import OPTIMIZE
from tinyet.program import Program
from tinyet.validate import ValidationResult

BY_DEFAULT = (*TRAINED, "mobilenet_v2")


def run(
    program: Program, sample: torch.Tensor, board: str, optimize: str, delegates: tuple[Delegate, ...]
) -> ValidationResult:
    """One firmware, built and run."""
    with tempfile.TemporaryDirectory(prefix="tinyet-against-") as where:
        place = Path(where) / program.name
        project = tinyet.generate(
            program, board, place, project="cmake", optimize=optimize, delegates=delegates
        )
        project.build()
        return project.validate(sample.numpy(), on="qemu")


@dataclass(frozen=True)
class Row:
    """A layer, or a whole network, whose layer is "all": kernels and executed instructions, here and by CMSIS-NN."""

    layer: str
    op: str
    kernel: str
    other_kernel: str
    instructions: int
    other: int

    @property
    def cells(self) -> list[str]:
        counts = [f"{self.instructions:,}", f"{self.other:,}", f"{self.other / self.instructions:.2f}"]
        return [self.layer, self.op, self.kernel, self.other_kernel, *counts]


def compared(ours: ValidationResult, theirs: ValidationResult) -> list[Row]:
    """A row for each layer, and one for the whole network."""
    other = {layer.name: layer for layer in theirs.layers}
    rows = []
    for layer in ours.layers:
        beside = other[layer.name]
        counts = layer.count or 0, beside.count or 0
        rows.append(Row(layer.name, layer.op, layer.kernel, beside.kernel, *counts))
    return [*rows, Row("all", "", "", "", ours.count or 0, theirs.count or 0)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join([*TRAINED, *NETWORKS]))
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--optimize", choices=OPTIMIZE, default="balanced")
    record.add_option(parser)
    options = parser.parse_args()
    unknown = sorted(set(options.networks) - {*TRAINED, *NETWORKS})
    if unknown:
        parser.error(f"no network is called {', '.join(unknown)}")
    torch.set_num_threads(1)
    console, exact = Console(width=150), True
    found: dict[str, list[dict[str, object]]] = {}
    columns = ["layer", "operator", "tinyet", "CMSIS-NN", "instructions", "CMSIS-NN's", "ratio"]
    for name in options.networks or BY_DEFAULT:
        program, samples = program_of(name, 2)
        ours, theirs = (
            run(program, samples[:1], options.board, options.optimize, delegates)
            for delegates in (DEFAULT, (CMSIS_NN,))
        )
        exact = exact and ours.bit_exact and theirs.bit_exact
        title = f"{name} on {options.board}, {options.optimize}"
        rows = compared(ours, theirs)
        found[name] = [asdict(row) for row in rows]
        show(console, title, columns, [row.cells for row in rows], 4)
    record.write(options.results, found)
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())
