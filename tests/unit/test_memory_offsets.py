# SPDX-License-Identifier: Apache-2.0
"""Offsets: no overlap ever, the bound is a bound, and small cases are exactly optimal."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.offsets import FAMILIES
from tinyet.errors import InternalError
from tinyet.memory.beam import Beam, Variant, improve
from tinyet.memory.buffers import NO_GAPS, Gaps, interference, peak_of
from tinyet.memory.first_fit import greedy
from tinyet.memory.offsets import Buffer, Placement, lower_bound, place


@st.composite
def buffers(draw: st.DrawFn, most: int, steps: int, largest: int, aligns: Sequence[int]) -> list[Buffer]:
    found = []
    for number in range(draw(st.integers(0, most))):
        first = draw(st.integers(0, steps - 1))
        last = draw(st.integers(first, steps - 1))
        align = draw(st.sampled_from(aligns))
        found.append(Buffer(f"b{number}", draw(st.integers(0, largest)), first, last, align))
    return found


@st.composite
def with_gaps(
    draw: st.DrawFn, most: int, steps: int, largest: int, aligns: Sequence[int], least: int
) -> tuple[list[Buffer], dict[tuple[str, str], int]]:
    """Buffers, of which some pairs may overlap by a gap of `least` bytes or more, one way or both."""
    found = draw(buffers(most, steps, largest, aligns))
    gaps = {
        (a.name, b.name): draw(st.integers(min(least, a.bytes), a.bytes))
        for a, b in itertools.permutations(found, 2)
        if draw(st.integers(0, 2)) == 0
    }
    return found, gaps


def apart(a: Buffer, at: int, b: Buffer, at_b: int, gaps: Gaps = NO_GAPS) -> bool:
    """May a start at byte `at` and b at byte `at_b`?"""
    together = a.first <= b.last and b.first <= a.last and a.bytes and b.bytes
    above, below = gaps.get((a.name, b.name), a.bytes), gaps.get((b.name, a.name), b.bytes)
    return not together or at_b >= at + above or at >= at_b + below


def assert_sound(given_buffers: Sequence[Buffer], placement: Placement, gaps: Gaps = NO_GAPS) -> None:
    for b in given_buffers:
        assert placement.offsets[b.name] >= 0
        assert placement.offsets[b.name] % b.align == 0
        assert placement.offsets[b.name] + b.bytes <= placement.peak
    for a, b in itertools.combinations(given_buffers, 2):
        assert apart(a, placement.offsets[a.name], b, placement.offsets[b.name], gaps), (a, b)


def fits(given_buffers: Sequence[Buffer], capacity: int, gaps: Gaps = NO_GAPS) -> bool:
    """Is there any placement within `capacity`? Every offset of every buffer is tried, in the order of
    time."""
    todo = sorted((b for b in given_buffers if b.bytes), key=lambda b: b.first)
    # Of each, the ones before it at its time, and how far it must begin above such a one, or that above it: `apart`,
    # which is asked thousands of times.
    near = [
        [
            (j, gaps.get((a.name, b.name), a.bytes), gaps.get((b.name, a.name), b.bytes))
            for j, a in enumerate(todo[:i])
            if a.first <= b.last and b.first <= a.last
        ]
        for i, b in enumerate(todo)
    ]
    offsets = [0] * len(todo)

    def extend(i: int) -> bool:
        if i == len(todo):
            return True
        b = todo[i]
        for offset in range(0, capacity - b.bytes + 1, b.align):
            for j, above, below in near[i]:
                if offsets[j] - below < offset < offsets[j] + above:
                    break
            else:
                offsets[i] = offset
                if extend(i + 1):
                    return True
        return False

    return extend(0)


def best_by_enumeration(given_buffers: Sequence[Buffer], gaps: Gaps = NO_GAPS) -> int:
    capacity = 0
    while not fits(given_buffers, capacity, gaps):
        capacity += 1
    return capacity


@given(buffers(most=25, steps=12, largest=64, aligns=(1, 4, 16)))
@settings(deadline=None)
def test_never_overlaps_and_never_beats_the_bound(given_buffers: list[Buffer]) -> None:
    placement = place(given_buffers, budget=2_000)
    assert_sound(given_buffers, placement)
    assert placement.peak >= placement.lower_bound == lower_bound(given_buffers)
    assert placement.optimal or placement.peak > placement.lower_bound
    assert place(given_buffers, budget=2_000) == placement


@given(buffers(most=6, steps=6, largest=6, aligns=(1,)))
@settings(deadline=None, max_examples=150)
def test_small_sets_are_optimal(given_buffers: list[Buffer]) -> None:
    nonempty = [b for b in given_buffers if b.bytes]
    placement = place(given_buffers)
    assert placement.optimal
    assert placement.peak == best_by_enumeration(nonempty)


@given(buffers(most=5, steps=5, largest=9, aligns=(1, 2, 4)))
@settings(deadline=None, max_examples=100)
def test_small_sets_with_alignment_are_optimal(given_buffers: list[Buffer]) -> None:
    nonempty = [b for b in given_buffers if b.bytes]
    placement = place(given_buffers)
    assert_sound(given_buffers, placement)
    assert placement.optimal
    assert placement.peak == best_by_enumeration(nonempty)


@given(with_gaps(most=25, steps=12, largest=64, aligns=(1, 4, 16), least=-20))
@settings(deadline=None)
def test_gaps_are_kept_and_the_bound_is_a_bound(
    case: tuple[list[Buffer], dict[tuple[str, str], int]],
) -> None:
    given_buffers, gaps = case
    placement = place(given_buffers, gaps=gaps, budget=3_000)
    assert_sound(given_buffers, placement, gaps)
    assert placement.peak >= placement.lower_bound == lower_bound(given_buffers, gaps)
    assert placement.lower_bound <= lower_bound(given_buffers)
    assert placement.optimal or placement.peak > placement.lower_bound


@given(with_gaps(most=5, steps=4, largest=6, aligns=(1,), least=-6))
@settings(deadline=None, max_examples=300)
def test_small_sets_with_gaps_are_optimal(case: tuple[list[Buffer], dict[tuple[str, str], int]]) -> None:
    placement = place(case[0], gaps=case[1])
    assert_sound(case[0], placement, case[1])
    assert placement.optimal
    assert placement.lower_bound <= placement.peak == best_by_enumeration(*case)


@given(with_gaps(most=5, steps=3, largest=9, aligns=(1, 2, 4), least=-9))
@settings(deadline=None, max_examples=200)
def test_small_sets_with_gaps_and_alignment_are_optimal(
    case: tuple[list[Buffer], dict[tuple[str, str], int]],
) -> None:
    placement = place(case[0], gaps=case[1])
    assert_sound(case[0], placement, case[1])
    assert placement.optimal
    assert placement.lower_bound <= placement.peak == best_by_enumeration(*case)


def test_an_output_lies_over_the_input_it_consumes() -> None:
    """Eight bytes below its input, an output may be written before the input has been read whole; above, not."""
    layer = [Buffer("in", 100, 0, 1), Buffer("out", 90, 1, 2), Buffer("other", 50, 0, 2)]
    placement = place(layer, gaps={("out", "in"): 8})
    assert (placement.peak, placement.lower_bound, placement.optimal) == (158, 158, True)
    assert placement.offsets["in"] == placement.offsets["out"] + 8
    # Both directions at 0: the two do not conflict.
    placement = place(layer, gaps={("out", "in"): 0, ("in", "out"): 0})
    assert (placement.peak, placement.lower_bound, placement.optimal) == (150, 150, True)


def test_a_gap_below_nothing_lets_the_upper_one_start_lower() -> None:
    """The output ends before its input does, so it may start up to 10 bytes below, or anywhere higher."""
    layer = [Buffer("in", 100, 0, 1), Buffer("out", 40, 1, 2, 4)]
    placement = place(layer, gaps={("in", "out"): -10})
    assert (placement.peak, placement.lower_bound, placement.optimal) == (100, 100, True)


def test_the_bound_counts_each_neighbour_once() -> None:
    """Two windows may each lie over the same tensor, but only one of them is next to it."""
    three = [Buffer("x", 60, 0, 1), Buffer("y", 50, 0, 1), Buffer("z", 60, 0, 1)]
    gaps = {("x", "z"): 20, ("y", "z"): 20}
    assert lower_bound(three, gaps) == 50 + 20 + 60 == place(three, gaps=gaps).peak


def test_the_largest_buffer_is_a_bound() -> None:
    """Whatever else may lie in it: padding that another one has is not taken from it."""
    pair = [Buffer("small", 1, 0, 0, 16), Buffer("large", 16, 0, 0, 16)]
    gaps = {("small", "large"): 0, ("large", "small"): 0}
    assert lower_bound(pair, gaps) == 16 == place(pair, gaps=gaps, budget=0).peak


def test_groups_share_the_budget() -> None:
    """An arena cut through at some moment into two halves, neither of which is placed within its bound: the first must
    not take all steps, because the peak is the higher one's."""
    halves = FAMILIES["tiles"](random.Random("tiles 0"))
    assert place(halves).peak < place(halves, budget=0).peak


def test_what_the_caller_proves_settles_the_question() -> None:
    tight = [Buffer(f"b{i}", size, first, last) for i, (size, first, last) in enumerate(GAP)]
    unproved = place(tight, budget=0)
    proved = place(tight, floor=unproved.peak, budget=0)
    assert (unproved.optimal, proved.optimal, proved.lower_bound) == (False, True, unproved.peak)
    assert proved.offsets == unproved.offsets
    with pytest.raises(InternalError, match="bytes was found where 30 were said to be needed"):
        place(tight, floor=30)


@pytest.mark.parametrize("wrong", [{("x", "y"): 5}, {("x", "x"): 1}, {("x", "z"): 1}, {("z", "x"): 0}])
def test_refuses_gaps_that_are_none(wrong: dict[tuple[str, str], int]) -> None:
    with pytest.raises(InternalError, match="cannot have a gap of"):
        place([Buffer("x", 4, 0, 0), Buffer("y", 8, 0, 0)], gaps=wrong)


# (bytes, first, last): the largest sum of bytes alive is 15, and yet no placement is below 16.
GAP = [(5, 1, 1), (5, 4, 8), (5, 6, 6), (4, 5, 5), (4, 4, 5), (5, 0, 2)]
GAP += [(2, 2, 3), (1, 5, 6), (3, 2, 4), (3, 3, 4), (1, 7, 8), (4, 0, 2)]


def test_proves_an_optimum_above_the_bound() -> None:
    tight = [Buffer(f"b{i}", size, first, last) for i, (size, first, last) in enumerate(GAP)]
    placement = place(tight)
    assert_sound(tight, placement)
    assert (placement.peak, placement.lower_bound, placement.optimal) == (16, 15, True)
    assert not fits(tight, 15)
    # Without the search the same peak may be found, but cannot be called optimal.
    assert not place(tight, budget=0).optimal


def first_fit_peak(order: Sequence[Buffer]) -> int:
    """One buffer after another at the lowest offset that is free: what greedy planners do."""
    placed: list[tuple[int, Buffer]] = []
    for b in order:
        others = [(at, x) for at, x in placed if x.bytes and x.first <= b.last and b.first <= x.last]
        candidates = sorted({0, *(-(-(at + x.bytes) // b.align) * b.align for at, x in others)})
        placed.append((next(at for at in candidates if all(apart(x, o, b, at) for o, x in others)), b))
    return max((at + b.bytes for at, b in placed if b.bytes), default=0)


GREEDY: dict[str, Callable[[Buffer], int]] = {
    "by size": lambda b: -b.bytes,
    "by size, longest first": lambda b: -b.bytes * 1000 - (b.last - b.first),
    "by span": lambda b: b.first - b.last,
    "by first step": lambda b: b.first,
}


@given(buffers(most=30, steps=12, largest=64, aligns=(1, 4, 16)))
@settings(deadline=None)
def test_never_above_the_greedy_planner(given_buffers: list[Buffer]) -> None:
    """By size and else as given: the greedy planner of TensorFlow Lite Micro."""
    by_size = first_fit_peak(sorted(given_buffers, key=lambda b: -b.bytes))
    assert place(given_buffers, budget=0).peak <= by_size
    assert place(given_buffers, budget=1_000).peak <= place(given_buffers, budget=0).peak


@pytest.mark.parametrize("family", FAMILIES)
def test_never_above_any_greedy_planner_on_dense_graphs(family: str) -> None:
    """One set of 200 to 400 buffers a family, a little of the search."""
    dense = FAMILIES[family](random.Random(f"{family} 0"))
    placement = place(dense, budget=20_000)
    assert_sound(dense, placement)
    for key in GREEDY.values():
        assert placement.peak <= first_fit_peak(sorted(dense, key=key))


# Of 301 to 369 buffers: first fit is 2 to 8 % above the bound, and so is what the exact search finds by itself.
@pytest.mark.parametrize(
    ("family", "seed"), [("cells", 0), ("cells", 2), ("randomly_wired", 0), ("randomly_wired", 3)]
)
def test_dense_graphs_meet_their_bound(family: str, seed: int) -> None:
    dense = FAMILIES[family](random.Random(f"{family} {seed}"))
    placement = place(dense)
    assert_sound(dense, placement)
    assert place(dense, budget=0).peak > placement.peak == placement.lower_bound
    assert placement.optimal


@given(with_gaps(most=30, steps=12, largest=64, aligns=(1, 4, 16), least=-20), st.integers(4, 9))
@settings(deadline=None, max_examples=30)
def test_a_beam_places_soundly_and_within_its_capacity(
    case: tuple[list[Buffer], dict[tuple[str, str], int]], width: int
) -> None:
    group, gaps = [b for b in case[0] if b.bytes], case[1]
    if not group:
        return
    apart_from = interference(group, gaps)
    start = greedy(group, apart_from, range(len(group)), 0)
    beam = Beam(group, apart_from)
    for by in (("pressure", "span", "area"), ("span", "area")):
        for capacity in (lower_bound(group, gaps), peak_of(group, start), 10_000):
            variant, aim = Variant(width, 3, 5, by), lower_bound(group, gaps)
            run = beam.run(variant, width, aim, capacity)
            if run.widest < width:
                assert beam.run(variant, 2 * width, aim, capacity) == run
            if run.offsets is not None:
                named = {b.name: at for b, at in zip(group, run.offsets, strict=True)}
                assert_sound(group, Placement(named, capacity, 0, False), gaps)
    better, steps = improve(group, apart_from, start, lower_bound(group, gaps), 2_000)
    assert peak_of(group, better) <= peak_of(group, start)
    assert steps <= 2_000


def test_nothing_and_one() -> None:
    assert place([]) == Placement({}, 0, 0, True)
    assert place([Buffer("x", 5, 0, 0, 16)]) == Placement({"x": 0}, 5, 5, True)
    assert place([Buffer("x", 0, 0, 0), Buffer("y", 0, 0, 3)]) == Placement({"x": 0, "y": 0}, 0, 0, True)


def test_the_bound_counts_padding_but_not_of_the_topmost() -> None:
    assert lower_bound([Buffer("a", 5, 0, 0, 4), Buffer("b", 6, 0, 0, 4)]) == 13
    # A byte that may stand anywhere fills the padding.
    mixed = [Buffer("a", 5, 0, 0, 4), Buffer("b", 6, 0, 0, 4), Buffer("c", 1, 0, 0, 1)]
    assert place(mixed).peak == 13


def test_separate_groups_share_the_arena() -> None:
    one = [Buffer("a", 10, 0, 1), Buffer("b", 20, 1, 2)]
    two = [Buffer("c", 7, 3, 4), Buffer("d", 8, 4, 5)]
    placement = place([*one, *two])
    assert (placement.peak, placement.optimal) == (30, True)


def test_three_hundred_buffers_stay_within_the_budget() -> None:
    source = random.Random(1)
    many = []
    for number in range(300):
        first = source.randrange(300)
        many.append(Buffer(f"b{number}", source.randrange(1, 4000), first, first + source.randrange(6), 4))
    placement = place(many)
    assert_sound(many, placement)
    assert placement.optimal


@pytest.mark.parametrize(
    "wrong",
    [
        [Buffer("x", -1, 0, 0)],
        [Buffer("x", 1, 2, 1)],
        [Buffer("x", 1, 0, 0, 3)],
        [Buffer("x", 1, 0, 0, 0)],
        [Buffer("x", 1, 0, 0), Buffer("x", 1, 1, 1)],
    ],
)
def test_refuses_nonsense(wrong: list[Buffer]) -> None:
    with pytest.raises(InternalError, match="'x' cannot be placed"):
        place(wrong)


def test_what_is_asked_for_again_is_the_same_and_nobody_elses() -> None:
    found = [Buffer(f"b{i}", 10 + 7 * (i % 5), i, i + 3, 4) for i in range(12)]
    first = place(found)
    first.offsets["b0"] = -1
    again = place(found)
    assert again.offsets["b0"] >= 0
    assert again == place([*found], gaps={})
    anywhere = {(a.name, b.name): 0 for a, b in itertools.permutations(found, 2)}
    assert place(found, gaps=anywhere).peak == max(b.bytes for b in found) < again.peak
    with pytest.raises(InternalError):
        place(found, floor=1000)
