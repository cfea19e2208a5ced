# SPDX-License-Identifier: Apache-2.0
"""How far a program's answers are from the float model's: the records, and the limits that say when that is too far."""

from __future__ import annotations

from tinyet.answers.quality import (
    ALIKE,
    EIGHT_BITS_DB,
    ENOUGH_DB,
    ENOUGH_LABELLED,
    LARGEST_DROP,
    MOVING_DB,
    Accuracy,
    OutputQuality,
    Quality,
    decibels,
    finite,
    or_infinite,
)
from tinyet.answers.record import Answers, Beginning, Source

__all__ = [
    "ALIKE",
    "EIGHT_BITS_DB",
    "ENOUGH_DB",
    "ENOUGH_LABELLED",
    "LARGEST_DROP",
    "MOVING_DB",
    "Accuracy",
    "Answers",
    "Beginning",
    "OutputQuality",
    "Quality",
    "Source",
    "decibels",
    "finite",
    "or_infinite",
]
