# SPDX-License-Identifier: Apache-2.0
"""What is done to a .tet file: to its records, each field by its kind, and to its bytes; the checksum is always right.

A record that was changed may be repaired behind that (`_repaired`): the results' shapes by the operators' rules, the
bytes of constants by their types. So half of the mutants are wrong in one place only, and get as far as that.
"""

from __future__ import annotations

import json
import math
import random
import string
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.fuzz.run import Case
from tinyet import ops
from tinyet.errors import TinyetError
from tinyet.ir import DType, Node, Tensor, TensorType
from tinyet.ir.limits import shape_complaint
from tinyet.opset import attributes
from tinyet.tet import wire
from tinyet.tet.format import DIGEST_BYTES, seal
from tinyet.tet.wire import GraphRecord, NodeRecord, ProgramRecord, QuantRecord, TensorRecord

INTS: tuple[int, ...] = (
    0, 1, -1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 127, 128, 255, 256, 4096, 65535, 65536, 1 << 20, 1 << 26,
    (1 << 30) - 1, (1 << 31) - 1, -(1 << 31), -2, -128, -129,
)  # fmt: skip
REALS: tuple[float, ...] = (
    0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e-38, 1.2e-38, 1e-20, 1e-6, 1e6, 1e20, 3e38, 1e39, 1e300,
    math.inf, -math.inf, math.nan, 2.0**-15, 1 / 256, 1 / 16, 2.0**-26, 16.0,
)  # fmt: skip
WORDS: tuple[str, ...] = (
    "", "abs", "tanh", "pow", "nearest", "bilinear", "reflect", "constant", "portable", "cmsis-nn", "none",
    'f(); system("touch /tmp/x"); //', "a*/ int b; /*", "x\ny", "\x1b[2J", "%s%n", "ö" * 700, "..",
)  # fmt: skip
DTYPES = tuple(dtype.value for dtype in DType)
NO_DTYPES = ("float64", "int128", "", "INT8", "int8 ", "object")
JSON: tuple[str, ...] = (
    "{}", "[]", "null", "", "{", "[" * 5000, '{"a":' * 3000, '{"clamp": [NaN, 1]}', '{"axis": 1e999}',
    '{"axis": ' + "9" * 5000 + "}", '{"axis": 1, "axis": 2}', '{"graph": 0, "delegate": "portable"}', '"\\ud800"',
)  # fmt: skip

Mutation = Callable[[random.Random, ProgramRecord], str]
"""Changes a program, and says how."""


class Mutator:
    """Makes mutants of some files."""

    def __init__(self, files: Sequence[bytes]) -> None:
        self.payloads = [data[:-DIGEST_BYTES] for data in files]
        programs = [_records(payload) for payload in self.payloads]
        self.nodes = [node for p in programs for g in _graphs(p) for node in g.nodes]

    def mutate(self, rng: random.Random) -> Case:
        payload = rng.choice(self.payloads)
        if rng.random() < 0.1:
            return _bytes(rng, payload)
        program = _records(payload)
        said = [program.name]
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
            kind = rng.random()
            if kind < 0.1:
                said.append(_swap(self, rng, program))
            elif kind < 0.2:
                said.append(_append(self, rng, program))
            else:
                said.append(rng.choices(MUTATIONS, WEIGHTS)[0](rng, program))
        if rng.random() < 0.5:
            for graph in _graphs(program):
                _repaired(graph)
            said.append("repaired")
        try:
            with np.errstate(over="ignore"):
                return Case(", ".join(said), seal(wire.write(program)))
        except (OverflowError, ValueError, UnicodeError, struct.error):
            # What a flatbuffer cannot say: the bytes are mutated instead.
            return _bytes(rng, payload)


def _records(payload: bytes) -> ProgramRecord:
    return wire.root_of(payload)[2]()


def _graphs(program: ProgramRecord) -> list[GraphRecord]:
    return [g for g in (program.graph, program.float_graph, *program.subgraphs) if g is not None]


def _bytes(rng: random.Random, payload: bytes) -> Case:
    """A few bytes or words of the flatbuffer changed, or some of it cut out or doubled."""
    data, kind = bytearray(payload), rng.randrange(4)
    if kind == 0:
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(8, len(data))] = rng.randrange(256)
    elif kind == 1:
        for _ in range(rng.randint(1, 3)):
            at = 4 * rng.randrange(2, len(data) // 4)
            struct.pack_into(
                "<I", data, at, rng.choice((rng.choice(INTS) & 0xFFFFFFFF, rng.randrange(len(data))))
            )
    elif kind == 2:
        start = rng.randrange(8, len(data))
        del data[start : start + rng.randint(1, 64)]
    else:
        start = rng.randrange(8, len(data))
        data[start:start] = data[start : start + rng.randint(1, 64)]
    return Case(f"bytes, way {kind}", seal(bytes(data)))


# ---------------------------------------------------------------- choosing


def _a_graph(rng: random.Random, program: ProgramRecord) -> GraphRecord:
    """One of them; an empty one that is not in the program where it has none."""
    return rng.choice(_graphs(program) or [GraphRecord("", [], (), (), [])])


def _a_node(rng: random.Random, program: ProgramRecord) -> NodeRecord | None:
    nodes = _a_graph(rng, program).nodes
    return rng.choice(nodes) if nodes else None


def _a_tensor(rng: random.Random, program: ProgramRecord) -> TensorRecord | None:
    tensors = _a_graph(rng, program).tensors
    return rng.choice(tensors) if tensors else None


def _an_int(rng: random.Random, near: int = 0) -> int:
    return near + rng.choice((-2, -1, 1, 2)) if rng.random() < 0.5 else rng.choice(INTS)


def _a_real(rng: random.Random, near: float = 1.0) -> float:
    if rng.random() < 0.6 and math.isfinite(near):
        return near * 10 ** rng.uniform(-4, 4)
    return rng.choice(REALS)


def _with(items: Sequence[Any], index: int, item: Any) -> tuple[Any, ...]:
    return (*items[:index], item, *items[index + 1 :])


# ---------------------------------------------------------------- tensors


def _dtype(rng: random.Random, program: ProgramRecord) -> str:
    tensor = _a_tensor(rng, program)
    if tensor is None:
        return "nothing"
    tensor.dtype = rng.choice(DTYPES if rng.random() < 0.9 else NO_DTYPES)
    return f"{tensor.name} is {tensor.dtype}"


def _dtypes(rng: random.Random, program: ProgramRecord) -> str:
    """All tensors of one type become another, with or without quantization."""
    graph = _a_graph(rng, program)
    old, new = rng.choice(DTYPES), rng.choice(DTYPES)
    for tensor in graph.tensors:
        if tensor.dtype == old:
            tensor.dtype = new
            if new == "float32":
                tensor.quant = None
            elif new in ("int8", "int16") and tensor.quant is None:
                tensor.quant = QuantRecord((0.02,), (0,))
            elif new == "int16" and tensor.quant is not None:
                tensor.quant.zero_point = (0,) * len(tensor.quant.zero_point)
    return f"all {old} are {new}"


def _shape(rng: random.Random, program: ProgramRecord) -> str:
    tensor = _a_tensor(rng, program)
    if tensor is None:
        return "nothing"
    shape, kind = tensor.shape, rng.randrange(6)
    if kind == 0 or not shape:
        shape = (*shape, rng.choice((1, 2, 3)))
    elif kind == 1:
        shape = shape[1:]
    elif kind == 2:
        shape = tuple(rng.sample(shape, len(shape)))
    elif kind == 3 and rng.random() < 0.2:
        shape = (1,) * rng.choice((7, 8, 9, 33, 65, 500))
    else:
        at = rng.randrange(len(shape))
        shape = _with(shape, at, _an_int(rng, shape[at]))
    tensor.shape = shape
    return f"{tensor.name} has shape {shape}"


def _sizes(rng: random.Random, program: ProgramRecord) -> str:
    """One size becomes another wherever it stands, so that what belongs together still does."""
    graph = _a_graph(rng, program)
    sizes = [size for tensor in graph.tensors for size in tensor.shape]
    if not sizes:
        return "nothing"
    old = rng.choice(sizes)
    new = _an_int(rng, old)
    for tensor in graph.tensors:
        tensor.shape = tuple(new if size == old else size for size in tensor.shape)
    return f"all sizes {old} are {new}"


def _scale(rng: random.Random, program: ProgramRecord) -> str:
    quant, name = _a_quant(rng, program)
    if quant is None or not quant.scale:
        return "nothing"
    at = rng.randrange(len(quant.scale))
    quant.scale = _with(quant.scale, at, _a_real(rng, quant.scale[at]))
    return f"{name} has scales {quant.scale}"


def _scales(rng: random.Random, program: ProgramRecord) -> str:
    """One scale becomes another wherever it stands."""
    graph = _a_graph(rng, program)
    quants = [t.quant for t in graph.tensors if t.quant is not None and t.quant.scale]
    if not quants:
        return "nothing"
    old = rng.choice(quants).scale[0]
    new = _a_real(rng, old)
    for quant in quants:
        quant.scale = tuple(new if s == old else s for s in quant.scale)
    return f"all scales {old} are {new}"


def _zero_point(rng: random.Random, program: ProgramRecord) -> str:
    quant, name = _a_quant(rng, program)
    if quant is None or not quant.zero_point:
        return "nothing"
    at = rng.randrange(len(quant.zero_point))
    old = quant.zero_point[at]
    new = rng.choice((-128, 127, 0, rng.randint(-128, 127), _an_int(rng, old)))
    quant.zero_point = _with(quant.zero_point, at, new)
    return f"{name} has zero points {quant.zero_point}"


def _zero_points(rng: random.Random, program: ProgramRecord) -> str:
    graph = _a_graph(rng, program)
    new = rng.choice((-128, 127, rng.randint(-128, 127)))
    for tensor in graph.tensors:
        if tensor.dtype == "int8" and tensor.quant is not None and tensor.quant.axis == -1:
            tensor.quant.zero_point = (new,)
    return f"zero points are {new}"


def _extremes(rng: random.Random, program: ProgramRecord) -> str:
    """Every scale is another, far from 1, the same for tensors that had the same; every zero point at an end."""
    graph, width = _a_graph(rng, program), rng.choice((4, 12, 30))
    instead: dict[tuple[float, ...], float] = {}
    for tensor in graph.tensors:
        if tensor.quant is not None and tensor.quant.axis == -1:
            factor = instead.setdefault(tensor.quant.scale, 2.0 ** rng.uniform(-width, width))
            tensor.quant.scale = tuple(s * factor for s in tensor.quant.scale)
            if tensor.dtype == "int8" and tensor.data is None:
                tensor.quant.zero_point = (rng.choice((-128, 127, 0, -1)),)
    return f"scales times {sorted(instead.values())}"


def _quant(rng: random.Random, program: ProgramRecord) -> str:
    tensor = _a_tensor(rng, program)
    if tensor is None:
        return "nothing"
    kind = rng.randrange(5)
    if tensor.quant is None or kind == 0:
        tensor.quant = None if tensor.quant is not None else QuantRecord((_a_real(rng, 0.05),), (0,))
    elif kind == 1:
        tensor.quant.axis = rng.choice((-1, 0, 1, 3, 9, -2, 2**31 - 1))
    elif kind == 2:
        tensor.quant.scale += (0.5,)
    elif kind == 3:
        tensor.quant.zero_point = tensor.quant.zero_point[1:]
    else:
        count = tensor.shape[0] if tensor.shape and 0 < tensor.shape[0] < 99 else 1
        tensor.quant = QuantRecord((0.01,) * count, (0,) * count, 0)
    return f"{tensor.name} is quantized {tensor.quant}"


def _a_quant(rng: random.Random, program: ProgramRecord) -> tuple[QuantRecord | None, str]:
    found = [t for t in _a_graph(rng, program).tensors if t.quant is not None]
    if not found:
        return None, ""
    tensor = rng.choice(found)
    return tensor.quant, tensor.name


def _data(rng: random.Random, program: ProgramRecord) -> str:
    """Of a constant: its bytes, their number, or whether it is one."""
    graph = _a_graph(rng, program)
    constants = [t for t in graph.tensors if t.data is not None]
    if not constants or rng.random() < 0.1:
        if not graph.tensors:
            return "nothing"
        tensor = rng.choice(graph.tensors)
        tensor.data = None if tensor.data is not None else bytes(min(math.prod(tensor.shape) % 4096, 4096))
        return f"{tensor.name} becomes a constant or none"
    tensor = rng.choice(constants)
    assert tensor.data is not None
    count, kind = len(tensor.data), rng.randrange(6)
    if kind == 0:
        tensor.data = tensor.data[: rng.randint(0, count)]
    elif kind == 1:
        tensor.data = tensor.data + bytes(rng.randint(1, 9))
    elif kind == 2:
        fill = rng.choice((0x80, 0x7F, 0xFF, 0x00))
        tensor.data = bytes([fill]) * count
    elif kind == 3:
        tensor.data = rng.randbytes(count)
    elif kind == 4 and count % 4 == 0:
        number = rng.choice((struct.pack("<f", rng.choice((math.inf, math.nan, 3e38, 1e-45))), b"\0\0\0\x80"))
        tensor.data = number * (count // 4)
    elif count:
        data = bytearray(tensor.data)
        data[rng.randrange(count)] = rng.randrange(256)
        tensor.data = bytes(data)
    return f"{tensor.name} holds other bytes, way {kind}"


# ---------------------------------------------------------------- nodes and graphs


def _attribute(rng: random.Random, program: ProgramRecord) -> str:
    node = _a_node(rng, program)
    if node is None:
        return "nothing"
    if rng.random() < 0.05:
        node.attrs = rng.choice(JSON)
        return f"attributes {node.attrs[:40]}"
    try:
        values = json.loads(node.attrs)
    except (ValueError, RecursionError):
        return "nothing"
    if not isinstance(values, dict) or not values:
        return "nothing"
    key, kind = rng.choice(sorted(values)), rng.random()
    if kind < 0.04:
        del values[key]
    elif kind < 0.08:
        values["".join(rng.choices(string.ascii_lowercase, k=3))] = 1
    else:
        values[key] = _another(rng, values[key])
    node.attrs = json.dumps(values)
    return f"attribute {key} of {node.op}: {str(values.get(key))[:60]}"


def _another(rng: random.Random, value: Any) -> Any:
    if rng.random() < 0.05:
        return rng.choice((None, True, [], {}, "abs", 1, 1.5, [[1, 2]], 10**400))
    match value:
        case bool():
            return not value
        case int():
            return _an_int(rng, value)
        case float():
            return _a_real(rng, value)
        case str():
            return rng.choice(WORDS)
        case list() if value:
            at, kind = rng.randrange(len(value)), rng.random()
            if kind < 0.1:
                return value[:at]
            if kind < 0.2:
                return [*value, value[at]]
            return list(_with(value, at, _another(rng, value[at])))
    return rng.choice((0, 1, 2))


def _wiring(rng: random.Random, program: ProgramRecord) -> str:
    """What a node reads or writes."""
    graph = _a_graph(rng, program)
    if not graph.nodes:
        return "nothing"
    node = rng.choice(graph.nodes)
    reads = rng.random() < 0.7
    indices = node.inputs if reads else node.outputs
    number = rng.choice(
        (rng.randrange(len(graph.tensors) or 1), rng.randrange(len(graph.tensors) or 1), -1, -2, 999)
    )
    kind = rng.randrange(4)
    if kind == 0 or not indices:
        indices = (*indices, number)
    elif kind == 1:
        indices = indices[:-1]
    elif kind == 2:
        indices = tuple(rng.sample(indices, len(indices)))
    else:
        indices = _with(indices, rng.randrange(len(indices)), number)
    if reads:
        node.inputs = indices
    else:
        node.outputs = indices
    return f"{node.op} {'reads' if reads else 'writes'} {indices}"


def _append(self: Mutator, rng: random.Random, program: ProgramRecord) -> str:
    """One more node, which reads what there is and gives what is typed as that."""
    graph, node = _a_graph(rng, program), rng.choice(self.nodes)
    if not graph.tensors:
        return "nothing"
    inputs = tuple(rng.randrange(len(graph.tensors)) for _ in node.inputs)
    like = graph.tensors[inputs[0]] if inputs else graph.tensors[0]
    graph.tensors.append(TensorRecord(f"more_{len(graph.tensors)}", like.shape, like.dtype, like.quant, None))
    last = len(graph.tensors) - 1
    graph.nodes.append(NodeRecord(node.op, node.attrs, inputs, (last,), ()))
    graph.outputs = (last,) if rng.random() < 0.5 else (*graph.outputs, last)
    return f"and then {node.op} {node.attrs} of {inputs}"


def _swap(self: Mutator, rng: random.Random, program: ProgramRecord) -> str:
    """Another operator, with its own attributes, in the same place."""
    node, other = _a_node(rng, program), rng.choice(self.nodes)
    if node is None:
        return "nothing"
    node.op, node.attrs = other.op, other.attrs
    return f"operator {other.op} {other.attrs}"


def _order(rng: random.Random, program: ProgramRecord) -> str:
    """Nodes, tensors, inputs and outputs of a graph: shuffled, doubled, left out."""
    graph = _a_graph(rng, program)
    kind = rng.randrange(7)
    if kind == 0:
        rng.shuffle(graph.nodes)
    elif kind == 1 and graph.nodes:
        graph.nodes.append(rng.choice(graph.nodes))
    elif kind == 2 and graph.nodes:
        graph.nodes.pop(rng.randrange(len(graph.nodes)))
    elif kind == 3:
        rng.shuffle(graph.tensors)
    elif kind == 4 and graph.tensors:
        graph.tensors.append(rng.choice(graph.tensors))
    elif kind == 5:
        graph.inputs = (*graph.inputs, rng.randrange(-1, len(graph.tensors) + 1))
    else:
        graph.outputs = rng.choice(
            ((), (*graph.outputs, *graph.inputs), (*graph.outputs, *graph.outputs), (0,), (77,))
        )
    return f"another order, way {kind}"


def _states(rng: random.Random, program: ProgramRecord) -> str:
    """What is kept: more of it, less of it, something else at first, or constants that nobody else has."""
    graph = _a_graph(rng, program)
    constants = [i for i, t in enumerate(graph.tensors) if t.data is not None] or [0]
    kind, first = rng.randrange(6), graph.initial
    if kind == 0:
        first = (*first, rng.choice(constants))
    elif kind == 1:
        first = first[1:]
    elif kind == 2 and first:
        first = _with(first, rng.randrange(len(first)), rng.choice((*constants, -1, 999, len(graph.tensors))))
    elif kind == 3:
        first = tuple(rng.sample(first, len(first)))
    elif kind == 4 and graph.inputs and 0 <= graph.inputs[-1] < len(graph.tensors):
        like = graph.tensors[graph.inputs[-1]]
        count = abs(math.prod(like.shape)) % 4096 * (4 if like.dtype in ("float32", "int32") else 1)
        graph.tensors.append(TensorRecord("first", like.shape, like.dtype, like.quant, rng.randbytes(count)))
        first = (*first, len(graph.tensors) - 1)
    else:
        first = tuple(rng.randrange(-1, len(graph.tensors) + 1) for _ in range(rng.choice((1, 2, 9))))
    graph.initial = first
    return f"states begin with {first}"


def _texts(rng: random.Random, program: ProgramRecord) -> str:
    word, kind = rng.choice(WORDS), rng.randrange(7)
    graph = _a_graph(rng, program)
    if kind == 0:
        program.name = word
    elif kind == 1:
        graph.name = word
    elif kind == 2 and graph.tensors:
        rng.choice(graph.tensors).name = rng.choice((word, graph.tensors[0].name, "int", "arena", "x" * 600))
    elif kind == 3 and program.origins:
        origin = rng.choice(program.origins)
        origin.text, origin.file, origin.module, origin.line = word, word, word, _an_int(rng)
    elif kind == 4 and program.notes:
        rng.choice(program.notes).text = word * rng.choice((1, 3000))
    elif kind == 5:
        program.labels = rng.choice(((word,), ("a", word), program.labels[:-1], ("x",) * 6))
    else:
        program.tinyet = word
    return f"text {word[:20]!r}, way {kind}"


def _numbers(rng: random.Random, program: ProgramRecord) -> str:
    """What else is a number: versions, indices of origins."""
    kind, number = rng.randrange(3), rng.choice(INTS)
    node = _a_node(rng, program)
    if kind == 0:
        program.version = number
    elif kind == 1 and node is not None:
        node.origins = (*node.origins, number)
    elif program.notes:
        rng.choice(program.notes).origin = number
    return f"number {number}, way {kind}"


def _inner(rng: random.Random, program: ProgramRecord) -> str:
    """Graphs in graphs: left out, doubled, wrapped, in themselves."""
    kind = rng.randrange(5)
    if program.graph is None:
        return "nothing"
    if kind == 0:
        program.float_graph = rng.choice((None, program.graph))
    elif kind == 1:
        program.subgraphs = rng.choice(([], [*program.subgraphs, program.graph], program.subgraphs * 2))
    elif kind == 2:
        program.graph = rng.choice((None, *program.subgraphs, program.float_graph))
    else:
        for _ in range(rng.choice((1, 1, 2, 7, 9, 40))):
            wrap(program)
    return f"inner graphs, way {kind}"


def wrap(program: ProgramRecord) -> None:
    """The whole graph becomes one region of another."""
    inner = program.graph
    assert inner is not None
    border = [inner.tensors[i] for i in (*inner.inputs, *inner.outputs) if 0 <= i < len(inner.tensors)]
    tensors = [TensorRecord(t.name, t.shape, t.dtype, t.quant, None) for t in border]
    given = tuple(range(len(inner.inputs)))
    taken = tuple(range(len(inner.inputs), len(tensors)))
    for node in (node for g in program.subgraphs for node in g.nodes):
        _renumber(node)
    for node in inner.nodes:
        _renumber(node)
    region = NodeRecord("region", json.dumps({"delegate": "portable", "graph": 0}), given, taken, ())
    program.subgraphs = [inner, *program.subgraphs]
    program.graph = GraphRecord("outer", tensors, given, taken, [region])


def _renumber(node: NodeRecord) -> None:
    if node.op == "region":
        try:
            values = json.loads(node.attrs)
            values["graph"] += 1
            node.attrs = json.dumps(values)
        except (ValueError, TypeError, KeyError, RecursionError):
            pass


# ---------------------------------------------------------------- repairing


def _repaired(graph: GraphRecord) -> None:
    """Results get the shapes of the operators' rules, constants as many bytes as they should have."""
    for tensor in graph.tensors:
        if tensor.data is not None and tensor.dtype in DTYPES and all(0 < size < 99 for size in tensor.shape):
            wanted = math.prod(tensor.shape) * DType(tensor.dtype).bytes
            if wanted < 1 << 16:
                tensor.data = (tensor.data * (wanted // max(len(tensor.data), 1) + 1)).ljust(wanted, b"\1")[
                    :wanted
                ]
    for node in graph.nodes:
        op = ops.by_name(node.op)
        given = [graph.tensors[i].shape for i in node.inputs if 0 <= i < len(graph.tensors)]
        if op is None or op.name == "region" or any(map(shape_complaint, given)):
            continue
        try:
            attrs = attributes.read(op.attrs, json.loads(node.attrs), {})
            inputs = tuple(None if i < 0 else _tensor(graph.tensors[i]) for i in node.inputs)
            shapes = op.infer(Node(attrs, inputs, tuple(_tensor(graph.tensors[i]) for i in node.outputs)))
        except (TinyetError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
            continue
        for index, shape in zip(node.outputs, shapes, strict=False):
            graph.tensors[index].shape = tuple(shape)


def _tensor(record: TensorRecord) -> Tensor:
    return Tensor(record.name, TensorType(record.shape, DType(record.dtype)))


MUTATIONS: tuple[Mutation, ...] = (
    _dtype, _dtypes, _shape, _sizes, _scale, _scales, _zero_point, _zero_points, _extremes, _quant, _data, _attribute,
    _wiring, _order, _texts, _numbers, _inner, _states,
)  # fmt: skip
WEIGHTS = (6, 4, 6, 8, 8, 4, 6, 2, 4, 4, 8, 20, 8, 4, 3, 1, 3, 3)
