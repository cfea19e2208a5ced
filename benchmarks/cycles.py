# SPDX-License-Identifier: Apache-2.0
"""What an estimate of cycles depends on: DS-CNN and ResNet8 of MLPerf Tiny, with other assumptions about the core.

    python benchmarks/cycles.py [--results NAME]
    python benchmarks/cycles.py --aims [NETWORK ...] [--results NAME]
    python benchmarks/cycles.py --measures [BOARD ...] [--network NAME ...] [--optimize AIM ...] [--results NAME]

One sample of each network is run on an emulated board, and its profile is summed up several times: by the core's model,
with all that its source leaves open at its least and at its most; of a table with other cycles for each refill of the
pipeline and without loads that overlap; of a pipeline with one instruction in a cycle. The code of the Cortex-M55 is
estimated for the Cortex-M85, too, which no emulator has; DS-CNN for a board whose flash waits. Needs what
benchmarks/mlperf_tiny.py needs.

--aims: what `speed`, `balanced` and `size` choose for networks, on a board whose flash does not let the core wait and
on one whose flash does: estimated cycles beside those that the kernels stated, instructions, flash and arena.

--measures: networks on other cores, planned by the cycles that kernels state there, and by instructions; a board may be
one of benchmarks/boards/, whose flash is as stated. By default DS-CNN and ResNet8, for `speed` and for `balanced`.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record
from benchmarks.programs import TRAINED, program_of
from tinyet.cycles.code import read_code
from tinyet.cycles.estimate import Estimator
from tinyet.cycles.inference import cycle_model
from tinyet.cycles.profile import Profiler
from tinyet.opset import cost
from tinyet.planning.objective import OPTIMIZE, Optimize
from tinyet.timing.cores import CORES, ENDS
from tinyet.timing.instruction import Instruction
from tinyet.timing.model import Model
from tinyet.timing.pipeline import Pipeline
from tinyet.timing.table import Core
from tinyet.timing.work import Work, total
from tinyet.validation import sample_bytes

MEASURED = (
    ("ds_cnn", "mps2_an386"),
    ("resnet8", "mps2_an386"),
    ("ds_cnn", "mps2_an385"),
    ("ds_cnn", "microbit"),
    ("ds_cnn", "mps2_an505"),
    ("ds_cnn", "mps2_an500"),
    ("resnet8", "mps2_an500"),
    ("ds_cnn", "mps3_an547"),
    ("resnet8", "mps3_an547"),
)
"""Networks and boards."""

ALSO = {"cortex-m55": "cortex-m85"}
"""Cores whose code is estimated for another core, too."""

WAITING = "nucleo_f446re"
"""A board whose file says how its flash waits."""
QUICK = "mps2_an386"
"""One with the same core, of which nobody says it."""
AIMED = ("ds_cnn", "resnet8", "mobilenet_v1", "autoencoder")
COMPARED = ("mps2_an385", "riscv32_virt", "mps2_an500", "mps2_an505", "mps3_an547", "ek_ra8d1")
"""Boards of other cores, on which both measures are compared."""


class WithoutOverlap(Core):
    """A core that begins a load when the one before has ended."""

    def _beside(self, before: Instruction | None, now: Instruction) -> int:
        return max(0, super()._beside(before, now))


def assumptions(cpu: str) -> dict[str, Model]:
    """The core's model, and with something assumed otherwise, where its source leaves that open."""
    core = CORES[cpu]
    found: dict[str, Model] = {"table": core}
    if cpu in ENDS:
        found["least"], found["most"] = ENDS[cpu]
    if isinstance(core, Pipeline):
        found["one in a cycle"] = dataclasses.replace(core, width=1)
    if isinstance(core, Core) and core.pairs:
        for cycles in (1, 3):
            refill = dict.fromkeys(core.taken, cycles)
            found[f"refill {cycles}"] = dataclasses.replace(core, taken=refill)
        fields = [getattr(core, field.name) for field in dataclasses.fields(core)]
        found["no overlap"] = WithoutOverlap(*fields)
    return found


def estimates(name: str, board: str) -> Iterator[dict[str, object]]:
    """Of each core that is estimated: cycles of an inference by assumption, and its instructions."""
    with tempfile.TemporaryDirectory(prefix="tinyet-cycles-") as where:
        folder = Path(where)
        program, data = program_of(name, 1)
        project = tinyet.generate(program, board, folder / "project", kind="cmake")
        project.build()
        inputs = data.numpy()
        result = project.validate(inputs, on="qemu", estimate=True)
        assert result.bit_exact
        assert result.estimate is not None
        model = cycle_model(project.board, folder)
        elf = project.firmware("qemu", folder)
        code = read_code(elf)
        raw = sample_bytes(project.deployment, project.samples((inputs,), None, None))
        with Profiler(model.machine, elf, code, model.plugin, folder, None, timeout=600) as profiler:
            runs = [profiler.run(sample) for sample in raw]
        cpu = project.board.cpu
        for core in (cpu, *([ALSO[cpu]] if cpu in ALSO else [])):
            cycles: dict[str, int] = {}
            for what, other in assumptions(core).items():
                layers, between = Estimator(other, code, None).mean(
                    profiler.empty, runs, project.deployment.order
                )
                cycles[what] = total((*layers, between)).cycles
            made: dict[str, object] = {
                "network": name,
                "board": board,
                "core": CORES[core].title,
                "cycles": cycles,
            }
            if core == cpu:
                assert cycles["table"] == result.estimate.cycles, "the board's flash does not wait"
                made["layers"] = [
                    _row(layer.name, layer.macs, layer.estimate or Work()) for layer in result.layers
                ]
                made["between"] = _row("between layers", 0, result.estimate.between)
                made["whole"] = _row("whole", result.macs, result.estimate.whole)
                made["clock_hz"] = result.estimate.clock_hz
            yield {**made, "instructions": result.estimate.whole.instructions}


def _row(name: str, macs: int, work: Work) -> dict[str, object]:
    return {"name": name, "macs": macs, **dataclasses.asdict(work)}


def waiting(name: str, board: str) -> dict[str, object]:
    """Cycles with the flash's waits, and these; the milliseconds."""
    with tempfile.TemporaryDirectory(prefix="tinyet-cycles-") as where:
        program, data = program_of(name, 1)
        project = tinyet.generate(program, board, Path(where) / "project")
        estimate = project.validate(data.numpy(), on="host", estimate=True).estimate
        assert estimate is not None
        return {
            "network": name,
            "board": board,
            "cycles": estimate.cycles,
            "wait_cycles": estimate.whole.wait_cycles,
            "milliseconds": round(estimate.milliseconds, 1),
        }


def aims(name: str) -> Iterator[dict[str, object]]:
    """A row for each board and aim."""
    program, data = program_of(name, 1)
    for board, aim in itertools.product((QUICK, WAITING), OPTIMIZE):
        with tempfile.TemporaryDirectory(prefix="tinyet-cycles-") as where:
            project = tinyet.generate(program, board, Path(where) / "project", kind="cmake", optimize=aim)
            if board == QUICK:
                project.build()  # which QEMU runs as itself
            result = project.validate(data.numpy(), on="host", estimate=True)
            assert result.bit_exact
            assert result.estimate is not None
            whole, figures = result.estimate.whole, project.deployment.decision.figures
            yield {
                "network": name,
                "board": board,
                "optimize": aim,
                "cycles": whole.cycles,
                "wait_cycles": whole.wait_cycles,
                "instructions": whole.instructions,
                "stated_cycles": figures.time,
                "flash_bytes": figures.flash,
                "arena_bytes": project.deployment.plan.arena_bytes,
            }


@contextmanager
def by_instructions() -> Iterator[None]:
    """Plans are compared by instructions within it, as on cores without a model."""
    measured = cost.measured

    def without_cycles(core: str) -> cost.Measured | None:
        table = measured(core)
        return None if table is None else dataclasses.replace(table, cores=frozenset())

    with patch.object(cost, "measured", without_cycles):
        yield


def measures(board: str, networks: Sequence[str], aims: Sequence[Optimize]) -> Iterator[dict[str, object]]:
    """A row for each network, aim and measure of time."""
    own = Path(__file__).parent / "boards" / f"{board}.toml"
    place, kind = (own, "arduino") if own.is_file() else (board, "cmake")
    for name, aim in itertools.product(networks, aims):
        program, data = program_of(name, 1)
        for cycles in (True, False):
            with tempfile.TemporaryDirectory(prefix="tinyet-cycles-") as where:
                with nullcontext() if cycles else by_instructions():
                    project = tinyet.generate(
                        program, place, Path(where) / "project", kind=kind, optimize=aim
                    )
                    deployment = project.deployment
                flash = deployment.decision.figures.flash
                if kind == "cmake":
                    size = project.build()
                    flash = size.flash - size.sample
                result = project.validate(data.numpy(), on="host", estimate=True)
                assert result.bit_exact
                assert result.estimate is not None
                whole = result.estimate.whole
                yield {
                    "network": name,
                    "board": board,
                    "core": result.estimate.model,
                    "optimize": aim,
                    "compared_by": "cycles" if cycles else "instructions",
                    "cycles": whole.cycles,
                    "cycles_at_least": (result.estimate.ends or (whole.cycles,))[0],
                    "cycles_at_most": (result.estimate.ends or (whole.cycles,))[-1],
                    "stated_cycles": deployment.decision.figures.time if cycles else None,
                    "instructions": whole.instructions,
                    "flash_bytes": flash,
                    "arena_bytes": deployment.plan.arena_bytes,
                }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--aims", nargs="*", metavar="NETWORK", help=f"without names {' '.join(AIMED)}")
    parser.add_argument("--measures", nargs="*", metavar="BOARD", help=f"without names {' '.join(COMPARED)}")
    parser.add_argument("--network", action="append", help="of --measures")
    parser.add_argument("--optimize", action="append", choices=OPTIMIZE, help="of --measures")
    record.add_option(parser)
    arguments = parser.parse_args()
    compared = arguments.network or TRAINED, arguments.optimize or ("speed", "balanced")
    boards = () if arguments.measures is None else arguments.measures or COMPARED
    rows: list[dict[str, object]] = []
    if arguments.aims is not None or arguments.measures is not None:
        asked = itertools.chain(
            *(map(aims, arguments.aims or AIMED) if arguments.aims is not None else ()),
            *(measures(board, *compared) for board in boards),
        )
        for row in asked:
            rows.append(row)
            print(row, flush=True)
        record.write(arguments.results, rows)
        return
    for name, board in MEASURED:
        for row in estimates(name, board):
            rows.append(row)
            print(row["network"], row["core"], row["instructions"], row["cycles"], flush=True)
    flash = waiting("ds_cnn", WAITING)
    print(flash, flush=True)
    record.write(arguments.results, {"assumptions": rows, "flash": flash})


if __name__ == "__main__":
    main()
