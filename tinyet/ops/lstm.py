# SPDX-License-Identifier: Apache-2.0
"""A layer of LSTM over a sequence, all of its steps in one call.

The gates are PyTorch's i, f, g, o:

    c = sigmoid(f) c + sigmoid(i) tanh(g)        h = sigmoid(o) tanh(c), and W_hr of it where there is a projection

int8 is LiteRT's integer LSTM with 8-bit activations and a 16-bit cell: gates as shared/recurrent.py and shared/gates.py
have them, the cell in int16 with a scale that is a power of two. What goes into a projection has the scale 1 / 128, for
it lies between -1 and 1. TFLM computes it otherwise (tensorflow/lite/micro/kernels/lstm_eval.h): both sums of a gate
are saturated, each by itself; functions of gates are tables (shared/gates_lut.py), products are requantized with two
roundings, and the factor of the output is a quotient in float64. int16 (x and state; weights int8) is TFLM's rule, too.
float32: a gate is its bias, then the products with x, then those with h, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, DType, Node, QuantParams, Shape, Tensor, TensorType
from tinyet.numerics import Int64, Multiplier, float32, quantize_multiplier, requantize, round_shift
from tinyet.ops.shared import gates, gates_lut, recurrent
from tinyet.ops.shared.cost_models_recurrent import QUICKER_ON_HELIUM, floats, integers
from tinyet.ops.shared.integers import INTEGERS, saturated
from tinyet.ops.shared.recurrent import Part, PartConstants, Recurrent, Sizes, part_constants
from tinyet.opset import ALONE, Call, Constant, FieldValue, Kernel, Op, Pointer, Struct

GATES = 4
X, H, C, W_IH, W_HH, BIAS, W_HR = range(7)

CELL_POWERS = range(-15, -8)
"""Exponents of the scale that an int16 cell may have."""

PROJECTED = TensorType((), DType.INT8, QuantParams.per_tensor(2.0**-7, 0))
"""The type of the projected values."""


@dataclass(frozen=True)
class Lstm(Recurrent):
    """inputs: x (N, T, I); state h (N, R) and cell c (N, H) before the first step; constants w_ih (4 H, I), w_hh
    (4 H, R), bias (4 H,) or None, w_hr (R, H) or None, where R is H. Outputs: y (N, T, R) if `sequence`; h (N, R) and
    c (N, H) behind the last step.

    arithmetic: whose int8 rule it is; int16 has TFLM's only. cell_clip: what the real cell is kept within, to both
    sides, or None; a layer with a projection has none.
    """

    name: ClassVar[str] = "lstm"
    arithmetic: Literal["litert", "tflm"] = "litert"
    cell_clip: float | None = None


def attrs_of(node: Node) -> Lstm:
    assert isinstance(node.attrs, Lstm)
    return node.attrs


def is_tflm(node: Node) -> bool:
    """Whether TFLM's rule is that of a node with integers."""
    return attrs_of(node).arithmetic == "tflm" or node.input(X).dtype is DType.INT16


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
    constants, clip = [t for t in node.inputs[W_IH:] if t is not None], attrs_of(node).cell_clip
    complaint = recurrent.check_constants(constants)
    if complaint is not None:
        return complaint
    if clip is not None and not clip > 0:
        return f"a cell cannot be kept within {clip}"
    if node.optional_input(W_HR) is not None and (clip is not None or is_tflm(node)):
        return "beside a projection there is neither TFLM's arithmetic, which is that of int16, nor a clipped cell"
    if node.input(X).dtype is DType.FLOAT32:
        return recurrent.check_floats(node)
    x, (*states, cell) = node.input(X), node.outputs
    if x.dtype not in INTEGERS:
        return f"no form for {x.dtype.value}"
    complaint = (
        recurrent.check_state(x)
        or recurrent.check_state(node.input(H), *states)
        or recurrent.check_state(node.input(C), cell)
        or recurrent.check_weights(node.input(W_IH), GATES)
        or recurrent.check_weights(node.input(W_HH), GATES)
        or recurrent.check_bias(node.optional_input(BIAS), x)
    )
    if complaint is not None:
        return complaint
    if node.input(H).dtype is not x.dtype or node.input(C).dtype is not DType.INT16:
        return f"beside an {x.dtype.value} input the state must be {x.dtype.value} and the cell int16"
    if cell_power(cell) is None:
        return f"the scale of the cell must be a power of two, from 2^{CELL_POWERS[0]} to 2^{CELL_POWERS[-1]}"
    projection = node.optional_input(W_HR)
    if projection is not None and (complaint := recurrent.check_weights(projection, 1)):
        return complaint
    return recurrent.numbers_complaint(lambda: output_factor(node), lambda: parts(node))


# ---------------------------------------------------------------- integers


def hidden_type(node: Node) -> TensorType:
    """The type behind the output gate: the state, or the input of the projection to it."""
    return node.input(H).type if node.optional_input(W_HR) is None else PROJECTED


def parts(node: Node) -> tuple[Part, ...]:
    """Of the input, of the state, and the projection if there is one. TFLM multiplies scales in float64 (lstm_eval.cc,
    kernel_util.cc), LiteRT in float32."""
    kind = np.float64 if is_tflm(node) else np.float32
    found = (
        recurrent.part(node.input(X).type, node.input(W_IH), node.optional_input(BIAS), GATES, kind=kind),
        recurrent.part(node.input(H).type, node.input(W_HH), None, GATES, kind=kind),
    )
    projection = node.optional_input(W_HR)
    if projection is None:
        return found
    return (*found, recurrent.part(PROJECTED, projection, None, 1, node.input(H).type.scale))


def output_factor(node: Node) -> Multiplier:
    """From the product of two Q0.15 numbers, in float32 as LiteRT."""
    scale = np.float32(hidden_type(node).scale)
    if is_tflm(node):
        return quantize_multiplier(2.0**-30 / float(scale))
    one = np.float32(2.0**-15)
    with np.errstate(over="ignore"):
        return quantize_multiplier(float(one / scale * one))


def cell_bounds(node: Node) -> tuple[int, int]:
    """Bounds of an int16 cell: as in LiteRT and TFLM, rounded down to an integer."""
    clip = attrs_of(node).cell_clip
    if clip is None:
        return DType.INT16.range
    limit = int(min(clip / node.input(C).type.scale, 32767.0))
    return -limit, limit


def step(node: Node, cell: Int64, values: Int64) -> tuple[Int64, Int64]:
    """The cell behind a step, and what the output gate lets through in Q0.30; values: sums of all gates (N, 4 H),
    Q3.12."""
    power, (i, f, g, o) = cell_power(node.input(C)), np.split(values, GATES, axis=1)
    assert power is not None
    own, shortened = (gates_lut, gates_lut.shortened) if is_tflm(node) else (gates, round_shift)
    kept = shortened(own.sigmoid(f) * cell, 15)
    new = shortened(own.sigmoid(i) * own.tanh(g), 30 + power)
    cell = np.clip(kept + new, *cell_bounds(node))
    return cell, own.sigmoid(o) * own.tanh(cell, 15 + power)


def reference_integer(node: Node, x: Array, h: Array, c: Array) -> tuple[Array, ...]:
    s, (of_x, of_h, *projections) = sizes_of(node), parts(node)
    from_x = of_x.added(x)
    factor, hidden = output_factor(node), hidden_type(node)
    state, cell = h, c.astype(np.int64)
    y = np.empty((s.batch, s.steps, s.outputs), h.dtype)
    for t in recurrent.order(node, s):
        from_h = of_h.added(state) if is_tflm(node) else of_h.scaled(state)
        cell, product = step(node, cell, gates.added(from_x[:, t], from_h))
        values = requantize(product, factor.multiplier, factor.shift) + hidden.zero_point
        state = saturated(values, node.input(H).dtype)
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
    clip = attrs_of(node).cell_clip
    for t in recurrent.order(node, s):
        sums = recurrent.float_sums(bias, x[:, t], w_ih)
        i, f, g, o = np.split(recurrent.float_sums(sums, h, w_hh), GATES, axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            c = np.asarray(float32.sigmoid(f) * c + float32.sigmoid(i) * float32.tanh(g), np.float32)
            c = c if clip is None else float32.clamp(c, -clip, clip)
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
    return reference_integer(node, x, h, c)


# ---------------------------------------------------------------- portable kernels


def refuse_projected(node: Node, _target: Target) -> str | None:
    """Of kernels of the plain layer: LiteRT's rule, the cell within its type."""
    if node.optional_input(W_HR) is not None:
        return "the layer has a projection"
    if attrs_of(node).cell_clip is not None:
        return "the cell is clipped"
    return "TFLM's arithmetic" if is_tflm(node) and node.input(X).dtype is not DType.FLOAT32 else None


def refuse_unclipped(node: Node, _target: Target) -> str | None:
    """Of LiteRT's rule, and float32, with a clipped cell."""
    if attrs_of(node).cell_clip is None:
        return "the cell is not clipped"
    return "TFLM's arithmetic" if is_tflm(node) and node.input(X).dtype is not DType.FLOAT32 else None


def lower_s16(node: Node, _target: Target) -> Call:
    (of_x, of_h), s, factor = parts(node), sizes_of(node), output_factor(node)
    power, (low, high) = cell_power(node.input(C)), cell_bounds(node)
    assert power is not None
    params = Struct(
        "tinyet_lstm_s16_params",
        {
            "shape": recurrent.shape_struct(node, s),
            "x": recurrent.part_s16_struct("x", of_x),
            "h": recurrent.part_s16_struct("h", of_h),
            "cell_bits": 15 + power,
            "multiplier": factor.multiplier,
            "form": recurrent.form_of(factor),
            "cell_low": low,
            "cell_high": high,
            "table": Pointer("table"),
        },
    )
    constants = (
        *recurrent.part_s16_constants("x", of_x),
        *recurrent.part_s16_constants("h", of_h),
        gates_lut.lut_constant(),
    )
    scratch = 2 * GATES * recurrent.rounded_up(s.units)
    return recurrent.layer_call("tinyet_lstm_s16", node, STATES, params, constants, scratch)


def refuse_litert(node: Node, _target: Target) -> str | None:
    return None if is_tflm(node) else "LiteRT's arithmetic"


def refuse_plain(node: Node, _target: Target) -> str | None:
    return "the layer has no projection" if node.optional_input(W_HR) is None else None


def layer_s8(node: Node, constants_of: PartConstants) -> tuple[Struct, list[Constant], int]:
    """The parameters of a layer, the projection apart; the constants; and bytes of scratch: the gates."""
    s, (of_x, of_h, *_) = sizes_of(node), parts(node)
    power, factor = cell_power(node.input(C)), output_factor(node)
    assert power is not None
    constants = [*constants_of("x", of_x), *constants_of("h", of_h)]
    params = Struct(
        "tinyet_lstm_s8_params",
        {
            "shape": recurrent.shape_struct(node, s),
            "x": recurrent.part_struct("x", of_x, constants),
            "h": recurrent.part_struct("h", of_h, constants),
            "cell_bits": 15 + power,
            "multiplier": factor.multiplier,
            "form": recurrent.form_of(factor),
            "zero_point": hidden_type(node).zero_point,
        },
    )
    return params, constants, 2 * GATES * recurrent.rounded_up(s.units)


def plain_call(node: Node, symbol: str, constants_of: PartConstants, scratch: int = 0) -> Call:
    """Of a layer without a projection. scratch: bytes that the kernel needs behind the gates."""
    params, constants, own = layer_s8(node, constants_of)
    return recurrent.layer_call(symbol, node, STATES, params, constants, own + scratch)


def bounded_call(
    node: Node,
    symbol: str,
    kind: str,
    constants_of: PartConstants = part_constants,
    table: Constant | None = None,
    scratch: int = 0,
) -> Call:
    """Of a layer whose cell has bounds; kind: of its parameters. scratch: bytes that the kernel needs behind the
    gates."""
    layer, constants, own = layer_s8(node, constants_of)
    low, high = cell_bounds(node)
    fields: dict[str, FieldValue] = {"layer": layer, "cell_low": low, "cell_high": high}
    if table is not None:
        fields[table.name] = Pointer(table.name)
        constants.append(table)
    return recurrent.layer_call(symbol, node, STATES, Struct(kind, fields), constants, own + scratch)


def lower_clipped_s8(node: Node, _target: Target) -> Call:
    return bounded_call(node, "tinyet_lstm_cell_clip_s8", "tinyet_lstm_cell_clip_s8_params")


def lower_lut_s8(node: Node, _target: Target) -> Call:
    table = gates_lut.lut_constant()
    return bounded_call(node, "tinyet_lstm_s8_lut", "tinyet_lstm_s8_lut_params", table=table)


def pwl_call(node: Node, symbol: str, constants_of: PartConstants, scratch: int = 0) -> Call:
    """Of a layer as TFLM computes it, by the table of pieces."""
    kind = "tinyet_lstm_s8_pwl_params"
    return bounded_call(node, symbol, kind, constants_of, gates_lut.pwl_constant(), scratch)


def projected_call(node: Node, symbol: str, constants_of: PartConstants, scratch: int = 0) -> Call:
    """Of a layer with a projection. scratch: bytes that the kernel needs behind the gates, while it computes these;
    what is projected takes their place."""
    layer, constants, own = layer_s8(node, constants_of)
    projection = parts(node)[2]
    constants += part_constants("projection", projection)
    params = Struct(
        "tinyet_lstm_projected_s8_params",
        {
            "layer": layer,
            "projection": recurrent.part_struct("projection", projection, constants),
            "zero_point": node.input(H).type.zero_point,
        },
    )
    own += max(sizes_of(node).units, scratch)
    return recurrent.layer_call(symbol, node, STATES, params, constants, own)


def lower_s8(node: Node, _target: Target) -> Call:
    return plain_call(node, "tinyet_lstm_s8", part_constants)


def lower_projected_s8(node: Node, _target: Target) -> Call:
    return projected_call(node, "tinyet_lstm_projected_s8", part_constants)


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


def lower_clipped_f32(node: Node, _target: Target) -> Call:
    (layer, constants, scratch), clip = layer_f32(node), attrs_of(node).cell_clip
    assert clip is not None
    params = Struct("tinyet_lstm_cell_clip_f32_params", {"layer": layer, "cell_clip": clip})
    return recurrent.layer_call("tinyet_lstm_cell_clip_f32", node, STATES, params, constants, scratch)


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
    iteration=recurrent.iterate,
    check=check,
    products=macs,
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
            cost_model=integers(sizes_of, parts),
        ),
        Kernel(
            "tinyet_lstm_projected_s8",
            "s8",
            lower_projected_s8,
            HEADERS,
            ("tinyet_lstm_projected_s8.c",),
            refuse_plain,
            cost_model=integers(sizes_of, parts),
        ),
        Kernel(
            "tinyet_lstm_cell_clip_s8",
            "s8",
            lower_clipped_s8,
            HEADERS,
            ("tinyet_lstm_cell_clip_s8.c",),
            refuse_unclipped,
            no_cost_model=ALONE,
        ),
        Kernel(
            "tinyet_lstm_s8_lut",
            "s8",
            lower_lut_s8,
            HEADERS,
            ("tinyet_lstm_s8_lut.c",),
            refuse_litert,
            cost_model=integers(sizes_of, parts),
        ),
        Kernel(
            "tinyet_lstm_s16",
            "s16",
            lower_s16,
            HEADERS,
            ("tinyet_lstm_s16.c",),
            no_cost_model=QUICKER_ON_HELIUM,
        ),
        Kernel(
            "tinyet_lstm_f32",
            "f32",
            lower_f32,
            HEADERS,
            ("tinyet_lstm_f32.c",),
            refuse_projected,
            cost_model=floats(sizes_of),
        ),
        Kernel(
            "tinyet_lstm_cell_clip_f32",
            "f32",
            lower_clipped_f32,
            HEADERS,
            ("tinyet_lstm_cell_clip_f32.c",),
            refuse_unclipped,
            no_cost_model=ALONE,
        ),
        Kernel(
            "tinyet_lstm_projected_f32",
            "f32",
            lower_projected_f32,
            HEADERS,
            ("tinyet_lstm_projected_f32.c",),
            refuse_plain,
            cost_model=floats(sizes_of, projected=True),
        ),
    ),
)
