# SPDX-License-Identifier: Apache-2.0
"""What it costs that weights lie in a flash that waits, and what copies in RAM save.

    python benchmarks/placement.py [--network mobilenet_v2] [--board NAME]... [--json FILE] [--results NAME]

A network is generated for each board with its weights in flash, with as many copied as its RAM has room for as the
estimate of accesses chooses (`--place weights=auto`), and, on a board with further memories, with arena and weights
placed by it (`--place auto`). Each firmware is bit for bit what the host reference is, and its cycles are estimated in
QEMU, waits of the flash by its lines and buffers included. Reads and writes are those of the layers, counted by QEMU.
The copies themselves, once at the start, are in none of the figures.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks.programs import program_of, show
from benchmarks.record import add_option, write
from tinyet.boards import load_board
from tinyet.budget.placing import placed
from tinyet.program import Program

BOARDS = ("nucleo_f446re", "pico2", "nucleo_h743zi")
PLACES: Mapping[str, Mapping[str, str]] = {
    "in flash": {"weights": "flash"},
    "copied": {"weights": "auto"},
    "placed": {"arena": "auto", "weights": "auto"},
}


def measured(program: Program, board: str, place: Mapping[str, str]) -> dict[str, object]:
    """The figures of one firmware. Raises SystemExit where a bit differs."""
    with tempfile.TemporaryDirectory() as folder:
        project = tinyet.generate(program, board, folder, kind="cmake", place=place)
        found = placed(project.deployment, project.board)
        result = project.validate(on="host", estimate=True, max_samples=1, timeout=900)
        if not result.bit_exact or result.estimate is None:
            raise SystemExit(f"{program.name} differs on {board}")
        flash = result.estimate.accesses.get("flash")
        weights = [each for each in found if each.layer]
        return {
            "weights": sum(each.bytes for each in weights),
            "copied": sum(each.bytes for each in weights if each.copied),
            "memories": sorted({each.memory.name for each in weights if each.copied}),
            "arena": next(each.memory.name for each in found if each.name == "arena"),
            "stated_waits": round(sum(each.waits or 0.0 for each in weights)),
            "cycles": result.estimate.cycles,
            "waits": result.estimate.whole.wait_cycles,
            "flash_reads": None if flash is None else flash.reads,
        }


def main() -> int:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", default="mobilenet_v2")
    parser.add_argument("--board", action="append", metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE")
    add_option(parser)
    options = parser.parse_args()
    program, _ = program_of(options.network, 1, channels_last=True)
    figures = {
        board: {
            how: measured(program, board, place)
            for how, place in PLACES.items()
            if how != "placed" or load_board(board).extra_memories
        }
        for board in options.board or BOARDS
    }
    rows = [
        (
            board,
            how,
            *(f"{row[key]:,}" for key in ("copied", "cycles", "waits", "stated_waits")),
            row["arena"],
        )
        for board, by_how in figures.items()
        for how, row in by_how.items()
    ]
    heads = (
        "board",
        "weights",
        "copied bytes",
        "estimated cycles",
        "of them waits",
        "stated waits",
        "arena in",
    )
    show(Console(), options.network, heads, rows, 2)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    write(options.results, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
