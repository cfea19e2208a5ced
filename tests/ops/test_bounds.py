# SPDX-License-Identifier: Apache-2.0
"""What a convolution's inputs can be: that nothing is beyond it, and something reaches it."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import numpy as np
import pytest

from tests.ops import bounded
from tinyet import ops
from tinyet.ir import DType, Graph, Node, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import NO_CLAMP, Int64
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import bounds, paired, pairing
from tinyet.ops.shared.packed_words import rows_of


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("rounding", ["double", "half_even"])
@pytest.mark.parametrize("relu", [False, True])
def test_bounds_are_reached(groups: int, rounding: Literal["double", "half_even"], relu: bool) -> None:
    """By a window that has each input at the end that the sign of its weight says; random ones are within."""
    rng = np.random.default_rng(groups)
    x = Tensor("x", TensorType((1, 3, 3, 4), DType.INT8, QuantParams.per_tensor(1.0, -5)))
    attrs = Conv2d(groups=groups, clamp=(0.0, math.inf) if relu else NO_CLAMP, rounding=rounding)
    weights = rng.integers(-9, 10, (8, 3, 3, 4 // groups))
    node = bounded.scaled(
        "y", attrs, x, weights, rng.integers(-700, 700, 8), QuantParams.per_tensor(60.0, -20)
    )
    out = Tensor("y", dataclasses.replace(node.output.type, shape=(1, 1, 1, 8)))
    node = node.replace(outputs=[out])
    low, high = rng.integers(-128, 0, 4), rng.integers(0, 128, 4)
    found = bounds.of_output(node, bounds.Bounds(low, high))
    read = node.inputs[1:]
    constants = [None if t is None else t.array for t in read]
    for channel in range(8):
        first = channel // (8 // groups) * (4 // groups)
        for want, sign in ((found.high, 1), (found.low, -1)):
            window = np.zeros((1, 3, 3, 4), np.int8)
            some = slice(first, first + 4 // groups)
            window[0, ..., some] = np.where(sign * weights[channel] > 0, high[some], low[some])
            got = ops.evaluate(node, [window, *constants])[0]
            assert got[0, 0, 0, channel] == want[channel]
    for _ in range(50):
        window = rng.integers(low, high + 1, (1, 3, 3, 4)).astype(np.int8)
        outputs: Int64 = ops.evaluate(node, [window, *constants])[0].reshape(8).astype(np.int64)
        assert np.all((found.low <= outputs) & (outputs <= found.high))


def test_padding_is_an_input_too() -> None:
    """Where no input of the image comes near the zero point."""
    x = Tensor("x", TensorType((1, 1, 1, 1), DType.INT8, QuantParams.per_tensor(1.0, 0)))
    attrs = Conv2d(pad_left=1, clamp=NO_CLAMP)
    node = bounded.scaled(
        "y", attrs, x, np.full((1, 1, 2, 1), 2), np.zeros(1, np.int64), QuantParams.per_tensor(2.0, 0)
    )
    found = bounds.of_output(node, bounds.Bounds(np.array([20]), np.array([30])))
    assert (found.low.tolist(), found.high.tolist()) == ([0], [60])


def test_a_node_of_several_graphs_has_what_it_reads_in_any() -> None:
    """Whichever comes first; and one that reads an input of its graph has the range of its type."""
    graph = bounded.network(8, 1)
    first, second = graph.nodes
    assert bounds.of_input(second) is None
    bounds.learn(graph)
    narrow = bounded.bounds_of(second)
    assert np.any(narrow.high < 127)
    assert np.all(bounded.bounds_of(first).low == -128)
    assert np.all(bounded.bounds_of(first).high == 127)
    bias = constant("more", first.input(2).array + 3000)
    other = first.replace(inputs=[*first.inputs[:2], bias])
    bounds.learn(graph.replace(nodes=[other, second]))
    both = bounded.bounds_of(second)
    assert np.any(both.high > narrow.high)
    assert np.all(both.high >= narrow.high)
    bounds.learn(graph)
    bounds.learn(graph.replace(nodes=graph.nodes))
    assert bounded.bounds_of(second) is both
    alone = Graph("alone", (second.input(0),), (second.output,), (second,))
    bounds.learn(alone)
    assert np.all(bounded.bounds_of(second).low == -128)
    assert np.all(bounded.bounds_of(second).high == 127)


def test_a_view_or_another_operator_says_nothing() -> None:
    graph = bounded.network(8, 2)
    first, second = graph.nodes
    copied = Node(second.attrs, second.inputs, second.outputs)
    bounds.learn(Graph("cut", (first.output,), (second.output,), (copied,)))
    assert np.all(bounded.bounds_of(copied).high == 127)


@pytest.mark.parametrize("seed", range(4))
def test_runs_hold_what_inputs_can_be(seed: int) -> None:
    """Counted from their centres, runs are longer, and no input that there can be makes one leave 16 bits."""
    graph = bounded.network(64, seed)
    second = graph.nodes[1]
    plain = paired.in_runs(second)
    bounds.learn(graph)
    known, runs = bounded.bounds_of(second), paired.in_runs(second)
    assert runs.is_centred
    assert not plain.is_centred
    assert runs.count < 0.9 * plain.count
    rows = np.pad(rows_of(second).astype(np.int64), ((0, 1), (0, 0)))
    for pair, some in zip(runs.pairs, runs.of_pairs, strict=True):
        for start, end in some:
            w, taps = rows[pair, start:end], slice(start, end)
            ends = w * (known.low - runs.centre)[taps], w * (known.high - runs.centre)[taps]
            assert np.maximum(*ends).sum(axis=1).max() < 2**15
            assert np.minimum(*ends).sum(axis=1).min() >= -(2**15)
    stream, _ = paired.constants_in_runs(second)
    assert stream.data[-64:].tolist() == ((runs.centre * 65537) & 0xFFFFFFFF).tolist()


def test_pairs_are_chosen_with_what_inputs_can_be() -> None:
    """The ends of runs that pairs are compared by are those of the centred inputs."""
    graph = bounded.network(64, 5)
    bounds.learn(graph)
    second = graph.nodes[1]
    runs, known = paired.in_runs(second), bounded.bounds_of(second)
    rows = np.pad(rows_of(second).astype(np.int64), ((0, 1), (0, 0)))
    ends = rows * (known.low - runs.centre), rows * (known.high - runs.centre)
    reaches = (np.maximum(*ends), 2**15 - 1), (-np.minimum(*ends), 2**15)
    found = pairing.pairs(pairing.ends_of_runs(reaches, paired.LONGEST))
    np.testing.assert_array_equal(found, runs.pairs)
