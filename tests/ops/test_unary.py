# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.calls.exact import assert_kernels
from tests.ops import bodies, elementwise
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet.ir import DType, Node, QuantParams
from tinyet.numerics import float32, quantize_multiplier
from tinyet.ops.shared.unary_functions import FUNCTIONS, FunctionName
from tinyet.ops.shared.unary_s16 import JUMPING
from tinyet.ops.unary import OP, Unary
from tinyet.opset import complaints

torch = pytest.importorskip("torch")


@st.composite
def attributes(draw: st.DrawFn, functions: tuple[FunctionName, ...] = tuple(FUNCTIONS)) -> Unary:
    function = draw(st.sampled_from(functions))
    alpha = draw(st.sampled_from((0.5, 1.0, 3.0, -1.5 if function == "pow" else 0.1, 2.5)))
    return Unary(function, alpha, 20.0 if function == "softplus" else 0.7)


def unary_nodes(dtypes: tuple[DType, ...] = elementwise.ALL) -> st.SearchStrategy[Case]:
    return elementwise.single(attributes(), dtypes)


SOME_INT16 = np.append(np.arange(-32768, 32768, 128) + np.arange(512) % 128, 32767).astype(np.int16)


def every_function(dtype: DType, seed: int) -> list[Case]:
    """All functions on all int8 values, on int16 values, or on floats of all sizes."""
    cases = []
    for i, function in enumerate(FUNCTIONS):
        if dtype is DType.INT16:
            if function not in JUMPING:
                x, y = tensor("x", (513,), dtype, 2e-4), tensor("y", (513,), dtype, 3e-4)
                cases.append(Case(Node(Unary(function, 1.25, 20.0), (x,), (y,)), (SOME_INT16,)))
            continue
        scale = 0.05 if dtype is DType.INT8 else None
        x, y = tensor("x", (256,), dtype, scale, -20), tensor("y", (256,), dtype, scale, 3)
        data = np.arange(256).astype(np.int8) if dtype is DType.INT8 else elementwise.floats((256,), seed + i)
        cases.append(Case(Node(Unary(function, 1.25, 20.0), (x,), (y,)), (data,)))
    return cases


@pytest.mark.parametrize("dtype", elementwise.ALL)
def test_every_function(dtype: DType) -> None:
    assert_kernels(every_function(dtype, 1))


test_host = bodies.host(unary_nodes())


LITERT: dict[str, FunctionName] = {
    "LOGISTIC": "sigmoid",
    "TANH": "tanh",
    "EXP": "exp",
    "LOG": "log",
    "ABS": "abs",
    "ELU": "elu",
    "GELU": "gelu",
    "HARD_SWISH": "hardswish",
    "LEAKY_RELU": "leaky_relu",
    "SQRT": "sqrt",
    "RSQRT": "rsqrt",
}
# LiteRT insists on these output quantizations.
FIXED = {"LOGISTIC": QuantParams.per_tensor(1 / 256, -128), "TANH": QuantParams.per_tensor(1 / 128, 0)}
# Its fixed-point roots are not the nearest values.
TOLERANCE = {"SQRT": 1, "RSQRT": 1}


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@pytest.mark.parametrize("name", LITERT)
def test_litert(name: str) -> None:
    rng = np.random.default_rng(len(name))
    data = np.arange(256).astype(np.int8)
    compared = 0
    for _ in range(40):
        scales = [float(np.float32(s)) for s in np.exp(rng.uniform(-6, -1, 2))]
        # Negative numbers, which LiteRT refuses for these, do not exist with this zero point.
        zero_point = -128 if name in ("LOG", "SQRT", "RSQRT") else int(rng.integers(-128, 128))
        quant = FIXED.get(name, QuantParams.per_tensor(scales[1], int(rng.integers(-128, 128))))
        alpha = float(np.float32(rng.choice([0.1, 0.01, 0.3, -0.2, 1.5]))) if name == "LEAKY_RELU" else 1.0
        x = tensor("x", (256,), DType.INT8, scales[0], zero_point)
        y = tensor("y", (256,), DType.INT8, quant.one_scale, quant.one_zero_point)
        if name == "HARD_SWISH":
            # It refuses left shifts, and is undefined for right shifts of 16 bits and more.
            ratio = np.float32(np.float32(scales[0]) * np.float32(1 / 128)) / np.float32(scales[1])
            if not -15 <= quantize_multiplier(float(ratio)).shift <= 0:
                continue
        case = Case(Node(Unary(LITERT[name], alpha), (x,), (y,)), (data,))
        options = {"alpha": alpha} if name == "LEAKY_RELU" else {}
        want = elementwise.run_litert(name, case, **options).astype(int)
        assert np.abs(elementwise.reference(case).astype(int) - want).max() <= TOLERANCE.get(name, 0)
        compared += 1
    assert compared >= 20


# In int16 its tables are of another accuracy than ours where it takes roots in float32.
LITERT_INT16 = {
    "LOGISTIC": 0,
    "TANH": 0,
    "EXP": 0,
    "LOG": 0,
    "ABS": 0,
    "GELU": 0,
    "LEAKY_RELU": 0,
    "RSQRT": 1,
}


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@pytest.mark.parametrize("name", LITERT_INT16)
def test_litert_int16(name: str) -> None:
    """All int16 values; of those on tables, what lies on pieces that stay in the output's range and do not climb by
    32768 or more: beyond these, LiteRT's 16-bit slopes overflow."""
    rng, compared = np.random.default_rng(len(name)), 0
    for i in range(24):
        x_scale, y_scale = (float(np.float32(s)) for s in np.exp(rng.uniform((-12, -12), (-5, -6))))
        if name in ("LOGISTIC", "TANH"):
            x_scale = ([2.0**-12, 2.0**-11, 2.0**-12 * 1.0005, 2.0**-13] + [x_scale] * 24)[i]
            y_scale = 2.0**-15
        # LiteRT refuses negative numbers here.
        first = {"LOG": 0, "RSQRT": 1}.get(name, -32768)
        data = np.arange(first, 32768).astype(np.int16)
        alpha = float(np.float32(rng.choice([0.1, 0.01, 0.3, -0.2, 1.5]))) if name == "LEAKY_RELU" else 1.0
        x, y = tensor("x", data.shape, DType.INT16, x_scale), tensor("y", data.shape, DType.INT16, y_scale)
        case = Case(Node(Unary(LITERT[name], alpha), (x,), (y,)), (data,))
        if OP.check(case.node) is not None:
            continue
        want = elementwise.run_litert(name, case, **({"alpha": alpha} if name == "LEAKY_RELU" else {}))
        difference = np.abs(elementwise.reference(case).astype(int) - want)
        if name in ("EXP", "LOG", "GELU", "RSQRT"):
            with np.errstate(all="ignore"):
                ends = x_scale * 128.0 * np.stack([data >> 7, (data >> 7) + 1])
                steps = FUNCTIONS[LITERT[name]].exact(ends, 0, 0) / y_scale
            tame = np.all(np.abs(steps) < 32767, axis=0) & (np.abs(steps[1] - steps[0]) < 32767)
            difference = difference[tame]
        compared += difference.size
        assert difference.max(initial=0) <= LITERT_INT16[name]
    assert compared > 100_000


def test_int16_tables_are_accurate() -> None:
    """Against float64: within five steps of the output, which a sine over one and a half periods needs."""
    cases: tuple[tuple[FunctionName, float, float], ...] = (
        ("gelu", 4 / 32768, 4 / 32768),
        ("silu", 8 / 32768, 8 / 32768),
        ("exp", 2 / 32768, 8 / 32768),
        ("sin", 3 / 32768, 1 / 32767),
        ("sigmoid", 6 / 32768, 1 / 30000),
    )
    for function, x_scale, y_scale in cases:
        data = np.arange(-32768, 32768).astype(np.int16)
        x, y = tensor("x", data.shape, DType.INT16, x_scale), tensor("y", data.shape, DType.INT16, y_scale)
        got = elementwise.reference(Case(Node(Unary(function), (x,), (y,)), (data,)))
        exact = FUNCTIONS[function].exact(data.astype(np.float64) * float(np.float32(x_scale)), 0, 0) / float(
            np.float32(y_scale)
        )
        assert np.abs(got - exact.clip(-32768, 32767)).max() < 5, function


def test_jumping_functions_have_no_int16_form() -> None:
    x = tensor("x", (4,), DType.INT16, 1e-3)
    for function in JUMPING:
        assert "jumps" in str(OP.check(Node(Unary(function), (x,), (x,))))


def test_undefined_arguments_saturate() -> None:
    """-1, 0 and 1 in int8 with scale 1: logarithms, roots and reciprocals."""
    x = np.array([-1, 0, 1], np.int8)
    wanted: dict[FunctionName, list[int]] = {
        "log": [-128, -128, 5],
        "log1p": [-128, 5, 6],
        "sqrt": [5, 5, 6],
        "rsqrt": [127, 127, 6],
        "reciprocal": [4, 127, 6],
    }
    for function, outputs in wanted.items():
        node = Node(
            Unary(function), (tensor("x", (3,), scale=1.0),), (tensor("y", (3,), scale=1.0, zero_point=5),)
        )
        assert elementwise.reference(Case(node, (x,))).tolist() == outputs, function


TORCH = {
    "abs": torch.abs,
    "ceil": torch.ceil,
    "celu": lambda x: torch.nn.functional.celu(x, 1.25),
    "cos": torch.cos,
    "elu": lambda x: torch.nn.functional.elu(x, 1.25),
    "erf": torch.erf,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "floor": torch.floor,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "hardshrink": lambda x: torch.nn.functional.hardshrink(x, 1.25),
    "hardsigmoid": torch.nn.functional.hardsigmoid,
    "hardswish": torch.nn.functional.hardswish,
    "leaky_relu": lambda x: torch.nn.functional.leaky_relu(x, 1.25),
    "log": torch.log,
    "log1p": torch.log1p,
    "mish": torch.nn.functional.mish,
    "neg": torch.neg,
    "pow": lambda x: torch.pow(x, 1.25),
    "reciprocal": torch.reciprocal,
    "round": torch.round,
    "rsqrt": torch.rsqrt,
    "selu": torch.nn.functional.selu,
    "sigmoid": torch.sigmoid,
    "sign": torch.sign,
    "silu": torch.nn.functional.silu,
    "sin": torch.sin,
    "softplus": lambda x: torch.nn.functional.softplus(x, 1.25, 20.0),
    "softshrink": lambda x: torch.nn.functional.softshrink(x, 1.25),
    "sqrt": torch.sqrt,
    "square": torch.square,
    "tanh": torch.tanh,
    "threshold": lambda x: torch.nn.functional.threshold(x, 1.25, 20.0),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_torch(function: FunctionName) -> None:
    """Against PyTorch in float64, where float32 can hold the result: 2e-6 of it, and 3e-7 where terms cancel
    or a result is next to nothing (gelu far below 0)."""
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.normal(0, 2, 4000), rng.uniform(-30, 30, 1000), [0.0, 0.5, 1.5, -2.5]]).astype(
        np.float32
    )
    case = Case(Node(Unary(function, 1.25, 20.0), (tensor("x", x.shape, DType.FLOAT32),), ()), (x,))
    node = case.node.replace(outputs=[tensor("y", x.shape, DType.FLOAT32)])
    got = elementwise.reference(Case(node, (x,)))
    want = TORCH[function](torch.from_numpy(x).double()).numpy()
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=3e-7)


# Largest error against float64 in units in the last place, with some room above what was measured.
ULPS = {
    "exp": 1.1,
    "expm1": 1.6,
    "log": 1.0,
    "log1p": 1.0,
    "sin": 1.7,
    "cos": 1.7,
    "tanh": 1.5,
    "sigmoid": 2.4,
    "erf": 1.4,
    "sqrt": 0.5,
}


@pytest.mark.parametrize("function", ULPS)
def test_accuracy(function: str) -> None:
    """On every kind of float32: any bits at all, and the range where the function lives."""
    rng = np.random.default_rng(3)
    anything = rng.integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    ranges = np.concatenate([rng.uniform(-110, 110, 200_000), rng.normal(0, 1, 200_000)]).astype(np.float32)
    x = np.concatenate([anything, ranges])
    with np.errstate(all="ignore"):
        got = getattr(float32, function)(x)
        exact = x.astype(np.float64)
        if function == "sigmoid":
            want = 1 / (1 + np.exp(-exact))
        elif function == "erf":
            want = torch.erf(torch.from_numpy(exact)).numpy()
        else:
            want = getattr(np, function)(exact)
    assert elementwise.ulp_error(got, want).max() <= ULPS[function]


def test_power_accuracy() -> None:
    rng = np.random.default_rng(3)
    anything = rng.integers(0, 2**32, (2, 100_000), dtype=np.uint64).astype(np.uint32).view(np.float32)
    special = np.array(
        [0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, math.inf, -math.inf, math.nan, 1e-45, 2.0**24, 2.0**24 - 1]
    )
    pairs = np.array(np.meshgrid(special, special)).reshape(2, -1).astype(np.float32)
    near_one = np.stack([rng.uniform(0.9, 1.1, 100_000), rng.uniform(-900, 900, 100_000)]).astype(np.float32)
    usual = np.stack([np.exp(rng.uniform(-20, 20, 100_000)), rng.uniform(-6, 6, 100_000)]).astype(np.float32)
    x, y = np.concatenate([anything, pairs, near_one, usual], axis=1)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
        assert elementwise.ulp_error(float32.power(x, y), want).max() <= 1.3


def test_refusals() -> None:
    x, y = tensor("x", (2,), DType.FLOAT32), tensor("y", (2,), DType.FLOAT32)
    assert set(get_args(FunctionName)) == set(FUNCTIONS)
    tan = Unary("tan")  # type: ignore[arg-type]
    assert complaints(OP, Node(tan, (x,), (y,))) == ["function is 'tan'"]
    assert "parameters inf" in str(OP.check(Node(Unary("elu", math.inf), (x,), (y,))))
    assert "divides by" in str(OP.check(Node(Unary("celu"), (x,), (y,))))
