# SPDX-License-Identifier: Apache-2.0
"""ATen handlers of arithmetic with whole numbers, for operators whose result torch has as integers.

The IR has them as int32, int64 too: values that leave 32 bits wrap, and so do results. A division by 0, at which
torch raises, gives 0.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from tinyet.errors import RefusedError
from tinyet.importers.torch.aten_truth import elementwise, whole
from tinyet.importers.torch.context import Args, Constant, Context, Handler, Value, axes_of, axis_of
from tinyet.ir import Tensor
from tinyet.ops.compare import Compare
from tinyet.ops.concat import Concat
from tinyet.ops.pairwise import PairFunction, Pairwise
from tinyet.ops.slice import Slice

aten = torch.ops.aten

_MOST_FACTORS = 16
"""The largest exponent; a greater one leaves 32 bits for every number except -1, 0 and 1."""


def _pair(ctx: Context, function: PairFunction, a: Tensor, b: Tensor) -> Tensor:
    return elementwise(ctx, Pairwise(function), [a, b])


def _number(ctx: Context, value: object) -> Tensor:
    """A number of an argument, as a value of the graph."""
    if isinstance(value, float) and not value.is_integer():
        raise RefusedError(f"computes whole numbers with {value}", "call .float() on them")
    assert isinstance(value, (int, float))
    return ctx.hold(Constant(f"{ctx.node.name}_number", np.asarray(int(value) & 0xFFFFFFFF).astype(np.int32)))


def _operand(ctx: Context, argument: object) -> Tensor:
    return _number(ctx, argument) if isinstance(argument, (int, float)) else whole(ctx, argument)


def _binary(function: PairFunction) -> Handler:
    """Two operands; `alpha`, where the operator has it, multiplies the second."""

    def handler(ctx: Context, a: Args) -> Value:
        first, second = _operand(ctx, a["self"]), _operand(ctx, a["other"])
        if (a.get("alpha") or 1) != 1:
            second = _pair(ctx, "mul", second, _number(ctx, a["alpha"]))
        either = function == "add" and ctx.node.meta["val"].dtype is torch.bool
        return _pair(ctx, "bit_or" if either else function, first, second)

    return handler


def rsub(ctx: Context, a: Args) -> Value:
    return _binary("sub")(ctx, {"self": a["other"], "other": a["self"], "alpha": a["alpha"]})


def divided(ctx: Context, a: Args) -> Value:
    function: PairFunction = "floor_div" if a["rounding_mode"] == "floor" else "div"
    return _pair(ctx, function, _operand(ctx, a["self"]), _operand(ctx, a["other"]))


def fmod(ctx: Context, a: Args) -> Value:
    """a - b * (a / b), the quotient rounded towards zero."""
    first, second = _operand(ctx, a["self"]), _operand(ctx, a["other"])
    product = _pair(ctx, "mul", second, _pair(ctx, "div", first, second))
    return _pair(ctx, "sub", first, product)


def _negative(ctx: Context, x: Tensor) -> Tensor:
    return _pair(ctx, "sub", _number(ctx, 0), x)


def negative(ctx: Context, a: Args) -> Value:
    return _negative(ctx, whole(ctx, a["self"]))


def absolute(ctx: Context, a: Args) -> Value:
    x = whole(ctx, a["self"])
    return _pair(ctx, "maximum", x, _negative(ctx, x))


def sign(ctx: Context, a: Args) -> Value:
    x, zero = whole(ctx, a["self"]), _number(ctx, 0)
    above, below = (elementwise(ctx, Compare("greater"), pair) for pair in ([x, zero], [zero, x]))
    return _pair(ctx, "sub", above, below)


def inverted(ctx: Context, a: Args) -> Value:
    return _pair(ctx, "bit_xor", whole(ctx, a["self"]), _number(ctx, -1))


def clamped(ctx: Context, a: Args) -> Value:
    x = whole(ctx, a["self"])
    functions: tuple[tuple[str, PairFunction], ...] = (("min", "maximum"), ("max", "minimum"))
    for bound, function in functions:
        if a.get(bound) is not None:
            x = _pair(ctx, function, x, _operand(ctx, a[bound]))
    return x


def relu(ctx: Context, a: Args) -> Value:
    return clamped(ctx, {"self": a["self"], "min": 0})


def power(ctx: Context, a: Args) -> Value:
    exponent = a["exponent"]
    if not 1 <= exponent <= _MOST_FACTORS:
        raise RefusedError(
            f"whole numbers to the power {exponent}", f"take one of 1 … {_MOST_FACTORS}, or call .float()"
        )
    x = y = whole(ctx, a["self"])
    for _ in range(exponent - 1):
        y = _pair(ctx, "mul", y, x)
    return y


# ---------------------------------------------------------------- along axes


def _part(ctx: Context, x: Tensor, axis: int, start: int, stop: int) -> Tensor:
    shape = (*x.shape[:axis], stop - start, *x.shape[axis + 1 :])
    return ctx.move(Slice(axis, start, stop), [x], shape)


def _joined(ctx: Context, parts: list[Tensor], axis: int) -> Tensor:
    size = sum(part.shape[axis] for part in parts)
    return ctx.move(Concat(axis), parts, (*parts[0].shape[:axis], size, *parts[0].shape[axis + 1 :]))


def _folded(ctx: Context, function: PairFunction, x: Tensor, axis: int) -> Tensor:
    """Half with half until one is left; exact in any order, because wrapping is modulo 2**32."""
    while (size := x.shape[axis]) > 1:
        half = size // 2
        halves = [_part(ctx, x, axis, start, start + half) for start in (0, half)]
        y = _pair(ctx, function, halves[0], halves[1])
        x = y if size % 2 == 0 else _joined(ctx, [y, _part(ctx, x, axis, size - 1, size)], axis)
    return x


def _reduction(function: PairFunction) -> Handler:
    def handler(ctx: Context, a: Args) -> Value:
        x = whole(ctx, a["self"])
        for axis in axes_of(a.get("dim"), len(x.shape)):
            x = _folded(ctx, function, x, axis)
        return ctx.reshape(x, ctx.shape)

    return handler


def running_sum(ctx: Context, a: Args) -> Value:
    """Each element and the one 1, 2, 4, … before it."""
    x = whole(ctx, a["self"])
    if not x.shape:
        return x
    axis = axis_of(a["dim"], len(x.shape))
    size = x.shape[axis]
    for number in range(math.ceil(math.log2(size))):
        step = 1 << number
        earlier, later = _part(ctx, x, axis, 0, size - step), _part(ctx, x, axis, step, size)
        x = _joined(ctx, [_part(ctx, x, axis, 0, step), _pair(ctx, "add", earlier, later)], axis)
    return x


WHOLE_HANDLERS: dict[object, Handler] = {
    **dict.fromkeys((aten.add.Tensor, aten.add.Scalar), _binary("add")),
    **dict.fromkeys((aten.sub.Tensor, aten.sub.Scalar), _binary("sub")),
    **dict.fromkeys((aten.rsub.Tensor, aten.rsub.Scalar), rsub),
    **dict.fromkeys((aten.mul.Tensor, aten.mul.Scalar), _binary("mul")),
    **dict.fromkeys((aten.div.Tensor_mode, aten.div.Scalar_mode), divided),
    aten.floor_divide.default: _binary("floor_div"),
    **dict.fromkeys((aten.remainder.Tensor, aten.remainder.Scalar), _binary("floor_mod")),
    **dict.fromkeys((aten.fmod.Tensor, aten.fmod.Scalar), fmod),
    aten.maximum.default: _binary("maximum"),
    aten.minimum.default: _binary("minimum"),
    aten.neg.default: negative,
    aten.abs.default: absolute,
    aten.sign.default: sign,
    aten.relu.default: relu,
    **dict.fromkeys(
        (aten.clamp.default, aten.clamp.Tensor, aten.clamp_min.default, aten.clamp_max.default), clamped
    ),
    aten.pow.Tensor_Scalar: power,
    aten.bitwise_not.default: inverted,
    **dict.fromkeys((aten.bitwise_and.Tensor, aten.bitwise_and.Scalar), _binary("bit_and")),
    **dict.fromkeys((aten.bitwise_or.Tensor, aten.bitwise_or.Scalar), _binary("bit_or")),
    **dict.fromkeys((aten.bitwise_xor.Tensor, aten.bitwise_xor.Scalar), _binary("bit_xor")),
    **dict.fromkeys(
        (aten.__lshift__.Scalar, aten.__lshift__.Tensor, aten.bitwise_left_shift.Tensor,
         aten.bitwise_left_shift.Tensor_Scalar),
        _binary("shift_left"),
    ),
    **dict.fromkeys(
        (aten.__rshift__.Scalar, aten.__rshift__.Tensor, aten.bitwise_right_shift.Tensor,
         aten.bitwise_right_shift.Tensor_Scalar),
        _binary("shift_right"),
    ),
    **dict.fromkeys((aten.sum.default, aten.sum.dim_IntList), _reduction("add")),
    **dict.fromkeys((aten.prod.default, aten.prod.dim_int), _reduction("mul")),
    **dict.fromkeys((aten.amax.default, aten.max.default), _reduction("maximum")),
    **dict.fromkeys((aten.amin.default, aten.min.default), _reduction("minimum")),
    aten.cumsum.default: running_sum,
}  # fmt: skip
"""The operators' handlers where their result is whole numbers."""
