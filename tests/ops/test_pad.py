# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.boards.cpus import HOST
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node
from tinyet.ops import pad as pad_op
from tinyet.ops.pad import Pad


def amounts(mode: str, size: int, lowest: int) -> st.SearchStrategy[int]:
    """Pads of one side that leave something of the dimension whatever stands on the other side."""
    if mode == "reflect":
        return st.integers(0, min(3, size - 1))
    return st.integers(max(lowest, -((size - 1) // 2)) if mode == "constant" else 0, 3)


@st.composite
def pad_nodes(draw: st.DrawFn, dtype: DType | None = None, rank: int = 5, lowest: int = -2) -> Case:
    kind = dtype or draw(st.sampled_from((DType.INT8, DType.INT16, DType.FLOAT32)))
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=rank)))
    x = draw(drawing.activations("x", shape, kind))
    mode = draw(st.sampled_from(pad_op.MODES))
    pads = tuple(
        (draw(amounts(mode, size, lowest)), draw(amounts(mode, size, lowest))) if padded else (0, 0)
        for size, padded in ((size, draw(st.integers(0, 2)) > 0) for size in shape)
    )
    value = draw(st.sampled_from((0.0, 1.5, -math.inf, -3.7)))
    node = drawing.node_of(Pad(pads, mode, value), [x], x.type.quant)
    return Case(node, (drawing.data(drawing.random(draw), shape, kind),))


test_host = bodies.host(pad_nodes())


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(st.sampled_from((DType.INT8, DType.INT16)).flatmap(lambda d: pad_nodes(d, 4, 0)))
def test_litert(case: Case) -> None:
    a, out = case.node.attrs, case.node.output.type
    assert isinstance(a, Pad)
    assume(a.mode != "replicate")
    x = case.inputs[0]
    inputs = [
        litert.TensorSpec(x.shape, x.dtype, out.scale, out.zero_point, data=x),
        litert.TensorSpec((x.ndim, 2), np.int32, data=np.array(a.pads)),
    ]
    result = [litert.TensorSpec(out.shape, x.dtype, out.scale, out.zero_point)]
    if a.mode == "reflect":
        (want,) = litert.run("MIRROR_PAD", inputs, result, mode="REFLECT")
    else:
        fill = pad_op.fill_value(case.node)
        inputs.append(litert.TensorSpec((1,), x.dtype, out.scale, out.zero_point, data=fill))
        (want,) = litert.run("PADV2", inputs, result)
    np.testing.assert_array_equal(drawing.reference(case), want)


@drawing.quick
@given(pad_nodes(DType.FLOAT32, 4))
def test_torch(case: Case) -> None:
    """Exact. torch reflects and replicates up to the last three dimensions, behind two that stay."""
    torch = pytest.importorskip("torch")
    a = case.node.attrs
    assert isinstance(a, Pad)
    x, flat = torch.from_numpy(case.inputs[0]), [p for pair in reversed(a.pads) for p in pair]
    if a.mode == "constant":
        want = torch.nn.functional.pad(x, flat, value=a.value)
    else:
        assume(x.ndim <= 3)
        want = torch.nn.functional.pad(x[None, None], flat, a.mode)[0, 0]
    np.testing.assert_array_equal(drawing.reference(case), want.numpy())


def test_the_constant_is_quantized_and_saturates() -> None:
    for value, want in ((0.0, 10), (0.24, 10), (0.25, 11), (-0.25, 9), (1e9, 127), (-math.inf, -128)):
        x = tensor("x", (1,), scale=0.5, zero_point=10)
        node = Node(Pad(((1, 0),), "constant", value), (x,), (tensor("y", (2,), scale=0.5, zero_point=10),))
        assert drawing.reference(Case(node, (np.array([5], np.int8),))).tolist() == [want, 5]


def test_too_many_dimensions_are_refused() -> None:
    for count, fits in ((6, True), (7, False)):
        shape, pads = (1,) * count, ((1, 0),) * count
        x = tensor("x", shape, DType.FLOAT32)
        node = Node(Pad(pads), (x,), (tensor("y", (2,) * count, DType.FLOAT32),))
        reason = pad_op.OP.kernels[-1].why_not(node, HOST)
        assert reason is None if fits else "7 dimensions" in (reason or "")


@pytest.mark.parametrize(
    ("shape", "attrs", "words"),
    [
        ((3, 3), Pad(((1, 1),)), "1 pads for 2 dimensions"),
        ((3,), Pad(((3, 0),), "reflect"), "cannot be reflected by 3"),
        ((3,), Pad(((-1, 0),), "replicate"), "negative pad"),
        ((3,), Pad(((-2, -1),)), "leave nothing"),
        ((3,), Pad(((-4, 9),)), "leave nothing"),
    ],
)
def test_shape_errors(shape: tuple[int, ...], attrs: Pad, words: str) -> None:
    x = tensor("x", shape, DType.FLOAT32)
    with pytest.raises(UnsupportedShape, match=words):
        ops.infer(Node(attrs, (x,), (x,)))
