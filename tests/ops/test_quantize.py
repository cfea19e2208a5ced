# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.calls.exact import assert_kernels
from tests.ops import bodies, elementwise
from tests.ops.cases import Case, tensor
from tinyet.ir import DType, Node, Tensor, TensorType
from tinyet.ops.quantize import OP, Quantize


@st.composite
def quantize_nodes(draw: st.DrawFn, special: bool = True) -> Case:
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple))
    dtype = draw(st.sampled_from((DType.INT8, DType.INT16)))
    quant = draw(elementwise.quants(dtype))
    seed = draw(st.integers(0, 2**32 - 1))
    if special:
        data = elementwise.floats(shape, seed)
    else:
        # Halves of a step, where rounding decides, and values around them.
        rng = np.random.default_rng(seed)
        steps = rng.integers(2 * dtype.range[0] - 50, 2 * dtype.range[1] + 50, shape) / 2 + rng.choice(
            [0, 0, 1e-7, -1e-7, 0.2], shape
        )
        data = (steps * quant.one_scale).astype(np.float32)
    x, y = Tensor("x", TensorType(shape, DType.FLOAT32)), Tensor("y", TensorType(shape, dtype, quant))
    return Case(Node(Quantize(), (x,), (y,)), (data,))


test_host = bodies.host(st.one_of(quantize_nodes(), quantize_nodes(special=False)))

test_litert = bodies.equals_litert("QUANTIZE", quantize_nodes(special=False))


def test_edges() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 0.49999997, 0.5, -0.5, -1.5, 1e-45], np.float32)
    node = Node(
        Quantize(), (tensor("x", (10,), DType.FLOAT32),), (tensor("y", (10,), scale=1.0, zero_point=7),)
    )
    case = Case(node, (x,))
    assert elementwise.reference(case).tolist() == [7, 127, -128, 127, -128, 7, 8, 6, 5, 7]
    assert_kernels([case])


def test_types() -> None:
    node = Node(Quantize(), (tensor("x", (2,), scale=1.0),), (tensor("y", (2,), scale=1.0),))
    assert "quantizes float32 to int8" in str(OP.check(node))
