# SPDX-License-Identifier: Apache-2.0
"""Which handler takes which operator: the one list of supported operators."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.importers.tflite import (
    handlers_binary,
    handlers_constant,
    handlers_control,
    handlers_convert,
    handlers_custom,
    handlers_images,
    handlers_layers,
    handlers_recurrent,
    handlers_reduce,
    handlers_shape,
    handlers_signal,
    handlers_space,
    handlers_state,
    handlers_unary,
)
from tinyet.importers.tflite.context import Handler
from tinyet.tflite import Operator
from tinyet.tflite.enumerations import CUSTOM

BUILTIN: Mapping[str, Handler] = {
    **handlers_binary.HANDLERS,
    **handlers_constant.HANDLERS,
    **handlers_control.HANDLERS,
    **handlers_convert.HANDLERS,
    **handlers_images.HANDLERS,
    **handlers_layers.HANDLERS,
    **handlers_recurrent.HANDLERS,
    **handlers_reduce.HANDLERS,
    **handlers_shape.HANDLERS,
    **handlers_space.HANDLERS,
    **handlers_state.HANDLERS,
    **handlers_unary.HANDLERS,
}
CUSTOMS: Mapping[str, Handler] = {**handlers_signal.HANDLERS}


def handler_of(op: Operator) -> Handler | None:
    """The handler of an operator; None if it is not supported. Users' handlers come last."""
    if op.code != CUSTOM:
        return BUILTIN.get(op.code)
    return CUSTOMS.get(op.custom) or handlers_custom.custom_handler(op.custom)
