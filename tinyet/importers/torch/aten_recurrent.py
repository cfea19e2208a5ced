# SPDX-License-Identifier: Apache-2.0
"""Rows of recurrent layers, which `recurrent` has made one call a layer and direction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import fx

from tinyet.importers.torch.aten_quant import dequantized_from
from tinyet.importers.torch.context import Args, Constant, Context, Row, Value
from tinyet.importers.torch.recurrent_ops import LSTM
from tinyet.ir import Attrs, DType, Tensor, TensorType
from tinyet.ops.lstm import Lstm


def lstm(ctx: Context, a: Args) -> Value:
    weights = _constants(ctx, a, "w_ih", "w_hh", "bias", "w_hr")
    return _emit(ctx, Lstm(reverse=a["reverse"]), a["x"], [a["h"], a["c"]], weights)


def _constants(ctx: Context, a: Args, *names: str) -> list[Tensor | None]:
    found = [ctx.optional_constant(a[name], "weight" if name.startswith("w") else "bias") for name in names]
    return [None if constant is None else ctx.hold(constant) for constant in found]


def _emit(
    ctx: Context, attrs: Attrs, x: object, states: Sequence[object], weights: Sequence[Tensor | None]
) -> Value:
    """y, and the states behind the last step. What calibration sees beyond that is no result of a graph."""
    name = ctx.node.name
    values = ctx.node.meta["val"]
    titles = [name, f"{name}_h", f"{name}_c"][: 1 + len(states)]
    outputs = [
        Tensor(ctx.name(title), TensorType(tuple(value.shape), DType.FLOAT32))
        for title, value in zip(titles, values, strict=False)
    ]
    inputs = [ctx.real(x), *(_first_state(ctx, state) for state in states), *weights]
    ctx.append(attrs, inputs, outputs)
    return (*outputs, *[None] * (len(values) - len(outputs)))


def _first_state(ctx: Context, state: object) -> Tensor:
    """A state before the first step. A constant one of int16 keeps its scale, which is the layer's own."""
    held = ctx.constant(state)
    params = dequantized_from(state) if isinstance(state, fx.Node) else None
    if held is not None and held.quant is None and params is not None:
        dtype, quant = params
        numbers = np.round(held.data.astype(np.float64) / quant.one_scale) + quant.one_zero_point
        integers = np.clip(numbers, *dtype.range).astype(dtype.numpy)
        return ctx.hold(Constant(held.name, integers, quant))
    return ctx.real(state)


RECURRENT_ROWS: dict[object, Row] = {LSTM: lstm}
