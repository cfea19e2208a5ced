# SPDX-License-Identifier: Apache-2.0
"""The examples that begin at a sensor's integers: as the command line compiles them, each gives the right answers, and
the same bits in C on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import tinyet
from tests.examples.loading import EXAMPLES, own_neighbours
from tinyet.ir import DType
from tinyet.opening import ModelOptions, read

pytest.importorskip("torch", reason="torch is not installed: the networks are quantized here")
pytest.importorskip("torchao", reason="torchao is not installed: the networks are quantized here")


@dataclass(frozen=True)
class Example:
    """shape: of a buffer of int16. samples: numbers of two held-out ones. classes: what these are; where there are
    none, the second one is faulty. front: an operator of the signal path."""

    file: str
    shape: tuple[int, ...]
    samples: tuple[int, int]
    classes: tuple[int, int] | None
    front: str


FROM_SAMPLES = [
    Example("gesture/buffer.py", (1, 128, 3), (1, 4), (1, 4), "div"),
    Example("heartbeat/model.py", (1, 625), (4, 2), (0, 2), "biquads"),
    Example("anomaly/vibration.py", (1, 2048), (0, 20), None, "log_bands"),
]


@pytest.mark.parametrize("example", FROM_SAMPLES, ids=lambda e: e.file)
def test_answers_and_bits(example: Example, tmp_path: Path) -> None:
    with own_neighbours():
        found = read(str(EXAMPLES / example.file), ModelOptions(name="example"))
    program = found.program
    (given,) = program.inputs
    assert (given.type.shape, given.type.dtype) == (example.shape, DType.INT16)
    assert example.front in {node.op for node in program.graph.nodes}
    samples = found.evaluation.arrays[0][list(example.samples)]
    first, second = (np.ravel(program.run(sample)) for sample in samples)
    if example.classes is None:
        assert second[0] > 2 * first[0]
    else:
        assert (first.argmax(), second.argmax()) == example.classes
    project = tinyet.generate(program, "mps2_an386", tmp_path / "example")
    result = project.validate(samples, on="host", sqnr_samples=0)
    assert result.bit_exact, result.first_mismatch
    assert result.samples == 2
