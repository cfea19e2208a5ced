# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls.exact import assert_kernels
from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.boards import load_board
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node
from tinyet.ops.max_pool2d import MaxPool2d


@st.composite
def max_pool2d_nodes(draw: st.DrawFn, dtype: DType | None = None, dilation: int = 2) -> Case:
    kind = dtype or draw(st.sampled_from((DType.INT8, DType.INT16, DType.FLOAT32)))
    shape = (*draw(drawing.images), draw(st.integers(1, 9)))
    x = draw(drawing.activations("x", shape, kind))
    attrs = MaxPool2d(**draw(drawing.windows(*shape[1:3], dilation=dilation)))
    rng = drawing.random(draw)
    values = drawing.data(rng, shape, kind)
    if kind is DType.FLOAT32:
        values = np.where(rng.random(shape) < 0.05, np.float32(np.nan), values).astype(np.float32)
    return Case(drawing.node_of(attrs, [x], x.type.quant), (values,))


test_host = bodies.host(max_pool2d_nodes())


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(st.sampled_from((DType.INT8, DType.INT16)).flatmap(lambda d: max_pool2d_nodes(d, 1)))
def test_litert(case: Case) -> None:
    x = drawing.padded(case, case.node.output.dtype.range[0])
    want = drawing.litert_pool("MAX_POOL_2D", case.node, x)
    np.testing.assert_array_equal(drawing.reference(case), want)


@drawing.quick
@given(max_pool2d_nodes(DType.FLOAT32))
def test_torch(case: Case) -> None:
    """Exact, NaN included."""
    torch = pytest.importorskip("torch")
    a = case.node.attrs
    assert isinstance(a, MaxPool2d)
    x = torch.from_numpy(drawing.padded(case, -np.inf)).permute(0, 3, 1, 2)
    stride, dilation = (a.stride_h, a.stride_w), (a.dilation_h, a.dilation_w)
    want = torch.nn.functional.max_pool2d(x, (a.kernel_h, a.kernel_w), stride, 0, dilation)
    np.testing.assert_array_equal(drawing.reference(case), want.permute(0, 2, 3, 1).numpy())


def test_window_in_the_padding_gives_the_lowest_value() -> None:
    for kind, lowest in ((DType.INT8, -128), (DType.FLOAT32, -np.inf)):
        scale = 0.5 if kind is DType.INT8 else None
        x = tensor("x", (1, 2, 2, 5), kind, scale)
        attrs = MaxPool2d(pad_top=3, pad_right=2, kernel_h=2, kernel_w=1)
        shape = ops.infer(Node(attrs, (x,), (x,)))[0]
        node = Node(attrs, (x,), (tensor("y", shape, kind, scale),))
        case = Case(node, (np.full(x.shape, 7, kind.numpy),))
        assert drawing.reference(case)[0, 0, 0, 0] == lowest
        assert_kernels([case])


@pytest.mark.parametrize(
    ("shape", "attrs", "words"),
    [
        ((1, 2, 9, 1), MaxPool2d(kernel_h=3), "3x1 window does not fit into 2x9"),
        ((1, 4, 4, 1), MaxPool2d(kernel_w=3, dilation_w=2), "1x3 window does not fit into 4x4"),
        ((4, 4, 1), MaxPool2d(), "must have 4 dimensions"),
    ],
)
def test_shape_errors(shape: tuple[int, ...], attrs: MaxPool2d, words: str) -> None:
    x = tensor("x", shape, DType.FLOAT32)
    with pytest.raises(UnsupportedShape, match=words):
        ops.infer(Node(attrs, (x,), (x,)))


def test_windows_that_reach_too_far_for_an_avr() -> None:
    """Its kernels count in 16 bits; others do not."""
    x = tensor("x", (1, 3, 3, 4), DType.INT8, 0.1)
    far = drawing.node_of(
        MaxPool2d(kernel_h=3, dilation_h=16383, pad_top=16383, pad_bottom=16383), [x], x.type.quant
    )
    near = drawing.node_of(MaxPool2d(kernel_h=3), [x], x.type.quant)
    (kernel,) = (each for each in ops.op_of(far).kernels if each.dtypes == "s8")
    uno, other = (load_board(name).target for name in ("arduino_uno", "mps2_an386"))
    assert "16 bits" in str(kernel.why_not(far, uno))
    assert [kernel.why_not(*case) for case in ((far, other), (near, uno))] == [None, None]
