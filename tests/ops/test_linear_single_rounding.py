# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, expected, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.ir import DType, Node, QuantParams, constant
from tinyet.ops import linear_single_rounding
from tinyet.ops.linear_single_rounding import LinearSingleRounding


@st.composite
def linear_single_rounding_nodes(draw: st.DrawFn, clamps: tuple[int, ...] = (0, 1, 2, 3)) -> Case:
    """A third of them with scales that are powers of two, where halves are frequent."""
    kind = draw(st.sampled_from((DType.INT8, DType.INT16)))
    lead = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    depth, count = draw(st.integers(1, 40)), draw(st.integers(1, 13))
    if draw(st.sampled_from((True, False, False))):
        x = tensor("x", (*lead, depth), kind, 0.5, draw(drawing.zero_points) if kind is DType.INT8 else 0)
        numbers = drawing.random(draw).integers(-9, 10, (count, depth)).astype(np.int8)
        w = constant("w", numbers, QuantParams.per_tensor(0.25, 0))
        quant: QuantParams | None = QuantParams.per_tensor(1.0 if kind is DType.INT8 else 0.25, 0)
    else:
        x = draw(drawing.activations("x", (*lead, depth), kind))
        w = draw(drawing.weights((count, depth), kind))
        quant = draw(drawing.quants_of_sums(x, w))
    attrs = LinearSingleRounding(drawing.CLAMPS[draw(st.sampled_from(clamps))])
    bias = draw(drawing.biases(count, DType.INT8))
    if bias is not None and kind is DType.INT16:
        bias = constant("bias", bias.array.astype(np.int64) * 1000)
    node = drawing.node_of(attrs, [x, w, bias], quant)
    assume(ops.op_of(node).check(node) is None)
    return Case(node, (drawing.data(drawing.random(draw), x.shape, kind),))


test_host = bodies.host(linear_single_rounding_nodes())


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(linear_single_rounding_nodes((0, 1, 2)))
def test_litert(case: Case) -> None:
    node = case.node
    x, w, out = node.input(0).type, node.input(1), node.output.type
    assert w.type.quant is not None
    rows = case.inputs[0].reshape(-1, x.shape[-1])
    values, element = drawing.bias_values(node), x.dtype.numpy
    scales = [x.scale * s for s in w.type.quant.scale]
    inputs = [
        litert.TensorSpec(rows.shape, element, x.scale, x.zero_point, data=rows),
        litert.TensorSpec(w.shape, np.int8, w.type.quant.scale, 0, data=w.array),
        litert.TensorSpec(values.shape, values.dtype, scales, 0, data=values),
    ]
    name = ("NONE", "RELU", "RELU6")[drawing.CLAMPS.index(node.attrs.clamp)]  # type: ignore[attr-defined]
    output = litert.TensorSpec((len(rows), out.shape[-1]), element, out.scale, out.zero_point)
    (want,) = litert.run("FULLY_CONNECTED", inputs, [output], activation=name)
    np.testing.assert_array_equal(drawing.reference(case), want.reshape(out.shape))


@given(st.floats(2.0**-30, 2.0**20), st.integers(0, 2**31 - 1))
def test_the_multiplier_is_exact(factor: float, size: int) -> None:
    multiplier, shift = linear_single_rounding.exact(factor)
    assert multiplier.bit_length() == 63
    assert math.ldexp(multiplier, -(shift + 32)) == factor
    # The kernel's two words: what is below the lowest 32 bits of the product never counts.
    high, low, half = multiplier >> 32, multiplier & 0xFFFFFFFF, 1 << (shift + 31)
    wanted = (size * multiplier + half) >> (shift + 32)
    assert (size * high + (size * low >> 32) + (half >> 32)) >> shift == wanted


@pytest.mark.parametrize("number", [3, 7, 11, 25])
def test_halves_that_only_float64_has(number: int) -> None:
    """A factor just below a half of `number`: exactly, no multiple is a half; in float64 many are."""
    factor = 0.5 / number
    if Fraction(factor) * number >= Fraction(1, 2):
        factor = float(np.nextafter(factor, 0))
    found = linear_single_rounding.stored(factor, 10_000, DType.INT8)
    assert found is not None
    multiplier, shift = found
    for size in range(10_000):
        rest, whole = math.modf(size * factor)
        wanted = int(whole) + (rest >= 0.5)
        if wanted <= 255:
            assert (size * multiplier + (1 << (shift + 31))) >> (shift + 32) == wanted


def node(
    kind: DType = DType.INT8, out_scale: float = 0.1, w_kind: DType = DType.INT8, depth: int = 4
) -> Node:
    x = tensor("x", (2, depth), kind, None if kind is DType.FLOAT32 else 0.1)
    numbers = np.full((3, depth), 7, np.int8)
    w = constant("w", numbers, QuantParams.per_tensor(0.1, 0), w_kind)
    quant = None if kind is DType.FLOAT32 else QuantParams.per_tensor(out_scale, 0)
    return drawing.node_of(LinearSingleRounding(), [x, w, None], quant)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: node(DType.FLOAT32), "that is linear"),
        (lambda: node(w_kind=DType.INT4), "weights must be int8"),
        (lambda: node(DType.INT16, depth=12000), "overflow 32 bits"),
        (lambda: node(out_scale=1e30), "too far"),
    ],
)
def test_type_errors(made: Callable[[], Node], words: str) -> None:
    case = made()
    assert words in (ops.op_of(case).check(case) or "")


def test_halves_go_away_from_zero() -> None:
    x = tensor("x", (1, 1), DType.INT8, 1.0)
    w = constant("w", np.array([[1], [-1], [3]], np.int8), QuantParams.per_tensor(1.0, 0))
    case = drawing.node_of(LinearSingleRounding(), [x, w, None], QuantParams.per_tensor(2.0, 0))
    assert expected(case, [np.array([[1]], np.int8)])[0].tolist() == [[1, -1, 2]]
