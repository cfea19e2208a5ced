# SPDX-License-Identifier: Apache-2.0
"""What the hypothesis strategies of operators share: data with edge values, quantization, images, windows."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st

from tests.ops.cases import Case
from tests.oracle import litert
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, QuantParams, Shape, Tensor, TensorType, constant
from tinyet.ops.shared.pooling import Pool
from tinyet.ops.shared.window import Window

CLAMPS = ((-math.inf, math.inf), (0.0, math.inf), (0.0, 6.0), (-1.0, 1.0))

called = settings(max_examples=120, deadline=None)
"""For tests that let the call server make calls: no compiler runs, so there are many examples, each of one case."""

compiled = settings(max_examples=6, deadline=None)
"""For tests that compile and run one model an example: few examples, each of many cases."""

emulated = settings(
    max_examples=2,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
    database=None,
)
"""For tests that build and run one firmware an example."""

quick = settings(max_examples=60, deadline=None)
"""For tests that stay in Python (the reference against LiteRT or torch)."""

exists = settings(max_examples=200, deadline=None, phases=(Phase.generate,), database=None)
"""For `hypothesis.find`: that there is such a case is the answer, however large it is."""


SEEDS = st.integers(0, 2**32 - 1)


def random(draw: st.DrawFn) -> np.random.Generator:
    """The source of bulk data: hypothesis draws its seed only."""
    return np.random.default_rng(draw(SEEDS))


def int8_data(rng: np.random.Generator, shape: Shape) -> Array:
    """Uniform int8 with both edges frequent."""
    return integer_data(rng, shape, DType.INT8)


def integer_data(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    """Uniform integers with both edges frequent."""
    low, high = dtype.range
    values, edge = rng.integers(low, high + 1, shape), rng.random(shape)
    return np.asarray(np.where(edge < 0.05, low, np.where(edge > 0.95, high, values)), dtype.numpy)


def float_data(rng: np.random.Generator, shape: Shape) -> npt.NDArray[np.float32]:
    return (rng.standard_normal(shape) * 3).astype(np.float32)


def data(rng: np.random.Generator, shape: Shape, dtype: DType) -> Array:
    return float_data(rng, shape) if dtype is DType.FLOAT32 else integer_data(rng, shape, dtype)


zero_points = st.one_of(st.sampled_from((-128, 0, 127)), st.integers(-128, 127))
scales = st.floats(1e-3, 0.5)


@functools.cache
@st.composite
def quants(draw: st.DrawFn, dtype: DType = DType.INT8) -> QuantParams | None:
    """One scale a tensor: any zero point in int8, 0 and a finer scale in int16; None in float32."""
    if dtype is DType.FLOAT32:
        return None
    if dtype is DType.INT16:
        return QuantParams.per_tensor(draw(st.floats(1e-5, 1e-2)), 0)
    return QuantParams.per_tensor(draw(scales), draw(zero_points))


@st.composite
def quants_of_sums(draw: st.DrawFn, x: Tensor, weights: Tensor) -> QuantParams | None:
    """The quantization of a layer's output: any, but in int16 (whose layers refuse scales that are far too small) one
    that the sums fill about."""
    if x.dtype is not DType.INT16:
        return draw(quants(x.dtype))
    assert weights.type.quant is not None
    deviation = 70 * 20000 * math.sqrt(weights.array[0].size) * max(weights.type.quant.scale) * x.type.scale
    return QuantParams.per_tensor(deviation * draw(st.floats(0.2, 4)) / 32768, 0)


@st.composite
def activations(draw: st.DrawFn, name: str, shape: Shape, dtype: DType) -> Tensor:
    return Tensor(name, TensorType(shape, dtype, draw(quants(dtype))))


@st.composite
def weights(draw: st.DrawFn, shape: Shape, dtype: DType) -> Tensor:
    """Constant weights of a layer with `dtype` activations: int8 for integers, along axis 0 or per tensor."""
    rng = random(draw)
    if dtype is DType.FLOAT32:
        return constant("weights", float_data(rng, shape))
    count = shape[0] if draw(st.booleans()) else 1
    quant = QuantParams(tuple(rng.uniform(1e-3, 0.05, count)), (0,) * count, 0 if count == shape[0] else None)
    return constant("weights", int8_data(rng, shape), quant)


@st.composite
def biases(draw: st.DrawFn, count: int, dtype: DType) -> Tensor | None:
    rng = random(draw)
    if draw(st.booleans()):
        return None
    if dtype is DType.FLOAT32:
        return constant("bias", float_data(rng, (count,)))
    if dtype is DType.INT16:
        return constant("bias", rng.integers(-(2**32), 2**32, count).astype(np.int64))
    return constant("bias", rng.integers(-20000, 20000, count).astype(np.int32))


def bias_values(node: Node) -> Array:
    """The bias of a layer as LiteRT wants it: zeros where the node has none; int64 beside int16 activations."""
    bias, dtype = node.optional_input(2), np.int64 if node.output.dtype is DType.INT16 else np.int32
    return np.zeros(node.output.shape[-1], dtype) if bias is None else bias.array


images = st.tuples(st.integers(1, 2), st.integers(1, 9), st.integers(1, 9))
"""(batch, height, width)"""


@st.composite
def windows(
    draw: st.DrawFn, height: int, width: int, kernel: int = 4, dilation: int = 2, inside: bool = False
) -> dict[str, int]:
    """Attributes of a Window that fits, its kernel too; inside: pads are smaller than the window."""
    found: dict[str, int] = {}
    for letter, size, sides in (("h", height, ("top", "bottom")), ("w", width, ("left", "right"))):
        step, taps = draw(st.integers(1, dilation)), draw(st.integers(1, kernel))
        pads = [draw(st.integers(0, min(2, step * (taps - 1)) if inside else 2)) for _ in sides]
        found |= {f"pad_{side}": pad for side, pad in zip(sides, pads, strict=True)}
        found[f"dilation_{letter}"] = step
        found[f"kernel_{letter}"] = min(taps, (size + sum(pads) - 1) // step + 1)
        found[f"stride_{letter}"] = draw(st.integers(1, 3))
    return found


def node_of(attrs: Attrs, inputs: Sequence[Tensor | None], quant: QuantParams | None = None) -> Node:
    """The node with an output as inferred, of input 0's dtype; drawn again where the shapes do not fit."""
    first = inputs[0]
    assert first is not None
    node = Node(attrs, tuple(inputs), (Tensor("y", TensorType((), first.dtype, quant)),))
    try:
        shape = ops.infer(node)[0]
    except UnsupportedShape:
        assume(False)
    return node.replace(outputs=[Tensor("y", TensorType(shape, first.dtype, quant))])


def many(cases: st.SearchStrategy[Case]) -> st.SearchStrategy[list[Case]]:
    """Enough cases for one compilation."""
    return st.lists(cases, min_size=12, max_size=24)


def reference(case: Case) -> npt.NDArray[Any]:
    """The first output of the case's reference."""
    rest = iter(case.inputs)
    return ops.evaluate(
        case.node, [t if t is None else t.array if t.is_constant else next(rest) for t in case.node.inputs]
    )[0]


def padded(case: Case, fill: float) -> Array:
    """The case's NHWC input with its window's padding filled: for oracles that know no explicit padding."""
    a = case.node.attrs
    assert isinstance(a, Window)
    pads = ((0, 0), (a.pad_top, a.pad_bottom), (a.pad_left, a.pad_right), (0, 0))
    return np.pad(case.inputs[0], pads, constant_values=fill)


def litert_pool(name: str, node: Node, x: Array, padding: str = "VALID") -> Array:
    """LiteRT's output for the windows of a pool on an image that is padded already, or by LiteRT."""
    a, out = node.attrs, node.output.type
    assert isinstance(a, Pool)
    (want,) = litert.run(
        name,
        [litert.TensorSpec(x.shape, x.dtype, out.scale, out.zero_point, data=x)],
        [litert.TensorSpec(out.shape, x.dtype, out.scale, out.zero_point)],
        padding=padding,
        stride_h=a.stride_h,
        stride_w=a.stride_w,
        filter_h=a.kernel_h,
        filter_w=a.kernel_w,
    )
    return want
