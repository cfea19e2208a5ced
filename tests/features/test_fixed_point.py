# SPDX-License-Identifier: Apache-2.0
"""Spectra in fixed point: who chooses it, what is told, what float model stands beside it, and that it streams."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torchao", reason="torchao is not installed")

import torch
from torch import Tensor, nn

import tinyet
from tinyet import features
from tinyet.errors import UnsupportedOp, UsageError
from tinyet.features.mel import Arithmetic
from tinyet.ir import DType

SIZE, HOP, BANDS = 64, 32, 8


def sounds(loudness: float = 3000.0) -> list[Tensor]:
    noise = torch.randn(6, 1, 256, generator=torch.Generator().manual_seed(3))
    return list((noise * torch.logspace(-1, 0, 256) * loudness).round().to(torch.int16))


class Net(nn.Module):
    def __init__(self, arithmetic: Arithmetic, *, window: Tensor | str = "hann") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.mel = features.LogMel(1600.0, SIZE, HOP, BANDS, floor=1.0, arithmetic=arithmetic, window=window)
        self.last = nn.Linear(BANDS, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.last(self.mel(x)).mean(-2)
        return y


def operators(program: tinyet.Program) -> set[str]:
    return {node.op for node in program.graph.nodes}


def test_auto_chooses_fixed_point_and_tells() -> None:
    model = Net("auto").eval()
    program = tinyet.compile(model, (sounds()[0],), calibration=sounds())
    assert "log_bands" in operators(program)
    assert "signal_rfft" not in operators(program)
    (note,) = [n for n in program.notes if "fixed point" in n.text]
    assert float(note.text.split(": ")[1].split(" dB")[0]) > 50
    assert program.float_graph is not None
    beside = {node.op for node in program.float_graph.nodes}
    assert "signal_rfft" in beside
    assert "log_bands" not in beside
    for x in sounds():
        with torch.no_grad():
            wanted = model(x).numpy()
        assert np.abs(program.run(x.numpy()) - wanted).max() < 0.05 * np.abs(wanted).max()


def test_auto_stays_in_float_where_it_loses() -> None:
    """Sounds of one step of the converter, the window of which is 1e-3, are rounded away."""
    model = Net("auto", window=torch.full((SIZE,), 1e-4)).eval()
    program = tinyet.compile(model, (sounds()[0],), calibration=sounds(30.0))
    assert "log_bands" not in operators(program)
    assert "signal_rfft" in operators(program)
    (note,) = [n for n in program.notes if "stays in float32" in n.text]
    assert "30 are enough" in note.text


@pytest.mark.parametrize(("arithmetic", "fixed"), [("auto", False), ("fixed", True), ("float", False)])
def test_without_calibration(arithmetic: Arithmetic, fixed: bool) -> None:
    program = tinyet.compile(Net(arithmetic).eval(), (sounds()[0],))
    assert ("log_bands" in operators(program)) is fixed
    assert any("there is none" in n.text for n in program.notes) is (arithmetic == "auto")


def test_answers_are_those_of_the_spelled_out_float32() -> None:
    """What stays in float32 has the bits of the module that takes floats."""
    x = sounds()[0]
    plain = tinyet.compile(Net("float").eval(), (x.float(),))
    program = tinyet.compile(Net("auto").eval(), (x,))
    np.testing.assert_array_equal(program.run(x.numpy()), plain.run(x.float().numpy()))


def test_streams() -> None:
    mel = features.LogMel(1600.0, SIZE, HOP, BANDS, arithmetic="fixed").eval()
    window = torch.zeros(1, SIZE + 6 * HOP, dtype=torch.int16)
    whole = tinyet.compile(mel, (window,), name="front")
    session = whole.streaming(1, hop=HOP).session()
    sound = np.random.default_rng(0).integers(-9000, 9000, (1, 20 * HOP)).astype(np.int16)
    heard = [np.asarray(session.run(sound[:, k * HOP : (k + 1) * HOP])) for k in range(20)]
    frames = np.asarray(whole.run(sound[:, -window.shape[1] :])).reshape(-1, BANDS)
    np.testing.assert_array_equal(np.stack([h.reshape(-1) for h in heard[-len(frames) + 1 :]]), frames[1:])


def test_log_spectrum_on_the_device() -> None:
    module = features.LogSpectrum(60, 30, low=2, high=25, floor=4.0, arithmetic="fixed").eval()
    x = sounds()[0]
    program = tinyet.compile(module, (x,))
    (node,) = [n for n in program.graph.nodes if n.op == "log_bands"]
    assert node.output.dtype is DType.INT16
    frames = np.lib.stride_tricks.sliding_window_view(x.numpy()[0], 60)[::30].astype(np.float64)
    power = np.abs(np.fft.rfft(frames * hann())) ** 2
    answer = np.asarray(program.run(x.numpy()), np.float64)[0]
    np.testing.assert_allclose(answer, np.log(power[:, 2:26] + 4.0), atol=0.02)


def hann() -> np.ndarray:
    return np.asarray(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(60) / 60))


def test_refused() -> None:
    with pytest.raises(UsageError, match="int16"):
        Net("fixed")(torch.zeros(1, 256))
    with pytest.raises(UsageError, match="no arithmetic"):
        features.LogMel(1600.0, SIZE, HOP, BANDS, arithmetic="int")  # type: ignore[arg-type]
    loud = Net("fixed", window=torch.full((SIZE,), 2.0)).eval()
    with pytest.raises(UnsupportedOp, match="the window is greater than 1"):
        tinyet.compile(loud, (sounds()[0],))
