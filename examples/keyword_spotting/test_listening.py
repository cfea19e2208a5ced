# SPDX-License-Identifier: Apache-2.0
"""The listener on an emulated board, frame after frame.

pytest examples/keyword_spotting
"""

from pathlib import Path

import mfcc
import numpy as np
import pytest
import words
from listening import FRAMES
from model import features

pytestmark = pytest.mark.tinyet(model=str(Path(__file__).with_name("listening.py")), board="mps2_an386")


@pytest.fixture(scope="module")
def recordings():
    """Features (n, 1, 49, 13) of two recordings of each word, by unheard voices, and which they are."""
    sounds, said = words.recordings(2, seed=900_000)
    return features(mfcc.mfcc(sounds)).numpy(), said


def heard(device, recording):
    """The answers to a recording of 49 frames, from its second one on, four at a time."""
    return [device.run(recording[None, :, i : i + FRAMES]) for i in range(1, recording.shape[1], FRAMES)]


def test_words_are_heard(tinyet_device, recordings):
    """Each after a reset, by its last frame; bit for bit what the host reference says, whose states go along."""
    right, (sounds, said) = 0, recordings
    for recording, label in zip(sounds, said, strict=True):
        tinyet_device.reset()
        answers = heard(tinyet_device, recording)
        assert all(answer.bit_exact for answer in answers)
        right += answers[-1].label == label
    assert right >= 0.9 * len(said)
    tinyet_device.check(instructions=80_000, arena_bytes=5_700)


def test_what_was_heard_before_matters_until_the_reset(tinyet_device, recordings):
    first, second = recordings[0][:2]
    tinyet_device.reset()
    alone = heard(tinyet_device, second)
    again = heard(tinyet_device, second)
    assert not all(np.array_equal(a.raw[0], b.raw[0]) for a, b in zip(alone, again, strict=True))
    heard(tinyet_device, first)
    tinyet_device.reset()
    anew = heard(tinyet_device, second)
    assert all(np.array_equal(a.raw[0], b.raw[0]) for a, b in zip(alone, anew, strict=True))
