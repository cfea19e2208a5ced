# SPDX-License-Identifier: Apache-2.0
"""What the strategies of recurrent layers share: their tensors and their data."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st

from tests.ops import drawing
from tests.ops.cases import Case, expected, tensor
from tinyet import ops
from tinyet.ir import Array, Attrs, DType, Node, QuantParams, Shape, Tensor, TensorType, constant
from tinyet.numerics import quantize
from tinyet.ops.shared.recurrent import Recurrent

KINDS = (DType.INT8, DType.INT16, DType.FLOAT32)


@functools.cache
@st.composite
def quants(draw: st.DrawFn, dtype: DType) -> QuantParams | None:
    """Of a layer's input."""
    if dtype is DType.INT16:
        return QuantParams.per_tensor(draw(st.floats(1e-5, 3e-4)), 0)
    return draw(drawing.quants(dtype))


@functools.cache
@st.composite
def state_quants(draw: st.DrawFn, dtype: DType) -> QuantParams | None:
    """Of values from -1 to 1, some of which saturate."""
    if dtype is DType.INT8:
        return QuantParams.per_tensor(draw(st.floats(0.002, 0.02)), draw(drawing.zero_points))
    return QuantParams.per_tensor(draw(st.floats(1e-5, 8e-5)), 0) if dtype is DType.INT16 else None


@st.composite
def weights(
    draw: st.DrawFn, name: str, shape: Shape, dtype: DType, gates: int, reach: float = 0.05
) -> Tensor:
    """Of a layer's matrix: a scale for each gate's rows, or one for all. reach: the largest scale."""
    rng = drawing.random(draw)
    if dtype is DType.FLOAT32:
        return constant(name, (rng.standard_normal(shape) / np.sqrt(shape[1])).astype(np.float32))
    if draw(st.booleans()):
        quant = QuantParams.per_tensor(rng.uniform(reach / 50, reach), 0)
    else:
        scales = np.repeat(rng.uniform(reach / 50, reach, gates), shape[0] // gates)
        quant = QuantParams(tuple(scales.tolist()), (0,) * shape[0], 0)
    return constant(name, drawing.int8_data(rng, shape), quant)


@st.composite
def biases(draw: st.DrawFn, name: str, count: int, dtype: DType) -> Tensor | None:
    rng = drawing.random(draw)
    if draw(st.booleans()):
        return None
    values = rng.standard_normal(count).astype(np.float32)
    if dtype is DType.FLOAT32:
        return constant(name, values)
    return constant(
        name, (3000 * values).astype(np.int32) if dtype is DType.INT8 else (1e6 * values).astype(np.int64)
    )


def case(
    attrs: Attrs, inputs: Sequence[Tensor | None], outputs: Sequence[TensorType], rng: np.random.Generator
) -> Case:
    """outputs: types but for their shapes, of y and of the last states."""
    made = tuple(Tensor(f"out{i}", kind) for i, kind in enumerate(outputs))
    shapes = ops.infer(Node(attrs, tuple(inputs), made))
    typed = [
        Tensor(t.name, TensorType(shape, t.dtype, t.type.quant))
        for t, shape in zip(made, shapes, strict=True)
    ]
    data: list[Array] = []
    for each in inputs:
        if each is None or each.is_constant:
            continue
        if each.dtype is DType.FLOAT32:
            data.append(rng.standard_normal(each.shape).astype(np.float32))
        else:
            data.append(drawing.integer_data(rng, each.shape, each.dtype))
    return Case(Node(attrs, tuple(inputs), tuple(typed)), tuple(data))


# ---------------------------------------------------------------- layers with the inputs x, h, w_ih, w_hh and biases


@st.composite
def square_inputs(draw: st.DrawFn, dtype: DType) -> tuple[Tensor, Tensor]:
    """x and h."""
    batch, steps = draw(st.integers(1, 2)), draw(st.integers(1, 5))
    inputs, units = draw(st.integers(1, 18)), draw(st.integers(1, 9))
    x = Tensor("x", TensorType((batch, steps, inputs), dtype, draw(quants(dtype))))
    return x, Tensor("h", TensorType((batch, units), dtype, draw(state_quants(dtype))))


def bias_or_zeros(node: Node, index: int, count: int) -> Array:
    bias = node.optional_input(index)
    return np.zeros(count) if bias is None else bias.array


def torch_answer(
    kind: str, case: Case, weights: Sequence[Array], biases: Sequence[Array], **options: str
) -> tuple[npt.NDArray[np.float64], ...]:
    """torch.nn.<kind> of a case in float64; weights and biases: of input and state."""
    torch = pytest.importorskip("torch")
    attrs = case.node.attrs
    assert isinstance(attrs, Recurrent)
    inputs, units = weights[0].shape[1], weights[1].shape[1]
    layer = getattr(torch.nn, kind)(inputs, units, batch_first=True, dtype=torch.float64, **options)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    values = zip(names, (*weights, *biases), strict=True)
    layer.load_state_dict({name: torch.from_numpy(v.astype(np.float64)) for name, v in values})
    x, h = (torch.from_numpy(a.astype(np.float64)) for a in case.inputs)
    with torch.no_grad():
        y, last = layer(x.flip(1) if attrs.reverse else x, h[None])
    y = y.flip(1) if attrs.reverse else y
    return (y.numpy(), last[0].numpy()) if attrs.sequence else (last[0].numpy(),)


def assert_cut_anywhere(case: Case) -> None:
    """That a sequence in two calls, whose first hands its state on, gives what it gives in one."""
    node, (x, h) = case.node, case.inputs
    assert isinstance(node.attrs, Recurrent)
    want = expected(node, case.inputs)
    cut = x.shape[1] // 2
    pieces = [x[:, cut:], x[:, :cut]] if node.attrs.reverse else [x[:, :cut], x[:, cut:]]
    parts = []
    for piece in pieces:
        if piece.shape[1] == 0:
            continue
        first = node.input(0)
        given = Tensor("x", TensorType(piece.shape, first.dtype, first.type.quant))
        short = node.replace(inputs=[given, *node.inputs[1:]])
        *y, h = expected(short, [piece, h])
        parts += y
    if parts:
        np.testing.assert_array_equal(
            np.concatenate(parts[:: -1 if node.attrs.reverse else 1], axis=1), want[0]
        )
    np.testing.assert_array_equal(h, want[-1])


def signal_to_noise(
    attrs: Attrs, gates: int, biases: Sequence[int], dtype: DType, *, same_weights: bool = False
) -> float:
    """In dB, of y over 40 steps of 4 sequences: a float layer of 24 units, and the same in int8, or int16, with scales
    of its own ranges. same_weights: the float layer has those that the int8 ones stand for."""
    rng, units, inputs = np.random.default_rng(1), 24, 12
    reach = 1 / np.sqrt(units)
    arrays = [
        rng.uniform(-reach, reach, shape) for shape in ((gates * units, inputs), (gates * units, units))
    ]
    arrays += [rng.uniform(-reach, reach, gates * units) for _ in biases]
    if same_weights:
        steps = [np.abs(a.reshape(gates, -1)).max(axis=1).repeat(units)[:, None] / 127 for a in arrays[:2]]
        arrays[:2] = [np.rint(a / step) * step for a, step in zip(arrays[:2], steps, strict=True)]
    x = rng.standard_normal((4, 40, inputs)).astype(np.float32)
    h = np.zeros((4, units), np.float32)
    whole = [Tensor("x", TensorType(x.shape, DType.FLOAT32)), Tensor("h", TensorType(h.shape, DType.FLOAT32))]
    floats: list[Tensor | None] = [*whole, *(constant("w", a.astype(np.float32)) for a in arrays)]
    kinds = [TensorType((), DType.FLOAT32)] * 2
    y = expected(case(attrs, floats, kinds, rng).node, (x, h))[0].astype(np.float64)
    x_quant, h_quant = (QuantParams.per_tensor(float(np.abs(a).max()) / dtype.range[1], 0) for a in (x, y))
    given: list[Tensor | None] = [
        Tensor("x", TensorType(x.shape, dtype, x_quant)),
        Tensor("h", TensorType(h.shape, dtype, h_quant)),
    ]
    scales = []
    for array in arrays[:2]:
        of_gates = np.abs(array.reshape(gates, -1)).max(axis=1) / 127
        rows = np.repeat(of_gates, units).astype(np.float32)
        quant = QuantParams(tuple(rows.tolist()), (0,) * len(rows), 0)
        given.append(constant("w", np.rint(array / rows[:, None]).astype(np.int8), quant))
        scales.append(rows)
    units_of_biases = x_quant.one_scale * scales[0], h_quant.one_scale * scales[1]
    for array, step in zip(arrays[2:], units_of_biases, strict=False):
        given.append(
            constant("b", np.rint(array / step).astype(np.int32 if dtype is DType.INT8 else np.int64))
        )
    node = case(attrs, given, [TensorType((), dtype, h_quant)] * 2, rng).node
    integers = quantize(x, TensorType(x.shape, dtype, x_quant)), h.astype(dtype.numpy)
    got = expected(node, integers)[0].astype(np.float64) * h_quant.one_scale
    return float(10 * np.log10((y**2).sum() / ((y - got) ** 2).sum()))


def infer_floats(attrs: Attrs, states: int, shapes: Sequence[Shape | None]) -> tuple[Shape, ...]:
    """The shape rule asked of tensors of these shapes: the first `states` are no constants."""
    inputs: list[Tensor | None] = [tensor("x", s or (), DType.FLOAT32) for s in shapes[:states]]
    inputs += [None if s is None else constant("w", np.zeros(s, np.float32)) for s in shapes[states:]]
    return ops.infer(Node(attrs, tuple(inputs), (tensor("y", (), DType.FLOAT32),) * 3))


WRONG_TYPES: tuple[tuple[dict[str, object], str | None], ...] = (
    ({}, None),
    ({"y": (1 / 64, 0)}, "y must have the type and the quantization of h"),
    ({"w": 0.5}, "one scale for the rows of each"),
    ({"scale": 1e30}, "too large"),
    ({"bias": "int16"}, "the bias must be int32"),
    ({"h": (2.0**-31, 0)}, "scale of the state is too small"),
    ({"constant": False}, "must be constants"),
)
"""For expect_complaint."""


def expect_complaint(attrs: Attrs, gates: int, changed: dict[str, object], words: str | None) -> None:
    """What the type rule says of an int8 layer of two units. changed: y, h (scale, zero point), w (what the last row's
    scale is times), scale (of the weights), bias (its dtype), constant (whether w_ih is)."""

    def quant(name: str, scale: float, zero_point: int = 0) -> QuantParams:
        own = changed.get(name, (scale, zero_point))
        assert isinstance(own, tuple)
        return QuantParams.per_tensor(*own)

    state, rows = quant("h", 1 / 128), 2 * gates
    base, last = changed.get("scale", 0.01), changed.get("w", 1)
    assert isinstance(base, float)
    assert isinstance(last, int | float)
    scales = QuantParams((base,) * (rows - 1) + (base * last,), (0,) * rows, 0)
    weights = constant("w", np.full((rows, 2), 100, np.int8), scales)
    first = weights if changed.get("constant", True) else tensor("w", (rows, 2), DType.INT8, 0.1)
    bias = constant("bias", np.zeros(rows, np.dtype(str(changed.get("bias", "int32")))))
    x = Tensor("x", TensorType((1, 3, 2), DType.INT8, QuantParams.per_tensor(0.1, 3)))
    h = Tensor("h", TensorType((1, 2), DType.INT8, state))
    y = Tensor("y", TensorType((1, 3, 2), DType.INT8, quant("y", state.one_scale, state.one_zero_point)))
    node = Node(attrs, (x, h, first, weights, bias), (y, h))
    found = ops.op_of(node).check(node)
    assert found is None if words is None else re.search(words, found or ""), found
