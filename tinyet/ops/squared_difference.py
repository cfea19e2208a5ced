# SPDX-License-Identifier: Apache-2.0
"""(a - b)² with numpy's broadcasting, in int8 and int16 as LiteRT's SQUARED_DIFFERENCE, bit for bit. In float32 it is a
subtraction and a product.

Both operands, shifted left by 7 bits (int16: 0), are rescaled to twice the larger scale; the square of what is between
them is rescaled to the output. (tensorflow/lite/micro/kernels/squared_difference.cc has the formula.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.numerics import Multiplier, quantize_multiplier, requantize
from tinyet.ops.shared import broadcast
from tinyet.ops.shared.integers import INTEGERS, saturated
from tinyet.opset import ALONE, Call, FieldValue, Kernel, Op, Struct, elementwise, library_call

LEFT_SHIFTS = {DType.INT8: 7, DType.INT16: 0}


@dataclass(frozen=True)
class SquaredDifference(Attrs):
    """inputs: a, b, which broadcast, int8 or int16, as the output."""

    name: ClassVar[str] = "squared_difference"


def factors(node: Node) -> tuple[Multiplier, Multiplier, Multiplier]:
    """Of a, b and the square, in float64."""
    a, b, out = (t.type.scale for t in (node.input(0), node.input(1), node.output))
    twice = 2 * max(a, b)
    square = twice * twice / (2.0 ** (2 * LEFT_SHIFTS[node.output.dtype]) * out)
    return quantize_multiplier(a / twice), quantize_multiplier(b / twice), quantize_multiplier(square)


def check(node: Node) -> str | None:
    if node.output.dtype is DType.FLOAT32:
        return "float32 values are subtracted and multiplied"
    # The square has 30 bits.
    return broadcast.check_scaled(node, lambda: factors(node)[2].shift <= 0, INTEGERS)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    every, last = broadcast.operands(inputs), factors(node)[2]
    parts = []
    for index, (x, factor) in enumerate(zip(every, factors(node)[:2], strict=True)):
        shifted = broadcast.offset(node, index, x) << LEFT_SHIFTS[node.output.dtype]
        parts.append(requantize(shifted, factor.multiplier, factor.shift))
    square = (parts[0] - parts[1]) ** 2
    out = requantize(square, last.multiplier, last.shift) + node.output.type.zero_point
    return (saturated(np.asarray(out, np.int64), node.output.dtype),)


def lower(node: Node, _target: Target) -> Call:
    dtype = node.output.dtype
    fields: dict[str, FieldValue] = {"shape": broadcast.shape_struct(node)}
    tensors = (node.input(0), node.input(1), node.output)
    for name, tensor, factor in zip(("a", "b", "out"), tensors, factors(node), strict=True):
        if dtype is DType.INT8:
            fields[f"{name}_zero_point"] = tensor.type.zero_point
        fields |= {f"{name}_multiplier": factor.multiplier, f"{name}_shift": factor.shift}
    fields |= dict(zip(("clamp_low", "clamp_high"), dtype.range, strict=True))
    symbol = f"tinyet_squared_difference_{dtype.suffix}"
    return library_call(symbol, node, [0, 1], Struct(f"tinyet_add_{dtype.suffix}_params", fields))


OP = Op(
    attrs=SquaredDifference,
    summary="the square of a - b, broadcasting",
    infer=broadcast.infer,
    inputs=(2, 2),
    reference=reference,
    iteration=elementwise,
    check=check,
    inplace=(0, 1),
    kernels=tuple(
        Kernel(
            f"tinyet_squared_difference_{dtype}",
            dtype,
            lower,
            broadcast.HEADERS,
            ("tinyet_squared_difference.c",),
            broadcast.refuse_loops,
            no_cost_model=ALONE,
        )
        for dtype in ("s8", "s16")
    ),
)
