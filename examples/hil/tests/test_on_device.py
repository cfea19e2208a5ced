# SPDX-License-Identifier: Apache-2.0
"""The model on an emulated board, as the product would ship it."""

import numpy as np
import pytest
from model import TONES, WINDOW, window

pytestmark = pytest.mark.tinyet(model="model.py", board="mps2_an386")


@pytest.mark.parametrize("tone", range(len(TONES)))
def test_a_tone_is_recognised(tinyet_device, tone):
    result = tinyet_device.run(window(tone, seed=12345))
    assert result.label == tone
    assert result.bit_exact


def test_accuracy_and_budget(tinyet_device):
    """All of evaluation(), every output bit for bit as the host computes it, within what the product can spend."""
    result = tinyet_device.validate()
    assert result.bit_exact, result.first_mismatch
    assert result.accuracy >= 0.98
    tinyet_device.check(
        instructions=28_000, stack_bytes=160, arena_bytes=1_100, ram_bytes=1_200, flash_bytes=8_192
    )


@pytest.mark.parametrize("level", [-1.0, 0.0, 1.0, 100.0])
def test_what_a_broken_microphone_sends(tinyet_device, level):
    """A constant level, far outside the calibrated range too: nothing overflows, and no tone stands out."""
    result = tinyet_device.run(np.full((1, WINDOW), level, np.float32))
    assert result.bit_exact
    tone = tinyet_device.run(window(0, seed=1)).output.max()
    assert result.output.max() < 0.5 * tone


@pytest.mark.parametrize(
    "board",
    [
        pytest.param(name, marks=pytest.mark.tinyet(board=name, on=on))
        for name, on in (
            ("microbit", "qemu"),
            ("mps2_an385", "renode"),
            ("stm32f4_discovery", "renode"),
            ("stm32f746g_disco", "renode"),
            ("nano_33_ble", "renode"),
        )
    ],
)
def test_other_boards(tinyet_device, board):
    assert tinyet_device.board.name == board
    assert tinyet_device.validate(max_samples=4).bit_exact
