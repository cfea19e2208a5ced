# SPDX-License-Identifier: Apache-2.0
"""What tinyet says of a model's flash and RAM before anything is built, beside what the linker says afterwards.

    python benchmarks/footprint.py [--results NAME]

Ten networks on three boards. The linker's figures are the sizes of the symbols of the built firmware: const arrays,
kernel parameters, arena and state. `folded`: bytes of small arrays, counted as linked, that the compiler has turned
into instructions. Code has no figure before the build, so it stands apart. Ends with 1 when said and linked differ.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks import record
from tinyet.boards import load_board
from tinyet.build.size import measure
from tinyet.deployment import deploy

BOARDS = ("mps2_an386", "microbit", "riscv32_virt")


class Recurrent(nn.Module):
    """All outputs of a recurrent layer: its weights are those of every step."""

    def __init__(self, kind: type[nn.LSTM | nn.GRU]) -> None:
        super().__init__()
        self.layer = kind(4, 8, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0][:, -1])


class Twice(nn.Module):
    """One layer applied again and again."""

    def __init__(self, layer: nn.Module, times: int) -> None:
        super().__init__()
        self.layer = layer
        self.times = times

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.times):
            x = torch.relu(self.layer(x))
        return x


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(8, 8, 3, padding=1) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.second(torch.relu(self.first(x))))


def networks() -> Iterator[tuple[str, nn.Module, tuple[int, ...], bool]]:
    """(name, module, input's shape, whether it is quantized)."""
    yield "mlp", nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 4)), (1, 16), True
    yield "mlp_float", nn.Sequential(nn.Linear(16, 24), nn.Tanh(), nn.Linear(24, 4)), (1, 16), False
    yield (
        "conv",
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        (1, 3, 12, 12),
        True,
    )
    yield "conv_float", nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AvgPool2d(2)), (1, 3, 12, 12), False
    depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
    yield "separable", nn.Sequential(depthwise, nn.ReLU(), nn.Conv2d(8, 16, 1), nn.ReLU()), (1, 8, 8, 8), True
    yield "residual", Residual(), (1, 8, 8, 8), True
    yield "shared_linear", Twice(nn.Linear(16, 16), 6), (1, 16), True
    yield "shared_conv_float", Twice(nn.Conv2d(4, 4, 3, padding=1), 4), (1, 4, 6, 6), False
    yield "lstm", Recurrent(nn.LSTM), (1, 6, 4), True
    yield "gru", Recurrent(nn.GRU), (1, 6, 4), True


@dataclass(frozen=True)
class Footprint:
    """Bytes of a model's symbols."""

    constants: int
    parameters: int
    arena: int
    state: int

    @property
    def row(self) -> tuple[int, ...]:
        return self.constants, self.parameters, self.arena, self.state


def said(program: tinyet.Program, board: str) -> Footprint:
    found = deploy(program.graph, load_board(board).target)
    return Footprint(
        found.constant_bytes, found.parameter_bytes, max(found.plan.arena_bytes, 1), found.state_bytes
    )


def linked(program: tinyet.Program, board: str) -> tuple[Footprint, int, int]:
    """What the linker says, with arrays of which the compiler has made code; the bytes of those; and bytes of the code
    and everything else in flash."""
    deployment = deploy(program.graph, load_board(board).target)
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        project = tinyet.generate(program, board, where / "project", project="cmake")
        size = measure(project.firmware("qemu", where / "build", compile_anew=True))
        text = next((where / "project").rglob(f"{program.name}.c")).read_text()
    arrays = re.findall(r"^static const (?:TINYET_ROM )?\w+ (\w+)\[", text, re.MULTILINE)
    parameters = re.findall(r"^static const (?:TINYET_ROM )?\w+ (\w+) =", text, re.MULTILINE)
    states = re.findall(r"^static uint8_t (\w+)\[", text, re.MULTILINE)
    of = {s.name: s.bytes for s in size.symbols}
    folded = sum(a.bytes for a, name in zip(deployment.arrays, arrays, strict=True) if name not in of)

    def total(names: Sequence[str]) -> int:
        return sum(of.get(name, 0) for name in names)

    found = Footprint(
        total(arrays) + folded, total(parameters), total([f"{program.name}_arena"]), total(states)
    )
    return found, folded, size.flash - total(arrays) - found.parameters - size.sample


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    record.add_option(parser)
    options = parser.parse_args()
    torch.manual_seed(0)
    wrong = 0
    rows = []
    columns = ("constants", "parameters", "arena", "state")
    print(
        f"{'network':18} {'board':13}",
        *(f"{c:>17}" for c in columns),
        f"{'folded':>8} {'harness and code':>17}",
    )
    for name, module, shape, quantized in networks():
        batches = [torch.randn(shape) for _ in range(8)] if quantized else None
        program = tinyet.compile(module.eval(), (torch.randn(shape),), calibration=batches, name=name)
        for board in BOARDS:
            before, (after, folded, rest) = said(program, board), linked(program, board)
            wrong += before != after
            sizes = dict(zip(columns, before.row, strict=True))
            rows.append({"network": name, "board": board, **sizes, "folded": folded, "code": rest})
            cells = [
                f"{a} = {b}" if a == b else f"{a} ≠ {b}" for a, b in zip(before.row, after.row, strict=True)
            ]
            print(
                f"{name:18} {board:13}",
                *(f"{cell:>17}" for cell in cells),
                f"{folded:>8} {rest:>17}",
                flush=True,
            )
    print(f"{wrong} of {len(BOARDS) * 10} differ")
    record.write(options.results, rows)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
