# SPDX-License-Identifier: Apache-2.0
"""Programs on their way into a .tflite file and through both runtimes."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import tinyet
from tests.ops.cases import Case
from tinyet import ops
from tinyet.errors import UnsupportedOp
from tinyet.exporters.tflite.limits import TITLES
from tinyet.ir import Array, Attrs, DType, Graph, Node, Note, QuantParams, Shape, Tensor, TensorType
from tinyet.opset import complaints
from tinyet.oracles.tflite import run_litert, run_tflm
from tinyet.program import Program
from tinyet.reference import Session
from tinyet.tflite import Runtime

Runs = list[list[Array]]

RUNTIMES: dict[Runtime, tuple[str, Callable[[Path, Runs], Runs]]] = {
    "litert": ("ai_edge_litert", run_litert),
    "tflm": ("tflite_micro", run_tflm),
}
INSTALLED = [name for name, (module, _) in RUNTIMES.items() if importlib.util.find_spec(module) is not None]

needs_runtimes = pytest.mark.skipif(
    len(INSTALLED) < len(RUNTIMES), reason="needs ai-edge-litert and tflite-micro"
)


def answers(name: Runtime, path: Path, runs: Runs) -> Runs:
    return RUNTIMES[name][1](path, runs)


def written(program: Program, runtime: Runtime) -> tuple[Path, tuple[Note, ...]]:
    """The file of a program; the next call replaces it."""
    path = Path(tempfile.gettempdir()) / f"tinyet_{id(pytest)}.tflite"
    return path, tinyet.export_tflite(program, path, runtime=runtime)


def speaks_of(notes: Sequence[Note], runtime: Runtime) -> bool:
    """Whether a note says that a runtime computes something else."""
    return any(f"{TITLES[runtime]} " in note.text for note in notes)


def program_of(case: Case) -> tuple[Program, Runs]:
    """A node as a program, and the one run of its inputs."""
    node = case.node
    ins = [t for t in node.inputs if t is not None and not t.is_constant]
    given: dict[Tensor, Array] = dict(zip(ins, case.inputs, strict=False))
    return Program("p", Graph("p", tuple(given), node.outputs, (node,))), [list(given.values())]


def node_program(
    attrs: Attrs, inputs: Sequence[Tensor], shape: Shape | None, out: tuple[float, int]
) -> Program:
    """One node of int8 as a program. shape: the output's, by default what the operator makes; out: its scale and zero
    point."""
    quant = QuantParams.per_tensor(*out)
    node = Node(attrs, tuple(inputs), (Tensor("y", TensorType(shape or (), DType.INT8, quant)),))
    if shape is None:
        (made,) = ops.infer(node)
        node = node.replace(outputs=[Tensor("y", TensorType(made, DType.INT8, quant))])
    assert not complaints(ops.op_of(node), node)
    given = tuple(t for t in inputs if not t.is_constant)
    return Program("p", Graph("p", given, node.outputs, (node,)))


def inputs_for(program: Program, count: int, seed: int = 0) -> Runs:
    """Random inputs for some runs."""
    rng, runs = np.random.default_rng(seed), []
    for _ in range(count):
        one: list[Array] = []
        for t in program.inputs:
            if t.dtype is DType.FLOAT32:
                one.append(rng.normal(0, 1, t.shape).astype(np.float32))
            else:
                one.append(rng.integers(*t.dtype.range, t.shape, t.dtype.numpy.type, endpoint=True))
        runs.append(one)
    return runs


def assert_same(program: Program, runs: Runs) -> dict[Runtime, bool]:
    """In a file for either runtime, both compute our bits: the other one where no note says otherwise. Floats that are
    summed are held to 1e-4 of their own and 1e-5 of the largest. Returns for each runtime whether it takes the
    program."""
    session = Session(program.graph)
    wanted = [session.outputs(run) for run in runs]
    taken: dict[Runtime, bool] = dict.fromkeys(RUNTIMES, False)
    for runtime in RUNTIMES:
        try:
            path, notes = written(program, runtime)
        except UnsupportedOp:
            continue
        taken[runtime] = True
        summed = any("summed" in note.text for note in notes)
        for other in RUNTIMES:
            if other != runtime and speaks_of(notes, other):
                continue
            for want, got in zip(wanted, answers(other, path, runs), strict=True):
                for a, b in zip(want, got, strict=True):
                    assert a.shape == b.shape
                    assert a.dtype == b.dtype
                    if summed and a.dtype == np.float32:
                        largest = float(np.abs(a[np.isfinite(a)]).max(initial=1.0))
                        ours, theirs = a.astype(np.float64), b.astype(np.float64)
                        np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-5 * largest)
                    else:
                        np.testing.assert_array_equal(b, a, f"{runtime} file in {other}")
    return taken
