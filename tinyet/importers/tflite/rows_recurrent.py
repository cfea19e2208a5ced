# SPDX-License-Identifier: Apache-2.0
"""Rows of layers that remember: their variable tensors are states of the graph.

Where an LSTM's output has another scale than its state, TFLM and LiteRT write the state's integers into the output,
whatever its scale says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.activation import bounds_of
from tinyet.importers.tflite.context import Context, Row
from tinyet.importers.tflite.values import Constant, quant_of
from tinyet.ir import DType, QuantParams, Tensor, TensorType
from tinyet.numerics import NO_CLAMP
from tinyet.ops.lookup import Lookup
from tinyet.ops.lstm import Lstm
from tinyet.ops.permute import Permute
from tinyet.ops.svdf import Svdf
from tinyet.tflite.enumerations import ACTIVATIONS
from tinyet.tflite.options import SVDFOptions, UnidirectionalSequenceLSTMOptions

_GATES = ("input", "forget", "cell", "output")
_W_IH, _W_HH, _PEEPHOLE, _BIAS, _PROJECTION, _STATE, _CELL, _NORM = 1, 5, 9, 12, 16, 18, 19, 20
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
    # The integer kernels have no other bounds than those of int8, whatever the file says: a ReLU's is the zero point.
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
    options, x = ctx.options(UnidirectionalSequenceLSTMOptions), ctx.x(0)
    _refuse_variants(ctx, options)
    if len(x.shape) != 3:
        raise RefusedError(f"has an input of {len(x.shape)} dimensions")
    if options.time_major:
        x = _swapped(ctx, x)
    w_ih, w_hh = _stacked(ctx, _W_IH), _stacked(ctx, _W_HH)
    states = [ctx.state(position) for position in (_STATE, _CELL)]
    units = ctx.constant(_W_HH, "weights").shape[0]
    h, c = (ctx.reshape(state, (x.shape[0], units)) for state in states)
    out, y_type = ctx.out_type(), TensorType((*x.shape[:2], units), h.dtype, h.type.quant)
    if ctx.rounding == "litert" and h.type.quant is not None:
        _same_hidden(ctx, h.type)
    attrs = Lstm(arithmetic=ctx.rounding, cell_clip=options.cell_clip or None)
    inputs = [x, h, c, w_ih, w_hh, _stacked_bias(ctx, units, x.dtype)]
    names = (ctx.out_info().name, f"{states[0].name}_behind", f"{states[1].name}_behind")
    y, *behind = ctx.emit_many(attrs, inputs, (y_type, h.type, c.type), names)
    if options.time_major:
        y = _swapped(ctx, y)
    ctx.alias(_relabelled(ctx, y, out))
    for position, before, after in zip((_STATE, _CELL), states, behind, strict=True):
        ctx.keep(position, ctx.reshape(after, before.shape))


def _refuse_variants(ctx: Context, options: UnidirectionalSequenceLSTMOptions) -> None:
    """Raises RefusedError for what TFLM has not, either."""
    activation = ACTIVATIONS[options.fused_activation_function : options.fused_activation_function + 1]
    if tuple(activation) != ("tanh",):
        raise RefusedError(
            f"has the activation {', '.join(activation) or options.fused_activation_function}, not tanh"
        )
    for what, positions in (
        ("coupled input and forget gates", ()),
        ("peephole connections", range(_PEEPHOLE, _BIAS)),
        ("a projection", range(_PROJECTION, _STATE)),
        ("a layer norm of its gates", range(_NORM, _NORM + 4)),
    ):
        if any(ctx.has(position) for position in positions):
            raise RefusedError(f"has {what}", "TFLM has no such layer, either: leave it away")
    if not ctx.has(_W_IH) or not ctx.has(_W_HH):
        raise RefusedError(
            "has coupled input and forget gates", "TFLM has no such layer, either: leave it away"
        )
    if options.diagonal_recurrent_tensors:
        raise RefusedError("has diagonal recurrent weights")


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


def _stacked_bias(ctx: Context, units: int, x: DType) -> Tensor | None:
    """The biases of all gates; zeros for one that has none."""
    found = [
        ctx.constant(_BIAS + gate, "bias") if ctx.has(_BIAS + gate) else None for gate in range(len(_GATES))
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
    """LiteRT has a scale of its own for what the output gate lets through. Raises RefusedError where that is not the
    state's."""
    indices = ctx.op.intermediates[_HIDDEN:]
    hidden = quant_of(ctx.subgraph.tensors[indices[0]]) if indices else None
    if hidden is not None and hidden != state.quant:
        raise RefusedError(
            "has a hidden value whose scale is not its state's", 'take the bits of TFLM: rounding="tflm"'
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


ROWS: Mapping[str, Row] = {"SVDF": svdf, "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm}
