# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d, attrs_of
from tinyet.ops.avg_pool2d import AvgPool2d


@st.composite
def adaptive_avg_pool2d_nodes(draw: st.DrawFn, dtype: DType | None = None) -> Case:
    kind = dtype or draw(st.sampled_from((DType.INT8, DType.INT16, DType.FLOAT32)))
    shape = (*draw(drawing.images), draw(st.integers(1, 9)))
    x = draw(drawing.activations("x", shape, kind))
    attrs = AdaptiveAvgPool2d(draw(st.integers(1, 12)), draw(st.integers(1, 12)))
    node = drawing.node_of(attrs, [x], x.type.quant)
    return Case(node, (drawing.data(drawing.random(draw), shape, kind),))


test_host = bodies.host(adaptive_avg_pool2d_nodes())


@drawing.quick
@given(adaptive_avg_pool2d_nodes())
def test_torch(case: Case) -> None:
    """float: sums of at most 81 values of magnitude 15 stay within 1e-5. int8: half a unit off the mean."""
    torch = pytest.importorskip("torch")
    a = attrs_of(case.node)
    x = torch.from_numpy(case.inputs[0].astype(np.float64)).permute(0, 3, 1, 2)
    want = torch.nn.functional.adaptive_avg_pool2d(x, (a.out_h, a.out_w)).permute(0, 2, 3, 1).numpy()
    bound = 0.5 + 1e-9 if case.node.output.dtype is not DType.FLOAT32 else 1e-5
    np.testing.assert_allclose(drawing.reference(case).astype(np.float64), want, rtol=0, atol=bound)


def test_even_windows_are_average_pooling() -> None:
    """The same rounding as AvgPool2d, which is LiteRT's."""
    x = tensor("x", (2, 6, 8, 3), scale=0.5, zero_point=-7)
    data = drawing.int8_data(np.random.default_rng(0), x.shape)
    pool = AvgPool2d(stride_h=3, stride_w=2, kernel_h=3, kernel_w=2)
    y = tensor("y", (2, 2, 4, 3), scale=0.5, zero_point=-7)
    adaptive = drawing.reference(Case(Node(AdaptiveAvgPool2d(2, 4), (x,), (y,)), (data,)))
    np.testing.assert_array_equal(adaptive, drawing.reference(Case(Node(pool, (x,), (y,)), (data,))))


@pytest.mark.parametrize(
    ("shape", "attrs", "words"),
    [
        ((1, 4, 4, 1), AdaptiveAvgPool2d(0, 1), "to 0x1 pixels"),
        ((4, 4, 1), AdaptiveAvgPool2d(), "must have 4 dimensions"),
    ],
)
def test_shape_errors(shape: tuple[int, ...], attrs: AdaptiveAvgPool2d, words: str) -> None:
    x = tensor("x", shape, DType.FLOAT32)
    with pytest.raises(UnsupportedShape, match=words):
        ops.infer(Node(attrs, (x,), (x,)))
