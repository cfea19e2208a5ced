# SPDX-License-Identifier: Apache-2.0
"""A layer of LSTM over a sequence, all of its steps in one call.

The gates are PyTorch's i, f, g, o:

    c = sigmoid(f) c + sigmoid(i) tanh(g)        h = sigmoid(o) tanh(c), and W_hr of it where there is a projection

int8 is LiteRT's integer LSTM with 8-bit activations and a 16-bit cell: gates as shared/recurrent.py and shared/gates.py
have them, the cell in int16 with a scale that is a power of two. What goes into a projection has the scale 1 / 128, for
it lies between -1 and 1. float32: a gate is its bias, then the products with x, then those with h, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import QuantizationError, UnsupportedShape
from tinyet.ir import Array, DType, Node, QuantParams, Shape, Tensor, TensorType
from tinyet.numerics import Int64, Multiplier, float32, quantize_multiplier, requantize, round_shift
from tinyet.ops.shared import gates, recurrent
from tinyet.ops.shared.claims_of_recurrent import floats, integers
from tinyet.ops.shared.gates import sigmoid, tanh
from tinyet.ops.shared.integers import saturated
from tinyet.ops.shared.recurrent import Part, Recurrent, Sizes
from tinyet.opset import Call, Constant, Kernel, Op, Pointer, Struct

GATES = 4
X, H, C, W_IH, W_HH, BIAS, W_HR = range(7)

CELL_POWERS = range(-15, -8)
"""Exponents of the scale that an int16 cell may have."""

PROJECTED = TensorType((), DType.INT8, QuantParams.per_tensor(2.0**-7, 0))
"""What is projected."""


@dataclass(frozen=True)
class Lstm(Recurrent):
    """inputs: x (N, T, I); state h (N, R) and cell c (N, H) before the first step; constants w_ih (4 H, I), w_hh
    (4 H, R), bias (4 H,) or None, w_hr (R, H) or None, where R is H. Outputs: y (N, T, R) if `sequence`; h (N, R) and
    c (N, H) behind the last step."""

    name: ClassVar[str] = "lstm"


def sizes_of(node: Node) -> Sizes:
    """Raises UnsupportedShape."""
    sizes = recurrent.sequence_sizes(node, W_IH, GATES)
    recurrent.expect_shape(node, C, "a cell", (sizes.batch, sizes.units))
    recurrent.expect_shape(node, BIAS, "a bias", (GATES * sizes.units,))
    recurrent.expect_shape(node, W_HR, "a projection", (sizes.outputs, sizes.units))
    if node.optional_input(W_HR) is None and sizes.outputs != sizes.units:
        raise UnsupportedShape(
            f"lstm: a state of {sizes.outputs} values for {sizes.units} units, without a projection",
            node.where,
        )
    return sizes


def infer(node: Node) -> tuple[Shape, ...]:
    sizes = sizes_of(node)
    return recurrent.output_shapes(node, sizes, sizes.outputs, sizes.units)


def macs(node: Node) -> int:
    s = sizes_of(node)
    projected = s.units * s.outputs if node.optional_input(W_HR) is not None else 0
    return s.batch * s.steps * (GATES * s.units * (s.inputs + s.outputs) + projected)


# ---------------------------------------------------------------- the type rule


def cell_power(cell: Tensor) -> int | None:
    """The exponent of an int16 cell's scale, or None where it has none."""
    return next((n for n in CELL_POWERS if cell.type.scale == 2.0**n), None)


def check(node: Node) -> str | None:
    constants = [t for t in node.inputs[W_IH:] if t is not None]
    complaint = recurrent.check_constants(constants)
    if complaint is not None:
        return complaint
    if node.input(X).dtype is DType.FLOAT32:
        return recurrent.check_floats(node)
    if node.input(X).dtype is not DType.INT8:
        return f"no form for {node.input(X).dtype.value}"
    *states, cell = node.outputs
    complaint = (
        recurrent.check_state(node.input(X))
        or recurrent.check_state(node.input(H), *states)
        or recurrent.check_state(node.input(C), cell)
        or recurrent.check_weights(node.input(W_IH), GATES)
        or recurrent.check_weights(node.input(W_HH), GATES)
        or recurrent.check_bias(node.optional_input(BIAS))
    )
    if complaint is not None:
        return complaint
    if node.input(H).dtype is not DType.INT8 or node.input(C).dtype is not DType.INT16:
        return "beside an int8 input the state must be int8 and the cell int16"
    if cell_power(cell) is None:
        return f"the scale of the cell must be a power of two, from 2^{CELL_POWERS[0]} to 2^{CELL_POWERS[-1]}"
    projection = node.optional_input(W_HR)
    if projection is not None and (complaint := recurrent.check_weights(projection, 1)):
        return complaint
    try:
        if output_factor(node).shift > 0:
            return "the scale of the state is too small"
    except QuantizationError as error:
        return error.what
    return recurrent.parts_complaint(lambda: parts(node))


# ---------------------------------------------------------------- int8


def hidden_type(node: Node) -> TensorType:
    """Of what the output gate lets through: the state, or what is projected to become it."""
    return node.input(H).type if node.optional_input(W_HR) is None else PROJECTED


def parts(node: Node) -> tuple[Part, ...]:
    """Of the input, of the state, and the projection if there is one."""
    found = (
        recurrent.part(node.input(X).type, node.input(W_IH), node.optional_input(BIAS), GATES),
        recurrent.part(node.input(H).type, node.input(W_HH), None, GATES),
    )
    projection = node.optional_input(W_HR)
    if projection is None:
        return found
    return (*found, recurrent.part(PROJECTED, projection, None, 1, node.input(H).type.scale))


def output_factor(node: Node) -> Multiplier:
    """From the product of two Q0.15 numbers, in float32 as LiteRT."""
    one = np.float32(2.0**-15)
    return quantize_multiplier(float(one / np.float32(hidden_type(node).scale) * one))


def cell_behind(cell: Int64, values: Int64, power: int) -> tuple[Int64, Int64]:
    """The cell behind a step, and the output gate, of the sums of all gates (N, 4 H), Q3.12."""
    i, f, g, o = np.split(values, GATES, axis=1)
    kept = round_shift(sigmoid(f) * cell, 15)
    new = round_shift(sigmoid(i) * tanh(g), 30 + power)
    return gates.added(kept, new), sigmoid(o)


def reference_s8(node: Node, x: Array, h: Array, c: Array) -> tuple[Array, ...]:
    s, (of_x, of_h, *projections) = sizes_of(node), parts(node)
    from_x = of_x.added(x)
    power, factor, hidden = cell_power(node.input(C)), output_factor(node), hidden_type(node)
    assert power is not None
    state, cell = h, c.astype(np.int64)
    y = np.empty((s.batch, s.steps, s.outputs), np.int8)
    for t in recurrent.order(node, s):
        cell, gate = cell_behind(cell, of_h.added(state, from_x[:, t]), power)
        product = gate * tanh(cell, 15 + power)
        values = requantize(product, factor.multiplier, factor.shift) + hidden.zero_point
        state = saturated(values, DType.INT8)
        for projection in projections:
            state = saturated(projection.scaled(state) + node.input(H).type.zero_point, DType.INT8)
        y[:, t] = state
    return recurrent.results(node, y, state, cell.astype(np.int16))


# ---------------------------------------------------------------- float32


def reference_f32(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    s = sizes_of(node)
    x, h, c, w_ih, w_hh = (recurrent.given(each) for each in inputs[:BIAS])
    w_hr = inputs[W_HR] if len(inputs) > W_HR else None
    bias = np.tile(recurrent.float_bias(node, BIAS, GATES * s.units), (s.batch, 1))
    y = np.empty((s.batch, s.steps, s.outputs), np.float32)
    for t in recurrent.order(node, s):
        sums = recurrent.float_sums(bias, x[:, t], w_ih)
        i, f, g, o = np.split(recurrent.float_sums(sums, h, w_hh), GATES, axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            c = np.asarray(float32.sigmoid(f) * c + float32.sigmoid(i) * float32.tanh(g), np.float32)
            h = np.asarray(float32.sigmoid(o) * float32.tanh(c), np.float32)
        if w_hr is not None:
            h = recurrent.float_sums(np.zeros_like(y[:, t]), h, recurrent.given(w_hr))
        y[:, t] = h
    return recurrent.results(node, y, h, c)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    if node.input(X).dtype is DType.FLOAT32:
        return reference_f32(node, inputs)
    x, h, c = inputs[:W_IH]
    assert x is not None
    assert h is not None
    assert c is not None
    return reference_s8(node, x, h, c)


# ---------------------------------------------------------------- portable kernels


def refuse_projected(node: Node, _target: Target) -> str | None:
    return None if node.optional_input(W_HR) is None else "the layer has a projection"


def refuse_plain(node: Node, _target: Target) -> str | None:
    return "the layer has no projection" if node.optional_input(W_HR) is None else None


def layer_s8(node: Node, *, wide: bool = False) -> tuple[Struct, list[Constant], int]:
    """The parameters of a layer, the projection apart; the constants; and bytes of scratch: the gates."""
    s, (of_x, of_h, *_) = sizes_of(node), parts(node)
    power, factor = cell_power(node.input(C)), output_factor(node)
    assert power is not None
    params = Struct(
        "tinyet_lstm_s8_params",
        {
            "shape": recurrent.shape_struct(node, s),
            "x": recurrent.part_struct("x", of_x),
            "h": recurrent.part_struct("h", of_h),
            "cell_bits": 15 + power,
            "multiplier": factor.multiplier,
            "form": recurrent.form_of(factor),
            "zero_point": hidden_type(node).zero_point,
        },
    )
    constants = [
        *recurrent.part_constants("x", of_x, wide=wide),
        *recurrent.part_constants("h", of_h, wide=wide),
    ]
    return params, constants, 2 * GATES * recurrent.rounded_up(s.units)


def lower_wide(node: Node, symbol: str) -> Call:
    """Of a kernel with weights of int16."""
    params, constants, scratch = layer_s8(node, wide=True)
    return recurrent.layer_call(
        symbol, node, STATES, params, constants, scratch + recurrent.wide_bytes(sizes_of(node))
    )


def lower_s8(node: Node, _target: Target) -> Call:
    params, constants, scratch = layer_s8(node)
    return recurrent.layer_call("tinyet_lstm_s8", node, STATES, params, constants, scratch)


def lower_projected_s8(node: Node, _target: Target) -> Call:
    layer, constants, scratch = layer_s8(node)
    projection = parts(node)[2]
    params = Struct(
        "tinyet_lstm_projected_s8_params",
        {
            "layer": layer,
            "projection": recurrent.part_struct("projection", projection),
            "zero_point": node.input(H).type.zero_point,
        },
    )
    constants += recurrent.part_constants("projection", projection)
    scratch += sizes_of(node).units
    return recurrent.layer_call("tinyet_lstm_projected_s8", node, STATES, params, constants, scratch)


def layer_f32(node: Node) -> tuple[Struct, list[Constant], int]:
    s = sizes_of(node)
    params = Struct(
        "tinyet_lstm_f32_params",
        {"shape": recurrent.shape_struct(node, s), "weights": Pointer("weights"), "bias": Pointer("bias")},
    )
    constants = [
        recurrent.float_weights(node, s, (W_IH, W_HH), GATES),
        recurrent.float_biases(node, s, BIAS, GATES),
    ]
    return params, constants, 4 * s.units


def lower_f32(node: Node, _target: Target) -> Call:
    params, constants, scratch = layer_f32(node)
    return recurrent.layer_call("tinyet_lstm_f32", node, STATES, params, constants, scratch)


def lower_projected_f32(node: Node, _target: Target) -> Call:
    layer, constants, scratch = layer_f32(node)
    params = Struct("tinyet_lstm_projected_f32_params", {"layer": layer, "projection": Pointer("projection")})
    constants.append(Constant("projection", node.input(W_HR).array))
    return recurrent.layer_call("tinyet_lstm_projected_f32", node, STATES, params, constants, scratch)


STATES = (X, H, C)
HEADERS = ("tinyet_lstm.h",)

OP = Op(
    attrs=Lstm,
    summary="LSTM over a sequence, with a projection where there is one",
    infer=infer,
    inputs=(5, 7),
    reference=reference,
    over_time=recurrent.over_time,
    check=check,
    macs=macs,
    bias=(BIAS, W_IH),
    carried=(H, H, C),
    kernels=(
        Kernel(
            "tinyet_lstm_s8",
            "s8",
            lower_s8,
            HEADERS,
            ("tinyet_lstm_s8.c",),
            refuse_projected,
            claim=integers(sizes_of, parts),
        ),
        Kernel(
            "tinyet_lstm_projected_s8",
            "s8",
            lower_projected_s8,
            HEADERS,
            ("tinyet_lstm_projected_s8.c",),
            refuse_plain,
            claim=integers(sizes_of, parts),
        ),
        Kernel(
            "tinyet_lstm_f32",
            "f32",
            lower_f32,
            HEADERS,
            ("tinyet_lstm_f32.c",),
            refuse_projected,
            claim=floats(sizes_of),
        ),
        Kernel(
            "tinyet_lstm_projected_f32",
            "f32",
            lower_projected_f32,
            HEADERS,
            ("tinyet_lstm_projected_f32.c",),
            refuse_plain,
            claim=floats(sizes_of, projected=True),
        ),
    ),
)
