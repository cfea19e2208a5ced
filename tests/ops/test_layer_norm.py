# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import drawing, drawn, elementwise
from tests.ops.cases import Case, assert_exact, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, Tensor, TensorType, constant
from tinyet.ops.layer_norm import OP, LayerNorm

torch = pytest.importorskip("torch")


@st.composite
def layer_norm_nodes(draw: st.DrawFn, dtypes: tuple[DType, ...] = elementwise.BOTH) -> Case:
    """Rows from one element on, rows of equal elements among them; weight and bias there, or not, or int8."""
    shape = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple))
    axis = draw(st.integers(0, len(shape) - 1))
    dtype = draw(st.sampled_from(dtypes))
    quant = draw(elementwise.quants()) if dtype is DType.INT8 else None
    x = TensorType(shape, dtype, quant)
    seed = draw(drawn.seeds)
    rng = np.random.default_rng(seed)
    parameters: list[Tensor | None] = []
    for name in ("weight", "bias"):
        kind = draw(st.sampled_from(("none", "float", "int8" if dtype is DType.INT8 else "float")))
        if kind == "none":
            parameters.append(None)
        elif kind == "float":
            parameters.append(constant(name, rng.normal(0, 1, shape[axis:]).astype(np.float32)))
        else:
            values = rng.integers(-128, 128, shape[axis:]).astype(np.int8)
            parameters.append(constant(name, values, draw(elementwise.quants())))
    if dtype is DType.INT8:
        data = drawn.values(x, seed) // draw(st.sampled_from((1, 64, 128)))
    else:
        data = rng.normal(draw(st.sampled_from((0, 100))), 3, shape).astype(np.float32)
    out = TensorType((), dtype, draw(elementwise.quants()) if dtype is DType.INT8 else None)
    attrs = LayerNorm(axis, draw(st.sampled_from((1e-5, 1e-12, 0.1))))
    return Case(elementwise.finished(attrs, [Tensor("x", x), *parameters], out), (data,))


@drawing.compiled
@given(elementwise.lists(layer_norm_nodes()))
def test_host(cases: list[Case]) -> None:
    assert_exact(cases)


def real(case: Case) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """In float64, from the real values of everything."""
    node, attrs = case.node, case.node.attrs
    assert isinstance(attrs, LayerNorm)

    def value(index: int, data: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> torch.Tensor:
        quant = node.input(index).type.quant
        exact = data.astype(np.float64)
        return torch.from_numpy(exact if quant is None else (exact - quant.one_zero_point) * quant.one_scale)

    shape = list(node.input(0).shape[attrs.axis :])
    rest = [None if node.optional_input(i) is None else value(i, node.input(i).array) for i in (1, 2)]
    result = torch.nn.functional.layer_norm(value(0, case.inputs[0]), shape, rest[0], rest[1], attrs.epsilon)
    return np.asarray(result.numpy(), np.float64)


@drawing.quick
@given(layer_norm_nodes((DType.INT8,)))
def test_close_to_real(case: Case) -> None:
    """No more than 2**-9 beyond the half step of rounding."""
    out = case.node.output.type
    want = np.clip(real(case) / out.scale + out.zero_point, -128, 127)
    assert np.abs(want - elementwise.reference(case)).max() <= 0.5 + 2**-9


@drawing.quick
@given(layer_norm_nodes((DType.FLOAT32,)))
def test_torch(case: Case) -> None:
    """Against float64. Subtracting the mean cancels digits, hence the absolute part: 2**-23 of values up to
    110, over a deviation that epsilon keeps from vanishing."""
    got, want = elementwise.reference(case), real(case)
    x = case.inputs[0].astype(np.float64)
    attrs = case.node.attrs
    assert isinstance(attrs, LayerNorm)
    axes = tuple(range(attrs.axis, x.ndim))
    spread = np.sqrt(x.var(axis=axes, keepdims=True) + attrs.epsilon)
    weight = case.node.optional_input(1)
    gain = 1.0 if weight is None else np.abs(weight.array.astype(np.float64)).max()
    tolerance = 2e-6 * (1 + np.abs(want)) + gain * 8 * 2**-23 * np.abs(x).max() / spread
    assert np.all(np.abs(got - want) <= tolerance)


def test_refusals() -> None:
    x, y = tensor("x", (2, 3), scale=0.1), tensor("y", (2, 3), scale=0.1)
    with pytest.raises(UnsupportedShape, match="no axis 2"):
        ops.infer(Node(LayerNorm(2), (x, None, None), (y,)))
    with pytest.raises(UnsupportedShape, match="has shape"):
        ops.infer(Node(LayerNorm(1), (x, constant("w", np.ones(2, np.float32)), None), (y,)))
    assert "must be constants" in str(
        OP.check(Node(LayerNorm(1), (x, tensor("w", (3,), DType.FLOAT32), None), (y,)))
    )
