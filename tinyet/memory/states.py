# SPDX-License-Identifier: Apache-2.0
"""The places of states: a state's value and its next value share one place, which belongs to nothing else. A word in
the arena says whether they are set."""

from __future__ import annotations

from collections.abc import Iterable

from tinyet.errors import InternalError
from tinyet.ir import Graph, Node, Tensor
from tinyet.memory.aliases import AliasSets
from tinyet.memory.buffers import Buffer
from tinyet.memory.candidate_plan import FusionRefusedError, variables_of
from tinyet.memory.plan import MARK, MARK_BYTES
from tinyet.ops.state_write import StateWrite


class States:
    """The states of a graph. kept: for each StateWrite, its output and the state's value.

    A value is there before the first call, like an input, and a StateWrite's result after the last, like an output: the
    block that holds both is alive throughout.
    """

    def __init__(self, graph: Graph) -> None:
        self.kept = {
            node: (node.output, node.input(1)) for node in graph.nodes if isinstance(node.attrs, StateWrite)
        }
        self._survive = bool(graph.states)

    def refuse_spread(self, tensor: Tensor) -> None:
        """Raise FusionRefusedError for a tensor that cannot have room around it."""
        if any(tensor in ends for ends in self.kept.values()):
            raise FusionRefusedError(f"{tensor.name} is a state")

    def place(self, aliases: AliasSets) -> None:
        """Join each state's two ends, which are alone in their blocks."""
        for output, value in self.kept.values():
            if not aliases.join(value, 0, output, 0, lambda _value, _next: True):
                raise InternalError(f"state {value.name} is no place for {output.name}", "memory planner")

    def mark(self, calls: int) -> list[Buffer]:
        """The word that says whether the states are set, where there are states; it is alive as long as they are.

        It is in the arena because they are: both are kept or lost together.
        """
        return [Buffer(MARK, MARK_BYTES, -1, calls, MARK_BYTES)] if self._survive else []

    def before(self, aliases: AliasSets, node: Node, calls: Iterable[Node]) -> list[Node]:
        """The calls that read bytes over which a StateWrite writes; of any other node none."""
        if node not in self.kept:
            return []
        output, _ = self.kept[node]
        root, (start, end) = aliases.root(output), aliases.extent(output)
        return [
            call
            for call in calls
            if call not in self.kept
            and any(
                aliases.root(t) is root and aliases.extent(t)[0] < end and start < aliases.extent(t)[1]
                for t in variables_of(call)
            )
        ]
