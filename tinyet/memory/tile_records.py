# SPDX-License-Identifier: Apache-2.0
"""A fusion group's actions on rows, and the rows' places: plain records, read by the planner, the checker and the
emitter. Those that there are thousands of are named tuples, which are made faster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tinyet.ir import Node, Tensor
from tinyet.opset.access_order import Bytes


class Place(NamedTuple):
    """A row of a tensor: by its slot, counted from the first of a window or from the first row that there is room for
    where the tensor is whole. start: of a stacked window, its first byte at this action."""

    slot: int
    start: int = 0


@dataclass(frozen=True)
class Move:
    """The oldest `gone` rows of a window are not needed any more; the `kept` others move to its start."""

    tensor: Tensor
    gone: int
    kept: int


@dataclass(frozen=True)
class Open:
    """The stacked window of a tensor gets `bytes` bytes more at its end. behind: it was empty, and begins where the
    window of that number ends, or at the start of the stacked buffers for -1."""

    tensor: Tensor
    bytes: int
    behind: int | None


@dataclass(frozen=True)
class Close:
    """The oldest rows of a stacked window, so many bytes, are not needed any more."""

    tensor: Tensor
    bytes: int


@dataclass(frozen=True)
class Shift:
    """The stacked windows from number `first` to `last` move up by so many bytes, or down where `by` is negative. They
    lie in `bytes` bytes from `start` on."""

    first: int
    last: int
    start: int
    bytes: int
    by: int


@dataclass(frozen=True)
class Fill:
    """Padding rows above or below the image are set to one value: `rows` of them."""

    tensor: Tensor
    target: Place
    rows: int
    value: int


@dataclass(frozen=True)
class Repeat:
    """Padding rows become copies of the image's row beside them: `rows` of them, above its first or below its last."""

    tensor: Tensor
    target: Place
    rows: int
    above: bool


@dataclass(frozen=True)
class Take:
    """The next row of the fusion group's first value comes from the caller."""

    tensor: Tensor
    target: Place


@dataclass(frozen=True, eq=False)
class TiledInput:
    """The value whose rows come from the caller. input: the graph's; views: of it, one of another; a fusion group
    takes the last one: the caller gives rows of that."""

    input: Tensor
    views: tuple[Node, ...] = ()

    @property
    def tensor(self) -> Tensor:
        """Under the name that layers read."""
        return self.views[-1].outputs[0] if self.views else self.input

    @property
    def names(self) -> tuple[Tensor, ...]:
        """All tensors that are these bytes."""
        return (self.input, *(node.outputs[0] for node in self.views))


class Run(NamedTuple):
    """A layer computes its next tile. reads: of each input that is read by rows, by number, the first of its rows;
    writes: the same of the output, if it consists of rows. again: how many of its last rows the next tile computes
    once more. top: the number of the stacked window at whose end all end."""

    node: Node
    reads: tuple[tuple[int, Place], ...]
    writes: Place
    again: int = 0
    top: int = 0


Action = Run | Fill | Repeat | Take | Move | Open | Close | Shift


@dataclass(frozen=True, eq=False)
class LineBuffer:
    """The form of a tensor of a fusion group: a window of `slots` rows, or whole, with room for `above` rows
    before its first and `below` behind its last. At each action the slots from `first` up to `behind` are in use.

    axis: of the tensor, that is its rows. number: of a stacked window, from the lowest on; tensors that are never there
    at once may share one. start: its first byte at each action.
    """

    tensor: Tensor
    slots: int
    window: bool
    number: int | None
    above: int
    below: int
    first: Bytes
    behind: Bytes
    start: Bytes
    axis: int

    @property
    def stacked(self) -> bool:
        return self.number is not None

    @property
    def row_bytes(self) -> int:
        return row_bytes(self.tensor, self.axis)

    @property
    def height(self) -> int:
        """Rows of the tensor."""
        return self.tensor.shape[self.axis]

    @property
    def bytes(self) -> int:
        """Of all slots."""
        return self.slots * self.row_bytes


def row_bytes(tensor: Tensor, axis: int) -> int:
    return tensor.type.bytes // tensor.shape[axis]
