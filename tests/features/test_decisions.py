# SPDX-License-Identifier: Apache-2.0
"""Decisions behind a network: what each decides by hand, and all of them from run to run in one program."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import tinyet
from tests.ops.emulated import require_emulator
from tinyet.errors import UsageError
from tinyet.features import decisions
from tinyet.ir import DType

RUNS = np.random.default_rng(2).uniform(0, 1, (24, 1, 3)).astype(np.float32)


class Decides(nn.Module):
    """Of scores (1, 3) what every module with a memory says."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = decisions.MovingAverage(4, 3)
        self.majority = decisions.Majority(5, 3)
        self.hysteresis = decisions.Hysteresis(0.7, 0.3, (1, 3))
        self.debounce = decisions.Debounce(2, (1, 3))

    def forward(self, scores: Tensor) -> tuple[Tensor, ...]:
        switched = self.hysteresis(scores)
        return self.mean(scores), self.majority(scores), switched, self.debounce(switched)


def by_hand(runs: np.ndarray) -> list[list[Any]]:
    last = deque([np.zeros((1, 3))] * 4, 4)
    votes = deque([np.zeros((1, 3))] * 5, 5)
    switch, steady, waited = np.zeros(3), np.zeros(3), np.zeros(3)
    answers = []
    for scores in runs:
        last.append(scores)
        votes.append(np.eye(3)[scores.argmax(1)])
        for c, score in enumerate(scores[0]):
            switch[c] = 1 if score >= 0.7 else 0 if score <= 0.3 else switch[c]
            waited[c] = 0 if switch[c] == steady[c] else waited[c] + 1
            if waited[c] == 2:
                steady[c], waited[c] = switch[c], 0
        answers.append([np.mean(last, 0), np.sum(votes, 0), switch[None].copy(), steady[None].copy()])
    return answers


def test_from_run_to_run(tmp_path: Path) -> None:
    program = tinyet.compile(Decides().eval(), (torch.from_numpy(RUNS[0]),), name="decides")
    session = program.session()
    for scores, wanted in zip(RUNS, by_hand(RUNS), strict=True):
        for found, want in zip(session.run(scores), wanted, strict=True):
            np.testing.assert_allclose(found, want, atol=1e-6)
    require_emulator("mps2_an386")
    project = tinyet.generate(program, "mps2_an386", tmp_path / "decides")
    project.build()
    assert project.validate(RUNS, on="qemu").bit_exact


def test_behind_a_quantized_network() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(3)
            self.layer = nn.Linear(6, 3)
            self.mean = decisions.MovingAverage(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.mean(torch.softmax(self.layer(x), -1))
            return y

    data = torch.randn(20, 1, 6)
    program = tinyet.compile(Net().eval(), (data[0],), calibration=list(data))
    types = {node.op: node.output.dtype for node in program.graph.nodes}
    assert types["linear"] is DType.INT8
    assert types["mean"] is DType.FLOAT32


def iou(a: np.ndarray, b: np.ndarray) -> float:
    size = np.clip(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0, None)
    both = size.prod()
    return float(both / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - both))


class AtOnce(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.nearest = decisions.NearestMean(torch.arange(6.0).reshape(3, 2))
        self.ctc = decisions.CtcGreedy(12)
        self.boxes = decisions.NonMaximumSuppression(5, 0.4, 0.2)

    def forward(self, x: Tensor, steps: Tensor, boxes: Tensor, scores: Tensor) -> tuple[Tensor, ...]:
        return self.nearest(x), self.ctc(steps), self.boxes(boxes, scores)


def test_at_once() -> None:
    rng = np.random.default_rng(5)
    corners = rng.uniform(0, 6, (20, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(1, 4, (20, 2))], 1).astype(np.float32)[None]
    scores = rng.uniform(0, 1, (1, 20)).astype(np.float32)
    labels = np.array([0, 1, 1, 0, 1, 2, 2, 0, 0, 3, 2, 2])
    steps = (np.eye(4)[labels] + rng.uniform(0, 0.5, (12, 4))).astype(np.float32)[None]
    x = rng.uniform(0, 5, (7, 2)).astype(np.float32)
    given = [x, steps, boxes, scores]
    program = tinyet.compile(AtOnce().eval(), tuple(map(torch.from_numpy, given)))
    nearest, decoded, found = (np.asarray(each) for each in program.run(*given))
    distances = ((x[:, None] - np.arange(6.0).reshape(3, 2)) ** 2).sum(-1)
    np.testing.assert_array_equal(nearest.argmax(1), distances.argmin(1))
    assert decoded.tolist() == [[1, 1, 2, 3, 2, *[-1] * 7]]
    left = [int(i) for i in np.argsort(-scores[0]) if scores[0, i] > 0.2]
    wanted: list[int] = []
    while left and len(wanted) < 5:
        wanted.append(left.pop(0))
        left = [i for i in left if iou(boxes[0, i], boxes[0, wanted[-1]]) <= 0.4]
    assert found[0, : len(wanted), 5].tolist() == wanted
    np.testing.assert_allclose(found[0, : len(wanted), :4], boxes[0, wanted])
    np.testing.assert_allclose(found[0, : len(wanted), 4], scores[0, wanted])
    few = decisions.NonMaximumSuppression(5)(torch.from_numpy(boxes[:, :1]), torch.from_numpy(scores[:, :1]))
    assert (few[0, 1:] == 0).all()


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="off at 1 is not below"):
        decisions.Hysteresis(0.5, 1)
    with pytest.raises(UsageError, match="count is a whole number from 2"):
        decisions.Majority(1, 3)
    with pytest.raises(UsageError, match="means of shape"):
        decisions.NearestMean(torch.ones(3))
    with pytest.raises(UsageError, match="overlap 1"):
        decisions.NonMaximumSuppression(2, 1)
