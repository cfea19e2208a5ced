# SPDX-License-Identifier: Apache-2.0
"""In which of a board's memories the arena, the state and the weights lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tinyet.boards import Memory

ARENA, STATE, WEIGHTS = "arena", "state", "weights"
"""What can be placed, beside the weights of a layer, by its name."""
PIECES = "+"
"""Between two memories, of an arena in two pieces: of the one of the first piece, and of that of the second."""
SECOND = "arena, second piece"
"""The name of that object, in reports."""
AUTO = "auto"
"""In place of a memory: the one that the estimate of accesses speaks for."""


@dataclass(frozen=True)
class Places:
    """arena, state: None for the RAM, where all variables go. weights: by the layer's name, for those that do not lie
    in the flash. Where their memory can be written, they lie in flash, too, and are copied there at the start.
    ahead: layers whose weights are copied into the arena right before each call, as memory that it works in. second: of
    an arena in two pieces, the memory of the second, which may be the RAM; None for one piece."""

    arena: Memory | None = None
    state: Memory | None = None
    weights: Mapping[str, Memory] = field(default_factory=dict)
    ahead: frozenset[str] = frozenset()
    second: Memory | None = None

    @property
    def memories(self) -> tuple[Memory, ...]:
        """Each memory that something has been placed in, once, in order."""
        found = [self.arena, self.second, self.state, *self.weights.values()]
        return tuple(dict.fromkeys(memory for memory in found if memory is not None))

    @property
    def copies(self) -> bool:
        """Whether something is copied at the start."""
        return any(not memory.read_only for memory in self.weights.values())


USUAL = Places()
"""Arena and state in the RAM, weights in the flash."""
