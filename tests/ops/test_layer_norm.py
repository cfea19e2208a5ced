# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing, drawn, elementwise
from tests.ops.cases import Case, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, Tensor, TensorType, constant
from tinyet.ops.layer_norm import OP, LayerNorm, count_of, integers

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
        data = drawn.values(x, seed).astype(np.int8) >> draw(st.sampled_from((0, 6, 7)))
    else:
        data = rng.normal(draw(st.sampled_from((0, 100))), 3, shape).astype(np.float32)
    out = TensorType((), dtype, draw(elementwise.quants()) if dtype is DType.INT8 else None)
    attrs = LayerNorm(axis, draw(st.sampled_from((1e-5, 1e-12, 0.1))))
    return Case(elementwise.finished(attrs, [Tensor("x", x), *parameters], out), (data,))


test_host = bodies.host(layer_norm_nodes())


def real(case: Case) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """In float64, from the real values of everything."""
    node, attrs = case.node, case.node.attrs
    assert isinstance(attrs, LayerNorm)

    def value(index: int, data: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Any:
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
    """Beyond the half step of rounding: 2**-20 of the largest weight in steps, the rounding of weight and
    bias to 2**-shift steps, and 2**-10 for the rest."""
    out = case.node.output.type
    want = np.clip(real(case) / out.scale + out.zero_point, -128, 127)
    constants = integers(case.node)
    largest = np.abs(constants.weight).max() / 2.0**constants.shift
    beyond = 2**-20 * largest + (np.sqrt(count_of(case.node)) + 1) * 2.0 ** -(constants.shift + 1) + 2**-10
    assert np.abs(want - elementwise.reference(case)).max() <= 0.5 + beyond


def test_ordinary_weights_are_precise() -> None:
    """For weights around 1 and an output that covers four deviations: within 2**-9 of half a step."""
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 128, (200, 64)).astype(np.int8)
    weight, bias = (constant(n, rng.normal(m, 0.2, 64).astype(np.float32)) for n, m in (("w", 1), ("b", 0)))
    y = tensor("y", x.shape, scale=1 / 32)
    case = Case(Node(LayerNorm(1), (tensor("x", x.shape, scale=0.1, zero_point=7), weight, bias), (y,)), (x,))
    want = np.clip(real(case) * 32, -128, 127)
    assert np.abs(want - elementwise.reference(case)).max() <= 0.5 + 2**-9


@drawing.quick
@given(layer_norm_nodes((DType.FLOAT32,)))
def test_torch(case: Case) -> None:
    """Against float64. A sum of n terms in order is off by n * 2**-24 of their sizes at most; taking the mean
    off values far from zero leaves that error beside a small deviation."""
    got, want = elementwise.reference(case), real(case)
    attrs = case.node.attrs
    assert isinstance(attrs, LayerNorm)
    x = case.inputs[0].astype(np.float64)
    spread = np.sqrt(x.var(axis=tuple(range(attrs.axis, x.ndim)), keepdims=True) + attrs.epsilon)
    weight = case.node.optional_input(1)
    gain = 1.0 if weight is None else np.abs(weight.array.astype(np.float64)).max()
    share = (count_of(case.node) + 8) * 2**-23
    assert np.all(np.abs(got - want) <= share * (1 + np.abs(want) + gain * (1 + np.abs(x).max() / spread)))


def test_refusals() -> None:
    x, y = tensor("x", (2, 3), scale=0.1), tensor("y", (2, 3), scale=0.1)
    with pytest.raises(UnsupportedShape, match="no axis 2"):
        ops.infer(Node(LayerNorm(2), (x, None, None), (y,)))
    with pytest.raises(UnsupportedShape, match="has shape"):
        ops.infer(Node(LayerNorm(1), (x, constant("w", np.ones(2, np.float32)), None), (y,)))
    large = tensor("large", (1, 256, 3, 256), DType.FLOAT32)
    with pytest.raises(UnsupportedShape, match="196608 normalised elements without weight and bias"):
        ops.infer(Node(LayerNorm(1), (large,), (large,)))
    assert "must be constants" in str(
        OP.check(Node(LayerNorm(1), (x, tensor("w", (3,), DType.FLOAT32), None), (y,)))
    )
