# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, DType, Node, QuantParams, constant
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.ops.shared import dynamic

SPECIAL = np.array([0.0, -0.0, 1e30, -1e30, math.inf, -math.inf, math.nan, 1e-40], np.float32)


def inputs(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> npt.NDArray[np.float32]:
    """Input data: of both signs or one, tiny (the smallest scale counts), zeros, or with what is no finite number."""
    data = drawing.float_data(rng, shape)
    if kind == "positive":
        return np.abs(data) + np.float32(0.5)
    if kind == "negative":
        return -np.abs(data)
    if kind == "tiny":
        return (data * np.float32(1e-7)).astype(np.float32)
    if kind == "symmetric":  # low / scale is a half then
        return np.where(data < 0, np.float32(-2), np.float32(2))
    if kind == "zeros":
        return np.zeros(shape, np.float32)
    if kind == "special":
        return np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), data).astype(np.float32)
    return data


KINDS = ("plain", "plain", "positive", "negative", "tiny", "symmetric", "zeros", "special")
RULES: tuple[dynamic.Rule, ...] = get_args(dynamic.Rule)


@st.composite
def dynamic_linear_nodes(
    draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, rules: tuple[dynamic.Rule, ...] = RULES
) -> Case:
    rule = draw(st.sampled_from(rules))
    lead = tuple(draw(st.lists(st.integers(1, 1 if rule in dynamic.LITERT else 3), max_size=2)))
    depth, count = draw(st.integers(1, 40)), draw(st.integers(1, 13))
    x = tensor("x", (*lead, depth), DType.FLOAT32)
    w = draw(drawing.weights((count, depth), DType.INT8))
    bias = draw(drawing.biases(count, DType.FLOAT32))
    eps = draw(st.sampled_from((dynamic.DEFAULT_EPS, 2.0**-12)))
    node = drawing.node_of(DynamicLinear(draw(st.sampled_from(drawing.CLAMPS)), eps, rule), [x, w, bias])
    return Case(node, (inputs(drawing.random(draw), x.shape, draw(st.sampled_from(kinds))),))


test_host = bodies.host(dynamic_linear_nodes())


def torch_params(x: Array, eps: float) -> tuple[float, int]:
    """What torch's graphs compute while they run."""
    torch = pytest.importorskip("torch")
    from torch.ao.quantization.fx import _decomposed  # noqa: F401 - registers the operators

    choose = torch.ops.quantized_decomposed.choose_qparams.tensor
    scale, zero_point = choose(torch.from_numpy(x), -128, 127, eps, torch.int8)
    return float(scale), int(zero_point)


@drawing.quick
@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS[:-1]), st.floats(1e-9, 1e9), st.integers(1, 40))
def test_parameters_are_torchs(seed: int, kind: str, size: float, count: int) -> None:
    """Bit for bit: the same scale, the same zero point."""
    x = (inputs(np.random.default_rng(seed), (count,), kind) * np.float32(size)).astype(np.float32)
    scale, zero_point = dynamic.choose_params(x, dynamic.DEFAULT_EPS)
    assert (float(scale), zero_point) == torch_params(x, dynamic.DEFAULT_EPS)


@pytest.mark.parametrize(
    ("low", "high", "zero_point"),
    [(-127.5, 127.5, 0), (-126.5, 128.5, -2), (-3.0, 0.0, 127), (0.0, 3.0, -128), (5.0, 6.0, -128)],
)
def test_zero_points(low: float, high: float, zero_point: int) -> None:
    """The range always holds 0; -127.5 becomes -128 and -126.5 becomes -126: halves go to the even side."""
    assert dynamic.choose_params(np.array([low, high], np.float32), 1e-7)[1] == zero_point


@drawing.quick
@given(dynamic_linear_nodes(KINDS[:-1], RULES[:1]))
def test_torch(case: Case) -> None:
    """Against the same steps in torch. Its numbers can be one off where ours are, which is at most one step of x
    for each weight; and its sums are floats."""
    torch = pytest.importorskip("torch")
    node, x = case.node, case.inputs[0]
    attrs, w, bias = node.attrs, node.input(1), node.optional_input(2)
    assert isinstance(attrs, DynamicLinear)
    scale, zero_point = torch_params(x, attrs.eps)
    library = torch.ops.quantized_decomposed
    numbers = library.quantize_per_tensor.default(
        torch.from_numpy(x), scale, zero_point, -128, 127, torch.int8
    )
    real = library.dequantize_per_tensor.default(numbers, scale, zero_point, -128, 127, torch.int8).numpy()
    scales = dynamic.weight_scales(node).astype(np.float64)
    weights = w.array.astype(np.float64) * scales[:, None]
    wanted = real.astype(np.float64) @ weights.T + (0 if bias is None else bias.array)
    ours = dynamic.quantized(x, np.float32(scale), zero_point)
    moved = (ours != numbers.numpy()).astype(np.float64)
    allowed = 1.0001 * scale * moved @ np.abs(weights).T + 1e-5 * (np.abs(real) @ np.abs(weights).T + 1)
    assert np.all(np.abs(drawing.reference(case) - np.clip(wanted, *attrs.clamp)) <= allowed)


def test_by_hand() -> None:
    """-1 … 1.55: scale 0.01, zero point -28; 0.5 is 22, and 0.5 * 0.02 * 100 + 0.25 = 1.25."""
    x = tensor("x", (3,), DType.FLOAT32)
    w = constant("w", np.array([[0, 0, 100], [0, 100, 0]], np.int8), QuantParams.per_tensor(0.02, 0))
    b = constant("b", np.array([0.25, 0.0], np.float32))
    node = Node(DynamicLinear(), (x, w, b), (tensor("y", (2,), DType.FLOAT32),))
    out = drawing.reference(Case(node, (np.array([-1.0, 1.55, 0.5], np.float32),)))
    np.testing.assert_allclose(out, [1.25, 3.1], rtol=1e-6)


def test_no_finite_range() -> None:
    """An infinite input has an infinite scale: what it is multiplied into is NaN, as in float, and nothing crashes."""
    w = constant("w", np.ones((1, 2), np.int8), QuantParams.per_tensor(0.5, 0))
    node = Node(DynamicLinear(), (tensor("x", (2,), DType.FLOAT32), w), (tensor("y", (1,), DType.FLOAT32),))
    for x in ([math.inf, 1.0], [-math.inf, math.inf], [3e38, -3e38]):
        assert np.isnan(drawing.reference(Case(node, (np.array(x, np.float32),))))
    nan = drawing.reference(Case(node, (np.array([math.nan, 2.0], np.float32),)))
    assert nan.tolist() == [1.0]  # NaN counts as 0


def test_type_rule() -> None:
    x, y = tensor("x", (4,), DType.FLOAT32), tensor("y", (2,), DType.FLOAT32)
    weights = np.ones((2, 4), np.int8)
    good = constant("w", weights, QuantParams((0.1, 0.2), (0, 0), 0))
    bias = constant("b", np.zeros(2, np.float32))
    node = Node(DynamicLinear(), (x, good, bias), (y,))
    check: Any = ops.op_of(node).check
    assert check(node) is None
    wrong = {
        "constants": (x, tensor("w", (2, 4), scale=0.1), None),
        "gives float32": (tensor("x", (4,), scale=0.1), good, bias),
        "must be int8": (x, constant("w", weights.astype(np.float32)), bias),
        "bias must be float32": (x, good, constant("b", np.zeros(2, np.int32))),
        "symmetrically": (x, constant("w", weights, QuantParams.per_tensor(0.1, 1)), bias),
        "output channel": (x, constant("w", weights, QuantParams((0.1,) * 4, (0,) * 4, 1)), bias),
    }
    for words, given_ in wrong.items():
        assert words in (check(node.replace(inputs=given_)) or "")
    for eps in (0.0, -1.0, math.inf, math.nan):
        assert "smallest scale" in (check(node.replace(attrs=DynamicLinear(eps=eps))) or "")
    long = constant("w", np.full((1, 67000), 127, np.int8), QuantParams.per_tensor(0.1, 0))
    wide = Node(
        DynamicLinear(), (tensor("x", (67000,), DType.FLOAT32), long), (tensor("y", (1,), DType.FLOAT32),)
    )
    assert "overflow" in (check(wide) or "")


def test_shapes_are_those_of_linear() -> None:
    w = constant("w", np.ones((3, 4), np.int8), QuantParams.per_tensor(0.1, 0))
    with pytest.raises(UnsupportedShape, match="weights for 4 inputs"):
        ops.infer(Node(DynamicLinear(), (tensor("x", (2, 5), DType.FLOAT32), w), (tensor("y", (1,)),)))
