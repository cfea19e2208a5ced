# SPDX-License-Identifier: Apache-2.0
"""Sums over an image or a sequence, a tile of rows at a time: how Mean, Sum and average pooling of a whole image are
computed where the layers before them are computed by rows (`TileMap.reduces`). No program holds it.

Its sums are exact, so that the last tile rounds what the whole operator would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from math import prod
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import InternalError
from tinyet.ir import Array, Attrs, Node, Shape
from tinyet.numerics import Multiplier
from tinyet.ops.shared.averaging import Division
from tinyet.ops.shared.integers import INTEGERS
from tinyet.opset import (
    Call,
    Constant,
    CostModel,
    FieldValue,
    Kernel,
    Op,
    Pointer,
    Struct,
    TileMap,
    has_rows,
    library_call,
    library_kernels,
    rows_of,
)


@dataclass(frozen=True)
class RowSums(Attrs):
    """input: x (1, …, C), int8 or int16; output: of the same type, a value for each channel.

    tiles: how many there are. finish: how the sum of each channel is rounded when the last is done. bias: what is
    added to it before.
    """

    name: ClassVar[str] = "row_sums"
    tiles: int
    bias: int
    finish: Multiplier | Division


def rule(node: Node, rows: int, bias: int, finish: Multiplier | Division) -> TileMap | None:
    """Of an operator that makes a number of each channel's sum over a whole image, so many rows at a time; None where
    it is of one row."""
    x = node.input(0)
    if not has_rows(x) or x.dtype not in INTEGERS:
        return None
    return TileMap((0,), RowSums(rows_of(x) // rows, bias, finish), window=rows, stride=rows, out=0)


def attrs_of(node: Node) -> RowSums:
    assert isinstance(node.attrs, RowSums)
    return node.attrs


def _infer(node: Node) -> tuple[Shape, ...]:
    return tuple(t.shape for t in node.outputs)


def _reference(node: Node, _inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    raise InternalError("a tile of a sum has no value of its own", node.where)


# ---------------------------------------------------------------- portable kernels


def scratch_bytes(channels: int) -> int:
    """An int32 for the tiles that are done, and one for each channel's sum."""
    return 4 * (1 + channels)


def shape_struct(node: Node) -> Struct:
    *pixels, channels = node.input(0).shape
    fields_ = {"tiles": attrs_of(node).tiles, "pixels": prod(pixels), "channels": channels}
    return Struct("tinyet_tiled_sum_shape", fields_)


def _refuse_averages(node: Node, _target: Target) -> str | None:
    return "an average" if isinstance(attrs_of(node).finish, Division) else None


def _refuse_sums(node: Node, _target: Target) -> str | None:
    return "requantized" if isinstance(attrs_of(node).finish, Multiplier) else None


def _lower_sums(node: Node, _target: Target) -> Call:
    a = attrs_of(node)
    assert isinstance(a.finish, Multiplier)
    values: dict[str, FieldValue] = {"shape": shape_struct(node), "bias": a.bias}
    values |= {"multiplier": a.finish.multiplier, "shift": a.finish.shift}
    params = Struct("tinyet_tiled_sum_params", {**values, "out_zero_point": node.output.type.zero_point})
    return _call("tinyet_tiled_sum", node, params)


def _lower_averages(node: Node, _target: Target) -> Call:
    a = attrs_of(node)
    assert isinstance(a.finish, Division)
    names = ", ".join(field.name for field in fields(Division))
    table = Constant("division", np.array(astuple(a.finish), np.int32), names)
    values: dict[str, FieldValue] = {"shape": shape_struct(node), "division": Pointer(table.name)}
    return _call("tinyet_tiled_average", node, Struct("tinyet_tiled_average_params", values), (table,))


def _call(name: str, node: Node, params: Struct, constants: Sequence[Constant] = ()) -> Call:
    x = node.input(0)
    size = scratch_bytes(x.shape[-1])
    return library_call(f"{name}_{x.dtype.suffix}", node, [0], params, constants, size)


def _work(node: Node) -> Mapping[str, int]:
    """Four channels at a time, or one; of the outputs, which the last tile rounds, each tile's share."""
    *image, channels = node.input(0).shape
    quads, single = divmod(channels, 4)
    pixels = prod(image)
    return {
        "call": 1,
        "quads": quads,
        "quads of pixels": quads * pixels,
        "values": single,
        "pixels": single * pixels,
        # Of a core on which four channels take no longer than fewer.
        "single channels": min(single, 1),
        "pixels of single channels": min(single, 1) * pixels,
        "outputs": -(-channels // attrs_of(node).tiles),
    }


HEADERS = ("tinyet_tiled_sum.h", "tinyet_average.h")

KERNELS: tuple[Kernel, ...] = (
    *library_kernels(
        "tinyet_tiled_sum", ("s8", "s16"), _lower_sums, HEADERS, _refuse_averages, CostModel(_work)
    ),
    *library_kernels(
        "tinyet_tiled_average", ("s8", "s16"), _lower_averages, HEADERS, _refuse_sums, CostModel(_work)
    ),
)

OP = Op(
    attrs=RowSums,
    summary="sums over an image or a sequence, a tile of rows at a time",
    infer=_infer,
    reference=_reference,
    kernels=KERNELS,
)
