# SPDX-License-Identifier: Apache-2.0
"""A layer of plain recurrent units over a sequence, all of its steps in one call: h = f(W_ih x + W_hh h + bias).

int8 is ours, in the spirit of LiteRT's integer LSTM: sums as shared/recurrent.py has them, tanh as shared/gates.py.
What relu is of are units of 2**-7 steps of the state, so that the whole range of an int8 fits. int16 (x and state;
weights int8) is ours by the rules of TFLM's LSTM (shared/gates_lut.py); relu is of units of four steps. float32: the
sum is the bias, then the products with x, then those with h, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node, Shape
from tinyet.numerics import Int64, Multiplier, float32, quantize_multiplier, requantize
from tinyet.numerics.float32 import Float32
from tinyet.ops.shared import gates_lut, recurrent
from tinyet.ops.shared.cost_models_recurrent import QUICKER_ON_HELIUM, floats, integers, of_function
from tinyet.ops.shared.gates import GATE_SCALE, added, tanh
from tinyet.ops.shared.integers import saturated
from tinyet.ops.shared.recurrent import Part, PartConstants, Recurrent, Sizes, part_constants
from tinyet.opset import Call, Kernel, Op, Pointer, Struct

X, H, W_IH, W_HH, BIAS = range(5)
STATES = (X, H)
RELU_BITS = 7
RELU_S16_BITS = 2
"""In int16, relu takes units of 2**2 steps of the state: sums over x and over h may together exceed the range of one.
"""


@dataclass(frozen=True)
class Rnn(Recurrent):
    """inputs: x (N, T, I); state h (N, H) before the first step; constants w_ih (H, I), w_hh (H, H), bias (H,) or None.
    Outputs: y (N, T, H) if `sequence`; h (N, H) behind the last step."""

    name: ClassVar[str] = "rnn"
    nonlinearity: Literal["tanh", "relu"] = "tanh"


def is_relu(node: Node) -> bool:
    assert isinstance(node.attrs, Rnn)
    return node.attrs.nonlinearity == "relu"


def sizes_of(node: Node) -> Sizes:
    """Raises UnsupportedShape."""
    return recurrent.square_sizes(node, 1, (BIAS,))


def infer(node: Node) -> tuple[Shape, ...]:
    sizes = sizes_of(node)
    return recurrent.output_shapes(node, sizes, sizes.units)


def macs(node: Node) -> int:
    s = sizes_of(node)
    return s.batch * s.steps * s.units * (s.inputs + s.units)


def check(node: Node) -> str | None:
    complaint = recurrent.check_square(node, 1, (BIAS,))
    if complaint is not None or node.input(X).dtype is DType.FLOAT32:
        return complaint
    return recurrent.numbers_complaint(lambda: state_factor(node), lambda: parts(node))


# ---------------------------------------------------------------- integers


def parts(node: Node) -> tuple[Part, Part]:
    """Of the input and of the state."""
    h = node.input(H).type
    bits = RELU_BITS if h.dtype is DType.INT8 else -RELU_S16_BITS
    scale = h.scale * 2.0**-bits if is_relu(node) else GATE_SCALE
    return (
        recurrent.part(node.input(X).type, node.input(W_IH), node.optional_input(BIAS), 1, scale),
        recurrent.part(h, node.input(W_HH), None, 1, scale),
    )


def state_factor(node: Node) -> Multiplier:
    """From what the function gives to steps of the state; in int16 of 2**15 times a tanh."""
    if node.input(H).dtype is DType.INT16:
        return quantize_multiplier(2.0**-30 / node.input(H).type.scale)
    if is_relu(node):
        return quantize_multiplier(2.0**-RELU_BITS)
    return quantize_multiplier(float(np.float32(2.0**-15) / np.float32(node.input(H).type.scale)))


def state_behind(node: Node, sums: Int64) -> Array:
    """Of the sums (N, H), int16."""
    values, factor = np.maximum(sums, 0) if is_relu(node) else tanh(sums), state_factor(node)
    scaled = requantize(values, factor.multiplier, factor.shift)
    return saturated(scaled + node.input(H).type.zero_point, DType.INT8)


def state_s16_behind(node: Node, sums: Int64) -> Array:
    """The same in int16."""
    if is_relu(node):
        return saturated(np.maximum(sums, 0) << RELU_S16_BITS, DType.INT16)
    factor = state_factor(node)
    return saturated(requantize(gates_lut.tanh(sums) << 15, factor.multiplier, factor.shift), DType.INT16)


def reference_integer(node: Node, x: Array, h: Array) -> tuple[Array, ...]:
    s, (of_x, of_h) = sizes_of(node), parts(node)
    from_x, state = of_x.added(x), h
    y = np.empty((s.batch, s.steps, s.units), h.dtype)
    for t in recurrent.order(node, s):
        if h.dtype == np.int8:
            state = y[:, t] = state_behind(node, of_h.added(state, from_x[:, t]))
        else:
            state = y[:, t] = state_s16_behind(node, added(of_h.added(state), from_x[:, t]))
    return recurrent.results(node, y, state)


# ---------------------------------------------------------------- float32


def reference_f32(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    s = sizes_of(node)
    x, h, w_ih, w_hh = (recurrent.given(each) for each in inputs[:BIAS])
    bias = np.tile(recurrent.float_bias(node, BIAS, s.units), (s.batch, 1))
    y = np.empty((s.batch, s.steps, s.units), np.float32)
    for t in recurrent.order(node, s):
        sums = recurrent.float_sums(recurrent.float_sums(bias, x[:, t], w_ih), h, w_hh)
        h = rectified(sums) if is_relu(node) else float32.tanh(sums)
        y[:, t] = h
    return recurrent.results(node, y, h)


def rectified(x: Float32) -> Float32:
    """Values not above 0 become 0; NaN stays."""
    return np.asarray(np.where(x < 0, np.float32(0), x), np.float32)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    if node.input(X).dtype is DType.FLOAT32:
        return reference_f32(node, inputs)
    x, h = inputs[:W_IH]
    assert x is not None
    assert h is not None
    return reference_integer(node, x, h)


# ---------------------------------------------------------------- portable kernels


def layer_call(node: Node, symbol: str, constants_of: PartConstants, scratch: int = 0) -> Call:
    """scratch: bytes that the kernel needs behind the sums."""
    s, (of_x, of_h), factor = sizes_of(node), parts(node), state_factor(node)
    constants = [*constants_of("x", of_x), *constants_of("h", of_h)]
    params = Struct(
        "tinyet_rnn_s8_params",
        {
            "shape": recurrent.shape_struct(node, s),
            "x": recurrent.part_struct("x", of_x, constants),
            "h": recurrent.part_struct("h", of_h, constants),
            "relu": is_relu(node),
            "multiplier": factor.multiplier,
            "form": recurrent.form_of(factor),
            "zero_point": node.input(H).type.zero_point,
        },
    )
    scratch += 2 * recurrent.rounded_up(s.units)
    return recurrent.layer_call(symbol, node, STATES, params, constants, scratch)


def lower_s8(node: Node, _target: Target) -> Call:
    return layer_call(node, "tinyet_rnn_s8", part_constants)


def lower_s16(node: Node, _target: Target) -> Call:
    s, (of_x, of_h), factor = sizes_of(node), parts(node), state_factor(node)
    params = Struct(
        "tinyet_rnn_s16_params",
        {
            "shape": recurrent.shape_struct(node, s),
            "x": recurrent.part_s16_struct("x", of_x),
            "h": recurrent.part_s16_struct("h", of_h),
            "relu": is_relu(node),
            "multiplier": factor.multiplier,
            "form": recurrent.form_of(factor),
            "table": Pointer("table"),
        },
    )
    constants = (
        *recurrent.part_s16_constants("x", of_x),
        *recurrent.part_s16_constants("h", of_h),
        gates_lut.lut_constant(),
    )
    scratch = 2 * recurrent.rounded_up(s.units)
    return recurrent.layer_call("tinyet_rnn_s16", node, STATES, params, constants, scratch)


def lower_f32(node: Node, _target: Target) -> Call:
    s = sizes_of(node)
    params = Struct(
        "tinyet_rnn_f32_params",
        {
            "shape": recurrent.shape_struct(node, s),
            "weights": Pointer("weights"),
            "bias": Pointer("bias"),
            "relu": is_relu(node),
        },
    )
    constants = (
        recurrent.float_weights(node, s, (W_IH, W_HH), 1),
        recurrent.float_biases(node, s, BIAS, 1),
    )
    return recurrent.layer_call("tinyet_rnn_f32", node, STATES, params, constants, 4 * s.units)


HEADERS = ("tinyet_rnn.h",)

OP = Op(
    attrs=Rnn,
    summary="plain recurrent units over a sequence: tanh or relu of a sum",
    infer=infer,
    inputs=(4, 5),
    reference=reference,
    iteration=recurrent.iterate,
    check=check,
    products=macs,
    bias=(BIAS, W_IH),
    carried=(H, H),
    kernels=(
        Kernel(
            "tinyet_rnn_s8",
            "s8",
            lower_s8,
            HEADERS,
            ("tinyet_rnn_s8.c",),
            cost_model=of_function(integers(sizes_of, parts), is_relu),
        ),
        Kernel(
            "tinyet_rnn_s16",
            "s16",
            lower_s16,
            HEADERS,
            ("tinyet_rnn_s16.c",),
            no_cost_model=QUICKER_ON_HELIUM,
        ),
        Kernel(
            "tinyet_rnn_f32",
            "f32",
            lower_f32,
            HEADERS,
            ("tinyet_rnn_f32.c",),
            cost_model=of_function(floats(sizes_of), is_relu),
        ),
    ),
)
