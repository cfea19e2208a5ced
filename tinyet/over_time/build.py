# SPDX-License-Identifier: Apache-2.0
"""The graph that takes a few frames at a time: states hold the earlier values that it reads again."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from tinyet.ir import Array, Graph, Node, Origin, Tensor, TensorType, constant
from tinyet.ops import infer
from tinyet.ops.concat import Concat
from tinyet.ops.permute import Permute, moves_nothing
from tinyet.ops.reshape import Reshape
from tinyet.ops.shared.window import zero_of
from tinyet.ops.slice import Slice
from tinyet.over_time.schedule import Read, Schedule
from tinyet.passes.boundary import copied_outputs
from tinyet.passes.dead_code import eliminate_dead_code
from tinyet.passes.merge_reshapes import merge_reshapes
from tinyet.passes.pointwise_to_linear import pointwise_to_linear, without_keys
from tinyet.passes.rewrite import Names
from tinyet.passes.states import write_states
from tinyet.reference import evaluate


@dataclass(frozen=True)
class Stretch:
    """Steps of a tensor of the window's graph, as a tensor of the new one. first: the step that it begins with."""

    tensor: Tensor
    first: int


@dataclass
class Builder:
    schedule: Schedule
    reads: list[Read]
    nodes: list[Node] = field(default_factory=list)
    # Values without time, and the steps of a run.
    values: dict[Tensor, Tensor] = field(default_factory=dict)
    windows: dict[tuple[Tensor, float | None], Stretch] = field(default_factory=dict)
    cuts: dict[tuple[Tensor, int, int], Tensor] = field(default_factory=dict)
    states: list[tuple[Tensor, Tensor, Tensor]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.trace = self.schedule.trace
        self.names = Names(self.trace.graph)
        self.by_reader = {(read.node, read.tensor): read for read in self.reads}
        self.by_tensor: dict[Tensor, list[Read]] = {}
        for read in self.reads:
            self.by_tensor.setdefault(read.tensor, []).append(read)
        self.padding: dict[Tensor, Array] | None = None

    def run(self) -> Graph:
        graph = self.trace.graph
        inputs = []
        for tensor in graph.inputs:
            value = self._steps(tensor) if tensor in self.trace.axis else tensor
            inputs.append(value)
            self._made(tensor, value)
        for node in graph.nodes:
            self._node(node)
        outputs = [
            self._taken(self.by_reader[None, tensor]) if tensor in self.trace.axis else self._value(tensor)
            for tensor in graph.outputs
        ]
        states, nexts, initial = zip(*self.states, strict=True) if self.states else ((), (), ())
        built = graph.replace(
            inputs=(*inputs, *states), outputs=(*outputs, *nexts), nodes=self.nodes, initial=initial
        )
        built = merge_reshapes(pointwise_to_linear(built.replace(nodes=map(_as_view, built.nodes))))
        return write_states(copied_outputs(eliminate_dead_code(built)))

    def _node(self, node: Node) -> None:
        rule = self.trace.rules.get(node)
        if rule is None:
            self.nodes.append(node.replace(inputs=[t and self._value(t) for t in node.inputs]))
            self.values.update((tensor, tensor) for tensor in node.outputs)
            return
        steps = self.schedule.new.get(node.outputs[0], 1)
        inputs = [
            self._taken(self.by_reader[node, t]) if t and index in rule.inputs else t and self._value(t)
            for index, t in enumerate(node.inputs)
        ]
        attrs = rule.attrs(steps)
        if attrs is None:
            made = [t for index, t in enumerate(inputs) if index in rule.inputs and t is not None]
        else:
            for read, written in rule.carried:
                inputs[read] = self._carried(node.input(read), node.outputs[written])
            shaped = node.replace(attrs=attrs, inputs=inputs)
            made = [
                Tensor(tensor.name, dataclasses.replace(tensor.type, shape=shape))
                for tensor, shape in zip(node.outputs, infer(shaped), strict=True)
            ]
            self.nodes.append(shaped.replace(outputs=made))
            for read, written in rule.carried:
                past = inputs[read]
                assert past is not None
                self.states.append((past, made[written], node.input(read)))
        for tensor, value in zip(node.outputs, made, strict=True):
            self._made(tensor, value)

    def _value(self, tensor: Tensor) -> Tensor:
        return tensor if tensor.is_constant else self.values[tensor]

    def _steps(self, tensor: Tensor) -> Tensor:
        """A tensor of a run's steps under the same name."""
        return Tensor(tensor.name, self._resized(tensor, self.schedule.new[tensor]))

    def _resized(self, tensor: Tensor, steps: int) -> TensorType:
        axis = self.trace.axis[tensor]
        shape = (*tensor.shape[:axis], steps, *tensor.shape[axis + 1 :])
        return dataclasses.replace(tensor.type, shape=shape)

    def _carried(self, first: Tensor, last: Tensor) -> Tensor:
        """The state that an operator carries from step to step, as the previous run left it."""
        return Tensor(self.names.fresh(f"{last.name}_past"), first.type)

    # ------------------------------------------------------------ values that are read again

    def _made(self, tensor: Tensor, value: Tensor) -> None:
        """A value is there. A value of steps has those of earlier runs in front of it, as far back as some node
        reads."""
        self.values[tensor] = value
        if tensor not in self.trace.axis:
            return
        reads = self.by_tensor.get(tensor, [])
        known = dict.fromkeys(read.fill for read in reads if read.fill is not None)
        fills: list[float | None] = [*known] or [None]
        for fill in fills:
            firsts = [r.span[0] for r in reads if r.fill == fill or (r.fill is None and fill is fills[0])]
            back = self.schedule.fresh(tensor)[0] - min(firsts, default=self.schedule.fresh(tensor)[0])
            if back > 0:
                self.windows[tensor, fill] = self._window(tensor, value, back, fill)
            if fill is fills[0]:
                self.windows[tensor, None] = self.windows.get((tensor, fill), self._fresh(tensor))

    def _origins(self, tensor: Tensor) -> tuple[Origin, ...]:
        """The origins of operators that only move a tensor's steps."""
        producer = self.trace.graph.producer(tensor)
        return () if producer is None else without_keys(producer.origins)

    def _fresh(self, tensor: Tensor) -> Stretch:
        return Stretch(self.values[tensor], self.schedule.fresh(tensor)[0])

    def _window(self, tensor: Tensor, value: Tensor, back: int, fill: float | None) -> Stretch:
        new, axis = self.schedule.new[tensor], self.trace.axis[tensor]
        origins = self._origins(tensor)
        kind = self._resized(tensor, back)
        past = Tensor(self.names.fresh(f"{tensor.name}_past"), kind)
        window = Tensor(self.names.fresh(f"{tensor.name}_window"), self._resized(tensor, back + new))
        left = Tensor(self.names.fresh(f"{tensor.name}_left"), kind)
        self.nodes.append(Node(Concat(axis), (past, value), (window,), origins))
        self.nodes.append(Node(Slice(axis, new, back + new), (window,), (left,), origins))
        name = self.names.fresh(f"{past.name}_initial")
        first = constant(name, self._initial(tensor, back, fill), kind.quant, kind.dtype)
        self.states.append((past, left, first))
        return Stretch(window, self.schedule.fresh(tensor)[0] - back)

    def _initial(self, tensor: Tensor, back: int, fill: float | None) -> Array:
        """Padding; and behind it the steps that are made of padding alone, which no run computes."""
        axis, kind = self.trace.axis[tensor], self._resized(tensor, back)
        value = np.full(kind.shape, zero_of(kind) if fill is None else fill, kind.dtype.numpy)
        first = self.schedule.first(tensor)
        there = min(max(first, 0), back)
        if there:
            if self.padding is None:
                zeros = [np.zeros(t.shape, t.dtype.numpy) for t in self.trace.graph.inputs]
                self.padding = dict(evaluate(self.trace.graph, zeros))
            steps = np.arange(first - there, first)
            value[(slice(None),) * axis + (slice(back - there, None),)] = self.padding[tensor].take(
                steps, axis
            )
        return value

    def _taken(self, read: Read) -> Tensor:
        (first, last), tensor = read.span, read.tensor
        fresh = self._fresh(tensor)
        whole = self.windows.get((tensor, read.fill), self.windows[tensor, None])
        found = fresh if first >= fresh.first else whole
        return self._cut(tensor, found.tensor, first - found.first, last - found.first + 1)

    def _cut(self, of: Tensor, tensor: Tensor, start: int, stop: int) -> Tensor:
        axis = self.trace.axis[of]
        if (start, stop) == (0, tensor.shape[axis]):
            return tensor
        if (tensor, start, stop) not in self.cuts:
            shape = (*tensor.shape[:axis], stop - start, *tensor.shape[axis + 1 :])
            cut = Tensor(
                self.names.fresh(f"{tensor.name}_part"), dataclasses.replace(tensor.type, shape=shape)
            )
            self.nodes.append(Node(Slice(axis, start, stop), (tensor,), (cut,), self._origins(of)))
            self.cuts[tensor, start, stop] = cut
        return self.cuts[tensor, start, stop]


def _as_view(node: Node) -> Node:
    """A Permute of single steps often moves nothing."""
    if isinstance(node.attrs, Permute) and moves_nothing(node.input(0).shape, node.attrs.order):
        return node.replace(attrs=Reshape(node.output.shape))
    return node
