# SPDX-License-Identifier: Apache-2.0
"""Shared parts of softmax and its logarithm: an axis, LiteRT's limits on int8, and the table of exponentials.

In int8 the exponential of a difference from the maximum takes at most 256 values, so the kernels look it up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared import broadcast
from tinyet.ops.shared.fixed_point import SUM_INTEGER_BITS, differences
from tinyet.ops.shared.shapes import around_axis, expect_axis
from tinyet.opset import AXIS, Call, Constant, Pointer, Reference, Refuse, Struct, library_call

FIXED_HEADERS = ("tinyet_softmax.h", "tinyet_fixed_point.h")
FLOAT_HEADERS = ("tinyet_softmax.h", "tinyet_math.h")

# Every exponential is at most 1, so that this many cannot overflow the sum.
MAX_DEPTH = (1 << SUM_INTEGER_BITS) - 1
# From here on the specification shifts a difference by 31 bits, which leaves nothing of it.
MAX_INPUT_SCALE = 16.0


@dataclass(frozen=True)
class AlongAxis(Attrs):
    """inputs: x of any shape with the axis `axis`."""

    axis: int = field(metadata=AXIS)


def attrs_of(node: Node) -> AlongAxis:
    assert isinstance(node.attrs, AlongAxis)
    return node.attrs


def input_scale(node: Node) -> float:
    """Of the integers, times what softmax multiplies their differences by: in float64, but by LiteRT in float32 for
    int16."""
    scale, beta = node.input(0).type.scale, float(np.float32(getattr(attrs_of(node), "beta", 1.0)))
    single = node.input(0).dtype is DType.INT16 and not getattr(attrs_of(node), "tflm", False)
    return float(np.float32(scale) * np.float32(beta)) if single else scale * beta


def infer(node: Node) -> tuple[Shape, ...]:
    return (expect_axis(node, attrs_of(node).axis),)


def check(node: Node) -> str | None:
    """The type rule of the int8 form, but for the output's scale."""
    complaint = broadcast.check_elementwise(node)
    if complaint is not None or node.output.dtype is not DType.INT8:
        return complaint
    return check_int8_input(node)


def check_int8_input(node: Node) -> str | None:
    """Scale and depth of an int8 input."""
    if input_scale(node) <= 2.0**-26:
        return f"an input scale of {input_scale(node)} is too small"
    if input_scale(node) >= MAX_INPUT_SCALE:
        return f"an input scale of {input_scale(node)} is too large: a step is already all or nothing"
    depth = node.input(0).shape[attrs_of(node).axis]
    return f"{depth} elements along the axis, at most {MAX_DEPTH}" if depth > MAX_DEPTH else None


def has_scale(node: Node, wanted: tuple[float, int]) -> bool:
    """Whether the output has the scale and zero point that LiteRT demands, and the node LiteRT's arithmetic."""
    return (node.output.type.scale, node.output.type.zero_point) == wanted


def refuse_other_scales(wanted: tuple[float, int]) -> Refuse:
    """Of the kernel that has LiteRT's arithmetic."""
    return lambda node, _: (
        None if has_scale(node, wanted) else f"only an output scale of {wanted[0]} and zero point {wanted[1]}"
    )


def refuse_scale(unwanted: tuple[float, int]) -> Refuse:
    """Of a kernel for any scale, where LiteRT's arithmetic comes to other integers at its own."""
    return lambda node, _: (
        f"an output scale of {unwanted[0]} and zero point {unwanted[1]} has LiteRT's arithmetic"
        if has_scale(node, unwanted)
        else None
    )


def along_axis(function: Callable[[Node, Array], Array]) -> Reference:
    """The reference of an operator whose `function` works along the last axis."""

    def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, axis = inputs[0], attrs_of(node).axis
        assert x is not None
        out = function(node, np.moveaxis(x, axis, -1))
        return (np.ascontiguousarray(np.moveaxis(out, -1, axis)),)

    return reference


# ---------------------------------------------------------------- kernels


def axis_struct(node: Node) -> Struct:
    """Elements (outer, depth, inner): the operator works along the middle."""
    outer, depth, inner = around_axis(node.input(0).shape, attrs_of(node).axis)
    return Struct("tinyet_softmax_shape", {"outer": outer, "depth": depth, "inner": inner})


def exponentials_call(
    symbol: str, node: Node, comment: str, fields: Mapping[str, int], struct: str = ""
) -> Call:
    """The call of an int8 kernel: its parameters are the axis, the exponentials of the differences 0, -1 … as far as
    they are not zero, and `fields`. comment: of the exponentials. struct: the parameters' type, where it is not named
    after the symbol."""
    values = differences(input_scale(node)).exponentials()
    # They fall; an exponential of zero gives the same output as does a difference that counts as nothing.
    table = Constant("exponentials", values[: np.count_nonzero(values)].astype(np.int32), comment)
    params = Struct(
        struct or f"{symbol}_params",
        {
            "shape": axis_struct(node),
            "exponentials": Pointer(table.name),
            "count": table.data.size,
            **fields,
        },
    )
    return library_call(symbol, node, [0], params, [table])


def lower_f32(node: Node, _target: Target) -> Call:
    return library_call(f"tinyet_{node.op}_f32", node, [0], axis_struct(node))
