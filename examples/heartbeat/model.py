# SPDX-License-Identifier: Apache-2.0
"""A small 1-d CNN that tells rhythms of a heart from the counts that a converter gives of five seconds.

    tinyet generate examples/heartbeat/model.py --board mps2_an386 -o build/heartbeat

calls `model()`, `example_inputs()`, `calibration()` and `evaluation()` below. The data are synthesised (heart.py): the
example shows a signal path, not medicine.
"""

import sys
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import gallery
import heart

from tinyet import features

CLASSES = heart.CLASSES
labels = CLASSES
WEIGHTS = Path(__file__).with_name("heartbeat.pt")
EPOCHS = 25
LOUDEST = 2.0  # mV

# scipy.signal.butter(2, [0.7, 35], "bandpass", fs=125, output="sos"): neither breath nor mains.
BANDPASS = (
    (0.33926917, 0.67853834, 0.33926917, 1.0, 0.20585431, 0.18632958),
    (1.0, -2.0, 1.0, 1.0, -1.95025648, 0.95149948),
)


def _block(inputs: int, outputs: int) -> list[nn.Module]:
    """A depthwise convolution over time that halves it, and a pointwise one."""
    return [
        nn.Conv1d(inputs, inputs, 7, stride=2, padding=3, groups=inputs, bias=False),
        nn.BatchNorm1d(inputs),
        nn.ReLU(),
        nn.Conv1d(inputs, outputs, 1, bias=False),
        nn.BatchNorm1d(outputs),
        nn.ReLU(),
    ]


class Heart(nn.Module):
    """(N, 625) counts, the bits of uint16 as int16, to (N, 4) class probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.samples = features.Samples("uint16", offset=heart.MIDDLE)
        self.bandpass = features.Biquads(BANDPASS)
        self.layers = nn.Sequential(
            nn.Conv1d(1, 16, 15, stride=2, padding=7, bias=False),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            *_block(16, 24),
            *_block(24, 32),
            *_block(32, 32),
            *_block(32, 48),
        )
        self.classifier = nn.Linear(96, len(CLASSES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        millivolts = self.samples(x).float() / heart.COUNTS_A_MILLIVOLT
        # What is louder than any heart is a loose electrode: eight bits are better spent on the rest.
        y = self.layers(self.bandpass(millivolts).clamp(-LOUDEST, LOUDEST)[:, None])
        # How much there is of each pattern, and how strong it gets.
        y = torch.cat([y.mean(2), y.amax(2)], 1)
        return F.softmax(self.classifier(y), dim=-1)


def _recorded(each: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    counts, answers = heart.recordings(each, seed)
    return torch.from_numpy(counts.view("int16")), torch.from_numpy(answers)


def train(network: nn.Module) -> None:
    """About a minute."""
    inputs, answers = _recorded(500, seed=1_000)

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.nll_loss(torch.log(output + 1e-6), target)

    gallery.fit(network, inputs, answers, loss, epochs=EPOCHS)


def model() -> nn.Module:
    return gallery.trained(Heart, train, WEIGHTS)


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (evaluation()[0][:1],)


def calibration() -> list[torch.Tensor]:
    """200 recordings of the training set."""
    return list(_recorded(50, seed=1_000)[0].split(20))


@cache
def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """320 recordings that were not trained on, and what they are."""
    return _recorded(80, seed=900_000)
