# SPDX-License-Identifier: Apache-2.0
"""What was found of a program's answers, as the program carries it, its file keeps it and every command tells it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from tinyet.answers.quality import ALIKE, ENOUGH_DB, MOVING_DB, Accuracy, OutputQuality, Quality, finite
from tinyet.ir.limits import MAX_TEXT
from tinyet.messages.text import printable

Source = Literal["calibration", "evaluation"]
"""Whose samples were measured with."""

MOST_BEGINNINGS = 4
MOST_OUTPUTS = 256
"""Of a file's record; a program with more has the worst."""

_WORDS = {"inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class Beginning:
    """A layer whose inputs are good enough and whose own value is not; or where each falls a little, the one that falls
    most.

    layer: its module's path with the user's source line, as errors have it; op: its operator. sqnr_db, moving_db: of
    its value, as of an output; inputs_db: of the worst of its inputs; None where there is no float partner to compare
    with.
    """

    layer: str
    op: str
    sqnr_db: float | None
    moving_db: float | None
    inputs_db: float | None

    @property
    def said(self) -> str:
        before = "" if self.inputs_db is None else f"{_db(self.inputs_db)} dB in, "
        after = f"{_db(self.sqnr_db)} dB out"
        if self.sqnr_db is not None and self.sqnr_db >= ENOUGH_DB and self.moving_db is not None:
            after += f" ({_db(self.moving_db)} dB of what moves)"
        return f"{self.op}, {before}{after}: {self.layer}"


@dataclass(frozen=True)
class Answers:
    """The integers' answers beside the float model's over some samples.

    source: whose samples. names: of the outputs of `quality`, the real-valued ones. changed: samples for which another
    element of the first output is the largest; None where that is no row of elements. classifies: whether that output
    is known to name a class. begins: where it goes wrong, in the graph's order; none where all is well.
    """

    source: Source
    quality: Quality
    names: tuple[str, ...]
    changed: int | None = None
    classifies: bool = False
    begins: tuple[Beginning, ...] = ()

    @property
    def misnamed(self) -> bool:
        """Whether a classifier names so many classes otherwise that less than ALIKE are the float model's, by more than
        chance explains."""
        if not self.classifies or self.changed is None or self.quality.accuracy is not None:
            return False
        samples = self.quality.samples
        chance = 2 * math.sqrt(ALIKE * (1 - ALIKE) * samples)
        return self.changed > (1 - ALIKE) * samples + chance

    @property
    def healthy(self) -> bool:
        """Whether they change no more than they should."""
        return self.quality.healthy and not self.misnamed

    @property
    def said(self) -> str:
        """In a line: the figures, and what would be enough where they are not."""
        quality, parts = self.quality, []
        if quality.accuracy is not None:
            named = quality.accuracy
            shares = f"{100 * named.share:.1f} %, float model {100 * named.float_share:.1f} %"
            parts.append(f"accuracy {shares}, of {named.samples} samples")
        if quality.sqnr_db is not None:
            enough = f" ({ENOUGH_DB:.0f} are enough)" if quality.sqnr_db < ENOUGH_DB else ""
            parts.append(f"SQNR {_db(quality.sqnr_db)} dB{enough}")
        drowned = any(output.drowned for output in quality.outputs)
        if drowned and (quality.sqnr_db or 0.0) >= ENOUGH_DB:
            parts.append(
                f"{_db(quality.moving_db)} dB of what moves from sample to sample ({MOVING_DB:.0f} are enough)"
            )
        if quality.equal < 1.0:
            enough = f" ({100 * ALIKE:.0f} are enough)" if quality.equal < ALIKE else ""
            parts.append(f"{100 * quality.equal:.1f} % of the integers are the float model's{enough}")
        if self.changed is not None:
            what = "classes" if self.classifies else "largest outputs"
            parts.append(f"{self.changed} of {quality.samples} {what} changed")
        return f"{', '.join(parts) or 'equal'} against float, on {self.source} data"

    @property
    def lines(self) -> tuple[str, ...]:
        """Where it begins, a line each."""
        return tuple(printable(f"begins at {beginning.said}") for beginning in self.begins)

    @property
    def warning(self) -> str:
        """All of it as one text."""
        return "\n".join([f"the integers' answers are not the model's: {self.said}", *self.lines])

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            "healthy": self.healthy,
            "source": self.source,
            **self.quality.to_json(),
            "changed": self.changed,
            "classifies": self.classifies,
            "outputs": [
                {"name": name, "sqnr_db": finite(output.sqnr_db), "moving_db": finite(output.moving_db)}
                for name, output in zip(self.names, self.quality.outputs, strict=True)
            ],
            "begins": [
                {
                    "layer": each.layer,
                    "op": each.op,
                    "sqnr_db": finite(each.sqnr_db),
                    "moving_db": finite(each.moving_db),
                    "inputs_db": finite(each.inputs_db),
                }
                for each in self.begins
            ],
        }

    # ------------------------------------------------------------ in a file

    def encoded(self) -> str:
        """As a file keeps it: JSON, the same text for the same record."""
        quality, named = self.quality, self.quality.accuracy
        record = {
            "source": self.source,
            "samples": quality.samples,
            "equal": quality.equal,
            "accuracy": None if named is None else [getattr(named, f.name) for f in fields(Accuracy)],
            "outputs": [
                [name, _kept(output.sqnr_db), _kept(output.moving_db)]
                for name, output in zip(self.names, quality.outputs, strict=True)
            ],
            "changed": self.changed,
            "classifies": self.classifies,
            "begins": [
                [each.layer, each.op, _kept(each.sqnr_db), _kept(each.moving_db), _kept(each.inputs_db)]
                for each in self.begins
            ],
        }
        return json.dumps(record, sort_keys=True, ensure_ascii=False)


def decoded(text: str) -> Answers:
    """The record of a file's text. Raises ValueError, with what is wrong, for what `encoded` does not write."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(found, dict) or set(found) != _KEYS:
        raise ValueError(f"it must have {', '.join(sorted(_KEYS))}")
    source = found["source"]
    if source not in get_args(Source):
        raise ValueError("its source is not known")
    outputs = [_row(row, 1, 2, "outputs") for row in _list(found, "outputs", MOST_OUTPUTS)]
    begins = [_row(row, 2, 3, "begins") for row in _list(found, "begins", MOST_BEGINNINGS)]
    samples, changed = _count(found["samples"], "samples"), found["changed"]
    accuracy = None
    if found["accuracy"] is not None:
        numbers = [_count(number, "accuracy") for number in _list(found, "accuracy", len(fields(Accuracy)))]
        if len(numbers) != len(fields(Accuracy)) or not numbers[0] or max(numbers) > numbers[0]:
            raise ValueError("its accuracy is none")
        accuracy = Accuracy(*numbers)
    equal = found["equal"]
    if isinstance(equal, bool) or not isinstance(equal, (int, float)) or not 0.0 <= equal <= 1.0:
        raise ValueError("its share of equal integers is none")
    if not isinstance(found["classifies"], bool):
        raise ValueError("classifies is no boolean")
    if samples < 1 or (changed is not None and _count(changed, "changed") > samples):
        raise ValueError("its samples are not those that it counts")
    return Answers(
        source,
        Quality(tuple(OutputQuality(*row[1:]) for row in outputs), samples, float(equal), accuracy),
        tuple(row[0] for row in outputs),
        changed,
        found["classifies"],
        tuple(Beginning(*row) for row in begins),
    )


_KEYS = {"source", "samples", "equal", "accuracy", "outputs", "changed", "classifies", "begins"}


def _list(found: Mapping[str, Any], key: str, most: int) -> list[Any]:
    value = found[key]
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"{key} is no list of at most {most}")
    return value


def _count(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ValueError(f"{what} is no count")
    return value


def _row(row: object, texts: int, ratios: int, what: str) -> tuple[Any, ...]:
    """So many texts, then so many ratios in dB."""
    if not isinstance(row, list) or len(row) != texts + ratios:
        raise ValueError(f"one of {what} is no row of {texts + ratios}")
    if any(not isinstance(text, str) or len(text) > MAX_TEXT for text in row[:texts]):
        raise ValueError(f"a text of {what} is none")
    return (*row[:texts], *(_ratio(value) for value in row[texts:]))


def _ratio(value: object) -> float | None:
    if isinstance(value, str):
        if value not in _WORDS:
            raise ValueError("a ratio is no number")
        return _WORDS[value]
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("a ratio is no number")
    return float(value)


def _kept(ratio: float | None) -> float | str | None:
    """A ratio as JSON has it: infinity as a word."""
    if ratio is None or math.isfinite(ratio):
        return ratio
    return "inf" if ratio > 0 else "-inf"


def _db(ratio: float | None) -> str:
    # Without the sum, a ratio that rounds to zero from below would keep its sign.
    return "–" if ratio is None else f"{round(ratio, 1) + 0.0:.1f}"
