# SPDX-License-Identifier: Apache-2.0
"""Files that tests write, run by the runtimes that such files are made for, and by tinyet: several runs one
after another, so that what is kept from run to run is compared, too."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.tflite_files import Writer
from tinyet import from_tflite
from tinyet.ir import Array
from tinyet.oracles.tflite import run_litert, run_tflm
from tinyet.tflite import Model, Runtime, Subgraph, read_file
from tinyet.tflite.write import write_model

Runs = list[list[Array]]

RUNTIMES = {"tflm": "tflite_micro", "litert": "ai_edge_litert"}


def installed(runtime: Runtime) -> bool:
    return importlib.util.find_spec(RUNTIMES[runtime]) is not None


def drawn(subgraph: Subgraph, rng: np.random.Generator, runs: int) -> Runs:
    """Inputs of so many runs: all integers of the type, normal floats."""

    def one(kind: np.dtype, shape: tuple[int, ...]) -> Array:
        if kind.kind == "f":
            return rng.standard_normal(shape).astype(kind)
        limits = np.iinfo(kind)
        return rng.integers(limits.min, limits.max + 1, shape).astype(kind)

    tensors = [subgraph.tensors[i] for i in subgraph.inputs]
    return [[one(np.dtype(t.type), t.shape) for t in tensors] for _ in range(runs)]


def expected(path: Path, runtime: Runtime, inputs: Runs) -> Runs:
    """What the runtime gives."""
    return run_tflm(path, inputs) if runtime == "tflm" else run_litert(path, inputs)


def found(path: Path, runtime: Runtime, inputs: Runs) -> Runs:
    """What tinyet's reference gives."""
    session = from_tflite(path, runtime=runtime).session()
    answers = []
    for given in inputs:
        answer = session.run(*given, as_float=False)
        answers.append(answer if isinstance(answer, list) else [answer])
    return answers


def assert_models(
    model: Model, runtime: Runtime, folder: Path, *, runs: int = 3, seed: int = 0, ulps: int = 0
) -> Runs:
    """The file's answers in the runtime and in tinyet: integers are equal, floats within units in the last place of the
    output's largest value. Returns them."""
    path = folder / "model.tflite"
    path.write_bytes(write_model(model))
    main = read_file(path).subgraphs[0]
    given = drawn(main, np.random.default_rng(seed), runs)
    wanted, answers = expected(path, runtime, given), found(path, runtime, given)
    for run, (want, got) in enumerate(zip(wanted, answers, strict=True)):
        for output, w, g in zip(main.outputs, want, got, strict=True):
            where = f"run {run}, {main.tensors[output]}"
            if w.dtype.kind == "f":
                bound = ulps * float(np.spacing(np.float32(np.abs(w).max(initial=0))))
                difference = np.abs(w.reshape(-1).astype(np.float64) - g.reshape(-1).astype(np.float64)).max(
                    initial=0
                )
                assert difference <= bound, f"{where}: {difference / max(bound, 1e-45) * ulps:.1f} ulps"
            else:
                np.testing.assert_array_equal(g.reshape(-1), w.reshape(-1).astype(g.dtype), where)
    return answers


def assert_same(
    writer: Writer,
    inputs: Sequence[int],
    outputs: Sequence[int],
    runtime: Runtime,
    folder: Path,
    *,
    runs: int = 3,
    seed: int = 0,
    ulps: int = 0,
) -> Runs:
    """`assert_models` of one subgraph."""
    model = writer.model(tuple(inputs), tuple(outputs))
    return assert_models(model, runtime, folder, runs=runs, seed=seed, ulps=ulps)
