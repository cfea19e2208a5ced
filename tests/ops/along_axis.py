# SPDX-License-Identifier: Apache-2.0
"""What the tests of softmax and of its logarithm share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import drawing, drawn, elementwise
from tests.ops.bodies import Test
from tests.ops.cases import Case, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, DType, Node, QuantParams, Tensor, TensorType
from tinyet.ops.shared.softmax import AlongAxis

Floats = npt.NDArray[np.float64]

Attributes = Callable[[int], AlongAxis]
"""Of an axis."""


@st.composite
def nodes(
    draw: st.DrawFn,
    attributes: Attributes,
    outs: Mapping[DType, QuantParams],
    dtypes: tuple[DType, ...],
    last: bool = False,
    least: Mapping[DType, float] | None = None,
) -> Case:
    """Scales from where everything counts to where only the maximum does; rows of equal values among the data.

    outs: LiteRT's quantization of the output for each integer type. last: along the last axis. least: from these scales
    up to LiteRT's, any other quantization instead, too.
    """
    shape = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple))
    axis = len(shape) - 1 if last else draw(st.integers(0, len(shape) - 1))
    dtype = draw(st.sampled_from(dtypes))
    data: Array
    if dtype is DType.FLOAT32:
        x = TensorType(shape, dtype)
        data = np.random.default_rng(draw(drawn.seeds)).normal(0, 20, shape).astype(np.float32)
        out = TensorType(shape, dtype)
    else:
        wide = dtype is DType.INT16
        scale = draw(elementwise.scales(1e-6, 1.0) if wide else elementwise.scales(1e-4, 8.0))
        quant = QuantParams.per_tensor(scale, 0 if wide else draw(elementwise.zero_points))
        known = outs[dtype]
        if least is not None and draw(st.integers(0, 3)):
            step = draw(elementwise.scales(least[dtype], known.scale[0]))
            known = QuantParams.per_tensor(step, 0 if wide else draw(elementwise.zero_points))
        x, out = TensorType(shape, dtype, quant), TensorType(shape, dtype, known)
        data = drawn.values(x, draw(drawn.seeds)) >> draw(st.sampled_from((0, 4, 7)))  # type: ignore[operator]
    return Case(Node(attributes(axis), (Tensor("x", x),), (Tensor("y", out),)), (data,))


def close_to_torch(function: Any, cases: st.SearchStrategy[Case], rtol: float, atol: float) -> Test:
    """Against float64."""

    @drawing.quick
    @given(cases)
    def test(case: Case) -> None:
        torch = pytest.importorskip("torch")
        attrs = case.node.attrs
        assert isinstance(attrs, AlongAxis)
        want = function(torch.from_numpy(case.inputs[0]).double(), attrs.axis).numpy()
        got = elementwise.reference(case)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)

    return test


def all_equal(attributes: Attributes, out: QuantParams) -> Case:
    """The largest depth, all at the maximum: sums and shifts are at their ends."""
    shape = (1, 4095)
    y = Tensor("y", TensorType(shape, DType.INT8, out))
    return Case(Node(attributes(1), (tensor("x", shape, scale=0.1),), (y,)), (np.full(shape, 9, np.int8),))


def expect_refusals(attributes: Attributes, out: QuantParams) -> None:
    """Of a row that is too long, of an output's scale that is too small, of an axis that is not there."""
    y = Tensor("y", TensorType((4096,), DType.INT8, out))
    node = Node(attributes(0), (tensor("x", (4096,), scale=0.1),), (y,))
    check = ops.op_of(node).check
    assert "at most 4095" in str(check(node))
    node = Node(attributes(0), (tensor("x", (4,), scale=0.1),), (tensor("y", (4,), scale=2.0**-30),))
    assert "too small" in str(check(node))
    with pytest.raises(UnsupportedShape, match="no axis 1"):
        ops.infer(Node(attributes(1), (tensor("x", (4,), scale=0.1),), (tensor("y", (4,), scale=0.1),)))


def errors(cases: Sequence[Case], exact: Callable[[Floats], Floats]) -> list[float]:
    """How far each case, int8 or int16 along the last axis, is at most from the exact result, saturated, in steps.
    exact: of float64 inputs."""
    found = []
    for case in cases:
        x, out = case.node.input(0).type, case.node.output.type
        real = exact((case.inputs[0].astype(np.float64) - x.zero_point) * x.scale)
        steps = np.clip(real / out.scale + out.zero_point, *out.dtype.range)
        found.append(float(np.abs(elementwise.reference(case) - steps).max()))
    return found


def rows(attributes: Attributes, dtype: DType, scale: float, out: QuantParams, depth: int) -> Case:
    """Twenty rows of so many values, drawn from a narrow to the whole range."""
    rng = np.random.default_rng(depth)
    low, high = dtype.range
    values = np.linspace(0.02, 1, 20)[:, None] * rng.uniform(low, high, (20, depth))
    x, y = (Tensor(n, TensorType((20, depth), dtype, q)) for n, q in (
        ("x", QuantParams.per_tensor(scale, 0)), ("y", out),
    ))  # fmt: skip
    return Case(Node(attributes(1), (x,), (y,)), (values.astype(dtype.numpy),))
