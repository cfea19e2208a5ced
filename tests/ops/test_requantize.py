# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from tests.ops import bodies, drawn, elementwise
from tests.ops.cases import Case, tensor
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType
from tinyet.ops.requantize import OP, Requantize


@st.composite
def requantize_nodes(draw: st.DrawFn, kinds: tuple[DType, ...] = (DType.INT8, DType.INT16)) -> Case:
    """From and to any of the types."""
    case = draw(elementwise.single(st.just(Requantize()), kinds))
    dtype = draw(st.sampled_from(kinds))
    out = TensorType(case.node.output.shape, dtype, draw(elementwise.quants(dtype)))
    node = case.node.replace(outputs=[Tensor("y", out)])
    assume(OP.check(node) is None)
    return Case(node, case.inputs)


@st.composite
def wide_nodes(draw: st.DrawFn) -> Case:
    """From or to int32, whose scale is an attribute."""
    narrow = draw(st.sampled_from((DType.INT8, DType.INT16)))
    shape, scale = draw(drawn.shapes(1, 3)), draw(elementwise.scales(1e-6, 1e-1))
    quant = draw(elementwise.quants(narrow))
    if narrow is DType.INT16:
        quant = QuantParams.per_tensor(quant.scale[0], draw(st.sampled_from((0, -32768, 32767, -9))))
    types = [TensorType(shape, narrow, quant), TensorType(shape, DType.INT32)]
    if draw(st.booleans()):
        types.reverse()
    node = Node(Requantize(scale), (Tensor("x", types[0]),), (Tensor("y", types[1]),))
    assume(OP.check(node) is None)
    return Case(node, (elementwise.values(types[0], draw(drawn.seeds)),))


test_host_wide = bodies.host(wide_nodes())

test_host = bodies.host(requantize_nodes())

# The kernel without a table, on tensors of any size.
test_arithmetic_kernel = bodies.one_kernel(OP, "tinyet_requantize_s8", requantize_nodes((DType.INT8,)))

test_litert = bodies.equals_litert("QUANTIZE", requantize_nodes())


def test_equal_scales_shift_by_the_zero_points() -> None:
    node = Node(
        Requantize(), (tensor("x", (256,), scale=0.3, zero_point=5),), (tensor("y", (256,), scale=0.3),)
    )
    x = np.arange(-128, 128).astype(np.int8)
    assert np.array_equal(elementwise.reference(Case(node, (x,))), np.clip(x.astype(int) - 5, -128, 127))


def test_ratio_too_large() -> None:
    node = Node(Requantize(), (tensor("x", (2,), scale=1e4),), (tensor("y", (2,), scale=1e-4),))
    assert "too small" in str(OP.check(node))


def test_the_zero_point_of_int16_takes_a_bit() -> None:
    out = tensor("y", (2,), DType.INT16, 2.0**-15)
    for zero_point, taken in ((0, True), (1, False)):
        x = tensor("x", (2,), DType.INT16, 0.5, zero_point)
        assert (OP.check(Node(Requantize(), (x,), (out,))) is None) == taken


def test_a_scale_for_int32_alone() -> None:
    wide, narrow = tensor("x", (2,), DType.INT32), tensor("y", (2,))
    assert "int32" in str(OP.check(Node(Requantize(), (wide,), (narrow,))))
    assert "int32" in str(OP.check(Node(Requantize(0.1), (narrow,), (narrow,))))
