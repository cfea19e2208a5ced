# SPDX-License-Identifier: Apache-2.0
"""Strategies that are built again and again are built once.

A composite strategy names those that it draws from anew in each example, and hypothesis examines each new one before
it draws from it: several times as long as it draws. Integers and booleans it keeps by itself; choices among a tuple,
and among strategies, are kept here. What is drawn stays the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

_MOST = 4096
"""Strategies that are kept; of more, those that were built last."""

_Strategy = st.SearchStrategy[Any]


class _Kept:
    """What a function made of the same objects before. These are held, so no others get their identity; they are
    not compared: 1, 1.0 and True are equal, and drawn as what they are."""

    def __init__(self, make: Callable[..., _Strategy]) -> None:
        self._make = make
        self._found: dict[tuple[int, ...], tuple[tuple[object, ...], _Strategy]] = {}

    def of(self, objects: tuple[object, ...]) -> _Strategy:
        key = tuple(map(id, objects))
        kept = self._found.get(key)
        if kept is None:
            while len(self._found) >= _MOST:
                del self._found[next(iter(self._found))]
            kept = self._found[key] = objects, self._make(*objects)
        return kept[1]


def install(patch: pytest.MonkeyPatch) -> None:
    """For as long as the patch lasts, in `hypothesis.strategies`, where tests look for them."""
    of_elements, of_strategies = st.sampled_from, st.one_of
    samples, unions = _Kept(of_elements), _Kept(of_strategies)

    def sampled_from(elements: Any) -> _Strategy:
        # Only what nobody can change.
        return samples.of((elements,)) if type(elements) is tuple else of_elements(elements)

    def one_of(*args: Any) -> _Strategy:
        strategies = all(isinstance(arg, st.SearchStrategy) for arg in args)
        return unions.of(args) if strategies else of_strategies(*args)

    patch.setattr(st, "sampled_from", sampled_from)
    patch.setattr(st, "one_of", one_of)
