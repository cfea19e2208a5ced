# SPDX-License-Identifier: Apache-2.0
"""What networks take of RAM, and what that costs: layer by layer as they were, with outputs over the inputs they are
computed from, by rows, and with their input by rows.

    python benchmarks/memory.py [NETWORK ...] [--board mps2_an386] [--way WAY] [--json FILE] [--results NAME]

Networks are those of benchmarks/nets.py that have images or sequences, with random weights, and ds_cnn and resnet8 as
benchmarks/mlperf_tiny.py has them; all take their images with the channels last, as a camera gives them. Those of
benchmarks/sequences.py, of one dimension, are run where they are named. Transformers need their input whole for the
first result, so it does not come by rows. One firmware for each network and way, run in QEMU on one sample, every
layer bit for bit beside the reference.

arena: bytes; bound: what no order of the calls that were chosen, nor any addresses, can be below at their lifetimes.
MACs: those that rows add (padding that whole layers leave out). stack: of an inference, measured, and at most. flash:
the application's without its demonstration sample. Cycles are estimated, instructions are executed ones, and what they
are more than those of whole layers without overlap, both chosen with optimize="balanced".

Where a network has targets, these are the limits that its memory is planned for; else the smallest that costs at most
15 % more time, as stated, is looked for. Time is what plans are chosen by: cycles, or instructions on a core without a
model of them. Whoever takes the plan with fewer cycles may take more instructions for it: packed weights, for one. Ends
with 1 where a layer differs, a target is missed, or rows take more time than that.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest.mock import patch

import torch
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record
from benchmarks.programs import program_of, show
from benchmarks.sequences import SEQUENCES
from tinyet.boards import load_board
from tinyet.boards.cpus import Target
from tinyet.deployment import Deployment, deploy
from tinyet.errors import TinyetError
from tinyet.opset.cost import counts_cycles
from tinyet.planning.layouts import AccessOrderCache
from tinyet.planning.objective import Objective
from tinyet.planning.tiling import added_macs
from tinyet.program import Program

MORE_TIME, MORE_MACS = 1.15, 1.10
"""What rows may cost, of whole layers without overlap."""
_STEPS = 7
"""Of the search for the smallest arena."""


@dataclass(frozen=True)
class Way:
    """How memory is planned. rows: layers may be computed by rows; overlap: outputs may lie partly over inputs, in the
    order in which their kernels read and write; given: the input comes by rows."""

    name: str
    rows: bool
    overlap: bool
    given: bool = False

    def objective(self, ram: int | None) -> Objective:
        """ram: the most bytes of the arena."""
        return Objective("balanced", ram=ram, untiled=not self.rows, input_rows=self.given)

    @contextmanager
    def followed(self, ram: int | None) -> Iterator[None]:
        """Projects are generated, and opened, as this way has it."""
        with ExitStack() as stack:
            for where in ("tinyet.project", "tinyet.projects.one"):
                stack.enter_context(patch(f"{where}.objective_of", lambda *_, **__: self.objective(ram)))
            if not self.overlap:
                for promise, nothing in (("access_order", None), ("replaces", False)):
                    stack.enter_context(
                        patch.object(AccessOrderCache, promise, lambda *_, answer=nothing: answer)
                    )
            yield


BEFORE = Way("whole layers", rows=False, overlap=False)
WAYS = (
    BEFORE,
    Way("overlap", rows=False, overlap=True),
    Way("rows", rows=True, overlap=False),
    Way("rows, overlap", rows=True, overlap=True),
    Way("input by rows", rows=True, overlap=True, given=True),
)
TARGETS: dict[str, dict[str, int]] = {
    name: dict(zip(("overlap", "rows, overlap", "input by rows"), arenas, strict=True))
    for name, arenas in {
        "ds_cnn": (9_300, 6_500, 6_200),
        "resnet8": (35_000, 14_000, 13_000),
        "mobilenet_v1": (39_500, 30_500, 12_500),
        "mobilenet_v2": (117_000, 37_000, 24_000),
        "mobilenet_v2_144": (258_000, 77_000, 44_000),
    }.items()
}
TARGETS |= {
    "encoder_layer": {"overlap": 99_000, "rows, overlap": 34_000},
    "keyword_transformer": {"overlap": 64_000, "rows, overlap": 26_000},
    "unet": {"overlap": 25_000, "rows, overlap": 13_000},
    "unet_64": {"overlap": 99_000, "rows, overlap": 30_000},
}
NETWORKS = (*TARGETS, "inception", "densely_connected")
TARGETS |= {
    "raw_audio": {"overlap": 64_100, "rows, overlap": 11_000},
    "ecg": {"overlap": 34_600, "rows, overlap": 8_500},
    "accelerometer": {"overlap": 33_000, "rows, overlap": 8_500},
}
"""Bytes of the arena at most, by network and way; the last three are of benchmarks/sequences.py."""
TRANSFORMERS = ("encoder_layer", "keyword_transformer")


@dataclass(frozen=True)
class Row:
    """One firmware. Bytes, and counts of one inference; target: of the arena, None where there is none."""

    network: str
    way: str
    arena: int
    target: int | None
    bound: int
    optimal: bool
    by_rows: int
    added_macs: int
    macs: int
    cycles: int | None
    instructions: int
    stack: int | None
    stack_bound: int | None
    flash: int
    bit_exact: bool

    @property
    def met(self) -> bool:
        return self.target is None or self.arena <= self.target

    @property
    def time(self) -> int:
        """In what plans are chosen by."""
        return self.instructions if self.cycles is None else self.cycles


def smallest(program: Program, target: Target, way: Way, most: int) -> int:
    """The RAM's bytes to ask for: the fewest with which no more than `most` cycles, or instructions, are stated."""

    def tried(ram: int) -> Deployment:
        return deploy(program.graph, target, objective=way.objective(ram))

    least = tried(1)
    low, best = needed(least), deploy(program.graph, target, objective=way.objective(None))
    if stated(least) <= most:
        return low
    high = needed(best)
    for _ in range(_STEPS):
        ram = (low + high) // 2
        found = tried(ram)
        if needed(found) <= ram and stated(found) <= most:
            high = needed(found)
        else:
            low = ram
    return high


def needed(deployment: Deployment) -> int:
    """Bytes of the arena, and what is kept from one row of the input to the next."""
    return deployment.decision.figures.ram


def stated(deployment: Deployment) -> int:
    """The time of the calls, and of moving rows."""
    return deployment.decision.figures.time


def limit_of(name: str, way: Way, program: Program, target: Target) -> int | None:
    """The most bytes of the arena that are asked for; rows without overlap are given what they have with it."""
    if way is BEFORE:
        return None
    targets = TARGETS.get(name)
    if targets is not None:
        return targets.get(way.name, targets["rows, overlap"])
    before = deploy(program.graph, target, objective=BEFORE.objective(None))
    with way.followed(None):
        return smallest(program, target, way, round(MORE_TIME * stated(before)))


def measured(name: str, program: Program, sample: torch.Tensor, board: str, way: Way) -> Row:
    """One firmware, built and run."""
    target = load_board(board).target
    limit = limit_of(name, way, program, target)
    images = name not in (*SEQUENCES, *TRANSFORMERS)
    data = (sample.permute(0, 2, 3, 1) if images else sample).contiguous().numpy()
    with way.followed(limit), tempfile.TemporaryDirectory(prefix="tinyet-memory-") as where:
        project = tinyet.generate(program, board, Path(where) / name, kind="cmake", input_rows=way.given)
        size = project.build()
        result = project.validate(data, on="qemu", estimate=counts_cycles(target))
        plan = project.deployment.plan
    return Row(
        network=name,
        way=way.name,
        arena=result.arena_bytes,
        target=TARGETS.get(name, {}).get(way.name),
        bound=plan.lower_bound,
        optimal=plan.optimal,
        by_rows=sum(len(fusion_group.nodes) for fusion_group in plan.fusion_groups),
        added_macs=sum(added_macs(fusion_group) for fusion_group in plan.fusion_groups),
        macs=result.macs,
        cycles=None if result.estimate is None else result.estimate.cycles,
        instructions=result.count or 0,
        stack=result.stack_bytes,
        stack_bound=None if result.stack_bound is None else result.stack_bound.bytes,
        flash=size.flash - size.sample,
        bit_exact=result.bit_exact,
    )


def number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def more_than(row: Row, before: Row) -> tuple[str, str]:
    """Instructions, and time, beyond those of whole layers."""
    return f"{row.instructions / before.instructions - 1:+.1%}", f"{row.time / before.time - 1:+.1%}"


def cells(row: Row, before: Row | None) -> list[str]:
    more, longer = ("", "") if before is None else more_than(row, before)
    return [
        row.way,
        number(row.arena),
        number(row.bound),
        number(row.target),
        "" if row.target is None else "yes" if row.met else "NO",
        number(row.by_rows),
        f"{row.added_macs / row.macs:.1%}",
        number(row.cycles),
        longer if row.cycles is not None else "",
        number(row.instructions),
        more,
        number(row.stack),
        number(row.stack_bound),
        number(row.flash),
        "yes" if row.bit_exact else "NO",
    ]


COLUMNS = (
    *("", "arena", "bound", "target", "met", "layers by rows", "MACs added", "cycles", "more"),
    *("instructions", "more"),
    *("stack", "at most", "flash", "bit-exact"),
)


def well(row: Row, before: Row | None) -> bool:
    """Whether a firmware computes what it should, within the target and at the price that was set."""
    dear = before is not None and row.by_rows > 0 and row.time > MORE_TIME * before.time
    return row.bit_exact and row.met and not dear and row.added_macs <= (MORE_MACS - 1) * row.macs


def of_network(name: str, board: str, ways: Sequence[Way], console: Console) -> tuple[list[Row], bool]:
    """The firmwares of a network, in a table; whether all is well with them."""
    program, samples = program_of(name, 1, channels_last=name not in (*SEQUENCES, *TRANSFORMERS))
    ways = [way for way in ways if not (way.given and name in TRANSFORMERS)]
    rows: list[Row] = []
    for way in ways:
        try:
            rows.append(measured(name, program, samples, board, way))
            console.print(
                f"{name}, {way.name}: arena {rows[-1].arena:,}, {rows[-1].instructions:,} instructions"
            )
        except TinyetError as error:
            console.print(f"{name}, {way.name}: {error}")
    before = next((row for row in rows if row.way == BEFORE.name), None)
    lines = [cells(row, before) for row in rows]
    show(console, f"{name} on {board}", COLUMNS, lines, 1)
    return rows, len(rows) == len(ways) and all(well(row, before) for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join((*NETWORKS, *SEQUENCES)))
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--way", action="append", choices=[way.name for way in WAYS])
    parser.add_argument("--json", type=Path)
    record.add_option(parser)
    options = parser.parse_args()
    unknown = sorted({*options.networks} - {*NETWORKS, *SEQUENCES})
    if unknown:
        parser.error(f"no network is called {', '.join(unknown)}")
    torch.set_num_threads(1)
    console = Console(width=170)
    rows: list[Row] = []
    good = True
    for name in options.networks or NETWORKS:
        ways = [way for way in WAYS if not options.way or way.name in options.way]
        found, well_done = of_network(name, options.board, ways, console)
        rows += found
        good = good and well_done
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    record.write(options.results, [asdict(row) for row in rows])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
