# SPDX-License-Identifier: Apache-2.0
"""Features that take the newest samples only: each frame is transformed once, to the bits that it has in a window."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torchao", reason="torchao is not installed")

import torch

import tinyet
from tinyet import features

SIZE, HOP, FRAMES, BANDS = 64, 32, 7, 8


@pytest.mark.parametrize("which", ["log-mel", "filtered spectrum"])
def test_a_frame_has_the_bits_that_it_has_in_a_window(which: str) -> None:
    if which == "log-mel":
        module: torch.nn.Module = features.LogMel(1600.0, SIZE, HOP, BANDS)
    else:
        module = torch.nn.Sequential(
            features.FIR(torch.tensor([0.5, 0.25, -0.125])), features.PowerSpectrum(SIZE, HOP)
        )
    window = torch.zeros(1, SIZE + (FRAMES - 1) * HOP)
    whole = tinyet.compile(module.eval(), (window,), name="front")
    streamed = whole.streaming(1, hop=HOP)
    assert streamed.inputs[0].shape == (1, HOP)
    runs = 3 * FRAMES
    sound = np.random.default_rng(0).standard_normal((1, runs * HOP)).astype(np.float32)
    session = streamed.session()
    heard = [np.asarray(session.run(sound[:, k * HOP : (k + 1) * HOP])) for k in range(runs)]
    frames = np.asarray(whole.run(sound[:, -window.shape[1] :]))
    # The first frame of a window may be made of what is in front of it, which the window has not.
    told = frames.reshape(frames.shape[-2], -1)[1:]
    last = np.stack([each.reshape(-1) for each in heard[-len(told) :]])
    np.testing.assert_array_equal(last.view(np.uint32), told.view(np.uint32))
