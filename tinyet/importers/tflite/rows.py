# SPDX-License-Identifier: Apache-2.0
"""Which row takes which operator: the one list of what is taken."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.importers.tflite import (
    rows_binary,
    rows_constant,
    rows_control,
    rows_convert,
    rows_custom,
    rows_images,
    rows_layers,
    rows_recurrent,
    rows_reduce,
    rows_shape,
    rows_signal,
    rows_space,
    rows_state,
    rows_unary,
)
from tinyet.importers.tflite.context import Row
from tinyet.tflite import Operator
from tinyet.tflite.enumerations import CUSTOM

BUILTIN: Mapping[str, Row] = {
    **rows_binary.ROWS,
    **rows_constant.ROWS,
    **rows_control.ROWS,
    **rows_convert.ROWS,
    **rows_images.ROWS,
    **rows_layers.ROWS,
    **rows_recurrent.ROWS,
    **rows_reduce.ROWS,
    **rows_shape.ROWS,
    **rows_space.ROWS,
    **rows_state.ROWS,
    **rows_unary.ROWS,
}
CUSTOMS: Mapping[str, Row] = {**rows_signal.ROWS}


def row_of(op: Operator) -> Row | None:
    """The row of an operator; None where it is not taken. Those of users come last."""
    if op.code != CUSTOM:
        return BUILTIN.get(op.code)
    return CUSTOMS.get(op.custom) or rows_custom.custom_row(op.custom)
