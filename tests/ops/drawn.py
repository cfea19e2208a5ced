# SPDX-License-Identifier: Apache-2.0
"""What the strategies of several operators draw: shapes, quantizations, and arrays rich in edge values."""

from __future__ import annotations

import functools

import numpy as np
from hypothesis import strategies as st

from tests.ops.cases import Case
from tinyet import ops
from tinyet.ir import Array, Attrs, DType, Node, QuantParams, Shape, Tensor, TensorType

MOVABLE = (DType.INT8, DType.FLOAT32, DType.INT32, DType.INT16, DType.UINT8, DType.UINT32)
REDUCIBLE = (DType.INT8, DType.INT16, DType.FLOAT32)


@functools.cache  # Hypothesis looks through every new strategy before it draws.
def shapes(min_rank: int = 1, max_rank: int = 4, max_size: int = 5) -> st.SearchStrategy[Shape]:
    return st.lists(st.integers(1, max_size), min_size=min_rank, max_size=max_rank).map(tuple)


@st.composite
def quants(draw: st.DrawFn, dtype: DType = DType.INT8) -> QuantParams:
    """Per tensor; scales over several powers of ten, any zero point but in int16."""
    scale = draw(st.floats(1e-3, 1e1))
    return QuantParams.per_tensor(scale, 0 if dtype is DType.INT16 else draw(st.integers(-128, 127)))


def values(type_: TensorType, seed: int) -> Array:
    """Random elements; a part of them are the extremes of the dtype, or signed zeros, infinities and NaN."""
    rng = np.random.default_rng(seed)
    if type_.dtype is DType.FLOAT32:
        data = rng.normal(0, 3, type_.shape).astype(np.float32)
        special = rng.choice(np.array([0.0, -0.0, 1.0, 1e30, -1e30], np.float32), type_.shape)
    else:
        low, high = type_.dtype.range
        data = rng.integers(low, high, type_.shape, type_.dtype.numpy.type, endpoint=True)
        special = rng.choice(np.array([low, high, 0, low + 127], type_.dtype.numpy), type_.shape)
    return np.asarray(np.where(rng.random(type_.shape) < 0.2, special, data), type_.dtype.numpy).reshape(
        type_.shape
    )


seeds = st.integers(0, 2**32 - 1)


@st.composite
def types(draw: st.DrawFn, shape: Shape, dtypes: tuple[DType, ...]) -> TensorType:
    dtype = draw(st.sampled_from(dtypes))
    return TensorType(shape, dtype, draw(quants(dtype)) if dtype in (DType.INT8, DType.INT16) else None)


def case_of(attrs: Attrs, inputs: list[TensorType], out: TensorType, seed: int) -> Case:
    """A case with random data for all inputs; the output's shape is the operator's, whatever `out` says."""
    tensors = [Tensor(f"x{i}", type_) for i, type_ in enumerate(inputs)]
    node = Node(attrs, tuple(tensors), (Tensor("y", out),))
    (shape,) = ops.infer(node)
    node = node.replace(outputs=[Tensor("y", TensorType(shape, out.dtype, out.quant))])
    assert ops.op_of(node).check(node) is None
    return Case(node, tuple(values(type_, seed + i) for i, type_ in enumerate(inputs)))
