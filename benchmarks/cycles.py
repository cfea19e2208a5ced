# SPDX-License-Identifier: Apache-2.0
"""What an estimate of cycles depends on: DS-CNN and ResNet8 of MLPerf Tiny, with other assumptions about the core.

    python benchmarks/cycles.py [--results NAME]

One sample of each network is run on an emulated board, and its profile is summed up several times: as the core's table
has it, with other cycles for each refill of the pipeline, and without loads that overlap. DS-CNN is estimated for a
board whose flash waits, too. Needs what benchmarks/mlperf_tiny.py needs.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record
from benchmarks.programs import program_of
from tinyet.cycles.code import read_code
from tinyet.cycles.cores import Core
from tinyet.cycles.estimate import Estimator, Work, total
from tinyet.cycles.inference import cycle_model
from tinyet.cycles.profile import Profiler
from tinyet.cycles.thumb import Instruction
from tinyet.validation import sample_bytes

MEASURED = (
    ("ds_cnn", "mps2_an386"),
    ("resnet8", "mps2_an386"),
    ("ds_cnn", "mps2_an385"),
    ("ds_cnn", "microbit"),
)
"""Networks and boards."""

WAITING = "nucleo_f446re"
"""A board whose file says how its flash waits."""


class WithoutOverlap(Core):
    """A core that begins a load when the one before has ended."""

    def _beside(self, before: Instruction | None, now: Instruction) -> int:
        return max(0, super()._beside(before, now))


def assumptions(core: Core) -> dict[str, Core]:
    """The core as its table has it, and with one thing assumed otherwise, where its table leaves that open."""
    found = {"table": core}
    if core.pairs:
        for cycles in (1, 3):
            refill = dict.fromkeys(core.taken, cycles)
            found[f"refill {cycles}"] = dataclasses.replace(core, taken=refill)
        fields = [getattr(core, field.name) for field in dataclasses.fields(core)]
        found["no overlap"] = WithoutOverlap(*fields)
    return found


def estimates(name: str, board: str) -> dict[str, object]:
    """Cycles of an inference by assumption, and its instructions."""
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
        raw = sample_bytes(project.deployment.graph.user_inputs, project.samples((inputs,), None, None))
        cycles: dict[str, int] = {}
        with Profiler(model.machine, elf, code, model.plugin, folder, None, timeout=600) as profiler:
            runs = [profiler.run(sample) for sample in raw]
            for what, core in assumptions(model.core).items():
                layers, between = Estimator(core, code, None).mean(
                    profiler.empty, runs, project.deployment.order
                )
                cycles[what] = total((*layers, between)).cycles
        assert cycles["table"] == result.estimate.cycles, "the board's flash does not wait"
        return {
            "network": name,
            "board": board,
            "core": model.core.title,
            "instructions": result.estimate.whole.instructions,
            "cycles": cycles,
            "layers": [_row(layer.name, layer.macs, layer.estimate or Work()) for layer in result.layers],
            "between": _row("between layers", 0, result.estimate.between),
            "whole": _row("whole", result.macs, result.estimate.whole),
            "clock_hz": result.estimate.clock_hz,
        }


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    record.add_option(parser)
    arguments = parser.parse_args()
    rows = []
    for name, board in MEASURED:
        rows.append(estimates(name, board))
        print(rows[-1], flush=True)
    flash = waiting("ds_cnn", WAITING)
    print(flash, flush=True)
    record.write(arguments.results, {"assumptions": rows, "flash": flash})


if __name__ == "__main__":
    main()
