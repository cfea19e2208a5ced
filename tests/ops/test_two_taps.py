# SPDX-License-Identifier: Apache-2.0
"""Two outputs' weights of a byte each in one product: what is proved of it, and what is refused. The kernel itself is
in test_linear.py, on boards in tests/emulated/test_operators.py."""

from __future__ import annotations

import numpy as np

from tests.ops import drawing
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import Int64
from tinyet.ops.linear import Linear
from tinyet.ops.shared import packed_words, two_taps
from tinyet.ops.shared.two_products import Rescaling
from tinyet.ops.shared.weighted import folded_bias

DEPTH, COUNT = 7, 6
BITS = 2**32 - 1


def node_of(weights: Int64, bias: Int64, scale: float = 0.01) -> Node:
    x = Tensor("x", TensorType((1, weights.shape[1]), DType.INT8, QuantParams.per_tensor(1.0, 3)))
    w = constant("w", weights.astype(np.int8), QuantParams.per_tensor(1.0, 0))
    out = QuantParams.per_tensor(1.0 / scale, 0)
    return drawing.node_of(Linear(), [x, w, constant("b", bias.astype(np.int32))], out)


def signed(values: Int64, bits: int) -> Int64:
    half = 1 << bits - 1
    return ((values & (1 << bits) - 1) + half & (1 << bits) - 1) - half


def test_halves_hold_what_two_taps_add_up_to() -> None:
    """The sums of all outputs from the packed words, in 32 bits; with the extremes of all inputs and weights, and
    random ones. Both halves are what a wider type would have at each pair of taps."""
    rng = np.random.default_rng(5)
    weights, bias = rng.integers(-128, 128, (COUNT, DEPTH)), rng.integers(-9000, 9000, COUNT)
    weights[0], weights[1], weights[2, ::2], weights[3] = -127, 127, -128, 0
    node = node_of(weights, bias)
    assert two_taps.refuse(node) is None
    stream, packed = two_taps.constants(node)
    blocks, pairs = packed.data.shape[:2]
    assert (blocks, pairs) == (2, 4)
    assert two_taps.scratch_bytes(node) == 12 * pairs
    found = packed_words.rescaling(node)
    assert isinstance(found, Rescaling)
    mixed = [rng.integers(-128, 128, DEPTH) for _ in range(40)]
    for x in (np.full(DEPTH, -128), np.full(DEPTH, 127), np.where(weights[5] < 0, -128, 127), *mixed):
        inputs = np.pad(x, (0, 1)).reshape(pairs, 2)
        starts = stream.data[:, :4].astype(np.int64).reshape(-1, 2)
        both, high = starts[:, 0], starts[:, 1]
        for two, words in zip(inputs, packed.data.astype(np.int64).transpose(1, 0, 2), strict=True):
            flat = words.ravel()
            before = 0x8000 - int(two.sum()) * 0x800080
            run = (two[0] * (flat & 0xFF00FF) + two[1] * (flat >> 8 & 0xFF00FF) + before) & BITS
            both, high = both + run, high + (signed(run, 32) >> 16)
        low = signed(both - (high << 16), 32)
        sums = np.stack([low, signed(high, 32)], axis=1).ravel()[:COUNT]
        np.testing.assert_array_equal(sums, weights @ x + folded_bias(node) - found.start)


def test_what_is_refused() -> None:
    """-128 times -128, twice, is 2**15; taps are paired from the first one on, the last one may be alone."""
    weights, bias = np.zeros((2, 5), np.int64), np.zeros(2, np.int64)
    weights[1, 2:4] = -128
    assert two_taps.refuse(node_of(weights, bias)) == "two neighbouring weights of -128"
    assert two_taps.refuse(node_of(np.roll(weights, 1, axis=1), bias)) is None
    assert "unit of the sum" in str(two_taps.refuse(node_of(weights[:1] + 1, bias[:1], 300.0)))
