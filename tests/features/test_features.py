# SPDX-License-Identifier: Apache-2.0
"""The modules of tinyet.features: scipy's and numpy's answers in torch, and all of them as one program, on this machine
and on a board."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import fft, signal, stats
from torch import Tensor, nn

import tinyet
from tests.ops.emulated import require_emulator
from tinyet import features
from tinyet.errors import UsageError
from tinyet.features.frames import window_of
from tinyet.features.statistics import STATISTICS
from tinyet.features.transforms import daubechies

RATE = 2000
X = torch.randn(2, 240, generator=torch.Generator().manual_seed(4))
LONG = X.numpy().astype(np.float64)
BUTTER = signal.butter(4, [0.1, 0.4], "bandpass", output="sos")
TAPS = signal.firwin(9, 0.3)

# Daubechies (1992), table 6.1.
DB3 = np.array([0.33267055295, 0.80689150931, 0.45987750212, -0.13501102001, -0.08544127388, 0.03522629189])

Reals = npt.NDArray[np.float64]


def _frames(x: Reals, size: int, hop: int) -> Reals:
    windows: Reals = np.lib.stride_tricks.sliding_window_view(x, size, -1)[..., ::hop, :]
    return windows


def _powers(x: Reals, size: int, hop: int, frame: int, window: str) -> Reals:
    windowed = _frames(x, frame, hop) * signal.get_window(window, frame)
    return np.asarray(np.abs(fft.rfft(windowed, size, axis=-1)) ** 2, np.float64)


def _log_mel(x: Reals) -> Reals:
    bank = features.mel_filters(RATE, 64, 10, low=50.0).numpy()
    return np.asarray(np.log(_powers(x, 64, 32, 48, "hann") @ bank.T + 1e-3), np.float64)


def _haar(x: Reals) -> Reals:
    parts: list[Reals] = []
    for _ in range(3):
        parts.insert(0, (x[..., ::2] - x[..., 1::2]) / np.sqrt(2))
        x = (x[..., ::2] + x[..., 1::2]) / np.sqrt(2)
    return np.concatenate([x, *parts], -1)


def _daubechies(x: Reals, taps: Reals, levels: int) -> Reals:
    """Sums of products over a signal that goes round, as pywt's periodization has them."""
    parts: list[Reals] = []
    high = taps[::-1] * (-1.0) ** np.arange(len(taps))
    for _ in range(levels):
        at = np.arange(x.shape[-1] // 2)[:, None] * 2 + np.arange(len(taps)) - len(taps) // 2 + 1
        windows = x[..., at % x.shape[-1]]
        parts.insert(0, windows @ high)
        x = windows @ taps
    return np.concatenate([x, *parts], -1)


def _pcen(x: Reals) -> Reals:
    """librosa.pcen's formulas (0.10), with T of 8 frames."""
    power = x.reshape(2, 12, 20) ** 2
    b = (np.sqrt(1 + 4 * 8.0**2) - 1) / (2 * 8.0**2)
    start = np.broadcast_to(signal.lfilter_zi([b], [1, b - 1])[:, None], (2, 1, 20))
    mean, _ = signal.lfilter([b], [1, b - 1], power, axis=1, zi=start)
    smooth = np.exp(-0.9 * (np.log(1e-3) + np.log1p(mean / 1e-3)))
    return np.asarray((2**0.5) * np.expm1(0.5 * np.log1p(power * smooth / 2)))


class _Pcen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pcen = features.PCEN(features.smoothing_of(8.0), gain=0.9, eps=1e-3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.pcen(x.reshape(2, 12, 20).square())
        return y


def _statistics(x: Reals) -> Reals:
    ordered = np.sort(x, -1)
    columns = {
        "mean": x.mean(-1),
        "variance": x.var(-1),
        "deviation": x.std(-1),
        "rms": np.sqrt((x**2).mean(-1)),
        "energy": (x**2).sum(-1),
        "least": x.min(-1),
        "greatest": x.max(-1),
        "peak_to_peak": np.ptp(x, -1),
        "skewness": stats.skew(x, -1),
        "kurtosis": stats.kurtosis(x, -1),
        "zero_crossings": (np.diff(np.signbit(x).astype(int), axis=-1) != 0).sum(-1),
        "mean_change": np.abs(np.diff(x, axis=-1)).mean(-1),
        "median": ordered[..., (x.shape[-1] + 1) // 2 - 1],
    }
    assert list(columns) == list(STATISTICS)
    return np.stack(list(columns.values()), -1)


def _log_mel_module() -> features.LogMel:
    return features.LogMel(RATE, 64, 32, 10, low=50.0, frame=48, floor=1e-3)


CASES: dict[str, tuple[nn.Module, Callable[[Reals], Any]]] = {
    "frames": (
        features.Frame(32, 12, "hamming"),
        lambda x: _frames(x, 32, 12) * signal.get_window("hamming", 32),
    ),
    "power": (features.PowerSpectrum(64, 40), lambda x: _powers(x, 64, 40, 64, "hann")),
    "spectrum": (
        features.Spectrum(40, 40, "blackman", frame=36, scale=0.5),
        lambda x: np.sqrt(_powers(x, 40, 40, 36, "blackman")) / 2,
    ),
    "log mel": (_log_mel_module(), _log_mel),
    "cepstra": (
        features.MFCC(_log_mel_module(), 6),
        lambda x: fft.dct(_log_mel(x), norm="ortho", axis=-1)[..., :6],
    ),
    "pre-emphasis": (features.PreEmphasis(0.9), lambda x: signal.lfilter([1, -0.9], 1, x)),
    "FIR": (features.FIR(TAPS), lambda x: signal.lfilter(TAPS, 1, x)),
    "FIR of whole windows": (
        features.FIR(TAPS, padded=False),
        lambda x: signal.lfilter(TAPS, 1, x)[..., 8:],
    ),
    "biquads": (features.Biquads(BUTTER), lambda x: signal.sosfilt(BUTTER, x)),
    "slower": (features.Resample(2, 3), lambda x: signal.resample_poly(x, 2, 3, axis=-1)),
    "faster": (features.Resample(10, 4), lambda x: signal.resample_poly(x, 5, 2, axis=-1)),
    "halved": (features.Resample(1, 2), lambda x: signal.resample_poly(x, 1, 2, axis=-1)),
    "statistics": (
        nn.Sequential(features.Frame(60, 60), features.Statistics(list(STATISTICS))),
        lambda x: _statistics(_frames(x, 60, 60)),
    ),
    "autocorrelation": (
        features.Autocorrelation(5),
        lambda x: np.stack([signal.correlate(row, row)[239:245] for row in x]),
    ),
    "autocorrelation of one": (
        features.Autocorrelation(3, normalized=True),
        lambda x: np.stack([signal.correlate(row, row)[239:243] / (row @ row) for row in x]),
    ),
    "quantiles": (
        nn.Sequential(features.Frame(60, 60), features.Quantiles([0.0, 0.25, 0.5, 0.9, 1.0])),
        lambda x: np.moveaxis(np.quantile(_frames(x, 60, 60), [0.0, 0.25, 0.5, 0.9, 1.0], axis=-1), 0, -1),
    ),
    "energies of channels": (_Pcen(), _pcen),
    "Daubechies' wavelets": (features.Daubechies(3, 2), lambda x: _daubechies(x, DB3, 2)),
    "single frequencies": (
        features.Goertzel(240, [50.0, RATE * 7 / 240], RATE),
        lambda x: np.abs(fft.rfft(x)[..., [6, 7]]) ** 2,
    ),
    "Haar": (features.Haar(3), _haar),
    "envelope": (features.Envelope(), lambda x: np.abs(signal.hilbert(x))),
}


class All(nn.Module):
    """Of every module the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.ModuleList(module for module, _ in CASES.values())

    def forward(self, x: Tensor) -> list[Tensor]:
        return [module(x) for module in self.features]


@pytest.fixture(scope="module")
def program() -> tinyet.Program:
    return tinyet.compile(All().eval(), (X,), name="many_features")


@pytest.mark.parametrize("name", CASES)
def test_scipy(name: str) -> None:
    module, function = CASES[name]
    wanted = function(LONG)
    found = module(X).numpy().astype(np.float64)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-5 * np.abs(wanted).max())


def test_program(program: tinyet.Program) -> None:
    """The reference is near torch; numbers of very different sizes are in one output each."""
    for (name, (module, _)), result in zip(CASES.items(), program.run(X.numpy()), strict=True):
        wanted = module(X).numpy()
        size = 1e-5 * float(np.abs(wanted).max())
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=size, err_msg=name)
    made = [node.op for node in program.graph.nodes]
    assert made.count("linear_bands") == 1, "mel filters, of which there are two equal ones"
    assert made.count("biquads") == 2


def test_board(program: tinyet.Program, tmp_path: Path) -> None:
    """All modules in one firmware, and on this machine under the sanitizers."""
    require_emulator("mps2_an386")
    project = tinyet.generate(program, "mps2_an386", tmp_path / "features")
    samples = torch.stack([X, 1000 * X, torch.zeros_like(X), torch.ones_like(X)]).numpy()
    assert project.validate(samples, on="host").bit_exact
    project.build()
    assert project.validate(samples[:2], on="qemu").bit_exact


@pytest.mark.parametrize("scale", ["htk", "slaney"])
@pytest.mark.parametrize("norm", [None, "slaney"])
def test_librosa(scale: Any, norm: Any) -> None:
    filters = pytest.importorskip("librosa").filters
    wanted = filters.mel(sr=RATE, n_fft=512, n_mels=20, fmin=20.0, htk=scale == "htk", norm=norm)
    found = features.mel_filters(RATE, 512, 20, low=20.0, scale=scale, norm=norm)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-7)


def test_pywt() -> None:
    pywt = pytest.importorskip("pywt")
    for moments in range(1, 11):
        np.testing.assert_allclose(daubechies(moments), pywt.Wavelet(f"db{moments}").rec_lo, atol=1e-8)
        wanted = np.concatenate(pywt.wavedec(LONG, f"db{moments}", mode="periodization", level=3), -1)
        np.testing.assert_allclose(features.Daubechies(moments, 3)(X).numpy(), wanted, atol=1e-5)


def test_librosa_pcen() -> None:
    librosa = pytest.importorskip("librosa")
    power = LONG.reshape(2, 12, 20) ** 2
    wanted = librosa.pcen(power, b=features.smoothing_of(8.0), gain=0.9, eps=1e-3, axis=1)
    np.testing.assert_allclose(_Pcen()(X).numpy(), wanted, rtol=1e-4)


@pytest.mark.parametrize("moments", range(1, 11))
def test_wavelets(moments: int) -> None:
    """Orthonormal; so many moments of the differences are 0, and no more; Haar's are the first."""
    taps = daubechies(moments)
    shifted = [taps[2 * k :] @ taps[: len(taps) - 2 * k] for k in range(moments)]
    np.testing.assert_allclose(shifted, [1.0, *[0.0] * (moments - 1)], atol=1e-7)
    # The first taps are the large ones, as pywt's and Daubechies' tables have them.
    assert np.abs(taps[:moments]).sum() > np.abs(taps[moments:]).sum() - 1e-9
    signs = taps[::-1] * (-1.0) ** np.arange(len(taps))
    sizes = [np.abs(signs @ (np.arange(len(taps)) / len(taps)) ** k) for k in range(moments + 1)]
    assert max(sizes[:moments]) < 1e-6 < sizes[moments] * 100
    energy = (features.Daubechies(moments, 3)(X) ** 2).sum(-1)
    np.testing.assert_allclose(energy.numpy(), (LONG**2).sum(-1), rtol=1e-5)
    if moments == 1:
        np.testing.assert_allclose(features.Daubechies(1, 3)(X), features.Haar(3)(X), atol=1e-5)


def test_mel_filters() -> None:
    """Triangles that meet at the middle of their neighbours; the middles lie at equal steps of mel."""
    for scale, middle in (("htk", 2595 * np.log10(1 + 1000 / 700)), ("slaney", 15.0)):
        bank = features.mel_filters(RATE, 2000, 9, scale=scale).numpy()  # type: ignore[arg-type]
        top = bank.argmax(1)
        assert (np.abs(bank.sum(0)[top[0] + 1 : top[-1]] - 1) < 1e-6).all()
        low = 15 / 1000 * top if scale == "slaney" else 2595 * np.log10(1 + top / 700)
        assert np.abs(low - middle * np.arange(1, 10) / 10).max() < 0.001 * middle
    scaled = features.mel_filters(RATE, 2000, 9, norm="slaney").numpy()
    np.testing.assert_allclose(scaled.sum(1), 1.0, rtol=2e-2)  # their areas, at one bin a hertz


@pytest.mark.parametrize("kind", ["hann", "hamming", "blackman"])
def test_windows(kind: str) -> None:
    np.testing.assert_allclose(window_of(kind, 30), signal.get_window(kind, 30), atol=1e-7)


def test_resampling_of_other_lengths() -> None:
    for up, down in ((3, 7), (7, 3), (160, 147), (1, 5)):
        for count in (1, 100, 101):
            wanted = signal.resample_poly(LONG[:, :count], up, down, axis=-1)
            found = features.Resample(up, down)(X[:, :count])
            np.testing.assert_allclose(found.numpy(), wanted, atol=1e-5)


def test_gradients() -> None:
    """A network in front of a filter can be trained."""
    x = torch.randn(2, 12, dtype=torch.float64, requires_grad=True)
    module = features.Biquads(BUTTER)
    module.sections = module.sections.double()
    rest = torch.zeros(2, len(BUTTER), 2, dtype=torch.float64)
    function = torch.ops.tinyet.biquads.default
    assert torch.autograd.gradcheck(lambda v: function(v, rest, module.sections)[0], (x,))


def test_filters_of_few_and_many_rows() -> None:
    """In float64, which calibration computes in: the same bits; to float32's accuracy what a program computes."""
    sections = torch.tensor([[0.5, 0.2, 0.1, -0.9, 0.5], [1, -2, 1, 0.3, 0.8]], dtype=torch.float64)
    rows = torch.randn(40, 34, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    x, state = rows[:, :30], rows[:, 30:].reshape(40, 2, 2)
    function = torch.ops.tinyet.biquads.default
    whole = function(x, state, sections)
    parts = [function(x[at], state[at], sections) for at in (slice(9), slice(9, 40))]
    narrow = function(x.float(), state.float(), sections.float())
    for few, many, found in zip(zip(*parts, strict=True), whole, narrow, strict=True):
        assert torch.equal(torch.cat(few), many)
        torch.testing.assert_close(found, many.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: features.Frame(0, 4), "size is a whole number"),
        (lambda: features.Frame(8, 4, "gauss"), "no window is called 'gauss'"),
        (lambda: features.Frame(8, 4, torch.ones(9)), "a window of shape"),
        (lambda: features.PowerSpectrum(16, 4, frame=20), "frames of 20 samples do not fit"),
        (lambda: features.mel_filters(RATE, 64, 40), "mel bands without a single frequency: 0"),
        (lambda: features.mel_filters(RATE, 64, 4, high=1500), "mel bands from"),
        (lambda: features.LogMel(RATE, 64, 32, 4, floor=0), "the floor is 0"),
        (lambda: features.DCT(10, 11), "11 coefficients"),
        (lambda: features.Statistics(["mean", "mode"]), "no statistics: mode"),
        (lambda: features.Autocorrelation(300)(X), "300 lags of 240"),
        (lambda: features.Biquads([[1, 0, 0, 1, -2, 1.1]]), "is not stable"),
        (lambda: features.Biquads([1, 0, 0]), r"sections of shape \(3,\)"),
        (lambda: features.FIR([]), "taps of shape"),
        (lambda: features.Haar(5)(X), "240 samples are not halved 5 times"),
        (lambda: features.Daubechies(11, 1), "11 vanishing moments"),
        (lambda: features.Daubechies(10, 4)(X[:, :80]), "are not halved 4 times"),
        (lambda: features.Quantiles([1.5]), "quantiles"),
        (lambda: features.PCEN(1.5), "PCEN of smoothing 1.5"),
        (lambda: features.Goertzel(8, [1200.0], RATE), "frequencies from 0 to"),
        (lambda: features.Envelope()(X[:, :5]), "an even number"),
    ],
)
def test_what_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make()
