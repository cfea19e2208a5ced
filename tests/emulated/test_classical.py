# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's estimators as firmware: what they answer on a host is what boards answer."""

from __future__ import annotations

import numpy as np
import pytest

import tinyet
from tests.ops.emulated import require_emulator
from tinyet.boards import load_board
from tinyet.data import Data
from tinyet.survey.everywhere import validate_on

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")

SAMPLES = 30


@pytest.mark.emulated
@pytest.mark.parametrize("board", ["microbit", "mps2_an386", "riscv32_virt"])
def test_a_forest_behind_a_scaler(board: str) -> None:
    """Bit for bit, and as often right as the estimator itself."""
    from sklearn.datasets import load_wine
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    require_emulator(board)
    samples, labels = load_wine(return_X_y=True)
    forest = RandomForestClassifier(12, max_depth=5, random_state=0)
    pipeline = make_pipeline(StandardScaler(), forest).fit(samples[::2], labels[::2])
    program = tinyet.from_sklearn(pipeline, "predict")
    rows = np.random.default_rng(0).permutation(len(samples))[:SAMPLES]
    data = Data((samples[rows].astype(np.float32),), labels[rows])
    found = validate_on(program, load_board(board), evaluation=data)
    assert found.verdict == "exact", found.error
    assert found.result is not None
    assert found.result.samples == SAMPLES
    assert found.result.accuracy == pipeline.score(samples[rows], labels[rows])
