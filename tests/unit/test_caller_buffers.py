# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs in the caller's buffers: what the arena has less of, and what the check of a plan finds. That
plans are right is drawn in test_memory_storage.py and test_memory_states.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tinyet
from tests import small
from tests.unit.test_memory_storage import Builder, op_of
from tinyet.accounts.buffers import copies_noted
from tinyet.boards import load_board
from tinyet.deployment import deploy
from tinyet.errors import InternalError, UsageError
from tinyet.ir import Graph
from tinyet.memory import MemoryPlan, check_plan, plan_memory
from tinyet.memory.accesses import Access, Copy, Region, Span
from tinyet.memory.check import check_accesses
from tinyet.ops.copy import Copy as CopyOp
from tinyet.planning.objective import Objective

CALLER = Objective(buffers="caller")
TARGET = load_board("mps2_an386").target


def planned(graph: Graph, *, callers: bool = True) -> MemoryPlan:
    return plan_memory(graph, op_of, {}, callers=callers)


def test_a_chain_works_in_the_output_and_leaves_the_input() -> None:
    b = Builder()
    x = b.input(100)
    first = b.pointwise(x)
    y = b.pointwise(first)
    graph = b.graph(y)
    assert planned(graph, callers=False).arena_bytes == 100
    plan = planned(graph)
    assert plan.arena_bytes == 0
    assert plan.offset(first) == plan.offset(y) != plan.offset(x)
    assert plan.overwrites.keys() == {graph.nodes[1]}


def test_the_arena_has_what_lies_between() -> None:
    b = Builder()
    x = b.input(100)
    middle = b.mix(x, shape=(60,))
    graph = b.graph(b.mix(middle, shape=(80,)))
    assert planned(graph, callers=False).arena_bytes == 160
    plan = planned(graph)
    assert (plan.arena_bytes, plan.lower_bound, max(plan.alive)) == (60, 60, 60)


def test_views_of_an_input_are_read_where_they_lie_and_those_of_an_output_are_copied() -> None:
    b = Builder()
    x = b.input(8, 4)
    part = b.reshape(b.slice(x, 2, 4), 8)
    y, same = b.mix(part, shape=(8,)), b.reshape(x, 32)
    plan = planned(b.graph(y, same))
    assert plan.offset(part) == plan.offset(x) + 8
    assert [node.outputs[0] for node in plan.calls] == [y, same]


def test_the_check_knows_each_piece_of_memory() -> None:
    arena, given, taken = Region("the arena", 0, 8), Region("x", 16, 8, True), Region("y", 32, 8)
    x, a, y = Span("x", 16, 8, 4), Span("a", 0, 8, 4), Span("y", 32, 8, 4)

    def check(steps: Sequence[Access | Copy]) -> None:
        check_accesses(steps, 40, [x], [x], (), [arena, given, taken])

    check([Access("first", (x,), (a,)), Access("last", (a,), (y,))])
    wrong: dict[str, list[Access | Copy]] = {
        "writes a to x, which is only read": [Access("first", (), (replace(a, offset=16),))],
        "a at 4 to 12 is not within the arena": [Access("first", (x,), (replace(a, offset=4),))],
        "y at 28 to 36 is not within y": [Access("first", (x,), (replace(y, offset=28),))],
        "scratch at 8 to 12 is not within any memory": [Access("first", (x,), (a,), (8, 4, 4))],
        "writes scratch to x": [Access("first", (x,), (a,), (16, 4, 4))],
        "writes moved bytes to x": [Access("first", (x,), (a,)), Copy("move", 20, 16, 4)],
    }
    for message, steps in wrong.items():
        with pytest.raises(InternalError, match=message):
            check(steps)


def test_the_check_asks_that_each_fills_a_buffer_of_its_own() -> None:
    b = Builder()
    graph = b.graph(b.mix(b.input(8), shape=(8,)), b.mix(b.inputs[0], shape=(8,)))
    plan = planned(graph)

    def broken(message: str, broken: MemoryPlan) -> None:
        with pytest.raises(InternalError, match=message):
            check_plan(graph, broken, op_of, {}, align=4, scratch_align=8)

    number = plan.storage[graph.outputs[0]].block
    blocks = list(plan.blocks)
    blocks[number] = replace(blocks[number], offset=0)
    broken("does not fill a buffer", replace(plan, blocks=tuple(blocks), arena_bytes=8))
    blocks[number] = replace(blocks[number], offset=plan.offset(graph.outputs[1]) + 4)
    broken("not each apart", replace(plan, blocks=tuple(blocks)))


def test_ends_that_have_no_buffer_of_their_own_are_all_named() -> None:
    b = Builder()
    x = b.input(8)
    y = b.node(CopyOp(), [x], (8,))[0]
    with pytest.raises(UsageError) as raised:
        deploy(b.graph(y, x, y), TARGET, objective=CALLER)
    assert "output 1 is input 0" in str(raised.value)
    assert "output 2 is output 0" in str(raised.value)


def test_a_copy_is_noted() -> None:
    inner = small.graph(size=8)
    flat = next(node for node in inner.nodes if node.op == "reshape").outputs[0]
    found = deploy(inner.replace(outputs=(*inner.outputs, flat)), TARGET, objective=CALLER)
    assert not copies_noted(found)  # the pool writes it there
    pool = next(node for node in inner.nodes if node.op == "max_pool2d").outputs[0]
    found = deploy(inner.replace(outputs=(*inner.outputs, flat, pool)), TARGET, objective=CALLER)
    (note,) = copies_noted(found)
    assert "reshape copies 64 bytes, because " in note


def test_what_does_not_go_with_it(tmp_path: Path) -> None:
    program = small.program(size=12)
    for message, options in {
        "cannot lie in 'heap'": {"buffers": "heap"},
        "row by row leaves it with its caller": {"buffers": "caller", "input_rows": True},
        "ask the model for its inputs": {"buffers": "caller", "tflm_header": True},
    }.items():
        with pytest.raises(UsageError, match=message):
            tinyet.generate(program, "mps2_an386", tmp_path / "p", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "p").exists()


def test_reports_tell_of_them() -> None:
    found = tinyet.analyze(small.program(size=12), "mps2_an386", buffers="caller")
    assert [(b.kind, b.index, b.bytes, b.align) for b in found.buffers] == [
        ("input", 0, 432, 4),
        ("output", 0, 5, 4),
    ]
    names = {block.name for block in found.arena if block.kind == "value"}
    assert names
    assert not names & {b.name for b in found.buffers}
    assert found.arena_bytes < tinyet.analyze(small.program(size=12), "mps2_an386").arena_bytes
    assert np.array([c.bytes for c in found.peak]).sum() == found.arena_bytes
