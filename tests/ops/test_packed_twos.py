# SPDX-License-Identifier: Apache-2.0
"""Two outputs in one product, in runs of two or three taps: what is proved of them, and what is refused. Of drawn
weights the kernels themselves are in test_conv2d.py, on boards in tests/emulated/test_operators.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.delegates.test_winograd import layer
from tests.ops import bodies, drawing
from tests.ops.cases import Case
from tinyet.ir import Node, constant
from tinyet.numerics import Int64
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import packed_twos
from tinyet.ops.shared.two_products import Rescaling

BITS = 2**32 - 1


@st.composite
def few_large_weights(draw: st.DrawFn) -> Case:
    """A convolution of small weights and some as large as there are, three in a row among them: of both signs, a run of
    products would leave 16 bits."""
    rng = drawing.random(draw)
    shape = draw(st.integers(1, 5)), 3, 3, draw(st.integers(3, 9))
    weights = rng.integers(-20, 21, shape)
    flat = weights.reshape(shape[0], -1)
    for at in rng.integers(0, flat.shape[1] - 2, 2):
        flat[:, at : at + 3] = rng.choice([-128, -127, 127], (shape[0], 3))
    node = layer(weights, rng.integers(-9000, 9000, shape[0]), relu=draw(st.booleans()), scale=0.01)
    return Case(node, (rng.integers(-128, 128, node.input(0).shape).astype(np.int8),))


@st.composite
def lines(draw: st.DrawFn) -> Case:
    """A depthwise layer of 3x3 whose lines have each number of inputs that is left behind turns of straight code, of
    both strides and with all borders; few channels or some of which need runs of two taps."""
    rng = drawing.random(draw)
    shape = draw(st.integers(1, 22)), draw(st.integers(1, 22))
    stride = draw(st.sampled_from([(1, 1), (2, 2), (1, 2), (2, 1)]))
    pads = [draw(st.sampled_from((0, 1, 1, 2))) for _ in range(4)]
    size = [
        max(n, 3 - before - behind) for n, before, behind in zip(shape, pads[::2], pads[1::2], strict=True)
    ]
    channels, largest = draw(st.integers(1, 3)), draw(st.sampled_from([60, 127]))
    weights = rng.integers(-largest, largest + 1, (channels, 3, 3, 1))
    drawn = layer(weights, rng.integers(-9000, 9000, channels), relu=True, scale=0.004)
    x, attrs = drawn.input(0), drawn.attrs
    x = replace(x, type=replace(x.type, shape=(draw(st.integers(1, 2)), *size, channels)))
    assert isinstance(attrs, Conv2d)
    top, bottom, left, right = pads
    attrs = replace(attrs, groups=channels, pad_top=top, pad_bottom=bottom, pad_left=left, pad_right=right)
    attrs = replace(attrs, stride_h=stride[0], stride_w=stride[1])
    node = drawing.node_of(attrs, [x, *drawn.inputs[1:]], drawn.output.type.quant)
    return Case(node, (rng.integers(-128, 128, x.shape).astype(np.int8),))


@st.composite
def few_channels(draw: st.DrawFn) -> Case:
    """A convolution of an image of few channels, columns of whose windows are gathered at once."""
    rng, (height, width) = drawing.random(draw), (draw(st.integers(4, 9)), draw(st.integers(4, 24)))
    channels, out_c = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    kernel = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    drawn = layer(
        rng.integers(-127, 128, (out_c, 3, 3, channels)),
        rng.integers(-9000, 9000, out_c),
        relu=draw(st.booleans()),
        scale=0.004,
    )
    x, attrs = drawn.input(0), drawn.attrs
    x = replace(x, type=replace(x.type, shape=(1, height, width, channels)))
    weights = constant(
        "w",
        rng.integers(-127, 128, (out_c, *kernel, channels)).astype(np.int8),
        drawn.input(1).type.quant,
    )
    assert isinstance(attrs, Conv2d)
    top, bottom, left, right = (draw(st.integers(0, 2)) for _ in range(4))
    attrs = replace(attrs, pad_top=top, pad_bottom=bottom, pad_left=left, pad_right=right)
    attrs = replace(attrs, stride_h=draw(st.integers(1, 3)), stride_w=draw(st.integers(1, 3)))
    node = drawing.node_of(attrs, [x, weights, *drawn.inputs[2:]], drawn.output.type.quant)
    return Case(node, (rng.integers(-128, 128, x.shape).astype(np.int8),))


test_host_lines = bodies.batches(st.lists(lines(), min_size=8, max_size=8))
test_host_few_channels = bodies.batches(st.lists(few_channels(), min_size=8, max_size=8))
test_host_few_large_weights = bodies.batches(st.lists(few_large_weights(), min_size=8, max_size=8))


def drained(both: Int64, high: Int64, run: Int64) -> tuple[Int64, Int64]:
    """As the assembly has it: the upper half with its sign, and the highest bit of the lower one."""
    upper = (run & BITS) >> 16
    signed = np.where(upper >= 2**15, upper - 2**16, upper)
    return both + run, high + signed + (run >> 15 & 1)


def extremes(rng: np.random.Generator, weights: Int64) -> Int64:
    """(50, taps): inputs of int8, the first ones those that reach farthest."""
    x = rng.integers(-128, 128, (50, len(weights)))
    x[0], x[1] = 127, -128
    x[2] = np.where(weights > 0, 127, -128)
    x[3] = -x[2] - 1
    return x


def as_trained(rng: np.random.Generator, shape: tuple[int, ...]) -> Int64:
    """Weights most of which are small, and some as large as can be."""
    return np.clip(np.rint(rng.normal(0, 40, shape)), -128, 127).astype(np.int64)


@pytest.mark.parametrize(
    ("kind", "run", "by_themselves"), [("small", 3, 0), ("trained", 3, 1), ("any", 2, 0)]
)
@pytest.mark.parametrize("channels", [4, 6])
def test_runs_add_up_to_the_sums_of_both_channels(
    kind: str, run: int, by_themselves: int, channels: int
) -> None:
    """In 32 bits; of numbers of taps that no run divides, and with channels that are missing. Runs are of three taps
    where few weights are too large for that."""
    rng, shape = np.random.default_rng(channels), (channels, 3, 3, 5)
    weights = {
        "small": rng.integers(-2, 3, shape),
        "trained": as_trained(rng, shape),
        "any": rng.integers(-127, 128, shape),
    }[kind]
    bias = rng.integers(-9000, 9000, channels)
    if kind != "small":
        weights[:, 0, 0, :3] = [-128, 127, -128]
    node = layer(weights, bias, scale=0.01)
    assert packed_twos.refuse(node) is None
    assert packed_twos.in_runs(node).run == run
    sums = packed_twos.rescaling(node)
    assert isinstance(sums, Rescaling)
    stream, rows = (
        packed_twos.stream(node).data.astype(np.int64),
        weights.swapaxes(1, 2).reshape(channels, -1),
    )
    runs, found_by_themselves = -(-45 // run), 0
    for block in range(-(-channels // 4)):
        if block and channels % 4:
            stream = stream[5:]  # where M0's code leaves the whole blocks
        first_words, stream = stream[[0, 1, 3, 4]], stream[5:]
        packed, stream = stream[: 2 * runs * run].reshape(runs, 2, run), stream[2 * runs * run :]
        alone = []
        while run == 3 and stream[0] != BITS:
            alone.append(stream[:3])
            stream = stream[3:]
        stream = stream[int(run == 3) + 4 * sums.words(0, 1).shape[1] :]
        found_by_themselves += len(alone)
        for pair in range(2):
            first = 4 * block + 2 * pair
            if first >= channels:
                assert not packed[:, pair].any()
                continue
            x = np.pad(extremes(rng, rows[first]), ((0, 0), (0, runs * run - 45)))
            both, high = np.full(50, first_words[pair]), np.full(50, first_words[2 + pair])
            added = [x[:, run * i : run * i + run] @ packed[i, pair] for i in range(runs)]
            added += [x[:, at // 4] * words[pair] for at, *words in alone]
            for one in added:
                both, high = drained(both + (2**15 if run == 3 else 0), high, one)
            for channel, found in ((first, both - (high << 16)), (first + 1, high)):
                want = (
                    bias[channel] - 3 * rows[channel].sum() - sums.start[channel] + x[:, :45] @ rows[channel]
                )
                np.testing.assert_array_equal(found & BITS, want & BITS)
    assert len(stream) == 5
    assert (found_by_themselves > 0) == by_themselves


def depthwise(weights: Int64, relu: bool = True, stride: int = 1) -> Node:
    """weights: (channels, 3, 3)."""
    node = layer(weights[..., None], np.arange(len(weights)) * 100, relu=relu, scale=0.004)
    assert isinstance(node.attrs, Conv2d)
    return node.replace(attrs=replace(node.attrs, groups=len(weights), stride_h=stride, stride_w=stride))


@pytest.mark.parametrize("largest", [60, 127])
def test_lines_of_three_taps_are_one_run_where_they_have_room(largest: int) -> None:
    rng = np.random.default_rng(largest)
    weights = rng.integers(-largest, largest + 1, (12, 3, 3))
    weights[0] = [[85, -85, 85], [127, 127, 1], [-128, 127, 0]]
    weights[1] = [[85, -85, 86], [0, 0, 0], [0, 0, 0]]
    node = depthwise(weights)
    stream = packed_twos.plane_stream(node).data.astype(np.int64)
    divided = stream[:, 3] >> 8
    assert list(divided) == packed_twos.divided(node)
    assert np.array_equal(stream[:, 1:4].astype("<u4").view(np.int8)[:, :9], weights.reshape(-1, 9))
    assert packed_twos.divided(node)[:2] == [False, True]
    for bias, is_divided, w in zip(stream[:, 0], divided, weights, strict=True):
        two = np.stack([extremes(rng, w.ravel()), rng.permuted(extremes(rng, w.ravel()), axis=0)])
        x = (two[0] + (two[1] << 16)).reshape(-1, 3, 3)
        both, high = np.full(50, 65537 * bias), np.full(50, bias)
        for line in range(3):
            products = x[:, line] * w[line]
            for run in (slice(0, 2), slice(2, 3)) if is_divided else (slice(0, 3),):
                both, high = drained(both, high, products[:, run].sum(axis=1))
        for found, inputs in ((both - (high << 16), two[0]), (high, two[1])):
            np.testing.assert_array_equal(found & BITS, bias + inputs @ w.ravel() & BITS)


def test_refusals_say_why() -> None:
    rng = np.random.default_rng(1)
    weights = rng.integers(-100, 101, (4, 3, 3, 4))
    weights[2, 1, 1, 1:3] = -128  # taps of two runs
    assert packed_twos.refuse(layer(weights, np.zeros(4, np.int64), scale=0.01)) is None
    weights[2, 0, 0, :2] = -128
    found = packed_twos.refuse(layer(weights, np.zeros(4, np.int64), scale=0.01))
    assert found == "two neighbouring weights are -128"
    small = rng.integers(-9, 10, (4, 3, 3))
    assert packed_twos.refuse_planes(depthwise(small)) is None
    found = packed_twos.refuse_planes(depthwise(small, relu=False))
    assert found == "outputs of negative sums are rounded the other way"
    small[1, 2, :2] = small[1, :2, 2] = -128
    assert packed_twos.refuse_planes(depthwise(small)) == "two neighbouring weights are -128"
    assert packed_twos.refuse_planes(depthwise(small, stride=3)) == "only strides 1 and 2"
