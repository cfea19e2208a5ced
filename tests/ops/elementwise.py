# SPDX-License-Identifier: Apache-2.0
"""What the tests of operators that work element by element share: cases of one or two operands, and their
oracles."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from tests.ops import drawn
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, QuantParams, Shape, Tensor, TensorType, constant

BOTH = (DType.INT8, DType.FLOAT32)
INTEGERS = (DType.INT8, DType.INT16)
ALL = (DType.INT8, DType.INT16, DType.FLOAT32)
ACTIVATIONS = {
    (-math.inf, math.inf): "NONE",
    (0.0, math.inf): "RELU",
    (0.0, 6.0): "RELU6",
    (-1.0, 1.0): "RELU_N1_TO_1",
}
clamps = st.sampled_from(list(ACTIVATIONS))

SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.5,
    1e-45,
    -1e-42,
    1.2e-38,
    3.4e38,
    -3.4e38,
    math.inf,
    -math.inf,
    math.nan,
)


@functools.cache
def scales(low: float = 1e-3, high: float = 1.0) -> st.SearchStrategy[float]:
    """Positive scales, as likely in each power of ten; powers of two, which make ties, among them."""
    spread = st.floats(math.log(low), math.log(high)).map(math.exp)
    return st.one_of(spread, st.integers(-8, 0).map(lambda e: 2.0**e))


# Made once: hypothesis looks through every new strategy before it draws.
_ONE_SHAPE = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)
_TWO_SHAPES = mutually_broadcastable_shapes(num_shapes=2, min_side=1, max_dims=5, max_side=5)

zero_points = st.one_of(st.sampled_from((-128, 0, 127)), st.integers(-128, 127))


@functools.cache
@st.composite
def quants(draw: st.DrawFn, dtype: DType = DType.INT8) -> QuantParams:
    """int16 has zero point 0, and finer scales."""
    if dtype is DType.INT16:
        return QuantParams.per_tensor(draw(scales(1e-5, 1e-2)), 0)
    return QuantParams.per_tensor(draw(scales()), draw(zero_points))


def floats(shape: Shape, seed: int) -> npt.NDArray[np.float32]:
    """Over many powers of ten, one in ten of them special: zeros, subnormals, infinities, NaN."""
    rng = np.random.default_rng(seed)
    plain = rng.normal(0, 1, shape) * 10.0 ** rng.integers(-3, 3, shape)
    return np.where(rng.random(shape) < 0.1, rng.choice(np.array(SPECIAL), shape), plain).astype(np.float32)


def values(type_: TensorType, seed: int) -> Array:
    return floats(type_.shape, seed) if type_.dtype is DType.FLOAT32 else drawn.values(type_, seed)


def finished(attrs: Attrs, inputs: Sequence[Tensor | None], out: TensorType) -> Node:
    """The node with its output's inferred shape; drawn again where shapes or scales do not suit the
    operator."""
    node = Node(attrs, tuple(inputs), (Tensor("y", out),))
    try:
        (shape,) = ops.infer(node)
    except UnsupportedShape:
        assume(False)
    node = node.replace(outputs=[Tensor("y", TensorType(shape, out.dtype, out.quant))])
    assume(ops.op_of(node).check(node) is None)
    return node


@st.composite
def single(
    draw: st.DrawFn,
    attrs: st.SearchStrategy[Attrs],
    dtypes: tuple[DType, ...] = BOTH,
    quant: QuantParams | None = None,
    keep_quant: bool = False,
) -> Case:
    """One operand. quant: the output's, when the operator fixes it; keep_quant: the output has the
    input's."""
    shape = draw(_ONE_SHAPE)
    x = TensorType(shape, draw(st.sampled_from(dtypes)), None)
    if x.dtype is not DType.FLOAT32:
        x = TensorType(shape, x.dtype, draw(quants(x.dtype)))
    wanted = x.quant if keep_quant else quant or draw(quants(x.dtype))
    out = TensorType((), x.dtype, None if x.dtype is DType.FLOAT32 else wanted)
    return Case(finished(draw(attrs), [Tensor("x", x)], out), (values(x, draw(drawn.seeds)),))


@st.composite
def pair(
    draw: st.DrawFn,
    attrs: st.SearchStrategy[Attrs],
    dtypes: tuple[DType, ...] = BOTH,
    same_scale: bool = False,
    constants: bool = True,
    covering: bool = False,
) -> Case:
    """Two operands that broadcast; one of them may be a constant, or both may be one tensor. covering: the
    first one has the output's shape."""
    found = draw(_TWO_SHAPES)
    shapes = (found.result_shape if covering else found.input_shapes[0], found.input_shapes[1])
    dtype = draw(st.sampled_from(dtypes))
    shared = draw(quants(dtype))
    quant = [shared if same_scale else draw(quants(dtype)) for _ in range(3)]
    types = [
        TensorType(tuple(s), dtype, None if dtype is DType.FLOAT32 else q)
        for s, q in zip(shapes, quant, strict=False)
    ]
    seed = draw(drawn.seeds)
    arrays = [values(t, seed + i) for i, t in enumerate(types)]
    role = draw(st.sampled_from(("both", "both", "first", "second", "same"))) if constants else "both"
    tensors = [Tensor(f"x{i}", t) for i, t in enumerate(types)]
    if role in ("first", "second"):
        index = 0 if role == "first" else 1
        tensors[index] = constant("c", arrays.pop(index), types[index].quant)
    elif role == "same":
        tensors, arrays = [tensors[0]] * 2, arrays[:1]
    out = TensorType((), dtype, None if dtype is DType.FLOAT32 else quant[2])
    return Case(finished(draw(attrs), tensors, out), tuple(arrays))


def spec(tensor: Tensor, data: Array | None = None) -> litert.TensorSpec:
    """LiteRT's view of a tensor; a scalar is given one dimension."""
    type_ = tensor.type
    shape = tensor.shape or (1,)
    return litert.TensorSpec(
        shape,
        type_.dtype.numpy,
        None if type_.quant is None else type_.scale,
        0 if type_.quant is None else type_.zero_point,
        data=data,
    )


def run_litert(name: str, case: Case, **options: litert.Option) -> Array:
    """LiteRT's output for a case whose inputs are all given at run time."""
    inputs = [spec(t, x) for t, x in zip(case.node.inputs, case.inputs, strict=True) if t is not None]
    (out,) = litert.run(name, inputs, [spec(case.node.output)], **options)
    return out.reshape(case.node.output.shape)


def reference(case: Case) -> npt.NDArray[Any]:
    """The first output of the case's reference; warnings are errors here."""
    rest = dict(
        zip(dict.fromkeys(t for t in case.node.inputs if t and not t.is_constant), case.inputs, strict=True)
    )
    arrays = [None if t is None else t.array if t.is_constant else rest[t] for t in case.node.inputs]
    return ops.evaluate(case.node, arrays)[0]


def ulp_error(got: npt.NDArray[np.float32], want: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Distance from the exact value in units in the last place of float32; infinite where only one is
    finite."""
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        unit = np.spacing(np.maximum(np.abs(rounded), np.float32(2**-126))).astype(np.float64)
        error = np.abs(got.astype(np.float64) - want) / unit
    equal = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    finite = np.isfinite(got) & np.isfinite(rounded)
    return np.where(finite, error, np.where(equal, 0.0, np.inf))


def lists(cases: st.SearchStrategy[Case]) -> st.SearchStrategy[list[Case]]:
    """Enough cases for one compilation."""
    return st.lists(cases, min_size=12, max_size=20)


def matches_torch(case: Case, function: Callable[..., object], tolerance: float = 0.0) -> None:
    """The float reference against PyTorch, relative; NaN where PyTorch has NaN."""
    import torch

    tensors = [torch.from_numpy(x) for x in case.inputs]
    want = function(*tensors)
    assert isinstance(want, torch.Tensor)
    np.testing.assert_allclose(reference(case), want.numpy(), rtol=tolerance, atol=0)


def expect_one_scale(attrs: Attrs) -> None:
    """That an operator of two operands that selects values refuses operands of two scales."""
    inputs = (tensor("a", (2,), scale=0.1), tensor("b", (2,), scale=0.2))
    node = Node(attrs, inputs, (tensor("y", (2,), scale=0.1),))
    assert "share one quantization" in str(ops.op_of(node).check(node))
