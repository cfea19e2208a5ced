# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.ir import DType, Node, QuantParams, constant
from tinyet.ops.linear import Linear


@st.composite
def linear_nodes(draw: st.DrawFn, dtype: DType | None = None, clamps: tuple[int, ...] = (0, 1, 2, 3)) -> Case:
    kind = dtype or draw(st.sampled_from((DType.INT8, DType.INT16, DType.FLOAT32)))
    lead = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    depth, count = draw(st.integers(1, 40)), draw(st.integers(1, 13))
    x = draw(drawing.activations("x", (*lead, depth), kind))
    w = draw(drawing.weights((count, depth), kind))
    inputs = [x, w, draw(drawing.biases(count, kind))]
    attrs = Linear(clamp=drawing.CLAMPS[draw(st.sampled_from(clamps))])
    node = drawing.node_of(attrs, inputs, draw(drawing.quants_of_sums(x, w)))
    return Case(node, (drawing.data(drawing.random(draw), x.shape, kind),))


test_host = bodies.host(linear_nodes())


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(st.sampled_from((DType.INT8, DType.INT16)).flatmap(lambda d: linear_nodes(d, (0, 1, 2))))
def test_litert(case: Case) -> None:
    """Through CONV_2D, which rounds as TFLM's FULLY_CONNECTED does (LiteRT's own rounds once)."""
    node = case.node
    x, w, out = node.input(0).type, node.input(1), node.output.type
    assert w.type.quant is not None
    rows = case.inputs[0].reshape(1, 1, -1, x.shape[-1])
    values, element = drawing.bias_values(node), x.dtype.numpy
    inputs = [
        litert.TensorSpec(rows.shape, element, x.scale, x.zero_point, data=rows),
        litert.TensorSpec((w.shape[0], 1, 1, w.shape[1]), np.int8, w.type.quant.scale, 0, data=w.array),
        litert.TensorSpec(
            values.shape, values.dtype, [x.scale * s for s in w.type.quant.scale], 0, data=values
        ),
    ]
    shape = (1, 1, rows.shape[2], out.shape[-1])
    name = ("NONE", "RELU", "RELU6")[drawing.CLAMPS.index(node.attrs.clamp)]  # type: ignore[attr-defined]
    output = litert.TensorSpec(shape, element, out.scale, out.zero_point)
    (want,) = litert.run("CONV_2D", inputs, [output], padding="VALID", activation=name)
    np.testing.assert_array_equal(drawing.reference(case), want.reshape(out.shape))


@drawing.quick
@given(linear_nodes(DType.FLOAT32, (0, 1)))
def test_torch(case: Case) -> None:
    """Against float64: a float32 sum of 41 products of magnitude 30 stays within 1e-4 of the exact one."""
    torch = pytest.importorskip("torch")
    x, w = (torch.from_numpy(a.astype(np.float64)) for a in (case.inputs[0], case.node.input(1).array))
    bias = case.node.optional_input(2)
    want = torch.nn.functional.linear(
        x, w, None if bias is None else torch.from_numpy(bias.array.astype(np.float64))
    )
    want = want.clamp(*case.node.attrs.clamp).numpy()  # type: ignore[attr-defined]
    np.testing.assert_allclose(drawing.reference(case), want, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("x", "w", "bias", "words"),
    [
        ((2, 5), (3, 4), None, "weights for 4 inputs"),
        ((), (3, 1), None, "weights for 1 inputs"),
        ((2, 4), (3, 4), (4,), "bias of shape"),
        ((2, 4), (3, 4, 1), None, "must have 2 dimensions"),
    ],
)
def test_shape_errors(
    x: tuple[int, ...], w: tuple[int, ...], bias: tuple[int, ...] | None, words: str
) -> None:
    bodies.expect_shape_error(Linear(), x, w, bias, words)


def test_overflowing_sums_are_refused() -> None:
    """127 * 255 * depth must stay below 2**31, so about 66,000 inputs are the most."""
    for depth, fits in ((66_000, True), (67_000, False)):
        w = constant("w", np.full((1, depth), 127, np.int8), QuantParams.per_tensor(0.1, 0))
        node = Node(Linear(), (tensor("x", (depth,), scale=0.1), w), (tensor("y", (1,), scale=1.0),))
        check = ops.op_of(node).check(node)
        assert check is None if fits else "overflow" in (check or "")
