# SPDX-License-Identifier: Apache-2.0
"""What a program costs on a board, before anything is built: every layer, its kernel, its bytes, its source line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tinyet.boards import Board, load_board
from tinyet.budget.fit import Contributor, largest_constants, peak_tensors
from tinyet.delegates import Delegates, delegates_or_default
from tinyet.deployment import Deployment, deploy
from tinyet.ir import Tensor, place_of
from tinyet.program import Program


@dataclass(frozen=True)
class LayerAnalysis:
    """One call of the generated code. Bytes: `constant_bytes` in flash, `output_bytes` and `scratch_bytes` in
    the arena. name: as every report names it; value: the tensor that it computes; line: `file:line`, source: the line's
    text behind it, both empty where they are not known."""

    index: int
    name: str
    value: str
    op: str
    kernel: str
    delegate: str
    dtype: str
    shape: tuple[int, ...]
    macs: int
    constant_bytes: int
    output_bytes: int
    scratch_bytes: int
    refusals: tuple[str, ...]
    line: str
    source: str

    @property
    def label(self) -> str:
        """The layer as every report names it."""
        return place_of(self.name, self.line)


@dataclass(frozen=True)
class Analysis:
    """A program on a board (or on the generic portable target).

    lower_bound: the most bytes that must be alive at once; `optimal` says that no arrangement is smaller than
        arena_bytes.
    peak: what is alive at the worst step. notes: layers that stayed float, and why.
    """

    name: str
    board: str
    cpu: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    macs: int
    constant_bytes: int
    arena_bytes: int
    lower_bound: int
    optimal: bool
    peak_layer: int
    peak: tuple[Contributor, ...]
    largest: tuple[Contributor, ...]
    layers: tuple[LayerAnalysis, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        what = f"{len(self.layers)} layers, {self.macs:,} MACs"
        bytes_ = f"{self.constant_bytes:,} bytes of constants, arena {self.arena_bytes:,} bytes"
        return f"<analysis of {self.name} on {self.board}: {what}, {bytes_}>"

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            "version": 2,
            "name": self.name,
            "board": self.board,
            "cpu": self.cpu,
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "macs": self.macs,
            "constant_bytes": self.constant_bytes,
            "arena_bytes": self.arena_bytes,
            "arena_lower_bound": self.lower_bound,
            "arena_optimal": self.optimal,
            "peak_layer": self.peak_layer,
            "peak": [vars(c) for c in self.peak],
            "largest_constants": [vars(c) for c in self.largest],
            "layers": [
                {**vars(layer), "shape": list(layer.shape), "refusals": list(layer.refusals)}
                for layer in self.layers
            ],
            "notes": list(self.notes),
        }


def analyze(
    program: Program,
    board: str | Path | Board,
    delegates: Delegates | None = None,
    *,
    require_delegate: bool = False,
) -> Analysis:
    """board, delegates, require_delegate: as `generate` takes them. Raises UnsupportedOp when an operator has no kernel
    for the board."""
    target = load_board(board)
    chosen = delegates_or_default(delegates, require=require_delegate)
    deployment = deploy(program.graph, target.target, chosen, require=require_delegate)
    return analyze_deployment(program, deployment, target)


def analyze_deployment(program: Program, deployment: Deployment, board: Board) -> Analysis:
    plan = deployment.plan
    step, peak = peak_tensors(deployment)
    return Analysis(
        name=program.name,
        board=board.name,
        cpu=board.cpu,
        inputs=tuple(_io(t) for t in program.inputs),
        outputs=tuple(_io(t) for t in program.outputs),
        macs=deployment.macs,
        constant_bytes=deployment.constant_bytes,
        arena_bytes=plan.arena_bytes,
        lower_bound=plan.lower_bound,
        optimal=plan.optimal,
        peak_layer=step,
        peak=tuple(peak),
        largest=tuple(largest_constants(deployment)),
        layers=tuple(
            LayerAnalysis(
                index=s.index,
                name=s.name,
                value=s.node.outputs[0].name,
                op=s.node.op,
                kernel=s.choice.kernel.symbol,
                delegate=s.choice.delegate.name,
                dtype=s.choice.kernel.dtypes,
                shape=s.node.outputs[0].shape,
                macs=s.macs,
                constant_bytes=sum(a.bytes for a in deployment.arrays_of(s)),
                output_bytes=sum(t.type.bytes for t in s.node.outputs),
                scratch_bytes=s.call.scratch_bytes,
                refusals=tuple(str(r) for r in s.choice.refusals),
                line=s.line,
                source=s.source,
            )
            for s in deployment.steps
        ),
        notes=tuple(str(n) for n in program.notes),
    )


def _io(tensor: Tensor) -> str:
    return f"{tensor.name}: {tensor.type}"
