# SPDX-License-Identifier: Apache-2.0
"""What a stream does with rows, and where they lie: plain records, read by the planner, the checker and the emitter."""

from __future__ import annotations

from dataclasses import dataclass

from tinyet.ir import Node, Tensor
from tinyet.opset.sweep import Bytes


@dataclass(frozen=True)
class Place:
    """A row of a tensor: by its slot, counted from the first of a window or from the first row that there is room for
    where the tensor is whole; waiting: in the window's second place."""

    slot: int
    waiting: bool = False


@dataclass(frozen=True)
class Move:
    """`rows` rows of a window move. ahead: for the layer that is computed next; otherwise behind one."""

    tensor: Tensor
    source: Place
    target: Place
    rows: int
    ahead: bool


@dataclass(frozen=True)
class Fill:
    """Rows that stand for what is above or below the image are set to one value: `rows` of them."""

    tensor: Tensor
    target: Place
    rows: int
    value: int


@dataclass(frozen=True)
class Take:
    """The next row of the stream's first value comes from the caller."""

    tensor: Tensor
    target: Place


@dataclass(frozen=True)
class Run:
    """A layer computes its next strip. reads: of each input that is read by rows, by number, the first of its rows;
    writes: the same of the output."""

    node: Node
    reads: tuple[tuple[int, Place], ...]
    writes: Place


Action = Run | Fill | Take | Move


@dataclass(frozen=True, eq=False)
class Area:
    """Room for `slots` rows. At each action those from slot `first` up to `behind` are in use."""

    slots: int
    first: Bytes
    behind: Bytes


@dataclass(frozen=True, eq=False)
class Rows:
    """How a tensor of a stream is there: as a window, or whole, with room for `above` rows before its first and `below`
    behind its last. waiting: the window's second place, where it has one."""

    tensor: Tensor
    area: Area
    window: bool
    above: int = 0
    below: int = 0
    waiting: Area | None = None

    @property
    def row_bytes(self) -> int:
        return row_bytes(self.tensor)

    @property
    def bytes(self) -> int:
        """Of all slots, but those where rows wait."""
        return self.area.slots * self.row_bytes


def row_bytes(tensor: Tensor) -> int:
    return tensor.type.bytes // tensor.shape[1]
