# SPDX-License-Identifier: Apache-2.0
"""The keyword network with its front end in one program: from a second of a microphone's samples to the word.

    tinyet generate examples/keyword_spotting/sound.py --board mps2_an386 -o build/sound

`hearing()` is the same as a listener, which takes 80 ms of sound at a time. The network, its weights and the data are
those of model.py; in the place of mfcc.c stands `tinyet.features`, its spectra in fixed point: "auto" finds that this
loses nothing.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent))

import mfcc
import model as keywords
import words

import tinyet
from tinyet import features
from tinyet.features.mel import Arithmetic

CLASSES = words.CLASSES
labels = CLASSES
HOP = 4 * mfcc.HOP
"""Samples a run: four frames, because the network halves the frames twice."""


class Sound(nn.Module):
    """(1, 16000) samples, int16, to (1, 6) class probabilities."""

    def __init__(self, arithmetic: Arithmetic = "auto") -> None:
        super().__init__()
        mel = features.LogMel(
            mfcc.RATE,
            mfcc.FRAME,
            mfcc.HOP,
            mfcc.BANDS,
            low=mfcc.LOWEST_HZ,
            high=mfcc.HIGHEST_HZ,
            floor=mfcc.FLOOR,
            arithmetic=arithmetic,
        )
        self.cepstra = features.MFCC(mel, mfcc.CEPSTRA)
        self.register_buffer("mean", torch.tensor(keywords.MEAN) / 2.0**mfcc.FRACTION, persistent=False)
        self.register_buffer("scale", 1.0 / torch.tensor(keywords.DEVIATION), persistent=False)
        self.network = keywords.model()

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        x = (self.cepstra(samples) - self.mean) * self.scale
        return self.network(x[:, None])


def model(arithmetic: Arithmetic = "auto") -> nn.Module:
    return Sound(arithmetic).eval()


def hearing() -> nn.Module:
    """Takes HOP samples a run, and answers for the last second."""
    return tinyet.streaming(model(), example_inputs(), axis=1, hop=HOP, edges="continue")


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (evaluation()[0][:1],)


def _recorded(each: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    sounds, answers = words.recordings(each, seed)
    return torch.from_numpy(np.asarray(sounds, np.int16)), torch.from_numpy(answers)


def calibration() -> list[torch.Tensor]:
    """72 recordings of the training set."""
    return list(_recorded(12, seed=1_000)[0].split(12))


@cache
def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """240 recordings by voices that were not trained on, and what they are."""
    return _recorded(40, seed=900_000)
