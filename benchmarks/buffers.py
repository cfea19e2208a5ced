# SPDX-License-Identifier: Apache-2.0
"""What the arena has less of where inputs and outputs are the caller's, and what entry points of one module share.

    python benchmarks/buffers.py [NETWORK]... [--board mps2_an386] [--json FILE] [--results NAME]

Each network is planned with its ends in the arena, and in buffers of the caller's, for the usual aim and for size. Each
of the usual ones is built and run on the emulated board, and compared with the host reference. Then three entry points
of one module, the trained DS-CNN and two heads on its body, become three projects, and one; all are built and run.
Fails when one byte differs. Flash is the linker's figure, without the demonstration's samples.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import torch
from rich.console import Console
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks.programs import data_of, load_models, program_of, show
from benchmarks.record import add_option, write
from tinyet.boards import load_board
from tinyet.budget.fit import fitted, objective_of
from tinyet.program import Program

NETWORKS = ("ds_cnn", "resnet8", "mobilenet_v1", "autoencoder")
ENTRIES = ("words", "speaker", "both")


class Heads(nn.Module):
    """The trained network's body with its own head, and with another of random weights."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.other = nn.Linear(64, 8)

    def body(self, x: torch.Tensor) -> torch.Tensor:
        """(N, 1, 49, 10) → (N, 64)."""
        x = self.network.blocks(self.network.conv(x))
        return x.mean((2, 3))

    def words(self, x: torch.Tensor) -> torch.Tensor:
        return self.network.classifier(self.body(x))

    def speaker(self, x: torch.Tensor) -> torch.Tensor:
        return self.other(self.body(x))

    def both(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shared = self.body(x)
        return self.network.classifier(shared), self.other(shared)


def arenas(program: Program, board: str) -> dict[str, object]:
    """Bytes of the arena by aim and place of the ends, and of the ends. Raises SystemExit where a bit differs."""
    target = load_board(board)
    found: dict[str, object] = {"ends": sum(t.type.bytes for t in (*program.inputs, *program.outputs))}
    for aim in ("balanced", "size"):
        for where in ("arena", "caller"):
            made = fitted(program.graph, target, objective_of(target, aim, buffers=where))
            found[f"{aim}, {where}"] = made.plan.arena_bytes
    with tempfile.TemporaryDirectory() as folder:
        project = tinyet.generate(program, board, folder, kind="cmake", buffers="caller")
        project.build()
        if not project.validate(on="qemu", max_samples=1).bit_exact:
            raise SystemExit(f"{program.name} differs")
    return found


def entry_points(board: str) -> dict[str, object]:
    """Bytes of flash and arena of three entry points apart, and as one project."""
    models = load_models()
    calibration, _, _, _ = data_of(models, "ds_cnn")
    torch.manual_seed(0)
    net = Heads(models.ds_cnn()).eval()
    programs = [
        tinyet.compile(
            tinyet.entry(net, name), (calibration[:1],), calibration=calibration.split(8), name=f"net_{name}"
        )
        for name in ENTRIES
    ]
    apart = []
    for program in programs:
        with tempfile.TemporaryDirectory() as folder:
            project = tinyet.generate(program, board, folder, kind="cmake")
            size = project.build()
            apart.append((size.flash - size.sample, project.deployment.plan.arena_bytes))
    with tempfile.TemporaryDirectory() as folder:
        schedule = " | ".join(program.name for program in programs)
        together = tinyet.generate(programs, board, folder, kind="cmake", schedule=schedule, name="net")
        assert isinstance(together, tinyet.TogetherProject)
        size = together.build()
        if not together.validate_each(on="qemu", max_samples=2).bit_exact or not tinyet.audit(together).ok:
            raise SystemExit("entry points differ")
        parameters = together.shared_parameters
        return {
            "flash": [flash for flash, _ in apart],
            "arena": [arena for _, arena in apart],
            "flash_together": size.flash - size.sample,
            "arena_together": together.shared.arena_bytes,
            "constants_together": sum(d.constant_bytes for d in together.shared.deployments.values())
            - together.common.saved_bytes,
            "saved_bytes": together.common.saved_bytes,
            "parameters": len(parameters),
            "once": sum(each.once for each in parameters),
        }


def main() -> int:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="NETWORK")
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--json", type=Path, metavar="FILE")
    add_option(parser)
    options = parser.parse_args()
    figures = {
        "arenas": [{"name": n, **arenas(program_of(n, 1)[0], options.board)} for n in options.networks],
        "entries": entry_points(options.board),
    }
    heads = ("network", "inputs, outputs", "balanced, arena", "caller", "size, arena", "caller")
    rows = [tuple(f"{v:,}" if isinstance(v, int) else v for v in row.values()) for row in figures["arenas"]]  # type: ignore[attr-defined]
    show(Console(), f"bytes of arena on {options.board}", heads, rows, 1)
    Console().print(figures["entries"])
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    write(options.results, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
