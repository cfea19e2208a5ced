# SPDX-License-Identifier: Apache-2.0
"""What is worked out of a node is worked out once, and forgotten with the node."""

from __future__ import annotations

import gc
import inspect
import pickle
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.delegates.test_front import M4, Net
from tests.delegates.test_winograd import layer
from tests.ops import drawing
from tinyet.boards.cpus import HOST
from tinyet.delegates.cortex_m.groups_mve import of_one_group
from tinyet.deployment import deploy
from tinyet.ir import Graph, Node, QuantParams, Tensor, TensorType, constant
from tinyet.ir.kept import Kept
from tinyet.ir.memoize import memoize, memoize_by_weights
from tinyet.ir.types import DType
from tinyet.memory import MemoryPlan
from tinyet.numerics import NO_CLAMP
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.linear import Linear
from tinyet.ops.reshape import Reshape
from tinyet.ops.shared.clamped import clamp_of
from tinyet.opset import LayoutSupport, cost
from tinyet.planning import fusion, layouts
from tinyet.planning.candidates import Chosen, candidates_of
from tinyet.planning.kernel_selection import select_kernels
from tinyet.planning.layouts import AccessOrderCache, plan_cache_of
from tinyet.planning.objective import OPTIMIZE, Objective


@pytest.mark.usefixtures("young")
def test_once_for_each_node_and_argument() -> None:
    asked = []

    @memoize
    def named(node: Node, suffix: str = "") -> str:
        asked.append(suffix)
        return node.output.name + suffix

    def made(name: str) -> Node:
        tensors = [Tensor(n, TensorType((2,), DType.FLOAT32)) for n in ("x", name)]
        return Node(Reshape((2,)), (tensors[0],), (tensors[1],))

    one, other = made("one"), made("other")
    assert [named(one), named(one), named(other)] == ["one", "one", "other"]
    assert [named(one, "s"), named(one, suffix="t"), named(one, suffix="t")] == ["ones", "onet", "onet"]
    assert asked == ["", "", "s", "t"]
    gone = weakref.ref(one)
    del one
    gc.collect(0)
    assert gone() is None


@pytest.mark.usefixtures("young")
@pytest.mark.parametrize("groups", [1, 3])
def test_a_convolution_of_one_group_is_forgotten(groups: int) -> None:
    """Also where what it is for Helium is the layer itself."""
    found = layer(np.ones((6, 1, 1, 6), np.int64), np.zeros(6, np.int64))
    weights = constant("w", np.ones((6, 1, 1, 6 // groups), np.int8), QuantParams.per_tensor(1.0, 0))
    inputs = found.input(0), weights, found.input(2)
    node = drawing.node_of(Conv2d(groups=groups, clamp=NO_CLAMP), inputs, found.output.type.quant)
    assert of_one_group(node).input(1).shape == (6, 1, 1, 6)
    gone = weakref.ref(node)
    del node
    gc.collect(0)
    assert gone() is None


def test_layers_of_the_same_weights_share_whatever_their_image() -> None:
    asked = []

    @memoize_by_weights
    def total(node: Node, times: int = 1) -> int:
        asked.append(node)
        return times * int(node.input(1).array.sum())

    def layer(size: int, weights: tuple[int, ...] = (1, 2), scale: float = 0.5, clamp: float = 6.0) -> Node:
        quant = QuantParams((scale,), (0,))
        x, y = (Tensor(n, TensorType((1, size, 2), DType.INT8, quant)) for n in "xy")
        return Node(Linear((0.0, clamp)), (x, constant("w", np.array([weights], np.int8), quant), None), (y,))

    first = layer(4)
    assert [total(each) for each in (first, layer(5), first, layer(4))] == [3, 3, 3, 3]
    assert asked == [first]
    others = [layer(4, (2, 2)), layer(4, scale=0.25), layer(4, clamp=5.0)]
    assert [*map(total, others), total(first, 2), total(first, times=3)] == [4, 3, 3, 6, 9]
    assert asked == [first, *others, first, first]
    # Of layers with many weights only the last are kept.
    large = [layer(4, tuple(range(first, first + 100)) * 4000) for first in (-100, -50, 0)]
    small = len(asked)
    assert [total(each) for each in (*large, layer(4), layer(5))] == [-20200000, -200000, 19800000, 3, 3]
    assert len(asked) == small + 4


def of_weights() -> list[Callable[..., object]]:
    """All functions that layers of the same weights share, without what is kept."""
    found = []
    for module in list(sys.modules.values()):
        if module.__name__.startswith("tinyet."):
            for value in vars(module).values():
                own = inspect.isfunction(value) and value.__module__ == module.__name__
                shared = getattr(getattr(value, "__wrapped__", None), "__wrapped__", None)
                if own and shared is not None:
                    found.append(shared)
    return found


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("size", [1, 3])
def test_what_layers_of_the_same_weights_share_says_nothing_of_images(groups: int, size: int) -> None:
    """Two images of one layer, one wide and one high, some of them smaller than windows."""
    rng = np.random.default_rng(0)
    weights = rng.integers(-40, 41, (3, size, size, 3 // groups))
    first = layer(weights, rng.integers(-900, 900, 3), relu=True, scale=0.004)
    assert isinstance(first.attrs, Conv2d)
    attrs = replace(first.attrs, groups=groups, pad_top=size // 2, pad_left=size // 2)

    def over(height: int, width: int) -> Node:
        x = Tensor("x", replace(first.input(0).type, shape=(1, height, width, 3)))
        return drawing.node_of(attrs, [x, *first.inputs[1:]], first.output.type.quant)

    def found(function: Callable[..., object], node: Node) -> object:
        given = {"clamp": clamp_of(node), "with_direct": True}
        asked = {name: given[name] for name in inspect.signature(function).parameters if name in given}
        try:
            return pickle.dumps(function(node, **asked))
        except (AssertionError, TypeError, ValueError) as error:
            return type(error)

    functions = of_weights()
    assert len(functions) > 20
    for function in functions:
        results = {found(function, over(*image)) for image in ((4, 9), (9, 4), (3, 8), (40, 40))}
        assert len(results) == 1, f"{function.__module__}.{function.__name__}"


@pytest.mark.usefixtures("young")
def test_plans_of_one_graph_share_calls_and_costs() -> None:
    """Whatever aim they are made for. All are forgotten with the graph."""
    program = Net(0).program()
    graph = program.graph
    one, other = (
        deploy(graph, M4.target, objective=Objective(aim)).decision.candidates for aim in OPTIMIZE[:2]
    )
    for node in graph.nodes:
        pairs = list(zip(one[node], other[node], strict=True))
        assert all(a.call is b.call and a.cost is b.cost for a, b in pairs)
    gone = [weakref.ref(node) for node in graph.nodes]
    del program, graph, one, other, node, pairs
    gc.collect(0)
    assert not any(node() for node in gone)


@pytest.mark.usefixtures("young")
def test_plans_of_one_graph_share_fused_layers_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever aim and target they are made for, and they are those of a graph that was never planned. All are
    forgotten with the graph."""
    made: list[str] = []

    def counted(module: ModuleType, name: str) -> None:
        function = getattr(module, name)

        def count(*args: Any, **kwargs: Any) -> Any:
            made.append(name)
            return function(*args, **kwargs)

        monkeypatch.setattr(module, name, count)

    def planned(graph: Graph, aim: Objective) -> tuple[object, ...]:
        found = deploy(graph, M4.target, objective=aim)
        plan, tiled = found.plan, [node.output.name for f in found.plan.fusion_groups for node in f.nodes]
        return plan.arena_bytes, tiled, plan.alive, [b.offset for b in plan.blocks], found.decision.figures

    counted(fusion, "fused")
    counted(layouts, "plan_memory")
    graph = Net(2).program().graph
    small, fast = Objective("size", ram=1), Objective("speed", ram=4000)
    first, after = planned(graph, small), made.copy()
    assert {*after} == {"fused", "plan_memory"}
    assert first[1], "no layers are fused: the example shows nothing"
    assert planned(graph, small) == first
    assert made.count("fused") == after.count("fused")
    made.clear()
    again = planned(graph, fast)
    shared = len(made)
    made.clear()
    assert planned(Net(2).program().graph, fast) == again
    assert shared < len(made)
    gone = weakref.ref(graph)
    del graph
    gc.collect(0)
    assert gone() is None


def test_candidates_share_a_plan_of_memory_only_if_they_need_the_same() -> None:
    graph = Net(0).program().graph
    found = candidates_of(select_kernels(graph, M4.target), M4.target)
    chosen = {node: each[0] for node, each in found.items()}
    orders, cache = AccessOrderCache(), plan_cache_of(graph)

    def plan(some: Chosen, *, first: bool = True, in_order: bool = True, callers: bool = False) -> MemoryPlan:
        return cache.planned(graph, some, orders, (), first=first, in_order=in_order, callers=callers)

    def but(node: Node, *, scratch: int = 0, **promises: Any) -> Chosen:
        old = chosen[node]
        call = replace(old.call, scratch_bytes=old.call.scratch_bytes + scratch)
        choice = replace(old.choice, kernel=replace(old.choice.kernel, **promises))
        return chosen | {node: replace(old, call=call, choice=choice)}

    node = graph.nodes[0]
    support = LayoutSupport(lambda node, *_: chosen[node].call, lambda *_: False)
    others = (
        but(node, scratch=64),
        but(node, access_order=lambda *_: None),
        but(node, replaces=lambda *_: False),
        but(node, always_called=True),
        but(node, layout_support=support),
    )
    plain = plan(chosen)
    assert plan(but(node, symbol="other")) is plain
    plans = [
        *map(plan, others),
        plan(chosen, first=False),
        plan(chosen, in_order=False),
        plan(chosen, callers=True),
    ]
    assert len({*map(id, (plain, *plans))}) == len(plans) + 1


def test_what_was_asked_for_last_is_kept() -> None:
    made: list[str] = []
    kept = Kept[str](5, len)

    def make(word: str) -> str:
        made.append(word)
        return word

    def get(word: str) -> str:
        return kept.get(word[0], lambda: make(word))

    assert [get(word) for word in ("aa", "bb", "a", "c", "dd")] == ["aa", "bb", "aa", "c", "dd"]
    assert made == ["aa", "bb", "c", "dd"]  # that made "bb" go
    assert [get(word) for word in ("aa", "c", "dd", "bb", *["long word"] * 2, "dd")][:4] == [
        "aa",
        "c",
        "dd",
        "bb",
    ]
    # The last one stays, however heavy it is.
    assert made[4:] == ["bb", "long word", "dd"]


def test_costs_of_other_rates_are_asked_for_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who changes a core's rates gets plans by the new ones, of a graph that was planned before, too."""
    graph = Net(0).program().graph
    before = deploy(graph, M4.target).decision.figures.time
    rates = cost.measured(cost.core_of(M4.target))
    assert rates is not None
    by_instructions = replace(rates, cores=frozenset())
    monkeypatch.setattr(cost, "measured", lambda _core: by_instructions)
    assert deploy(graph, M4.target).decision.figures.time != before


def test_kernels_for_all_sizes_make_their_calls_anew() -> None:
    """They hold the graph at each size, which would never go."""
    node = layer(np.ones((6, 1, 1, 6), np.int64), np.zeros(6, np.int64))
    selection = select_kernels(Graph("one", (node.input(0),), (node.output,), (node,)), HOST)
    own = replace(selection.candidates[node][0].kernel)
    choice = replace(selection.candidates[node][0], kernel=own)
    made = replace(selection, candidates={node: (choice,)})
    one, other = (candidates_of(made, HOST)[node][0].call for _ in range(2))
    assert one is not other
    kept, again = (candidates_of(selection, HOST)[node][0].call for _ in range(2))
    assert kept is again
