# SPDX-License-Identifier: Apache-2.0
"""The bytes of a .tet file: `program.fbs` as a flatbuffer (wire.py), and a SHA-256 behind it.

The checksum is looked at first, so a truncated or damaged file is refused before anything is parsed. It says nothing
about who wrote the file: whatever stands in one is data from a stranger until every record of it has been checked here
and every node by its operator's rule (opset/rule.py). What comes out of `decode` is a program that the compiler could
have written.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinyet import ops
from tinyet.answers import Answers
from tinyet.answers.record import decoded
from tinyet.errors import ProgramError, QuantizationError, bullet_list
from tinyet.ir import (
    Attrs,
    DType,
    Graph,
    Node,
    Note,
    Origin,
    QuantParams,
    Size,
    Tensor,
    TensorType,
    size_decoded,
    subgraphs,
)
from tinyet.ir.limits import MAX_CONSTANT_ELEMENTS, MAX_DEPTH, MAX_NAME, MAX_NODES, MAX_TEXT, shape_complaint
from tinyet.messages.text import shown
from tinyet.opset import attributes
from tinyet.tet import wire
from tinyet.tet.wire import GraphRecord, NodeRecord, OriginRecord, ProgramRecord, TensorRecord

FORMAT_VERSION = 3
STATEFUL_VERSION = 2
STATELESS_VERSION = 1
"""Of programs without state, which older versions of tinyet read, too."""
DIGEST_BYTES = 32


@dataclasses.dataclass(frozen=True)
class Contents:
    """The contents of a .tet file."""

    tinyet: str
    name: str
    graph: Graph
    float_graph: Graph | None
    notes: tuple[Note, ...]
    labels: tuple[str, ...] = ()
    answers: Answers | None = None
    size: Size | None = None


# ---------------------------------------------------------------- writing


class _Recorder:
    """Turns graphs into records. Graphs that are attributes of nodes are recorded once each; the attribute becomes the
    graph's index."""

    def __init__(self) -> None:
        self.inner: dict[Graph, int] = {}
        self.origins: dict[Origin, int] = {}

    def origin(self, origin: Origin) -> int:
        return self.origins.setdefault(origin, len(self.origins))

    def attrs(self, attrs: Attrs) -> str:
        values: dict[str, Any] = {f.name: getattr(attrs, f.name) for f in dataclasses.fields(attrs)}
        for key, value in values.items():
            if isinstance(value, Graph):
                values[key] = self.inner.setdefault(value, len(self.inner))
        return json.dumps(values, sort_keys=True)

    def graph(self, graph: Graph) -> GraphRecord:
        tensors = _in_order(graph)
        index = {tensor: i for i, tensor in enumerate(tensors)}
        nodes = [
            NodeRecord(
                node.op,
                self.attrs(node.attrs),
                tuple(-1 if t is None else index[t] for t in node.inputs),
                tuple(index[t] for t in node.outputs),
                tuple(self.origin(o) for o in node.origins),
            )
            for node in graph.nodes
        ]
        return GraphRecord(
            graph.name,
            [_tensor_record(t) for t in tensors],
            tuple(index[t] for t in graph.inputs),
            tuple(index[t] for t in graph.outputs),
            nodes,
            tuple(index[t] for t in graph.initial),
        )


def _in_order(graph: Graph) -> list[Tensor]:
    """The tensors of a graph as a file has them: inputs, constants, what nodes compute, what states are at first."""
    return list(
        dict.fromkeys(
            (
                *graph.inputs,
                *graph.constants,
                *(t for n in graph.nodes for t in n.outputs),
                *graph.initial,
            )
        )
    )


def _tensor_record(tensor: Tensor) -> TensorRecord:
    quant, data = tensor.type.quant, None
    if tensor.is_constant:
        data = np.ascontiguousarray(tensor.array, tensor.dtype.numpy.newbyteorder("<")).tobytes()
    return TensorRecord(
        tensor.name,
        tensor.shape,
        tensor.dtype.value,
        None
        if quant is None
        else wire.QuantRecord(quant.scale, quant.zero_point, -1 if quant.axis is None else quant.axis),
        data,
    )


def _all_origins(graph: Graph) -> list[Origin]:
    """Of the nodes of a graph and of those in it."""
    return [
        origin
        for node in graph.nodes
        for origin in (
            *node.origins,
            *(o for inner in subgraphs(node.attrs) for o in _all_origins(inner)),
        )
    ]


def encode(contents: Contents) -> bytes:
    """The file's bytes; the same contents always give the same bytes."""
    recorder = _Recorder()
    graphs = [g for g in (contents.graph, contents.float_graph) if g is not None]
    for origin in (*(o for g in graphs for o in _all_origins(g)), *(n.origin for n in contents.notes)):
        if origin is not None:
            recorder.origin(origin)
    graph = recorder.graph(contents.graph)
    float_graph = None if contents.float_graph is None else recorder.graph(contents.float_graph)
    inner: list[GraphRecord] = []
    while len(inner) < len(recorder.inner):  # recording one may find others in it
        inner.append(recorder.graph(list(recorder.inner)[len(inner)]))
    return seal(
        wire.write(
            ProgramRecord(
                _version(contents, (*graphs, *recorder.inner)),
                contents.tinyet,
                contents.name,
                [OriginRecord(o.aten, o.module, o.file, o.line, o.text, o.key) for o in recorder.origins],
                graph,
                float_graph,
                [
                    wire.NoteRecord(n.text, -1 if n.origin is None else recorder.origins[n.origin])
                    for n in contents.notes
                ],
                inner,
                contents.labels,
                "" if contents.answers is None else contents.answers.encoded(),
                "" if contents.size is None else contents.size.encoded(),
            )
        )
    )


def _version(contents: Contents, graphs: Sequence[Graph]) -> int:
    """The oldest format that holds all of it."""
    if contents.size is not None:
        return FORMAT_VERSION
    return STATEFUL_VERSION if any(graph.initial for graph in graphs) else STATELESS_VERSION


def seal(payload: bytes) -> bytes:
    """A flatbuffer with its checksum behind it."""
    return payload + hashlib.sha256(payload).digest()


# ---------------------------------------------------------------- reading


def decode(data: bytes, where: str) -> Contents:
    """Contents of a file's bytes; `where` names it in errors.

    Raises ProgramError, and nothing else, for what is no .tet file, is truncated or damaged, was written by a newer
    tinyet, or holds what no compiler wrote; it lists all that is wrong.
    """
    again = "save the program again with this version of tinyet"
    if len(data) < 8 + DIGEST_BYTES or data[4:8] != wire.IDENTIFIER:
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
    try:
        return _Loader(_records(payload, where, again)).contents()
    except _NonsenseError as error:
        raise ProgramError(
            f"the file's contents make no sense:\n{bullet_list(error.problems)}", where, error.hint or again
        ) from None


def _records(payload: bytes, where: str, again: str) -> ProgramRecord:
    try:
        version, writer, rest = wire.root_of(payload)
        if version > FORMAT_VERSION:
            known = writer if re.fullmatch(r"[0-9A-Za-z.+-]{1,40}", writer) else "of an unknown version"
            raise ProgramError(
                f"the file is of format {version}, written by tinyet {known}; "
                f"this tinyet reads up to {FORMAT_VERSION}",
                where,
                "install a newer tinyet, or " + again,
            )
        if version < 1:
            raise ProgramError(f"format {version} does not exist", where, again)
        return rest()
    except ValueError as error:
        raise _NonsenseError([str(error)]) from None


MAX_SHOWN = 20


class _NonsenseError(Exception):
    """The errors in a file's records; the first MAX_SHOWN of them."""

    def __init__(self, problems: Sequence[str], hint: str | None = None) -> None:
        super().__init__()
        more = [f"and {len(problems) - MAX_SHOWN} more"] if len(problems) > MAX_SHOWN else []
        self.problems = [*problems[:MAX_SHOWN], *more]
        self.hint = hint


def _text_complaint(what: str, text: str, longest: int = MAX_TEXT) -> list[str]:
    return [f"{what} has {len(text)} characters, at most {longest}"] if len(text) > longest else []


def _name_complaint(what: str, text: str) -> list[str]:
    if not text or not text.isprintable():
        return [f"{what} is called {shown(text)}, which is no name"]
    return _text_complaint(f"the name of {what}", text, MAX_NAME)


def _raise(problems: Sequence[str]) -> None:
    if problems:
        raise _NonsenseError(problems)


class _Loader:
    """Makes a program of records, checking each."""

    def __init__(self, record: ProgramRecord) -> None:
        self.record = record
        self.origins = self._origins()
        self.inner: dict[int, Graph] = {}
        self.used: set[int] = set()  # indices of inner graphs
        self.depth: dict[Graph, int] = {}
        self.size: dict[Graph, int] = {}  # nodes, with those of inner graphs as often as they stand for

    def contents(self) -> Contents:
        record = self.record
        problems = [] if re.fullmatch(r"[^\W\d]\w{0,127}", record.name) else [
            f"the program is called {shown(record.name)}, which is no name in C"
        ]  # fmt: skip
        for index, label in enumerate(record.labels):
            problems += _text_complaint(f"label {index}", label)
        if record.graph is None:
            problems.append("there is no graph")
        _raise(problems)
        assert record.graph is not None
        # A graph may hold those that were found while it was written, which come behind it.
        for index, inner in reversed(list(enumerate(record.subgraphs))):
            self.inner[index] = self._graph(inner, f"inner graph {index}")
        graph = self._graph(record.graph, "the graph")
        float_graph = (
            None if record.float_graph is None else self._graph(record.float_graph, "the float graph")
        )
        _raise([f"inner graph {i} is not used" for i in self.inner if i not in self.used])
        _raise(ops.whole_problems(graph) or ops.state_problems(graph))
        if float_graph is not None:
            problems = [f"in the float graph, {text}" for text in ops.whole_problems(float_graph)]
            _raise(problems or _differences(graph, float_graph))
        answers = self._answers() if record.answers else None
        size = self._size(graph) if record.size else None
        notes = self._notes()
        return Contents(record.tinyet, record.name, graph, float_graph, notes, record.labels, answers, size)

    def _size(self, graph: Graph) -> Size:
        try:
            size = size_decoded(self.record.size)
        except (ValueError, OverflowError) as error:
            raise _NonsenseError([f"the record of the size: {error}"]) from None
        _raise(size.complaints(graph.user_inputs))
        return size

    def _answers(self) -> Answers:
        if self.record.float_graph is None:
            raise _NonsenseError(["there are answers beside a float model's, and no float graph"])
        try:
            return decoded(self.record.answers)
        except ValueError as error:
            raise _NonsenseError([f"the record of answers: {error}"]) from None

    def _origins(self) -> list[Origin]:
        problems: list[str] = []
        for index, o in enumerate(self.record.origins):
            if not o.line >= 0:
                problems.append(f"origin {index} is on line {o.line}")
            for text in (o.aten, o.module, o.file, o.text, o.key):
                problems += _text_complaint(f"a text of origin {index}", text)
        _raise(problems)
        return [Origin(o.aten, o.module, o.file, o.line, o.text, o.key) for o in self.record.origins]

    def _notes(self) -> tuple[Note, ...]:
        problems: list[str] = []
        for index, note in enumerate(self.record.notes):
            problems += _text_complaint(f"note {index}", note.text)
            if not -1 <= note.origin < len(self.origins):
                problems.append(f"note {index} has origin {note.origin} of {len(self.origins)}")
        _raise(problems)
        notes = self.record.notes
        return tuple(Note(n.text, None if n.origin < 0 else self.origins[n.origin]) for n in notes)

    def _graph(self, record: GraphRecord, what: str) -> Graph:
        problems = _name_complaint(what, record.name)
        tensors: list[Tensor] = []
        for index, each in enumerate(record.tensors):
            made = _tensor(each)
            if isinstance(made, Tensor):
                tensors.append(made)
            else:
                problems += [f"{what}, tensor {index} ({shown(each.name)}): {text}" for text in made]
        count = len(record.tensors)
        given = ("inputs", record.inputs), ("outputs", record.outputs), ("states", record.initial)
        for label, indices in given:
            problems += [
                f"{what}: there is no tensor {i} among its {label}" for i in indices if not 0 <= i < count
            ]
        attrs: list[Attrs] = []
        for index, node in enumerate(record.nodes):
            at = f"{what}, node {index} ({shown(node.op)})"
            problems += [f"{at}: {text}" for text in self._indices(node, count)]
            found = self._attrs(node, at)
            if isinstance(found, str):
                problems.append(f"{at}: {found}")
            else:
                attrs.append(found)
        _raise(problems)
        graph = Graph(
            record.name,
            tuple(tensors[i] for i in record.inputs),
            tuple(tensors[i] for i in record.outputs),
            tuple(
                Node(
                    values,
                    tuple(None if i < 0 else tensors[i] for i in node.inputs),
                    tuple(tensors[i] for i in node.outputs),
                    tuple(self.origins[i] for i in node.origins),
                )
                for values, node in zip(attrs, record.nodes, strict=True)
            ),
            tuple(tensors[i] for i in record.initial),
        )
        self._measure(graph, what)
        if _in_order(graph) != tensors:
            unused = [t.name for t in tensors if t not in set(_in_order(graph))]
            why = f": nothing uses {shown(unused[0])}" if unused else ""
            raise _NonsenseError([f"{what}: its tensors do not stand in their order{why}"])
        return graph

    def _indices(self, node: NodeRecord, count: int) -> list[str]:
        """The errors in the numbers of a node."""
        problems = [f"there is no tensor {i}" for i in node.inputs if not -1 <= i < count]
        problems += [f"there is no tensor {i}" for i in node.outputs if not 0 <= i < count]
        return problems + [f"there is no origin {i}" for i in node.origins if not 0 <= i < len(self.origins)]

    def _attrs(self, node: NodeRecord, at: str) -> Attrs | str:
        """A node's attributes, or what is wrong with them."""
        op = ops.by_name(node.op)
        if op is None:
            raise _NonsenseError(
                [f"{at}: it uses an operator which tinyet does not know"],
                "load the Python file that registers it first: tinyet --plugin FILE.py …, or import it",
            )
        try:
            values = json.loads(node.attrs, object_pairs_hook=_once)
            made = attributes.read(op.attrs, values, self.inner)
        except RecursionError:
            return "its attributes are nested too deep"
        except ValueError as error:
            return str(error)
        self.used |= {i for i, graph in self.inner.items() if graph in subgraphs(made)}
        return made

    def _measure(self, graph: Graph, what: str) -> None:
        inner = [g for node in graph.nodes for g in subgraphs(node.attrs)]
        self.depth[graph] = 1 + max((self.depth[g] for g in inner), default=0)
        self.size[graph] = len(graph.nodes) + sum(self.size[g] for g in inner)
        if self.depth[graph] > MAX_DEPTH:
            raise _NonsenseError([f"{what}: graphs stand in graphs, more than {MAX_DEPTH} deep"])
        if self.size[graph] > MAX_NODES:
            raise _NonsenseError([f"{what} has {self.size[graph]} nodes, at most {MAX_NODES}"])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; ValueError where a key stands twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an attribute stands twice")
    return found


def _tensor(record: TensorRecord) -> Tensor | list[str]:
    """A tensor, or what is wrong with it. The rest of what a tensor must be is rule.tensor_complaint."""
    problems = _name_complaint("it", record.name)
    complaint = shape_complaint(record.shape, MAX_CONSTANT_ELEMENTS)
    if complaint is not None:
        problems.append(complaint)
    if record.dtype not in _DTYPES:
        problems.append(f"its type is {shown(record.dtype)}")
    quant = None
    if record.quant is not None:
        axis = None if record.quant.axis == -1 else record.quant.axis
        try:
            quant = QuantParams(record.quant.scale, record.quant.zero_point, axis)
        except QuantizationError as error:
            problems.append(error.what)
    if problems:
        return problems
    type_ = TensorType(record.shape, _DTYPES[record.dtype], quant)
    if record.data is None:
        return Tensor(record.name, type_)
    kind = type_.dtype.numpy
    if len(record.data) != math.prod(type_.shape) * kind.itemsize:
        return [f"it holds {len(record.data)} bytes, not those of {type_}"]
    data = np.frombuffer(record.data, kind.newbyteorder("<")).astype(kind).reshape(type_.shape)
    return Tensor(record.name, type_, data)


_DTYPES: Mapping[str, DType] = {dtype.value: dtype for dtype in DType}


def _differences(graph: Graph, float_graph: Graph) -> list[str]:
    """Why the float graph cannot be the same model's."""
    return [
        f"the float graph's {what} have other shapes"
        for what, own, other in (
            ("inputs", graph.inputs, float_graph.inputs),
            ("outputs", graph.outputs, float_graph.outputs),
            ("states", graph.initial, float_graph.initial),
        )
        if [t.shape for t in own] != [t.shape for t in other]
    ]
