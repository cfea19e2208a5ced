# SPDX-License-Identifier: Apache-2.0
"""The order of dimensions of every value, chosen so that as few bytes as possible change their order.

All Permutes are removed. Each operator that can work in several orders (layout_domains.py) then gets one. Operators
that cannot choose, inputs and outputs of the graph give the orders from which all others follow. If a value is then
read in another order than it is written, a Permute is inserted: once a value and order, and none if only dimensions
of size 1 change places or if constant weights can absorb it (layout_apply.py).

For each order that a fixed operator requires, the search spreads it as far as possible, and improves the result
operator by operator; it starts from the given graph and takes only strictly better results, so it never makes it
worse.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tinyet.ir import Graph, Node, Tensor
from tinyet.ops import op_of
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.ops.linear import Linear
from tinyet.ops.permute import Permute
from tinyet.ops.reshape import Reshape
from tinyet.opset import pointwise
from tinyet.passes.layout_domains import Frame, Label, Layout, canonical, frame_of

Labels = Mapping[Node, Label]

# A tie is decided for conversions late in the graph, where they may still disappear.
_BYTE = 1 << 16


@dataclass(frozen=True, eq=False)
class Use:
    """One read of a value through any number of Permutes.

    node, port: the reader (None: output number `port` of the graph). order: axes of the value as the reader's
    input has them. permutes: the Permutes on the way. absorbed: a Reshape before Linear layers whose weights
    take up any order of the input's axes from this one on; None for all others.
    """

    node: Node | None
    port: int
    order: Layout
    permutes: tuple[Node, ...] = ()
    absorbed: int | None = None

    def on_value(self, layout: Layout) -> Layout:
        """A layout of the reader's input as a layout of the value."""
        return tuple(self.order[axis] for axis in layout)

    def on_input(self, layout: Layout) -> Layout:
        """A layout of the value as one of the reader's input."""
        return tuple(self.order.index(axis) for axis in layout)


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor that is not computed by a Permute, and all of its uses."""

    tensor: Tensor
    producer: Node | None
    uses: tuple[Use, ...]


class Problem:
    """The graph without its Permutes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.frames: dict[Node, Frame] = {}
        self.linears: dict[Node, tuple[Node, ...]] = {}  # absorbing Reshape → the layers behind it
        frozen: set[Node] = set()
        for node in graph.nodes:
            found = linears_behind(graph, node)
            if found is not None:
                self.linears[node] = found[0]
                frozen.update((node, *found[1]))
        for node in graph.nodes:
            frame = None if node in frozen or isinstance(node.attrs, Permute) else frame_of(node)
            if frame is not None:
                self.frames[node] = frame
        self.roots: dict[Tensor, tuple[Tensor, Use]] = {}
        self.values = self._values()
        self.first_use = {use.node: use for value in self.values for use in reversed(value.uses) if use.node}
        self.around: dict[Node, list[Value]] = {node: [] for node in self.frames}
        for value in self.values:
            for end in dict.fromkeys((value.producer, *(use.node for use in value.uses))):
                if end in self.around:
                    self.around[end].append(value)

    def _values(self) -> list[Value]:
        uses: dict[Tensor, list[Use]] = {t: [] for t in self.graph.inputs}
        for node in self.graph.nodes:
            if isinstance(node.attrs, Permute):
                source, path = self.trace(node.input(0))
                order = tuple(path.order[axis] for axis in node.attrs.order)
                self.roots[node.output] = source, Use(None, 0, order, (*path.permutes, node))
                continue
            for port, tensor in enumerate(node.inputs):
                if tensor is not None:
                    source, path = self.trace(tensor)
                    absorbed = _first_absorbed(node) if node in self.linears else None
                    uses.setdefault(source, []).append(Use(node, port, path.order, path.permutes, absorbed))
            for tensor in node.outputs:
                uses[tensor] = []
        for index, tensor in enumerate(self.graph.outputs):
            source, path = self.trace(tensor)
            uses.setdefault(source, []).append(Use(None, index, path.order, path.permutes))
        # A constant has the order that its reader wants.
        return [Value(t, self.graph.producer(t), tuple(u)) for t, u in uses.items() if not t.is_constant]

    def trace(self, tensor: Tensor) -> tuple[Tensor, Use]:
        """The value behind the Permutes that compute the tensor, and the way there."""
        return self.roots.get(tensor, (tensor, Use(None, 0, tuple(range(len(tensor.shape))))))

    @property
    def identity(self) -> dict[Node, Label]:
        return {node: frame.identity for node, frame in self.frames.items()}

    def written(self, value: Value, labels: Labels) -> Layout:
        """The layout in which a value is computed."""
        if value.producer in self.frames:
            return self.frames[value.producer].output.layout(labels[value.producer])
        return tuple(range(len(value.tensor.shape)))

    def wanted(self, use: Use, labels: Labels) -> Layout:
        """The layout of the reader's input that it wants."""
        port = self.frames[use.node].inputs[use.port] if use.node in self.frames else None
        if port is None or use.node is None:
            return tuple(range(len(use.order)))
        return port.layout(labels[use.node])

    def absorbs(self, use: Use, shape: tuple[int, ...], written: Layout) -> bool:
        """Whether the axes that the weights do not see are in front and in order."""
        if use.absorbed is None:
            return False
        sizes = tuple(shape[axis] for axis in use.order)
        seen = canonical(use.on_input(written), sizes)
        fixed = canonical(tuple(range(use.absorbed)), sizes)
        return seen[: len(fixed)] == fixed

    def value_cost(self, value: Value, labels: Labels) -> int:
        shape, written = value.tensor.shape, self.written(value, labels)
        have, orders, readers = canonical(written, shape), set(), 0
        for use in value.uses:
            want = canonical(use.on_value(self.wanted(use, labels)), shape)
            if want != have and not self.absorbs(use, shape, written):
                orders.add(want)
                readers += use.node in self.frames
        return len(orders) * value.tensor.type.bytes * _BYTE + readers

    def cost_around(self, node: Node, labels: Labels) -> int:
        """The part of the cost of all that depends on one operator's label."""
        own = self.frames[node].cost(labels[node])
        return own * _BYTE + sum(self.value_cost(value, labels) for value in self.around[node])


def linears_behind(graph: Graph, node: Node) -> tuple[tuple[Node, ...], tuple[Node, ...]] | None:
    """(Linear layers with constant weights, pointwise operators between) if a Reshape feeds only these."""
    if not isinstance(node.attrs, Reshape) or not node.output.shape:
        return None
    linears: dict[Node, None] = {}
    between: list[Node] = []
    reached = [node.output]
    for tensor in reached:
        consumers = graph.consumers(tensor)
        if tensor in graph.outputs or not consumers:
            return None
        for consumer in consumers:
            if pointwise(op_of(consumer), consumer):
                between.append(consumer)
                reached.append(consumer.output)
            elif isinstance(consumer.attrs, Linear | DynamicLinear) and consumer.input(1).is_constant:
                linears[consumer] = None
            else:
                return None
    return (tuple(linears), tuple(between)) if _first_absorbed(node) is not None else None


def _first_absorbed(node: Node) -> int | None:
    """The first axis of a Reshape's input that becomes part of the output's last one, if all behind it do."""
    shape, width = node.input(0).shape, node.output.shape[-1]
    return next((axis for axis in range(len(shape)) if math.prod(shape[axis:]) == width), None)


# ---------------------------------------------------------------- search


def choose_labels(problem: Problem) -> dict[Node, Label]:
    """Labels of all operators that have a frame, at most as costly as the identities."""
    labels = problem.identity
    proposals = _proposals(problem)
    candidates: dict[Node, dict[Label, None]] = {node: {label: None} for node, label in labels.items()}
    for proposal in proposals:
        for node, label in proposal.items():
            candidates[node][label] = None
    search = _Search(problem, labels, {node: tuple(found) for node, found in candidates.items()})
    # At first any label may improve; after that, only labels near a change.
    improved = bool(proposals)
    if improved and not search.take_if_better(proposals[0], everywhere=True):
        search.improve(labels)
    while improved:
        improved = False
        for proposal in proposals:
            improved |= search.take_if_better(proposal)
    return labels


class _Search:
    """Labels that change, and the nodes that a change concerns. Nothing else is looked at, so a change costs the same
    in a long graph as in a short one."""

    def __init__(
        self, problem: Problem, labels: dict[Node, Label], candidates: Mapping[Node, tuple[Label, ...]]
    ) -> None:
        self.problem = problem
        self.labels = labels
        self.candidates = candidates
        self.number = {node: index for index, node in enumerate(labels)}

    def take_if_better(self, proposal: Mapping[Node, Label], *, everywhere: bool = False) -> bool:
        """Relabel as proposed, improve the neighbours (or everything), and keep the result if it costs less than
        before."""
        before = {node: self.labels[node] for node in proposal if self.labels[node] != proposal[node]}
        if not before:
            return False
        self.labels.update((node, proposal[node]) for node in before)
        concerned = dict.fromkeys((*before, *(n for node in before for n in self.neighbours(node))))
        for node, label in self.improve(self.labels if everywhere else concerned).items():
            before.setdefault(node, label)
        after = {node: self.labels[node] for node in before}
        cost = self.cost_of(before)
        self.labels.update(before)
        if cost >= self.cost_of(before):
            return False
        self.labels.update(after)
        return True

    def cost_of(self, nodes: Iterable[Node]) -> int:
        """The part of the cost that depends on the labels of these nodes."""
        values = dict.fromkeys(value for node in nodes for value in self.problem.around[node])
        own = sum(self.problem.frames[node].cost(self.labels[node]) for node in nodes)
        return own * _BYTE + sum(self.problem.value_cost(value, self.labels) for value in values)

    def neighbours(self, node: Node) -> Iterator[Node]:
        """Operators that have a choice and read or write a value that this one reads or writes."""
        for value in self.problem.around[node]:
            for other in (value.producer, *(use.node for use in value.uses)):
                if other is not None and other is not node and len(self.candidates.get(other, ())) > 1:
                    yield other

    def improve(self, nodes: Iterable[Node]) -> dict[Node, Label]:
        """Change single labels as long as that lowers the cost, starting with these nodes; returns the changed nodes'
        old labels."""
        labels, changed = self.labels, dict[Node, Label]()
        choices = (node for node in nodes if len(self.candidates[node]) > 1)
        queue = deque(sorted(choices, key=self.number.__getitem__))
        queued = set(queue)
        while queue:
            node = queue.popleft()
            queued.discard(node)
            before = labels[node]
            costs: dict[Label, int] = {}
            for label in dict.fromkeys((before, *self.candidates[node])):
                labels[node] = label
                costs[label] = self.problem.cost_around(node, labels)
            best = min(costs, key=lambda label: costs[label])
            if costs[best] == costs[before]:
                labels[node] = before
                continue
            labels[node] = best
            changed.setdefault(node, before)
            for other in self.neighbours(node):
                if other not in queued:
                    queue.append(other)
                    queued.add(other)
        return changed


def _proposals(problem: Problem) -> list[dict[Node, Label]]:
    """For each end of a value that is fixed, and then for those that are as good as that, the labels under which the
    order that it has in the graph spreads without a conversion."""
    found: dict[tuple[tuple[int, Label], ...], dict[Node, Label]] = {}
    number = {node: index for index, node in enumerate(problem.frames)}
    identity = problem.identity
    reached: set[tuple[Value, Layout]] = set()
    fixed = [(value, layout) for value in problem.values for layout in _given(value, problem, framed=False)]
    stiff = [(value, layout) for value in problem.values for layout in _given(value, problem, framed=True)]
    for value, seed in (*fixed, *stiff):
        # An order that has come before spreads as it did then.
        if (value, seed) in reached:
            continue
        labels = _spread(problem, value, seed, reached)
        if any(label != identity[node] for node, label in labels.items()):
            key = tuple(sorted((number[node], label) for node, label in labels.items()))
            found.setdefault(key, labels)
    return list(found.values())


def _given(value: Value, problem: Problem, *, framed: bool) -> list[Layout]:
    """The orders that a value has in the graph for its ends: those without a frame, or those whose frame does not take
    every order."""

    def wanted(node: Node | None) -> bool:
        frame = None if node is None else problem.frames.get(node)
        return frame is not None and not frame.free if framed else frame is None

    orders = [use.order for use in value.uses if wanted(use.node) and use.absorbed is None]
    if wanted(value.producer):
        orders.insert(0, tuple(range(len(value.tensor.shape))))
    return list(dict.fromkeys(orders))


def _spread(
    problem: Problem, start: Value, layout: Layout, reached: set[tuple[Value, Layout]]
) -> dict[Node, Label]:
    """Labels of the operators around a value, theirs neighbours and so on, when the value has this layout. Adds the
    values that it comes to, with their layouts, to `reached`."""
    labels: dict[Node, Label] = {}
    seen = {start}
    queue = deque([(start, layout)])
    while queue:
        value, layout = queue.popleft()
        reached.add((value, layout))
        ends = [(use.node, use) for use in value.uses if use.node is not None]
        for node, use in [(value.producer, None), *ends]:
            if node is None or node in labels or node not in problem.frames:
                continue
            frame = problem.frames[node]
            port = frame.output if use is None else frame.inputs[use.port]
            label = None if port is None else port.label(layout if use is None else use.on_input(layout))
            if label is None or frame.relabel(label) is None:
                continue
            labels[node] = label
            for other in problem.around[node]:
                if other not in seen:
                    seen.add(other)
                    queue.append((other, _layout_at(problem, other, node, label)))
    return labels


def _layout_at(problem: Problem, value: Value, node: Node, label: Label) -> Layout:
    """The layout that a node's label gives to one of the values around it."""
    frame = problem.frames[node]
    if value.producer is node:
        return frame.output.layout(label)
    for use in value.uses:
        port = frame.inputs[use.port] if use.node is node else None
        if port is not None:
            return use.on_value(port.layout(label))
    return tuple(range(len(value.tensor.shape)))
