# SPDX-License-Identifier: Apache-2.0
"""Handlers of recurrent layers, which `recurrent` has made one call a layer and direction."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import torch
from torch import fx

from tinyet.errors import RefusedError
from tinyet.fx.recurrent_ops import GRU, LSTM, RNN
from tinyet.importers.torch.aten_quant import dequantized_from
from tinyet.importers.torch.context import Args, Constant, Context, Handler, Value
from tinyet.ir import Attrs, DType, Tensor, TensorType
from tinyet.ops.gru import Gru
from tinyet.ops.lstm import Lstm
from tinyet.ops.rnn import Rnn


def lstm(ctx: Context, a: Args) -> Value:
    states = [_first_state(ctx, a["h"], "h"), _first_state(ctx, a["c"], "c")]
    weights = _constants(ctx, a, w_ih="weight_ih", w_hh="weight_hh", bias="bias", w_hr="weight_hr")
    return _emit(ctx, Lstm(reverse=a["reverse"]), a["x"], states, weights)


def gru(ctx: Context, a: Args) -> Value:
    weights = _constants(ctx, a, w_ih="weight_ih", w_hh="weight_hh", b_ih="bias_ih", b_hh="bias_hh")
    return _emit(ctx, Gru(reverse=a["reverse"]), a["x"], [_first_state(ctx, a["h"], "h")], weights)


def rnn(ctx: Context, a: Args) -> Value:
    attrs = Rnn(reverse=a["reverse"], nonlinearity=a["nonlinearity"])
    weights = _constants(ctx, a, w_ih="weight_ih", w_hh="weight_hh", bias="bias")
    return _emit(ctx, attrs, a["x"], [_first_state(ctx, a["h"], "h")], weights)


def _constants(ctx: Context, a: Args, **names: str) -> list[Tensor | None]:
    """Weights by the names that they have in the module."""
    found = [(name, ctx.optional_constant(a[key], name)) for key, name in names.items()]
    return [None if held is None else ctx.hold(held.named(_name(ctx, name))) for name, held in found]


def _name(ctx: Context, role: str) -> str:
    """Of a constant of the layer and direction at hand: rnn_weight_ih_l0_reverse."""
    which = re.search(r"_l\d+(_reverse)?$", ctx.origin.key)
    return ctx.parameter_name(role + (which[0] if which else ""))


def _emit(
    ctx: Context, attrs: Attrs, x: object, states: Sequence[Tensor], weights: Sequence[Tensor | None]
) -> Value:
    """y, and the states behind the last step. Further values that calibration sees are no results of a graph."""
    name = ctx.node.name
    values = ctx.node.meta["val"]
    titles = [name, f"{name}_h", f"{name}_c"][: 1 + len(states)]
    outputs = [
        Tensor(ctx.name(title), TensorType(tuple(value.shape), DType.FLOAT32))
        for title, value in zip(titles, values, strict=False)
    ]
    ctx.append(attrs, [ctx.real(x), *states, *weights], outputs)
    return (*outputs, *[None] * (len(values) - len(outputs)))


def _first_state(ctx: Context, state: object, role: str) -> Tensor:
    """A state before the first step. A constant keeps its scale, which is the layer's own, in int16, too."""
    held = ctx.constant(state)
    if held is None:
        return ctx.real(state)
    params = dequantized_from(state) if isinstance(state, fx.Node) else None
    if held.quant is None and params is not None:
        dtype, quant = params
        numbers = np.round(held.data.astype(np.float64) / quant.one_scale) + quant.one_zero_point
        held = Constant(role, np.clip(numbers, *dtype.range).astype(dtype.numpy), quant)
    return ctx.hold(held.named(_name(ctx, role)))


def in_training(_ctx: Context, _a: Args) -> Value:
    """A layer that `recurrent` has left."""
    raise RefusedError("drops values between its layers, as in training", "call model.eval()")


aten = torch.ops.aten
RECURRENT_HANDLERS: dict[object, Handler] = {
    LSTM: lstm, GRU: gru, RNN: rnn,
    **dict.fromkeys(
        (aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input), in_training
    ),
}  # fmt: skip
