# SPDX-License-Identifier: Apache-2.0
"""The flatbuffer of a .tet file (program.fbs) as plain records: what stands in the file, not yet what it means.

Nothing is believed when reading: every offset and length is held against the file's own, and all that is read together
may not be more than there is, so that a small file cannot stand for a large one. Work and memory are bounded by the
file's size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import flatbuffers
import numpy as np

IDENTIFIER = b"TNYT"

T = TypeVar("T")


@dataclass(slots=True)
class QuantRecord:
    """axis: -1 for none."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int = -1


@dataclass(slots=True)
class TensorRecord:
    """data: little endian, row-major; None for what is computed."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    quant: QuantRecord | None
    data: bytes | None


@dataclass(slots=True)
class OriginRecord:
    aten: str
    module: str
    file: str
    line: int
    text: str
    key: str


@dataclass(slots=True)
class NodeRecord:
    """attrs: JSON. inputs, outputs: indices of the graph's tensors, -1 for an absent input. origins: indices."""

    op: str
    attrs: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    origins: tuple[int, ...]


@dataclass(slots=True)
class GraphRecord:
    name: str
    tensors: list[TensorRecord]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    nodes: list[NodeRecord]
    initial: tuple[int, ...] = ()


@dataclass(slots=True)
class NoteRecord:
    """origin: an index, or -1 for none."""

    text: str
    origin: int


@dataclass(slots=True)
class ProgramRecord:
    version: int
    tinyet: str
    name: str
    origins: list[OriginRecord]
    graph: GraphRecord | None
    float_graph: GraphRecord | None
    notes: list[NoteRecord]
    subgraphs: list[GraphRecord]
    labels: tuple[str, ...]


# ---------------------------------------------------------------- writing


class _Writer:
    """Builds tables, the same bytes for the same records."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(1 << 16)

    def text(self, value: str) -> int:
        return int(self.builder.CreateSharedString(value))

    def vector(self, values: Sequence[int]) -> int:
        return int(self.builder.CreateNumpyVector(np.asarray(values, np.int32)))

    def offsets(self, values: Sequence[int]) -> int:
        self.builder.StartVector(4, len(values), 4)
        for value in reversed(values):
            self.builder.PrependUOffsetTRelative(value)
        return int(self.builder.EndVector())

    def table(self, fields: Sequence[int | tuple[int] | None]) -> int:
        """Fields by slot: an offset, a 1-tuple holding an int32, or None."""
        self.builder.StartObject(len(fields))
        for slot, value in enumerate(fields):
            if isinstance(value, tuple):
                self.builder.PrependInt32Slot(slot, value[0], 0)
            elif value is not None:
                self.builder.PrependUOffsetTRelativeSlot(slot, value, 0)
        return int(self.builder.EndObject())

    def quant(self, quant: QuantRecord) -> int:
        scale = int(self.builder.CreateNumpyVector(np.asarray(quant.scale, np.float32)))
        zero_point = self.vector(quant.zero_point)
        # The schema's default for axis is -1; stored off by nothing, written always.
        self.builder.StartObject(3)
        self.builder.PrependUOffsetTRelativeSlot(0, scale, 0)
        self.builder.PrependUOffsetTRelativeSlot(1, zero_point, 0)
        self.builder.PrependInt32Slot(2, quant.axis, -1)
        return int(self.builder.EndObject())

    def tensor(self, tensor: TensorRecord) -> int:
        data = None if tensor.data is None else int(self.builder.CreateByteVector(tensor.data))
        return self.table(
            [
                self.text(tensor.name),
                self.vector(tensor.shape),
                self.text(tensor.dtype),
                None if tensor.quant is None else self.quant(tensor.quant),
                data,
            ]
        )

    def node(self, node: NodeRecord) -> int:
        return self.table(
            [
                self.text(node.op),
                self.text(node.attrs),
                self.vector(node.inputs),
                self.vector(node.outputs),
                self.vector(node.origins),
            ]
        )

    def graph(self, graph: GraphRecord) -> int:
        nodes = [self.node(node) for node in graph.nodes]
        return self.table(
            [
                self.text(graph.name),
                self.offsets([self.tensor(t) for t in graph.tensors]),
                self.vector(graph.inputs),
                self.vector(graph.outputs),
                self.offsets(nodes),
                *([self.vector(graph.initial)] if graph.initial else []),
            ]
        )

    def origin(self, o: OriginRecord) -> int:
        texts = self.text(o.aten), self.text(o.module), self.text(o.file)
        return self.table([*texts, (o.line,), self.text(o.text), self.text(o.key)])

    def note(self, note: NoteRecord) -> int:
        text = self.text(note.text)
        self.builder.StartObject(2)
        self.builder.PrependUOffsetTRelativeSlot(0, text, 0)
        self.builder.PrependInt32Slot(1, note.origin, -1)
        return int(self.builder.EndObject())


def write(program: ProgramRecord) -> bytes:
    """The flatbuffer; the same records always give the same bytes."""
    w = _Writer()
    origins = [w.origin(o) for o in program.origins]
    notes = [w.note(note) for note in program.notes]
    graph = None if program.graph is None else w.graph(program.graph)
    twin = None if program.float_graph is None else w.graph(program.float_graph)
    inner = [w.graph(g) for g in program.subgraphs]
    root = w.table(
        [
            (program.version,),
            w.text(program.tinyet),
            w.text(program.name),
            w.offsets(origins),
            graph,
            twin,
            w.offsets(notes),
            w.offsets(inner) if inner else None,
            w.offsets([w.text(label) for label in program.labels]) if program.labels else None,
        ]
    )
    w.builder.Finish(root, file_identifier=IDENTIFIER)
    return bytes(w.builder.Output())


# ---------------------------------------------------------------- reading

MAX_SLOTS = 32
"""Of a table: more than any has, and room for those that are added to the schema."""

_UINT32 = struct.Struct("<I")
_INT32 = struct.Struct("<i")


class _Buffer:
    """The bytes, and how many of them may still be read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.left = len(data)
        self.texts: dict[int, str] = {}

    def uint(self, at: int) -> int:
        if not 0 <= at <= len(self.data) - 4:
            raise ValueError(f"an offset leads to byte {at} of {len(self.data)}")
        return int(_UINT32.unpack_from(self.data, at)[0])

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise ValueError("its parts overlap")

    def span(self, at: int, width: int) -> tuple[int, int]:
        """(start, length in elements of `width` bytes) of the vector that stands at a position."""
        count = self.uint(at)
        if count * width > len(self.data) - at - 4:
            raise ValueError(f"a vector of {count} elements leaves the file")
        self.spend(4 + count * width)
        return at + 4, count

    def text(self, at: int) -> str:
        known = self.texts.get(at)
        if known is None:
            start, count = self.span(at, 1)
            try:
                known = self.data[start : start + count].decode()
            except UnicodeDecodeError:
                raise ValueError(f"the text at byte {at} is not UTF-8") from None
            self.texts[at] = known
        return known


class _Table:
    """A table of the file, its fields by slot."""

    __slots__ = ("at", "buffer", "slots")

    def __init__(self, buffer: _Buffer, at: int) -> None:
        self.buffer, self.at = buffer, at
        buffer.spend(4)
        start = at - _INT32.unpack(_UINT32.pack(buffer.uint(at)))[0]
        size = buffer.uint(start) & 0xFFFF
        if size < 4 or size % 2 or size > 4 + 2 * MAX_SLOTS or start + size > len(buffer.data):
            raise ValueError(f"the table at byte {at} has no layout")
        self.slots = struct.unpack_from(f"<{size // 2 - 2}H", buffer.data, start + 4)

    def _field(self, slot: int) -> int:
        """The position of a field, or 0 where it is absent."""
        offset = self.slots[slot] if slot < len(self.slots) else 0
        return self.at + offset if offset else 0

    def _target(self, slot: int) -> int:
        """What a field's offset leads to, or 0."""
        at = self._field(slot)
        return at + self.buffer.uint(at) if at else 0

    def number(self, slot: int, default: int = 0) -> int:
        at = self._field(slot)
        return _INT32.unpack(_UINT32.pack(self.buffer.uint(at)))[0] if at else default

    def text(self, slot: int) -> str:
        at = self._target(slot)
        return self.buffer.text(at) if at else ""

    def child(self, slot: int) -> _Table | None:
        at = self._target(slot)
        return _Table(self.buffer, at) if at else None

    def _pointers(self, slot: int) -> list[int]:
        at = self._target(slot)
        if not at:
            return []
        start, count = self.buffer.span(at, 4)
        offsets = struct.unpack_from(f"<{count}I", self.buffer.data, start)
        return [start + 4 * i + offset for i, offset in enumerate(offsets)]

    def children(self, slot: int, make: Callable[[_Table], T]) -> list[T]:
        return [make(_Table(self.buffer, at)) for at in self._pointers(slot)]

    def texts(self, slot: int) -> tuple[str, ...]:
        return tuple(self.buffer.text(at) for at in self._pointers(slot))

    def raw(self, slot: int) -> bytes | None:
        at = self._target(slot)
        if not at:
            return None
        start, count = self.buffer.span(at, 1)
        return self.buffer.data[start : start + count]

    def numbers(self, slot: int) -> tuple[int, ...]:
        at = self._target(slot)
        if not at:
            return ()
        start, count = self.buffer.span(at, 4)
        return struct.unpack_from(f"<{count}i", self.buffer.data, start)

    def reals(self, slot: int) -> tuple[float, ...]:
        at = self._target(slot)
        if not at:
            return ()
        start, count = self.buffer.span(at, 4)
        return struct.unpack_from(f"<{count}f", self.buffer.data, start)


def _quant(t: _Table) -> QuantRecord:
    return QuantRecord(t.reals(0), t.numbers(1), t.number(2, -1))


def _tensor(t: _Table) -> TensorRecord:
    quant = t.child(3)
    return TensorRecord(
        t.text(0), t.numbers(1), t.text(2), None if quant is None else _quant(quant), t.raw(4)
    )


def _node(t: _Table) -> NodeRecord:
    return NodeRecord(t.text(0), t.text(1), t.numbers(2), t.numbers(3), t.numbers(4))


def _graph(t: _Table) -> GraphRecord:
    nodes = t.children(4, _node)
    return GraphRecord(t.text(0), t.children(1, _tensor), t.numbers(2), t.numbers(3), nodes, t.numbers(5))


def _origin(t: _Table) -> OriginRecord:
    return OriginRecord(t.text(0), t.text(1), t.text(2), t.number(3), t.text(4), t.text(5))


def root_of(data: bytes) -> tuple[int, str, Callable[[], ProgramRecord]]:
    """(format version, version of the writer, a function that reads the rest). All raise ValueError for bytes that are
    no such flatbuffer."""
    buffer = _Buffer(data)
    root = _Table(buffer, buffer.uint(0))
    version, writer = root.number(0), root.text(1)

    def rest() -> ProgramRecord:
        graph, twin = root.child(4), root.child(5)
        return ProgramRecord(
            version,
            writer,
            root.text(2),
            root.children(3, _origin),
            None if graph is None else _graph(graph),
            None if twin is None else _graph(twin),
            root.children(6, lambda t: NoteRecord(t.text(0), t.number(1, -1))),
            root.children(7, _graph),
            root.texts(8),
        )

    return version, writer, rest
