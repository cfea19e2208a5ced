# SPDX-License-Identifier: Apache-2.0
"""The layers of a validation result as spans on an axis of what was counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tinyet.errors import UsageError
from tinyet.validation import LayerResult, PartResult, ValidationResult

BETWEEN = "between layers"
"""What belongs to no layer: entering and leaving the model, and the loop over layers that are computed by rows."""


@dataclass(frozen=True)
class Span:
    """A layer, or a part of one that a delegate tells apart. start, count: in the unit of the profile."""

    path: tuple[str, ...]
    start: int
    count: int
    layer: LayerResult | None


@dataclass(frozen=True)
class Profile:
    """unit: "estimated cycles", "cycles" or "instructions". clock_hz: of estimated cycles, else None."""

    unit: str
    clock_hz: int | None
    total: int
    spans: tuple[Span, ...]


def profile_of(result: ValidationResult) -> Profile:
    """What each layer took, one after the other as they are called: the estimate of cycles where there is one, or what
    was counted. Layers that are computed by rows take turns; each stands where it is called first, with all its turns.

    Raises UsageError where nothing was counted by layer."""
    estimate = result.estimate
    if estimate is not None:
        unit, clock, whole = "estimated cycles", estimate.clock_hz, estimate.cycles
    else:
        unit, clock, whole = result.count_unit, None, result.count or 0
    if unit == "nanoseconds" or whole == 0 or any(_count(layer, result) is None for layer in result.layers):
        raise UsageError(
            "nothing was counted layer by layer",
            f"validated on {result.on}",
            "validate on qemu, renode, or a board with a counter of cycles",
        )
    spans = tuple(_spans(result))
    end = spans[-1].start + spans[-1].count if spans else 0
    if whole > end:
        spans = (*spans, Span((BETWEEN,), end, whole - end, None))
    return Profile(unit, clock, max(whole, end), spans)


def _spans(result: ValidationResult) -> Iterator[Span]:
    at = 0
    for layer in result.layers:
        count = _count(layer, result) or 0
        path = tuple(layer.name.split("."))
        # Parts have counts of instructions or cycles, never estimates.
        parts = [] if result.estimate is not None else [p for p in layer.parts if p.count]
        yield from _of_layer(layer, parts, path, at, count)
        at += count


def _of_layer(
    layer: LayerResult, parts: list[PartResult], path: tuple[str, ...], start: int, count: int
) -> Iterator[Span]:
    """The layer's parts, and what is left of it."""
    at = start
    for part in parts:
        taken = min(part.count or 0, start + count - at)
        yield Span((*path, part.name), at, taken, layer)
        at += taken
    if at < start + count or not parts:
        yield Span(path, at, start + count - at, layer)


def _count(layer: LayerResult, result: ValidationResult) -> int | None:
    if result.estimate is None:
        return layer.count
    return None if layer.estimate is None else layer.estimate.cycles
