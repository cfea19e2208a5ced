# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import strategies as st

from tests.calls.exact import assert_kernels
from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tinyet import ops
from tinyet.ir import DType, Node, QuantParams
from tinyet.ops.l2_normalize import MAX_DEPTH, OP, L2Normalize

OUT = QuantParams.per_tensor(1 / 128, 0)


@st.composite
def l2_normalize_nodes(draw: st.DrawFn) -> Case:
    """Of small and of large sums: some rows are near the zero point."""
    shape = (*draw(st.lists(st.integers(1, 5), max_size=2)), draw(st.sampled_from((1, 2, 3, 17, 300))))
    x = draw(drawing.activations("x", shape, DType.INT8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    reach = rng.choice([0, 1, 5, 300], (*shape[:-1], 1))
    data = np.clip(x.type.zero_point + rng.integers(-1000, 1001, shape) * reach // 1000, -128, 127)
    return Case(drawing.node_of(L2Normalize(), [x], OUT), (data.astype(np.int8),))


test_host = bodies.host(l2_normalize_nodes())


def test_lengths_are_one() -> None:
    """Rounded twice, each time to the nearest."""
    rng = np.random.default_rng(0)
    for depth in (1, 2, 40, 900):
        x = tensor("x", (20, depth), scale=0.3, zero_point=-9)
        data = rng.integers(-128, 128, x.shape).astype(np.int8)
        node = drawing.node_of(L2Normalize(), [x], OUT)
        (out,) = ops.evaluate(node, [data])
        real = data.astype(np.float64) + 9
        exact = real / np.sqrt((real * real).sum(-1, keepdims=True))
        assert np.abs(out.astype(np.float64) / 128 - np.minimum(exact, 127 / 128)).max() < 0.76 / 128


def test_zeros_and_the_largest_sums() -> None:
    """33,025 squares of 255 just fit in 32 bits."""
    for value, zero_point in ((7, 7), (127, -128), (-128, 127)):
        x = tensor("x", (1, MAX_DEPTH), scale=0.3, zero_point=zero_point)
        assert_kernels([Case(drawing.node_of(L2Normalize(), [x], OUT), (np.full(x.shape, value, np.int8),))])


def test_what_is_refused() -> None:
    x, y = tensor("x", (3,), scale=0.5), tensor("y", (3,), scale=1 / 128)
    node = Node(L2Normalize(), (x,), (y,))
    assert OP.check(node) is None
    wide = dataclasses.replace(x, type=dataclasses.replace(x.type, shape=(MAX_DEPTH + 1,)))
    for other, said in (
        (node.replace(outputs=(tensor("y", (3,), scale=1 / 64),)), "only an output scale"),
        (node.replace(inputs=(tensor("x", (3,), DType.FLOAT32),)), "no form"),
        (node.replace(inputs=(wide,)), "at most 33025"),
        (node.replace(inputs=(tensor("x", (), scale=0.5),)), "no axis"),
    ):
        assert said in (OP.check(other) or "")
