# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.calls.exact import assert_kernels
from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.shared import averaging
from tinyet.ops.shared.averaging import division, exact_reciprocal


@st.composite
def avg_pool2d_nodes(draw: st.DrawFn, dtype: DType | None = None, dilation: int = 2) -> Case:
    kind = dtype or draw(st.sampled_from((DType.INT8, DType.INT16, DType.FLOAT32)))
    shape = (*draw(drawing.images), draw(st.integers(1, 9)))
    x = draw(drawing.activations("x", shape, kind))
    attrs = AvgPool2d(
        **draw(drawing.windows(*shape[1:3], kernel=5, dilation=dilation, inside=True)),
        count_include_pad=draw(st.booleans()),
        divisor=draw(st.sampled_from((None, None, 1, 3, 40, 1000))),
    )
    node = drawing.node_of(attrs, [x], x.type.quant)
    return Case(node, (drawing.data(drawing.random(draw), shape, kind),))


test_host = bodies.host(avg_pool2d_nodes())


def test_large_windows() -> None:
    """Some whose reciprocal is exact in 32 bits, and some that have to be divided; edge and random data."""
    rng, cases, fallback = np.random.default_rng(0), [], 0
    for size in (16, 37, 61, 64, 100, 127):
        fallback += division(size * size, size * size, 0).multiplier == 0
        x = tensor("x", (1, size, size, 5), scale=0.5, zero_point=3)
        attrs = AvgPool2d(kernel_h=size, kernel_w=size)
        node = Node(attrs, (x,), (tensor("y", (1, 1, 1, 5), scale=0.5, zero_point=3),))
        values = drawing.int8_data(rng, x.shape)
        values[..., 0], values[..., 1] = -128, 127
        cases.append(Case(node, (values,)))
    assert 0 < fallback < len(cases)
    assert_kernels(cases)


def test_reciprocals_are_exact() -> None:
    """Every dividend of every window up to 16x16, and of some larger ones, against plain division."""
    for divisor in (*range(1, 257), 289, 324, 1000, 1024, 4096):
        largest = 255 * divisor + divisor // 2
        found = exact_reciprocal(divisor, largest)
        if found is None:
            assert divisor > 256
            continue
        u = np.arange(largest + 1, dtype=np.uint64)
        product = u * np.uint64(found[0])
        assert int(product.max()) < 2**32
        np.testing.assert_array_equal(product >> np.uint64(found[1]), u // np.uint64(divisor))


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(st.sampled_from((DType.INT8, DType.INT16)).flatmap(lambda d: avg_pool2d_nodes(d, 1)))
def test_litert(case: Case) -> None:
    """Padding that counts is the zero point, padded first. What does not count is LiteRT's SAME."""
    a, out = case.node.attrs, case.node.output.type
    assert isinstance(a, AvgPool2d)
    assume(a.divisor is None)
    x = drawing.padded(case, out.zero_point)
    if not a.count_include_pad:
        x = case.inputs[0]
        for side, size, kernel, stride in (
            (("top", "bottom"), x.shape[1], a.kernel_h, a.stride_h),
            (("left", "right"), x.shape[2], a.kernel_w, a.stride_w),
        ):
            total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            same = (total // 2, total - total // 2)
            a = type(a)(**{**vars(a), **{f"pad_{s}": p for s, p in zip(side, same, strict=True)}})
        case = Case(drawing.node_of(a, case.node.inputs, out.quant), case.inputs)
    want = drawing.litert_pool("AVERAGE_POOL_2D", case.node, x, "VALID" if a.count_include_pad else "SAME")
    np.testing.assert_array_equal(drawing.reference(case), want)


@drawing.quick
@given(avg_pool2d_nodes(DType.FLOAT32, 1))
def test_torch(case: Case) -> None:
    """Sums of at most 25 values of magnitude 15, against float64: float32 rounding stays within 1e-5."""
    torch = pytest.importorskip("torch")
    a = case.node.attrs
    assert isinstance(a, AvgPool2d)
    assume(a.pad_top == a.pad_bottom and a.pad_left == a.pad_right)
    assume(2 * a.pad_top <= a.kernel_h and 2 * a.pad_left <= a.kernel_w)
    want = torch.nn.functional.avg_pool2d(
        torch.from_numpy(case.inputs[0]).double().permute(0, 3, 1, 2),
        (a.kernel_h, a.kernel_w),
        (a.stride_h, a.stride_w),
        (a.pad_top, a.pad_left),
        count_include_pad=a.count_include_pad,
        divisor_override=a.divisor,
    )
    np.testing.assert_allclose(
        drawing.reference(case), want.permute(0, 2, 3, 1).numpy(), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(
    ("shape", "attrs", "words"),
    [
        ((1, 2, 9, 1), AvgPool2d(kernel_h=3), "3x1 window does not fit into 2x9"),
        ((1, 4, 4, 1), AvgPool2d(pad_top=2, kernel_h=2), "wholly in the padding"),
        ((1, 4, 4, 1), AvgPool2d(divisor=0), "a divisor of 0"),
        ((4, 4, 1), AvgPool2d(), "must have 4 dimensions"),
    ],
)
def test_shape_errors(shape: tuple[int, ...], attrs: AvgPool2d, words: str) -> None:
    x = tensor("x", shape, DType.FLOAT32)
    with pytest.raises(UnsupportedShape, match=words):
        ops.infer(Node(attrs, (x,), (x,)))


def test_parts_of_the_cost() -> None:
    """Outputs that are divided, and those that are multiplied, by how far they are shifted: each window's own."""
    counts = np.array([1, 9, 9, 4], np.int64)
    found = averaging.parts(counts, 5, None, 3, DType.INT16)
    divided = {int(n): division(int(n), int(n), 3, DType.INT16).multiplier == 0 for n in counts}
    assert divided == {1: False, 4: False, 9: True}
    shifts = [division(n, n, 3, DType.INT16).shift for n in (1, 4)]
    assert found == {
        "divided output": 10,
        "multiplied output": 10,
        "shift by a byte": 5 * sum(s // 8 for s in shifts),
        "shift by a bit": 5 * sum(s % 8 for s in shifts),
    }
    assert "divided output" not in averaging.parts(counts, 5, 9, 3, DType.INT8)
