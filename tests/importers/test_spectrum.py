# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms in PyTorch, and what is done with complex numbers behind them: as torch computes it, and in C as
the reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import tinyet
from tests.torch_helpers import Lambda
from tinyet.errors import ModelError, UnsupportedShape
from tinyet.fx.spectrum_ops import IRFFT, RFFT

SIGNAL = torch.randn(2, 64, generator=torch.Generator().manual_seed(1))
WINDOW = torch.hann_window(16)
HEIGHTS = torch.linspace(0.5, 2.0, 33)


def stft(x: Tensor, **options: Any) -> Tensor:
    return torch.stft(x, 16, 4, window=WINDOW, return_complex=True, **options)


def _masked(x: Tensor) -> Tensor:
    z = stft(x)
    return torch.istft(z * torch.sigmoid(z.abs()), 16, 4, window=WINDOW, length=60)


def _by_complex_numbers(x: Tensor) -> Tensor:
    z = torch.fft.rfft(x)
    return torch.view_as_real(z * HEIGHTS * 1j + (2 + z) / (2 + 1j) - z / (torch.fft.rfft(x.flip(-1)) + 3))


def _moved(x: Tensor) -> Tensor:
    z = stft(x).transpose(1, 2)[:, 2:-1]
    z = torch.stack([z, -z.flip(1)], -1).mean(-1, keepdim=True).squeeze(-1)
    padded = torch.nn.functional.pad(torch.cat([z, z.unsqueeze(0)[0]], 1), (0, 1))
    return torch.view_as_real(padded.permute(2, 0, 1).reshape(10, -1))


CASES: dict[str, Callable[[Tensor], Tensor]] = {
    "power": lambda x: stft(x).abs() ** 2,
    "squared": lambda x: stft(x, pad_mode="constant").abs().square(),
    "magnitude": lambda x: stft(x, center=False, normalized=True).abs(),
    "both sides": lambda x: stft(x, onesided=False).real,
    "a shorter window": lambda x: torch.view_as_real(
        torch.stft(x, 20, 5, win_length=12, window=torch.hamming_window(12), return_complex=True)
    ),
    "conjugate product": lambda x: (torch.fft.rfft(x) * torch.fft.rfft(x.flip(-1)).conj()).imag,
    "real values": lambda x: torch.view_as_real(torch.fft.rfft(x)),
    "padded": lambda x: torch.fft.rfft(x, n=90, norm="ortho").imag,
    "odd": lambda x: torch.fft.rfft(x, n=33).abs(),
    "along another axis": lambda x: torch.view_as_real(torch.fft.rfft(x.T, dim=0)),
    "back": lambda x: torch.fft.irfft(torch.fft.rfft(x) * HEIGHTS),
    "back, cut": lambda x: torch.fft.irfft(torch.fft.rfft(x), n=40, norm="forward"),
    "back, odd": lambda x: torch.fft.irfft(torch.fft.rfft(x), n=45, norm="ortho"),
    "whole": lambda x: torch.view_as_real(torch.fft.fft(x)),
    "whole, odd": lambda x: torch.view_as_real(torch.fft.fft(x, n=9)),
    "of complex values": lambda x: torch.view_as_real(torch.fft.fft(torch.complex(x, x * x))),
    "convolution": lambda x: torch.fft.ifft(torch.fft.fft(x) * torch.fft.fft(x.flip(-1))).real,
    "of an image": lambda x: torch.fft.rfft2(x.reshape(2, 8, 8)).abs(),
    "back to an image": lambda x: torch.fft.irfft2(torch.fft.rfft2(x.reshape(2, 8, 8)) / 3),
    "middle in front": lambda x: torch.fft.fftshift(torch.fft.fft(x), dim=-1).abs(),
    "added again": lambda x: torch.istft(stft(x), 16, 4, window=WINDOW),
    "masked": _masked,
    "numbers": _by_complex_numbers,
    "moved": _moved,
}


class All(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        return [function(x) for function in CASES.values()]


@pytest.fixture(scope="module")
def program() -> tinyet.Program:
    return tinyet.compile(All().eval(), (SIGNAL,), name="spectra")


def test_torch(program: tinyet.Program) -> None:
    found = program.run(SIGNAL.numpy())
    for (name, function), result in zip(CASES.items(), found, strict=True):
        wanted = function(SIGNAL).numpy()
        np.testing.assert_allclose(result, wanted, rtol=2e-5, atol=2e-5, err_msg=name)


def test_host(program: tinyet.Program, tmp_path: Path) -> None:
    project = tinyet.generate(program, "mps2_an386", tmp_path / "spectra")
    wide = torch.stack([SIGNAL, 1e4 * SIGNAL, torch.zeros_like(SIGNAL), torch.ones_like(SIGNAL)])
    assert project.validate(wide.numpy(), on="host").bit_exact


def test_a_power_has_no_root() -> None:
    graph = tinyet.compile(Lambda(CASES["power"]), (SIGNAL,)).graph
    assert "unary" not in {node.op for node in graph.nodes}


def test_what_is_refused() -> None:
    with pytest.raises(UnsupportedShape, match=r"a transform of 67 values.*\n.*\n.*n=72\)") as caught:
        tinyet.compile(Lambda(lambda x: torch.fft.rfft(x, n=67).abs()), (SIGNAL,))
    assert "test_spectrum.py" in caught.value.what
    with pytest.raises(ModelError, match=r"complex:\n.*\n.*test_spectrum.py"):
        tinyet.compile(Lambda(lambda x: torch.fft.rfft(x) * 2), (SIGNAL,))


def test_short_transforms_of_any_length() -> None:
    lengths = (1, 2, 3, 7, 44, 61)

    def both(x: Tensor) -> list[Tensor]:
        spectra = [(n, torch.fft.rfft(x[:, :n])) for n in lengths]
        return [part for n, z in spectra for part in (z.real, torch.fft.irfft(z, n=n))]

    found = tinyet.compile(Lambda(both), (SIGNAL,)).run(SIGNAL.numpy())
    for result, wanted in zip(found, both(SIGNAL), strict=True):
        np.testing.assert_allclose(result, wanted.numpy(), rtol=1e-5, atol=1e-5)


def test_torchaudio() -> None:
    """Its transforms go through as they are; mel filters become their runs."""
    transforms = pytest.importorskip("torchaudio").transforms
    x = torch.randn(1, 2000, generator=torch.Generator().manual_seed(2))
    options = {"n_fft": 256, "hop_length": 100, "n_mels": 20, "f_min": 60.0}
    for module, runs in (
        (transforms.MelSpectrogram(8000, **options), True),
        (transforms.MFCC(8000, 13, melkwargs=options), True),
        (transforms.Resample(8000, 5000), False),
    ):
        program = tinyet.compile(module.eval(), (x,))
        wanted = module(x).numpy()
        found = np.asarray(program.run(x.numpy()), np.float32)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())
        assert ("linear_bands" in {node.op for node in program.graph.nodes}) is runs


@pytest.mark.parametrize("n", [7, 8])
def test_gradients(n: int) -> None:
    x = torch.randn(2, 8, dtype=torch.float64, requires_grad=True)
    z = torch.randn(2, 2 * (n // 2 + 1), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: RFFT(v[:, :n], n), (x,))
    assert torch.autograd.gradcheck(lambda v: IRFFT(v, n), (z,))
