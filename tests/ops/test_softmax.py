# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.calls.exact import assert_kernels
from tests.ops import along_axis, bodies, elementwise
from tests.ops.cases import Case, tensor
from tinyet import ops
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType
from tinyet.ops.softmax import OP, Softmax

torch = pytest.importorskip("torch")
OUT = {DType.INT8: QuantParams.per_tensor(1 / 256, -128), DType.INT16: QuantParams.per_tensor(2.0**-15, 0)}


LEAST = {DType.INT8: 1e-9, DType.INT16: 2e-9}


def of_one_type(
    dtypes: tuple[DType, ...] = elementwise.ALL, last: bool = False, scaled: bool = False
) -> st.SearchStrategy[Case]:
    return along_axis.nodes(Softmax, OUT, dtypes, last, LEAST if scaled else None)


@st.composite
def wider_nodes(draw: st.DrawFn) -> Case:
    """From int8 to int16."""
    case = draw(of_one_type((DType.INT8,)))
    x = case.node.input(0).type
    scale = draw(st.sampled_from((1 / 65536, 1 / 65535)))
    out = TensorType(x.shape, DType.INT16, QuantParams.per_tensor(scale, -32768))
    return Case(case.node.replace(outputs=[Tensor("y", out)]), case.inputs)


def softmax_nodes() -> st.SearchStrategy[Case]:
    return of_one_type() | wider_nodes()


test_host = bodies.host(of_one_type(scaled=True) | wider_nodes())

test_litert = bodies.equals_litert("SOFTMAX", of_one_type(elementwise.INTEGERS, last=True))

# The exponential of a difference far below 0 carries the error of the difference: 2**-24 of it.
test_torch = along_axis.close_to_torch(torch.softmax, of_one_type((DType.FLOAT32,)), 1e-5, 1e-37)


def exact(x: along_axis.Floats) -> along_axis.Floats:
    exps = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(exps / exps.sum(-1, keepdims=True))


def test_other_output_scales_are_as_accurate_as_their_steps() -> None:
    """Of probabilities up to 1, 1/4 and, with many classes, less; at both ends of what a sum can be."""
    quant = QuantParams.per_tensor
    narrow = [
        along_axis.rows(Softmax, DType.INT8, scale, quant(out, zero_point), depth)
        for scale, out, zero_point, depth in (
            (0.03, 1 / 255, -128, 7), (0.1, 0.001, -128, 4), (0.002, 1e-5, -128, 360), (1e-5, 1e-6, -128, 4095),
            (3.0, 1 / 200, 13, 2), (0.05, 0.9, 0, 30),
        )
    ]  # fmt: skip
    assert max(along_axis.errors(narrow, exact)) < 0.52
    wide = [
        along_axis.rows(Softmax, DType.INT16, scale, quant(out, 0), depth)
        for scale, out, depth in ((1e-4, 1e-6, 30), (1e-5, 1e-7, 360), (3e-4, 2.9e-5, 3), (1e-6, 2e-9, 60000))
    ]
    # LiteRT's tables, and its reciprocal of 15 bits, are good for 12 bits of a probability.
    assert max(along_axis.errors(wide, exact)) < 10
    assert_kernels([*narrow, *wide])


def test_many_equal() -> None:
    case = along_axis.all_equal(Softmax, OUT[DType.INT8])
    assert set(elementwise.reference(case).ravel().tolist()) == {-128}
    # In int16 the sum has room for more: each of 5000 is 6.55 steps.
    shape, wide = (1, 5000), DType.INT16
    out = Tensor("y", TensorType(shape, wide, OUT[wide]))
    many = Case(Node(Softmax(1), (tensor("x", shape, wide, 1e-3),), (out,)), (np.full(shape, 900, np.int16),))
    assert set(elementwise.reference(many).ravel().tolist()) == {7}
    y = Tensor("y", TensorType((1, 4095), wide, QuantParams.per_tensor(1 / 65536, -32768)))
    wider = Case(case.node.replace(outputs=[y]), case.inputs)
    assert set(elementwise.reference(wider).ravel().tolist()) == {16 - 32768}
    assert_kernels([case, many, wider])


def test_refusals() -> None:
    along_axis.expect_refusals(Softmax, OUT[DType.INT8])
    for scale in (2.0**-30, 2.0**-14):
        wide = Node(
            Softmax(0), (tensor("x", (4,), DType.INT16, 1e-3),), (tensor("y", (4,), DType.INT16, scale),)
        )
        assert "from 2^-29 to 2^-14" in str(OP.check(wide))
    bytes_, floats = tensor("x", (4,), scale=0.1), tensor("x", (4,), DType.FLOAT32)
    for scale, zero_point in ((1 / 65536, 0), (1 / 32768, -32768)):
        halves = tensor("y", (4,), DType.INT16, scale, zero_point)
        assert "zero point of -32768" in str(OP.check(Node(Softmax(0), (bytes_,), (halves,))))
    assert "no form for float32, int16" in str(OP.check(Node(Softmax(0), (floats,), (halves,))))
    steep = Node(
        Softmax(0), (tensor("x", (4,), scale=16.0),), (tensor("y", (4,), scale=1 / 256, zero_point=-128),)
    )
    assert "too large" in str(OP.check(steep))
    nearly = Node(Softmax(0), (tensor("x", (4,), scale=15.9),), steep.outputs)
    assert OP.check(nearly) is None
    np.testing.assert_array_equal(
        ops.evaluate(nearly, [np.array([3, -4, 2, 3], np.int8)])[0], np.array([0, -128, -128, 0], np.int8)
    )
