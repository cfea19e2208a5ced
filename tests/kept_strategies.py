# SPDX-License-Identifier: Apache-2.0
"""Strategies that are built again and again are built once.

A composite strategy names those that it draws from anew in each example, and hypothesis examines each new one before
it draws from it: several times as long as it draws. What is built of the same arguments is kept here, and a function
that draws is taken as it is. What is drawn stays the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.strategies._internal.core import CompositeStrategy

_MOST = 4096
"""Strategies that are kept; of more, those that were built last."""

_Strategy = st.SearchStrategy[Any]


class _Kept:
    """What was made before, by a key that holds all objects that it is of."""

    def __init__(self) -> None:
        self._found: dict[object, tuple[object, _Strategy]] = {}

    def of(self, key: object, objects: object, make: Callable[..., _Strategy], *args: Any) -> _Strategy:
        """objects: held, so that no others get the identities that are in the key."""
        kept = self._found.get(key)
        if kept is None:
            while len(self._found) >= _MOST:
                del self._found[next(iter(self._found))]
            kept = self._found[key] = objects, make(*args)
        return kept[1]


class _Composite(CompositeStrategy):
    """A function that draws, and its arguments. Nothing of it is to be found out: it is never empty, and its label, by
    which hypothesis tells what drew what, is the function's. What is made of it is made of hypothesis' own."""

    def __init__(
        self,
        build: Callable[..., _Strategy],
        label: int,
        function: Callable[..., Any],
        *args: Any,
        **named: Any,
    ) -> None:
        super().__init__(function, args, named)  # type: ignore[no-untyped-call]
        self.cached_is_empty = False
        self._build, self._label = build, label

    def validate(self) -> None:
        pass

    @property
    def label(self) -> int:
        return self._label

    def map(self, pack: Callable[[Any], Any]) -> _Strategy:
        return self._build(*self.args, **self.kwargs).map(pack)

    def filter(self, condition: Callable[[Any], Any]) -> _Strategy:
        return self._build(*self.args, **self.kwargs).filter(condition)


def install(patch: pytest.MonkeyPatch) -> None:
    """For as long as the patch lasts, in `hypothesis.strategies`, where tests look for them."""
    of_elements, of_strategies, of_bounds, of_function = st.sampled_from, st.one_of, st.integers, st.composite
    of_order = st.permutations
    samples, unions, ranges, numbers, orders = _Kept(), _Kept(), _Kept(), _Kept(), _Kept()

    def sampled_from(elements: Any) -> _Strategy:
        # Only what nobody can change. Not compared: 1, 1.0 and True are equal, and drawn as what they are.
        if type(elements) is tuple:
            return samples.of(id(elements), elements, of_elements, elements)
        if type(elements) is list and all(type(element) is int for element in elements):
            same = tuple(elements)
            return numbers.of(same, None, of_elements, same)
        return of_elements(elements)

    def permutations(values: Any) -> _Strategy:
        return orders.of(values, None, of_order, values) if type(values) is range else of_order(values)

    def one_of(*args: Any) -> _Strategy:
        if not all(isinstance(arg, st.SearchStrategy) for arg in args):
            return of_strategies(*args)
        return unions.of(tuple(map(id, args)), args, of_strategies, *args)

    def integers(*bounds: Any, **named: Any) -> _Strategy:
        if named or any(type(bound) is not int for bound in bounds):
            return of_bounds(*bounds, **named)
        return ranges.of(bounds, None, of_bounds, *bounds)

    def composite(function: Callable[..., Any]) -> Callable[..., _Strategy]:
        build = of_function(function)

        @functools.cache
        def label() -> int:
            # Of whatever arguments: it is the function's.
            return CompositeStrategy(function, (), {}).label  # type: ignore[no-untyped-call]

        @functools.wraps(build)
        def strategy(*args: Any, **named: Any) -> _Strategy:
            # Anew: of strategies that are the same object, a choice counts one.
            return _Composite(build, label(), function, *args, **named)

        return strategy

    patch.setattr(st, "sampled_from", sampled_from)
    patch.setattr(st, "one_of", one_of)
    patch.setattr(st, "integers", integers)
    patch.setattr(st, "permutations", permutations)
    patch.setattr(st, "composite", composite)
