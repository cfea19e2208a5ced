# SPDX-License-Identifier: Apache-2.0
"""Any function of an element of eight bits as an integer, by table: of an image's bytes, what the model makes of them
first; of an int8, what another tool's kernel gives for each of its 256 values.

One table for all elements, or, of uint8, one for each index of an axis (a camera's channels). Where the table is
byte - 128, as with inputs divided by 255, no table is stored: the byte's highest bit is turned over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.counting import Parts, values
from tinyet.ops.shared.integers import check_activations
from tinyet.ops.shared.shapes import around_axis
from tinyet.ops.shared.table import table_kernel
from tinyet.opset import (
    ALONE,
    AXIS,
    ONE,
    Call,
    Constant,
    CostModel,
    FieldValue,
    Iteration,
    Kernel,
    Nest,
    Op,
    Pointer,
    Struct,
    library_call,
    library_kernels,
    operand,
    signature,
)

_BYTES = 256
_HEADERS = ("tinyet_bytes.h",)


@dataclass(frozen=True)
class Lookup(Attrs):
    """inputs: x, uint8 or int8 of any shape; table (C, 256), a constant of the output's type: its row c holds the
    results for the elements at index c of `axis`, of int8 in the order of their bytes: 0 … 127, -128 … -1. With C = 1,
    as int8 has it always, the row is for all elements. The output is int8, int16 or uint8."""

    name: ClassVar[str] = "lookup"
    axis: int = field(metadata=AXIS)


def attrs_of(node: Node) -> Lookup:
    assert isinstance(node.attrs, Lookup)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    shape, table, axis = node.input(0).shape, node.input(1).shape, attrs_of(node).axis
    if not 0 <= axis < max(len(shape), 1):
        raise UnsupportedShape(f"lookup: axis {axis} of {len(shape)} dimensions", node.where)
    rows = (1, shape[axis]) if shape else (1,)
    if table not in [(count, _BYTES) for count in rows]:
        raise UnsupportedShape(f"lookup: a table {table} for {rows[-1]} channels of bytes", node.where)
    return (shape,)


def iterate(node: Node) -> Iteration:
    nest, (rows, entries) = Nest(), node.input(1).shape
    out = nest.all_parallel(node.output.shape)
    row = ONE if rows == 1 else out[attrs_of(node).axis]
    return nest.iteration([operand(*out), operand(row, nest.reduced(entries))], [operand(*out)])


def check(node: Node) -> str | None:
    x, table, out = node.input(0), node.input(1), node.output
    if x.dtype not in (DType.UINT8, DType.INT8) or (x.dtype is DType.UINT8 and x.type.quant is not None):
        return f"looks up int8 and plain uint8, not {x.dtype.value}"
    if x.dtype is DType.INT8 and len(table.array if table.is_constant else ()) > 1:
        return "int8 has one table for all elements"
    if not table.is_constant:
        return "the table must be a constant"
    if (table.dtype, table.type.quant) != (out.dtype, out.type.quant):
        return "table and output must have one type and quantization"
    return None if out.dtype is DType.UINT8 else check_activations(out)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, table = inputs[0], inputs[1]
    assert x is not None
    assert table is not None
    shape = [1] * x.ndim
    if table.shape[0] > 1:
        shape[attrs_of(node).axis] = -1
    rows = np.arange(table.shape[0]).reshape(shape) if x.ndim else 0
    return (np.asarray(table[rows, x.view(np.uint8)], table.dtype).reshape(x.shape),)


def is_flip(node: Node) -> bool:
    """Whether every table is byte - 128."""
    return bool((node.input(1).array == np.arange(_BYTES) - 128).all())


def lower_flip(node: Node, _target: Target) -> Call:
    params = Struct("tinyet_bytes_params", {"count": node.output.type.count})
    return library_call("tinyet_flip_u8_s8", node, [0], params)


def lower(node: Node, _target: Target) -> Call:
    table = node.input(1).array
    outer, channels, inner = 1, 1, node.output.type.count
    if len(table) > 1:
        outer, channels, inner = around_axis(node.input(0).shape, attrs_of(node).axis)
    symbol = f"tinyet_lut_{signature(node)}"
    fields: dict[str, FieldValue] = {
        "table": Pointer("table"),
        "outer": outer,
        "channels": channels,
        "inner": inner,
    }
    constants = [Constant("table", np.ascontiguousarray(table).reshape(-1))]
    return library_call(symbol, node, [0], Struct(f"{symbol}_params", fields), constants)


def refuse_flip(node: Node, _target: Target) -> str | None:
    return None if is_flip(node) else "the table is another than byte - 128"


def looked_up(node: Node) -> Parts:
    """A table for all, or one a channel."""
    outer, channels = 1, 1
    if len(node.input(1).array) > 1:
        outer, channels, _ = around_axis(node.input(0).shape, attrs_of(node).axis)
    return {"call": 1, "row": outer, "channel": outer * channels, "value": node.output.type.count}


def _of_bytes(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    """The reference, of one input: the table is the node's own."""
    return reference(node, [inputs[0], node.input(1).array])


def _axis_of_tables(node: Node) -> tuple[int, ...]:
    return (attrs_of(node).axis,) if len(node.input(1).array) > 1 else ()


OP = Op(
    attrs=Lookup,
    summary="functions of a uint8 or int8 by table",
    infer=infer,
    inputs=(2, 2),
    reference=reference,
    iteration=iterate,
    check=check,
    inplace=(0,),
    kernels=(
        Kernel(
            "tinyet_flip_u8_s8",
            "u8_s8",
            lower_flip,
            _HEADERS,
            ("tinyet_flip_u8_s8.c",),
            refuse_flip,
            cost_model=CostModel(values),
        ),
        *library_kernels("tinyet_lut", ("u8_s8", "u8_s16"), lower, _HEADERS, cost_model=CostModel(looked_up)),
        table_kernel(_of_bytes),
        *library_kernels("tinyet_lut", ("s8_s16", "s8_u8", "u8"), lower, _HEADERS, no_cost_model=ALONE),
    ),
)
