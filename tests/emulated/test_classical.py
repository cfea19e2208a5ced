# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's estimators as firmware: what they answer on a host is what boards answer."""

from __future__ import annotations

import numpy as np
import pytest

import tinyet
from tests.emulated.avr import run_on_avr
from tests.ops.emulated import require_emulator
from tinyet.boards import load_board
from tinyet.data import Data, prepare_inputs
from tinyet.survey.everywhere import validate_on

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")

SAMPLES = 30


@pytest.mark.emulated
def test_a_program_from_the_sensor_to_the_answer() -> None:
    """Statistics and a forest: bit for bit on four kinds of cores, and as often right as in float. What else
    benchmarks/classical_programs.py has, benchmarks/trees.py runs on the same boards."""
    from benchmarks import classical_programs

    made = classical_programs.gestures()
    assert made.accuracy() > 0.8
    assert abs(made.accuracy() - made.own) < 0.02
    some = made.samples[:: len(made.samples) // 2][:2]
    for board in ("microbit", "mps2_an386", "riscv32_virt"):
        require_emulator(board)
        found = validate_on(made.program, load_board(board), evaluation=Data((some,)))
        assert found.verdict == "exact", f"{board}: {found.error}"
    program = made.program
    inputs = prepare_inputs(program.inputs, [some[1]])
    run = run_on_avr(program.graph, inputs, "atmega1284p")
    assert run.outputs == b"".join(x.tobytes() for x in program.outputs_for(inputs))


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
