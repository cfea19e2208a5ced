# SPDX-License-Identifier: Apache-2.0
"""Limits for what may change, as continuous integration asks them: `instructions>+1%`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tinyet.comparison.sides import FIGURES
from tinyet.errors import UsageError

_FORM = re.compile(r"(layers\.)?(\w+)\s*(>=|<=|>|<)\s*([+-]?)(\d+(?:\.\d+)?)\s*(%|K|M)?", re.ASCII)
_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_FACTORS = {"": 1.0, "%": 0.01, "K": 1024.0, "M": 1024.0 * 1024.0}


@dataclass(frozen=True)
class Condition:
    """A condition that must not hold.

    text: as it was written. of_layers: of each layer (of a firmware, each symbol) that both sides have, not of the
    whole. change: of the difference between both, as a share of the first where `share`; else of the second alone.
    limit: with its sign.
    """

    text: str
    figure: str
    of_layers: bool
    relation: str
    change: bool
    share: bool
    limit: float

    def holds(self, before: float, after: float) -> bool:
        """Whether it does, for a figure of both."""
        # Exact: 101 of 100 is no more than one percent above, whatever binary fractions make of it.
        found = after - before if self.change else after
        scale = abs(before) if self.share else 1.0
        return _RELATIONS[self.relation](found, self.limit * scale)


def condition_of(text: str) -> Condition:
    """A condition from its text: [layers.]FIGURE RELATION LIMIT.

    RELATION is >, <, >= or <=. LIMIT is a number, with K (1,024) or M (1,024 K) behind it; with a sign in front it is
    of the change, and may be percent of what the figure was: `instructions>+1%`, `flash_bytes>64K`, `accuracy<-0.005`,
    `layers.stated_instructions>+10%`. Raises UsageError for another."""
    match = _FORM.fullmatch(text.strip())
    hint = "as in 'instructions>+1%', 'flash_bytes>64K', 'accuracy<-0.005' or 'layers.instructions>+10%'"
    if match is None:
        raise UsageError(f"{text!r} is no condition", hint=hint)
    layers, figure, relation, sign, number, unit = match.groups(default="")
    if figure not in FIGURES:
        raise UsageError(f"{text!r}: there is no figure {figure}", hint=f"one of {', '.join(FIGURES)}")
    if unit == "%" and not sign:
        raise UsageError(f"{text!r}: percent are of a change, which has a sign", hint=hint)
    limit = float(f"{sign}{number}") * _FACTORS[unit]
    return Condition(text.strip(), figure, bool(layers), relation, bool(sign), unit == "%", limit)


def pairs_known(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """The figures that both have, in the order of FIGURES."""
    return {name: (before[name], after[name]) for name in FIGURES if name in before and name in after}
