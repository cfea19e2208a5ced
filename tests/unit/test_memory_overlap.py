# SPDX-License-Identifier: Apache-2.0
"""Outputs that lie partly over the inputs that die in their call, by what kernels say of the order of their work."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.test_memory_storage import Builder, Mix, execute, op_of
from tinyet.errors import InternalError
from tinyet.ir import Graph, Node, Shape, Tensor
from tinyet.memory import MemoryPlan, check_plan, plan_memory
from tinyet.memory.check import Access, Span, check_accesses
from tinyet.memory.extents import Extent, extent, gap, gaps, most_alive
from tinyet.memory.sweeping import no_sweep
from tinyet.opset import Op, Sweep, Sweeps


def rows(written: Sequence[int], needed: Sequence[int]) -> Sweep:
    return Sweep(np.array(written), np.array(needed))


def evenly(node: Node, index: int) -> Sweep:
    """Byte by byte of what is smaller, the other in proportion."""
    size, out = node.input(index).type.bytes, node.output.type.bytes
    step = np.arange(1, min(size, out) + 1)
    return Sweep(step * out // len(step), (step - 1) * size // len(step))


def planned(graph: Graph, sweep: Sweeps = evenly, align: int = 1, **scratch: int) -> MemoryPlan:
    """A plan, executed."""
    needs = {node: scratch.get(node.output.name, 0) for node in graph.nodes}
    plan = plan_memory(graph, op_of, needs, sweep=sweep, align=align)
    execute(graph, plan, needs, sweep)
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
    def at_the_end(node: Node, index: int) -> Sweep:
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
    y = b.mix(b.input(100), shape=(60,))
    assert planned(b.graph(y), **{y.name: 16}).arena_bytes in range(101 + 16, 101 + 16 + 8)


def test_what_is_used_later_or_by_another_index_is_not_written_over() -> None:
    b = Builder()
    x = b.input(100)
    y = b.mix(x, shape=(60,))
    assert planned(b.graph(b.mix(x, y, shape=(4,)))).arena_bytes == 160
    twice = Builder()
    x = twice.input(100)
    graph = twice.graph(twice.mix(x, x, shape=(60,)))
    assert planned(graph).arena_bytes == 101

    def of_the_first(node: Node, index: int) -> Sweep | None:
        return evenly(node, index) if index == 0 else None

    assert planned(graph, of_the_first).arena_bytes == 160
