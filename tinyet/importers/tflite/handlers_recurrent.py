# SPDX-License-Identifier: Apache-2.0
"""Handlers of layers that remember: their variable tensors are states of the graph.

If an LSTM's output has another scale than its state, TFLM and LiteRT still write the state's integers into the
output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.activation import bounds_of
from tinyet.importers.tflite.building import joined
from tinyet.importers.tflite.context import Context, Handler
from tinyet.importers.tflite.values import Constant, quant_of
from tinyet.ir import DType, QuantParams, Tensor, TensorType
from tinyet.numerics import NO_CLAMP
from tinyet.ops.lookup import Lookup
from tinyet.ops.lstm import Lstm
from tinyet.ops.permute import Permute
from tinyet.ops.svdf import Svdf
from tinyet.tflite.enumerations import ACTIVATIONS
from tinyet.tflite.options import (
    BidirectionalSequenceLSTMOptions,
    SVDFOptions,
    UnidirectionalSequenceLSTMOptions,
)

_GATES = ("input", "forget", "cell", "output")


@dataclass(frozen=True)
class _Places:
    """Among the inputs of an LSTM: the first of four weights of the input, of four of the state, of three peepholes, of
    four biases, of a projection's two, and both states."""

    w_ih: int
    w_hh: int
    peephole: int
    bias: int
    projection: int
    state: int
    cell: int


_ONE_WAY = _Places(1, 5, 9, 12, 16, 18, 19)
_FORWARD = _Places(1, 5, 9, 12, 16, 35, 36)
_BACKWARD = _Places(18, 22, 26, 29, 33, 37, 38)
_NORM = range(20, 24)
"""Layer norms of the gates, of a layer that goes one way."""
_AUXILIARY = range(39, 48)
"""A second input and its weights, of one that goes both ways."""
_HIDDEN = 4
"""Among the intermediates."""


def constant_bias(ctx: Context, position: int, dtype: DType) -> Tensor | None:
    """A bias as integers of this type, or floats; its own scales mean nothing. None where there is none."""
    if not ctx.has(position):
        return None
    found = ctx.constant(position, "bias")
    if found.data.dtype == np.float32:
        return ctx.hold(found)
    return ctx.hold(replace(found, data=found.data.astype(dtype.numpy), quant=None), dtype)


def svdf(ctx: Context) -> None:
    ctx.expect_inputs(4, 5)
    options, x = ctx.options(SVDFOptions), ctx.x(0)
    feature, time = ctx.constant(1, "weights"), ctx.constant(2, "weights")
    if x.dtype is DType.FLOAT32 and feature.data.dtype != np.float32:
        raise RefusedError(
            "has int8 weights and float activations", "quantize the model as a whole, or not at all"
        )
    before = ctx.state(4)
    bias = constant_bias(ctx, 3, DType.INT32)
    # The integer kernels have only the bounds of int8, and ignore the file's: a ReLU's is the zero point.
    floats = x.dtype is DType.FLOAT32
    attrs = Svdf(options.rank, bounds_of(options.fused_activation_function) if floats else NO_CLAMP)
    inputs = [x, before, ctx.hold(feature), ctx.hold(time), bias]
    y, behind = ctx.emit_many(
        attrs, inputs, (ctx.out_type(), before.type), (ctx.out_info().name, f"{before.name}_behind")
    )
    ctx.alias(y)
    ctx.keep(4, behind)


def lstm(ctx: Context) -> None:
    ctx.expect_inputs(20, 24)
    options = ctx.options(UnidirectionalSequenceLSTMOptions)
    _refuse_variants(ctx, options, _ONE_WAY)
    if any(ctx.has(position) for position in _NORM):
        raise RefusedError("has a layer norm of its gates", "TFLM has no such layer, either: leave it away")
    if options.diagonal_recurrent_tensors:
        raise RefusedError("has diagonal recurrent weights")
    x = _batch_first(ctx, options.time_major)
    _finished(ctx, _layer(ctx, x, _ONE_WAY, options.cell_clip), options.time_major, 0)


def both_ways(ctx: Context) -> None:
    """One layer for each direction, in float32: side by side in one output, or each in its own."""
    ctx.expect_inputs(39, 48)
    options = ctx.options(BidirectionalSequenceLSTMOptions)
    if any(ctx.has(position) for position in _AUXILIARY):
        raise RefusedError("has an auxiliary input", "concatenate it with the input")
    for places in (_FORWARD, _BACKWARD):
        _refuse_variants(ctx, options, places)
    x = _batch_first(ctx, options.time_major)
    if x.dtype is not DType.FLOAT32:
        raise RefusedError(
            f"takes {x.dtype.value}", "two layers that go one way, and a REVERSE_V2, have int8"
        )
    made = [
        _layer(ctx, x, places, options.cell_clip, reverse=places is _BACKWARD, position=position)
        for places, position in ((_FORWARD, 0), (_BACKWARD, 0 if options.merge_outputs else 1))
    ]
    if options.merge_outputs:
        made = [joined(ctx, made, 2)]
        if x.shape[0] > 1 and not options.time_major:
            ctx.note(
                "LiteRT's kernel computes only the first of several samples: it writes the others elsewhere"
            )
    for position, y in enumerate(made):
        _finished(ctx, y, options.time_major, position)


def _batch_first(ctx: Context, time_major: bool) -> Tensor:
    x = ctx.x(0)
    if len(x.shape) != 3:
        raise RefusedError(f"has an input of {len(x.shape)} dimensions")
    return _swapped(ctx, x) if time_major else x


def _finished(ctx: Context, y: Tensor, time_major: bool, position: int) -> None:
    y = _swapped(ctx, y) if time_major else y
    ctx.alias(_relabelled(ctx, y, ctx.out_type(position)), position)


def _layer(
    ctx: Context, x: Tensor, places: _Places, clip: float, *, reverse: bool = False, position: int = 0
) -> Tensor:
    """The states behind all steps (N, T, H) of one direction, whose weights and states are inputs at `places`; the
    value is called after an output."""
    w_ih, w_hh = _stacked(ctx, places.w_ih), _stacked(ctx, places.w_hh)
    states = [ctx.state(place) for place in (places.state, places.cell)]
    units = ctx.constant(places.w_hh, "weights").shape[0]
    h, c = (ctx.reshape(state, (x.shape[0], units)) for state in states)
    y_type = TensorType((*x.shape[:2], units), h.dtype, h.type.quant)
    if ctx.runtime == "litert" and h.type.quant is not None:
        _same_hidden(ctx, h.type)
    attrs = Lstm(reverse=reverse, arithmetic=ctx.runtime, cell_clip=clip or None)
    inputs = [x, h, c, w_ih, w_hh, _stacked_bias(ctx, units, x.dtype, places.bias)]
    names = (ctx.out_info(position).name, f"{states[0].name}_behind", f"{states[1].name}_behind")
    y, *behind = ctx.emit_many(attrs, inputs, (y_type, h.type, c.type), names)
    for place, before, after in zip((places.state, places.cell), states, behind, strict=True):
        ctx.keep(place, ctx.reshape(after, before.shape))
    return y


def _refuse_variants(
    ctx: Context,
    options: UnidirectionalSequenceLSTMOptions | BidirectionalSequenceLSTMOptions,
    places: _Places,
) -> None:
    """Raises RefusedError for features that TFLM does not have, either."""
    activation = ACTIVATIONS[options.fused_activation_function : options.fused_activation_function + 1]
    if tuple(activation) != ("tanh",):
        raise RefusedError(
            f"has the activation {', '.join(activation) or options.fused_activation_function}, not tanh"
        )
    for what, positions in (
        ("peephole connections", range(places.peephole, places.peephole + 3)),
        ("a projection", range(places.projection, places.projection + 2)),
    ):
        if any(ctx.has(position) for position in positions):
            raise RefusedError(f"has {what}", "TFLM has no such layer, either: leave it away")
    if not ctx.has(places.w_ih) or not ctx.has(places.w_hh):
        raise RefusedError(
            "has coupled input and forget gates", "TFLM has no such layer, either: leave it away"
        )


def _gates(ctx: Context, first: int) -> Sequence[Constant]:
    found = [ctx.constant(first + gate, f"weights of the {name} gate") for gate, name in enumerate(_GATES)]
    if any(each.data.ndim != 2 or each.shape != found[0].shape for each in found):
        raise RefusedError("has gates whose weights differ in shape")
    return found


def _stacked(ctx: Context, first: int) -> Tensor:
    """The weights of all gates, one below another: a scale for each gate's rows."""
    found = _gates(ctx, first)
    x = ctx.x(0)
    if (x.dtype is DType.FLOAT32) != all(each.data.dtype == np.float32 for each in found):
        raise RefusedError(
            "has int8 weights and float activations", "quantize the model as a whole, or not at all"
        )
    data = np.concatenate([each.data for each in found])
    if x.dtype is DType.FLOAT32:
        return ctx.new_constant(found[0].name, data)
    quants = [each.quant for each in found]
    if any(quant is None or quant.axis is not None for quant in quants):
        raise RefusedError("has weights without one scale a gate")
    rows = found[0].shape[0]
    scales = tuple(quant.scale[0] for quant in quants if quant is not None for _ in range(rows))
    points = tuple(quant.zero_point[0] for quant in quants if quant is not None for _ in range(rows))
    return ctx.new_constant(found[0].name, data, QuantParams(scales, points, 0))


def _stacked_bias(ctx: Context, units: int, x: DType, first: int) -> Tensor | None:
    """The biases of all gates; zeros for one that has none."""
    found = [
        ctx.constant(first + gate, "bias") if ctx.has(first + gate) else None for gate in range(len(_GATES))
    ]
    there = [each for each in found if each is not None]
    if not there:
        return None
    if any(each.data.size != units for each in there):
        raise RefusedError(f"has biases that are not {units} numbers a gate")
    dtype = {DType.FLOAT32: DType.FLOAT32, DType.INT16: DType.INT64}.get(x, DType.INT32)
    flat = [np.zeros(units) if each is None else each.data.reshape(units) for each in found]
    data = np.concatenate([each.astype(dtype.numpy) for each in flat])
    return ctx.hold(Constant(there[0].name, data), dtype)


def _same_hidden(ctx: Context, state: TensorType) -> None:
    """LiteRT has a scale of its own for the output gate's result. Raises RefusedError if it is not the state's."""
    indices = ctx.op.intermediates[_HIDDEN:]
    hidden = quant_of(ctx.subgraph.tensors[indices[0]]) if indices else None
    if hidden is not None and hidden != state.quant:
        raise RefusedError(
            "has a hidden value whose scale is not its state's", 'take the bits of TFLM: runtime="tflm"'
        )


def _swapped(ctx: Context, x: Tensor) -> Tensor:
    """Steps and batch change places."""
    steps, batch, count = x.shape
    type_ = TensorType((batch, steps, count), x.dtype, x.type.quant)
    return (
        ctx.reshape(x, type_.shape) if min(batch, steps) == 1 else ctx.emit_as(Permute((1, 0, 2)), [x], type_)
    )


def _relabelled(ctx: Context, y: Tensor, out: TensorType) -> Tensor:
    """The same integers, said to be of the file's scale."""
    y = ctx.reshape(y, out.shape)
    if y.type == out:
        return y
    if (y.dtype, out.dtype) != (DType.INT8, DType.INT8):
        raise RefusedError("has an output whose scale is not its state's")
    table = np.concatenate([np.arange(128), np.arange(-128, 0)]).astype(np.int8).reshape(1, 256)
    return ctx.emit_as(Lookup(0), [y, ctx.new_constant("same_integers", table, out.quant)], out)


HANDLERS: Mapping[str, Handler] = {
    "SVDF": svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
    "BIDIRECTIONAL_SEQUENCE_LSTM": both_ways,
}
