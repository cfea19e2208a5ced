# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing, recurring
from tests.ops.cases import Case, expected
from tests.oracle import litert
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.ops.lstm import BIAS, GATES, PROJECTED, W_HH, W_HR, W_IH, C, H, Lstm, X, sizes_of
from tinyet.ops.shared.recurrent import gate_scales


@st.composite
def lstm_nodes(
    draw: st.DrawFn,
    dtype: DType | None = None,
    *,
    projected: bool | None = None,
    attrs: Lstm | None = None,
) -> Case:
    kind = dtype or draw(st.sampled_from(recurring.KINDS))
    batch, steps = draw(st.integers(1, 2)), draw(st.integers(1, 5))
    inputs, units = draw(st.integers(1, 18)), draw(st.integers(1, 9))
    projects = draw(st.booleans()) if projected is None else projected
    outputs = draw(st.integers(1, 9 if kind is DType.INT8 else units)) if projects else units
    x = Tensor("x", TensorType((batch, steps, inputs), kind, draw(drawing.quants(kind))))
    state, cell = None, None
    if kind is DType.INT8:
        state = QuantParams.per_tensor(draw(st.floats(0.002, 0.02)), draw(drawing.zero_points))
        cell = QuantParams.per_tensor(2.0 ** draw(st.integers(-15, -9)), 0)
    h = TensorType((batch, outputs), kind, state)
    c = TensorType((batch, units), DType.INT16 if kind is DType.INT8 else kind, cell)
    tensors = [
        x,
        Tensor("h", h),
        Tensor("c", c),
        draw(recurring.weights("w_ih", (GATES * units, inputs), kind, GATES, 0.02)),
        draw(recurring.weights("w_hh", (GATES * units, outputs), kind, GATES)),
        draw(recurring.biases("bias", GATES * units, kind)),
        draw(recurring.weights("w_hr", (outputs, units), kind, 1, 0.01)) if projects else None,
    ]
    own = attrs or Lstm(draw(st.booleans()), draw(st.booleans()))
    return recurring.case(own, tensors, [h] * (1 + own.sequence) + [c], drawing.random(draw))


test_host = bodies.host(drawing.many(lstm_nodes()))


def run_litert(case: Case) -> Any:
    """y of LiteRT's UNIDIRECTIONAL_SEQUENCE_LSTM, h and c behind the last step."""
    node, s = case.node, sizes_of(case.node)
    x, h, c = (node.input(i).type for i in (X, H, C))
    bias = node.optional_input(BIAS)
    biases = np.zeros(GATES * s.units, np.int32) if bias is None else bias.array

    def quantized(kind: TensorType, data: Any, role: Literal["", "state"] = "") -> litert.TensorSpec:
        return litert.TensorSpec(
            data.shape, kind.dtype.numpy, kind.scale, kind.zero_point, data=data, role=role
        )

    specs: list[litert.TensorSpec | None] = [quantized(x, case.inputs[X])]
    for index in (W_IH, W_HH):
        scales = gate_scales(node.input(index), GATES)
        assert scales is not None
        for scale, gate in zip(scales, np.split(node.input(index).array, GATES), strict=True):
            specs.append(litert.TensorSpec(gate.shape, np.int8, scale, 0, data=gate))
    specs += [None] * 3
    specs += [litert.TensorSpec(b.shape, np.int32, 1.0, 0, data=b) for b in np.split(biases, GATES)]
    projection = node.optional_input(W_HR)
    if projection is None:
        specs += [None, None]
    else:
        (scale,) = gate_scales(projection, 1) or ()
        specs.append(litert.TensorSpec(projection.shape, np.int8, scale, 0, data=projection.array))
        specs.append(litert.TensorSpec((s.outputs,), np.int32, 1.0, 0, data=np.zeros(s.outputs, np.int32)))
    specs += [quantized(h, case.inputs[H], "state"), quantized(c, case.inputs[C], "state")]
    specs += [None] * 4
    hidden = h if projection is None else PROJECTED
    outputs = [litert.TensorSpec(node.outputs[0].shape, np.int8, h.scale, h.zero_point)]
    outputs += [litert.TensorSpec((1,), np.int16, 2.0**-12, role="within") for _ in range(GATES)]
    outputs.append(litert.TensorSpec((1,), np.int8, hidden.scale, hidden.zero_point, role="within"))
    return litert.run("UNIDIRECTIONAL_SEQUENCE_LSTM", specs, outputs, activation="TANH")


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(lstm_nodes(DType.INT8, attrs=Lstm()))
def test_litert(case: Case) -> None:
    """The state behind each step, and h and c behind the last, whatever h and c are at first."""
    for got, want in zip(expected(case.node, case.inputs), run_litert(case), strict=True):
        np.testing.assert_array_equal(got, want)


def torch_knows(case: Case) -> bool:
    """Its projections make fewer values of more."""
    s = sizes_of(case.node)
    return case.node.optional_input(W_HR) is None or s.outputs < s.units


def torch_answer(case: Case) -> tuple[Any, ...]:
    """torch.nn.LSTM of the case in float64: y, h_n, c_n."""
    torch = pytest.importorskip("torch")
    node, s, attrs = case.node, sizes_of(case.node), case.node.attrs
    assert isinstance(attrs, Lstm)
    projection = node.optional_input(W_HR)
    layer = torch.nn.LSTM(
        s.inputs,
        s.units,
        batch_first=True,
        proj_size=0 if projection is None else s.outputs,
        dtype=torch.float64,
    )
    values = {"weight_ih_l0": node.input(W_IH).array, "weight_hh_l0": node.input(W_HH).array}
    bias = node.optional_input(BIAS)
    values["bias_ih_l0"] = np.zeros(GATES * s.units) if bias is None else bias.array
    values["bias_hh_l0"] = np.zeros(GATES * s.units)
    if projection is not None:
        values["weight_hr_l0"] = projection.array
    layer.load_state_dict({name: torch.from_numpy(v.astype(np.float64)) for name, v in values.items()})
    x, h, c = (torch.from_numpy(a.astype(np.float64)) for a in case.inputs)
    flipped = x.flip(1) if attrs.reverse else x
    with torch.no_grad():
        y, (h_n, c_n) = layer(flipped, (h[None], c[None]))
    y = y.flip(1) if attrs.reverse else y
    states = h_n[0].numpy(), c_n[0].numpy()
    return (y.numpy(), *states) if attrs.sequence else states


@drawing.quick
@given(lstm_nodes(DType.FLOAT32).filter(torch_knows))
def test_torch(case: Case) -> None:
    """Gates, order of steps, projection: within 1e-4 of float64, over at most five steps."""
    for got, want in zip(expected(case.node, case.inputs), torch_answer(case), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((2, 5), (2, 4), (2, 4), (16, 3), (16, 4)), "input 0 must have 3 dimensions"),
        (((2, 5, 3), (2, 4), (2, 4), (16, 2), (16, 4)), "input weights of shape"),
        (((2, 5, 3), (2, 4), (2, 4), (15, 3), (15, 4)), "4 gates"),
        (((2, 5, 3), (1, 4), (2, 4), (16, 3), (16, 4)), "a state of shape"),
        (((2, 5, 3), (2, 4), (2, 5), (16, 3), (16, 4)), "a cell of shape"),
        (((2, 5, 3), (2, 4), (2, 4), (16, 3), (16, 5)), "state weights of shape"),
        (((2, 5, 3), (2, 4), (2, 4), (16, 3), (16, 4), (4,)), "a bias of shape"),
        (((2, 5, 3), (2, 2), (2, 4), (16, 3), (16, 2)), "without a projection"),
        (((2, 5, 3), (2, 2), (2, 4), (16, 3), (16, 2), None, (4, 2)), "a projection of shape"),
    ],
)
def test_shape_errors(shapes: tuple[tuple[int, ...] | None, ...], words: str) -> None:
    with pytest.raises(UnsupportedShape, match=words):
        recurring.infer_floats(Lstm(), 3, shapes)


def integer_node(**changed: object) -> Node:
    """One unit of each, with other numbers: h, c, w (scales and zero points), y_scale, kind (of the bias)."""

    def quant(name: str, scale: float, zero_point: int = 0) -> QuantParams:
        own = changed.get(name, (scale, zero_point))
        assert isinstance(own, tuple)
        return QuantParams.per_tensor(*own)

    def activation(name: str, shape: tuple[int, ...], dtype: DType, kind: QuantParams) -> Tensor:
        return Tensor(name, TensorType(shape, dtype, kind))

    state, cell = quant("h", 1 / 128), quant("c", 2.0**-12)
    rows = changed.get("w", (0.01,) * 8)
    assert isinstance(rows, tuple)
    weights = constant("w", np.full((8, 2), 100, np.int8), QuantParams(rows, (0,) * 8, 0))
    inputs = (
        activation("x", (1, 3, 2), DType.INT8, QuantParams.per_tensor(0.1, 3)),
        activation("h", (1, 2), DType.INT8, state),
        activation("c", (1, 2), DType.INT16, cell),
        weights,
        weights,
        constant("bias", np.zeros(8, np.dtype(str(changed.get("bias", "int32"))))),
    )
    outputs = (
        activation("y", (1, 3, 2), DType.INT8, quant("y", state.one_scale, state.one_zero_point)),
        activation("h_n", (1, 2), DType.INT8, state),
        activation("c_n", (1, 2), DType.INT16, cell),
    )
    return Node(Lstm(), inputs, outputs)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, None),
        ({"y": (1 / 64, 0)}, "y must have the type and the quantization of h"),
        ({"c": (0.001, 0)}, "power of two"),
        ({"c": (2.0**-16, 0)}, "from 2\\^-15 to 2\\^-9"),
        ({"c": (2.0**-12, 1)}, "zero point must be 0"),
        ({"w": (0.01,) * 7 + (0.02,)}, "one scale for the rows of each of 4 gates"),
        ({"w": (1e30,) * 8}, "too large"),
        ({"bias": "int16"}, "the bias must be int32"),
        ({"h": (2.0**-31, 0)}, "scale of the state is too small"),
    ],
)
def test_type_rule(changed: dict[str, object], words: str | None) -> None:
    node = integer_node(**changed)
    found = ops.op_of(node).check(node)
    assert found is None if words is None else re.search(words, found or "")
