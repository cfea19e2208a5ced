# SPDX-License-Identifier: Apache-2.0
"""A program takes the bytes of a converter's buffer: every kind, of one channel and of several, and as a stream."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torchao", reason="torchao is not installed")

import torch
from torch import Tensor, nn

import tinyet
from tinyet import features
from tinyet.errors import UsageError

SOUND = np.random.default_rng(5).integers(-20000, 20000, (1, 224)).astype(np.int16)


def of(kind: str) -> np.ndarray:
    """SOUND as a buffer of this kind has it."""
    match kind:
        case "uint16":
            return (SOUND.astype(np.int32) + 32768).astype(np.uint16).view(np.int16)
        case "int16":
            return SOUND
    low = np.random.default_rng(6).integers(0, 65536, SOUND.shape)
    return np.asarray((SOUND.astype(np.int64) << 16) | low).astype(np.int32)


class Net(nn.Module):
    def __init__(self, samples: features.Samples) -> None:
        super().__init__()
        self.samples = samples
        self.mel = features.LogMel(1600.0, 64, 32, 8, floor=1.0, arithmetic="fixed")

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.mel(self.samples(x))
        return y


def bands(module: features.Samples, x: np.ndarray) -> tuple[tinyet.Program, np.ndarray]:
    program = tinyet.compile(Net(module).eval(), (torch.from_numpy(x),), name="net")
    return program, np.asarray(program.run(x))


WANTED = bands(features.Samples(), SOUND)[1]


@pytest.mark.parametrize("kind", ["uint16", "int24", "int32"])
def test_kinds(kind: features.samples.Kind) -> None:
    program, found = bands(features.Samples(kind), of(kind))
    assert program.inputs[0].dtype.numpy == of(kind).dtype
    np.testing.assert_array_equal(found, WANTED)


def test_interleaved_and_streamed() -> None:
    both = np.stack([SOUND, SOUND[:, ::-1]], -1)
    module = features.Samples(interleaved=True)
    _, found = bands(module, both)
    assert found.shape == (1, 2, *WANTED.shape[1:])
    np.testing.assert_array_equal(found[:, 0], WANTED)
    one, alone = bands(features.Samples(interleaved=True, channel=0), both)
    np.testing.assert_array_equal(alone, WANTED)
    session = one.streaming(1, hop=64).session()
    heard = [np.asarray(session.run(both[:, at : at + 64])) for at in range(0, 192, 64)]
    np.testing.assert_array_equal(heard[-1].reshape(-1, 8)[-1], WANTED[0, -2])


def test_twelve_bits() -> None:
    module = features.Samples("uint16", offset=2048)
    assert module(torch.tensor([0, 2048, 4095], dtype=torch.int16)).tolist() == [-2048, 0, 2047]


def test_refused() -> None:
    for arguments, why in (
        ({"kind": "int8"}, "no samples"),
        ({"shift": 16}, "shift"),
        ({"kind": "int24", "shift": 4}, "shift"),
        ({"offset": 70000}, "offset"),
        ({"channel": 1}, "interleaved"),
    ):
        with pytest.raises(UsageError, match=why):
            features.Samples(**arguments)
    with pytest.raises(UsageError, match="int16 lies in"):
        features.Samples()(torch.zeros(4))
