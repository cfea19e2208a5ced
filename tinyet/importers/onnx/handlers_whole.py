# SPDX-License-Identifier: Apache-2.0
"""Handlers of whole numbers and truth values that the model computes: the graph has both as int32, truth as 0 and 1.

int64 is int32 here: results that leave 32 bits wrap. A division by 0 gives 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.context import Context, Handler
from tinyet.importers.onnx.handlers_pools import axes_and_keep
from tinyet.importers.onnx.values import Numbers, Value, shape_of
from tinyet.ir import ITSELF, Attrs, DType, QuantParams, Tensor
from tinyet.ops.cast import Cast
from tinyet.ops.compare import Compare, Relation
from tinyet.ops.concat import Concat
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.expand import Expand
from tinyet.ops.pairwise import PairFunction, Pairwise
from tinyet.ops.slice import Slice
from tinyet.ops.where import Where

_FLOATS, _WHOLE, _TRUTH = (1, 10, 11), (6, 7), 9
"""Numbers of ONNX's types."""

_MOST_FACTORS = 16
"""The largest exponent; a greater one leaves 32 bits for every number except -1, 0 and 1."""


def is_whole(value: Value | None) -> bool:
    """Whether the model computes it, as whole numbers or truth values."""
    return isinstance(value, Tensor) and value.dtype is DType.INT32


def whole(ctx: Context, value: Value) -> Tensor:
    """As int32."""
    if isinstance(value, Numbers) and value.scale is None and value.data.dtype.kind in "iub":
        return ctx.held(value.name or "constant", value.data.astype(np.int64))
    if isinstance(value, Tensor) and value.dtype in (DType.INT8, DType.INT16) and value.type.quant == ITSELF:
        return ctx.emit(Cast(), [value], dtype=DType.INT32)
    if isinstance(value, Tensor) and is_whole(value):
        return value
    raise RefusedError("computes with whole numbers and others together", "cast them to one type")


def _number(ctx: Context, number: int) -> Tensor:
    return ctx.held("number", np.asarray(number, np.int32))


def elementwise(
    ctx: Context,
    attrs: Attrs,
    operands: Sequence[Tensor],
    dtype: DType = DType.INT32,
    quant: QuantParams | None = None,
) -> Tensor:
    """An operator whose operands are single elements or of the result's shape: any other is expanded."""
    try:
        shape = tuple(np.broadcast_shapes(*(each.shape for each in operands)))
    except ValueError:
        shapes = ", ".join(str(each.shape) for each in operands)
        raise RefusedError(f"has operands that do not broadcast: {shapes}") from None

    def fitted(x: Tensor) -> Tensor:
        return x if x.type.count == 1 or x.shape == shape else ctx.emit(Expand(shape), [x])

    made = ctx.emit(attrs, [fitted(x) for x in operands], quant, dtype)
    return ctx.reshape(made, shape)


def pair(ctx: Context, function: PairFunction, a: Tensor, b: Tensor) -> Tensor:
    return elementwise(ctx, Pairwise(function), [a, b])


# ---------------------------------------------------------------- truth


def truth(ctx: Context, value: Value) -> Tensor:
    """Whether each number is not 0."""
    if isinstance(value, Numbers):
        return ctx.held(value.name or "mask", np.asarray(value.real != 0).astype(np.int32))
    if is_whole(value):
        return elementwise(ctx, Compare("not_equal"), [whole(ctx, value), _number(ctx, 0)])
    return elementwise(
        ctx, Compare("not_equal"), [ctx.real(value), ctx.held("zero", np.zeros((), np.float32))]
    )


RELATIONS: Mapping[str, tuple[Relation, bool]] = {
    "Equal": ("equal", False),
    "Greater": ("greater", False),
    "GreaterOrEqual": ("greater_equal", False),
    "Less": ("greater", True),
    "LessOrEqual": ("greater_equal", True),
}
"""The graph's relation, and whether of the operands in the other order."""


def compare(ctx: Context) -> Value:
    values = [ctx.value(0), ctx.value(1)]
    relation, swapped = RELATIONS[ctx.node.op]
    of_integers = any(is_whole(v) for v in values)
    operands = [whole(ctx, v) if of_integers else ctx.real(v) for v in values]
    return elementwise(ctx, Compare(relation), operands[::-1] if swapped else operands)


LOGIC = ("And", "Or", "Xor", "Not")


def logic(ctx: Context) -> Value:
    """Of truth values."""
    operands = [_known(ctx, ctx.value(i)) for i in range(1 if ctx.node.op == "Not" else 2)]
    if ctx.node.op == "Not":
        return elementwise(ctx, Compare("equal"), [operands[0], _number(ctx, 0)])
    if ctx.node.op == "Xor":
        return elementwise(ctx, Compare("not_equal"), operands)
    function: PairFunction = "bit_and" if ctx.node.op == "And" else "bit_or"
    return pair(ctx, function, *operands)


def _known(ctx: Context, value: Value) -> Tensor:
    """A truth value as it is: 0 or 1."""
    return truth(ctx, value) if isinstance(value, Numbers) else whole(ctx, value)


def cast(ctx: Context) -> Value:
    """To float32, int32 or truth values; what is one already stays."""
    x, to = ctx.value(0), ctx.attribute("to", 0)
    if to == _TRUTH:
        return truth(ctx, x)
    if isinstance(x, Tensor):
        if to in _FLOATS and x.dtype is DType.FLOAT32:
            return x
        if to in _FLOATS and x.dtype in (DType.INT32, DType.UINT8):
            return ctx.emit(Cast(), [x], dtype=DType.FLOAT32)
        if to in _FLOATS and x.type.quant == ITSELF:
            return ctx.emit(Dequantize(), [x], dtype=DType.FLOAT32)
        if to in _WHOLE and (x.dtype is DType.INT32 or x.type.quant == ITSELF):
            return whole(ctx, x)
    elif to in _FLOATS:
        return x if not isinstance(x, Numbers) else ctx.real(x)
    raise RefusedError(f"casts to type {to}", "float32, from integers")


# ---------------------------------------------------------------- arithmetic

PAIRS: Mapping[str, PairFunction] = {
    "Add": "add",
    "BitwiseAnd": "bit_and",
    "BitwiseOr": "bit_or",
    "BitwiseXor": "bit_xor",
    "Div": "div",
    "Max": "maximum",
    "Min": "minimum",
    "Mul": "mul",
    "Sub": "sub",
    "Sum": "add",
}


def paired(ctx: Context) -> Value:
    """Of two operands, or of several from first to last."""
    total = whole(ctx, ctx.value(0))
    for place in range(1, len(ctx.node.inputs)):
        total = pair(ctx, PAIRS[ctx.node.op], total, whole(ctx, ctx.value(place)))
    return total


def modulo(ctx: Context) -> Value:
    """The rest has the divisor's sign; with `fmod` the dividend's."""
    a, b = (whole(ctx, ctx.value(i)) for i in (0, 1))
    if not ctx.attribute("fmod", 0):
        return pair(ctx, "floor_mod", a, b)
    return pair(ctx, "sub", a, pair(ctx, "mul", b, pair(ctx, "div", a, b)))


def negative(ctx: Context) -> Value:
    return pair(ctx, "sub", _number(ctx, 0), whole(ctx, ctx.value(0)))


def absolute(ctx: Context) -> Value:
    x = whole(ctx, ctx.value(0))
    return pair(ctx, "maximum", x, pair(ctx, "sub", _number(ctx, 0), x))


def sign(ctx: Context) -> Value:
    x, zero = whole(ctx, ctx.value(0)), _number(ctx, 0)
    above, below = (elementwise(ctx, Compare("greater"), each) for each in ([x, zero], [zero, x]))
    return pair(ctx, "sub", above, below)


def relu(ctx: Context) -> Value:
    return pair(ctx, "maximum", whole(ctx, ctx.value(0)), _number(ctx, 0))


def clip(ctx: Context) -> Value:
    x = whole(ctx, ctx.value(0))
    functions: tuple[PairFunction, ...] = ("maximum", "minimum")
    for position, function in enumerate(functions, 1):
        x = pair(ctx, function, x, whole(ctx, ctx.value(position))) if ctx.has(position) else x
    return x


def power(ctx: Context) -> Value:
    x = y = whole(ctx, ctx.value(0))
    given = np.unique(np.asarray(ctx.constant(1, "exponent").real))
    if given.size != 1 or given[0] not in range(1, _MOST_FACTORS + 1):
        raise RefusedError(
            "has exponents of whole numbers that are not one and the same",
            f"take one of 1 … {_MOST_FACTORS}, or cast to float",
        )
    for _ in range(int(given[0]) - 1):
        y = pair(ctx, "mul", y, x)
    return y


# ---------------------------------------------------------------- along axes

FOLDS: Mapping[str, PairFunction] = {
    "ReduceMax": "maximum",
    "ReduceMin": "minimum",
    "ReduceProd": "mul",
    "ReduceSum": "add",
}


def reduced(ctx: Context) -> Value:
    """Half with half until one is left; exact in any order, because wrapping is modulo 2**32."""
    x, asked = whole(ctx, ctx.value(0)), axes_and_keep(ctx)
    if asked is None:
        return x
    axes, keep = asked
    for axis in axes:
        while (size := x.shape[axis]) > 1:
            half = size // 2
            first, second = (ctx.emit(Slice(axis, at, at + half), [x]) for at in (0, half))
            y = pair(ctx, FOLDS[ctx.node.op], first, second)
            x = (
                y
                if size % 2 == 0
                else ctx.emit(Concat(axis), [y, ctx.emit(Slice(axis, size - 1, size), [x])])
            )
    shape = shape_of(ctx.value(0))
    left = [1 if axis in axes else n for axis, n in enumerate(shape) if keep or axis not in axes]
    return ctx.reshape(x, left)


def choose(ctx: Context) -> Value:
    """Where, of whole numbers."""
    yes, no = (whole(ctx, ctx.value(i)) for i in (1, 2))
    return elementwise(ctx, Where(), [_known(ctx, ctx.value(0)), yes, no])


TABLE: Mapping[str, Handler] = {
    **dict.fromkeys(PAIRS, paired),
    **dict.fromkeys(FOLDS, reduced),
    "Abs": absolute,
    "Clip": clip,
    "Mod": modulo,
    "Neg": negative,
    "Pow": power,
    "Relu": relu,
    "Sign": sign,
}
"""Operators that have a form of their own for whole numbers that the model computes."""
