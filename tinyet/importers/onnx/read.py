# SPDX-License-Identifier: Apache-2.0
"""An ONNX file as records that are checked: sizes, types, and that each name is computed before it is read.

The `onnx` package parses the bytes; nothing else of the file is read, and no other file is opened.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tinyet.errors import DynamicShape, ModelError, ToolchainError, bullet_list
from tinyet.files.reading import read_bounded
from tinyet.ir import Array, Origin, Shape
from tinyet.ir.limits import MAX_CONSTANT_ELEMENTS, MAX_NODES, shape_complaint
from tinyet.messages.text import printable, shown

MAX_FILE_BYTES = 1 << 28
OLDEST_OPSET = 13
"""QuantizeLinear by channel, and axes as inputs, are from here on."""

OLDEST_CLASSICAL = 9
"""Of models with operators of ai.onnx.ml whose other ones are `_UNCHANGED`: converters write as old an opset as they
can."""

_UNCHANGED = (
    "Add",
    "ArgMax",
    "Cast",
    "Concat",
    "Constant",
    "Div",
    "Gemm",
    "Identity",
    "MatMul",
    "Mul",
    "Reshape",
    "Sub",
)
"""Operators that were in OLDEST_CLASSICAL what they are in OLDEST_OPSET."""

WIDE = ("int16", "uint16")
"""numpy's names of integers of 16 bits."""

DOMAINS = ("", "ai.onnx", "com.microsoft")
_TYPES = ("float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "int64", "bool")


@dataclass(frozen=True)
class OnnxValue:
    """An input of the model. dtype: numpy's name."""

    name: str
    dtype: str
    shape: Shape


@dataclass(frozen=True, eq=False)
class OnnxNode:
    """One node. attributes: numbers, texts, lists of these, arrays; inputs that are absent are empty names."""

    op: str
    name: str
    index: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The node's name in errors."""
        return f"{self.op}, node {self.index}" + (f" ({shown(self.name, 80)})" if self.name else "")

    def origin(self, file: str) -> Origin:
        """The debug handle: the node's name in place of a module's path, its index in place of a line."""
        path = ".".join(step for step in self.name.replace("::", "/").split("/") if step)
        key = next((name for name in self.outputs if name), "")
        return Origin(self.op, path or key, file, self.index, f"node {self.index}, {self.op}", key)


@dataclass(frozen=True, eq=False)
class OnnxModel:
    """file: its name in debug handles. notes: the reader's decisions."""

    file: str
    opset: int
    inputs: tuple[OnnxValue, ...]
    outputs: tuple[str, ...]
    nodes: tuple[OnnxNode, ...]
    constants: Mapping[str, Array]
    notes: tuple[str, ...]

    @property
    def constant_bytes(self) -> int:
        """Of all constants of the file, those of Constant nodes among them."""
        inner = (v for node in self.nodes for v in node.attributes.values() if isinstance(v, np.ndarray))
        return sum(array.nbytes for array in (*self.constants.values(), *inner))

    @functools.cached_property
    def has_int16(self) -> bool:
        """Whether values are quantized to 16 bits."""
        quantizers = [node for node in self.nodes if node.op == "QuantizeLinear" and len(node.inputs) > 2]
        held = {n.outputs[0]: n.attributes.get("value") for n in self.nodes if n.op == "Constant"}
        zeros = (self.constants.get(q.inputs[2], held.get(q.inputs[2])) for q in quantizers)
        return any(isinstance(z, np.ndarray) and z.dtype.name in WIDE for z in zeros)

    @property
    def is_quantized(self) -> bool:
        known = ("QuantizeLinear", "DequantizeLinear", "QGemm", "MatMulInteger", "ConvInteger")
        prefixes = ("QLinear", "DynamicQuantize", "MatMulIntegerToFloat")
        return any(node.op in known or node.op.startswith(prefixes) for node in self.nodes)


def read_file(path: Path) -> OnnxModel:
    """The model of a file. Raises ModelError (DynamicShape) for one that is missing, too large, damaged, older than
    opset 13, or not in one file, ToolchainError without the `onnx` package."""
    try:
        data = read_bounded(path, MAX_FILE_BYTES)
    except OSError as error:
        raise ModelError(f"the model cannot be read: {error.strerror}", str(path)) from error
    return read_model(data, str(path), path.name)


def read_model(data: bytes, where: str, file: str) -> OnnxModel:
    """The model of a file's bytes; raises what `read_file` raises. where: the file, for errors; file: for handles."""
    proto = parse(data, where)
    try:
        return _model(proto, where, file)
    except (ValueError, TypeError, KeyError, OverflowError, UnicodeError, MemoryError) as error:
        raise ModelError(f"the file is damaged: {shown(str(error), 200)}", where) from error


def parse(data: bytes, where: str) -> Any:
    """The ModelProto of a file's bytes."""
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise ToolchainError(
            f"reading ONNX files needs the onnx package: {error}", where, "pip install 'tinyet[onnx]'"
        ) from error
    try:
        proto = onnx.ModelProto()
        proto.ParseFromString(data)
    except DecodeError as error:
        raise ModelError("this is no ONNX model, or it is damaged", where) from error
    return proto


def _model(proto: Any, where: str, file: str) -> OnnxModel:
    graph = proto.graph
    if not graph.node:
        raise ModelError("this is no ONNX model, or an empty one", where)
    if len(graph.node) > MAX_NODES:
        raise ModelError(f"it has {len(graph.node):,} nodes, at most {MAX_NODES:,}", where)
    _check_domains(graph, where)
    opset = next((int(o.version) for o in proto.opset_import if o.domain in ("", "ai.onnx")), 0)
    others = {n.op_type for n in graph.node if n.domain in ("", "ai.onnx")}
    classical = any(n.domain == "ai.onnx.ml" for n in graph.node) and others <= set(_UNCHANGED)
    if opset < (OLDEST_CLASSICAL if classical else OLDEST_OPSET):
        hint = "onnx.version_converter.convert_version(model, 13), or export it again"
        raise ModelError(f"it is of opset {opset}, {OLDEST_OPSET} is the oldest that is taken", where, hint)
    if graph.sparse_initializer:
        raise ModelError("it has sparse constants", where, "store them as dense ones")
    problems: list[ModelError] = []
    notes: list[str] = []
    constants = {t.name: _array_or_problem(t, where, problems) for t in graph.initializer}
    inputs = _inputs(graph, constants, where, notes, problems)
    nodes = tuple(_node(node, index, where, problems) for index, node in enumerate(graph.node))
    _raise_all(problems, where)
    outputs = tuple(str(o.name) for o in graph.output)
    if not inputs or not outputs:
        raise ModelError(f"it has {len(inputs)} inputs and {len(outputs)} outputs", where)
    _check_names(nodes, [i.name for i in inputs], constants, outputs, where)
    return OnnxModel(file, opset, inputs, outputs, nodes, constants, tuple(notes))


_NOT_NETWORKS = {
    "ai.onnx.preview.training": ("a step of training, no inference", "export the model in eval mode"),
    "ai.onnx.training": ("a step of training, no inference", "export the model in eval mode"),
}
"""Domains of whole models of another kind: their content, and a hint."""


def _check_domains(graph: Any, where: str) -> None:
    for domain, (kind, hint) in _NOT_NETWORKS.items():
        found = [f"{_word(n.op_type)}, node {i}" for i, n in enumerate(graph.node) if n.domain == domain]
        if found:
            more = [f"… {len(found) - 20} more"] if len(found) > 20 else []
            raise ModelError(f"it holds {kind}: {domain}\n{bullet_list([*found[:20], *more])}", where, hint)


def _raise_all(problems: Sequence[ModelError], where: str) -> None:
    """All of them in one error; a single one as it is."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        texts = [p.what + (f"\n    do: {p.hint}" if p.hint else "") for p in problems[:20]]
        more = [f"… {len(problems) - 20} more"] if len(problems) > 20 else []
        raise ModelError(
            f"{len(problems)} things in it cannot be taken:\n{bullet_list([*texts, *more])}", where
        )


def _array_or_problem(tensor: Any, where: str, problems: list[ModelError]) -> Array:
    """A constant; nothing, and a problem more, where it is none."""
    try:
        return array_of(tensor, where)
    except ModelError as error:
        problems.append(error)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        name = shown(str(tensor.name), 80)
        problems.append(ModelError(f"the constant {name} is damaged: {shown(str(error), 200)}", where))
    return np.zeros(0, np.float32)


def array_of(tensor: Any, where: str) -> Array:
    """A constant's numbers, of one of _TYPES; float16 and float64 as float32, int64 as it is."""
    from onnx import TensorProto, numpy_helper

    name = shown(str(tensor.name), 80)
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        hint = "onnx.save(onnx.load(path), new_path) puts all into one file"
        raise ModelError(f"the constant {name} lies in another file", where, hint)
    dims = [int(d) for d in tensor.dims]
    if any(d < 0 for d in dims) or math.prod(dims) > MAX_CONSTANT_ELEMENTS:
        raise ModelError(f"the constant {name} has the shape {dims}", where)
    kind = _type_name(tensor.data_type)
    if kind not in _TYPES:
        raise ModelError(f"the constant {name} is {kind}", where, "use float32, or integers of 8 to 64 bits")
    data = numpy_helper.to_array(tensor)
    if data.shape != tuple(dims):
        raise ModelError(f"the constant {name} has another size than it says", where)
    return np.ascontiguousarray(data.astype(np.float32) if kind in ("float16", "float64") else data).reshape(
        dims
    )


def _type_name(number: int) -> str:
    """numpy's name of an element type, or the number of one that ONNX has not."""
    from onnx import helper

    try:
        return str(np.dtype(helper.tensor_dtype_to_np_dtype(number)))
    except KeyError:
        return f"of the unknown type {number}"


def _inputs(
    graph: Any, constants: Mapping[str, Array], where: str, notes: list[str], problems: list[ModelError]
) -> tuple[OnnxValue, ...]:
    """The inputs that can be taken; the reasons against the others are added to the problems."""
    found: list[OnnxValue] = []
    dynamic: list[str] = []
    for value in graph.input:
        if value.name in constants:
            continue
        kind = value.type.tensor_type
        name = shown(str(value.name), 80)
        if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
            problems.append(ModelError(f"input {name} is no tensor of a known shape", where))
            continue
        dtype = _type_name(kind.elem_type)
        shape: list[int] = []
        for axis, dim in enumerate(kind.shape.dim):
            size = int(dim.dim_value)
            if size > 0:
                shape.append(size)
            elif axis == 0:
                shape.append(1)
                notes.append(
                    f"input {name}: its first dimension ({shown(dim.dim_param or '?', 40)}) is taken as 1"
                )
            else:
                dynamic.append(f"dimension {axis} of input {name} is {shown(dim.dim_param or 'unknown', 40)}")
                shape.append(1)
        if (problem := shape_complaint(tuple(shape))) is not None:
            problems.append(ModelError(f"input {name}: {problem}", where))
        if dtype not in _TYPES:
            problems.append(ModelError(f"input {name} is {dtype}", where, "take float32, or integers"))
        found.append(OnnxValue(str(value.name), dtype, tuple(shape)))
    if dynamic:
        hint = "give them numbers: onnxruntime.tools.make_dynamic_shape_fixed, or export with fixed shapes"
        problems.append(DynamicShape(f"sizes that are not known:\n{bullet_list(dynamic)}", where, hint))
    return tuple(found)


def _word(text: Any) -> str:
    """The name of an operator or a domain, as errors have it."""
    return printable(str(text)[:80])


def _node(node: Any, index: int, where: str, problems: list[ModelError]) -> OnnxNode:
    attributes = {str(a.name): _attribute(a, where, problems) for a in node.attribute}
    op = _word(node.op_type)
    if node.domain not in DOMAINS:
        op = f"{_word(node.domain)}.{op}"
    return OnnxNode(
        op, str(node.name), index, tuple(map(str, node.input)), tuple(map(str, node.output)), attributes
    )


def _attribute(attribute: Any, where: str, problems: list[ModelError]) -> Any:
    """Numbers, texts, lists of these, arrays; None for attributes that no handler reads (graphs, types)."""
    from onnx import AttributeProto, helper

    if attribute.type == AttributeProto.TENSOR:
        return _array_or_problem(attribute.t, where, problems)
    plain = ("FLOAT", "INT", "STRING", "FLOATS", "INTS", "STRINGS")
    if attribute.type not in [getattr(AttributeProto, name) for name in plain]:
        return None
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    return (
        [v.decode() if isinstance(v, bytes) else v for v in value]
        if isinstance(value, Sequence) or hasattr(value, "__len__")
        else value
    )


@functools.cache
def _most_inputs(op: str) -> int:
    """Number of inputs of an ONNX operator in the newest version that the `onnx` package knows; any number for an
    unknown one."""
    from onnx import defs

    return int(defs.get_schema(op).max_input) if defs.has(op) else 1 << 31


def _check_names(
    nodes: Sequence[OnnxNode],
    inputs: Sequence[str],
    constants: Mapping[str, Array],
    outputs: Sequence[str],
    where: str,
) -> None:
    """Each name is given once, before it is read."""
    known = set(inputs) | set(constants)
    problems: list[str] = []
    for node in nodes:
        problems += [
            f"{node.title} reads {shown(name, 80)}, which nothing before it gives"
            for name in node.inputs
            if name and name not in known
        ]
        most = _most_inputs(node.op)
        if len(node.inputs) > most:
            problems.append(f"{node.title} has {len(node.inputs)} inputs, at most {most}")
        given = [name for name in node.outputs if name]
        problems += [f"{node.title} gives {shown(n, 80)} again" for n in given if n in known]
        if len(set(given)) != len(given) or not given:
            problems.append(f"{node.title} has {len(given)} outputs, {len(set(given))} names")
        known |= set(given)
    problems += [f"nothing gives the output {shown(name, 80)}" for name in outputs if name not in known]
    if problems:
        more = [f"… {len(problems) - 20} more"] if len(problems) > 20 else []
        raise ModelError(f"the graph is damaged:\n{bullet_list([*problems[:20], *more])}", where)
