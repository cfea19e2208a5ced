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
from tests.oracle import litert, tflm
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import round_shift
from tinyet.ops.lstm import BIAS, GATES, PROJECTED, W_HH, W_HR, W_IH, C, H, Lstm, X, sizes_of
from tinyet.ops.shared import gates_lut
from tinyet.ops.shared.recurrent import gate_scales


@st.composite
def lstm_nodes(
    draw: st.DrawFn,
    dtype: DType | None = None,
    *,
    projected: bool | None = None,
    tflm: bool | None = None,
    forward: bool = False,
    plain: bool = False,
    sizes: tuple[int, int] | None = None,
) -> Case:
    """tflm: whether it is TFLM's arithmetic. forward: from the first step on, and the state behind each of them.
    plain: LiteRT's arithmetic, and the cell is not clipped. sizes: inputs and units, if they are not drawn."""
    kind = dtype or draw(st.sampled_from(recurring.KINDS))
    batch, steps = draw(st.integers(1, 2)), draw(st.integers(1, 5))
    inputs, units = sizes or (draw(st.integers(1, 18)), draw(st.integers(1, 9)))
    projects = draw(st.booleans()) if projected is None else projected
    projects = projects and kind is not DType.INT16
    outputs = draw(st.integers(1, 9 if kind is DType.INT8 else units)) if projects else units
    x = Tensor("x", TensorType((batch, steps, inputs), kind, draw(recurring.quants(kind))))
    cell, integer = None, kind is not DType.FLOAT32
    if integer:
        cell = QuantParams.per_tensor(2.0 ** draw(st.integers(-15, -9)), 0)
    h = TensorType((batch, outputs), kind, draw(recurring.state_quants(kind)))
    c = TensorType((batch, units), DType.INT16 if integer else kind, cell)
    tensors = [
        x,
        Tensor("h", h),
        Tensor("c", c),
        draw(recurring.weights("w_ih", (GATES * units, inputs), kind, GATES, 0.02)),
        draw(recurring.weights("w_hh", (GATES * units, outputs), kind, GATES)),
        draw(recurring.biases("bias", GATES * units, kind)),
        draw(recurring.weights("w_hr", (outputs, units), kind, 1, 0.01)) if projects else None,
    ]
    reverse, sequence = (False, True) if forward else (draw(st.booleans()), draw(st.booleans()))
    own = Lstm(reverse, sequence)
    if not projects and not plain:
        tflm_rule = draw(st.booleans()) if tflm is None else tflm
        clip = draw(st.sampled_from((None, 0.25, 3.0, 50.0)))
        own = Lstm(reverse, sequence, "tflm" if tflm_rule else "litert", clip)
    return recurring.case(own, tensors, [h] * (1 + own.sequence) + [c], drawing.random(draw))


test_host = bodies.host(lstm_nodes())


def specs_of(case: Case) -> tuple[list[litert.TensorSpec | None], list[litert.TensorSpec]]:
    """The node as a UNIDIRECTIONAL_SEQUENCE_LSTM."""
    node, s = case.node, sizes_of(case.node)
    x, h, c = (node.input(i).type for i in (X, H, C))
    biases = recurring.bias_or_zeros(node, BIAS, GATES * s.units)
    biases = biases.astype(np.int64 if x.dtype is DType.INT16 else np.int32)

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
    specs += [litert.TensorSpec(b.shape, b.dtype, 1.0, 0, data=b) for b in np.split(biases, GATES)]
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
    outputs = [litert.TensorSpec(node.outputs[0].shape, h.dtype.numpy, h.scale, h.zero_point)]
    outputs += [litert.TensorSpec((1,), np.int16, 2.0**-12, role="within") for _ in range(GATES)]
    outputs.append(litert.TensorSpec((1,), np.int8, hidden.scale, hidden.zero_point, role="within"))
    return specs, outputs


def options(case: Case) -> dict[str, litert.Option]:
    attrs = case.node.attrs
    assert isinstance(attrs, Lstm)
    return {"activation": "TANH", "cell_clip": attrs.cell_clip or 0.0}


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(lstm_nodes(DType.INT8, tflm=False, forward=True))
def test_litert(case: Case) -> None:
    """The state behind each step, and h and c behind the last, whatever h and c are at first."""
    inputs, outputs = specs_of(case)
    wanted = litert.run("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs, **options(case))
    for got, want in zip(expected(case.node, case.inputs), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.skipif(not tflm.available(), reason="needs tflite-micro")
@drawing.quick
@given(
    st.sampled_from((DType.INT8, DType.INT16)).flatmap(
        lambda kind: lstm_nodes(kind, projected=False, tflm=True, forward=True)
    )
)
def test_tflm(case: Case) -> None:
    """The same, in TFLM's kernel, of int8 and of int16."""
    inputs, outputs = specs_of(case)
    wanted = tflm.run("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs[:1], **options(case))
    for got, want in zip(expected(case.node, case.inputs), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def torch_knows(case: Case) -> bool:
    """Its projections make fewer values of more, and its cells know no bounds."""
    s, attrs = sizes_of(case.node), case.node.attrs
    assert isinstance(attrs, Lstm)
    return attrs.cell_clip is None and (case.node.optional_input(W_HR) is None or s.outputs < s.units)


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


@drawing.quick
@given(lstm_nodes(DType.FLOAT32, projected=False))
def test_a_clipped_float_cell(case: Case) -> None:
    """One step at a time: what is beyond the bounds is on them before the output gate sees it."""
    node, attrs = case.node, case.node.attrs
    assert isinstance(attrs, Lstm)
    x, h, c = (a.astype(np.float64) for a in case.inputs)
    w_ih, w_hh = (node.input(i).array.astype(np.float64) for i in (W_IH, W_HH))
    bias = recurring.bias_or_zeros(node, BIAS, len(w_ih)).astype(np.float64)
    for t in range(x.shape[1])[:: -1 if attrs.reverse else 1]:
        i, f, g, o = np.split(x[:, t] @ w_ih.T + h @ w_hh.T + bias, GATES, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        c = c if attrs.cell_clip is None else np.clip(c, -attrs.cell_clip, attrs.cell_clip)
        h = np.tanh(c) / (1 + np.exp(-o))
    for got, want in zip(expected(node, case.inputs)[-2:], (h, c), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=1e-4)


def integer_node(**changed: object) -> Node:
    """One unit of each, with other numbers: h, c, w (scales and zero points), y_scale, kind (of the bias), attrs, and a
    projection where there is one."""

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
        constant("w_hr", np.zeros((2, 2), np.int8), quant("w_hr", 0.01)) if "w_hr" in changed else None,
    )
    attrs = changed.get("attrs", Lstm())
    assert isinstance(attrs, Lstm)
    outputs = (
        activation("y", (1, 3, 2), DType.INT8, quant("y", state.one_scale, state.one_zero_point)),
        activation("h_n", (1, 2), DType.INT8, state),
        activation("c_n", (1, 2), DType.INT16, cell),
    )
    return Node(attrs, inputs, outputs)


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
        ({"h": (2.0**-31, 0), "attrs": Lstm(arithmetic="tflm")}, "scale of the state is too small"),
        ({"attrs": Lstm(cell_clip=0.0)}, "cannot be kept within 0.0"),
        ({"w_hr": (0.01, 0), "attrs": Lstm(cell_clip=1.0)}, "nor a clipped cell"),
        ({"w_hr": (0.01, 0), "attrs": Lstm(arithmetic="tflm")}, "neither TFLM's arithmetic"),
    ],
)
def test_type_rule(changed: dict[str, object], words: str | None) -> None:
    node = integer_node(**changed)
    found = ops.op_of(node).check(node)
    assert found is None if words is None else re.search(words, found or "")


def rounding_case(dtype: DType) -> Case:
    """One step of zero weights, whose gates are biases: for each forget gate cells whose product with it is next to a
    tie of either rounding; output gates and cells of all sizes."""
    rng, batch, units = np.random.default_rng(4), 6, 64
    x_quant, step = QuantParams.per_tensor(2.0**-10, 0), 2.0**-8
    sums = rng.integers(-20000, 20000, (GATES, units))
    sums[2] = 0  # nothing is added to the cell
    odd = np.flatnonzero(gates_lut.sigmoid(np.arange(-20000, 20000)) % 2) - 20000
    sums[1] = rng.choice(odd, units)
    forget = gates_lut.sigmoid(sums[1])
    near = np.array([((2**14 - 1) * pow(int(f), -1, 2**15)) % 2**15 for f in forget])
    cells = np.stack([near, near - 2**15, near + 1, near - 1, *rng.integers(-32768, 32768, (2, units))])
    h_quant = QuantParams.per_tensor((1 / 127 if dtype is DType.INT8 else 1 / 32767) * 0.997, 0)
    h = TensorType((batch, units), dtype, h_quant)
    c = TensorType((batch, units), DType.INT16, QuantParams.per_tensor(2.0**-13, 0))
    quant = QuantParams((step,) * GATES * units, (0,) * GATES * units, 0)
    # A step of the bias is 2**-18, and one of a gate 2**-12.
    bias = (64 * sums.reshape(-1)).astype(np.int32 if dtype is DType.INT8 else np.int64)
    node = Node(
        Lstm(arithmetic="tflm"),
        (
            Tensor("x", TensorType((batch, 1, 1), dtype, x_quant)),
            Tensor("h", h),
            Tensor("c", c),
            constant("w_ih", np.zeros((GATES * units, 1), np.int8), quant),
            constant("w_hh", np.zeros((GATES * units, units), np.int8), quant),
            constant("bias", bias),
        ),
        (Tensor("y", TensorType((batch, 1, units), dtype, h_quant)), Tensor("h_n", h), Tensor("c_n", c)),
    )
    zeros = np.zeros((batch, 1, 1), dtype.numpy), np.zeros((batch, units), dtype.numpy)
    return Case(node, (*zeros, cells.astype(np.int16)))


@pytest.mark.skipif(not tflm.available(), reason="needs tflite-micro")
@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
def test_tflm_rounds_twice(dtype: DType) -> None:
    case = rounding_case(dtype)
    inputs, outputs = specs_of(case)
    wanted = tflm.run("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs[:1], **options(case))
    for got, want in zip(expected(case.node, case.inputs), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    c, want = case.inputs[C].astype(np.int64), wanted[2].astype(np.int64)
    gate = gates_lut.sigmoid(case.node.input(BIAS).array.reshape(GATES, -1)[1].astype(np.int64) // 64)
    assert (round_shift(gate * c, 15) != want).any(), "one rounding would have given the same"


@pytest.mark.skipif(not tflm.available(), reason="needs tflite-micro")
def test_tflm_multiplies_scales_in_float64() -> None:
    """13020 times these scales is 28424.5003 times that of a gate; their product in float32 gives 28424.4988. The bias
    brings the sum to where a gate is steep."""
    quant = QuantParams((0.02, 0.035462480038404465, 0.02, 0.02), (0, 0, 0, 0), axis=0)
    state = TensorType((1, 1), DType.INT8, QuantParams((0.0150297861546278,), (0,)))
    cell = TensorType((1, 1), DType.INT16, QuantParams((2.0**-11,), (0,)))
    node = Node(
        Lstm(arithmetic="tflm"),
        (
            Tensor("x", TensorType((1, 1, 1), DType.INT8, QuantParams((0.01,), (0,)))),
            *(Tensor("h", state), Tensor("c", cell)),
            constant("w_ih", np.zeros((4, 1), np.int8), quant),
            constant("w_hh", np.array([[0], [-105], [0], [0]], np.int8), quant),
            constant("bias", np.array([0, -28700, 0, 0], np.int32)),
        ),
        (
            Tensor("y", TensorType((1, 1, 1), DType.INT8, state.quant)),
            Tensor("h_n", state),
            Tensor("c_n", cell),
        ),
    )
    values = np.zeros((1, 1, 1), np.int8), np.array([[-124]], np.int8), np.array([[32767]], np.int16)
    case = Case(node, values)
    inputs, outputs = specs_of(case)
    wanted = tflm.run("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs[:1], **options(case))
    for got, want in zip(expected(case.node, case.inputs), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
