# SPDX-License-Identifier: Apache-2.0
"""ATen handlers of truth values: comparisons, logic, and choices by them while the model runs.

The IR has no type for truth values: they are int32, 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import fx

from tinyet.errors import RefusedError
from tinyet.importers.torch.context import Args, Constant, Context, Handler, Value, axes_of
from tinyet.ir import Attrs, DType, Tensor
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.cast import Cast
from tinyet.ops.compare import Compare, Relation
from tinyet.ops.expand import Expand
from tinyet.ops.where import Where

aten = torch.ops.aten


def elementwise(ctx: Context, attrs: Attrs, operands: Sequence[Tensor], dtype: DType = DType.INT32) -> Tensor:
    """An operator whose operands are single elements or of the result's shape: any other is expanded."""
    shape = tuple(np.broadcast_shapes(*(operand.shape for operand in operands)))

    def fitted(x: Tensor) -> Tensor:
        return x if x.type.count == 1 or x.shape == shape else ctx.move(Expand(shape), [x], shape)

    return ctx.emit(attrs, [fitted(x) for x in operands], shape, dtype)


def _whole(ctx: Context, number: int) -> Tensor:
    return ctx.hold(Constant(f"{ctx.node.name}_{number}", np.asarray(number, np.int32)))


def _is_whole(argument: object) -> bool:
    """Whether torch has the argument as an integer or a truth value."""
    if isinstance(argument, fx.Node):
        value = argument.meta["val"]
        return not value.is_floating_point() and not value.is_complex()
    return isinstance(argument, int)


def whole(ctx: Context, argument: object) -> Tensor:
    """An integer or truth value as int32."""
    constant = ctx.constant(argument)
    if constant is not None:
        return ctx.hold(Constant(constant.name, constant.data.astype(np.int32)))
    tensor = ctx.as_int32(ctx.tensor(argument))
    if tensor.dtype is not DType.INT32:
        raise RefusedError(
            f"computes with {tensor.dtype.value} values",
            "call .float() on them, or take int32 or int64 in their place",
        )
    return tensor


def is_true(ctx: Context, x: Tensor) -> Tensor:
    """Whether each int32 of an input is not 0, as 0 and 1: callers have many ways to say true."""
    return elementwise(ctx, Compare("not_equal"), [x, _whole(ctx, 0)])


def truth(ctx: Context, argument: object) -> Tensor:
    """Whether the argument is not 0, as int32 of 0 and 1."""
    if isinstance(argument, fx.Node) and argument.meta["val"].dtype is torch.bool:
        return whole(ctx, argument)
    if _is_whole(argument):
        return elementwise(ctx, Compare("not_equal"), [whole(ctx, argument), _whole(ctx, 0)])
    return _not_zero(ctx, ctx.as_float(argument))


def _not_zero(ctx: Context, x: Tensor) -> Tensor:
    """Whether float32 values are not 0."""
    zero = ctx.hold(Constant(f"{ctx.node.name}_zero", np.zeros((), np.float32)))
    return elementwise(ctx, Compare("not_equal"), [x, zero])


def _compare(relation: Relation, *, swapped: bool = False) -> Handler:
    def handler(ctx: Context, a: Args) -> Value:
        pair = (a["other"], a["self"]) if swapped else (a["self"], a["other"])
        integers = all(_is_whole(argument) for argument in pair)
        operands = [whole(ctx, x) if integers else ctx.as_float(x) for x in pair]
        return elementwise(ctx, Compare(relation), operands)

    return handler


def _logic(make: Callable[[Context, Tensor, Tensor], Tensor]) -> Handler:
    """Of two truth values."""

    def handler(ctx: Context, a: Args) -> Value:
        return make(ctx, truth(ctx, a["self"]), truth(ctx, a["other"]))

    return handler


def _and(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    return elementwise(ctx, Where(), [a, b, _whole(ctx, 0)])


def _or(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    return elementwise(ctx, Where(), [a, _whole(ctx, 1), b])


def _xor(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
    return elementwise(ctx, Compare("not_equal"), [a, b])


def _not(ctx: Context, a: Args) -> Value:
    return elementwise(ctx, Compare("equal"), [truth(ctx, a["self"]), _whole(ctx, 0)])


def isnan(ctx: Context, a: Args) -> Value:
    x = ctx.as_float(a["self"])
    return elementwise(ctx, Compare("not_equal"), [x, x])


def _quantified(make: type[Amax] | type[Amin]) -> Handler:
    """any: the largest of the truth values; all: the smallest."""

    def handler(ctx: Context, a: Args) -> Value:
        x = truth(ctx, a["self"])
        axes = axes_of(a.get("dim"), len(x.shape))
        if not axes:
            return x
        real = ctx.emit(Cast(), [x], x.shape, name=f"{ctx.node.name}_float")
        return _not_zero(ctx, ctx.emit(make(axes, bool(a.get("keepdim"))), [real], ctx.shape))

    return handler


def choose(ctx: Context, condition: object, a: object, b: object) -> Tensor:
    """a where the condition holds while the model runs, b elsewhere."""
    value = ctx.node.meta["val"]
    if value.is_floating_point():
        return elementwise(
            ctx, Where(), [truth(ctx, condition), ctx.as_float(a), ctx.as_float(b)], DType.FLOAT32
        )
    return elementwise(ctx, Where(), [truth(ctx, condition), whole(ctx, a), whole(ctx, b)])


def converted(ctx: Context, argument: object, to: torch.dtype) -> Tensor | None:
    """The argument as another type; None where there is no such conversion."""
    if to is torch.bool:
        return truth(ctx, argument)
    if to is torch.float32 and _is_whole(argument):
        return ctx.as_float(argument)
    return None


TRUTH_HANDLERS: dict[object, Handler] = {
    **dict.fromkeys((aten.eq.Tensor, aten.eq.Scalar), _compare("equal")),
    **dict.fromkeys((aten.ne.Tensor, aten.ne.Scalar), _compare("not_equal")),
    **dict.fromkeys((aten.gt.Tensor, aten.gt.Scalar), _compare("greater")),
    **dict.fromkeys((aten.ge.Tensor, aten.ge.Scalar), _compare("greater_equal")),
    **dict.fromkeys((aten.lt.Tensor, aten.lt.Scalar), _compare("greater", swapped=True)),
    **dict.fromkeys((aten.le.Tensor, aten.le.Scalar), _compare("greater_equal", swapped=True)),
    **dict.fromkeys((aten.logical_and.default, aten.bitwise_and.Tensor), _logic(_and)),
    **dict.fromkeys((aten.logical_or.default, aten.bitwise_or.Tensor), _logic(_or)),
    **dict.fromkeys((aten.logical_xor.default, aten.bitwise_xor.Tensor), _logic(_xor)),
    **dict.fromkeys((aten.logical_not.default, aten.bitwise_not.default), _not),
    **dict.fromkeys((aten.any.default, aten.any.dim, aten.any.dims), _quantified(Amax)),
    **dict.fromkeys((aten.all.default, aten.all.dim, aten.all.dims), _quantified(Amin)),
    aten.isnan.default: isnan,
}
