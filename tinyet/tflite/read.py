# SPDX-License-Identifier: Apache-2.0
"""A .tflite file → records. Indices are within their lists, types and operators known by name, constants as long as
their shapes say; whether operators make sense is asked by the importer."""

from __future__ import annotations

import math
from pathlib import Path

from tinyet.errors import ModelError
from tinyet.files.flatbuffer import Buffer, Table
from tinyet.files.reading import read_bounded
from tinyet.tflite.enumerations import BUILTINS, TYPES
from tinyet.tflite.options import read_options
from tinyet.tflite.records import Model, Operator, Quantization, Signature, Subgraph, TensorInfo

IDENTIFIER = b"TFL3"
MAX_FILE_BYTES = 1 << 28
"""Far beyond what a microcontroller's flash holds."""

_VERSION = 3
_MAX_PARTS = 1 << 16
"""Tensors of a subgraph, operators, dimensions: what else a corrupt file could ask for without end."""

_SHARED = 4
"""Number of times that the parts of a file may be shared: writers may store equal vectors once."""

# Bits of an element, for the types that constants can have.
BITS = {
    "float32": 32,
    "float16": 16,
    "int32": 32,
    "uint8": 8,
    "int64": 64,
    "bool": 8,
    "int16": 16,
    "int8": 8,
    "float64": 64,
    "uint64": 64,
    "uint32": 32,
    "uint16": 16,
    "int4": 4,
    "bfloat16": 16,
    "int2": 2,
    "uint4": 4,
}


def read_file(path: str | Path) -> Model:
    """The model in a file. Raises ModelError for one that cannot be read or is no such file."""
    try:
        data = read_bounded(path, MAX_FILE_BYTES)
    except OSError as error:
        raise ModelError(f"the file cannot be read: {error.strerror}", str(path)) from error
    return read_model(data, str(path))


def read_model(data: bytes, where: str = "") -> Model:
    """The model in the bytes of a file called `where`. Raises ModelError."""
    if data[4:8] != IDENTIFIER:
        raise ModelError("this is no .tflite file: TFL3 is not in it", where or None)
    try:
        return _model(data)
    except ValueError as error:
        hint = "convert or copy the file anew"
        raise ModelError(f"the .tflite file is damaged: {error}", where or None, hint) from error


def _model(data: bytes) -> Model:
    buffer = Buffer(data)
    buffer.left *= _SHARED
    root = buffer.root()
    version = root.number(0, kind="I")
    if version != _VERSION:
        raise ValueError(f"its schema has version {version}, not {_VERSION}")
    buffers = root.children(4, _buffer)
    codes = root.children(1, _code)
    subgraphs = tuple(root.children(2, lambda t: _subgraph(t, buffers, codes)))
    if not subgraphs:
        raise ValueError("it has no subgraph")
    signatures = tuple(root.children(7, _signature))
    for signature in signatures:
        if signature.subgraph >= len(subgraphs):
            raise ValueError(f"signature {signature.key!r} names subgraph {signature.subgraph}")
        tensors = len(subgraphs[signature.subgraph].tensors)
        for name, index in (*signature.inputs, *signature.outputs):
            if index >= tensors:
                raise ValueError(f"signature {signature.key!r}: {name!r} is tensor {index} of {tensors}")
    return Model(subgraphs, signatures, root.text(3))


def _buffer(table: Table) -> bytes | None:
    """The constant of a tensor; None for the empty buffer of a computed one."""
    if table.number(1, kind="Q") > 1:
        raise ValueError("its constants stand behind the flatbuffer, as in files of 2 GB and more")
    return table.raw(0) or None


def _code(table: Table) -> tuple[str, str, int]:
    """(builtin, custom name, version). The first field held all codes while there were fewer than 128."""
    number = max(table.number(0, kind="b"), table.number(3))
    if not 0 <= number < len(BUILTINS):
        raise ValueError(f"there is no builtin operator {number}")
    return BUILTINS[number], table.text(1), table.number(2, 1)


def _subgraph(table: Table, buffers: list[bytes | None], codes: list[tuple[str, str, int]]) -> Subgraph:
    tensors = tuple(table.children(0, lambda t: _tensor(t, buffers)))
    operators = tuple(table.children(3, lambda t: _operator(t, codes, len(tensors))))
    if max(len(tensors), len(operators)) > _MAX_PARTS:
        raise ValueError(f"a subgraph has {len(tensors)} tensors and {len(operators)} operators")
    inputs, outputs = table.numbers(1), table.numbers(2)
    for index in (*inputs, *outputs):
        if not 0 <= index < len(tensors):
            raise ValueError(f"a subgraph takes or gives tensor {index} of {len(tensors)}")
    return Subgraph(table.text(4), tensors, inputs, outputs, operators)


def _tensor(table: Table, buffers: list[bytes | None]) -> TensorInfo:
    name, shape, number, index = (
        table.text(3),
        table.numbers(0),
        table.number(1, kind="b"),
        table.number(2, kind="I"),
    )
    if not 0 <= number < len(TYPES):
        raise ValueError(f"tensor {name!r} has the type {number}")
    kind = TYPES[number]
    if any(size < 0 for size in shape) or len(shape) > _MAX_PARTS:
        raise ValueError(f"tensor {name!r} has the shape {shape}")
    if index >= max(len(buffers), 1):
        raise ValueError(f"tensor {name!r} has buffer {index} of {len(buffers)}")
    data = buffers[index] if buffers else None
    if data is not None and kind in BITS:
        wanted = (math.prod(shape) * BITS[kind] + 7) // 8
        if len(data) != wanted:
            raise ValueError(f"tensor {name!r} is {kind}{list(shape)}, {wanted} bytes, and has {len(data)}")
    quantization, unusual = _quantization(table.child(4), name)
    if table.child(6) is not None:
        unusual = "sparse"
    if table.number(10, kind="I"):
        unusual = "in another file"
    variable = bool(table.number(5, kind="b"))
    return TensorInfo(name, shape, kind, data, quantization, table.numbers(7), variable, unusual)


def _quantization(table: Table | None, name: str) -> tuple[Quantization | None, str]:
    if table is None:
        return None, ""
    if table.number(4, kind="b"):
        return None, "quantized by blocks"
    scale, zero_point = table.reals(2), table.numbers(3, "q")
    if not scale:
        return None, ""
    if not zero_point:
        zero_point = (0,) * len(scale)
    if len(zero_point) == 1:
        zero_point *= len(scale)
    if len(scale) != len(zero_point):
        raise ValueError(f"tensor {name!r} has {len(scale)} scales and {len(zero_point)} zero points")
    return Quantization(scale, zero_point, table.number(6)), ""


def _operator(table: Table, codes: list[tuple[str, str, int]], tensors: int) -> Operator:
    index = table.number(0, kind="I")
    if index >= len(codes):
        raise ValueError(f"an operator has code {index} of {len(codes)}")
    code, custom, version = codes[index]
    inputs, outputs, intermediates = table.numbers(1), table.numbers(2), table.numbers(8)
    for number in (*inputs, *outputs, *intermediates):
        if not -1 <= number < tensors:
            raise ValueError(f"{custom or code} has tensor {number} of {tensors}")
    if -1 in outputs:
        raise ValueError(f"{custom or code} has an output that is absent")
    options = read_options(table.number(3, kind="B"), table.child(4))
    raw = table.raw(5) or b""
    return Operator(code, inputs, outputs, options, custom, raw, intermediates, version)


def _signature(table: Table) -> Signature:
    return Signature(table.text(2), table.number(4, kind="I"), _names(table, 0), _names(table, 1))


def _names(table: Table, slot: int) -> tuple[tuple[str, int], ...]:
    return tuple(table.children(slot, lambda t: (t.text(0), t.number(1, kind="I"))))
