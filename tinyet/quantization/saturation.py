# SPDX-License-Identifier: Apache-2.0
"""Observers in front of softmax: values so far below the greatest of their row that softmax gives 0 cost no range."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from tinyet.fx.log_filter import quiet

with quiet():
    from torchao.quantization.pt2e.fake_quantize import FakeQuantize, FakeQuantizeBase

BEYOND = 1e9
"""The substitute for infinity in the constants of masks: of infinities, torch's fake quantizers make any integer."""


@dataclass(frozen=True)
class Sight:
    """The part of a value that its reader sees.

    axis: along which it goes, negative. size: elements along it. far: a value this far below the greatest of its row
    counts as `margin` below it; -infinity, and what is -BEYOND or less, always does.
    """

    axis: int
    size: int
    far: float
    margin: float


SUM_FAR = 32.0
"""exp(-32): a sum of float32 exponentials that holds 1 is the same with it or without."""


def softmax_sight(axis: int, size: int, bits: int) -> Sight:
    """For a softmax that gives integers of so many bits: together all values at the margin, `size` of them, are
    half a step of its result."""
    return Sight(axis, size, SUM_FAR, math.log(size * 2.0 ** (bits + 1)))


def log_softmax_sight(axis: int, size: int) -> Sight:
    """For a log_softmax: its result ends at -16, and differences above that are to be seen."""
    return Sight(axis, size, 1000.0, 17.0)


def greatest_sight(axis: int, size: int) -> Sight:
    """The sight of an operator that takes the greatest of a row. Of finite values, it may be any."""
    return Sight(axis, size, math.inf, 0.0)


_BELOW = 1 / 64
"""Share of the range by which what stands for -infinity lies below all that is seen: some four of 255 steps."""


class _Saturating:
    """Mixed into an observer: what this sees of a value are its finite elements, as `sight` has them."""

    def __init__(self, *, sight: Sight, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.sight = sight

    def forward(self, x_orig: torch.Tensor) -> torch.Tensor:
        seen = seen_by(x_orig.detach(), self.sight)
        if seen.numel():
            super().forward(seen)  # type: ignore[misc]
        return x_orig


def seen_by(x: torch.Tensor, sight: Sight) -> torch.Tensor:
    """The elements of x, float32 of any shape, as a vector, without NaN and what is beyond all range; those far below
    as `margin` below the greatest of their row, where that is known. Of values on their way to the reader in another
    shape, the rows are others, each as great or greater in one of its elements; the reader's own are observed, too."""
    beyond = ~(x.abs() < BEYOND)
    if x.ndim < -sight.axis or x.shape[sight.axis] != sight.size:
        return x[~beyond]
    if sight.margin > 0.0:
        greatest, margin = torch.where(beyond, -math.inf, x).amax(sight.axis, keepdim=True), sight.margin
    else:
        # Some steps below all, so that no rounding makes it equal to a value that counts.
        inside = x[~beyond]
        if not inside.numel():
            return inside
        greatest, margin = inside.min(), float(inside.max() - inside.min()) * _BELOW
    far = (x <= -BEYOND) | (x < greatest - sight.far)
    result = torch.where(far, greatest - margin, x)
    return result[result.abs() < BEYOND]


@cache
def _class_of(observer: type) -> Any:
    return type(f"Saturating{observer.__name__}", (_Saturating, observer), {})


def saturating(factory: Any, sight: Sight) -> Any:
    """The factory of an observer (or of a fake quantizer) that sees what `sight` says; as torchao's specs hold it:
    a class, or what its `with_args` gave."""
    partial = getattr(factory, "p", None)
    kind: Any = partial.func if isinstance(partial, functools.partial) else factory
    given = partial.keywords if isinstance(partial, functools.partial) else {}
    if issubclass(kind, FakeQuantizeBase):
        return FakeQuantize.with_args(observer=_class_of(given["observer"]).with_args(sight=sight))
    return _class_of(kind).with_args(**given, sight=sight)
