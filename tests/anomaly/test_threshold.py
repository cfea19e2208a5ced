# SPDX-License-Identifier: Apache-2.0
"""Flags: what the note says of the data is what the program does, and of its int8 scores, too."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinyet
from tests.golden.programs import Builder, bias_s32, input_s8, weights_s8
from tests.ops import drawing
from tinyet.anomaly.threshold import between, choose_threshold, with_flag
from tinyet.errors import DataError, UsageError
from tinyet.ops.linear import Linear


def scoring() -> tinyet.Program:
    """Eight int8 elements to one int8 score."""
    b = Builder("scoring")
    x = input_s8("x", (1, 8), 0.05, -3)
    weights, bias = weights_s8("w", (1, 8), 41), bias_s32("b", 1, 411)
    y = b.add(Linear(), x, weights, bias, out="y", source="self.score(x)", quant=(0.1, 4))
    return b.finish((x,), y)


@drawing.quick
@given(drawing.SEEDS, st.floats(0, 0.4))
def test_no_more_are_flagged_than_may_be(seed: int, share: float) -> None:
    """And one more would be too many, where scores differ."""
    scores = np.random.default_rng(seed).normal(0, 1, 50).astype(np.float32).round(1)
    value = np.float32(choose_threshold(scores, None, share).value)
    assert (scores > value).sum() <= share * 50
    lower = scores[scores <= value].max()
    assert (scores >= lower).sum() > share * 50


def test_labels_decide_by_youdens_j() -> None:
    scores = np.array([1, 2, 3, 4, 5, 6], np.float32)
    labels = np.array([0, 0, 1, 0, 1, 1])
    # Above 2: 3 of 3, 1 of 3. Above 4: 2 of 3, none. Equal; the greater has fewer false alarms.
    chosen = choose_threshold(scores, labels)
    assert chosen.value == 4.5
    assert "2 of 3 samples labelled 1, and 0 of 3 others" in chosen.text
    assert choose_threshold(scores, np.array([0, 1, 1, 1, 0, 1])).value == 1.5


def test_a_threshold_between_neighbouring_floats_is_the_lower() -> None:
    near = np.nextafter(np.float32(1), np.float32(2))
    assert between(np.array([1, near], np.float32), np.float32(1)) == 1.0


def test_the_flag_of_a_quantized_program() -> None:
    program, rng = scoring(), np.random.default_rng(0)
    data = rng.normal(0, 2, (100, 8)).astype(np.float32)
    made = with_flag(program, data, false_alarms=0.05)
    score: Any
    flag: Any
    score, flag = (np.asarray(each).reshape(-1) for each in made.evaluate(data).outputs)
    assert [t.name for t in made.outputs][1:] == ["flag"]
    assert (score == program.evaluate(data).outputs[0].reshape(-1)).all()
    said = re.search(r"scores above (\S+): (\d) of 100", str(made.notes[-1]))
    assert said is not None
    assert 0 < flag.sum() == int(said[2]) <= 5
    assert (flag == (score > np.float32(said[1]))).all()
    labels = (data.sum(1) > 3).astype(int)
    assert 0 < with_flag(program, data, labels=labels).evaluate(data).outputs[1].sum() < 100


def test_what_is_refused() -> None:
    program, data = scoring(), np.zeros((5, 8), np.float32)
    with pytest.raises(UsageError, match="output=3"):
        with_flag(program, data, output=3)
    with pytest.raises(UsageError, match="false_alarms"):
        with_flag(program, data, false_alarms=1.0)
    with pytest.raises(UsageError, match="is no score"):
        with_flag(with_flag(program, data), data)
    with pytest.raises(DataError, match="some of each"):
        with_flag(program, data, labels=np.zeros(5, int))
    with pytest.raises(DataError, match="not finite"):
        choose_threshold(np.array([1, np.nan]))
