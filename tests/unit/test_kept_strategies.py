# SPDX-License-Identifier: Apache-2.0
"""Kept strategies draw what hypothesis' own draw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import composite as of_conftest

from tests import kept_strategies


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Hypothesis' own functions, as they are before tests.conftest, for as long as a test lasts."""
    from hypothesis.strategies._internal import core, numbers, strategies

    monkeypatch.setattr(st, "composite", core.composite)
    monkeypatch.setattr(st, "sampled_from", core.sampled_from)
    monkeypatch.setattr(st, "one_of", strategies.one_of)
    monkeypatch.setattr(st, "integers", numbers.integers)
    monkeypatch.setattr(st, "permutations", core.permutations)
    with monkeypatch.context() as patch:
        yield patch


def some_strategy() -> st.SearchStrategy[Any]:
    """Nested composites with arguments; mapped, filtered, alone and among others, one of them twice."""

    @st.composite
    def number(draw: st.DrawFn, most: int, *, negative: bool = False) -> int:
        found = draw(st.integers(0, most))
        return -found if negative else found

    @st.composite
    def several(draw: st.DrawFn) -> tuple[Any, ...]:
        many = st.one_of(number(9), number(9), number(most=200, negative=True)).filter(lambda n: n % 3)
        few = st.lists(number(5).map(str), max_size=4)
        # Equal tuples, but not the same; and lists.
        equal = (1, 1.0, True), (True, 1, 1.0), [1, True], [True, 1], [1, 1], [3, 1]
        chosen = [draw(st.sampled_from(values)) for values in equal]
        chosen += draw(st.permutations(range(draw(st.integers(0, 3)))))
        twice = draw(st.one_of(number(9), number(9), number(900)))
        of_those = (
            st.one_of(many.flatmap(lambda n: number(abs(n))), number(1).filter(bool))
            if draw(st.booleans())
            else many
        )
        return chosen, twice, draw(of_those), draw(few), draw(st.integers(min_value=-4, max_value=4))

    return several()


def drawn() -> list[Any]:
    found: list[Any] = []

    @seed(1)
    @settings(
        max_examples=300,
        derandomize=False,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(some_strategy())
    def collect(values: Any) -> None:
        found.append(values)

    collect()
    return found


def test_the_same_is_drawn(own: pytest.MonkeyPatch) -> None:
    wanted = drawn()
    kept_strategies.install(own)
    found = drawn()
    assert repr(found) == repr(wanted), "1, 1.0 and True are equal"
    assert len(set(map(repr, wanted))) > 200


def test_they_are_in_place() -> None:
    @st.composite
    def nothing(draw: st.DrawFn) -> None:
        draw(st.none())

    assert of_conftest is st.composite
    assert isinstance(nothing(), kept_strategies._Composite)
    assert st.integers(0, 77) is st.integers(0, 77)
    assert st.sampled_from([0, 77]) is st.sampled_from([0, 77])
    assert st.permutations(range(7)) is st.permutations(range(7))


def test_wrong_arguments_are_said() -> None:
    @st.composite
    def number(draw: st.DrawFn, most: int) -> int:
        return draw(st.integers(0, most))

    @given(number())  # type: ignore[call-arg]
    def run(value: int) -> None:
        raise AssertionError(value)

    with pytest.raises(TypeError, match="most"):
        run()
