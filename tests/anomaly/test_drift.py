# SPDX-License-Identifier: Apache-2.0
"""Drift: the distance that its definition says, in the C of this machine, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyet
from tests.anomaly.test_threshold import scoring
from tests.golden.programs import RELU, Builder, bias_s32, input_s8, weights_s8
from tinyet.anomaly.drift import MOST_ELEMENTS, channels, is_row, sliced_shape, steps, with_drift
from tinyet.errors import DataError
from tinyet.native import By
from tinyet.ops.conv2d import Conv2d


def drifts(program: tinyet.Program, data: Any, by: By = "numpy") -> Any:
    """Of each sample."""
    return program.evaluate(data, by=by).outputs[-1][:, 0]


def images() -> tinyet.Program:
    b = Builder("images")
    x = input_s8("x", (1, 40, 40, 3), 0.031, -10)
    y = b.add(
        Conv2d(clamp=RELU), x, weights_s8("w", (2, 1, 1, 3), 37), bias_s32("b", 2, 411), out="y", source="conv",
        quant=(0.031, -128), module="conv",
    )  # fmt: skip
    return b.finish((x,), y)


def test_rows_of_features() -> None:
    program, rng = scoring(), np.random.default_rng(0)
    data = (rng.normal(0, 1, (200, 8)) * np.arange(1, 9) * 0.2 + 0.5).astype(np.float32)
    made = with_drift(program, data)
    drift = drifts(made, data)
    assert [t.name for t in made.outputs][1:] == ["drift"]
    # Of what the program reads: the data in its int8.
    seen = 0.05 * (np.clip(np.rint(data / 0.05) - 3, -128, 127) + 3)
    want = (((seen - seen.mean(0)) / seen.std(0)) ** 2).mean(1)
    np.testing.assert_allclose(drift, want, 1e-4)
    assert 0.99 < drift.mean() < 1.01
    assert drifts(made, data + 1.5).mean() > 3
    assert f"the greatest {drift.max():.3g}" in str(made.notes[-1])


def test_channels_of_images(tmp_path: Path) -> None:
    """Every fourth row and second column: means and mean squares of three channels. C gives the same bits."""
    program, rng = images(), np.random.default_rng(1)
    data = rng.normal(0, 1, (40, 40, 40, 3)) * [0.2, 0.4, 0.6] * rng.uniform(0.5, 1, (40, 1, 1, 1))
    data = (data + rng.normal(0, 0.2, (40, 1, 1, 3))).astype(np.float32)
    made = with_drift(program, data)
    drift = drifts(made, data)
    seen = 0.031 * (np.clip(np.rint(data / np.float32(0.031)) - 10, -128, 127) + 10)
    few = seen[:, ::4, ::2]
    found = np.concatenate([few.mean((1, 2)), (few**2).mean((1, 2))], 1)
    np.testing.assert_allclose(drift, (((found - found.mean(0)) / found.std(0)) ** 2).mean(1), 1e-3)
    made.save(tmp_path / "drift.tet")
    assert tinyet.load(tmp_path / "drift.tet").hash == made.hash
    assert (drifts(made, data[:4], "native") == drift[:4]).all()


def test_no_statistic_that_never_changed_makes_drift_of_noise() -> None:
    data = np.random.default_rng(0).normal(0, 1, (20, 8)).astype(np.float32)
    data[:, 3] = 0.5
    made = with_drift(scoring(), data)
    moved = data.copy()
    moved[:, 3] += 0.001
    assert (drifts(made, moved) < 5).all()


@pytest.mark.parametrize(
    ("shape", "axis", "by"),
    [
        ((1, 1, 49, 10), 3, [1, 1, 1, 1]),
        ((1, 3, 96, 96), 1, [1, 1, 8, 4]),
        ((1, 16000), 1, [1, 1]),
        ((1, 16000, 3), 2, [1, 64, 1]),
        ((2000, 2000), 1, [2048, 1]),
    ],
)
def test_what_is_looked_at(shape: tuple[int, ...], axis: int, by: list[int]) -> None:
    assert (channels(shape), steps(shape)) == (axis, by)
    assert is_row(shape) or np.prod(sliced_shape(shape)) <= max(MOST_ELEMENTS, shape[axis])


def test_few_samples_are_refused() -> None:
    with pytest.raises(DataError, match="at least 8"):
        with_drift(scoring(), np.zeros((7, 8), np.float32))


def test_as_options_of_open(tmp_path: Path) -> None:
    """Of any file: behind what the model itself gives, first the flag, then the drift."""
    scoring().save(tmp_path / "m.tet")
    data = np.random.default_rng(0).normal(0, 1, (30, 8)).astype(np.float32)
    np.savez(tmp_path / "d.npz", inputs=data, labels=(data.sum(1) > 2).astype(int))
    program = tinyet.open(tmp_path / "m.tet", flag=tmp_path / "d.npz", drift=data)
    assert isinstance(program, tinyet.Program)
    assert [t.name for t in program.outputs][1:] == ["flag", "drift"]
    assert "labelled 1" in str(program.notes[-2])
    with pytest.raises(tinyet.TinyetError, match="false_alarms"):
        tinyet.open(tmp_path / "m.tet", false_alarms=0.1)
