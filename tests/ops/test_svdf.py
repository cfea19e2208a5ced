# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing, recurring
from tests.ops.cases import Case, expected
from tests.oracle import litert, tflm
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import NO_CLAMP
from tinyet.ops.svdf import BIAS, STATE, W_FEATURE, W_TIME, Svdf, X

RELU = (0.0, float("inf"))
STATES = (DType.INT8, DType.INT16)


@st.composite
def svdf_nodes(
    draw: st.DrawFn, state: DType | None = None, *, clamp: tuple[float, float] | None = None
) -> Case:
    """state: its type; float32 is that of all."""
    kind = state or draw(st.sampled_from((*STATES, DType.FLOAT32)))
    integer, rng = kind is not DType.FLOAT32, drawing.random(draw)
    outside = DType.INT8 if integer else DType.FLOAT32
    batch, inputs, memory = draw(st.integers(1, 2)), draw(st.integers(1, 18)), draw(st.integers(1, 6))
    units, rank = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    filters = units * rank
    x = Tensor("x", TensorType((batch, inputs), outside, draw(drawing.quants(outside))))
    kept = draw(drawing.quants(kind))
    feature = draw(recurring.weights("feature", (filters, inputs), outside, 1, 0.05))
    time = draw(recurring.weights("time", (filters, memory), outside, 1, 0.05))
    result = None
    if integer:
        feature = constant("feature", feature.array, QuantParams.per_tensor(rng.uniform(1e-3, 0.05), 0))
        reach = 100 if kind is DType.INT8 else 1e4
        # Scales that the sums fill about, and such that saturate, or wrap in 32 bits.
        scale = float(x.type.scale * 0.01 * 4000 * rng.uniform(0.2, 20) / reach)
        kept = QuantParams.per_tensor(scale, kept.one_zero_point if kept and kind is DType.INT8 else 0)
        numbers = drawing.integer_data(rng, (filters, memory), kind)
        step = float(rng.uniform(1e-4, 1e-2) * 100 / reach)
        time = constant("time", numbers, QuantParams.per_tensor(step, 0))
        width = scale * step * reach * reach * np.sqrt(rank * memory)
        result = QuantParams.per_tensor(float(width * rng.uniform(0.1, 3) / 100), draw(drawing.zero_points))
    state_type = TensorType((batch, filters * memory), kind, kept)
    inside: list[Tensor | None] = [x, Tensor("state", state_type), feature, time]
    inside.append(draw(recurring.biases("bias", units, outside)))
    own = Svdf(rank, clamp or draw(st.sampled_from((NO_CLAMP, RELU, (-1.0, 1.0)))))
    return recurring.case(own, inside, [TensorType((), outside, result), state_type], rng)


test_host = bodies.host(svdf_nodes())


def specs(case: Case) -> tuple[list[litert.TensorSpec | None], list[litert.TensorSpec]]:
    """The node as TFLite has it. Its bias is always there: TFLM reads it."""
    node = case.node

    def spec(tensor: Tensor, data: Any = None, role: Any = "") -> litert.TensorSpec:
        quant = tensor.type.quant
        scale, zero = (None, 0) if quant is None else (quant.one_scale, quant.one_zero_point)
        return litert.TensorSpec(tensor.shape, tensor.dtype.numpy, scale, zero, data=data, role=role)

    x, state, feature, time = (node.input(i) for i in (X, STATE, W_FEATURE, W_TIME))
    units = node.outputs[0].shape[1]
    own = node.optional_input(BIAS)
    integer = x.dtype is not DType.FLOAT32
    bias = np.zeros(units, np.int32 if integer else np.float32) if own is None else own.array
    scale = float(np.float32(state.type.scale) * np.float32(time.type.scale)) if integer else None
    return [
        spec(x, case.inputs[0]),
        spec(feature, feature.array),
        spec(time, time.array),
        litert.TensorSpec(bias.shape, bias.dtype, scale, 0, data=bias),
        spec(state, case.inputs[1], "state"),
    ], [spec(node.outputs[0])]


@pytest.mark.skipif(not tflm.available(), reason="needs tflite-micro")
@drawing.quick
@given(st.sampled_from(STATES).flatmap(lambda kind: svdf_nodes(kind, clamp=NO_CLAMP)))
def test_tflm(case: Case) -> None:
    """The answer and the state behind it, whatever the state was."""
    attrs = case.node.attrs
    assert isinstance(attrs, Svdf)
    results = tflm.run("SVDF", *specs(case), rank=attrs.rank, activation="RELU")
    for got, want in zip(expected(case.node, case.inputs), results, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.skipif(not tflm.available(), reason="needs tflite-micro")
def test_sums_over_time_wrap_as_in_tflm() -> None:
    """A unit whose sum is 5 * 32767**2, a second one whose sum is less by 2**31."""
    quant = QuantParams.per_tensor(1e-3, 0)
    state = TensorType((1, 10), DType.INT16, quant)
    times = np.full((2, 5), 32767, np.int16)
    times[1, 3:] = -1
    node = Node(
        Svdf(),
        (
            Tensor("x", TensorType((1, 1), DType.INT8, quant)),
            Tensor("state", state),
            constant("feature", np.full((2, 1), 127, np.int8), quant),
            constant("time", times, quant),
        ),
        (
            Tensor("y", TensorType((1, 2), DType.INT8, QuantParams.per_tensor(20.0, 0))),
            Tensor("behind", state),
        ),
    )
    case = Case(node, (np.array([[127]], np.int8), np.full((1, 10), 32767, np.int16)))
    results = tflm.run("SVDF", *specs(case), rank=1, activation="RELU")
    for got, want in zip(expected(node, case.inputs), results, strict=True):
        np.testing.assert_array_equal(got, want)
    assert (np.abs(results[0]) < 127).all()


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(svdf_nodes(DType.INT16, clamp=NO_CLAMP))
def test_litert(case: Case) -> None:
    """LiteRT has the form with an int16 state."""
    attrs = case.node.attrs
    assert isinstance(attrs, Svdf)
    results = litert.run("SVDF", *specs(case), rank=attrs.rank, activation="RELU")
    for got, want in zip(expected(case.node, case.inputs), results, strict=True):
        np.testing.assert_array_equal(got, want)


@drawing.quick
@given(svdf_nodes(DType.FLOAT32))
def test_float_is_a_convolution_over_time(case: Case) -> None:
    """The sum over filters and steps of products, in float64."""
    node, (x, state), attrs = case.node, case.inputs, case.node.attrs
    assert isinstance(attrs, Svdf)
    feature, time = (node.input(i).array.astype(np.float64) for i in (W_FEATURE, W_TIME))
    bias = recurring.bias_or_zeros(node, BIAS, len(feature) // attrs.rank)
    kept = state.reshape(len(x), *time.shape)[..., 1:]
    frames = np.concatenate([kept, (x.astype(np.float64) @ feature.T)[..., None]], axis=2)
    sums = (frames * time).sum(axis=2).reshape(len(x), -1, attrs.rank).sum(axis=2) + bias
    y, behind = expected(node, case.inputs)
    np.testing.assert_allclose(y.astype(np.float64), np.clip(sums, *attrs.clamp), rtol=0, atol=1e-4)
    np.testing.assert_allclose(behind.astype(np.float64), frames.reshape(state.shape), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("rank", "shapes", "words"),
    [
        (1, ((2, 5, 1), (2, 12), (4, 5), (4, 3)), "input 0 must have 2 dimensions"),
        (1, ((2, 5), (2, 12), (4, 6), (4, 3)), "weights for 6 inputs, x has 5"),
        (3, ((2, 5), (2, 12), (4, 5), (4, 3)), "4 filters are no units of rank 3"),
        (0, ((2, 5), (2, 12), (4, 5), (4, 3)), "of rank 0"),
        (2, ((2, 5), (2, 12), (4, 5), (3, 3)), "weights of time of shape"),
        (2, ((2, 5), (2, 8), (4, 5), (4, 3)), "a state of shape"),
        (2, ((2, 5), (2, 12), (4, 5), (4, 3), (4,)), "a bias of shape"),
    ],
)
def test_shape_errors(rank: int, shapes: tuple[tuple[int, ...], ...], words: str) -> None:
    with pytest.raises(UnsupportedShape, match=words):
        recurring.infer_floats(Svdf(rank), 2, shapes)


def integer_node(**changed: Any) -> Node:
    """One filter of each of two units, with other numbers: state, y, feature, time (dtype, scale, zero point), bias
    (its dtype), size (of the weights)."""

    def tensor(name: str, shape: tuple[int, ...], kind: tuple[str, float, int], fill: int = 0) -> Tensor:
        dtype, scale, zero_point = changed.get(name, kind)
        quant = QuantParams.per_tensor(scale, zero_point)
        if name in ("feature", "time"):
            return constant(name, np.full(shape, fill, dtype), quant)
        return Tensor(name, TensorType(shape, DType(dtype), quant))

    count = changed.get("inputs", 3)
    before = tensor("state", (1, 8), ("int16", 0.01, 0))
    behind = TensorType((1, 8), before.dtype, changed.get("behind", before.type.quant))
    inputs = (
        tensor("x", (1, count), ("int8", 0.1, 3)),
        before,
        tensor("feature", (2, count), ("int8", 0.01, 0), 100),
        tensor("time", (2, 4), ("int16", 0.001, 0), 100),
        constant("bias", np.zeros(2, changed.get("bias", "int32"))),
    )
    outputs = (tensor("y", (1, 2), ("int8", 0.1, 0)), Tensor("behind", behind))
    return Node(Svdf(1, changed.get("clamp", NO_CLAMP)), inputs, outputs)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, None),
        ({"clamp": (1.0, 0.0)}, "an empty range"),
        ({"x": ("int16", 0.1, 0)}, "no form from int16 to int8"),
        ({"y": ("int16", 0.1, 0)}, "no form from int8 to int16"),
        (
            {"behind": QuantParams.per_tensor(0.5, 0)},
            "behind must have the type and the quantization of state",
        ),
        ({"feature": ("int16", 0.1, 0)}, "feature must be int8"),
        ({"feature": ("int8", 0.1, 1)}, "feature must be quantized per tensor with zero point 0"),
        ({"time": ("int32", 0.1, 0)}, "time must be int8 or int16"),
        ({"time": ("int8", 0.1, 0)}, "the state must be of the type of the weights of time"),
        ({"state": ("int16", 0.1, 1)}, "its zero point must be 0"),
        ({"bias": "int64"}, "the bias must be int32"),
        ({"inputs": 200_000}, "could overflow 32 bits"),
        ({"state": ("int16", 1e-30, 0)}, "too large"),
        ({"y": ("int8", 1e-30, 0)}, "too large"),
    ],
)
def test_type_rule(changed: dict[str, Any], words: str | None) -> None:
    node = integer_node(**changed)
    found = ops.op_of(node).check(node)
    assert found is None if words is None else re.search(words, found or ""), found
