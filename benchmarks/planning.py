# SPDX-License-Identifier: Apache-2.0
"""How long tinyet works on long networks: chains of layers, and recurrent ones that torch has unrolled step by step.

    python benchmarks/planning.py [--only NAME ...] [--steps]

CPU seconds: `compile` is the way from the module to the program, of which torch's and torchao's export and quantization
take what stands beside it; `plan` is kernels, order and memory for the board, `generate` a whole project. `--steps`
counts the lines of tinyet that `plan` executes, too, which are the same on every machine.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks.recurrent import unrolled
from tinyet.boards import load_board
from tinyet.deployment import deploy
from tinyet.quantization import quantize

BOARD = "mps2_an386"


class Unrolled(nn.Module):
    """A recurrent layer that is taken apart before it is compiled: every step has nodes of its own."""

    def __init__(self, kind: type[nn.LSTM | nn.GRU]) -> None:
        super().__init__()
        self.layer = kind(8, 16, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0][:, -1])


def _chain(layer: Callable[[], nn.Module], count: int) -> nn.Module:
    return nn.Sequential(*(part for _ in range(count) for part in (layer(), nn.ReLU())))


def _conv() -> nn.Module:
    return nn.Conv2d(4, 4, 3, padding=1)


def _linear() -> nn.Module:
    return nn.Linear(16, 16)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "lstm_50": (lambda: Unrolled(nn.LSTM), (1, 50, 8)),
    "gru_50": (lambda: Unrolled(nn.GRU), (1, 50, 8)),
    **{f"conv_{n}": (lambda n=n: _chain(_conv, n), (1, 4, 8, 8)) for n in (60, 240, 1000)},
    **{f"linear_{n}": (lambda n=n: _chain(_linear, n), (1, 16)) for n in (60, 240, 1000)},
}


class Foreign:
    """CPU seconds in the functions of torch and torchao that do the export and the quantization."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._inside = False
        for owner, name in (
            (torch.export, "export"),
            (torch.export.ExportedProgram, "run_decompositions"),
            (quantize, "prepare_pt2e"),
            (quantize, "convert_pt2e"),
        ):
            setattr(owner, name, self._timed(getattr(owner, name)))

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            if self._inside:
                return function(*arguments, **options)
            self._inside, start = True, time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                self._inside = False
                self.seconds += time.process_time() - start

        return timed


def lines_of(function: Callable[[], object]) -> int:
    """Lines of tinyet that a call executes."""
    count = 0

    def trace(frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal count
        if event == "call" and "tinyet" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(None)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--steps", action="store_true", help="count lines of the planning, too (slow)")
    arguments = parser.parse_args()
    sys.setrecursionlimit(20_000)
    target = load_board(BOARD).target
    heads = ("calls", "compile", "of it torch", "plan", "generate", "arena", "lines")
    print(f"{'network':12}", *(f"{head:>12}" for head in heads), flush=True)
    foreign = Foreign()
    for name in arguments.only:
        torch.manual_seed(0)
        make, shape = NETWORKS[name]
        module, batches = make().eval(), [torch.randn(shape) for _ in range(4)]
        foreign.seconds = 0.0
        start = time.process_time()
        if isinstance(module, Unrolled):
            program = tinyet.compile(unrolled(module, batches[0]), calibration=batches, name=name)
        else:
            program = tinyet.compile(module, (batches[0],), calibration=batches, name=name)
        compiled = time.process_time()
        deployment = deploy(program.graph, target)
        planned = time.process_time()
        with tempfile.TemporaryDirectory() as where:
            tinyet.generate(program, BOARD, Path(where) / "project")
        generated = time.process_time()
        lines = lines_of(lambda graph=program.graph: deploy(graph, target)) if arguments.steps else None
        seconds = (compiled - start, foreign.seconds, planned - compiled, generated - planned)
        cells = [f"{second:.1f} s" for second in seconds]
        row = (len(deployment.steps), *cells, deployment.plan.arena_bytes, "–" if lines is None else lines)
        print(f"{name:12}", *(f"{cell!s:>12}" for cell in row), flush=True)


if __name__ == "__main__":
    main()
