# SPDX-License-Identifier: Apache-2.0
"""Quality: figures of answers, and whether they are enough.

When a model is healthy, and why:

    accuracy      where there are labels: it suffers where it is more than a point below the float model's, by more than
                  chance explains (two standard deviations of the samples that only one of both names rightly), and is
                  well up to a point below.
    18 dB         at each output where no labels decide: the noise is an eighth of the signal. That is where a
                  point of accuracy goes: trained networks (DS-CNN, ResNet8) keep theirs at 21 dB and more, DS-CNN loses
                  one at 18, 1.6 at 15 and six at 11 (docs/quantization.md, "Measured").
    6 dB          of what moves at an output from sample to sample, twice as much as the noise: beside a large offset
                  (1013 hPa) 30 dB of everything can hide that nothing is left of it. From 40 dB of everything on that
                  is no fault of the model's layers any more: eight bits hold no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tinyet.answers.confusion import Confusion

ENOUGH_DB = 18.0
MOVING_DB = 6.0
EIGHT_BITS_DB = 40.0
LARGEST_DROP = 0.01
ENOUGH_LABELLED = 100
"""With so many labelled samples accuracy alone decides, if the answers are mostly the float model's."""
ALIKE = 0.9
"""Share of samples with the float model's class, and of equal integers at an output of such (an index, say); below, an
accuracy that holds is luck."""


@dataclass(frozen=True)
class OutputQuality:
    """One output over all samples, in dB; None without a signal, infinite without noise.

    sqnr_db: of the output. moving_db: of what differs in it from sample to sample.
    """

    sqnr_db: float | None
    moving_db: float | None

    @property
    def drowned(self) -> bool:
        """Whether noise hides what moves, for which the output has bits."""
        return or_infinite(self.moving_db) < MOVING_DB and or_infinite(self.sqnr_db) < EIGHT_BITS_DB

    @property
    def enough(self) -> bool:
        return or_infinite(self.sqnr_db) >= ENOUGH_DB and not self.drowned


@dataclass(frozen=True)
class Accuracy:
    """Of labelled samples: how many the integers name rightly, and the float model; how many only the one (won) or the
    other (lost); how many both name alike."""

    samples: int
    right: int
    float_right: int
    lost: int
    won: int
    alike: int

    @property
    def share(self) -> float:
        return self.right / self.samples

    @property
    def float_share(self) -> float:
        return self.float_right / self.samples

    @property
    def agreement(self) -> float:
        return self.alike / self.samples

    @property
    def suffers(self) -> bool:
        """Whether it is lower than the float model's, by more than a point and more than chance."""
        drop = self.lost - self.won
        return drop > LARGEST_DROP * self.samples and drop > 2 * math.sqrt(self.lost + self.won)

    @property
    def decides(self) -> bool:
        """Whether it says alone that the model is healthy."""
        holds = self.lost - self.won <= LARGEST_DROP * self.samples
        return holds and self.samples >= ENOUGH_LABELLED and self.agreement >= ALIKE


@dataclass(frozen=True)
class Quality:
    """outputs: the model's real-valued ones. samples: they were measured with. equal: share of the values of its other
    outputs that are the float model's; 1 where there are none. accuracy, confusion: None where not measured."""

    outputs: tuple[OutputQuality, ...]
    samples: int
    equal: float = 1.0
    accuracy: Accuracy | None = None
    confusion: Confusion | None = field(default=None, compare=False, repr=False)

    @property
    def sqnr_db(self) -> float | None:
        """Of the worst output."""
        known = [output.sqnr_db for output in self.outputs if output.sqnr_db is not None]
        return min(known) if known else None

    @property
    def moving_db(self) -> float | None:
        """Of the worst output."""
        known = [output.moving_db for output in self.outputs if output.moving_db is not None]
        return min(known) if known else None

    @property
    def enough(self) -> bool:
        """Whether every output is good enough, whatever the accuracy."""
        return all(output.enough for output in self.outputs) and self.equal >= ALIKE

    @property
    def healthy(self) -> bool:
        if self.accuracy is not None and (self.accuracy.suffers or self.accuracy.decides):
            return not self.accuracy.suffers
        return self.enough

    def gain_over(self, base: Quality) -> float:
        """Gain in dB of the outputs over `base`: of the outputs that are not good enough there, or else of all, the
        smallest gain."""
        if not self.outputs:
            return _gain(decibels(1.0, 1.0 - self.equal), decibels(1.0, 1.0 - base.equal))
        pairs = list(zip(self.outputs, base.outputs, strict=True))
        bad = [pair for pair in pairs if not pair[1].enough]
        return min(_gain(now.sqnr_db, before.sqnr_db) for now, before in bad or pairs)

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        accuracy = self.accuracy
        return {
            "sqnr_db": finite(self.sqnr_db),
            "moving_db": finite(self.moving_db),
            "equal": self.equal,
            "samples": self.samples,
            "labelled": 0 if accuracy is None else accuracy.samples,
            "accuracy": None if accuracy is None else accuracy.share,
            "float_accuracy": None if accuracy is None else accuracy.float_share,
            "agreement": None if accuracy is None else accuracy.agreement,
        }


def finite(db: float | None) -> float | None:
    """A ratio as JSON knows it: infinity becomes null."""
    return None if db is None or not math.isfinite(db) else db


def or_infinite(db: float | None) -> float:
    """A ratio to compare by: where there is no signal, nothing is amiss."""
    return math.inf if db is None else db


def decibels(signal: float, noise: float) -> float | None:
    if signal == 0.0:
        return None
    if noise == 0.0:
        return math.inf
    return 10.0 * math.log10(signal / noise) if math.isfinite(noise) else -math.inf


def _gain(now: float | None, before: float | None) -> float:
    """The difference; 0 where both are infinite, or there is no signal."""
    return 0.0 if now == before or now is None or before is None else now - before
