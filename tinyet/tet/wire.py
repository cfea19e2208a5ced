# SPDX-License-Identifier: Apache-2.0
"""The flatbuffer of a .tet file (program.fbs) as plain records: what stands in the file, not yet what it means.

Nothing is believed when reading (flatbuffer.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import flatbuffers
import numpy as np

from tinyet.files.flatbuffer import Buffer, Table

IDENTIFIER = b"TNYT"


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
    answers: str = ""
    size: str = ""


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
    float_graph = None if program.float_graph is None else w.graph(program.float_graph)
    inner = [w.graph(g) for g in program.subgraphs]
    root = w.table(
        [
            (program.version,),
            w.text(program.tinyet),
            w.text(program.name),
            w.offsets(origins),
            graph,
            float_graph,
            w.offsets(notes),
            w.offsets(inner) if inner else None,
            w.offsets([w.text(label) for label in program.labels]) if program.labels else None,
            *(
                [w.text(program.answers) if program.answers else None]
                if program.answers or program.size
                else []
            ),
            *([w.text(program.size)] if program.size else []),
        ]
    )
    w.builder.Finish(root, file_identifier=IDENTIFIER)
    return bytes(w.builder.Output())


# ---------------------------------------------------------------- reading


def _quant(t: Table) -> QuantRecord:
    return QuantRecord(t.reals(0), t.numbers(1), t.number(2, -1))


def _tensor(t: Table) -> TensorRecord:
    quant = t.child(3)
    return TensorRecord(
        t.text(0), t.numbers(1), t.text(2), None if quant is None else _quant(quant), t.raw(4)
    )


def _node(t: Table) -> NodeRecord:
    return NodeRecord(t.text(0), t.text(1), t.numbers(2), t.numbers(3), t.numbers(4))


def _graph(t: Table) -> GraphRecord:
    nodes = t.children(4, _node)
    return GraphRecord(t.text(0), t.children(1, _tensor), t.numbers(2), t.numbers(3), nodes, t.numbers(5))


def _origin(t: Table) -> OriginRecord:
    return OriginRecord(t.text(0), t.text(1), t.text(2), t.number(3), t.text(4), t.text(5))


def root_of(data: bytes) -> tuple[int, str, Callable[[], ProgramRecord]]:
    """(format version, version of the writer, a function that reads the rest). All raise ValueError for bytes that are
    no such flatbuffer."""
    root = Buffer(data).root()
    version, writer = root.number(0), root.text(1)

    def rest() -> ProgramRecord:
        graph, float_graph = root.child(4), root.child(5)
        return ProgramRecord(
            version,
            writer,
            root.text(2),
            root.children(3, _origin),
            None if graph is None else _graph(graph),
            None if float_graph is None else _graph(float_graph),
            root.children(6, lambda t: NoteRecord(t.text(0), t.number(1, -1))),
            root.children(7, _graph),
            root.texts(8),
            root.text(9),
            root.text(10),
        )

    return version, writer, rest
