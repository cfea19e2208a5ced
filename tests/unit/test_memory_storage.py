# SPDX-License-Identifier: Apache-2.0
"""Plans of whole graphs: executed in one arena with hostile kernels, they compute what the graph means."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyet.delegates.cortex_m.int16x2 import NHW2C2
from tinyet.errors import InternalError
from tinyet.ir import Array, Attrs, DType, Graph, Node, Shape, Tensor, TensorType, constant
from tinyet.memory import MemoryPlan, Storage, check_plan, plan_memory
from tinyet.memory.timeline import no_access_order
from tinyet.ops import op_of as product_op
from tinyet.ops.concat import Concat
from tinyet.ops.copy import Copy
from tinyet.ops.reshape import Reshape
from tinyet.ops.slice import Slice
from tinyet.opset import AccessOrder, AccessOrders, Op


@dataclass(frozen=True)
class Pointwise(Attrs):
    """Element by element over inputs of one shape; may work in place."""

    name: ClassVar[str] = "pointwise"


@dataclass(frozen=True)
class Mix(Attrs):
    """Every output element depends on every input element; never in place."""

    name: ClassVar[str] = "mix"
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Clamp(Attrs):
    """The identity on most values: looks like a move, but is none."""

    name: ClassVar[str] = "clamp"


def no_shapes(_node: Node) -> tuple[Shape, ...]:
    raise AssertionError("memory planning takes shapes from the types")


def pointwise(_node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    total = sum(x.astype(np.int64) * (3 + 2 * i) for i, x in enumerate(inputs) if x is not None)
    return (np.asarray(total + 1).astype(np.int8),)


def mix(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    assert isinstance(node.attrs, Mix)
    seed = 1
    for x in inputs:
        assert x is not None
        for value in x.ravel().tolist():
            seed = (seed * 31 + int(value) + 128) % 65_521
    return tuple(
        ((np.arange(math.prod(s)) * 7 + seed * (i + 1)) % 256 - 128).astype(np.int8).reshape(s)
        for i, s in enumerate(node.attrs.shapes)
    )


def clamp(_node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    assert inputs[0] is not None
    return (np.minimum(inputs[0], 126),)


FAKES: dict[type[Attrs], Op] = {
    Pointwise: Op(Pointwise, "", no_shapes, pointwise, (), inplace=(0, 1)),
    Mix: Op(Mix, "", no_shapes, mix, ()),
    Clamp: Op(Clamp, "", no_shapes, clamp, (), same_scale=True),
}


def op_of(node: Node) -> Op:
    fake = FAKES.get(type(node.attrs))
    return fake if fake is not None else product_op(node)


class Builder:
    """Names and types for graphs of int8 tensors."""

    def __init__(self) -> None:
        self.inputs: list[Tensor] = []
        self.nodes: list[Node] = []

    def tensor(self, prefix: str, shape: Shape) -> Tensor:
        return Tensor(f"{prefix}{len(self.nodes)}_{len(self.inputs)}", TensorType(shape, DType.INT8))

    def input(self, *shape: int) -> Tensor:
        self.inputs.append(self.tensor("in", shape))
        return self.inputs[-1]

    def node(self, attrs: Attrs, inputs: Sequence[Tensor], *shapes: Shape) -> tuple[Tensor, ...]:
        outputs = tuple(
            dataclasses.replace(t, name=f"{t.name}_{i}")
            for i, t in enumerate(self.tensor(attrs.name, s) for s in shapes)
        )
        self.nodes.append(Node(attrs, tuple(inputs), outputs))
        return outputs

    def mix(self, *inputs: Tensor, shape: Shape) -> Tensor:
        return self.node(Mix((shape,)), inputs, shape)[0]

    def pointwise(self, *inputs: Tensor) -> Tensor:
        return self.node(Pointwise(), inputs, inputs[0].shape)[0]

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        return self.node(Reshape(shape), [x], shape)[0]

    def slice(self, x: Tensor, start: int, stop: int, axis: int = 0) -> Tensor:
        shape = (*x.shape[:axis], stop - start, *x.shape[axis + 1 :])
        return self.node(Slice(axis, start, stop), [x], shape)[0]

    def concat(self, *inputs: Tensor, axis: int = 0) -> Tensor:
        first = inputs[0].shape
        shape = (*first[:axis], sum(t.shape[axis] for t in inputs), *first[axis + 1 :])
        return self.node(Concat(axis), inputs, shape)[0]

    def graph(self, *outputs: Tensor) -> Graph:
        return Graph("test", tuple(self.inputs), outputs, tuple(self.nodes))


def plan_of(graph: Graph, **options: Any) -> MemoryPlan:
    return plan_memory(graph, op_of, {}, **options)


def execute(
    graph: Graph, plan: MemoryPlan, scratch: dict[Node, int], access_order: AccessOrders = no_access_order
) -> None:
    """Run the plan in one arena; each kernel ruins its outputs and its scratch memory before it reads,
    unless the plan says that it works in place, or the kernel reads and writes step by step. Then all that is not alive
    is ruined. Compare all outputs with the graph's meaning."""
    random = np.random.default_rng(5)
    values: dict[Tensor, Array] = {t: random.integers(-128, 128, t.shape, np.int8) for t in graph.inputs}
    arena = random.integers(-128, 128, plan.end, np.int8)
    constant = [t for t in graph.user_inputs if plan.is_callers(t)]

    def lying(tensor: Tensor, memory: Array) -> Array:
        start, pixel_stride = plan.offset(tensor), plan.pixel_stride(tensor)
        if not pixel_stride:
            return memory[start : start + tensor.type.bytes].reshape(tensor.shape)
        steps = [
            pixel_stride * math.prod(tensor.shape[axis + 1 : -1]) for axis in range(len(tensor.shape) - 1)
        ]
        return np.lib.stride_tricks.as_strided(memory[start:], tensor.shape, (*steps, 1))

    def view(tensor: Tensor) -> Array:
        start, found = plan.offset(tensor), lying(tensor, arena)
        extent = arena[start : start + plan.extent(tensor)].tobytes()
        assert plan.dense(tensor, extent) == found.tobytes()
        return found

    def places(tensor: Tensor) -> Array:
        """Where in the arena each value is as a pair of pixels, as bytes of an int16: its lower one."""
        channels = tensor.shape[-1]
        pixel, c = np.indices((tensor.type.count // channels, channels))
        word = pixel // 2 * channels + (c // 4 * 2 + c % 2) * 2 + pixel % 2
        return np.asarray(plan.offset(tensor) + 4 * word + 2 * (c // 2 % 2)).reshape(tensor.shape)

    def put(tensor: Tensor, values: Array | int) -> None:
        if plan.data_layout(tensor):
            at = places(tensor)
            arena[at] = values
            arena[at + 1] = np.where(np.asarray(values) < 0, -1, 0)
        else:
            view(tensor)[...] = values

    def got(tensor: Tensor) -> Array:
        if not plan.data_layout(tensor):
            return view(tensor).copy()
        at = places(tensor)
        start = plan.offset(tensor)
        extent = arena[start : start + plan.extent(tensor)].tobytes()
        assert plan.dense(tensor, extent) == arena[at].tobytes()
        assert (arena[at + 1] == np.where(arena[at] < 0, -1, 0)).all()
        return np.asarray(arena[at])

    def run(node: Node) -> dict[int, Array | None]:
        """What a kernel reads, of the inputs that it reads step by step."""
        variables = {i: t for i, t in enumerate(node.inputs) if t is not None and not t.is_constant}
        if any(plan.pixel_stride(t) or plan.data_layout(t) for t in (*variables.values(), *node.outputs)):
            return {}
        found: dict[int, Array | None] = {}
        for index, tensor in variables.items():
            said = access_order(node, index)
            if said is None:
                continue
            before, read, at = arena.copy(), view(tensor).copy(), plan.offset(node.output)
            for written, needed in zip(said.written, said.needed, strict=True):
                arena[at : at + written] = 99
                read.ravel()[needed:] = view(tensor).ravel()[needed:]
            np.testing.assert_array_equal(read, values[tensor], err_msg=f"{tensor.name} is written over")
            arena[:] = before
            found[index] = read
        return found

    for node in graph.nodes:
        arrays = [None if t is None else values[t] if t.data is None else t.data for t in node.inputs]
        values.update(zip(node.outputs, op_of(node).reference(node, arrays), strict=True))
    for tensor in graph.inputs:
        view(tensor)[...] = values[tensor]
    for number, node in enumerate(plan.calls):
        if node in plan.scratch:
            start = plan.scratch[node]
            arena[start : start + scratch[node]] = 77
        in_place = plan.overwrites.get(node)
        if in_place is not None:
            source = node.inputs[in_place[0]]
            assert source is not None
            assert plan.offset(source) == plan.offset(node.outputs[in_place[1]])
        captured = run(node) if in_place is None else {}
        for index, output in enumerate(node.outputs):
            if in_place is None or in_place[1] != index:
                put(output, 99)
        arrays = [
            captured[i] if i in captured else None if t is None else got(t) if t.data is None else t.data
            for i, t in enumerate(node.inputs)
        ]
        for output, array in zip(node.outputs, op_of(node).reference(node, arrays), strict=True):
            put(output, array)
        dead = np.ones(len(arena), bool)
        for tensor, life in plan.lifetimes.items():
            if life.first <= number < life.last:
                start = plan.offset(tensor)
                lying(tensor, dead)[...] = False
                if plan.data_layout(tensor):
                    dead[start : start + plan.extent(tensor)] = False
        for tensor in constant:
            lying(tensor, dead)[...] = False
        arena[dead] = random.integers(-128, 128, int(dead.sum()), np.int8)
        for tensor in constant:
            np.testing.assert_array_equal(
                view(tensor), values[tensor], err_msg=f"{tensor.name} is written to"
            )
    for tensor in graph.outputs:
        np.testing.assert_array_equal(view(tensor), values[tensor], err_msg=tensor.name)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, dict[Node, int]]:
    b = Builder()
    width = draw(st.sampled_from([1, 3, 4, 4]))
    known = [b.input(draw(st.integers(1, 4)), width) for _ in range(draw(st.integers(1, 2)))]
    for _ in range(draw(st.integers(1, 9))):
        x = draw(st.sampled_from(known))
        alike = [t for t in known if t.shape == x.shape]
        wide = [t for t in known if t.shape[1] == width]
        kind = draw(
            st.sampled_from(
                [
                    "mix",
                    "mix2",
                    "pair",
                    "one",
                    "two",
                    "reshape",
                    "slice",
                    "concat",
                    "beside",
                    "beside",
                    "copy",
                ]
            )
        )
        if kind == "mix":
            known.append(b.mix(x, shape=(draw(st.integers(1, 4)), width)))
        elif kind == "mix2":
            known.append(b.mix(x, draw(st.sampled_from(known)), shape=(draw(st.integers(1, 4)), width)))
        elif kind == "pair":
            shapes = tuple((draw(st.integers(1, 3)), width) for _ in range(2))
            known += b.node(Mix(shapes), [x], *shapes)
        elif kind == "one":
            known.append(b.pointwise(x))
        elif kind == "two":
            known.append(b.pointwise(x, draw(st.sampled_from(alike))))
        elif kind == "reshape":
            known.append(b.reshape(x, *x.shape[::-1]))
        elif kind == "slice":
            axis = draw(st.integers(0, 1))
            start = draw(st.integers(0, x.shape[axis] - 1))
            known.append(b.slice(x, start, draw(st.integers(start + 1, x.shape[axis])), axis))
        elif kind == "concat":
            known.append(b.concat(*draw(st.lists(st.sampled_from(wide), min_size=1, max_size=3))))
        elif kind == "beside":
            as_high = [t for t in known if t.shape[0] == x.shape[0]]
            parts = draw(st.lists(st.sampled_from(as_high), min_size=1, max_size=3))
            known.append(b.concat(x, *parts, axis=1))
        else:
            known.append(b.node(Copy(), [x], x.shape)[0])
    outputs = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
    scratch = {node: draw(st.sampled_from([0, 0, 5])) for node in b.nodes}
    return b.graph(*outputs), scratch


def drawn_access_orders(seed: int) -> tuple[AccessOrders, Callable[[Node, int], bool]]:
    """What kernels of calls with one output say of their steps, and over which inputs their output may lie exactly."""
    often = np.random.default_rng(seed).choice([0.0, 0.3, 1.0])

    def random(node: Node, index: int, salt: int) -> np.random.Generator:
        number = int("".join(c for c in node.outputs[0].name if c.isdigit()))
        return np.random.default_rng([seed, number, index, salt])

    def access_order(node: Node, index: int) -> AccessOrder | None:
        drawn = random(node, index, 0)
        tensor = node.input(index)
        if len(node.outputs) != 1 or drawn.random() >= often:
            return None
        steps = int(drawn.integers(1, 8))
        written = np.sort(drawn.integers(0, node.output.type.bytes + 1, steps))
        written[-1] = node.output.type.bytes
        needed = np.sort(drawn.integers(0, tensor.type.bytes + 1, steps))
        if drawn.random() < 0.5:
            # As most kernels do: from the beginning, in even steps.
            even = np.arange(1, steps + 1)
            written, needed = even * node.output.type.bytes // steps, (even - 1) * tensor.type.bytes // steps
        return AccessOrder(written, needed)

    def replaces(node: Node, index: int) -> bool:
        return len(node.outputs) == 1 and bool(random(node, index, 1).random() < often / 2)

    return access_order, replaces


def own_buffers(graph: Graph) -> bool:
    """Whether each output can have a buffer of its own."""
    return len({*graph.inputs, *graph.outputs}) == len(graph.inputs) + len(graph.outputs)


@given(graphs(), st.sampled_from([1, 4]), st.integers(0, 2**30), st.booleans())
@settings(deadline=None, max_examples=600)
def test_every_plan_computes_its_graph(
    drawn: tuple[Graph, dict[Node, int]], align: int, striding: int, callers: bool
) -> None:
    graph, scratch = drawn
    callers = callers and own_buffers(graph)

    def may_stride(node: Node, tensor: Tensor, pixel_stride: int) -> bool:
        """Most of those that compute something, one way and the other."""
        assert pixel_stride > tensor.shape[-1]
        number = 2 * graph.nodes.index(node) + (tensor in node.outputs)
        return type(node.attrs) in FAKES and striding >> number % 30 & 3 != 0

    computing = [node for node in graph.nodes if type(node.attrs) in FAKES]
    ends = {*graph.inputs, *graph.outputs}
    data_layouts = {
        tensor: NHW2C2
        for number, node in enumerate(computing)
        for tensor in node.outputs
        if striding >> number % 30 & 1
        and tensor not in ends
        and NHW2C2.holds(tensor)
        and all(reader in computing for reader in graph.consumers(tensor))
    }
    access_order, replaces = drawn_access_orders(striding)
    options: dict[str, Any] = {
        "may_stride": may_stride,
        "data_layouts": data_layouts,
        "access_order": access_order,
        "replaces": replaces,
        "callers": callers,
    }
    plan = plan_memory(graph, op_of, scratch, align=align, **options)
    assert [plan.is_callers(t) for t in ends] == [callers] * len(ends)
    assert len(plan.buffer_blocks) == (len(ends) if callers else 0)
    assert plan.arena_bytes >= plan.lower_bound
    assert set(plan.calls).isdisjoint(plan.elided)
    execute(graph, plan, scratch, access_order)
    # Where the values are used is within the lifetimes, and those are within their blocks' lifetimes.
    for number, node in enumerate(plan.calls):
        for tensor in (*node.inputs, *node.outputs):
            assert tensor is not None
            life, block = plan.lifetimes[tensor], plan.blocks[plan.storage[tensor].block]
            assert block.lifetime.first <= life.first <= number <= life.last <= block.lifetime.last
    again = plan_memory(graph, op_of, scratch, align=align, **options)
    assert again == plan
    # Who says no has nothing between its pixels.
    for node in plan.calls:
        for t in (*node.inputs, *node.outputs):
            assert t is not None
            assert not plan.pixel_stride(t) or may_stride(node, t, plan.pixel_stride(t))


def anyone(node: Node, _tensor: Tensor, _pixel_stride: int) -> bool:
    """All that computes something."""
    return type(node.attrs) in FAKES


def test_a_chain_alternates_between_two_places() -> None:
    b = Builder()
    x = b.input(64)
    for size in (48, 32, 16):
        x = b.mix(x, shape=(size,))
    plan = plan_of(b.graph(x))
    assert (plan.arena_bytes, plan.lower_bound, plan.optimal, plan.order_optimal) == (112, 112, True, True)


def residual(in_place: bool) -> Graph:
    """Three residual blocks of 32x32x16 as in ResNet8's first stage: convolve, convolve, add."""
    b = Builder()
    x = b.mix(b.input(32, 32, 3), shape=(32, 32, 16))
    for _ in range(3):
        y = b.mix(b.mix(x, shape=(32, 32, 16)), shape=(32, 32, 16))
        x = b.pointwise(x, y) if in_place else b.mix(x, y, shape=(32, 32, 16))
    return b.graph(b.mix(x, shape=(10,)))


@pytest.mark.parametrize("in_place", [True, False])
def test_residual_adds(in_place: bool) -> None:
    """The block's input, the first and the second convolution's results are alive together whatever the add
    does; the add itself needs no fourth place, and in place not even a third."""
    graph = residual(in_place)
    plan = plan_of(graph)
    assert (plan.arena_bytes, plan.optimal) == (3 * 16_384, True)
    adds = [node for node in plan.calls if node.op == "pointwise"]
    assert len(plan.overwrites) == len(adds) == (3 if in_place else 0)
    execute(graph, plan, {})


def test_pointwise_chain_needs_one_place() -> None:
    b = Builder()
    x = b.input(100)
    y = b.pointwise(b.pointwise(b.pointwise(x)))
    plan = plan_of(b.graph(y))
    assert (plan.arena_bytes, len(plan.blocks), len(plan.overwrites)) == (100, 1, 3)


def test_not_in_place_over_what_is_still_needed() -> None:
    b = Builder()
    x = b.input(100)
    y = b.pointwise(x)
    z = b.pointwise(y, x)
    plan = plan_of(b.graph(z))
    assert list(plan.overwrites) == [b.nodes[1]]
    assert plan.arena_bytes == 200
    kept = plan_of(b.graph(z, x))
    assert kept.overwrites == {b.nodes[1]: (0, 0)}
    assert kept.offset(z) == kept.offset(y) != kept.offset(x)


def test_not_in_place_under_a_differently_placed_view_of_the_same_bytes() -> None:
    """x and the same bytes one element on: writing over x would destroy what is still to be read."""
    b = Builder()
    whole = b.mix(b.input(4), shape=(9,))
    first, second = b.slice(whole, 0, 8), b.slice(whole, 1, 9)
    graph = b.graph(b.pointwise(first, second))
    plan = plan_of(graph, align=1)
    assert len(plan.elided) == 2
    assert not plan.overwrites
    execute(graph, plan, {})


def test_same_input_twice_is_overwritten() -> None:
    b = Builder()
    x = b.input(8)
    graph = b.graph(b.pointwise(x, b.reshape(x, 8)))
    plan = plan_of(graph)
    assert (plan.arena_bytes, len(plan.overwrites), len(plan.elided)) == (8, 1, 1)
    execute(graph, plan, {})


def test_wide_elements_are_aligned_to_their_size() -> None:
    b = Builder()
    x = b.input(2)
    wide = Tensor("wide", TensorType((3,), DType.INT32))
    b.nodes.append(Node(Mix(((3,),)), (x,), (wide,)))
    plan = plan_of(b.graph(wide), align=1)
    assert plan.offset(wide) % 4 == 0
    assert plan.arena_bytes == 14


def test_scratch_is_placed_and_counted() -> None:
    b = Builder()
    x = b.input(8)
    graph = b.graph(b.mix(x, shape=(8,)))
    plan = plan_memory(graph, op_of, {b.nodes[0]: 20})
    assert plan.scratch[b.nodes[0]] % 8 == 0
    assert (plan.arena_bytes, plan.optimal) == (36, True)


def test_branches_are_ordered_for_memory() -> None:
    b = Builder()
    x = b.input(4)
    wide = [b.mix(x, shape=(64,)) for _ in range(4)]
    narrow = [b.mix(w, shape=(4,)) for w in wide]
    plan = plan_of(b.graph(b.mix(b.mix(*narrow[:2], shape=(4,)), b.mix(*narrow[2:], shape=(4,)), shape=(4,))))
    assert plan.given_order_bytes == 4 * 64 + 4
    assert plan.arena_bytes <= 64 + 4 * 4
    assert plan.order_optimal


def test_a_constant_output_is_refused() -> None:
    b = Builder()
    b.input(4)
    with pytest.raises(InternalError, match="output k is a constant"):
        plan_of(b.graph(constant("k", np.zeros(4, np.int8))))


def checked(graph: Graph, plan: MemoryPlan) -> None:
    check_plan(graph, plan, op_of, {}, align=4, scratch_align=8)


def test_the_check_refuses_broken_plans() -> None:
    b = Builder()
    x = b.input(8)
    y, z = b.mix(x, shape=(8,)), b.mix(x, shape=(4,))
    whole = b.concat(y, b.slice(z, 0, 4))
    graph = b.graph(b.mix(whole, shape=(4,)))
    plan = plan_of(graph)
    checked(graph, plan)
    swapped = (plan.order[1], plan.order[0], *plan.order[2:])
    late = (*plan.order[:2], plan.order[-1], *plan.order[2:-1])

    def broken(message: str, **changes: object) -> None:
        with pytest.raises(InternalError, match=message):
            checked(graph, dataclasses.replace(plan, **changes))  # type: ignore[arg-type]

    broken("does not hold each node once", order=plan.order[1:])
    broken("calls are not the nodes", order=swapped)
    broken("runs before its input", order=late, calls=tuple(n for n in late if n not in plan.elided))
    broken("leaves the arena", arena_bytes=plan.arena_bytes - 1)
    moved = {**plan.storage, z: Storage(plan.storage[z].block, plan.storage[z].offset - 4)}
    broken("in none of its inputs|holds", storage=moved)
    moved = {**plan.storage, z: Storage(plan.storage[z].block, plan.storage[z].offset + 1)}
    broken("is in none of its inputs|not aligned", storage=moved)
    # A node that computes something cannot be left out, wherever its output lies.
    shared = {**plan.storage, y: plan.storage[x]}
    broken(
        "has no call, but",
        storage=shared,
        elided=(*plan.elided, b.nodes[0]),
        calls=tuple(n for n in plan.calls if n is not b.nodes[0]),
    )
