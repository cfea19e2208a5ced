# SPDX-License-Identifier: Apache-2.0
"""What a run costs when it takes the newest frames only, beside one that takes the whole window.

    python benchmarks/streaming.py [--board mps2_an386] [--frames 1000] [--only NAME] [--json FILE]
                                   [--results NAME]

Each network is quantized over its window and compiled for the board twice: as it is, and streaming. The streaming
firmware then runs frame after frame on the emulated board, and each of its answers is compared with that of the
network over the window that ends there. A recurrent network is reset where each window begins, since its window begins
with a state of zero: the last answer of each is the window's, those before are the streaming program's on the host, as
all are where frames are in the place of padding. Fails when one byte differs. Instructions are those of a run; bytes of
RAM are arena and states.
"""

import argparse
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks.programs import show
from benchmarks.record import add_option, write
from tests.streamed import harness
from tinyet.boards import Board, load_board
from tinyet.deployment import deploy
from tinyet.device.device import Device, open_device
from tinyet.ir import Array
from tinyet.program import Program
from tinyet.reference import Session

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


class Temporal(nn.Module):
    """Causal residual blocks of dilations 1 to 16 on 32 channels; the last step of (N, 24, 128)."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv1d(24, 32, 1)
        self.blocks = nn.ModuleList(nn.Conv1d(32, 32, 3, dilation=2**i) for i in range(5))
        self.leave = nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.enter(x))
        for block in self.blocks:
            x = F.relu(x + block(F.pad(x, (2 * block.dilation[0], 0))))
        return self.leave(x[:, :, -1])


class WaveNet(nn.Module):
    """Gated convolutions of two taps, dilations 1 to 256, with sums of what each adds; the last step of (N, 1, 512)."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, 16, 1)
        self.filters = nn.ModuleList(nn.Conv1d(16, 16, 2, dilation=2**i) for i in range(9))
        self.gates = nn.ModuleList(nn.Conv1d(16, 16, 2, dilation=2**i) for i in range(9))
        self.mixed = nn.ModuleList(nn.Conv1d(16, 16, 1) for i in range(9))
        self.leave = nn.Conv1d(16, 16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, total = self.enter(x), None
        for wave, gate, mixed in zip(self.filters, self.gates, self.mixed, strict=True):
            past = F.pad(x, (wave.dilation[0], 0))
            y = mixed(torch.tanh(wave(past)) * torch.sigmoid(gate(past)))
            x, total = x + y, y if total is None else total + y
        return self.leave(F.relu(total))[:, :, -1]


def spectrogram() -> nn.Module:
    """Valid convolutions and pools over (N, 1, 64 frames, 20 bands), and a mean of what is left of the window."""
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=(0, 1)), nn.ReLU(), nn.MaxPool2d((1, 2)),
        nn.Conv2d(12, 24, 3, padding=(0, 1)), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 24, 3, padding=(0, 1)), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10),
    )  # fmt: skip


class Recurrent(nn.Module):
    """A recurrent layer of 48 units over (N, 100, 16), and its last state."""

    def __init__(self, kind: type[nn.LSTM | nn.GRU]) -> None:
        super().__init__()
        self.layer = kind(16, 48, batch_first=True)
        self.leave = nn.Linear(48, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.leave(self.layer(x)[0][:, -1])


@dataclass(frozen=True)
class Case:
    shape: tuple[int, ...]
    axis: int
    built: Callable[[], nn.Module]
    edges: str = "exact"
    calibration: Callable[[], list[torch.Tensor]] | None = None


def example(name: str, shape: tuple[int, ...]) -> Case:
    """One of examples/, which pads both sides."""
    path = EXAMPLES / name / "model.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Case(shape, 2, module.model, "continue", lambda: list(module.calibration())[:8])


CASES: dict[str, Callable[[], Case]] = {
    "keywords": lambda: example("keyword_spotting", (1, 1, 49, 13)),
    "gestures": lambda: example("gesture", (1, 3, 128)),
    "temporal": lambda: Case((1, 24, 128), 2, Temporal),
    "wavenet": lambda: Case((1, 1, 512), 2, WaveNet),
    "spectrogram": lambda: Case((1, 1, 64, 20), 2, spectrogram),
    "lstm": lambda: Case((1, 100, 16), 1, lambda: Recurrent(nn.LSTM)),
    "gru": lambda: Case((1, 100, 16), 1, lambda: Recurrent(nn.GRU)),
}


@dataclass(frozen=True)
class Result:
    """instructions: of a run; the most of all runs. ram: bytes of arena and states. flash: bytes of constants."""

    name: str
    hop: int
    frames: int
    instructions: tuple[int, int]
    ram: tuple[int, int]
    flash: tuple[int, int]
    compared: int
    differ: int


def firmware(program: Program, board: Board, where: Path) -> tuple[Device, int, int]:
    deployment = deploy(program.graph, board.target)
    device = open_device(board, harness(program, deployment, board, where))
    return device, deployment.plan.arena_bytes, deployment.constant_bytes


def integers(program: Program, shape: tuple[int, ...], seed: int) -> Array:
    kind = program.inputs[0].dtype
    rng = np.random.default_rng(seed)
    return rng.integers(kind.range[0], kind.range[1] + 1, shape).astype(kind.numpy)


def is_recurrent(program: Program) -> bool:
    return any(node.op in ("lstm", "gru") for node in program.graph.nodes)


def wanted(
    windowed: Program, streaming: Program, data: Array, case: Case, hop: int, frames: int
) -> Iterator[bytes | None]:
    """For each run the answer, or None where no whole window is there."""
    session, window = Session(streaming.graph), case.shape[case.axis]
    recurrent = is_recurrent(streaming)
    for end in range(hop, frames + 1, hop):
        if recurrent and (end - hop) % window == 0:
            session = Session(streaming.graph)
        going_on = None
        if recurrent or case.edges != "exact":
            going_on = session.outputs([cut(data, case.axis, end - hop, end)])[0].tobytes()
        if case.edges != "exact" or (recurrent and end % window):
            yield going_on
        elif end < window:
            yield None
        else:
            yield windowed.outputs_for([cut(data, case.axis, end - window, end)])[0].tobytes()


def cut(data: Array, axis: int, first: int, last: int) -> Array:
    return np.ascontiguousarray(data.take(range(first, last), axis))


def measure(name: str, board: Board, frames: int, where: Path) -> Result:
    case = CASES[name]()
    torch.manual_seed(0)
    model, x = case.built().eval(), torch.randn(case.shape)
    batches = case.calibration() if case.calibration else [torch.randn(case.shape) for _ in range(8)]
    windowed = tinyet.compile(model, (x,), calibration=batches, name=name)
    streaming = windowed.streaming(case.axis, edges=case.edges)
    hop = streaming.inputs[0].shape[case.axis]
    shape = (*case.shape[: case.axis], frames, *case.shape[case.axis + 1 :])
    data = integers(windowed, shape, 1)
    device, *sizes = firmware(windowed, board, where / "windowed")
    with device:
        whole = device.run([integers(windowed, case.shape, 2).tobytes()]).total
    device, *more = firmware(streaming, board, where / "streaming")
    counts, compared, differ = [], 0, 0
    with device:
        answers = wanted(windowed, streaming, data, case, hop, frames)
        recurrent = is_recurrent(streaming)
        for end, answer in zip(range(hop, frames + 1, hop), answers, strict=True):
            if recurrent and (end - hop) % case.shape[case.axis] == 0:
                device.reset()
            run = device.run([cut(data, case.axis, end - hop, end).tobytes()])
            counts.append(run.total)
            if answer is not None:
                compared, differ = compared + 1, differ + (run.outputs[0] != answer)
    ram, flash = zip(sizes, more, strict=True)
    return Result(name, hop, case.shape[case.axis], (whole, max(counts)), ram, flash, compared, differ)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--only", default="", help="networks whose name holds this")
    parser.add_argument("--json", type=Path, default=None)
    add_option(parser)
    options = parser.parse_args()
    board = load_board(options.board)
    results = []
    for name in (n for n in CASES if options.only in n):
        with tempfile.TemporaryDirectory() as where:
            results.append(measure(name, board, options.frames, Path(where)))
    columns = (
        "network",
        "frames",
        "hop",
        "windowed",
        "streaming",
        "fewer",
        "RAM",
        "streaming",
        "answers",
        "differ",
    )
    rows = [
        [
            *(r.name, f"{r.frames}", f"{r.hop}", f"{r.instructions[0]:,}", f"{r.instructions[1]:,}"),
            *(f"{r.instructions[0] / r.instructions[1]:.1f}x", f"{r.ram[0]:,}", f"{r.ram[1]:,}"),
            *(f"{r.compared:,}", f"{r.differ:,}"),
        ]
        for r in results
    ]
    show(Console(width=120), f"instructions of a run and bytes of RAM on {board.name}", columns, rows, 1)
    if options.json is not None:
        options.json.write_text(json.dumps([vars(r) for r in results], indent=2) + "\n", encoding="utf-8")
    write(options.results, [vars(r) for r in results])
    return 1 if any(r.differ for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
