# SPDX-License-Identifier: Apache-2.0
"""The bytes of a .tet file: `program.fbs` as a flatbuffer, and a SHA-256 behind it.

The checksum is looked at first, so a truncated or damaged file is refused before anything is parsed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import flatbuffers
import numpy as np
from flatbuffers import number_types
from flatbuffers.table import Table

from tinyet import ops
from tinyet.errors import ProgramError, TinyetError
from tinyet.ir import (
    Array,
    Attrs,
    DType,
    Graph,
    Node,
    Note,
    Origin,
    QuantParams,
    Tensor,
    TensorType,
    subgraphs,
)

FORMAT_VERSION = 1
IDENTIFIER = b"TNYT"
DIGEST_BYTES = 32

# ---------------------------------------------------------------- writing


@dataclasses.dataclass(frozen=True)
class Contents:
    """What a .tet file holds."""

    tinyet: str
    name: str
    graph: Graph
    float_graph: Graph | None
    notes: tuple[Note, ...]
    labels: tuple[str, ...] = ()


class _Writer:
    """Builds tables; a field is (slot, kind, value) and absent when the value is None."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(1 << 16)
        # Graphs that are attributes of nodes, each written once; the attribute becomes its index.
        self.inner: dict[Graph, int] = {}

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

    def quant(self, quant: QuantParams) -> int:
        scale = int(self.builder.CreateNumpyVector(np.asarray(quant.scale, np.float32)))
        zero_point = self.vector(quant.zero_point)
        # The schema's default for axis is -1; stored off by nothing, written always.
        self.builder.StartObject(3)
        self.builder.PrependUOffsetTRelativeSlot(0, scale, 0)
        self.builder.PrependUOffsetTRelativeSlot(1, zero_point, 0)
        self.builder.PrependInt32Slot(2, -1 if quant.axis is None else quant.axis, -1)
        return int(self.builder.EndObject())

    def tensor(self, tensor: Tensor) -> int:
        data = None
        if tensor.is_constant:
            little = np.ascontiguousarray(tensor.array, tensor.dtype.numpy.newbyteorder("<"))
            data = int(self.builder.CreateByteVector(little.tobytes()))
        return self.table(
            [
                self.text(tensor.name),
                self.vector(tensor.shape),
                self.text(tensor.dtype.value),
                None if tensor.type.quant is None else self.quant(tensor.type.quant),
                data,
            ]
        )

    def node(self, node: Node, index: Mapping[Tensor, int], origins: Mapping[Origin, int]) -> int:
        values = {f.name: getattr(node.attrs, f.name) for f in dataclasses.fields(node.attrs)}
        for key, value in values.items():
            if isinstance(value, Graph):
                values[key] = self.inner.setdefault(value, len(self.inner))
        return self.table(
            [
                self.text(node.op),
                self.text(json.dumps(values, sort_keys=True)),
                self.vector([-1 if t is None else index[t] for t in node.inputs]),
                self.vector([index[t] for t in node.outputs]),
                self.vector([origins[o] for o in node.origins]),
            ]
        )

    def graph(self, graph: Graph, origins: Mapping[Origin, int]) -> int:
        tensors = list(
            dict.fromkeys((*graph.inputs, *graph.constants, *(t for n in graph.nodes for t in n.outputs)))
        )
        index = {tensor: i for i, tensor in enumerate(tensors)}
        nodes = [self.node(node, index, origins) for node in graph.nodes]
        return self.table(
            [
                self.text(graph.name),
                self.offsets([self.tensor(t) for t in tensors]),
                self.vector([index[t] for t in graph.inputs]),
                self.vector([index[t] for t in graph.outputs]),
                self.offsets(nodes),
            ]
        )


def _all_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of those in it."""
    for node in graph.nodes:
        yield node
        for inner in subgraphs(node.attrs):
            yield from _all_nodes(inner)


def encode(contents: Contents) -> bytes:
    """The file's bytes; the same contents always give the same bytes."""
    w = _Writer()
    graphs = [g for g in (contents.graph, contents.float_graph) if g is not None]
    used = [o for g in graphs for n in _all_nodes(g) for o in n.origins] + [
        n.origin for n in contents.notes if n.origin
    ]
    origins = {origin: i for i, origin in enumerate(dict.fromkeys(used))}
    origin_tables = [
        w.table([w.text(o.aten), w.text(o.module), w.text(o.file), (o.line,), w.text(o.text), w.text(o.key)])
        for o in origins
    ]
    note_tables = []
    for note in contents.notes:
        text = w.text(note.text)
        w.builder.StartObject(2)
        w.builder.PrependUOffsetTRelativeSlot(0, text, 0)
        w.builder.PrependInt32Slot(1, -1 if note.origin is None else origins[note.origin], -1)
        note_tables.append(int(w.builder.EndObject()))
    graph = w.graph(contents.graph, origins)
    twin = None if contents.float_graph is None else w.graph(contents.float_graph, origins)
    written: list[int] = []
    while len(written) < len(w.inner):  # writing one may find others in it
        written.append(w.graph(list(w.inner)[len(written)], origins))
    root = w.table(
        [
            (FORMAT_VERSION,),
            w.text(contents.tinyet),
            w.text(contents.name),
            w.offsets(origin_tables),
            graph,
            twin,
            w.offsets(note_tables),
            w.offsets(written) if written else None,
            w.offsets([w.text(label) for label in contents.labels]) if contents.labels else None,
        ]
    )
    w.builder.Finish(root, file_identifier=IDENTIFIER)
    payload = bytes(w.builder.Output())
    return payload + hashlib.sha256(payload).digest()


# ---------------------------------------------------------------- reading


class _Reader:
    """A table of the file, its fields by slot."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def _at(self, slot: int) -> int:
        return int(self.table.Offset(4 + 2 * slot))

    def text(self, slot: int) -> str:
        at = self._at(slot)
        return bytes(self.table.String(at + self.table.Pos)).decode() if at else ""

    def number(self, slot: int, default: int = 0) -> int:
        at = self._at(slot)
        return int(self.table.Get(number_types.Int32Flags, at + self.table.Pos)) if at else default

    def has(self, slot: int) -> bool:
        return self._at(slot) != 0

    def child(self, slot: int) -> _Reader | None:
        at = self._at(slot)
        return _Reader(Table(self.table.Bytes, self.table.Indirect(at + self.table.Pos))) if at else None

    def children(self, slot: int) -> list[_Reader]:
        at = self._at(slot)
        if not at:
            return []
        start, count = self.table.Vector(at), self.table.VectorLen(at)
        return [_Reader(Table(self.table.Bytes, self.table.Indirect(start + 4 * i))) for i in range(count)]

    def texts(self, slot: int) -> tuple[str, ...]:
        at = self._at(slot)
        if not at:
            return ()
        start, count = self.table.Vector(at), self.table.VectorLen(at)
        # A string in a vector is reached through an offset, as one in a table is.
        return tuple(bytes(self.table.String(start + 4 * i)).decode() for i in range(count))

    def array(self, slot: int, dtype: str) -> Array:
        at = self._at(slot)
        if not at:
            return np.zeros(0, dtype)
        size = np.dtype(dtype).itemsize * self.table.VectorLen(at)
        start = self.table.Vector(at)
        return np.frombuffer(bytes(self.table.Bytes[start : start + size]), dtype).copy()

    def numbers(self, slot: int) -> list[int]:
        return [int(v) for v in self.array(slot, "<i4")]


def _tuples(value: Any) -> Any:
    """JSON's lists back as tuples."""
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def _attrs(kind: type[Attrs], values: dict[str, Any], inner: Mapping[int, Graph]) -> Attrs:
    """An operator's attributes, each of the type that it is declared with; ValueError for another."""
    hints = typing.get_type_hints(kind)
    fields = {key: _tuples(value) for key, value in values.items()}
    for key, value in fields.items():
        if hints[key] is Graph:
            fields[key] = inner[value]
            continue
        if not _is_a(value, hints[key]):
            raise ValueError(f"{kind.name}.{key} is {value!r}")
    return kind(**fields)


def _is_a(value: object, hint: Any) -> bool:
    """Whether a value from JSON has a declared type: int, float, bool, str, None, tuples and unions of these."""
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, tuple):
            return False
        wanted = [parts[0]] * len(value) if parts[1:] == (...,) else parts
        return len(value) == len(wanted) and all(_is_a(v, w) for v, w in zip(value, wanted, strict=True))
    if parts:
        return any(_is_a(value, part) for part in parts)
    if hint in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if hint is float else hint)


def _tensor(r: _Reader) -> Tensor:
    quant = None
    q = r.child(3)
    if q is not None:
        axis = q.number(2, -1)
        scale = tuple(float(s) for s in q.array(0, "<f4"))
        quant = QuantParams(scale, tuple(q.numbers(1)), None if axis < 0 else axis)
    type_ = TensorType(tuple(r.numbers(1)), DType(r.text(2)), quant)
    data = None
    if r.has(4):
        raw = r.array(4, "u1").tobytes()
        data = (
            np.frombuffer(raw, type_.dtype.numpy.newbyteorder("<"))
            .astype(type_.dtype.numpy)
            .reshape(type_.shape)
        )
    return Tensor(r.text(0), type_, data)


def _graph(r: _Reader, origins: Sequence[Origin], inner: Mapping[int, Graph]) -> Graph:
    tensors = [_tensor(t) for t in r.children(1)]

    def pick(index: int) -> Tensor:
        if index < 0:
            raise ValueError(f"tensor index {index}")
        return tensors[index]

    nodes = []
    for n in r.children(4):
        op = ops.by_name(n.text(0))
        if op is None:
            raise ProgramError(
                f"it uses the operator {n.text(0)}, which tinyet does not know",
                hint="load the Python file that registers it first: tinyet --plugin FILE.py …, or import it",
            )
        attrs = _attrs(op.attrs, json.loads(n.text(1)), inner)
        inputs = tuple(None if i == -1 else pick(i) for i in n.numbers(2))
        outputs = tuple(pick(i) for i in n.numbers(3))
        nodes.append(Node(attrs, inputs, outputs, tuple(origins[i] for i in n.numbers(4))))
    ins, outs = [pick(i) for i in r.numbers(2)], [pick(i) for i in r.numbers(3)]
    return ops.check(Graph(r.text(0), tuple(ins), tuple(outs), tuple(nodes)), "reading the file")


def decode(data: bytes, where: str) -> Contents:
    """Contents of a file's bytes; `where` names it in errors.

    Raises ProgramError for what is no .tet file, is truncated or damaged, or was written by a newer tinyet.
    """
    again = "save the program again with this version of tinyet"
    if len(data) < 8 + DIGEST_BYTES or data[4:8] != IDENTIFIER:
        raise ProgramError(
            "this is not a tinyet program (or only its beginning)",
            where,
            "give a file that Program.save wrote",
        )
    payload, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if hashlib.sha256(payload).digest() != digest:
        raise ProgramError(
            "the file is truncated or damaged: its checksum is wrong", where, "copy it again, or " + again
        )
    return _guarded(lambda: _decode(payload, where, again), where, again)


# What reading a file can raise whose checksum is right and whose contents are not.
_NONSENSE = (
    TinyetError, ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, AssertionError,
    RecursionError, MemoryError, struct.error,
)  # fmt: skip


def _guarded(read: Callable[[], Contents], where: str, again: str) -> Contents:
    """A file with a right checksum can still be nonsense that somebody built on purpose: one clear error for it."""
    try:
        return read()
    except ProgramError as error:
        raise ProgramError(error.what, error.where or where, error.hint or again) from error
    except _NONSENSE as error:
        raise ProgramError(f"the file's contents make no sense: {error}", where, again) from error


def _decode(payload: bytes, where: str, again: str) -> Contents:
    buffer = bytearray(payload)
    root = _Reader(Table(buffer, struct.unpack_from("<I", buffer)[0]))
    version = root.number(0)
    if version > FORMAT_VERSION:
        raise ProgramError(
            f"the file is of format {version}, written by tinyet {root.text(1)}; "
            f"this tinyet reads up to {FORMAT_VERSION}",
            where,
            "install a newer tinyet, or " + again,
        )
    if version < 1:
        raise ProgramError(f"format {version} does not exist", where, again)
    origins = [
        Origin(r.text(0), r.text(1), r.text(2), r.number(3), r.text(4), r.text(5)) for r in root.children(3)
    ]
    graph, twin = root.child(4), root.child(5)
    if graph is None:
        raise ProgramError("the file holds no graph", where, again)
    inner: dict[int, Graph] = {}
    # A graph may hold those that were found while it was written, which come behind it.
    for index, reader in reversed(list(enumerate(root.children(7)))):
        inner[index] = _graph(reader, origins, inner)
    notes = []
    for note in root.children(6):
        index = note.number(1, -1)
        notes.append(Note(note.text(0), origins[index] if index >= 0 else None))
    return Contents(
        root.text(1),
        root.text(2),
        _graph(graph, origins, inner),
        None if twin is None else _graph(twin, origins, inner),
        tuple(notes),
        root.texts(8),
    )
