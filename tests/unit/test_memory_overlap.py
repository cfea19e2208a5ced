# SPDX-License-Identifier: Apache-2.0
"""Outputs that lie partly over the inputs that die in their call, by what kernels say of the order of their work."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.test_memory_storage import Builder, drawn_access_orders, execute, op_of
from tinyet.errors import InternalError
from tinyet.ir import Graph, Node
from tinyet.memory import MemoryPlan, check_plan, plan_memory
from tinyet.memory.accesses import Access, Span
from tinyet.memory.check import check_accesses
from tinyet.memory.live_ranges import LiveRange, gap, gaps, live_range, most_alive
from tinyet.memory.offsets import Buffer, lower_bound
from tinyet.memory.timeline import access_schedule
from tinyet.opset import AccessOrder, AccessOrders


def rows(written: Sequence[int], needed: Sequence[int]) -> AccessOrder:
    return AccessOrder(np.array(written), np.array(needed))


def evenly(node: Node, index: int) -> AccessOrder:
    """Byte by byte of what is smaller, the other in proportion."""
    size, out = node.input(index).type.bytes, node.output.type.bytes
    step = np.arange(1, min(size, out) + 1)
    return AccessOrder(step * out // len(step), (step - 1) * size // len(step))


def planned(
    graph: Graph, access_order: AccessOrders = evenly, align: int = 1, scratch: int = 0
) -> MemoryPlan:
    """A plan, executed. scratch: bytes of each call's."""
    needs = dict.fromkeys(graph.nodes, scratch)
    plan = plan_memory(graph, op_of, needs, access_order=access_order, align=align)
    execute(graph, plan, needs, access_order)
    return plan


def plan_of_silent_kernels(graph: Graph) -> MemoryPlan:
    return plan_memory(graph, op_of, {}, align=1)


def test_output_over_the_input_that_dies() -> None:
    b = Builder()
    graph = b.graph(b.mix(b.input(100), shape=(60,)))
    plan = planned(graph)
    assert plan_of_silent_kernels(graph).arena_bytes == 160
    # One byte ahead, at most.
    assert (plan.arena_bytes, plan.lower_bound, plan.optimal) == (101, 101, True)


def test_a_chain_drifts_downwards() -> None:
    """Each output begins before its input: what is behind the last but one has to leave room below itself."""
    b = Builder()
    y = b.mix(b.input(100), shape=(60,))
    plan = planned(b.graph(b.mix(y, shape=(80,))))
    # 1 and 21 bytes ahead of what they are made of; all alive is no more than 101 at any time.
    assert (plan.arena_bytes, plan.lower_bound, plan.optimal) == (122, 101, True)


def test_an_output_that_is_written_when_all_is_read_lies_anywhere() -> None:
    def at_the_end(node: Node, index: int) -> AccessOrder:
        return rows([0, node.output.type.bytes], [0, node.input(index).type.bytes])

    b = Builder()
    y = b.mix(b.input(100), shape=(60,))
    assert planned(b.graph(b.mix(y, shape=(80,))), at_the_end).arena_bytes == 100


def test_alignment_makes_room() -> None:
    b = Builder()
    graph = b.graph(b.mix(b.input(100), shape=(60,)))
    assert planned(graph, align=4).arena_bytes == 104


def test_scratch_memory_lies_over_neither() -> None:
    b = Builder()
    graph = b.graph(b.mix(b.input(100), shape=(60,)))
    assert planned(graph, scratch=16).arena_bytes == 101 + 16


def test_what_is_used_later_or_by_another_index_is_not_written_over() -> None:
    b = Builder()
    x = b.input(100)
    y = b.mix(x, shape=(60,))
    assert planned(b.graph(b.mix(x, y, shape=(4,)))).arena_bytes == 161
    twice = Builder()
    x = twice.input(100)
    graph = twice.graph(twice.mix(x, x, shape=(60,)))
    assert planned(graph).arena_bytes == 101

    def of_the_first(node: Node, index: int) -> AccessOrder | None:
        return evenly(node, index) if index == 0 else None

    assert planned(graph, of_the_first).arena_bytes == 160


def test_in_place_where_that_needs_less() -> None:
    """At one address the two need 100 bytes, partly over each other 101."""
    b = Builder()
    graph = b.graph(b.pointwise(b.input(100)))
    plan = planned(graph)
    assert (plan.arena_bytes, len(plan.overwrites)) == (100, 1)
    mixed = Builder()
    graph = mixed.graph(mixed.mix(mixed.input(100), shape=(100,)))
    assert planned(graph).arena_bytes == 101
    plan = plan_memory(graph, op_of, {}, access_order=evenly, replaces=lambda _node, _index: True, align=1)
    assert (plan.arena_bytes, len(plan.overwrites)) == (100, 1)


def test_a_smaller_output_over_the_first_bytes() -> None:
    """Where the kernel says so: the operator alone asks for as many bytes."""

    def always(_node: Node, _index: int) -> bool:
        return True

    b = Builder()
    y = b.mix(b.input(100), shape=(60,))
    graph = b.graph(b.mix(y, shape=(40,)))
    assert plan_of_silent_kernels(graph).arena_bytes == 160
    plan = plan_memory(graph, op_of, {}, replaces=always, align=1)
    execute(graph, plan, {})
    assert plan.arena_bytes == 100
    assert set(plan.overwrites) == set(graph.nodes)
    check_plan(graph, plan, op_of, {}, align=1, scratch_align=1, replaces=always)
    with pytest.raises(InternalError, match=r"writes .* over .* while reading it"):
        check_plan(graph, plan, op_of, {}, align=1, scratch_align=1)
    small = Builder()
    graph = small.graph(small.mix(small.input(60), shape=(100,)))
    assert plan_memory(graph, op_of, {}, replaces=always, align=1).arena_bytes == 160


def test_partly_over_the_input_where_its_block_is_large() -> None:
    """In place the sum would keep the whole of the block alive, of which it is a tenth."""
    b = Builder()
    large = b.mix(b.input(4), shape=(100,))
    y = b.pointwise(b.slice(large, 90, 100))
    graph = b.graph(b.mix(b.mix(y, shape=(95,)), y, shape=(4,)))
    plan = planned(graph)
    assert not plan.overwrites
    assert plan.arena_bytes <= 95 + 10 + 4


def test_the_order_knows_what_lies_over_what() -> None:
    """The layer whose output takes the place of its input does so before the other input is read."""
    b = Builder()
    x, z = b.input(8), b.input(60)
    first = b.mix(x, shape=(60,))
    second = b.mix(z, shape=(60,))
    graph = b.graph(b.mix(b.mix(first, shape=(4,)), b.mix(second, shape=(4,)), shape=(4,)))
    silent, ordered = plan_of_silent_kernels(graph), planned(graph)
    assert ordered.arena_bytes < silent.arena_bytes
    assert ordered.given_order_bytes < silent.given_order_bytes


def moved(plan: MemoryPlan, block: int, by: int) -> MemoryPlan:
    blocks = list(plan.blocks)
    blocks[block] = dataclasses.replace(blocks[block], offset=blocks[block].offset + by)
    return dataclasses.replace(plan, blocks=tuple(blocks))


def test_the_check_refuses_what_is_too_near_and_what_is_not_said() -> None:
    b = Builder()
    graph = b.graph(b.mix(b.input(100), shape=(60,)))
    plan = planned(graph)

    def refused(message: str, broken: MemoryPlan, access_order: AccessOrders | None) -> None:
        with pytest.raises(InternalError, match=message):
            check_plan(graph, broken, op_of, {}, align=1, scratch_align=8, access_order=access_order)

    refused(
        r"call 0 .mix .*by the end of step 0 of 60, .* is written up to byte 1, over byte 0 of in0_0, .* \(1 bytes too",
        moved(plan, 0, -1),
        evenly,
    )
    refused("writes .* over in0_0 while reading it", plan, None)
    refused("writes .* over in0_0 while reading it", plan, lambda _node, _index: None)
    # Kernels that read more, or write earlier, than those that the plan was made for.
    refused("over byte 0 of in0_0.*29 bytes too near", plan, lambda _node, _index: rows([30, 60], [0, 50]))
    refused("over byte 8 of in0_0", plan, lambda _node, _index: rows([1, 10, 60], [0, 8, 59]))
    refused("write 59 of 60 bytes", plan, lambda _node, _index: rows([1, 59], [0, 59]))


def test_the_check_asks_of_each_index() -> None:
    b = Builder()
    x = b.input(100)
    graph = b.graph(b.mix(x, x, shape=(60,)))
    plan = planned(graph)

    def refused(second: AccessOrder | None) -> None:
        with pytest.raises(InternalError, match="in0_0"):
            check_plan(
                graph,
                plan,
                op_of,
                {},
                align=1,
                scratch_align=8,
                access_order=lambda node, index: second if index else evenly(node, index),
            )

    refused(None)
    refused(rows([60], [0]))


@given(st.integers(0, 2**30))
@settings(deadline=None, max_examples=600)
def test_the_check_and_the_gap_agree_with_bytes(seed: int) -> None:
    """One call, its steps carried out byte by byte, at every distance of output and input."""
    random = np.random.default_rng(seed)
    size, out, steps = (int(n) for n in random.integers(1, 9, 3))
    written, needed = (
        np.sort(random.integers(0, out + 1, steps)),
        np.sort(random.integers(0, size + 1, steps)),
    )
    written[-1] = out
    access_order = AccessOrder(written, needed)
    b = Builder()
    b.mix(b.input(size), shape=(out,))
    node = b.nodes[0]
    found = access_schedule(node, lambda _node, _index: access_order)
    assert found is not None
    at = np.arange(len(found) + 1)
    low, high = np.zeros(len(found), np.int64), np.full(len(found), size)
    result = live_range("y", at, low, found.written[node.output], out)
    source = live_range("x", at, found.needed[node.input(0)], high, size)
    over, under = gap(result, source), gap(source, result)
    for where in range(-out - 1, size + 2):
        right = all(
            not {where + i for i in range(w)} & set(range(n, size))
            for w, n in zip(written.tolist(), needed.tolist(), strict=True)
        )
        spans = Span("x", 16, size), Span("y", 16 + where, out)
        call = Access("one", spans[:1], spans[1:], access_orders={("x", "y"): [access_order]})
        if right:
            check_accesses([call], 64, spans[:1], spans[1:])
        else:
            with pytest.raises(InternalError, match="too near"):
                check_accesses([call], 64, spans[:1], spans[1:])
        if over is None or under is None or -where >= over or where >= under:
            assert right
        elif -where == over - 1:
            assert not right


def drawn_live_ranges(random: np.random.Generator, count: int, align: int) -> list[LiveRange]:
    found = []
    for number in range(count):
        at = np.unique(random.integers(0, 12, int(random.integers(2, 6))))
        if len(at) < 2:
            continue
        size = int(random.integers(1, 20))
        low, high = (random.integers(0, size + 1, len(at) - 1) for _ in range(2))
        if random.random() < 0.4:
            low, high = np.zeros(len(at) - 1, np.int64), np.full(len(at) - 1, size)
        found.append(live_range(f"b{number}", at, low, high, size, align if random.random() < 0.5 else 1))
    return found


def living(each: LiveRange, moment: int) -> range:
    k = int(np.searchsorted(each.at, moment, "right")) - 1
    alive = each.at[0] <= moment < each.at[-1]
    return range(int(each.low[k]), int(each.high[k])) if alive else range(0)


@given(st.integers(0, 2**30))
@settings(deadline=None, max_examples=250)
def test_gaps_and_the_most_that_is_alive(seed: int) -> None:
    """Beside sums and distances moment by moment."""
    random = np.random.default_rng(seed)
    live_ranges = drawn_live_ranges(random, 5, 1)
    said = gaps(live_ranges)
    for a in live_ranges:
        for b in live_ranges:
            both = [(living(a, m), living(b, m)) for m in range(12)]
            together = [x.stop - y.start for x, y in both if x and y]
            coarse = a.at[0] < b.at[-1] and b.at[0] < a.at[-1]
            if a is not b and coarse:
                between = said.get((a.name, b.name), a.bytes)
                assert between == max(together) if together else between <= -max(a.bytes, b.bytes)
    assert most_alive(live_ranges) == max(
        (sum(len(living(e, m)) for e in live_ranges) for m in range(12)), default=0
    )
    # Of whole buffers it is what the search for offsets counts itself.
    steady = [e for e in drawn_live_ranges(random, 5, 4) if e.steady]
    buffers = [Buffer(e.name, e.bytes, int(e.at[0]), int(e.at[-1]) - 1, e.align) for e in steady]
    assert most_alive(steady) == lower_bound(buffers)


def test_an_access_order_has_to_fit_its_tensors() -> None:
    b = Builder()
    graph = b.graph(b.mix(b.input(8), shape=(6,)))
    for wrong in (rows([5], [0]), rows([6], [9])):
        with pytest.raises(InternalError, match="does not fit its tensors"):
            access_schedule(graph.nodes[0], lambda _node, _index: wrong)  # noqa: B023


def test_chains_of_drawn_layers() -> None:
    """Longer and larger than the graphs of whole plans: what drifts, and what is used again later."""
    smaller = 0
    for seed in range(150):
        random = np.random.default_rng(seed)
        b = Builder()
        known = [b.input(int(random.integers(1, 60)))]
        for _ in range(int(random.integers(2, 9))):
            inputs = [
                known[-1],
                *(known[int(random.integers(len(known)))] for _ in range(random.integers(3) // 2)),
            ]
            known.append(b.mix(*inputs, shape=(int(random.integers(1, 60)),)))
        graph = b.graph(known[-1])
        access_order, _ = drawn_access_orders(seed)
        scratch = int(random.integers(0, 2)) * 7
        plan = planned(graph, access_order, scratch=scratch)
        silent = plan_memory(graph, op_of, dict.fromkeys(graph.nodes, scratch), align=1)
        assert plan.arena_bytes <= silent.arena_bytes
        smaller += plan.arena_bytes < silent.arena_bytes
    assert smaller > 60


def test_two_places_for_what_could_be_in_place() -> None:
    """As at the beginning of a MobileNet: the wide tensor begins well before what it is made of. If that is in place,
    what its place is made of begins behind it, and stands out above the wide one."""
    b = Builder()
    first = b.input(290)
    third = b.pointwise(b.mix(first, shape=(200,)))
    wide = b.mix(third, shape=(400,))
    graph = b.graph(b.mix(wide, shape=(100,)))
    plan = planned(graph, lambda node, index: None if node.op == "pointwise" else evenly(node, index))
    assert not plan.overwrites
    assert (plan.arena_bytes, plan.lower_bound, plan.optimal) == (402, 401, True)
