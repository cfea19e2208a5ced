# SPDX-License-Identifier: Apache-2.0
"""torchaudio's recursive filters: as scipy filters, and the operator that `features.Biquads` is.

torchaudio need not be here: a module of its name computes with one of its own, in an operator that tracing does not
see through either.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from scipy import signal
from torch import Tensor, nn

import tinyet
from tests.torch_helpers import Lambda
from tinyet import features
from tinyet.errors import ModelError

NAME = "torchaudio.functional.filtering"
X = 2 * torch.randn(2, 3, 80, generator=torch.Generator().manual_seed(3))

_LIBRARY = torch.library.Library("tinyet_tests", "FRAGMENT")
_LIBRARY.define("_lfilter(Tensor waveform, Tensor a_coeffs, Tensor b_coeffs) -> Tensor")


def _by_scipy(waveform: Tensor, a_coeffs: Tensor, b_coeffs: Tensor) -> Tensor:
    """(N, C, T), (C, K), (C, K); in float64."""
    x, a, b = (value.detach().double().numpy() for value in (waveform, a_coeffs, b_coeffs))
    y = np.stack([signal.lfilter(b[c], a[c], x[:, c]) for c in range(len(a))], 1)
    return torch.from_numpy(y).float()


_LIBRARY.impl("_lfilter", _by_scipy, "CPU")


class StandIn(ModuleType):
    """What a model calls. Attributes are looked up at each call, as a module's globals are."""

    _lfilter: Any = staticmethod(torch.ops.tinyet_tests._lfilter)

    def lfilter(
        self, x: Tensor, a_coeffs: Tensor, b_coeffs: Tensor, clamp: bool = True, batching: bool = True
    ) -> Tensor:
        if a_coeffs.ndim == 1:
            a_coeffs, b_coeffs = a_coeffs[None], b_coeffs[None]
        elif not batching:
            x = torch.stack([x] * len(a_coeffs), -2)
        y: Tensor = self._lfilter(x.reshape(-1, len(a_coeffs), x.shape[-1]), a_coeffs, b_coeffs)
        return (y.clamp(-1.0, 1.0) if clamp else y).reshape(x.shape)

    def biquad(self, x: Tensor, *coefficients: Any) -> Tensor:
        b0, b1, b2, a0, a1, a2 = (torch.as_tensor(c, dtype=x.dtype).view(1) for c in coefficients)
        return self.lfilter(x, torch.cat([a0, a1, a2]), torch.cat([b0, b1, b2]))

    def lowpass_biquad(self, x: Tensor, rate: int, cutoff: float, q: float = 0.707) -> Tensor:
        """Robert Bristow-Johnson's cookbook, computed by torch of scalars."""
        w0 = 2 * math.pi * torch.as_tensor(cutoff, dtype=x.dtype) / rate
        alpha = torch.sin(w0) / 2 / torch.as_tensor(q, dtype=x.dtype)
        b1 = 1 - torch.cos(w0)
        return self.biquad(x, b1 / 2, b1, b1 / 2, 1 + alpha, -2 * torch.cos(w0), 1 - alpha)


@pytest.fixture
def filters(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    module = StandIn(NAME)
    monkeypatch.setitem(sys.modules, NAME, module)
    return module


def _of(b: Any, a: Any) -> tuple[Tensor, Tensor]:
    return torch.tensor(np.asarray(a), dtype=torch.float32), torch.tensor(np.asarray(b), dtype=torch.float32)


A2, B2 = _of([0.9, -0.6, 0.2], [2.0, -1.8, 1.3])
FIFTH, HIGH = _of(*signal.butter(5, 0.3)), _of(*signal.butter(8, 0.2, "high"))
ROWS = tuple(torch.stack(pair) for pair in zip((A2, B2), _of([1, 0, 0], [1, -0.9, 0]), (A2, B2), strict=True))

CASES: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "low pass, clamped": lambda f, x: f.lowpass_biquad(4 * x, 8000, 900.0),
    "numbers": lambda f, x: f.biquad(x[0, 0], 0.5, 0.1, -0.2, 4.0, -2.0, 1.0),
    "not clamped": lambda f, x: f.lfilter(x, A2, B2, clamp=False),
    "a gain": lambda f, x: f.lfilter(x, *_of([3.0], [2.0]), clamp=False),
    "one pole": lambda f, x: f.lfilter(x, *_of([1.0, -1.0], [1.0, -0.95]), clamp=False),
    "fifth order": lambda f, x: f.lfilter(x, *FIFTH, clamp=False),
    "eighth order": lambda f, x: f.lfilter(x, *HIGH, clamp=False),
    "late": lambda f, x: f.lfilter(x, *_of([0, 0, 0, 2, 1], [1, 0.5, 0, 0, 0]), clamp=False),
    "longer ahead": lambda f, x: f.lfilter(x, *_of([1, 2, 3, 4, 5], [2, 0.5, 0, 0, 0]), clamp=False),
    "no feedback": lambda f, x: f.lfilter(x, *_of([1, 2, 3, 4, 0], [2, 0, 0, 0, 0]), clamp=False),
    "silent": lambda f, x: f.lfilter(x, *_of([0, 0, 0, 0], [1, 0.2, 0.1, 0.05]), clamp=False),
    "each channel its own": lambda f, x: f.lfilter(x, *ROWS, clamp=False),
    "a bank": lambda f, x: f.lfilter(x[:, 0], *(part[:2] for part in ROWS), batching=False),
    "there and back": lambda f, x: f.lfilter(f.lfilter(x, A2, B2).flip(-1), A2, B2).flip(-1),
}


class All(nn.Module):
    def __init__(self, filters: StandIn) -> None:
        super().__init__()
        self.filters = filters

    def forward(self, x: Tensor) -> list[Tensor]:
        return [function(self.filters, x) for function in CASES.values()]


def test_scipy_and_host(filters: StandIn, tmp_path: Path) -> None:
    program = tinyet.compile(All(filters).eval(), (X,), name="filters")
    assert filters._lfilter is torch.ops.tinyet_tests._lfilter
    found = program.run(X.numpy())
    for (name, function), result in zip(CASES.items(), found, strict=True):
        wanted = function(filters, X).numpy()
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5, err_msg=name)
    assert np.abs(found[0]).max() == 1.0
    project = tinyet.generate(program, "mps2_an386", tmp_path / "filters")
    assert project.validate(torch.stack([X, 100 * X]).numpy(), on="host").bit_exact


def test_it_is_the_operator_of_the_features(filters: StandIn) -> None:
    """The same nodes, which are computed in float32 in front of a quantized network, and the same bits."""

    class Net(nn.Module):
        def __init__(self, front: Callable[[Tensor], Tensor]) -> None:
            super().__init__()
            self.front = front
            torch.manual_seed(4)
            self.layers = nn.Sequential(nn.Conv1d(3, 4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(304, 2))

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.layers(self.front(x))
            return y

    fronts = (
        features.Biquads([[*B2.tolist(), *A2.tolist()]]),
        lambda x: filters.lfilter(x, A2, B2, clamp=False),
    )
    wanted, found = (tinyet.compile(Net(front).eval(), (X,), calibration=[X], name="net") for front in fronts)
    assert [n.op for n in found.graph.nodes] == [n.op for n in wanted.graph.nodes]
    assert {n.op for n in found.graph.nodes} >= {"biquads", "quantize", "conv2d"}
    np.testing.assert_array_equal(found.run(X.numpy()), wanted.run(X.numpy()))


def test_trained_coefficients(filters: StandIn) -> None:
    class Trained(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pole = nn.Parameter(torch.tensor([0.5]))

        def forward(self, x: Tensor) -> Tensor:
            one = torch.ones(1)
            return filters.lfilter(x, torch.cat([one, -torch.tanh(self.pole)]), torch.cat([one, 0 * one]))

    module = Trained().eval()
    found = np.asarray(tinyet.compile(module, (X,)).run(X.numpy()), np.float32)
    np.testing.assert_allclose(found, module(X).detach().numpy(), rtol=1e-5, atol=1e-5)


def _refusals() -> Iterator[tuple[Callable[[Any, Tensor], Tensor], str]]:
    yield lambda f, x: f.lfilter(x, x[0, 0, :3], B2), "computed from the model's inputs"
    yield lambda f, x: f.lfilter(x, *_of([1, 0], [0, 1])), "a first one in a_coeffs that is 0"
    yield lambda f, x: f.lfilter(x, *_of([1, math.nan], [1, 0])), "not finite"
    comb = np.zeros(70)
    comb[[0, -1]] = 1, 0.5
    yield lambda f, x: f.lfilter(x, *_of(np.ones(70), comb)), "order 69 is above 64"
    yield lambda f, x: f.lfilter(x, *_of(np.ones(62), comb[[*range(61), 69]])), "of order 61 miss its coeff"


@pytest.mark.parametrize(("function", "words"), list(_refusals()))
def test_what_is_refused(filters: StandIn, function: Callable[[Any, Tensor], Tensor], words: str) -> None:
    filters._lfilter = lambda x, _a, _b: x
    with pytest.raises(ModelError, match=words) as caught:
        tinyet.compile(Lambda(lambda x: function(filters, x)), (X,))
    assert "test_lfilter.py" in str(caught.value)


def test_torchaudio() -> None:
    """The real ones."""
    functional = pytest.importorskip("torchaudio").functional
    x = X / 8

    def filtered(x: Tensor) -> list[Tensor]:
        return [
            functional.lfilter(x, A2, B2),
            functional.lfilter(x, *HIGH, clamp=False),
            functional.lfilter(x, *ROWS),
            functional.biquad(x, 0.5, 0.1, -0.2, 4.0, -2.0, 1.0),
            functional.lowpass_biquad(x, 8000, 900.0),
            functional.highpass_biquad(x, 8000, 300.0),
            functional.equalizer_biquad(x, 8000, 1000.0, 6.0),
            functional.filtfilt(x, A2, B2),
        ]

    program = tinyet.compile(Lambda(filtered), (x,))
    assert sum(node.op == "biquads" for node in program.graph.nodes) == 11
    for result, wanted in zip(program.run(x.numpy()), filtered(x), strict=True):
        np.testing.assert_allclose(result, wanted.numpy(), rtol=1e-3, atol=1e-3)
