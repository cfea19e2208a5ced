# SPDX-License-Identifier: Apache-2.0
"""Many programs side by side in one graph, so that one compilation runs them all: in C on this machine, and on an
emulated board."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.ops.cases import placed_quickly, run_on_host
from tests.ops.emulated import run_samples
from tinyet.boards.cpus import HOST
from tinyet.delegates import delegates_or_default
from tinyet.ir import Array, Graph, Node, Tensor
from tinyet.program import Program


def side_by_side(programs: Sequence[Program]) -> Graph:
    """One graph with the inputs, nodes and outputs of all, each program's tensors under names of their own."""
    inputs: list[Tensor] = []
    outputs: list[Tensor] = []
    nodes: list[Node] = []
    for number, program in enumerate(programs):
        again: dict[Tensor, Tensor] = {}

        def renamed(t: Tensor, number: int = number, again: dict[Tensor, Tensor] = again) -> Tensor:
            if t not in again:
                again[t] = Tensor(f"n{number}_{t.name}", t.type, t.data)
            return again[t]

        inputs += [renamed(t) for t in program.inputs]
        outputs += [renamed(t) for t in program.outputs]
        nodes += [
            node.replace(
                inputs=[None if t is None else renamed(t) for t in node.inputs],
                outputs=[renamed(t) for t in node.outputs],
            )
            for node in program.graph.nodes
        ]
    return Graph("cases", tuple(inputs), tuple(outputs), tuple(nodes))


Samples = Sequence[Sequence[Array]]
"""The inputs of all programs one after another, in the form that programs take them, for each run."""


def wanted(programs: Sequence[Program], samples: Samples) -> list[list[Array]]:
    """What the host reference computes: all outputs one after another, for each run."""
    found = []
    for sample in samples:
        rest = list(sample)
        row: list[Array] = []
        for program in programs:
            own, rest = rest[: len(program.inputs)], rest[len(program.inputs) :]
            row += program.outputs_for(own)
        found.append(row)
    return found


def on_host(graph: Graph, samples: Samples) -> list[bytes]:
    """The output bytes of each run of the generated C on this machine, under sanitizers."""
    data = b"".join(np.ascontiguousarray(a).tobytes() for sample in samples for a in sample)
    raw = run_on_host(placed_quickly(graph, HOST), data)
    size = len(raw) // len(samples)
    return [raw[i * size : (i + 1) * size] for i in range(len(samples))]


def on_board(graph: Graph, samples: Samples, board: str) -> list[bytes]:
    """The same on an emulated board, with the kernels that a user's project has."""
    return run_samples(graph, samples, board, delegates_or_default(None))[1]


def differing(
    owners: Sequence[str], wanted_rows: Sequence[Sequence[Array]], found: Sequence[bytes]
) -> list[str]:
    """Of which programs an output is not the host reference's in every bit. owners: each output's program."""
    wrong: dict[str, None] = {}
    for row, raw in zip(wanted_rows, found, strict=True):
        position = 0
        for owner, array in zip(owners, row, strict=True):
            size = array.nbytes
            if raw[position : position + size] != np.ascontiguousarray(array).tobytes():
                wrong[owner] = None
            position += size
        assert position == len(raw)
    return list(wrong)
