# SPDX-License-Identifier: Apache-2.0
"""What goes into a program and comes out: one rule, also for models that begin with a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tests.torch_helpers import line_of
from tinyet.errors import DataError
from tinyet.quantization.config import QuantConfig, int4_config, int8_config, int16_config
from tinyet.quantization.quantizer import TinyetQuantizer


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 8)
        self.fc = nn.Linear(8, 3)

    def forward(self, words: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        rows = self.table(words[:, 1:].reshape(1, 5))  # here
        return self.fc(rows.mean(1) + x)  # type: ignore[no-any-return]


def test_models_that_begin_with_a_table() -> None:
    torch.manual_seed(0)
    model = Words().eval()
    samples = [(torch.randint(0, 10, (1, 6)), torch.randn(1, 8)) for _ in range(16)]
    program = tinyet.compile(model, samples[0], calibration=samples)
    words, x = (value.numpy() for value in samples[1])
    want = model(*samples[1]).detach().numpy()
    got = np.asarray(program.run(words, x))
    assert got.dtype == np.float32
    assert np.abs(got - want).max() < 0.1
    assert np.asarray(program.run(words, x, as_float=False)).dtype == np.int8
    # the device's integers come out where they went in
    assert np.asarray(program.run(words, np.zeros((1, 8), np.int8))).dtype == np.int8
    assert np.asarray(program.run(words, np.zeros((1, 8), np.int8), as_float=True)).dtype == np.float32

    words = words.copy()
    words[0, 0] = 99  # no reader sees this one, but it is no index all the same
    words[0, 3] = -2
    with pytest.raises(DataError, match=r"outside 0 … 9") as caught:
        program.run(words, x)
    assert f"test_boundary.py:{line_of(Words, '# here')}" in str(caught.value)
    # what the device does with it
    nearest = words.clip(0, 9)
    x8 = np.zeros((1, 8), np.int8)
    raw, clamped = (program.outputs_for([np.asarray(w, np.int32), x8])[0] for w in (words, nearest))
    assert np.array_equal(raw, clamped)


@pytest.mark.parametrize("config", [int8_config(), int16_config(), int4_config()])
def test_transposed_convolutions_of_one_channel(config: QuantConfig) -> None:
    """One channel in all, one a group, one in or one out: each axis of the weight that may count output channels."""
    layers: list[tuple[Any, int]] = []
    for into, out, groups in ((1, 1, 1), (4, 4, 4), (1, 4, 1), (4, 1, 1)):
        layers.append((nn.ConvTranspose2d(into, out, 3, stride=2, groups=groups), 2))
        layers.append((nn.ConvTranspose1d(into, out, 3, stride=2, groups=groups), 1))

    class All(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(layer for layer, _ in layers)

        def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return tuple(layer(x) for layer, x in zip(self.layers, inputs, strict=True))

    torch.manual_seed(0)
    samples = [
        tuple(torch.randn(1, layer.in_channels, *[5] * spatial) for layer, spatial in layers)
        for _ in range(8)
    ]
    model = All().eval()
    program = tinyet.compile(model, samples[0], calibration=samples, quantizer=TinyetQuantizer(config))
    assert not program.notes
    for got, want in zip(program.run(*[x.numpy() for x in samples[1]]), model(*samples[1]), strict=True):
        error = np.abs(got - want.detach().numpy()).max()
        assert error < 0.05 * float(want.abs().max())
