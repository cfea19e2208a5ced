# SPDX-License-Identifier: Apache-2.0
"""Tests that let emulated boards make drawn calls, bit for bit and within the stack that their code says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from tests.calls import board, definitions
from tests.calls.board import Image
from tests.calls.exact import Attempt, Wanted, asked, assert_right, attempts
from tests.ops import drawing
from tests.ops.cases import Case
from tinyet.delegates import Delegate
from tinyet.ir import DType
from tinyet.opset import Definition, Kernel

EXAMPLES = 40
"""Cases of a test; each goes to every board, there to every kernel that takes it, with its memory in every way."""

TRIES = 4
"""So many times more nodes are drawn for a kernel than are compiled: it does not take all."""

Kernels = Sequence[Kernel] | Delegate | None
"""As tests.calls.exact.asked takes them: a delegate's, or for None the operator's own."""


def drawn_cases(cases: st.SearchStrategy[Case], count: int) -> list[Case]:
    """So many of a strategy's cases, without the first: hypothesis begins with the simplest."""
    found: list[Case] = []

    @_settings(count + 1)
    @given(cases)
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found[-count:]


def attempts_of(cases: st.SearchStrategy[Case], kernels: Kernels, image: Image, count: int) -> list[Attempt]:
    """Of so many of a strategy's cases that are taken, without the first, the kernels' attempts; `TRIES` times as many
    cases are drawn at most."""
    taken: list[list[Attempt]] = []
    drawn = 0

    def enough(case: Case) -> bool:
        nonlocal drawn
        drawn += 1
        # Hypothesis begins with the simplest, and draws once more the one that was enough. Not filtered by the
        # strategy: some cores do not take any.
        if drawn > 1 and len(taken) < count and (found := of_image(case, kernels, image)):
            taken.append(found)
        return len(taken) == count

    with contextlib.suppress(NoSuchExample):
        find(cases, enough, settings=_settings(TRIES * count + 1))
    return [attempt for found in taken for attempt in found]


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        database=None,
    )


def check_library(
    cases: st.SearchStrategy[Case],
    kernels: Kernels = None,
    images: Sequence[Image] = board.EVERY,
    *,
    examples: int = EXAMPLES,
) -> None:
    """Fail unless each library kernel that takes a case gives the reference's outputs on each board.

    Skips at the end where a board's tools are not installed.
    """
    made = dict.fromkeys((image for image in images if not image.missing), 0)

    @_settings(examples)
    @given(cases)
    def run(case: Case) -> None:
        for image, count in calls_of(case, kernels, list(made)).items():
            made[image] += count

    run()
    assert all(made.values()), f"no call was made on a board: {made}"
    skip_missing(images)


def calls_of(case: Case, kernels: Kernels, images: Sequence[Image]) -> dict[Image, int]:
    """The calls that boards have made, all of them rightly."""
    wanted: Wanted = {}
    made = {}
    for image in images:
        found = of_image(case, kernels, image)
        called = [attempt for attempt in found if isinstance(attempt.call.symbol, str)]
        made[image] = assert_right(called, board.library(image), wanted) if called else 0
    return made


def of_image(case: Case, kernels: Kernels, image: Image) -> list[Attempt]:
    return attempts(case, asked(case, kernels), image.target)


def skip_missing(images: Sequence[Image]) -> None:
    """Skip, saying which tools are not installed."""
    if missing := dict.fromkeys(tool for image in images for tool in image.missing):
        pytest.skip(f"not installed: {', '.join(missing)}")


def again(case: Case, seed: int) -> Case:
    """The same node with other data, where its inputs are integers."""
    rng = np.random.default_rng(seed)
    return Case(
        case.node, tuple(drawing.integer_data(rng, x.shape, DType(x.dtype.name)) for x in case.inputs)
    )


def check_own(
    nodes: Mapping[str, Callable[[], st.SearchStrategy[Case]]],
    only: Callable[[str], Delegate],
    image: Image,
    count: int,
) -> None:
    """Fail unless functions that are made for single calls give the reference's outputs, for three sets of inputs each.

    nodes: kernel → strategy. only: a delegate of one kernel. count: cases of each kernel; all are compiled together.
    """
    skip_missing([image])
    made: list[Attempt] = []
    for symbol, strategy in nodes.items():
        made += attempts_of(strategy(), only(symbol), image, count)
    assert_own(made, image)


def assert_own(made: Sequence[Attempt], image: Image) -> None:
    """Fail unless functions that are made for single calls give the reference's outputs, for three sets of inputs each.

    All are compiled together.
    """
    own = [attempt for attempt in made if isinstance(attempt.call.symbol, Definition)]
    assert own
    with definitions.served([(a.kernel, a.call) for a in own], image) as (process, calls):
        named = [replace(attempt, call=call) for attempt, call in zip(own, calls, strict=True)]
        more = [
            replace(a, case=again(a.case, seed)) for seed in (1, 2) for a in named if a.placement.shift == 0
        ]
        assert assert_right([*named, *more], process) > len(own) // 2
