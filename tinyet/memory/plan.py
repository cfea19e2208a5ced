# SPDX-License-Identifier: Apache-2.0
"""Decisions of memory planning: plain records, read by the emitter, the reports and the checker alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tinyet.errors import InternalError
from tinyet.ir import Node, Tensor
from tinyet.memory.fusion import FusionGroup, LineBuffer
from tinyet.memory.tile_records import Place
from tinyet.opset import DataLayout, Layouts

MARK = "whether the states are set"
"""Of the block that is that word. No tensor's name holds a space, so this cannot be one."""
MARK_BYTES = 4


@dataclass(frozen=True)
class Lifetime:
    """Calls between which a value must be kept, both included, as indices into `MemoryPlan.calls`.

    -1 is the moment before the first call, when the caller writes the inputs; `len(calls)` the one after
    the last, when the caller reads the outputs.
    """

    first: int
    last: int


@dataclass(frozen=True)
class Block:
    """One piece of the arena, in bytes: a tensor and its views, or line buffers, or in-place results."""

    name: str
    offset: int
    bytes: int
    lifetime: Lifetime


@dataclass(frozen=True)
class Storage:
    """Where a tensor's bytes lie: `offset` bytes into `blocks[block]`.

    pixel_stride: bytes from one pixel, all values of the last axis, to the next, where other tensors' values lie
    between them; 0 where nothing does. data_layout: how its values lie where not row-major.
    """

    block: int
    offset: int
    pixel_stride: int = 0
    data_layout: DataLayout | None = None


@dataclass(frozen=True)
class MemoryPlan:
    """The arena of one graph.

    order:       every node, each after those it reads from; an elided one as soon as its value is complete.
    calls:       the nodes of `order` that a kernel has to compute.
    elided:      nodes without a kernel call: their outputs already lie where they should.
    overwrites:  for a call that works in place, (input index, output index): both have the same address.
    overlaps:    for a call whose only output lies partly over inputs that it is the last to read, as its kernel says it
                 may (`opset.AccessOrder`), these inputs' indices.
    alive:       bytes alive at the worst step of each call, and while layers of fusion groups compute: from the
    moment before
        the first to that after the last.
    storage:     every tensor that is not a constant.
    lifetimes:   per tensor, from the call that completes it to the last that reads its bytes, under any name.
    scratch:     offset in the arena of a call's scratch memory, for calls that have any.
    arena_bytes: size of the arena.
    lower_bound: largest number of bytes alive at once, of each block from its first to its last, alignment counted,
                 where a call is as many moments as its kernel says it has steps; with these blocks, and kernels that
                 promise no more, no arena is smaller.
    optimal:     no placement of these blocks is smaller than `arena_bytes`: that is the bound, or all were tried.
    order_optimal: no order of execution keeps fewer bytes alive at its worst moment (results over an input, wholly
                 or partly, counted only where input and output fill their blocks).
    given_order_bytes: bytes alive at the worst moment of the graph's own order, in the same terms.
    fusion_groups:     successive calls of `calls` that are computed by rows, together.
    kept_bytes:  of the arena's start, where nothing but states and their mark lies, if the plan keeps them apart; 0 if
                 they lie anywhere, or there are none.
    mark:        offset in the arena of the word of `MARK_BYTES` that says whether the states are set; None where there
                 are none. It is a block like those of the states.
    buffers_from: where inputs and outputs lie in the caller's buffers, not in the arena: the least offset of their
                 blocks, which is behind the arena; None where they lie in it.
    second_from: of an arena in two pieces, the first offset of the second, which ends at `arena_bytes`; None where the
                 arena is one piece.
    """

    order: tuple[Node, ...]
    calls: tuple[Node, ...]
    elided: tuple[Node, ...]
    overwrites: Mapping[Node, tuple[int, int]]
    overlaps: Mapping[Node, tuple[int, ...]]
    alive: tuple[int, ...]
    blocks: tuple[Block, ...]
    storage: Mapping[Tensor, Storage]
    lifetimes: Mapping[Tensor, Lifetime]
    scratch: Mapping[Node, int]
    arena_bytes: int
    lower_bound: int
    optimal: bool
    order_optimal: bool
    given_order_bytes: int
    fusion_groups: tuple[FusionGroup, ...] = ()
    mark: int | None = None
    kept_bytes: int = 0
    buffers_from: int | None = None
    second_from: int | None = None

    @property
    def first_bytes(self) -> int:
        """Of the arena, or of its first piece."""
        return self.arena_bytes if self.second_from is None else self.second_from

    def in_second(self, offset: int) -> bool:
        """Whether an offset in the arena is one of its second piece."""
        return self.second_from is not None and offset >= self.second_from

    def is_callers(self, tensor: Tensor) -> bool:
        """Whether a tensor's bytes lie in a buffer of the caller's."""
        return self.beside(self.blocks[self._storage(tensor).block])

    def beside(self, block: Block) -> bool:
        """Whether a block is a buffer of the caller's."""
        return self.buffers_from is not None and block.offset >= self.buffers_from

    def buffer_align(self, tensor: Tensor) -> int:
        """Of the address of a tensor that has a buffer of the caller's, in bytes; 0 for others. All kernels count on
        words."""
        return max(4, tensor.dtype.bytes) if self.is_callers(tensor) else 0

    @property
    def arena_blocks(self) -> tuple[Block, ...]:
        """The blocks that are in the arena."""
        return tuple(block for block in self.blocks if not self.beside(block))

    @property
    def buffer_blocks(self) -> tuple[Block, ...]:
        """The caller's buffers."""
        return tuple(block for block in self.blocks if self.beside(block))

    @property
    def end(self) -> int:
        """Behind all offsets: the arena's bytes, or the end of the last of the caller's buffers."""
        return max([self.arena_bytes, *(block.offset + block.bytes for block in self.buffer_blocks)])

    def offset(self, tensor: Tensor) -> int:
        """Byte offset of a tensor in the arena, or of the stacked buffers with its window; raises InternalError for a
        constant or a stranger."""
        storage = self._storage(tensor)
        return self.blocks[storage.block].offset + storage.offset

    def pixel_stride(self, tensor: Tensor) -> int:
        """Bytes from pixel to pixel of a tensor that has others' values between them; 0 for all others."""
        return self._storage(tensor).pixel_stride

    def data_layout(self, tensor: Tensor) -> DataLayout | None:
        """The layout of a tensor's values; None for row-major, with gaps or without."""
        return self._storage(tensor).data_layout

    def layouts(self, node: Node) -> Layouts:
        """How a node's first input, where that is in the arena, and its first output lie."""
        first, output = node.inputs[0] if node.inputs else None, node.outputs[0]
        if first is None or first.is_constant:
            return Layouts(output=self.pixel_stride(output), writes=self.data_layout(output))
        return Layouts(
            self.pixel_stride(first),
            self.pixel_stride(output),
            self.data_layout(first),
            self.data_layout(output),
        )

    def size(self, tensor: Tensor) -> int:
        """Bytes of a tensor's values as they lie, without gaps between them."""
        found = self.data_layout(tensor)
        return tensor.type.bytes if found is None else found.size(tensor)

    def fusion_group(self, node: Node) -> FusionGroup | None:
        """The fusion group that a call is a layer of; None for all others."""
        return next((found for found in self.fusion_groups if node in found.rules), None)

    def runs(self, node: Node) -> int:
        """Number of calls: one, or one for each tile."""
        found = self.fusion_group(node)
        return 1 if found is None else found.runs(node)

    def row_offset(self, rows: LineBuffer, place: Place) -> int:
        """Byte offset in the arena of a row of a fusion group's tensor."""
        return self.offset(rows.tensor) + place.start + (place.slot - rows.above) * rows.row_bytes

    def line_buffer(self, tensor: Tensor) -> LineBuffer | None:
        """The window that a tensor passes through, where it is never there as a whole."""
        found = (fusion_group.passing(tensor) for fusion_group in self.fusion_groups)
        return next((rows for rows in found if rows is not None), None)

    def input_line_buffer(self, tensor: Tensor) -> LineBuffer | None:
        """The window of a graph's input that comes from the caller row by row; None for all others."""
        taken = any(s.tiled_input is not None and tensor is s.tiled_input.input for s in self.fusion_groups)
        return self.line_buffer(tensor) if taken else None

    def form(self, tensor: Tensor) -> str:
        """The layout of a tensor in words; empty for row-major without gaps."""
        window = self.line_buffer(tensor)
        if window is not None:
            return f"{window.slots} of {window.height} rows at a time"
        found = self.data_layout(tensor)
        if found is not None:
            return found.description
        return f"a pixel every {self.pixel_stride(tensor)} bytes" if self.pixel_stride(tensor) else ""

    def extent(self, tensor: Tensor) -> int:
        """Bytes from the tensor's first one to behind its last; of the window that it passes through."""
        window = self.line_buffer(tensor)
        if window is not None:
            return window.bytes
        run, pixel_stride = _pixel(tensor), self.pixel_stride(tensor)
        return (tensor.type.bytes // run - 1) * pixel_stride + run if pixel_stride else self.size(tensor)

    def over(self, node: Node) -> dict[Tensor, int]:
        """The inputs that the output of a call lies partly over, each with how many bytes the two have in common."""
        found = {}
        for tensor in (node.input(index) for index in self.overlaps.get(node, ())):
            start = max(self.offset(tensor), self.offset(node.output))
            ends = (self.offset(t) + self.extent(t) for t in (tensor, node.output))
            found[tensor] = min(ends) - start
        return found

    def dense(self, tensor: Tensor, extent: bytes) -> bytes:
        """The tensor's bytes, one after another, out of those of its extent."""
        run, pixel_stride = _pixel(tensor), self.pixel_stride(tensor)
        found = self.data_layout(tensor)
        if found is not None:
            return found.row_major(tensor, extent)
        if not pixel_stride:
            return extent
        return b"".join(extent[at : at + run] for at in range(0, len(extent), pixel_stride))

    def _storage(self, tensor: Tensor) -> Storage:
        storage = self.storage.get(tensor)
        if storage is None:
            raise InternalError(f"tensor {tensor.name} has no place in the arena")
        return storage


def _pixel(tensor: Tensor) -> int:
    """Bytes of the last axis."""
    return tensor.shape[-1] * tensor.dtype.bytes if tensor.shape else tensor.dtype.bytes
