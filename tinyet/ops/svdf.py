# SPDX-License-Identifier: Apache-2.0
"""A layer whose matrix over time is of low rank (SVDF), one step a call: the newest frame in, an answer out.

Each filter multiplies the frame by its weights of features and remembers what that came to for `memory` steps; its
weights of time make one number of these. A unit's answer is the sum of its `rank` filters and its bias.

int8 is TFLM's kernel (tensorflow/lite/micro/kernels/svdf_common.cc), and LiteRT's reference where that has the type:
the memory is int16, or int8, of one scale; scales are multiplied in float32; a product with the frame is requantized
and saturated, then the memory's zero point is added without a look at the bounds; sums over time wrap in 32 bits.
float32: each filter's sum over time begins at 0; they are added to the bias one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import QuantizationError, UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape, Tensor
from tinyet.numerics import (
    NO_CLAMP,
    Int64,
    Multiplier,
    clamp_range,
    float32,
    quantize_multiplier,
    requantize,
    wrap_int32,
)
from tinyet.ops.shared import recurrent
from tinyet.ops.shared.clamped import clamp_complaint, clamp_of
from tinyet.ops.shared.integers import INTEGERS, check_activations, magnitudes
from tinyet.ops.shared.packing import interleave_rows, requantize_form
from tinyet.ops.shared.shapes import expect_rank
from tinyet.opset import (
    ALONE,
    Call,
    Constant,
    Iteration,
    Kernel,
    Nest,
    Op,
    Pointer,
    Refuse,
    Struct,
    library_call,
    operand,
    parameters,
)

X, STATE, W_FEATURE, W_TIME, BIAS = range(5)


@dataclass(frozen=True)
class Svdf(Attrs):
    """inputs: x (N, I); state (N, F * M), of each filter what the last M frames came to, the oldest first; constants
    w_feature (F, I), w_time (F, M) and bias (U,) or None, where F is U * rank. Outputs: y (N, U); the state behind the
    step.

    rank: filters of a unit, one behind another. clamp: real bounds of the fused activation: (0, inf) is ReLU.
    """

    name: ClassVar[str] = "svdf"
    rank: int = 1
    clamp: tuple[float, float] = NO_CLAMP


@dataclass(frozen=True)
class Sizes:
    batch: int
    inputs: int
    filters: int
    memory: int
    units: int


def attrs_of(node: Node) -> Svdf:
    assert isinstance(node.attrs, Svdf)
    return node.attrs


def sizes_of(node: Node) -> Sizes:
    """Raises UnsupportedShape."""
    rank = attrs_of(node).rank
    batch, inputs = expect_rank(node, X, 2)
    filters, columns = expect_rank(node, W_FEATURE, 2)
    _, memory = expect_rank(node, W_TIME, 2)
    if columns != inputs:
        raise UnsupportedShape(f"svdf: weights for {columns} inputs, x has {inputs}", node.where)
    if rank < 1 or filters % rank != 0:
        raise UnsupportedShape(f"svdf: {filters} filters are no units of rank {rank}", node.where)
    recurrent.expect_shape(node, W_TIME, "weights of time", (filters, memory))
    recurrent.expect_shape(node, STATE, "a state", (batch, filters * memory))
    recurrent.expect_shape(node, BIAS, "a bias", (filters // rank,))
    return Sizes(batch, inputs, filters, memory, filters // rank)


def infer(node: Node) -> tuple[Shape, ...]:
    s = sizes_of(node)
    return (s.batch, s.units), (s.batch, s.filters * s.memory)


def iterate(node: Node) -> Iteration:
    """The state's last column is new; all others move."""
    nest, s = Nest(), sizes_of(node)
    n, unit, kept = nest.all_parallel((s.batch, s.units, s.filters * s.memory))
    x, state = (operand(n, nest.reduced(t.shape[1])) for t in (node.input(0), node.input(1)))
    return nest.iteration([x, state, *parameters(node, nest, 2)], [operand(n, unit), operand(n, kept)])


def macs(node: Node) -> int:
    s = sizes_of(node)
    return s.batch * s.filters * (s.inputs + s.memory)


# ---------------------------------------------------------------- the type rule


def check_weights(weights: Tensor, dtypes: Sequence[DType]) -> str | None:
    """Of one of these types, with one scale and zero point 0."""
    quant = weights.type.quant
    if weights.dtype not in dtypes:
        return f"{weights.name} must be {' or '.join(d.value for d in dtypes)}"
    if quant is None or quant.axis is not None or quant.one_zero_point != 0:
        return f"{weights.name} must be quantized per tensor with zero point 0"
    return None


def check(node: Node) -> str | None:
    complaint = clamp_complaint(node) or recurrent.check_constants(
        [t for t in node.inputs[W_FEATURE:] if t is not None]
    )
    if complaint is not None:
        return complaint
    x, state, (y, behind) = node.input(X), node.input(STATE), node.outputs
    if x.dtype is DType.FLOAT32:
        return recurrent.check_floats(node)
    if x.dtype is not DType.INT8 or y.dtype is not DType.INT8:
        return f"no form from {x.dtype.value} to {y.dtype.value}"
    complaint = (
        check_activations(x, y)
        or recurrent.check_state(state, behind)
        or check_weights(node.input(W_FEATURE), (DType.INT8,))
        or check_weights(node.input(W_TIME), INTEGERS)
        or recurrent.check_bias(node.optional_input(BIAS), x)
    )
    if complaint is not None:
        return complaint
    if state.dtype is not node.input(W_TIME).dtype:
        return "the state must be of the type of the weights of time"
    bound = 128 * magnitudes(node.input(W_FEATURE).array) + np.abs(feature_bias(node))
    if int(bound.max(initial=0)) >= 2**31:
        return "sums could overflow 32 bits"
    try:
        feature_factor(node)
        output_factor(node)
    except QuantizationError as error:
        return error.what
    return None


# ---------------------------------------------------------------- int8


def feature_factor(node: Node) -> Multiplier:
    """From products with the frame to steps of the state, in float32 as TFLM. Raises QuantizationError."""
    x, weights, state = (np.float32(node.input(i).type.scale) for i in (X, W_FEATURE, STATE))
    with np.errstate(over="ignore"):
        return quantize_multiplier(float(x * weights / state))


def output_factor(node: Node) -> Multiplier:
    """From products with the state to steps of the output, likewise."""
    state, weights = (np.float32(node.input(i).type.scale) for i in (STATE, W_TIME))
    with np.errstate(over="ignore"):
        return quantize_multiplier(float(state * weights / np.float32(node.outputs[0].type.scale)))


def feature_bias(node: Node) -> Int64:
    """The contribution of x's zero point to the sum of each filter, (F,)."""
    sums = node.input(W_FEATURE).array.astype(np.int64).sum(axis=1)
    return np.asarray(-node.input(X).type.zero_point * sums, np.int64)


def time_bias(node: Node) -> Int64:
    """The constant part of each unit's sum, (U,), wrapped to 32 bits: the bias and the state's zero point."""
    s, bias = sizes_of(node), node.optional_input(BIAS)
    own = np.int64(0) if bias is None else bias.array.astype(np.int64)
    sums = node.input(W_TIME).array.astype(np.int64).reshape(s.units, -1).sum(axis=1)
    return wrap_int32(own - node.input(STATE).type.zero_point * sums)


def reference_integer(node: Node, x: Array, state: Array) -> tuple[Array, ...]:
    s, (y, kept) = sizes_of(node), (t.type for t in node.outputs)
    factor = feature_factor(node)
    # float64 holds every integer below 2**53, so the matrix product is exact and fast.
    weights = node.input(W_FEATURE).array.astype(np.float64)
    sums = (x.astype(np.float64) @ weights.T).astype(np.int64) + feature_bias(node)
    newest = np.clip(requantize(sums, factor.multiplier, factor.shift), *kept.dtype.range)
    newest = (newest + kept.zero_point).astype(kept.dtype.numpy)
    behind = np.concatenate([state.reshape(s.batch, s.filters, s.memory)[..., 1:], newest[..., None]], axis=2)
    products = behind.astype(np.int64) * node.input(W_TIME).array.astype(np.int64)
    answers = wrap_int32(products.reshape(s.batch, s.units, -1).sum(axis=2) + time_bias(node))
    factor = output_factor(node)
    scaled = requantize(answers, factor.multiplier, factor.shift) + y.zero_point
    bounds = clamp_range(clamp_of(node), y)
    return np.clip(scaled, *bounds).astype(np.int8), behind.reshape(state.shape)


# ---------------------------------------------------------------- float32


def reference_f32(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    s = sizes_of(node)
    x, state, w_feature, w_time = (recurrent.given(each) for each in inputs[:BIAS])
    newest = recurrent.float_sums(np.zeros((s.batch, s.filters), np.float32), x, w_feature)
    behind = np.concatenate([state.reshape(s.batch, s.filters, s.memory)[..., 1:], newest[..., None]], axis=2)
    sums = np.zeros((s.batch, s.filters), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for m in range(s.memory):
            sums = np.asarray(sums + behind[..., m] * w_time[:, m], np.float32)
        y = np.tile(recurrent.float_bias(node, BIAS, s.units), (s.batch, 1))
        for r in range(attrs_of(node).rank):
            y = np.asarray(y + sums.reshape(s.batch, s.units, -1)[..., r], np.float32)
    return float32.clamp(y, *clamp_of(node)), behind.reshape(state.shape)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    if node.input(X).dtype is DType.FLOAT32:
        return reference_f32(node, inputs)
    x, state = inputs[:W_FEATURE]
    assert x is not None
    assert state is not None
    return reference_integer(node, x, state)


# ---------------------------------------------------------------- portable kernels


def of_state(dtype: DType) -> Refuse:
    """Of kernels whose state has this type."""

    def refuse(node: Node, _target: Target) -> str | None:
        have = node.input(STATE).dtype
        return None if have is dtype else f"the state is {have.value}"

    return refuse


def shape_struct(node: Node) -> Struct:
    s = sizes_of(node)
    sizes = {"batch": s.batch, "inputs": s.inputs, "filters": s.filters, "memory": s.memory, "units": s.units}
    return Struct("tinyet_svdf_shape", {**sizes, "rank": attrs_of(node).rank})


def feature_form(node: Node) -> int:
    """The shift of the products with the frame as tinyet_requantize_form has it; the cheap one where it is exact for
    all filters."""
    shift = np.array(feature_factor(node).shift)
    forms = requantize_form(node.input(W_FEATURE).array, feature_bias(node), shift)
    return int(forms[0]) if (forms >= 0).all() else int(shift) - 31


def lower_integer(node: Node, _target: Target) -> Call:
    output, y = output_factor(node), node.outputs[0].type
    low, high = clamp_range(clamp_of(node), y)
    symbol = "tinyet_svdf_s8" if node.input(STATE).dtype is DType.INT8 else "tinyet_svdf_s8_s16"
    params = Struct(
        f"{symbol}_params",
        {
            "shape": shape_struct(node),
            "feature": Pointer("feature"),
            "feature_bias": Pointer("feature_bias"),
            "time": Pointer("time"),
            "bias": Pointer("bias"),
            "feature_multiplier": feature_factor(node).multiplier,
            "feature_form": feature_form(node),
            "state_zero_point": node.input(STATE).type.zero_point,
            "multiplier": output.multiplier,
            "shift": output.shift,
            "zero_point": y.zero_point,
            "clamp_low": low,
            "clamp_high": high,
        },
    )
    weights, bias = node.input(W_FEATURE).array, feature_bias(node)
    constants = (
        Constant("feature", interleave_rows(weights), "four inputs of four filters in turn"),
        Constant("feature_bias", np.pad(bias, (0, -len(bias) % 4)).astype(np.int32)),
        Constant("time", node.input(W_TIME).array),
        Constant("bias", time_bias(node).astype(np.int32)),
    )
    return library_call(symbol, node, [X, STATE], params, constants)


def lower_f32(node: Node, _target: Target) -> Call:
    low, high = clamp_of(node)
    names = ("feature", "time", "bias")
    params = Struct(
        "tinyet_svdf_f32_params",
        {
            "shape": shape_struct(node),
            **{name: Pointer(name) for name in names},
            "clamp_low": low,
            "clamp_high": high,
        },
    )
    arrays = (
        node.input(W_FEATURE).array,
        node.input(W_TIME).array,
        recurrent.float_bias(node, BIAS, sizes_of(node).units),
    )
    constants = [Constant(name, array) for name, array in zip(names, arrays, strict=True)]
    return library_call("tinyet_svdf_f32", node, [X, STATE], params, constants)


HEADERS = ("tinyet_svdf.h",)

OP = Op(
    attrs=Svdf,
    summary="a step of a layer whose matrix over time is of low rank, fused clamp",
    infer=infer,
    inputs=(4, 5),
    reference=reference,
    iteration=iterate,
    check=check,
    products=macs,
    carried=(STATE,),
    state_bias=(BIAS, W_TIME, STATE),
    inplace=(STATE,),
    kernels=(
        Kernel(
            "tinyet_svdf_s8",
            "s8",
            lower_integer,
            HEADERS,
            ("tinyet_svdf_s8.c",),
            of_state(DType.INT8),
            no_cost_model=ALONE,
        ),
        Kernel(
            "tinyet_svdf_s8_s16",
            "s8",
            lower_integer,
            HEADERS,
            ("tinyet_svdf_s8_s16.c",),
            of_state(DType.INT16),
            no_cost_model=ALONE,
        ),
        Kernel("tinyet_svdf_f32", "f32", lower_f32, HEADERS, ("tinyet_svdf_f32.c",), no_cost_model=ALONE),
    ),
)
