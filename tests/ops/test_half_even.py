# SPDX-License-Identifier: Apache-2.0
"""Operators whose results are rounded to even, as ONNX Runtime rounds them, and convolutions whose sums of int16 are
short: C against the reference. How the reference compares with other runtimes is in tests/importers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from tests.calls.emulated import check_library
from tests.ops import bodies
from tests.ops.cases import Case
from tests.ops.test_add import add_nodes
from tests.ops.test_conv2d import conv2d_nodes
from tests.ops.test_linear import linear_nodes
from tests.ops.test_matmul import matmul_nodes
from tests.ops.test_mul import mul_nodes
from tests.ops.test_quantize import quantize_nodes
from tests.ops.test_reduce import reduce_nodes
from tests.ops.test_softmax import of_one_type
from tinyet import ops
from tinyet.errors import UnsupportedOp
from tinyet.exporters.tflite.exporter import export_graph
from tinyet.ir import Array, DType, Graph, Node, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import requantize_half_even, round_half_even
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.linear import Linear
from tinyet.ops.mean import Mean
from tinyet.ops.quantize import Quantize
from tinyet.ops.requantize import Requantize
from tinyet.ops.softmax import Softmax
from tinyet.opset import signature
from tinyet.passes.fold_requantize import fold_requantize
from tinyet.passes.pointwise_to_linear import pointwise_to_linear

NODES = {
    "conv2d": conv2d_nodes(DType.INT8),
    "linear": linear_nodes(DType.INT8),
    "matmul": matmul_nodes(DType.INT8),
    "mean": reduce_nodes((Mean,), (DType.INT8,)),
    "mul": mul_nodes((DType.INT8,)),
    "add": add_nodes((DType.INT8,)),
    "quantize": quantize_nodes() | quantize_nodes(special=False),
    "softmax": of_one_type((DType.INT8,), scaled=True),
    "int32_accumulator": conv2d_nodes(DType.INT16),
}


WORDS = {
    "conv2d": ("half_even", "int32_accumulator"),
    "linear": ("half_even",),
    "matmul": ("half_even",),
    "mean": ("half_even",),
    "mul": ("half_even", "half_even_u8"),
    "add": ("half_even", "half_even_u8"),
    "quantize": ("half_even", "half_even_sum", "half_even_sum_u8"),
    "softmax": ("half_even",),
}
"""Roundings of an operator beside that of LiteRT."""

_TRIES = 8


def rounded_otherwise(case: Case) -> list[Case]:
    """The same by each other rounding that its operator has for its types."""
    found = []
    for word in WORDS.get(case.node.op, ()):
        attrs: Any = dataclasses.replace(case.node.attrs, rounding=word)  # type: ignore[call-arg]
        node = case.node.replace(attrs=attrs)
        if ops.op_of(node).check(node) is None:
            found.append(Case(node, case.inputs))
    return found


@st.composite
def half_even_nodes(draw: st.DrawFn, name: str) -> Case:
    """A node of the operator's own strategy that rounds otherwise; of nodes that cannot the next is drawn."""
    found = next((cases for _ in range(_TRIES) if (cases := rounded_otherwise(draw(NODES[name])))), [])
    assume(found)
    case = draw(st.sampled_from(found))
    forms = {"int32_accumulator": "s16_acc32", "quantize": "f32_s8_rne"}
    assert signature(case.node) == forms.get(name, "s8_rne")
    return case


def in_powers_of_two(case: Case) -> Case:
    """With such scales of values and weights, and weights and biases that are multiples of 64, so that many sums,
    products and means are halves."""

    def rounded(tensor: Tensor | None) -> Tensor | None:
        if tensor is None:
            return None
        quant, data = tensor.type.quant, tensor.data
        if quant is not None:
            scales = tuple(2.0 ** round(math.log2(scale)) for scale in quant.scale)
            quant = dataclasses.replace(quant, scale=scales)
        if data is not None and tensor.dtype in (DType.INT8, DType.INT32):
            data = data & np.array(~63, data.dtype)
        return Tensor(tensor.name, dataclasses.replace(tensor.type, quant=quant), data)

    inputs = {tensor: rounded(tensor) for tensor in case.node.inputs}
    out = rounded(case.node.output)
    assert out is not None
    made = case.node.replace(inputs=[inputs[tensor] for tensor in case.node.inputs], outputs=[out])
    return Case(made, case.inputs)


@st.composite
def _even(draw: st.DrawFn, nodes: st.SearchStrategy[Case]) -> Case:
    """Any of such nodes, rounded otherwise; of powers of two, too."""
    case = draw(nodes)
    found = rounded_otherwise(in_powers_of_two(case) if draw(st.booleans()) else case)
    assume(found)
    return draw(st.sampled_from(found))


def even(nodes: Callable[[], st.SearchStrategy[Case]]) -> st.SearchStrategy[Case]:
    return _even(nodes())


def even_too(nodes: Callable[[], st.SearchStrategy[Case]]) -> st.SearchStrategy[Case]:
    return st.one_of(nodes(), even(nodes))


@pytest.mark.parametrize("name", NODES)
def test_host(name: str) -> None:
    bodies.host(half_even_nodes(name))()


@pytest.mark.emulated
@pytest.mark.parametrize("name", NODES)
def test_emulated(name: str) -> None:
    """With floating-point units, and without."""
    check_library(half_even_nodes(name), examples=10)


def test_halves_go_to_even() -> None:
    np.testing.assert_array_equal(
        round_half_even([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e9]), [-2, -2, 0, 0, 2, 2, 1024]
    )
    # 16777217 is no float32: the sum itself is rounded to 16777216 first.
    np.testing.assert_array_equal(requantize_half_even([5, -5, 16777217], [0.5, 0.5, 2.0**-20]), [2, -2, 16])


def quantized(rounding: Any, values: Array, zero_point: int) -> list[int]:
    x = Tensor("x", TensorType(values.shape, DType.FLOAT32))
    out = Tensor("y", TensorType(values.shape, DType.INT8, QuantParams.per_tensor(0.5, zero_point)))
    (found,) = ops.evaluate(Node(Quantize(rounding), (x,), (out,)), [values])
    return [int(n) for n in found]


def test_what_is_rounded_is_another_number() -> None:
    """Halves to even before the zero point, or with it; beside a large zero point a float32 has fewer bits."""
    halves = np.array([0.25, 0.75, -0.25, np.nan, np.inf, -np.inf], np.float32)
    assert quantized("half_even", halves, 3) == [3, 5, 3, 3, 127, -128]
    assert quantized("half_even_sum", halves, 3) == [4, 4, 2, 3, 127, -128]
    assert quantized("half_even_sum_u8", halves, 3) == [4, 4, 2, 3, 127, -128]
    near = np.array([0.25 - 2.0**-23], np.float32)
    assert [quantized(w, near, 1)[0] for w in ("half_even", "half_even_sum", "half_even_sum_u8")] == [1, 1, 2]
    wide = Tensor("y", TensorType((1,), DType.INT16, QuantParams.per_tensor(0.5, 0)))
    node = Node(Quantize("half_even"), (Tensor("x", TensorType((1,), DType.FLOAT32)),), (wide,))
    assert "only int8" in (ops.op_of(node).check(node) or "")


def test_no_other_scale_is_quantized_to_even_in_integers() -> None:
    """A Quantize of a Dequantize is a Requantize, which rounds otherwise, but to the same scale nothing."""
    x = Tensor("x", TensorType((1,), DType.INT8, QuantParams.per_tensor(0.5, 0)))
    real = Tensor("r", TensorType((1,), DType.FLOAT32))
    for scale, rounding, stays in (
        (0.25, "half_even", True),
        (0.25, "half_away", False),
        (0.5, "half_even", False),
    ):
        out = Tensor("y", TensorType((1,), DType.INT8, QuantParams.per_tensor(scale, 0)))
        made: Any = Quantize(rounding)  # type: ignore[arg-type]
        graph = Graph("g", (x,), (out,), (Node(Dequantize(), (x,), (real,)), Node(made, (real,), (out,))))
        assert any(isinstance(n.attrs, Quantize) for n in fold_requantize(graph).nodes) is stays


def test_softmax_beyond_float32() -> None:
    """One exponential is so large that 1 / scale of it is no float32."""
    x = Tensor("x", TensorType((1, 1), DType.INT8, QuantParams.per_tensor(0.5, 3)))
    out = Tensor("y", TensorType((1, 1), DType.INT8, QuantParams.per_tensor(1 / 256, -128)))
    node = Node(Softmax(1, rounding="half_even"), (x,), (out,))
    assert "exceed float32" in (ops.op_of(node).check(node) or "")


def linear(rounding: Any) -> Node:
    x = Tensor("x", TensorType((1, 2), DType.INT8, QuantParams.per_tensor(0.5, 3)))
    out = Tensor("y", TensorType((1, 1), DType.INT8, QuantParams.per_tensor(0.5, 0)))
    w = constant("w", np.array([[1, 2]], np.int8), QuantParams.per_tensor(0.5, 0))
    return Node(Linear(rounding=rounding), (x, w, None), (out,))


def test_a_half_is_another_integer() -> None:
    """(1 * 1 + 0 * 2) / 2 is rounded to 0, not to 1."""
    x = np.array([[4, 3]], np.int8)
    (even,), (twice,) = (
        ops.evaluate(node, [x, node.input(1).array, None]) for node in (linear("half_even"), linear("double"))
    )
    assert (even.item(), twice.item()) == (0, 1)


def test_no_other_scale_is_folded_in() -> None:
    """What is asked for rounds twice: to the layer's own scale, and to the other."""
    for rounding, nodes in (("half_even", 2), ("double", 1)):
        node = linear(rounding)
        out = Tensor("z", TensorType((1, 1), DType.INT8, QuantParams.per_tensor(0.25, 0)))
        graph = Graph("g", (node.input(0),), (out,), (node, Node(Requantize(), (node.output,), (out,))))
        assert len(fold_requantize(graph).nodes) == nodes


def test_sums_of_other_types_are_refused() -> None:
    node = linear("half_even")
    narrow = constant("w", np.array([[1, 2]], np.int8), QuantParams.per_tensor(0.5, 0), DType.INT4)
    other = node.replace(inputs=(node.input(0), narrow, None))
    assert "int4" in (ops.op_of(other).check(other) or "")


def short(weight: int, out_scale: float = 0.5, dtype: DType = DType.INT16) -> Node:
    """A convolution of 600 channels, all of whose weights are the same."""
    x = Tensor("x", TensorType((1, 1, 1, 600), dtype, QuantParams.per_tensor(0.5, 0)))
    out = Tensor("y", TensorType((1, 1, 1, 1), dtype, QuantParams.per_tensor(out_scale, 0)))
    w = constant("w", np.full((1, 1, 1, 600), weight, np.int8), QuantParams.per_tensor(0.5, 0))
    return Node(Conv2d(rounding="int32_accumulator"), (x, w, None), (out,))


def test_short_sums_fit_in_32_bits() -> None:
    check = ops.op_of(short(1)).check
    assert check(short(109)) is None
    assert "overflow" in (check(short(110)) or "")
    assert "too small" in (check(short(109, 2.0**-4)) or "")
    assert "as they are" in (check(short(1, dtype=DType.INT8)) or "")
    graph = Graph("g", (short(1).input(0),), (short(1).output,), (short(1),))
    with pytest.raises(UnsupportedOp, match="have 32 bits"):
        export_graph(graph)
    assert pointwise_to_linear(graph).nodes == graph.nodes


def test_no_file_of_another_tool_rounds_so() -> None:
    node = linear("half_even")
    graph = Graph("g", (node.input(0),), (node.output,), (node,))
    with pytest.raises(UnsupportedOp, match="linear: it is rounded to even"):
        export_graph(graph)
