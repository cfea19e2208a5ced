# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs that lie in buffers of the caller's: which blocks those are, and what may share bytes with them.

An input there is only read: nothing is written over it, and no row beside it. An output's buffer holds this output and
what is over once it is written. In a plan such a buffer has an offset behind the arena's end, where no memory is: it
tells one buffer's bytes from another's, for the check and for reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tinyet.errors import UsageError, bullet_list
from tinyet.ir import Graph, Node, Tensor
from tinyet.memory.aliases import AliasSets
from tinyet.memory.buffers import Buffer, align_up
from tinyet.memory.concat_elision import ConcatElision

BUFFER_ALIGN = 16
"""Of the offsets, in bytes; what an address needs is `MemoryPlan.buffer_align`."""


class CallerBuffers:
    """The inputs and outputs of a graph, if the caller has them; nothing otherwise."""

    def __init__(self, graph: Graph, wanted: bool) -> None:
        self.inputs = frozenset(graph.user_inputs if wanted else ())
        self.tensors = self.inputs | frozenset(graph.user_outputs if wanted else ())
        self._others = frozenset(graph.inputs)  # states, too

    def hold(self, aliases: AliasSets, tensor: Tensor) -> bool:
        """Whether a tensor's block is a buffer of the caller's."""
        return bool(self.tensors) and any(t in self.tensors for t in aliases.members(tensor))

    def allow(self, aliases: AliasSets, tensor: Tensor) -> bool:
        """Whether a tensor's block can be where it is: in the arena, or a buffer that holds one input or one output, is
        as large as that, and, of an input, is written by nobody else."""
        if not self.tensors:
            return True
        members = aliases.members(tensor)
        mine = [t for t in members if t in self.tensors]
        if not mine:
            return True
        if len(mine) > 1 or aliases.size(tensor) != mine[0].type.bytes:
            return False
        if mine[0] in self.inputs:
            return not any(aliases.owns(t) for t in members if t is not mine[0])
        return not any(t in self._others for t in members)

    def bytes_of(self, aliases: AliasSets) -> dict[str, int]:
        """The bytes of these buffers, by their blocks' names."""
        if not self.tensors:
            return {}
        return {root.name: aliases.size(root) for root in aliases.roots() if self.hold(aliases, root)}

    def counted(self, aliases: AliasSets, root: Tensor, block: Buffer) -> Buffer:
        """A block as the arena has it: of a buffer of the caller's no byte."""
        return replace(block, bytes=0) if self.hold(aliases, root) else block

    def concats(self, found: ConcatElision) -> frozenset[Node]:
        """The concatenations whose elision would put two buffers, or an input, among others' pixels."""
        wrong = set[Node]()
        for group in found.groups:
            mine = [t for t in group.at if t in self.tensors]
            if len(mine) > 1 or any(t in self.inputs for t in mine):
                wrong.update(node for node in found.elided if node.output in group.at)
        return frozenset(wrong)

    def offsets(self, sizes: Mapping[str, int], arena_bytes: int) -> dict[str, int]:
        """Of these buffers, by their blocks' names, one behind another behind the arena."""
        found, at = {}, first_offset(arena_bytes)
        for name, size in sizes.items():
            found[name] = at
            at = align_up(at + size, BUFFER_ALIGN)
        return found


def first_offset(arena_bytes: int) -> int:
    """Of the caller's buffers behind an arena; C has none without bytes."""
    return align_up(max(arena_bytes, 1), BUFFER_ALIGN)


def check_ends(graph: Graph) -> None:
    """Raise UsageError for a graph whose ends cannot each be a buffer of its own."""
    outputs = graph.user_outputs
    problems = [
        f"output {number} is input {graph.user_inputs.index(t)}, {t.name}, as it is"
        for number, t in enumerate(outputs)
        if t in graph.user_inputs
    ]
    problems += [
        f"output {number} is output {outputs.index(t)}, {t.name}, once more"
        for number, t in enumerate(outputs)
        if outputs.index(t) < number
    ]
    problems += [
        f"output {number} is the state {t.name}"
        for number, t in enumerate(outputs)
        if any(t in (state.value, state.next) for state in graph.states)
    ]
    if problems:
        raise UsageError(
            f"these have no buffer of their own:\n{bullet_list(problems)}",
            "--buffers caller",
            "leave such outputs away, or --buffers arena",
        )
