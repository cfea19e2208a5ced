# SPDX-License-Identifier: Apache-2.0
"""What a window of samples is like in a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from tinyet.errors import UsageError
from tinyet.errors.arguments import whole_given

_TINY = 1e-12
"""Is added to what is divided by, so that a signal that does not move gives 0."""


def _centred(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)


def _variance(x: Tensor) -> Tensor:
    return _centred(x).square().mean(-1)


def _skewness(x: Tensor) -> Tensor:
    centred = _centred(x)
    square = centred.square()
    deviation = torch.sqrt(square.mean(-1) + _TINY)
    return (square * centred).mean(-1) / (deviation * deviation * deviation)


def _kurtosis(x: Tensor) -> Tensor:
    square = _centred(x).square()
    variance = square.mean(-1) + _TINY
    return square.square().mean(-1) / (variance * variance) - 3.0


def _zero_crossings(x: Tensor) -> Tensor:
    below = torch.where(x < 0, 1.0, 0.0)
    return (below[..., 1:] - below[..., :-1]).abs().sum(-1)


STATISTICS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda x: x.mean(-1),
    "variance": _variance,
    "deviation": lambda x: torch.sqrt(_variance(x)),
    "rms": lambda x: torch.sqrt(x.square().mean(-1)),
    "energy": lambda x: x.square().sum(-1),
    "least": lambda x: x.amin(-1),
    "greatest": lambda x: x.amax(-1),
    "peak_to_peak": lambda x: x.amax(-1) - x.amin(-1),
    "skewness": _skewness,
    "kurtosis": _kurtosis,
    "zero_crossings": _zero_crossings,
    "mean_change": lambda x: (x[..., 1:] - x[..., :-1]).abs().mean(-1),
    "median": lambda x: torch.kthvalue(x, (x.shape[-1] + 1) // 2, -1).values,
}
"""Name → (..., samples) to (...). variance, deviation, skewness and kurtosis divide by the number of samples, as
numpy.var and scipy.stats do; kurtosis is 0 for a normal distribution; zero_crossings counts changes of sign, 0 being
positive; median is the lower one of two."""


class Statistics(nn.Module):
    """(..., samples) to (..., len(names)): of each window the statistics of these names (`STATISTICS`), in this order.

    Windows of a longer signal are a `Frame` in front of it.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        unknown = [name for name in names if name not in STATISTICS]
        if unknown or not names:
            raise UsageError(
                f"no statistics: {', '.join(unknown)}", hint=f"there are {', '.join(STATISTICS)}"
            )
        self.names = tuple(names)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([STATISTICS[name](x) for name in self.names], -1)


class Quantiles(nn.Module):
    """(..., samples) to (..., len(at)): numpy.quantile(x, at, axis=-1), between two samples on the line between them.

    at: from 0 (the least) to 1 (the greatest).
    """

    def __init__(self, at: Sequence[float]) -> None:
        super().__init__()
        if not at or not all(0 <= each <= 1 for each in at):
            raise UsageError(f"quantiles {list(at)}", hint="from 0 to 1: 0.5 is the median")
        self.at = tuple(float(each) for each in at)

    def forward(self, x: Tensor) -> Tensor:
        ranks = torch.sort(x, -1).values
        found = []
        for each in self.at:
            place = each * (x.shape[-1] - 1)
            first, share = int(place), place - int(place)
            low = ranks[..., first]
            found.append(low if not share else low + (ranks[..., first + 1] - low) * share)
        return torch.stack(found, -1)


class Autocorrelation(nn.Module):
    """(..., samples) to (..., lags + 1): sums of x[i] x[i + lag] for lags 0 … `lags`; normalized: divided by that of
    lag 0, so that the first is 1."""

    def __init__(self, lags: int, normalized: bool = False) -> None:
        super().__init__()
        self.lags, self.normalized = whole_given(lags, "lags", "samples"), normalized

    def forward(self, x: Tensor) -> Tensor:
        count = x.shape[-1]
        if count <= self.lags:
            raise UsageError(f"{self.lags} lags of {count} samples")
        sums = [(x[..., : count - lag] * x[..., lag:]).sum(-1) for lag in range(self.lags + 1)]
        found = torch.stack(sums, -1)
        return found / (found[..., :1] + _TINY) if self.normalized else found


def moving(size: int) -> nn.Module:
    """(N, channels, samples) to (N, channels, samples - size + 1): the mean of each `size` samples that follow one
    another."""
    return nn.AvgPool1d(whole_given(size, "size", "samples"), stride=1)
