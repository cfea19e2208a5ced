# SPDX-License-Identifier: Apache-2.0
"""How long the longest slice of a run is, stated and counted, and what calls in parts cost.

    python benchmarks/slices.py [--board mps2_an386] [--optimize balanced] [--json FILE] [--results NAME]

Networks as benchmarks/programs.py has them, each as a whole, where the longest layer is the longest slice, and with
each `--max-step`: built, and run on the emulated board, every slice counted and the outputs compared with the host
reference. Counts are executed instructions; what is stated for a time is cycles. Fails when one byte differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks.programs import program_of, show
from benchmarks.record import add_option, write
from tinyet.auditing.steps import count_steps
from tinyet.program import Program

NETWORKS = ("resnet8", "autoencoder")
ASKED = ("", "100000", "1ms")
"""Lengths of a slice; first none, for a run as a whole."""


def measured(program: Program, board: str, optimize: str, asked: str) -> dict[str, object]:
    """Of one firmware. stated, counted: of the longest slice, or layer; stated in `unit`s."""
    with tempfile.TemporaryDirectory() as folder:
        project = tinyet.generate(
            program, board, folder, kind="cmake", context=True, optimize=optimize, max_step=asked or None
        )
        size = project.build()
        result = project.validate(on="qemu", max_samples=1)
        if not result.bit_exact:
            raise SystemExit(f"{program.name} differs")
        slices = project.slices
        if slices is None:
            chosen = project.deployment.decision.chosen.values()
            stated = max(candidate.time for candidate in chosen)
            counted = max(layer.count for layer in result.layers)
            unit, count = "cycles", len(result.layers)
        else:
            steps = count_steps(project, project.samples((), None, None).first(1))
            stated = max(segment.cost or 0 for segment in slices.segments)
            counted, unit, count = max(steps.counts), slices.unit, slices.count
        return {
            "asked": asked,
            "slices": count,
            "unit": unit,
            "stated": stated,
            "counted": counted,
            "instructions": result.count,
            "flash": size.flash - size.sample,
            "arena": project.deployment.plan.arena_bytes,
            "retained": 0 if slices is None else slices.retained_most,
            "longer": [] if slices is None else [n for n in slices.notes if n.startswith("a slice longer")],
        }


def main() -> int:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--optimize", default="balanced")
    parser.add_argument("--json", type=Path, metavar="FILE")
    add_option(parser)
    options = parser.parse_args()
    rows = []
    for name in NETWORKS:
        program, _ = program_of(name, 1)
        for asked in ASKED:
            row = {"name": name, **measured(program, options.board, options.optimize, asked)}
            rows.append(row)
            print(json.dumps(row), flush=True)
    heads = (
        "name",
        "asked",
        "unit",
        "slices",
        "stated",
        "counted",
        "instructions",
        "flash",
        "arena",
        "retained",
    )
    cells = [
        [f"{row[head]:,}" if isinstance(row[head], int) else str(row[head]) for head in heads] for row in rows
    ]
    show(Console(width=150), f"slices on {options.board}", heads, cells, 3)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    write(options.results, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
