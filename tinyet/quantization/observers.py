# SPDX-License-Identifier: Apache-2.0
"""Observers: which range of the values that calibration shows a quantized type is spread over.

Activations (per tensor), by name:

    histogram             torchao's search for the range with the least squared error, coarse but quick
    minmax                all that was seen; nothing is clipped
    moving_average        an exponential average of each sample's smallest and largest value
    mse                   a grid search over clipping ranges by the squared error on a histogram
    percentile[:P]        the range that holds P percent of the values (99.99 by default)

Weights (per channel): `minmax`, or `mse`, which pays with few bits. In training the same observers are asked
at every step, so a weight's range follows the weight.

Results whose range is known in advance (sigmoid, softmax …) have a `KnownRangeObserver`, which takes LiteRT's
parameters unless those seen are better. Scales go down to the least normal float32 (torchao's own stop at 1.2e-7).

All that sums or searches does so in float64, so that the same data give the same range on every processor (`exact`);
scales and zero points are float32's of float32 ranges, as the device's.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate, repeat
from typing import Any, NamedTuple

import torch

from tinyet.errors import QuantizationError
from tinyet.fx.log_filter import quiet
from tinyet.ir.limits import SMALLEST_SCALE

with quiet():
    from torchao.quantization.pt2e.fake_quantize import FakeQuantize
    from torchao.quantization.pt2e.observer import HistogramObserver as TorchaoHistogramObserver
    from torchao.quantization.pt2e.observer import (
        MinMaxObserver,
        MovingAverageMinMaxObserver,
        PerChannelMinMaxObserver,
    )

DEFAULT_PERCENTAGE = 99.99
_FINE = 100
"""Steps of the grid over which a clipping range is searched, in both directions."""

CLOSE = 1.25
"""Most that a scale may grow for being shared, or for being the one that is known in advance. Rounding noise grows by
this factor, that is by 1.9 dB."""

CLOSE_INT16 = 16.0
"""The latter in int16: 12 of the 16 bits are left, and a function at another scale than LiteRT's is 1 KB of table."""

_STEP = 1e-5
"""Share of the values by which the search over a histogram moves an end of the range."""

_STEPS = range(round(1 / _STEP))
_BELOW = [*accumulate(repeat(_STEP, len(_STEPS) + 1), initial=0.0)]
_ABOVE = [*accumulate(repeat(-_STEP, len(_STEPS) + 1), initial=1.0)]
"""The shares below which, and up to which, the values lie after so many steps, each with the error of its sum."""


def _factors(first: int, last: int) -> torch.Tensor:
    """first / _FINE, …, last / _FINE, downwards, float64. The last bit of torch.linspace would depend on whether the
    processor fuses product and sum."""
    return torch.arange(first, last - 1, -1, dtype=torch.float64) / _FINE


@functools.lru_cache(maxsize=4)
def _halves(count: int) -> torch.Tensor:
    """0.5, 1.5, … up to `count`, float64, for all who do not change them."""
    return torch.arange(count, dtype=torch.float64) + 0.5


@contextmanager
def _float64_by_default() -> Iterator[None]:
    """torchao's observer keeps its numbers and integers in float64, not float32, within this context."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def rebinned(histogram: torch.Tensor, middles: torch.Tensor, borders: torch.Tensor) -> torch.Tensor:
    """The counts of a histogram, each spread evenly over as many middles as there are for it, in as many bins between
    these borders."""
    bins, rate = len(borders) - 1, len(middles) // len(histogram)
    counted = histogram.nonzero().squeeze(1)
    if 2 * len(counted) < len(histogram):
        # Of few values most bins are empty, and add nothing to any sum.
        histogram, middles = histogram[counted], middles.view(-1, rate)[counted].flatten()
    found = last_borders(middles, borders).clamp(0, bins - 1)
    return torch.bincount(found, weights=histogram.repeat_interleave(rate) / rate, minlength=bins)


def last_borders(values: torch.Tensor, borders: torch.Tensor) -> torch.Tensor:
    """Of each value the index of the last border that is not above it, -1 where all are. Both ascend.

    As torch.bucketize(values, borders, right=True) - 1, which looks for every value among the borders; there are fewer
    borders to look for among the values, and that takes a sixth of the time.
    """
    first_values = torch.searchsorted(values, borders)
    return torch.bincount(first_values, minlength=len(values) + 1)[:-1].cumsum(0) - 1


def searched_bins(
    counts: list[float],
    total: float,
    error_of: Callable[[int, int], float],
    rounded: Callable[[float], float] = float,
) -> tuple[int, int]:
    """The first and the last bin of the range to use.

    counts: of all values up to the end of each bin. error_of: the error of a range. rounded: a number of values in the
    type of the counts.

    torchao's `_non_linear_param_search`, number for number: the range gives up a hundred-thousandth of the values at
    one end after the other, as long as the error falls. The bins are looked up by bisection in a list, instead of one
    after the other in a tensor, which takes ten times as long.
    """
    low, high, belows, aboves, least = 0, len(counts) - 1, 0, 0, math.inf
    while _BELOW[belows] < _ABOVE[aboves]:
        left = bisect_left(counts, rounded(_BELOW[belows + 1] * total), low, high)
        right = bisect_right(counts, rounded(_ABOVE[aboves + 1] * total), low + 1, high + 1) - 1
        next_low, next_high = low, high
        if left - low > high - right:
            next_low, belows = left, belows + 1
        elif right < high:
            next_high, aboves = right, aboves + 1
        else:
            # The steps until the last bin is given up move nothing.
            aboves = bisect_left(
                _STEPS, 1, aboves + 1, key=lambda n: rounded(_ABOVE[n + 1] * total) < counts[high]
            )
            continue
        error = error_of(next_low, next_high)
        if error > least:
            break
        least, low, high = error, next_low, next_high
    return low, high


def counted_within(observer: TorchaoHistogramObserver, x: torch.Tensor) -> bool:
    """Count values in the bins of what was seen before; False, and nothing done, where one lies beside these bins, or
    is no number. x: in the observer's own type.

    As torchao's `forward`, which compares tensors of one element for it: twice as long for the values of a small layer.
    """
    if x.numel() == 0:
        return False
    low, high = (end.item() for end in torch.aminmax(x))
    first, last = observer.min_val.item(), observer.max_val.item()
    if not first <= low <= high <= last < math.inf:
        return False
    observer.histogram += torch.histc(x, observer.bins, first, last)
    return True


class HistogramObserver(TorchaoHistogramObserver):  # type: ignore[misc]
    """torchao's, in float64: in float32 the borders of its bins, and where its search ends, depend on the processor."""

    histogram: torch.Tensor
    min_val: torch.Tensor
    max_val: torch.Tensor

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.histogram = self.histogram.double()
        self.min_val, self.max_val = self.min_val.double(), self.max_val.double()

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        x = x_orig.detach().double()
        if not counted_within(self, x):
            with _float64_by_default():
                super().forward(x)
        return x_orig

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        if not bool(torch.isfinite(self.min_val) & torch.isfinite(self.max_val)):
            return self._params_of(self.min_val, self.max_val)
        with _float64_by_default():
            low, high = self._range()
        return self._params_of(low, high)

    def _upscale_histogram(
        self,
        histogram: torch.Tensor,
        orig_min: torch.Tensor,
        orig_max: torch.Tensor,
        update_min: torch.Tensor,
        update_max: torch.Tensor,
    ) -> torch.Tensor:
        """The counts in the bins of a wider range, by the middle of each sixteenth of a bin; as torchao's, but without
        linspace (`_factors`)."""
        parts = self.bins * self.upsample_rate
        middles = orig_min + _halves(parts) * ((orig_max - orig_min) / parts)
        borders = update_min + torch.arange(self.bins + 1) * ((update_max - update_min) / self.bins)
        return rebinned(histogram, middles, borders)

    def _range(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The range to use, of the finite one that was seen. Both float64, of one element."""
        counts, total = torch.cumsum(self.histogram, dim=0).tolist(), torch.sum(self.histogram).item()
        low, high = searched_bins(counts, total, self._compute_quantization_error)
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * low, self.min_val + width * (high + 1)

    def _params_of(self, low: torch.Tensor, high: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scale, float32, and zero point of a range."""
        return self._calculate_qparams(low.float(), high.float())  # type: ignore[no-any-return]


class MseObserver(HistogramObserver):
    """The clipping range whose quantization has the least squared error on the histogram of what was seen.

    Three line searches: over a common factor for both ends, then over each end alone.
    """

    def _range(self) -> tuple[torch.Tensor, torch.Tensor]:
        low, high = self.min_val.clamp(max=0.0), self.max_val.clamp(min=0.0)
        if bool(low == high):
            return low, high
        width = (self.max_val - self.min_val) / self.bins
        centres = self.min_val + width * (torch.arange(self.bins) + 0.5)
        used = self.histogram > 0
        values, counts = centres[used], self.histogram[used]
        factors = _factors(_FINE, 1)

        def best(lows: torch.Tensor, highs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            errors = [self._error(a, b, values, counts) for a, b in zip(lows, highs, strict=True)]
            at = min(range(len(errors)), key=errors.__getitem__)
            return lows[at], highs[at]

        low, high = best(low * factors, high * factors)
        if self.qscheme == torch.per_tensor_affine:
            low, high = best(low.expand(_FINE), high * factors)
            low, high = best(low * factors, high.expand(_FINE))
        return low, high

    def _error(
        self, low: torch.Tensor, high: torch.Tensor, values: torch.Tensor, counts: torch.Tensor
    ) -> float:
        """Sum of squared errors when the range low...high is quantized. values, counts: (n,) float64."""
        scale, zero_point = self._params_of(low, high)
        q = torch.clamp(torch.round(values / scale) + zero_point, self.quant_min, self.quant_max)
        return float(((((q - zero_point) * scale - values) ** 2) * counts).sum())


class PercentileObserver(HistogramObserver):
    """The range that holds `percentage` percent of the values, the rest cut off in equal parts on both sides;
    a side whose smallest (largest) value is 0, as behind ReLU, is not cut, and the other takes all."""

    def __init__(self, percentage: float = DEFAULT_PERCENTAGE, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.percentage = percentage

    def _range(self) -> tuple[torch.Tensor, torch.Tensor]:
        outside = (1 - self.percentage / 100) * float(self.histogram.sum())
        both = bool(self.min_val < 0) and bool(self.max_val > 0)
        width = (self.max_val - self.min_val) / self.bins
        seen = torch.cumsum(self.histogram, 0)
        share = outside / 2 if both else outside
        # Whole bins whose values together are no more than the share.
        below = int((seen <= share).sum()) if bool(self.min_val < 0) else 0
        above = (
            int((seen[-1] - seen.roll(1).index_fill(0, torch.tensor([0]), 0.0) <= share).sum())
            if bool(self.max_val > 0)
            else 0
        )
        return self.min_val + width * below, self.max_val - width * above


class WeightPerChannelObserver(PerChannelMinMaxObserver):  # type: ignore[misc]
    """Smallest and largest weight of each channel, as the weight is now (training changes it).

    A channel of zeros (training leaves such) takes the largest scale of the others instead of a tiny one. least: the
    smallest scale of each channel, (channels,); found when all activations are known.
    """

    least: torch.Tensor | None = None

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        self.reset_min_max_vals()
        return super().forward(x_orig)  # type: ignore[no-any-return]

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        scale, zero_point = super().calculate_qparams()
        dead = (self.min_val == 0) & (self.max_val == 0)
        if bool(dead.any()):
            usual = scale[~dead].max() if bool((~dead).any()) else torch.ones((), dtype=scale.dtype)
            scale = torch.where(dead, usual, scale)
        return scale if self.least is None else torch.maximum(scale, self.least), zero_point


class WeightPerChannelMseObserver(WeightPerChannelObserver):
    """For each channel the symmetric clipping range with the least squared error on its weights."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._seen: torch.Tensor | None = None

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        # Calibration shows the same weight for every sample.
        if self._seen is None or not torch.equal(self._seen, x_orig):
            super().forward(x_orig)
            self._seen = x_orig.detach().clone()
            limit = self._best(self._seen.transpose(0, self.ch_axis).flatten(1).double())
            self.min_val.copy_(-limit)
            self.max_val.copy_(limit)
        return x_orig

    def _best(self, rows: torch.Tensor) -> torch.Tensor:
        """(channels, n) weights → (channels,) limits, all float64."""
        largest = rows.abs().amax(1)
        limits = largest * _factors(_FINE, 30).unsqueeze(1)
        scales = (limits / ((self.quant_max - self.quant_min) / 2)).clamp(min=float(self.eps)).unsqueeze(2)
        best, least = largest.clone(), torch.full_like(largest, torch.inf)
        # All in one place: of large weights, memory for each step's result takes longer than the steps.
        errors = torch.empty_like(rows)
        for limit, scale in zip(limits, scales, strict=True):
            q = torch.div(rows, scale, out=errors).round_().clamp_(self.quant_min, self.quant_max)
            error = q.mul_(scale).sub_(rows).square_().sum(1)
            better = error < least
            best = torch.where(better, limit, best)
            least = torch.where(better, error, least)
        return best


class WeightPerChannelFakeQuantize(FakeQuantize):  # type: ignore[misc]
    """torchao hands the channel axis on by the class's name, so there is one with PerChannel in it."""


MASKED = -1000.0
"""A constant of this or less that is added to scores, or put in their place, is a mask."""


class Known(NamedTuple):
    """LiteRT's parameters of a result whose range is known in advance. slack: how many steps beyond the range may be
    cut off for them."""

    scale: float
    zero_point: int
    slack: float = 0.5

    def shown(self, x: torch.Tensor, observer: torch.nn.Module) -> torch.Tensor:
        """The part of a result that counts for its range: a mask's effect on a log_softmax is as small as can be, no
        more."""
        lowest = (int(observer.quant_min) - self.zero_point) * self.scale  # type: ignore[arg-type]
        return torch.where(x <= MASKED, lowest, x.detach())

    def or_better(
        self, observer: torch.nn.Module, seen: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Scale and zero point: these, unless they clip what the observer saw, or are too coarse for it beside `seen`,
        which hold just that. Where nothing but 0 was seen, that tells nothing."""
        quant_min, quant_max = int(observer.quant_min), int(observer.quant_max)  # type: ignore[arg-type]
        low, high = float(observer.min_val), float(observer.max_val)  # type: ignore[arg-type]
        lowest = (quant_min - self.zero_point - self.slack) * self.scale
        highest = (quant_max - self.zero_point + self.slack) * self.scale
        margin = CLOSE_INT16 if quant_max > 127 else CLOSE
        fits = lowest <= low and high <= highest and self.scale <= margin * float(seen[0])
        if fits or low == high == 0:
            return torch.tensor([self.scale]), torch.tensor([self.zero_point])
        return seen


class _KnownRange:
    """Mixed into an observer of smallest and largest value, of a result whose range is known in advance: gives those
    parameters, or those of all that was seen where these are better. Nothing that was seen is clipped."""

    def __init__(self, *, known: Known, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.known = known

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        super().forward(self.known.shown(x_orig, self))  # type: ignore[misc, arg-type]
        return x_orig

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.known.or_better(self, super().calculate_qparams())  # type: ignore[misc, arg-type]


class KnownRangeObserver(_KnownRange, MinMaxObserver):  # type: ignore[misc]
    """Of all that calibration shows."""


class KnownRangeMovingAverageObserver(_KnownRange, MovingAverageMinMaxObserver):  # type: ignore[misc]
    """Of the range's moving average, in training."""


ACTIVATION_OBSERVERS: dict[str, Any] = {
    "histogram": HistogramObserver,
    "minmax": MinMaxObserver,
    "moving_average": MovingAverageMinMaxObserver,
    "mse": MseObserver,
    "percentile": PercentileObserver,
}
WEIGHT_OBSERVERS: dict[str, Any] = {
    "minmax": WeightPerChannelObserver,
    "mse": WeightPerChannelMseObserver,
}


def activation_observer(name: str) -> Any:
    """The observer class that a name means, `percentile:99.9` with its percentage. Raises QuantizationError."""
    kind, colon, number = name.partition(":")
    if kind not in ACTIVATION_OBSERVERS or (colon and kind != "percentile"):
        raise QuantizationError(
            f"there is no observer {name!r}",
            hint=f"one of {', '.join(ACTIVATION_OBSERVERS)}; percentile takes a number, as in percentile:99.9",
        )
    if not colon:
        return ACTIVATION_OBSERVERS[kind].with_args(eps=SMALLEST_SCALE)
    try:
        percentage = float(number)
    except ValueError:
        percentage = 0.0
    if not 50 < percentage <= 100:
        raise QuantizationError(f"{number!r} is no percentage", hint="a number above 50, up to 100")
    return PercentileObserver.with_args(percentage=percentage, eps=SMALLEST_SCALE)


def weight_observer(name: str) -> Any:
    """The observer class for weights that a name means. Raises QuantizationError."""
    if name not in WEIGHT_OBSERVERS:
        raise QuantizationError(
            f"there is no weight observer {name!r}", hint=f"one of {', '.join(WEIGHT_OBSERVERS)}"
        )
    return WEIGHT_OBSERVERS[name].with_args(eps=SMALLEST_SCALE)


def activation_fake_quantize() -> Any:
    """The training counterpart of an activation observer: a moving average of the range."""
    return FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, eps=SMALLEST_SCALE)


def weight_fake_quantize(observer: Any) -> Any:
    """The training counterpart of a weight observer: the same observer, asked at every step."""
    return WeightPerChannelFakeQuantize.with_args(observer=observer)


KNOWN_RANGE_OBSERVER = KnownRangeObserver.with_args(eps=SMALLEST_SCALE)
KNOWN_RANGE_FAKE_QUANTIZE = FakeQuantize.with_args(
    observer=KnownRangeMovingAverageObserver, eps=SMALLEST_SCALE
)
"""For a result whose range is known in advance; both take `known`."""
