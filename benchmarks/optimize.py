# SPDX-License-Identifier: Apache-2.0
"""What each objective makes of networks: executed instructions, flash, arena; and what there is between smallest and
fastest.

    python benchmarks/optimize.py [NETWORK ...] [--board mps2_an386] [--optimize speed] [--layers] [--frontier]
                                  [--json FILE] [--results NAME]

Networks are those of benchmarks/nets.py, with random weights, and ds_cnn and resnet8 as benchmarks/mlperf_tiny.py has
them. One firmware for each network and objective, run in QEMU on two samples, every layer bit for bit beside the
reference. Counts are executed instructions, not cycles; flash is the application's without its demonstration sample.

--layers shows each layer of each firmware, --frontier all points of the frontier instead of a few.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record
from benchmarks.nets import NETWORKS
from benchmarks.programs import TRAINED, program_of, show
from tinyet.boards import load_board
from tinyet.delegates.decide import OPTIMIZE, Objective, Optimize
from tinyet.delegates.frontier import Point
from tinyet.deployment import deploy
from tinyet.program import Program
from tinyet.validate import LayerResult

SAMPLES = 2
FEW = 9
"""Points of a frontier that are shown."""


@dataclass(frozen=True)
class Row:
    network: str
    optimize: str
    instructions: int
    stated: int
    macs: int
    flash: int
    arena: int
    bit_exact: bool


def measured(
    name: str, program: Program, samples: torch.Tensor, board: str, optimize: Optimize
) -> tuple[Row, tuple[LayerResult, ...]]:
    """One firmware, built and run."""
    with tempfile.TemporaryDirectory(prefix="tinyet-optimize-") as where:
        project = tinyet.generate(program, board, Path(where) / name, project="cmake", optimize=optimize)
        size = project.build()
        result = project.validate(samples.numpy(), on="qemu")
        stated = project.deployment.decision.figures.instructions
    row = Row(
        name,
        optimize,
        result.count or 0,
        stated,
        result.macs,
        size.flash - size.sample,
        result.arena_bytes,
        result.bit_exact,
    )
    return row, result.layers


def few(points: Sequence[Point], count: int) -> list[Point]:
    """The ends of a frontier, and what is evenly between them in flash."""
    if len(points) <= count:
        return list(points)
    low, high = points[0].flash, points[-1].flash
    steps = [low + (high - low) * i / (count - 1) for i in range(count)]
    return list({id(p): p for p in (min(points, key=lambda p: abs(p.flash - s)) for s in steps)}.values())


def cells(row: Row) -> list[str]:
    per_mac = f"{row.instructions / row.macs:.3f}"
    numbers = [f"{n:,}" for n in (row.instructions, row.stated)]
    sizes = [f"{n:,}" for n in (row.flash, row.arena)]
    return [row.network, row.optimize, *numbers, per_mac, *sizes, "yes" if row.bit_exact else "NO"]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join([*TRAINED, *NETWORKS]))
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--optimize", action="append", choices=OPTIMIZE)
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--frontier", action="store_true")
    parser.add_argument("--json", type=Path)
    record.add_option(parser)
    options = parser.parse_args()
    unknown = sorted(set(options.networks) - {*TRAINED, *NETWORKS})
    if unknown:
        parser.error(f"no network is called {', '.join(unknown)}")
    torch.set_num_threads(1)
    console = Console(width=150)
    rows: list[Row] = []
    columns = ["network", "", "instructions", "stated", "per MAC", "flash", "arena", "bit-exact"]
    target = load_board(options.board).target
    for name in options.networks or [*TRAINED, *NETWORKS]:
        program, samples = program_of(name, SAMPLES)
        points = deploy(program.graph, target, objective=Objective("balanced")).decision.frontier.points
        shown = points if options.frontier else few(points, FEW)
        show(
            console,
            f"{name}: the frontier of {len(points)} points, as stated",
            ["flash of the model", "instructions"],
            [[f"{p.flash:,}", f"{p.instructions:,}"] for p in shown],
            0,
        )
        for optimize in options.optimize or OPTIMIZE:
            row, layers = measured(name, program, samples, options.board, optimize)
            rows.append(row)
            if options.layers:
                show(
                    console,
                    f"{name}, {optimize}",
                    ["layer", "operator", "kernel", "instructions", "per MAC"],
                    [
                        [
                            x.name,
                            x.op,
                            x.kernel,
                            f"{x.count or 0:,}",
                            f"{(x.count or 0) / x.macs:.2f}" if x.macs else "",
                        ]
                        for x in layers
                    ],
                    3,
                )
        of_network = [cells(row) for row in rows if row.network == name]
        show(console, f"{name} on {options.board}", columns, of_network, 2)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    record.write(options.results, [asdict(row) for row in rows])
    return 0 if all(row.bit_exact for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
