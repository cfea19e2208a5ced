# SPDX-License-Identifier: Apache-2.0
"""States in the arena: a place of their own from run to run, whatever else is planned around them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.test_memory_storage import Builder, anyone, drawn_access_orders, execute, graphs, op_of
from tinyet.errors import InternalError, UsageError
from tinyet.ir import DType, Graph, Node, Tensor, TensorType, constant
from tinyet.memory import MemoryPlan, check_plan, plan_memory
from tinyet.memory.caller_buffers import check_ends
from tinyet.memory.plan import MARK, MARK_BYTES
from tinyet.ops.copy import Copy
from tinyet.ops.state_write import OP as STATE_WRITE
from tinyet.ops.state_write import StateWrite
from tinyet.opset import AccessOrder
from tinyet.passes.states import write_states


def stateful(graph: Graph, states: dict[Tensor, Tensor]) -> Graph:
    """The graph with some of its inputs as states: value → what it is in the next run."""
    given = tuple(t for t in graph.inputs if t not in states)
    initial = tuple(constant(f"{t.name}_first", np.zeros(t.shape, np.int8)) for t in states)
    return write_states(
        graph.replace(inputs=(*given, *states), outputs=(*graph.outputs, *states.values()), initial=initial),
        op_of,
    )


def can_have_buffers(graph: Graph) -> bool:
    try:
        check_ends(graph)
    except UsageError:
        return False
    return True


def kept(node: Node, index: int) -> AccessOrder | None:
    """What the kernel of a StateWrite says."""
    assert STATE_WRITE.kernels[0].access_order is not None
    return STATE_WRITE.kernels[0].access_order(node, index)


def planned(graph: Graph) -> MemoryPlan:
    return plan_memory(
        graph, op_of, {}, access_order=lambda n, i: kept(n, i) if isinstance(n.attrs, StateWrite) else None
    )


@given(graphs(), st.data(), st.sampled_from([1, 4]), st.integers(0, 2**30), st.booleans())
@settings(deadline=None, max_examples=300)
def test_every_plan_computes_its_graph(
    drawn: tuple[Graph, dict[Node, int]], data: st.DataObject, align: int, seed: int, callers: bool
) -> None:
    """With states that are rings, delays, each other, computed, or left alone; nothing of them lies where anything else
    is between two runs."""
    graph, scratch = drawn
    tensors = [*graph.inputs, *(t for n in graph.nodes for t in n.outputs)]
    chosen = data.draw(st.lists(st.sampled_from(graph.inputs), unique=True, min_size=1))
    states = {
        t: data.draw(st.sampled_from([other for other in tensors if other.shape == t.shape])) for t in chosen
    }
    graph = stateful(graph, states)
    access_order, replaces = drawn_access_orders(seed)

    def said(node: Node, index: int) -> AccessOrder | None:
        return kept(node, index) if isinstance(node.attrs, StateWrite) else access_order(node, index)

    def exactly(node: Node, index: int) -> bool:
        return not isinstance(node.attrs, StateWrite) and replaces(node, index)

    plan = plan_memory(
        graph,
        op_of,
        scratch,
        align=align,
        may_stride=anyone,
        access_order=said,
        replaces=exactly,
        search_budget=2000,
        callers=callers and can_have_buffers(graph),
    )
    execute(graph, plan, scratch, said)
    for state in graph.states:
        block = plan.blocks[plan.storage[state.value].block]
        assert (block.lifetime.first, block.lifetime.last) == (-1, len(plan.calls))
    (mark,) = (block for block in plan.blocks if block.name == MARK)
    assert (mark.offset, mark.bytes, mark.offset % 4) == (plan.mark, MARK_BYTES, 0)
    assert (mark.lifetime.first, mark.lifetime.last) == (-1, len(plan.calls))


def ring(frames: int) -> tuple[Graph, Tensor]:
    """A window that slides by one frame of four values."""
    b = Builder()
    state, new = b.input(frames, 4), b.input(1, 4)
    window = b.concat(state, new)
    moved, result = b.slice(window, 1, frames + 1), b.mix(window, shape=(1, 4))
    return stateful(b.graph(result), {state: moved}), window


def test_a_ring_is_moved_once() -> None:
    """The new frame is written behind the old ones; all that a run does for the ring is to move it down."""
    graph, window = ring(6)
    plan = planned(graph)
    assert [node.op for node in plan.calls] == ["mix", "state_write"]
    (state,) = graph.states
    assert plan.offset(window) == plan.offset(state.value) == plan.offset(state.next)
    assert plan.offset(graph.inputs[0]) == plan.offset(window) + 6 * 4
    assert plan.arena_bytes == 7 * 4 + 4 + MARK_BYTES


def test_states_that_change_places() -> None:
    """Each is copied before the other is written over it."""
    b = Builder()
    one, other = b.input(2, 4), b.input(2, 4)
    view, result = b.reshape(one, 2, 4), b.pointwise(one, other)
    graph = stateful(b.graph(result), {one: other, other: view})
    plan = planned(graph)
    assert [node.op for node in plan.calls].count("copy") == 2
    execute(graph, plan, {}, lambda n, i: kept(n, i) if isinstance(n.attrs, StateWrite) else None)


def test_a_state_is_read_before_it_is_written() -> None:
    """Whatever order needs the least memory: the large result is wanted late, and reads the state."""
    b = Builder()
    state, x = b.input(2, 4), b.input(2, 4)
    small = b.mix(x, shape=(2, 4))
    late = b.mix(b.mix(small, shape=(1, 4)), state, shape=(16, 4))
    following = b.pointwise(x)
    graph = stateful(b.graph(late), {state: following})
    plan = planned(graph)
    assert plan.calls[-1].op == "state_write"


def test_the_check_wants_a_state_in_one_place() -> None:
    graph, _ = ring(3)
    plan = planned(graph)
    (state,) = graph.states
    storage = dict(plan.storage)
    storage[state.next] = replace(storage[state.next], offset=storage[state.next].offset + 4)
    with pytest.raises(InternalError, match="written where nobody reads"):
        check_plan(graph, replace(plan, storage=storage), op_of, {}, align=4, scratch_align=8)


def test_the_check_wants_what_is_kept_to_be_there() -> None:
    """The order in which the ring is moved before the window is read is found to be wrong."""
    graph, _ = ring(3)
    plan = planned(graph)
    first, last = plan.calls
    order = [node for node in plan.order if node not in plan.calls]
    with pytest.raises(InternalError, match="which holds byte"):
        check_plan(
            graph,
            replace(plan, calls=(last, first), order=(*order, last, first)),
            op_of,
            {},
            align=4,
            scratch_align=8,
            access_order=lambda n, i: kept(n, i) if isinstance(n.attrs, StateWrite) else None,
        )


def test_the_check_wants_the_word_of_the_states_to_itself() -> None:
    """It is neither among the frames that a call writes, nor away, nor there without states."""
    graph, window = ring(3)
    plan = planned(graph)
    assert plan.mark is not None
    wrong = {
        plan.offset(window) + 3 * 4: "overlap",
        plan.arena_bytes - 2: "leaves the arena",
        None: "no word for them",
    }
    for offset, complaint in wrong.items():
        with pytest.raises(InternalError, match=complaint):
            check_plan(graph, replace(plan, mark=offset), op_of, {}, align=4, scratch_align=8)
    b = Builder()
    plain = b.graph(b.mix(b.input(2, 4), shape=(2, 4)))
    without = planned(plain)
    assert without.mark is None
    assert MARK not in {block.name for block in without.blocks}
    with pytest.raises(InternalError, match="no states"):
        check_plan(plain, replace(without, mark=0), op_of, {}, align=4, scratch_align=8)


def test_names_that_are_taken() -> None:
    """A model may call a value as a kept state would be called."""
    type_ = TensorType((2,), DType.FLOAT32)
    x, y = Tensor("x", type_), Tensor("x_next", type_)
    first = constant("first", np.zeros(2, np.float32))
    found = write_states(Graph("g", (x,), (y,), (Node(Copy(), (x,), (y,)),), (first,)))
    names = [t.name for node in found.nodes for t in node.outputs]
    assert len(names) == len(set(names)) == 2
