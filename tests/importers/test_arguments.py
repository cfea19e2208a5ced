# SPDX-License-Identifier: Apache-2.0
"""What `tinyet.compile` is given is used or refused, never ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import tinyet
from tinyet.errors import QuantizationError, TinyetError, UsageError

_X = (torch.zeros(1, 4),)
_BATCHES = [torch.randn(4, 4)]


def _net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()


@pytest.fixture(scope="module")
def quantized() -> torch.export.ExportedProgram:
    session = tinyet.prepare_training(_net(), _X, batch_size=2)
    session(torch.randn(2, 4))
    return session.convert()


@pytest.mark.parametrize(
    ("error", "says", "arguments"),
    [
        (UsageError, "there is no board", {"delegates": "cortex_m"}),
        (QuantizationError, "no calibration data for the quantizer", {"quantizer": tinyet.TinyetQuantizer()}),
        (QuantizationError, "no calibration data to equalize", {"equalize": True}),
        (QuantizationError, "no calibration data to equalize", {"correct_bias": True}),
        (UsageError, "no input has four dimensions", {"channels_last": True}),
    ],
)
def test_what_would_have_no_effect_on_a_module_is_refused(
    error: type[TinyetError], says: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(error, match=says):
        tinyet.compile(_net(), _X, **arguments)


def test_what_a_module_needs_is_asked_for() -> None:
    with pytest.raises(UsageError, match="needs example_inputs"):
        tinyet.compile(_net())


@pytest.mark.parametrize(
    ("error", "says", "arguments"),
    [
        (UsageError, "its own example inputs", lambda: {"example_inputs": _X}),
        (QuantizationError, "quantized already", lambda: {"calibration": _BATCHES}),
        (QuantizationError, "quantized already", lambda: {"quantizer": tinyet.TinyetQuantizer()}),
    ],
)
def test_what_would_have_no_effect_on_a_quantized_program_is_refused(
    quantized: torch.export.ExportedProgram,
    error: type[TinyetError],
    says: str,
    arguments: Callable[[], dict[str, Any]],
) -> None:
    with pytest.raises(error, match=says):
        tinyet.compile(quantized, **arguments())


def test_a_board_is_a_name_or_an_object_and_delegates_are_used(
    quantized: torch.export.ExportedProgram,
) -> None:
    board = tinyet.load_board("mps2_an386")
    assert tinyet.compile(quantized, board=board, delegates="cortex_m").hash == tinyet.compile(quantized).hash
    with pytest.raises(UsageError, match="no delegate called fast"):
        tinyet.compile(quantized, board="mps2_an386", delegates=["fast"])
