# SPDX-License-Identifier: Apache-2.0
"""Front end and network as one program on an emulated board: samples in, words out.

pytest examples/keyword_spotting
"""

from pathlib import Path

import pytest
import words

pytestmark = pytest.mark.tinyet(model=str(Path(__file__).with_name("sound.py")), board="mps2_an386")


def test_words_are_heard(tinyet_device):
    """Bit for bit what the host reference says."""
    sounds, said = words.recordings(1, seed=900_000)
    answers = [tinyet_device.run(samples[None]) for samples in sounds]
    assert all(answer.bit_exact for answer in answers)
    assert sum(answer.label == label for answer, label in zip(answers, said, strict=True)) >= len(said) - 1
    tinyet_device.check(instructions=4_000_000)
