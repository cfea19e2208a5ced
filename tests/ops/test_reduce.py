# SPDX-License-Identifier: Apache-2.0
"""Mean, Sum, Amax and Amin: one geometry, so one strategy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.calls.exact import assert_kernels
from tests.ops import bodies, drawn
from tests.ops.cases import Case, expected, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, QuantParams, TensorType
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.mean import OP, Mean
from tinyet.ops.shared import reduction
from tinyet.ops.sum import Sum

torch = pytest.importorskip("torch")
ANY = (Mean, Sum, Amax, Amin)


@st.composite
def reduce_nodes(
    draw: st.DrawFn,
    kinds: tuple[type[reduction.Reduce], ...] = ANY,
    dtypes: tuple[DType, ...] = drawn.REDUCIBLE,
) -> Case:
    kind = draw(st.sampled_from(kinds))
    shape = draw(drawn.shapes(1, 5, 9))
    axes = tuple(draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True)))
    x = draw(drawn.types(shape, dtypes))
    out = x
    if kind in (Mean, Sum) and x.quant is not None:
        ratio = draw(st.floats(0.2, 5.0))
        if kind is Sum:
            ratio *= math.prod(shape[axis] for axis in axes)
        zero_point = 0 if x.dtype is DType.INT16 else draw(st.integers(-128, 127))
        out = TensorType((), x.dtype, QuantParams.per_tensor(x.scale * ratio, zero_point))
    case = drawn.case_of(kind(axes, draw(st.booleans())), [x], out, draw(drawn.seeds))
    assume(reduction.loops(case.node) is not None)
    return case


test_host = bodies.host(reduce_nodes())


def test_global_average_on_host() -> None:
    """The sizes that networks have, the last of which makes the sums large."""
    cases = []
    for seed, shape in enumerate([(1, 8, 8, 64), (1, 7, 7, 1023), (1, 25, 5, 64), (1, 64, 512, 3)]):
        x = TensorType(shape, DType.INT8, QuantParams.per_tensor(0.05, -128))
        out = TensorType((), DType.INT8, QuantParams.per_tensor(0.02, 127))
        cases.append(drawn.case_of(Mean((1, 2)), [x], out, seed))
    assert_kernels(cases)


def test_nan_on_host() -> None:
    x = np.array([[1, np.nan, 2], [np.nan, 5, -1], [3, 2, np.nan], [0.0, -0.0, -0.0]], np.float32)
    nodes = [
        Node(kind((1,)), (tensor("x", (4, 3), DType.FLOAT32),), (tensor("y", (4,), DType.FLOAT32),))
        for kind in (Amax, Amin)
    ]
    for node in nodes:
        assert np.isnan(expected(node, (x,))[0][:3]).all()
    assert_kernels([Case(node, (x,)) for node in nodes])


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@settings(max_examples=150, deadline=None)
@given(reduce_nodes((Mean, Amax, Amin), (DType.INT8, DType.INT16)))
def test_litert(case: Case) -> None:
    x, out, attrs = case.node.input(0), case.node.output, case.node.attrs
    assert isinstance(attrs, reduction.Reduce)
    axes = litert.TensorSpec((len(attrs.axes),), np.int32, data=attrs.axes)
    element = x.dtype.numpy
    specs = [litert.TensorSpec(x.shape, element, x.type.scale, x.type.zero_point, data=case.inputs[0]), axes]
    want_spec = litert.TensorSpec(out.shape, element, out.type.scale, out.type.zero_point)
    name = {Mean: "MEAN", Amax: "REDUCE_MAX", Amin: "REDUCE_MIN"}[type(attrs)]
    (want,) = litert.run(name, specs, [want_spec], keep_dims=attrs.keepdims)
    assert np.array_equal(expected(case.node, case.inputs)[0], want)


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@settings(max_examples=60, deadline=None)
@given(reduce_nodes((Sum,), (DType.INT8,)))
def test_litert_sum(case: Case) -> None:
    """LiteRT 2.3 reads and writes int8 sums as uint8, so only what is the same in both is compared: inputs
    from 0 on, and outputs from 0 to 127."""
    x, out, attrs = case.node.input(0), case.node.output, case.node.attrs
    assert isinstance(attrs, Sum)
    data = np.abs(case.inputs[0].astype(np.int16)).clip(0, 127).astype(np.int8)
    axes = litert.TensorSpec((len(attrs.axes),), np.int32, data=attrs.axes)
    specs = [litert.TensorSpec(x.shape, np.int8, x.type.scale, x.type.zero_point, data=data), axes]
    want_spec = litert.TensorSpec(out.shape, np.int8, out.type.scale, out.type.zero_point)
    (want,) = litert.run("SUM", specs, [want_spec], keep_dims=attrs.keepdims)
    (got,) = expected(case.node, (data,))
    inside = np.isin(got, np.arange(1, 127))
    assert np.array_equal(got[inside], want[inside])


@given(reduce_nodes(ANY, (DType.FLOAT32,)))
def test_torch(case: Case) -> None:
    """Exact for the greatest and the least; sums add in another order: 1e-6 of the sum of magnitudes."""
    attrs, x = case.node.attrs, torch.from_numpy(case.inputs[0])
    assert isinstance(attrs, reduction.Reduce)
    call = {Mean: torch.mean, Sum: torch.sum, Amax: torch.amax, Amin: torch.amin}[type(attrs)]
    want = call(x.double(), attrs.axes, keepdim=attrs.keepdims).numpy()
    (got,) = expected(case.node, case.inputs)
    assert got.shape == want.shape
    if isinstance(attrs, (Amax, Amin)):
        assert np.array_equal(got, want)
    else:
        magnitude = call(x.double().abs(), attrs.axes, keepdim=attrs.keepdims).numpy()
        assert (np.abs(got - want) <= 1e-6 * magnitude).all()


def node_of(
    kind: type[reduction.Reduce], shape: tuple[int, ...], axes: tuple[int, ...], **out: float
) -> Node:
    y = tensor("y", (1,) * len(shape), scale=out.get("scale", 1.0))
    return Node(kind(axes, True), (tensor("x", shape, scale=1.0),), (y,))


def test_loops() -> None:
    assert reduction.loops(node_of(Mean, (1, 8, 8, 64), (1, 2))) == (1, 1, 1, 64, 64)
    assert reduction.loops(node_of(Mean, (2, 3, 4, 5, 6), (1, 3))) == (2, 3, 4, 5, 6)
    assert reduction.loops(node_of(Mean, (4, 5, 6), (0, 2))) == (1, 4, 5, 6, 1)
    assert reduction.loops(node_of(Mean, (1, 1), (0,))) == (1, 1, 1, 1, 1)


def test_refusals() -> None:
    with pytest.raises(UnsupportedShape, match="of 2 dimensions"):
        ops.infer(node_of(Mean, (2, 3), (2,)))
    with pytest.raises(UnsupportedShape, match="of 2 dimensions"):
        ops.infer(node_of(Mean, (2, 3), (1, 1)))
    scattered = node_of(Mean, (2, 3, 4, 5, 6), (0, 2, 4))
    assert "three runs" in str(OP.kernels[0].why_not(scattered, Target("cortex-m0", frozenset())))
    assert "32 bits" in str(OP.check(node_of(Mean, (1, 2900, 2905, 1), (1, 2))))
    amax = node_of(Amax, (2, 3), (1,), scale=0.5)
    assert "quantized alike" in str(ops.op_of(amax).check(amax))
