# SPDX-License-Identifier: Apache-2.0
"""The keyword network as a listener: it takes the newest four frames of cepstra, 80 ms of sound, and says after each
four what the last second was.

    tinyet generate examples/keyword_spotting/listening.py --board mps2_an386 -o build/listening

Between two runs it keeps the frames and features that it reads again; `listening_reset()` begins anew. Its convolutions
pad both ends of the second that they were trained on: here there is sound in the place of that padding.
"""

import sys
from pathlib import Path

from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent))

import model as keywords

import tinyet

labels = keywords.labels
FRAMES = 4
"""A run takes so many: the network halves the frames twice."""


def model() -> nn.Module:
    return tinyet.streaming(keywords.model(), keywords.example_inputs(), axis=2, hop=FRAMES, edges="continue")


example_inputs = keywords.example_inputs
calibration = keywords.calibration
