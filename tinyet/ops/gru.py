# SPDX-License-Identifier: Apache-2.0
"""A layer of gated recurrent units over a sequence, all of its steps in one call.

The gates are PyTorch's r, z, n:

    n = tanh(W_in x + b_in + sigmoid(r) (W_hn h + b_hn))        h = (1 - sigmoid(z)) n + sigmoid(z) h

int8 is ours, in the spirit of LiteRT's integer LSTM: gates as shared/recurrent.py and shared/gates.py have them, and
the new state in units of 2**-15 steps of its scale, rounded once. The state is int8 from step to step, as it is from
call to call, so that a sequence may be cut anywhere.

int16 (x and state; weights int8) is ours by the rules of TFLM's LSTM (shared/gates_lut.py): sums are saturated each by
itself, and both products that the new state is made of are requantized to its steps, saturated and added.

float32: sums begin with their bias, r and z with that of x plus that of h, and go on with the products with x, then
those with h, one after another; the state is n + z (h - n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node, Shape
from tinyet.numerics import Int64, Multiplier, float32, quantize_multiplier, requantize, round_shift
from tinyet.numerics.float32 import Float32
from tinyet.ops.shared import gates, gates_lut, recurrent
from tinyet.ops.shared.cost_models_recurrent import QUICKER_ON_HELIUM, floats, integers
from tinyet.ops.shared.gates import sigmoid, tanh
from tinyet.ops.shared.integers import saturated
from tinyet.ops.shared.recurrent import Part, PartConstants, Recurrent, Sizes, part_constants
from tinyet.opset import Call, Constant, Kernel, Op, Pointer, Struct

GATES = 3
X, H, W_IH, W_HH, B_IH, B_HH = range(6)
STATES = (X, H)


@dataclass(frozen=True)
class Gru(Recurrent):
    """inputs: x (N, T, I); state h (N, H) before the first step; constants w_ih (3 H, I), w_hh (3 H, H), b_ih and b_hh
    (3 H,) or None. Outputs: y (N, T, H) if `sequence`; h (N, H) behind the last step."""

    name: ClassVar[str] = "gru"


def sizes_of(node: Node) -> Sizes:
    """Raises UnsupportedShape."""
    return recurrent.square_sizes(node, GATES, (B_IH, B_HH))


def infer(node: Node) -> tuple[Shape, ...]:
    sizes = sizes_of(node)
    return recurrent.output_shapes(node, sizes, sizes.units)


def macs(node: Node) -> int:
    s = sizes_of(node)
    return s.batch * s.steps * GATES * s.units * (s.inputs + s.units)


def check(node: Node) -> str | None:
    complaint = recurrent.check_square(node, GATES, (B_IH, B_HH))
    if complaint is not None or node.input(X).dtype is DType.FLOAT32:
        return complaint
    return recurrent.numbers_complaint(lambda: state_factor(node), lambda: parts(node))


# ---------------------------------------------------------------- integers


def parts(node: Node) -> tuple[Part, Part]:
    """Of the input and of the state."""
    return (
        recurrent.part(node.input(X).type, node.input(W_IH), node.optional_input(B_IH), GATES),
        recurrent.part(node.input(H).type, node.input(W_HH), node.optional_input(B_HH), GATES),
    )


def state_factor(node: Node) -> Multiplier:
    """From the product of two Q0.15 numbers to units of 2**-15 steps of an int8 state, or to steps of an int16 one."""
    if node.input(H).dtype is DType.INT16:
        return quantize_multiplier(2.0**-30 / node.input(H).type.scale)
    return quantize_multiplier(float(np.float32(2.0**-15) / np.float32(node.input(H).type.scale)))


def state_behind(node: Node, state: Array, from_x: Int64, of_h: Part) -> Array:
    """The state behind a step; from_x: sums of all gates (N, 3 H), Q3.12."""
    units, zero_point, factor = state.shape[1], node.input(H).type.zero_point, state_factor(node)
    from_h = of_h.scaled(state)
    rz = gates.added(from_x[:, : 2 * units], from_h[:, : 2 * units])
    r, z = np.split(sigmoid(rz), 2, axis=1)
    own = gates.added(from_h[:, 2 * units :], 0)
    n = tanh(gates.added(from_x[:, 2 * units :], round_shift(r * own, 15)))
    fresh = requantize((32768 - z) * n, factor.multiplier, factor.shift)
    kept = z * (state.astype(np.int64) - zero_point)
    return saturated(((fresh + kept + (1 << 14)) >> 15) + zero_point, DType.INT8)


def state_s16_behind(node: Node, state: Array, from_x: Int64, of_h: Part) -> Array:
    """The same in int16."""
    units, factor, from_h = state.shape[1], state_factor(node), of_h.added(state)
    rz = gates_lut.sigmoid(gates.added(from_x[:, : 2 * units], from_h[:, : 2 * units]))
    r, z = np.split(rz, 2, axis=1)
    own = gates_lut.shortened(r * from_h[:, 2 * units :], 15)
    n = gates_lut.tanh(gates.added(from_x[:, 2 * units :], own))
    fresh = gates.added(requantize((32768 - z) * n, factor.multiplier, factor.shift), 0)
    kept = gates_lut.shortened(z * state.astype(np.int64), 15)
    return gates.added(fresh, kept).astype(np.int16)


def reference_integer(node: Node, x: Array, h: Array) -> tuple[Array, ...]:
    s, (of_x, of_h) = sizes_of(node), parts(node)
    from_x, state = of_x.added(x), h
    behind = state_behind if h.dtype == np.int8 else state_s16_behind
    y = np.empty((s.batch, s.steps, s.units), h.dtype)
    for t in recurrent.order(node, s):
        state = y[:, t] = behind(node, state, from_x[:, t], of_h)
    return recurrent.results(node, y, state)


# ---------------------------------------------------------------- float32


def float_biases(node: Node) -> tuple[Float32, Float32]:
    """Initial values of the sums over x and over h, (3 H,) each; those of r and z are one sum, of x."""
    of_x, of_h = (recurrent.float_bias(node, i, GATES * sizes_of(node).units) for i in (B_IH, B_HH))
    rz = 2 * sizes_of(node).units
    of_x[:rz], of_h[:rz] = of_x[:rz] + of_h[:rz], 0
    return of_x, of_h


def reference_f32(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    s = sizes_of(node)
    x, h, w_ih, w_hh = (recurrent.given(each) for each in inputs[:B_IH])
    of_x, of_h = float_biases(node)
    y = np.empty((s.batch, s.steps, s.units), np.float32)
    rz = slice(0, 2 * s.units)
    for t in recurrent.order(node, s):
        sums = recurrent.float_sums(np.tile(of_x, (s.batch, 1)), x[:, t], w_ih)
        r, z = np.split(float32.sigmoid(recurrent.float_sums(sums[:, rz], h, w_hh[rz])), 2, axis=1)
        from_h = recurrent.float_sums(np.tile(of_h[rz.stop :], (s.batch, 1)), h, w_hh[rz.stop :])
        with np.errstate(over="ignore", invalid="ignore"):
            n = float32.tanh(np.asarray(sums[:, rz.stop :] + r * from_h, np.float32))
            h = np.asarray(n + z * (h - n), np.float32)
        y[:, t] = h
    return recurrent.results(node, y, h)


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
    # Sums lie in the order n of x, r, z, n of h: each part adds to three neighbours.
    of_x = of_x.in_order((2, 0, 1))
    constants = [*constants_of("x", of_x), *constants_of("h", of_h)]
    params = Struct(
        "tinyet_gru_s8_params",
        {
            "shape": recurrent.shape_struct(node, s),
            "x": recurrent.part_struct("x", of_x, constants),
            "h": recurrent.part_struct("h", of_h, constants),
            "multiplier": factor.multiplier,
            "form": recurrent.form_of(factor),
            "zero_point": node.input(H).type.zero_point,
        },
    )
    scratch += 2 * (GATES + 1) * recurrent.rounded_up(s.units)
    return recurrent.layer_call(symbol, node, STATES, params, constants, scratch)


def lower_s8(node: Node, _target: Target) -> Call:
    return layer_call(node, "tinyet_gru_s8", part_constants)


def lower_s16(node: Node, _target: Target) -> Call:
    s, (of_x, of_h), factor = sizes_of(node), parts(node), state_factor(node)
    of_x = of_x.in_order((2, 0, 1))
    params = Struct(
        "tinyet_gru_s16_params",
        {
            "shape": recurrent.shape_struct(node, s),
            "x": recurrent.part_s16_struct("x", of_x),
            "h": recurrent.part_s16_struct("h", of_h),
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
    scratch = 2 * (GATES + 1) * recurrent.rounded_up(s.units)
    return recurrent.layer_call("tinyet_gru_s16", node, STATES, params, constants, scratch)


def lower_f32(node: Node, _target: Target) -> Call:
    s = sizes_of(node)
    params = Struct(
        "tinyet_gru_f32_params",
        {"shape": recurrent.shape_struct(node, s), "weights": Pointer("weights"), "bias": Pointer("bias")},
    )
    of_x, of_h = (each.reshape(GATES, -1) for each in float_biases(node))
    bias = Constant("bias", np.ascontiguousarray(np.concatenate([of_x, of_h[2:]]).T), "r, z, n of x, n of h")
    constants = (recurrent.float_weights(node, s, (W_IH, W_HH), GATES), bias)
    return recurrent.layer_call("tinyet_gru_f32", node, STATES, params, constants, 4 * s.units)


HEADERS = ("tinyet_gru.h",)

OP = Op(
    attrs=Gru,
    summary="gated recurrent units over a sequence",
    infer=infer,
    inputs=(4, 6),
    reference=reference,
    iteration=recurrent.iterate,
    check=check,
    products=macs,
    bias=(B_IH, W_IH),
    carried=(H, H),
    state_bias=(B_HH, W_HH, H),
    kernels=(
        Kernel(
            "tinyet_gru_s8",
            "s8",
            lower_s8,
            HEADERS,
            ("tinyet_gru_s8.c",),
            cost_model=integers(sizes_of, parts),
        ),
        Kernel(
            "tinyet_gru_s16",
            "s16",
            lower_s16,
            HEADERS,
            ("tinyet_gru_s16.c",),
            no_cost_model=QUICKER_ON_HELIUM,
        ),
        Kernel(
            "tinyet_gru_f32", "f32", lower_f32, HEADERS, ("tinyet_gru_f32.c",), cost_model=floats(sizes_of)
        ),
    ),
)
