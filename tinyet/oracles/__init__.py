# SPDX-License-Identifier: Apache-2.0
"""The runtime that a model was made for, asked for its own answers: what `validate --oracle` compares with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tinyet.errors import UsageError
from tinyet.ir import Array
from tinyet.oracles.onnx import OTHER_LEVELS, run_onnx
from tinyet.oracles.tflite import run_tflite
from tinyet.program import Program

Runs = Sequence[Sequence[Array]]
"""An array an input, or an output, for each run; a state goes on from run to run."""

_TFLITE_ADVICE = (
    "--runtime says whose arithmetic is followed where runtimes differ; generate again with the other"
)
_ONNX_ADVICE = (
    "the notes of `tinyet generate` name the layers in which ONNX Runtime's integers cannot be had, and why; "
    "`tinyet.from_onnx(path, exact=True)` lists them as an error"
)

_BY_SUFFIX: dict[str, Callable[[Path, Program, Runs], tuple[str, list[list[Array]]]]] = {
    ".tflite": lambda path, _program, inputs: run_tflite(path, inputs),
    ".onnx": run_onnx,
}


@dataclass(frozen=True)
class Agreement:
    """Agreement of a runtime's answers with ours.

    runtime: its name and version, and how it was run where that decides. differing: runs in which an integer differs.
    ulps: the largest difference of float outputs, in units in the last place of the output's largest value; None
    without such outputs. first: where the first integer differs, in words, or empty. advice: what to do where one
    differs.
    """

    runtime: str
    runs: int
    differing: int
    ulps: float | None = None
    first: str = ""
    advice: str = ""

    @property
    def agrees(self) -> bool:
        """Whether all integers are equal. Floats are added in another order by each runtime, so they never count."""
        return self.differing == 0

    def to_json(self) -> dict[str, object]:
        return {**vars(self), "agrees": self.agrees}


def compare(path: str | Path, program: Program, inputs: Runs, outputs: Runs) -> Agreement:
    """Run the original runtime on the inputs, and compare its answers with the given outputs.

    inputs, outputs: as the program takes and gives them, integers as such. Raises UsageError for a file of a kind that
    has no runtime here, ToolchainError where the runtime is not installed or fails, ModelError for a model that takes
    something else.
    """
    file = Path(path)
    run = _BY_SUFFIX.get(file.suffix)
    if run is None:
        known = ", ".join(_BY_SUFFIX)
        raise UsageError(
            f"there is no oracle for {file.name}", str(path), f"the model's original file: {known}"
        )
    if not file.is_file():
        raise UsageError(f"there is no file {file}", hint="the model's original file")
    runtime, answers = run(file, program, inputs)
    found = compare_runs(runtime, answers, outputs)
    if found.agrees:
        return found
    return replace(
        found, advice=_onnx_advice(file, program, inputs, outputs) if run is run_onnx else _TFLITE_ADVICE
    )


def _onnx_advice(path: Path, program: Program, inputs: Runs, outputs: Runs) -> str:
    """Which of ONNX Runtime's other levels of optimization agrees, if one does."""
    counts = []
    for level in OTHER_LEVELS:
        other = compare_runs(*run_onnx(path, program, inputs, level), outputs)
        counts.append(
            f"{level} {'agrees' if other.agrees else f'differs in {other.differing} of {other.runs}'}"
        )
    return f"of its other levels, {', '.join(counts)}; {_ONNX_ADVICE}"


def compare_runs(runtime: str, answers: Runs, outputs: Runs) -> Agreement:
    """The answers of a runtime of this name beside our outputs for the same inputs."""
    differing, first, ulps = 0, "", list[float]()
    for number, (theirs, ours) in enumerate(zip(answers, outputs, strict=True)):
        differs = False
        if len(theirs) != len(ours):
            raise UsageError(f"the original has {len(theirs)} outputs, the program {len(ours)}")
        for index, (their, our) in enumerate(zip(theirs, ours, strict=True)):
            a, b = their.reshape(-1), our.reshape(-1)
            if a.size != b.size:
                raise UsageError(
                    f"output {index} of the original has {a.size} elements, of the program {b.size}"
                )
            if a.dtype.kind == "f":
                ulps.append(_ulps(a, b))
                continue
            wrong = np.flatnonzero(a.astype(np.int64) != b.astype(np.int64))
            if wrong.size and not first:
                at = int(wrong[0])
                first = f"run {number}, output {index}, element {at}: {int(b[at])} here, {int(a[at])} there"
            differs = differs or bool(wrong.size)
        differing += differs
    return Agreement(runtime, len(answers), differing, max(ulps, default=None), first)


def _ulps(a: Array, b: Array) -> float:
    one = float(np.spacing(np.float32(max(float(np.abs(a).max(initial=0)), 2.0**-126))))
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0) / one)
