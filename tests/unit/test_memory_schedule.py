# SPDX-License-Identifier: Apache-2.0
"""Order of execution: never worse than given, and the best of all orders where all can be tried."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyet.errors import InternalError
from tinyet.memory.schedule import Step, schedule


@dataclass(frozen=True)
class Problem:
    steps: list[Step]
    sizes: list[int]
    inputs: frozenset[int]
    outputs: frozenset[int]


@st.composite
def problems(draw: st.DrawFn, most: int) -> Problem:
    """Steps that each write a block of their own, or part of a shared one, and read earlier blocks."""
    sizes = [draw(st.integers(0, 9)) for _ in range(draw(st.integers(1, 2)))]
    inputs = frozenset(range(len(sizes)))
    writers: dict[int, list[int]] = {block: [] for block in inputs}
    steps = []
    for number in range(draw(st.integers(1, most))):
        whole = [b for b in writers if b in inputs or len(writers[b]) == 1]
        reads = tuple(draw(st.lists(st.sampled_from(whole), min_size=1, max_size=2, unique=True)))
        shared = [b for b in writers if b not in inputs and b not in reads]
        if shared and draw(st.integers(0, 4)) == 0:
            block = draw(st.sampled_from(shared))
        else:
            block = len(sizes)
            sizes.append(draw(st.integers(0, 9)))
            writers[block] = []
        after = tuple(sorted({w for b in reads for w in writers[b]}))
        writers[block].append(number)
        overwrites = tuple((b, block) for b in reads if draw(st.booleans()))
        least = {b: min(sizes[b], sizes[block]) for b in reads if draw(st.booleans())}
        saved = sorted(((draw(st.integers(0, most)), b) for b, most in least.items()), reverse=True)
        overlaps = tuple((b, block, count) for count, b in saved)
        steps.append(Step(after, reads, (block,), draw(st.integers(0, 3)), overwrites, overlaps))
    outputs = draw(st.frozensets(st.sampled_from(sorted(writers)), min_size=1, max_size=2))
    return Problem(steps, sizes, inputs, outputs)


def orders(steps: Sequence[Step]) -> Iterator[tuple[int, ...]]:
    for order in itertools.permutations(range(len(steps))):
        position = {number: i for i, number in enumerate(order)}
        if all(position[needed] < position[n] for n in order for needed in steps[n].after):
            yield order


def peak_of(problem: Problem, order: Sequence[int]) -> int:
    """Lifetimes first, then sums: written without the sets that the scheduler thinks in."""
    count = len(order)
    born: dict[int, int] = dict.fromkeys(problem.inputs, -1)
    dies: dict[int, int] = dict.fromkeys(problem.inputs, -1)
    for time, number in enumerate(order):
        step = problem.steps[number]
        for block in step.writes:
            born.setdefault(block, time)
        for block in (*step.reads, *step.writes):
            dies[block] = time
    for block in problem.outputs:
        if block in born:
            dies[block] = count
    moments = [sum(problem.sizes[b] for b in born if born[b] <= -1 <= dies[b])]
    for time, number in enumerate(order):
        step = problem.steps[number]
        total = step.scratch + sum(problem.sizes[b] for b in born if born[b] <= time <= dies[b])
        alike = [pair for pair in step.overwrites if problem.sizes[pair[0]] == problem.sizes[pair[1]]]
        pairs = [*((read, written, problem.sizes[written]) for read, written in alike), *step.overlaps]
        moments.append(
            total - max((s for r, w, s in pairs if dies[r] == time and born[w] == time), default=0)
        )
    moments.append(sum(problem.sizes[b] for b in born if dies[b] == count))
    return max(moments)


@given(problems(most=6))
@settings(deadline=None, max_examples=250)
def test_as_good_as_every_order(problem: Problem) -> None:
    result = schedule(problem.steps, problem.sizes, inputs=problem.inputs, outputs=problem.outputs)
    given_order = tuple(range(len(problem.steps)))
    peaks = {order: peak_of(problem, order) for order in orders(problem.steps)}
    assert result.optimal
    assert result.given_peak == peaks[given_order]
    assert result.peak == peaks[result.order] == min(peaks.values())
    # Ties keep the original order; a better one is the first of its kind.
    best = min(order for order, peak in peaks.items() if peak == result.peak)
    assert result.order == (given_order if result.peak == result.given_peak else best)


@given(problems(most=12), st.integers(0, 3))
@settings(deadline=None)
def test_never_worse_than_given_even_without_a_search(problem: Problem, budget: int) -> None:
    result = schedule(
        problem.steps, problem.sizes, inputs=problem.inputs, outputs=problem.outputs, budget=budget
    )
    assert sorted(result.order) == list(range(len(problem.steps)))
    position = {number: i for i, number in enumerate(result.order)}
    assert all(position[a] < position[n] for n, step in enumerate(problem.steps) for a in step.after)
    assert result.peak == peak_of(problem, result.order) <= result.given_peak


def test_branches_run_one_after_the_other() -> None:
    """Eight branches expand one input eightfold and reduce it again; breadth first holds all of them at
    once."""
    sizes = [4]
    steps = []
    for number in range(8):
        sizes.append(32)
        steps.append(Step((), (0,), (1 + number,)))
    for number in range(8):
        sizes.append(1)
        steps.append(Step((number,), (1 + number,), (9 + number,)))
    sizes.append(1)
    steps.append(Step(tuple(range(8, 16)), tuple(range(9, 17)), (17,)))
    result = schedule(steps, sizes, inputs=frozenset({0}), outputs=frozenset({17}))
    assert result.given_peak == 8 * 32 + 4
    # The last branch: seven results and its own, its wide block; the input has just died.
    assert (result.peak, result.optimal) == (4 + 7 + 32, True)
    assert result.order[:4] == (0, 8, 1, 9)


def test_a_wide_graph_falls_back_and_still_gains() -> None:
    """Forty independent pairs joined at the end have 3^40 sets of executed steps."""
    steps = [Step((), (0,), (1 + i,)) for i in range(40)]
    steps += [Step((i,), (1 + i,), (41 + i,)) for i in range(40)]
    steps.append(Step(tuple(range(40, 80)), tuple(range(41, 81)), (81,)))
    sizes = [16] + [20 + 7 * i % 5 for i in range(40)] + [1 + i % 3 for i in range(40)] + [4]
    result = schedule(steps, sizes, inputs=frozenset({0}), outputs=frozenset({81}), budget=200)
    assert result.peak < result.given_peak / 4
    assert result == schedule(steps, sizes, inputs=frozenset({0}), outputs=frozenset({81}), budget=200)


def test_nothing_to_order() -> None:
    result = schedule([], [3], inputs=frozenset({0}), outputs=frozenset({0}))
    assert (result.order, result.peak, result.optimal) == ((), 3, True)


def test_refuses_an_impossible_order() -> None:
    with pytest.raises(InternalError, match="step 0 needs step 1"):
        schedule([Step((1,), (), (0,)), Step((), (), (1,))], [1, 1])
