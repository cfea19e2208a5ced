# SPDX-License-Identifier: Apache-2.0
"""Functions of a byte: the operator that gives the same for all 256 values, else a table that is gathered from.

TFLite has no operator that looks up a table of the model's own. CAST to int32, ADD of 128 and GATHER do that, of any
function, in both runtimes; they take four bytes a value on the way, and the note says so.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tinyet import ops
from tinyet.exporters.tflite.context import Context
from tinyet.ir import Array, Attrs, DType, Node, QuantParams, Tensor, TensorType
from tinyet.numerics import quantize_multiplier
from tinyet.ops.clamp import Clamp
from tinyet.ops.requantize import Requantize
from tinyet.ops.shared.table import every_int8
from tinyet.ops.shared.unary_functions import FunctionName
from tinyet.ops.unary import Unary
from tinyet.opset import complaints
from tinyet.tflite import Quantization, Runtime
from tinyet.tflite.enumerations import TYPES
from tinyet.tflite.options import (
    AddOptions,
    CastOptions,
    GatherOptions,
    GeluOptions,
    LeakyReluOptions,
    Options,
)

BOTH: tuple[Runtime, ...] = ("litert", "tflm")
LITERT: tuple[Runtime, ...] = ("litert",)

_FIXED = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
"""The output quantization that LiteRT requires."""

_FUNCTIONS: dict[FunctionName, tuple[str, tuple[Runtime, ...]]] = {
    "sigmoid": ("LOGISTIC", LITERT),
    "tanh": ("TANH", LITERT),
    "exp": ("EXP", LITERT),
    "gelu": ("GELU", LITERT),
    "abs": ("ABS", LITERT),
    "hardswish": ("HARD_SWISH", BOTH),
    "leaky_relu": ("LEAKY_RELU", BOTH),
}
"""Operators whose int8 kernels are those of Unary, and in which runtimes. (LOG refuses models that could meet a
negative number; ELU is not among the reference kernels.)"""

_CLAMPS: dict[str, tuple[float, float]] = {"RELU": (0.0, np.inf), "RELU6": (0.0, 6.0)}


def operators(
    ctx: Context, x: TensorType, out: TensorType, own: Attrs | None
) -> Iterator[tuple[str, Options | None, Attrs]]:
    """(operator, its options, what it computes in our terms) of all that may serve between two types in the runtime of
    the file, those of the node's own function first."""
    if x.quant != out.quant or own is None:
        yield "QUANTIZE", None, Requantize()
    for code, bounds in _CLAMPS.items():
        if x.quant == out.quant or (code == "RELU" or ctx.runtime == "litert"):
            yield code, None, Clamp(*bounds)
    if isinstance(own, Unary) and own.function in _FUNCTIONS:
        functions, alpha = [own.function], own.alpha
    else:
        functions, alpha = [name for name in _FUNCTIONS if name != "leaky_relu"], 0.0
    for function in functions:
        code, runtimes = _FUNCTIONS[function]
        fixed = _FIXED.get(code, (out.scale, out.zero_point))
        if ctx.runtime not in runtimes or fixed != (out.scale, out.zero_point):
            continue
        if code == "HARD_SWISH" and not _takes_hard_swish(x, out):
            continue
        options = {"leaky_relu": LeakyReluOptions(alpha), "gelu": GeluOptions(approximate=False)}.get(
            function
        )
        yield code, options, Unary(function, alpha)


def _takes_hard_swish(x: TensorType, out: TensorType) -> bool:
    """LiteRT refuses left shifts, and is undefined for right shifts of 16 bits and more."""
    ratio = np.float32(np.float32(x.scale) * np.float32(1 / 128)) / np.float32(out.scale)
    return -15 <= quantize_multiplier(float(ratio)).shift <= 0


def results_of(attrs: Attrs, x: TensorType, out: TensorType) -> Array | None:
    """Results of an operator with one int8 input for every value, (256,) in the order of every_int8; None where it
    does not take these types."""
    shape = (256,)
    given = Tensor("x", TensorType(shape, x.dtype, x.quant))
    node = Node(attrs, (given,), (Tensor("y", TensorType(shape, out.dtype, out.quant)),))
    if complaints(ops.op_of(node), node):
        return None
    return np.asarray(ops.op_of(node).reference(node, [every_int8()])[0])


def tabulated(ctx: Context, x: int, type_: TensorType, table: Array, own: Attrs | None) -> None:
    """The output of the node at hand: of each int8 of a tensor, what the table (256,) has for it in the order of
    every_int8. own: the node's function, where it has one."""
    out = ctx.node.output.type
    for code, options, attrs in operators(ctx, type_, out, own):
        found = results_of(attrs, type_, out)
        if found is not None and np.array_equal(found, table):
            of_litert = isinstance(attrs, Unary) and _FUNCTIONS[attrs.function][1] == LITERT
            if of_litert or (code == "RELU6" and type_.quant != out.quant):
                ctx.unlike("tflm", f"computes this int8 {code} otherwise, or not at all")
            ctx.call(code, [x], ctx.out, options)
            return
    gather_table(ctx, x, table[None], 0)


def gather_table(ctx: Context, x: int, tables: Array, axis: int) -> None:
    """The output of the node at hand from an int8 tensor: tables (C, 256) in the order of every_int8, one for each
    index of `axis`, or one for all."""
    out, shape = ctx.node.output.type, ctx.tensors[x].shape
    ctx.note("in the .tflite file: a table, gathered from by int32 indices, as there is no such operator")
    wide = TensorType(shape, DType.INT32)
    kinds = TYPES.index("int8"), TYPES.index("int32")
    index = ctx.call("CAST", [x], ctx.value(wide, "int32"), CastOptions(*kinds))
    first = 128 + 256 * np.arange(len(tables), dtype=np.int32)
    around = [1] * len(shape)
    if len(tables) > 1:
        around[axis] = len(tables)
    held = ctx.constant(first.reshape(around), "first")
    index = ctx.call("ADD", [index, held], ctx.value(wide, "index"), AddOptions(pot_scale_int16=False))
    # The table begins with what -128 becomes.
    data = np.ascontiguousarray(np.roll(tables, 128, axis=1).reshape(-1).astype(out.dtype.numpy))
    ctx.call("GATHER", [ctx.constant(data, "table", out.quant), index], ctx.out, GatherOptions(0))


def bytes_quant(quant: QuantParams) -> Quantization:
    """The quantization of uint8 beside one of int8, for the same real numbers."""
    return Quantization(quant.scale, tuple(z + 128 for z in quant.zero_point))
