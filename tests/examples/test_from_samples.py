# SPDX-License-Identifier: Apache-2.0
"""The examples that begin at a sensor's integers: each compiles, gives the right answers, and the same bits in C on
this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyet
from tests.examples.loading import load
from tinyet.ir import DType

torch = pytest.importorskip("torch", reason="torch is not installed: the networks are quantized here")
pytest.importorskip("torchao", reason="torchao is not installed: the networks are quantized here")


@dataclass(frozen=True)
class Example:
    """shape: of a buffer of int16. drawn: of the module, some samples that it was trained on, and others. classes: of
    the first two of these; where there are none, the second one is faulty. front: an operator of the signal path."""

    file: str
    shape: tuple[int, ...]
    drawn: Callable[[Any], tuple[Any, Any]]
    classes: tuple[int, int] | None
    front: str


def _motors(module: Any) -> tuple[Any, Any]:
    sounds = np.stack([module.motor.vibration(1_000 + i) for i in range(8)])
    louder = np.concatenate([0.5 * sounds, sounds, 2 * sounds])
    return torch.from_numpy(module.samples_of(louder)), torch.from_numpy(module.motors(1, 1)[0])


FROM_SAMPLES = [
    Example(
        "gesture/buffer.py",
        (1, 128, 3),
        lambda m: (m._performed(4, 1_000)[0], m._performed(1, 900_000)[0][[1, 4]]),
        (1, 4),
        "div",
    ),
    Example(
        "heartbeat/model.py",
        (1, 625),
        lambda m: (m._recorded(5, 1_000)[0], m._recorded(1, 900_001)[0][[0, 2]]),
        (0, 2),
        "biquads",
    ),
    Example("anomaly/vibration.py", (1, 2048), _motors, None, "log_bands"),
]


@pytest.mark.parametrize("example", FROM_SAMPLES, ids=lambda e: e.file)
def test_answers_and_bits(example: Example, tmp_path: Path) -> None:
    module: Any = load(example.file)
    known, others = example.drawn(module)
    program = tinyet.compile(module.model(), (known[:1],), calibration=list(known.split(1)), name="example")
    (given,) = program.inputs
    assert (given.type.shape, given.type.dtype) == (example.shape, DType.INT16)
    assert example.front in {node.op for node in program.graph.nodes}
    samples = others[:2].numpy()
    first, second = (np.ravel(program.run(sample)) for sample in samples)
    if example.classes is None:
        assert second[0] > 2 * first[0]
    else:
        assert [int(first.argmax()), int(second.argmax())] == list(example.classes)
    project = tinyet.generate(program, "mps2_an386", tmp_path / "example")
    result = project.validate(samples, on="host", sqnr_samples=0)
    assert result.bit_exact, result.first_mismatch
    assert result.samples == 2
