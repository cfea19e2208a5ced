# SPDX-License-Identifier: Apache-2.0
"""What is said of doubtful data, and that ordinary data is not doubted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tinyet.data import make_samples
from tinyet.data.warnings import (
    Values,
    calibration_warnings,
    fit_warnings,
    fits_of,
    label_warnings,
    sameness_warnings,
    shift_warnings,
    values_of,
)
from tinyet.data.watched import watch
from tinyet.errors import DataError
from tinyet.ir import Array, DType, QuantParams, Tensor, TensorType

Floats = npt.NDArray[np.float32]
_RANDOM = np.random.default_rng(0)
_NORMAL: Floats = _RANDOM.normal(0.4, 1.0, (64, 3, 8)).astype(np.float32)
_OTHERS: Floats = _RANDOM.normal(0.4, 1.0, (64, 3, 8)).astype(np.float32)


def _between(calibration: Array, evaluation: Array) -> list[str]:
    return shift_warnings([values_of(calibration)], [values_of(evaluation)], ["x"])


def test_statistics_are_those_of_all_batches() -> None:
    values = Values()
    for batch in np.split(_NORMAL, 8):
        values.add(batch)
    assert (values.samples, values.count) == (64, _NORMAL.size)
    assert (values.low, values.high) == (_NORMAL.min(), _NORMAL.max())
    assert values.mean == pytest.approx(_NORMAL.mean(dtype=np.float64))
    assert values.deviation == pytest.approx(_NORMAL.std(dtype=np.float64))
    assert not values.alike


@pytest.mark.parametrize(
    "evaluation",
    [
        _OTHERS,
        _OTHERS * 2.5,  # faults, louder speech, a brighter day
        _OTHERS + 1,
        _OTHERS[:1],
        _OTHERS[:1] * 0.1,  # one dark image
        np.abs(_OTHERS),
    ],
)
def test_ordinary_data_is_not_doubted(evaluation: Array) -> None:
    assert _between(_NORMAL, evaluation) == []
    assert _between(evaluation, _NORMAL) == []


@pytest.mark.parametrize(
    ("calibration", "evaluation", "said"),
    [
        (_NORMAL, _OTHERS * 1000, " times wider"),
        (_NORMAL * 255, _OTHERS, "times narrower"),
        (_NORMAL, _OTHERS + 40, "mean 40.4"),
        (_NORMAL[:1], _OTHERS[:1] * 255, "times wider"),
        (_NORMAL, np.full((10, 3, 8), 1013.0), "1013 … 1013"),
    ],
)
def test_other_units_are_told_with_numbers(calibration: Array, evaluation: Array, said: str) -> None:
    (doubt,) = _between(calibration, evaluation)
    assert said in doubt
    assert "prepare both alike" in doubt


def test_calibration_that_shows_no_range() -> None:
    assert calibration_warnings([values_of(_NORMAL)], ["x"]) == []
    assert calibration_warnings([], []) == []
    (few,) = calibration_warnings([values_of(_NORMAL[:3])], ["x"])
    assert "3 samples" in few
    (alike,) = calibration_warnings([values_of(np.repeat(_NORMAL[:1], 20, axis=0))], ["x"])
    assert "all 20 samples are the same one" in alike
    constant = np.full((20, 4), 2.5)
    (one_input,) = sameness_warnings([values_of(_NORMAL[:20]), values_of(constant)], ["x", "gain"], "it")
    assert one_input.startswith("it: input gain is 2.5 in all of 20 samples")


def _input(dtype: DType = DType.INT8, scale: float = 1 / 64) -> Tensor:
    quant = QuantParams((scale,), (0,)) if dtype is not DType.FLOAT32 else None
    return Tensor("x", TensorType((1, 3, 8), dtype, quant))


def test_share_of_clipped_values() -> None:
    """Half a step beyond the last one rounds to it; the next number is clipped."""
    tensor = _input()
    inside, outside = (127.4 / 64, -128.4 / 64), (127.6 / 64, -128.6 / 64)
    data = np.array([*inside * 6, *outside * 2], np.float32).reshape(2, 1, 8)
    (fit,) = fits_of([tensor], [data])
    assert fit.outside == 0.25
    assert fit.range == (-2.0, 127 / 64)
    (doubt,) = fit_warnings([fit])
    assert "25.0 % of the values lie outside of -2 … 1.984" in doubt
    assert fit_warnings(fits_of([tensor], [_NORMAL / 4])) == []


def test_values_that_leave_most_of_the_range_empty() -> None:
    tensor = _input(scale=1.0)
    (doubt,) = fit_warnings(fits_of([tensor], [_RANDOM.random((20, 3, 8))]))
    assert "few steps of the integers are left" in doubt
    assert fit_warnings(fits_of([tensor], [_RANDOM.random((1, 3, 8))])) == [], "one sample may be dark"


def test_what_has_no_calibrated_range_is_not_looked_at() -> None:
    assert fits_of([_input(DType.FLOAT32)], [_NORMAL]) == []
    assert fits_of([_input()], [np.zeros((4, 3, 8), np.int8)]) == []


@pytest.mark.parametrize(
    ("labels", "classes", "said"),
    [
        ([0, 1, 9, 3], 10, None),
        ([0, 1, 10, 3], 10, "1 of 4 are no class of the model, which are 0 … 9"),
        ([1, 2, 3, 4], 4, "they run from 1 to 4; the first is 4, of sample 3"),
        ([0, -1, -1], 4, "2 of 3"),
        ([0, 700], 1, None),  # an index
        ([0, -7], 1, "0 and above"),
    ],
)
def test_labels_that_name_no_class(labels: list[int], classes: int, said: str | None) -> None:
    data_warnings = label_warnings(np.array(labels), classes)
    assert [said is not None and said in doubt for doubt in data_warnings] == [True] * (said is not None)
    assert label_warnings(np.array(labels)[:, None], classes) == data_warnings


def test_no_labels_are_no_doubt() -> None:
    assert label_warnings(None, 4) == []
    assert label_warnings(np.array([0.5, 2.5]), 2) == []


def test_samples_that_are_no_numbers_are_refused_at_once() -> None:
    data = _NORMAL.copy()
    data[5, 0, :2] = np.nan
    data[9, 1, 3] = -np.inf
    with pytest.raises(
        DataError, match=r"input x holds 3 values that are NaN or infinite, in 2 sample\(s\), first in "
    ):
        make_samples([_input()], [data])


def test_batches_of_a_type_that_numpy_lacks_are_looked_at() -> None:
    torch = pytest.importorskip("torch")
    watched = watch([torch.tensor([[1.0, 3.0]], dtype=torch.bfloat16)])
    assert len(list(watched)) == 1
    assert [(column.samples, column.low, column.high) for column in watched.columns] == [(1, 1.0, 3.0)]
