# SPDX-License-Identifier: Apache-2.0
"""What it costs that weights lie in a flash that waits, and what copies in RAM save.

    python benchmarks/placement.py [--network mobilenet_v2] [--board NAME]... [--pieces] [--json FILE] [--results NAME]

A network is generated for each board with its weights in flash, with as many copied as its RAM has room for as the
estimate of accesses chooses (`--place weights=auto`), and, on a board with further memories, with arena and weights
placed by it (`--place auto`). Each firmware is bit for bit what the host reference is, and its cycles are estimated in
QEMU, waits of the flash by its lines and buffers included. Reads and writes are those of the layers, counted by QEMU.
The copies themselves, once at the start, are in none of the figures.

--pieces: in place of that, an arena in a slow memory, in a fast one, and in both, on an MPS2 whose second memory is
made as small as each of several, and whose RAM is said to wait. The cycles are without those waits, which the model of
a core has for flash alone; QEMU counts the accesses of each memory, in the RAM with those of stack and harness.
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
from tinyet import assets
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


FAST = (16 << 10, 32 << 10, 64 << 10)
"""Bytes of a fast memory that an arena has its first piece in."""


def in_pieces(program: Program, fast: int, arena: str) -> dict[str, object]:
    """Likewise, of one place of an arena. fast: bytes of the second memory."""
    text = (assets.path("boards") / "mps2_an386.toml").read_text(encoding="utf-8")
    text = text.replace("[memory.ram]", "[memory.ram]\nread_waits = 4\nwrite_waits = 4")
    text = text.replace("bytes = 0x01000000", f"bytes = {fast}\nread_waits = 0\nwrite_waits = 0")
    with tempfile.TemporaryDirectory() as folder:
        board = Path(folder, "own.toml")
        board.write_text(text, encoding="utf-8")
        project = tinyet.generate(program, board, Path(folder, "p"), kind="cmake", place={"arena": arena})
        project.build()
        result = project.validate(on="qemu", estimate=True, max_samples=1, timeout=900)
        if not result.bit_exact or result.estimate is None:
            raise SystemExit(f"{program.name} differs with {arena}")
        taken = {
            each.memory.name: each.bytes
            for each in placed(project.deployment, project.board)
            if not each.layer
        }
        counted = result.estimate.accesses
        return {
            "fast": taken.get("psram", 0),
            "slow": taken.get("ram", 0),
            "fast_accesses": counted["psram"].reads + counted["psram"].writes,
            "slow_accesses": counted["ram"].reads + counted["ram"].writes,
            "cycles": result.estimate.cycles,
        }


def compare_pieces(program: Program) -> dict[str, dict[str, object]]:
    """All places of an arena, which are printed, too."""
    ways = {"slow": (1 << 20, "ram")} | {f"{size} fast": (size, "psram+ram") for size in FAST}
    found = {name: in_pieces(program, *way) for name, way in (ways | {"fast": (1 << 20, "psram")}).items()}
    heads = ("arena", "bytes, fast", "bytes, slow", "accesses, fast", "accesses, slow", "estimated cycles")
    rows = [(name, *(f"{figure:,}" for figure in row.values())) for name, row in found.items()]
    show(Console(), program.name, heads, rows, 1)
    return found


def main() -> int:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", default="mobilenet_v2")
    parser.add_argument("--board", action="append", metavar="NAME")
    parser.add_argument("--pieces", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    add_option(parser)
    options = parser.parse_args()
    program, _ = program_of(options.network, 1, channels_last=True)
    if options.pieces:
        pieces = compare_pieces(program)
        if options.json is not None:
            options.json.write_text(json.dumps(pieces, indent=1) + "\n", encoding="utf-8")
        write(options.results, pieces)
        return 0
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
