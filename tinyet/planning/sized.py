# SPDX-License-Identifier: Apache-2.0
"""Kernels for nodes whose size is known only at run time: those whose calls at all sizes are one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from tinyet.boards.cpus import Target
from tinyet.ir import Graph, Node, Size
from tinyet.memory.views import View, views
from tinyet.ops import op_of
from tinyet.opset import Call, Kernel
from tinyet.sizes import resize
from tinyet.sizes.merge import DifferentCalls, merged

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Sizing:
    """A graph at every value of its size.

    graph: for the largest. graphs: of each value, ascending, with the same nodes in the same order.
    """

    graph: Graph
    size: Size
    graphs: tuple[Graph, ...]

    @cached_property
    def _number(self) -> dict[Node, int]:
        return {node: number for number, node in enumerate(self.graph.nodes)}

    def at_all(self, node: Node) -> tuple[Node, ...]:
        """The node at each value of the size."""
        number = self._number[node]
        return tuple(graph.nodes[number] for graph in self.graphs)

    def knows(self, node: Node) -> bool:
        """Whether the graph has it."""
        return node in self._number

    def depends(self, node: Node) -> bool:
        """Whether the node is another one at another value of the size."""
        number = self._number.get(node)
        return number is not None and self.graphs[0].nodes[number] is not node

    def kernel(self, node: Node, kernel: Kernel) -> Kernel:
        """The kernel as it is for a node at all sizes: it makes calls for all, on row-major tensors, and says nothing
        of its order, which is known for one size only."""
        return replace(
            kernel,
            lower=_Lower(self, kernel),
            layout_support=None,
            access_order=None,
            replaces=None if kernel.replaces is None else _Replaces(self, kernel),
            always_called=not self.same_views(node),
        )

    def why_not(self, node: Node, kernel: Kernel, target: Target) -> str | None:
        """Why it cannot compute the node at all sizes by one call; it can at the largest."""
        nodes = self.at_all(node)
        for some in (_few(nodes), nodes):
            for each in some:
                reason = kernel.why_not(each, target)
                if reason is not None:
                    return f"at another {self.size.name}: {reason}"
            try:
                self._merged(kernel, some, target)
            except DifferentCalls as error:
                return f"for one {self.size.name} only: {error}"
        return None

    def merged(self, kernel: Kernel, node: Node, target: Target) -> Call:
        return self._merged(kernel, self.at_all(node), target)

    def _merged(self, kernel: Kernel, nodes: Sequence[Node], target: Target) -> Call:
        values = self.size.values if len(nodes) == len(self.graphs) else _few(self.size.values)
        calls = [kernel.lower(each, target) for each in nodes]
        return merged(calls, values, open_code=kernel.open_code)

    def same_views(self, node: Node) -> bool:
        """Whether an output whose bytes are an input's lies at the same place of it at every size. A few sizes decide;
        the check of the plan proves it for all."""
        op = op_of(node)
        if op.view:
            return True
        places = [_places(views(each, op)) for each in _few(self.at_all(node))]
        return places[-1] is None or all(place == places[-1] for place in places)


@dataclass(frozen=True, eq=False)
class _Lower:
    sizing: Sizing
    kernel: Kernel

    def __call__(self, node: Node, target: Target) -> Call:
        if not self.sizing.knows(node):  # one with other weights, which are the same at all sizes
            return self.kernel.lower(node, target)
        return self.sizing.merged(self.kernel, node, target)


@dataclass(frozen=True, eq=False)
class _Replaces:
    sizing: Sizing
    kernel: Kernel

    def __call__(self, node: Node, index: int) -> bool:
        replaces = self.kernel.replaces
        # The check of a plan at another size asks of that size's node.
        nodes = self.sizing.at_all(node) if self.sizing.depends(node) else (node,)
        return replaces is not None and all(replaces(each, index) for each in nodes)


def _few(found: Sequence[_T]) -> list[_T]:
    """The first, one in the middle, the one before the last, and the last."""
    numbers = sorted({0, len(found) // 2, max(len(found) - 2, 0), len(found) - 1})
    return [found[number] for number in numbers]


def _places(found: tuple[View, ...] | None) -> list[tuple[int, int, int, int]] | None:
    return None if found is None else [(v.output, v.start, v.input, v.input_start) for v in found]


def sizing_of(graph: Graph, size: Size) -> Sizing:
    """Raises ModelError for nodes that are for one size alone."""
    return Sizing(graph, size, tuple(resize(graph, size, value) for value in size.values))
