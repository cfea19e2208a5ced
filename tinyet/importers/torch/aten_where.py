# SPDX-License-Identifier: Apache-2.0
"""The ATen handler of `where`. With a constant condition it is a minimum and a maximum with constants, exact for all
values.

max(min(x, +inf where x is taken, else -inf), min(y, -inf where x is taken, else +inf)); for integers their least and
greatest number take the place of the infinities.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from torch import fx

from tinyet.importers.torch.aten_quant import static_params
from tinyet.importers.torch.aten_truth import choose
from tinyet.importers.torch.context import Args, Constant, Context, Value
from tinyet.ir import Array, DType, QuantParams, Tensor, TensorType
from tinyet.numerics import quantize
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.maximum import Maximum
from tinyet.ops.minimum import Minimum
from tinyet.ops.quantize import Quantize

_Choice = npt.NDArray[np.bool_]


def where(ctx: Context, a: Args) -> Value:
    condition = ctx.constant(a["condition"])
    if condition is None or not ctx.node.meta["val"].is_floating_point():
        return choose(ctx, a["condition"], a["self"], a["other"])
    taken = np.asarray(condition.data != 0)
    sides = [(a["self"], taken), (a["other"], ~taken)]
    constants = [ctx.constant(argument) for argument, _ in sides]
    first, second = constants
    if first is not None and second is not None:
        data = np.broadcast_to(np.where(taken, first.real(), second.real()), ctx.shape)
        return Constant(ctx.node.name, np.ascontiguousarray(data, np.float32))
    integers = _integers_wanted(ctx.node)
    if integers is None:
        return _chosen(
            ctx, sides, lambda values: ctx.hold(Constant(f"{ctx.node.name}_mask", values)), ctx.real
        )
    dtype, quant = integers

    def constant(values: Array) -> Tensor:
        type_ = TensorType(values.shape, dtype, quant)
        return Tensor(ctx.name(f"{ctx.node.name}_mask"), type_, quantize(values, type_))

    def value(argument: object) -> Tensor:
        x = ctx.real(argument)
        made = next((n for n in reversed(ctx.nodes) if n.outputs[0] is x), None)
        if made is not None and isinstance(made.attrs, Dequantize) and made.input(0).type.quant == quant:
            return made.input(0)
        return ctx.emit(Quantize(), [x], x.shape, dtype, quant)

    chosen = _chosen(ctx, sides, constant, value)
    return ctx.emit(Dequantize(), [chosen], chosen.shape)


def _integers_wanted(node: fx.Node) -> tuple[DType, QuantParams] | None:
    """Type and parameters of the result, where all that read it quantize it alike; else None."""
    wanted = {static_params(user) for user in node.users}
    return wanted.pop() if len(wanted) == 1 else None


def _chosen(
    ctx: Context,
    sides: list[tuple[object, _Choice]],
    constant: Callable[[Array], Tensor],
    value: Callable[[object], Tensor],
) -> Tensor:
    """sides: an argument, and where it is taken, bool. constant, value: make a tensor of numbers, or of an argument."""
    parts: list[Tensor] = []
    fill: Array | None = None
    for argument, taken in sides:
        held = ctx.constant(argument)
        if held is not None:
            fill = np.where(taken, held.real(), np.float32(-np.inf)).astype(np.float32)
            continue
        x = value(argument)
        bounds = np.where(taken, np.float32(np.inf), np.float32(-np.inf)).astype(np.float32)
        shape = np.broadcast_shapes(x.shape, bounds.shape)
        parts.append(ctx.emit(Minimum(), [x, constant(bounds)], shape, x.dtype, x.type.quant))
    if fill is not None and not (fill == -np.inf).all():
        parts.append(constant(fill))
    if len(parts) == 1:
        if parts[0].shape == ctx.shape:
            return parts[0]
        parts.append(constant(np.full(ctx.shape, -np.inf, np.float32)))
    return ctx.emit(Maximum(), parts, ctx.shape, parts[0].dtype, parts[0].type.quant)
