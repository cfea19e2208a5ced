# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, QuantParams, constant
from tinyet.ops import matmul
from tinyet.ops.matmul import MatMul
from tinyet.ops.shared.clamped import clamp_of


@st.composite
def matmul_nodes(draw: st.DrawFn, dtype: DType | None = None, clamps: tuple[int, ...] = (0, 1, 2, 3)) -> Case:
    """Batches that broadcast in both directions; the second matrix is a constant now and then."""
    kind = dtype or draw(st.sampled_from((DType.INT8, DType.INT16, DType.FLOAT32)))
    batch = draw(st.lists(st.integers(1, 3), max_size=2))
    shapes = []
    for _ in range(2):
        kept = draw(st.integers(0, len(batch)))
        shapes.append(tuple(size if draw(st.booleans()) else 1 for size in batch[len(batch) - kept :]))
    rows, depth, columns = draw(st.integers(1, 6)), draw(st.integers(1, 30)), draw(st.integers(1, 11))
    rng = drawing.random(draw)
    a = draw(drawing.activations("a", (*shapes[0], rows, depth), kind))
    b = draw(drawing.activations("b", (*shapes[1], depth, columns), kind))
    arrays = [drawing.data(rng, t.shape, kind) for t in (a, b)]
    if draw(st.booleans()):
        b = dataclasses.replace(b, data=arrays.pop())
    quant = draw(drawing.quants(kind))
    if kind is DType.INT16:
        # What the products fill about; scales that are far too small are refused.
        deviation = 20000**2 * depth**0.5 * a.type.scale * b.type.scale
        quant = QuantParams.per_tensor(deviation * draw(st.floats(0.2, 4)) / 32768, 0)
    clamp = drawing.CLAMPS[draw(st.sampled_from(clamps))]
    return Case(drawing.node_of(MatMul(clamp), [a, b], quant), tuple(arrays))


test_host = bodies.host(matmul_nodes())


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(st.sampled_from((DType.INT8, DType.INT16)).flatmap(lambda d: matmul_nodes(d, (0,))))
def test_litert(case: Case) -> None:
    """BATCH_MATMUL takes both matrices at run time, constant or not."""
    node, out = case.node, case.node.output.type
    arrays = [*case.inputs, *(t.array for t in node.inputs if t is not None and t.is_constant)]
    inputs = [
        litert.TensorSpec(t.shape, t.dtype.numpy, t.type.scale, t.type.zero_point, data=data)
        for t, data in zip((node.input(0), node.input(1)), arrays, strict=True)
    ]
    output = litert.TensorSpec(out.shape, out.dtype.numpy, out.scale, out.zero_point)
    (want,) = litert.run("BATCH_MATMUL", inputs, [output])
    np.testing.assert_array_equal(drawing.reference(case), want)


@drawing.quick
@given(matmul_nodes(DType.FLOAT32))
def test_float64(case: Case) -> None:
    """A float32 sum of 30 products of magnitude 30 stays within 1e-4 of the exact one."""
    arrays = [*case.inputs, *(t.array for t in case.node.inputs if t is not None and t.is_constant)]
    want = np.matmul(*(array.astype(np.float64) for array in arrays))
    want = np.clip(want, *clamp_of(case.node))
    np.testing.assert_allclose(drawing.reference(case), want, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ((2, 3), (4, 5), "by"),
        ((3,), (3, 5), "by"),
        ((2, 2, 3), (3, 3, 5), "do not broadcast"),
    ],
)
def test_shape_errors(a: tuple[int, ...], b: tuple[int, ...], words: str) -> None:
    left, right = tensor("a", a, DType.FLOAT32), tensor("b", b, DType.FLOAT32)
    with pytest.raises(UnsupportedShape, match=words):
        ops.infer(Node(MatMul(), (left, right), (left,)))


def test_type_rule() -> None:
    a, b, y = (tensor(n, (2, 2), scale=0.1) for n in "aby")
    assert matmul.check(Node(MatMul(), (a, b), (y,))) is None
    per_channel = constant("b", np.ones((2, 2), np.int8), QuantParams((0.1, 0.2), (0, 0), 1))
    assert "per tensor" in (matmul.check(Node(MatMul(), (a, per_channel), (y,))) or "")
    mixed = Node(MatMul(), (a, tensor("b", (2, 2), DType.FLOAT32)), (y,))
    assert "no form with float32, int8" in (matmul.check(mixed) or "")
    deep = Node(MatMul(), (tensor("a", (1, 33_000), scale=0.1), tensor("b", (33_000, 1), scale=0.1)), (y,))
    assert "overflow" in (matmul.check(deep) or "")
