# SPDX-License-Identifier: Apache-2.0
"""Fusion groups: drawn networks of which some calls work by rows, carried out byte by byte in a poisoned arena."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.streamed import Net, attention, sequence
from tinyet.boards import load_board
from tinyet.boards.cpus import HOST
from tinyet.deployment import deploy
from tinyet.errors import InternalError
from tinyet.ir import Array, DType, Graph, Node, QuantParams, Shape, Tensor, TensorType, constant
from tinyet.memory import MemoryPlan, check_plan, plan_memory
from tinyet.memory.candidate_plan import FusionRefusedError
from tinyet.memory.fusion import FusionGroup, Move, Run, Shift
from tinyet.memory.tile_records import Action, Fill, Place, Repeat
from tinyet.ops import op_of, tile_map
from tinyet.ops.add import Add
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.clamp import Clamp
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.pad import Pad
from tinyet.ops.resize import Resize
from tinyet.ops.slice import Slice
from tinyet.opset import TileMap, tile_node
from tinyet.planning.candidates import Candidates, candidates_of
from tinyet.planning.fusion import fused
from tinyet.planning.kernel_selection import select_kernels
from tinyet.planning.objective import Objective, Optimize
from tinyet.planning.row_axes import unmoved
from tinyet.planning.tiling import CYCLES, TilingSearch, tile_candidates_of
from tinyet.reference import evaluate

Random = np.random.Generator
Memory = npt.NDArray[np.uint8]


class Network:
    """A drawn graph of int8 images, or of sequences, images of one line."""

    def __init__(self, random: Random, align: int) -> None:
        self.random = random
        self.step = 4 if align > 1 else 1  # of channels, so that rows begin where tensors may
        height, width = (int(n) for n in random.integers(5, 14, 2))
        self.line = random.random() < 0.4
        if self.line:
            height, width = 1, int(random.integers(12, 60))
        # A sequence may come with any number of channels.
        channels = int(random.integers(1, 4)) if self.line and random.random() < 0.8 else self.channels()
        first = self.tensor("x", (1, height, width, channels))
        self.inputs, self.known, self.nodes = [first], [first], list[Node]()
        for _ in range(int(random.integers(2, 8))):
            self.layer()

    def channels(self) -> int:
        return int(self.random.integers(1, 4)) * self.step

    def tensor(self, name: str, shape: Shape) -> Tensor:
        quant = QuantParams.per_tensor(0.05, int(self.random.integers(-20, 20)))
        return Tensor(name, TensorType(shape, DType.INT8, quant))

    def layer(self) -> None:
        random = self.random
        # Mostly the last value, so that there are chains; any other makes branches.
        x = self.known[-1] if random.random() < 0.8 else self.known[int(random.integers(len(self.known)))]
        kind = int(random.integers(0, 12))
        same = [t for t in self.known if t.shape == x.shape]
        beside = [t for t in self.known if t.shape[:3] == x.shape[:3]]
        if kind == 0 and len(same) > 1:
            self.node(Add(), (x, same[int(random.integers(len(same)))]), x.shape)
        elif kind == 1 and len(beside) > 1:
            y = beside[int(random.integers(len(beside)))]
            if y is not x:
                self.concat(x, y)
        elif kind == 2:
            self.clamp(x)
        elif kind in (3, 4):
            self.pool(x, average=kind == 3)
        elif kind in (8, 9):
            self.resize(x, "nearest" if kind == 8 else "bilinear")
        elif kind == 10:
            self.transposed(x)
        elif kind == 11:
            self.moved(x)
        else:
            self.conv(x, depthwise=kind == 5)

    def node(
        self, attrs: object, inputs: tuple[Tensor | None, ...], shape: Shape, like: Tensor | None = None
    ) -> None:
        output = self.tensor(f"t{len(self.nodes)}", shape)
        if like is not None:
            output = dataclasses.replace(output, type=dataclasses.replace(output.type, quant=like.type.quant))
        self.nodes.append(Node(attrs, inputs, (output,)))  # type: ignore[arg-type]
        self.known.append(output)

    def concat(self, x: Tensor, y: Tensor) -> None:
        if x.type.quant == y.type.quant:
            self.node(Concat(3), (x, y), (*x.shape[:3], x.shape[3] + y.shape[3]), x)

    def clamp(self, x: Tensor) -> None:
        self.node(Clamp(0.0, 1.0), (x,), x.shape, x)

    def window(self, x: Tensor, kernel: int) -> tuple[dict[str, Any], int, int] | None:
        """Strides, dilations and pads, and the size of the output; None where nothing is left of the image."""
        random = self.random
        pads = {f"pad_{side}": int(random.integers(0, kernel)) for side in ("top", "bottom", "left", "right")}
        stride, dilation = int(random.integers(1, 4)), int(random.integers(1, 3))
        reach = dilation * (kernel - 1) + 1
        if self.line:
            pads |= {"pad_top": 0, "pad_bottom": 0}
        height = 1 if self.line else (x.shape[1] + pads["pad_top"] + pads["pad_bottom"] - reach) // stride + 1
        width = (x.shape[2] + pads["pad_left"] + pads["pad_right"] - reach) // stride + 1
        if min(height, width) < 1:
            return None
        return (
            {"stride_h": stride, "stride_w": stride, "dilation_h": dilation, "dilation_w": dilation, **pads},
            height,
            width,
        )

    def pool(self, x: Tensor, *, average: bool) -> None:
        kernel = int(self.random.integers(1, 4))
        found = self.window(x, kernel)
        if found is not None:
            attrs, height, width = found
            if average:
                attrs |= {"dilation_h": 1, "dilation_w": 1}
                height = (x.shape[1] + attrs["pad_top"] + attrs["pad_bottom"] - self.tall(kernel)) // attrs[
                    "stride_h"
                ] + 1
                width = (x.shape[2] + attrs["pad_left"] + attrs["pad_right"] - kernel) // attrs[
                    "stride_w"
                ] + 1
            make = AvgPool2d if average else MaxPool2d
            self.node(
                make(kernel_h=self.tall(kernel), kernel_w=kernel, **attrs),
                (x,),
                (1, height, width, x.shape[3]),
                x,
            )

    def tall(self, kernel: int) -> int:
        """The height of a kernel, stride or dilation."""
        return 1 if self.line else kernel

    def conv(self, x: Tensor, *, depthwise: bool) -> None:
        kernel = int(self.random.integers(1, 4))
        found = self.window(x, kernel)
        if found is None:
            return
        attrs, height, width = found
        groups, out = (x.shape[3], x.shape[3]) if depthwise else (1, self.channels())
        size = (out, self.tall(kernel), kernel, x.shape[3] // groups)
        values = self.random.integers(-127, 128, size).astype(np.int8)
        weights = constant("w", values, QuantParams((0.01,) * out, (0,) * out, 0))
        self.node(Conv2d(groups=groups, **attrs), (x, weights, None), (1, height, width, out))

    def resize(self, x: Tensor, mode: Literal["nearest", "bilinear"]) -> None:
        """To a whole number of times the size, or by half."""
        factor = float(self.random.choice([0.5, 1, 2, 2, 4]))
        height, width = (max(int(size * factor), 1) for size in x.shape[1:3])
        height = self.tall(height)
        ratios = x.shape[1] / height, x.shape[2] / width
        if height * width <= 900:
            attrs = Resize(
                height,
                width,
                mode,
                align_corners=False,
                half_pixel=True,
                ratio_h=ratios[0],
                ratio_w=ratios[1],
            )
            self.node(attrs, (x,), (1, height, width, x.shape[3]), x)

    def transposed(self, x: Tensor) -> None:
        random, out = self.random, self.channels()
        kernel, stride, dilation = (int(random.integers(1, most)) for most in (4, 4, 3))
        top, bottom, left, right = (int(n) for n in random.integers(0, 2, 4))
        reach = dilation * (kernel - 1) + 1
        height, width = (
            (size - 1) * stride + reach - cropped
            for size, cropped in zip(x.shape[1:3], (top + bottom, left + right), strict=True)
        )
        if self.line:
            height, top, bottom = 1, 0, 0
        if not 0 < height * width <= 900 or min(height, width) < 1:
            return
        values = random.integers(-127, 128, (out, self.tall(kernel), kernel, x.shape[3])).astype(np.int8)
        weights = constant("w", values, QuantParams((0.01,) * out, (0,) * out, 0))
        steps = self.tall(stride), stride, self.tall(dilation), dilation
        attrs = ConvTranspose2d(*steps, top, bottom, left, right)
        self.node(attrs, (x, weights, None), (1, height, width, out))

    def moved(self, x: Tensor) -> None:
        """Padding with the edge, or rows left out."""
        random, axis = self.random, 2 if self.line else 1
        count = x.shape[axis]

        def of(rows: int) -> Shape:
            return (*x.shape[:axis], rows, *x.shape[axis + 1 :])

        if random.random() < 0.6:
            before, after = (int(n) for n in random.integers(0, 4, 2))
            pads = tuple((before, after) if a == axis else (0, 0) for a in range(4))
            self.node(Pad(pads, "replicate"), (x,), of(before + count + after), x)
        else:
            start, step = int(random.integers(0, count)), int(random.integers(1, 3))
            rows = len(range(start, count, step))
            self.node(Slice(axis, start, count, step), (x,), of(rows), x)

    def graph(self) -> Graph:
        read = {t for node in self.nodes for t in node.inputs}
        ends = [t for t in self.known[1:] if t not in read]
        # Something that is read goes out, too, now and then.
        if self.random.random() < 0.3:
            ends.append(self.known[1])
        return Graph("drawn", tuple(self.inputs), tuple(dict.fromkeys(ends)), tuple(self.nodes))


def drawn(seed: int) -> tuple[Graph, MemoryPlan, dict[Node, int], int] | None:
    """A graph and its plan, with calls of it as a fusion group; None where nothing came of it."""
    random = np.random.default_rng(seed)
    align = int(random.choice([1, 4]))
    network = Network(random, align)
    if not network.nodes:
        return None
    graph = network.graph()
    scratch = {node: int(random.integers(0, 3)) * 12 for node in graph.nodes}
    calls = plan_memory(graph, op_of, scratch, align=align).calls
    if not calls:
        return None
    begin = int(random.integers(0, len(calls), 2).min())
    end = int(random.integers(begin, len(calls), 3).max()) + 1
    most = (None, 3, 8)[int(random.integers(3))]
    times = int(random.integers(1, 4))
    rules = {node: tile_map(node, None, most, times) for node in calls[begin:end]}
    known = {node: rule for node, rule in rules.items() if isinstance(rule, TileMap)}
    if len(known) < len(rules):
        return None
    form = int(random.integers(3))
    found = fused(graph, calls[begin:end], known, align=align, stacked=form > 0, on_output=form == 1)
    if found is None:
        return None
    try:
        plan = plan_memory(graph, op_of, scratch, align=align, fusion_groups=(found,))
    except FusionRefusedError:
        return None
    return graph, plan, scratch, seed


class Machine:
    """The arena, and the values that are right."""

    def __init__(self, graph: Graph, plan: MemoryPlan, scratch: dict[Node, int], seed: int) -> None:
        self.graph, self.plan, self.scratch = graph, plan, scratch
        self.random = np.random.default_rng(seed)
        self.memory = self.noise(plan.arena_bytes)
        self.sums: dict[Node, Memory] = {}  # that are not complete
        inputs = [self.random.integers(-128, 128, t.shape).astype(np.int8) for t in graph.inputs]
        self.right = evaluate(graph, inputs)
        for tensor in graph.inputs:
            self.put(plan.offset(tensor), self.right[tensor])

    def noise(self, count: int) -> Memory:
        return self.random.integers(0, 256, count, dtype=np.uint8)

    def put(self, at: int, values: npt.NDArray[np.generic]) -> None:
        raw = np.ascontiguousarray(values).view(np.uint8).ravel()
        self.memory[at : at + len(raw)] = raw

    def get(self, at: int, shape: Shape) -> npt.NDArray[np.int8]:
        count = int(np.prod(shape))
        return self.memory[at : at + count].view(np.int8).reshape(shape)

    def run(self) -> None:
        for number, node in enumerate(self.plan.calls):
            found = self.plan.fusion_group(node)
            if found is None:
                self.call(node)
                self.poison(number)
            elif node is found.nodes[0]:
                self.fusion_group(found, number)
        for tensor in self.graph.outputs:
            np.testing.assert_array_equal(
                self.get(self.plan.offset(tensor), tensor.shape), self.right[tensor]
            )

    def call(self, node: Node) -> None:
        inputs = [
            t.data
            if t is not None and t.is_constant
            else None
            if t is None
            else self.get(self.plan.offset(t), t.shape)
            for t in node.inputs
        ]
        (result,) = op_of(node).reference(node, inputs)
        self.work(node)
        self.put(self.plan.offset(node.output), result)
        np.testing.assert_array_equal(result, self.right[node.output])

    def work(self, node: Node, at: int | None = None) -> None:
        """What a call leaves in its scratch memory."""
        if size := self.scratch.get(node, 0):
            at = self.plan.scratch[node] if at is None else at
            self.memory[at : at + size] = self.noise(size)

    def sum_up(self, node: Node, *, first: bool, last: bool) -> None:
        """One strip of a sum over an image: what it leaves has to be there for the next."""
        if size := self.scratch.get(node, 0):
            at = self.plan.scratch[node]
            assert first or (self.memory[at : at + size] == self.sums[node]).all()
            self.sums[node] = self.memory[at : at + size] = self.noise(size)
        if last:
            self.sums.pop(node, None)
            self.put(self.plan.offset(node.output), self.right[node.output])

    def fusion_group(self, found: FusionGroup, number: int) -> None:
        base = self.plan.offset(found.stacked_buffers[0]) if found.stacked_buffers else 0
        done = dict.fromkeys(found.nodes, 0)

        def row_bytes(tensor: Tensor) -> int:
            return found.rows[tensor].row_bytes

        def at(tensor: Tensor, place: Place) -> int:
            slot = place.slot - found.rows[tensor].above
            return self.plan.offset(tensor) + place.start + slot * row_bytes(tensor)

        for moment, action in enumerate(found.actions):
            match action:
                case Fill(tensor, place, rows, value):
                    self.put(at(tensor, place), np.full(rows * row_bytes(tensor), value, np.int8))
                case Repeat(tensor, place, rows, above):
                    start, size = at(tensor, place), row_bytes(tensor)
                    source = start + rows * size if above else start - size
                    for row in range(rows):
                        self.put(start + row * size, self.memory[source : source + size].copy())
                case Move(tensor, gone, kept):
                    size, start = row_bytes(tensor), self.plan.offset(tensor)
                    moved = self.memory[start + gone * size :][: kept * size].copy()
                    self.put(start, moved)
                case Shift(_, _, start, count, by):
                    moved = self.memory[base + start : base + start + count].copy()
                    self.put(base + start + by, moved)
                case Run(node, _, _) if found.rules[node].reduces:
                    done[node] += 1
                    self.sum_up(node, first=done[node] == 1, last=done[node] == found.runs(node))
                case Run(node, reads, place):
                    rule = found.rules[node]
                    small = tile_node(node, rule)
                    where = dict(reads)
                    inputs: list[Array | None] = []
                    for index, part in enumerate(small.inputs):
                        given = node.inputs[index]
                        if given is None or part is None:
                            inputs.append(None)
                        elif given.is_constant:
                            inputs.append(given.data)
                        else:
                            start = at(given, where[index]) if index in where else self.plan.offset(given)
                            inputs.append(self.get(start, part.shape))
                    (result,) = op_of(small).reference(small, inputs)
                    top = base + int(found.heights[moment]) if found.stacked_buffers else 0
                    self.work(node, -(-top // 8) * 8 if found.stacked_buffers else None)
                    self.put(at(node.output, place), result)
                    first = min(done[node] * rule.out, node.output.shape[rule.axis] - rule.out)
                    made = range(first, first + rule.out)
                    np.testing.assert_array_equal(result, self.right[node.output].take(made, rule.axis))
                    done[node] += 1
            self.poison(number, found, moment)

    def poison(self, number: int, found: FusionGroup | None = None, moment: int = 0) -> None:
        """Spoil all that nobody reads again."""
        plan, alive = self.plan, np.zeros(len(self.memory), np.bool_)
        inside = set() if found is None else set(found.rows)
        whole = {t for node in (() if found is None else found.nodes) for t in node.inputs} - inside
        for tensor in plan.storage:
            life, block = plan.lifetimes[tensor], plan.blocks[plan.storage[tensor].block]
            now = life.first <= number < max(life.last, block.lifetime.last) or tensor in whole
            if plan.line_buffer(tensor) is None and tensor not in inside and now:
                alive[plan.offset(tensor) : plan.offset(tensor) + tensor.type.bytes] = True
        if found is not None:
            for tensor, rows in found.rows.items():
                start = plan.offset(tensor) - rows.above * rows.row_bytes
                low, high = (int(each[moment]) * rows.row_bytes for each in (rows.first, rows.behind))
                if not rows.stacked:
                    alive[max(start + low, 0) : start + high] = True
            if found.stacked_buffers:
                start = plan.offset(found.stacked_buffers[0])
                alive[start : start + int(found.heights[moment])] = True
            for node, kept in self.sums.items():
                alive[plan.scratch[node] : plan.scratch[node] + len(kept)] = True
        self.memory[~alive] = self.noise(int((~alive).sum()))


@given(st.integers(0, 2**30))
@settings(deadline=None, max_examples=600)
def test_rows_compute_what_whole_layers_compute(seed: int) -> None:
    found = drawn(seed)
    if found is not None:
        graph, plan, scratch, _ = found
        assert plan.arena_bytes >= plan.lower_bound
        Machine(graph, plan, scratch, seed).run()


@given(st.integers(0, 2**30))
@example(689)  # of a view of a view
@example(10369)  # of views alone
@example(128453)  # the smallest arena is that of a tiling which no limit below it would try
@settings(deadline=None, max_examples=60)
def test_whatever_a_limit_makes_of_a_network_computes_it(seed: int) -> None:
    """With kernels chosen, for a core with DSP, under a limit that often cannot be met by whole layers."""
    random = np.random.default_rng(seed)
    network = Network(random, 4)
    if not network.nodes:
        return
    graph = network.graph()
    target = load_board("mps2_an386").target
    optimize: Optimize = "size" if random.random() < 0.2 else "balanced"
    free = deploy(graph, target, objective=Objective(optimize))
    limit = int(free.plan.arena_bytes * random.uniform(0.2, 1.0))
    deployment = deploy(graph, target, objective=Objective(optimize, ram=limit))
    if free.plan.arena_bytes > limit:
        assert deployment.plan.arena_bytes <= free.plan.arena_bytes
    scratch = {step.node: step.call.scratch_bytes for step in deployment.steps}
    if not any(
        deployment.plan.form(t) for t in deployment.plan.storage if deployment.plan.line_buffer(t) is None
    ):
        Machine(deployment.graph, deployment.plan, scratch, seed).run()


@given(st.integers(0, 2**30))
@settings(deadline=None, max_examples=25)
def test_heads_by_rows_compute_what_whole_layers_compute(seed: int) -> None:
    """Attentions of drawn sizes, one after another. Of one head rows are in one piece in all values, of several in
    line buffers only."""
    random = np.random.default_rng(seed)
    positions, wide = int(random.integers(8, 33)), int(random.choice([4, 8, 12]))
    net = Net(DType.INT8, (1, positions, wide))
    y, words = net.x, True
    for _ in range(int(random.integers(1, 3))):
        heads, channels = int(random.integers(1, 5)), int(random.choice([2, 3, 4, 8]))
        words = words and heads * channels % 4 == 0
        packed, early = (bool(random.random() < 0.5) for _ in range(2))
        y = attention(net, y, heads, channels, packed=packed, early=early)
    graph = net.finish(y).graph
    whole = deploy(graph, HOST, objective=Objective(ram=1, untiled=True))
    deployment = deploy(graph, HOST, objective=Objective(ram=1))
    assert deployment.plan.arena_bytes <= whole.plan.arena_bytes
    Machine(deployment.graph, deployment.plan, {}, seed).run()
    # Scores are not there as a whole where they would be most of the memory when it is fullest, if rows begin where
    # tensors may.
    fullest = whole.plan.alive.index(max(whole.plan.alive)) - 1
    for node in graph.nodes if words else ():
        there = whole.plan.blocks[whole.plan.storage[node.output].block].lifetime
        most = there.first <= fullest <= there.last and node.output.type.bytes > whole.plan.arena_bytes / 2
        if node.op == "softmax" and most:
            rows = deployment.plan.line_buffer(node.output)
            assert rows is not None
            assert rows.slots == 1


def test_the_check_refuses_rows_in_pieces() -> None:
    """Rows of queries that are to be in the whole value, in which other rows are between their heads'."""
    net = Net(DType.INT8, (1, 32, 8))
    graph = net.finish(attention(net, net.x, 4, 2)).graph
    plan = deploy(graph, HOST, objective=Objective(ram=1)).plan
    (found,) = plan.fusion_groups
    for node, rule in found.rules.items():
        if rule.axis != 1:
            rows = dataclasses.replace(found.rows[node.output], window=False)
            whole = dataclasses.replace(found, rows={**found.rows, node.output: rows})
            other = {**found.rules, node: dataclasses.replace(rule, axis=1)}
            for wrong, why in (
                (whole, "do not lie together"),
                (dataclasses.replace(found, rules=other), "has rows along two axes"),
            ):
                broken = dataclasses.replace(plan, fusion_groups=(wrong,))
                with pytest.raises(InternalError, match=why):
                    check_plan(graph, broken, op_of, {}, align=1, scratch_align=8)


def test_most_drawn_networks_have_fusion_groups() -> None:
    """Of all forms: else the test above says little."""
    found = [made[1].fusion_groups[0] for seed in range(300) if (made := drawn(seed)) is not None]
    assert len(found) > 120
    assert sum(bool(each.stacked_buffers) for each in found) > 40
    assert sum(each.base is not None for each in found) > 15
    assert sum(len(each.nodes) > 2 for each in found) > 40
    assert sum(any(rows.above or rows.below for rows in each.rows.values()) for each in found) > 20
    assert sum(any(isinstance(action, Repeat) for action in each.actions) for each in found) > 10
    lines = [each for each in found if any(t.shape[1] == 1 for t in each.rows)]
    assert sum(len(each.nodes) > 1 for each in lines) > 20
    assert sum(any(isinstance(a, Run) and a.again for a in each.actions) for each in lines) > 10
    assert sum(bool(each.loose) for each in lines) > 0


def test_a_view_is_made_behind_the_view_that_it_reads() -> None:
    """Where both of them are read by one layer, the later one first."""
    network = Network(np.random.default_rng(0), 4)
    x = network.tensor("x", (1, 12, 8, 8))
    network.inputs, network.known, network.nodes = [x], [x], []
    network.clamp(x)
    one = network.known[-1]
    network.node(MaxPool2d(kernel_h=1, kernel_w=1), (one,), one.shape, one)
    network.node(AvgPool2d(kernel_h=1, kernel_w=1), (network.known[-1],), one.shape, one)
    network.concat(network.known[-1], network.known[-2])
    graph = network.graph()
    plan = plan_memory(graph, op_of, {})
    assert [node.op for node in plan.calls] == ["clamp", "concat"]

    def offer(some: Graph) -> Candidates:
        return candidates_of(select_kernels(some, HOST, ()), HOST)

    chosen = {node: found[0] for node, found in offer(graph).items()}
    tiles = tile_candidates_of(graph.nodes, unmoved(graph), offer)
    segment = TilingSearch(graph, plan, chosen, tiles, CYCLES).segment(0, 2)
    assert segment is not None
    assert segment.fusion_group.nodes == graph.nodes


def test_an_input_begins_where_its_padding_ends() -> None:
    """Three rows of two bytes each lie before it, and begin at a whole word, as tiles do."""
    graph = sequence(DType.INT8, 63).graph
    plan = deploy(graph, load_board("mps2_an386").target, objective=Objective(ram=1)).plan
    (x,) = graph.inputs
    found = next(found for found in plan.fusion_groups if x in found.rows)
    assert found.loose == (x,)
    assert found.rows[x].above == 3
    assert plan.offset(x) % 4 == 2


def test_the_check_refuses_rows_at_wrong_places() -> None:
    """Whatever one action does otherwise, unless it makes no difference."""
    refused = 0
    for seed in range(60):
        made = drawn(seed)
        if made is None:
            continue
        graph, plan, scratch, _ = made
        (found,) = plan.fusion_groups
        random = np.random.default_rng(seed)
        number = int(random.integers(len(found.actions)))
        action = found.actions[number]
        wrong: Action
        match action:
            case Run(node, reads, place):
                wrong = (
                    Run(node, reads, Place(place.slot + 1, place.start))
                    if not reads or random.random() < 0.5
                    else Run(
                        node,
                        ((reads[0][0], Place(reads[0][1].slot + 1, reads[0][1].start)), *reads[1:]),
                        place,
                    )
                )
            case Move(tensor, gone, kept):
                wrong = Move(tensor, gone + 1, kept)
            case Shift(first, last, start, count, by):
                wrong = Shift(first, last, start, count, by + (4 if by > 0 else -4))
            case Repeat(tensor, place, rows, above):
                wrong = (
                    Repeat(tensor, Place(place.slot + 1, place.start), rows, above)
                    if random.random() < 0.5
                    else Fill(tensor, place, rows, 0)
                )
            case Fill(tensor, place, rows, value):
                wrong = Fill(tensor, Place(place.slot + 1, place.start), rows, value)
            case _:
                continue
        actions = (*found.actions[:number], wrong, *found.actions[number + 1 :])
        broken = dataclasses.replace(plan, fusion_groups=(dataclasses.replace(found, actions=actions),))
        try:
            check_plan(graph, broken, op_of, scratch, align=1, scratch_align=8)
        except InternalError:
            refused += 1
        else:  # a row that nobody reads may lie anywhere
            Machine(graph, broken, scratch, seed).run()
    assert refused > 20
