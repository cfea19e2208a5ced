# SPDX-License-Identifier: Apache-2.0
"""Networks over a window, and those that take its newest frames: the same answers, to the bit; else a refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.over_time_nets import Drawn, Layer, TimeNet, nets
from tinyet.errors import ModelError, UnsupportedShape, UsageError
from tinyet.ir import Array, DType, Graph, Tensor
from tinyet.ops import check
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.pad import Pad
from tinyet.ops.slice import Slice
from tinyet.over_time import Streaming, stream
from tinyet.passes.pointwise_to_linear import pointwise_to_linear
from tinyet.program import Program, from_bytes
from tinyet.reference import Session, run_graph

VALID, CAUSAL, SAME = ("none",), ("causal",) * 7 + ("none",), ("none", "same", "same")
ANSWERS = ("last", "mean", "max", "flat", "sequence")
# Over 10 frames the padding of the first layer is read, and over 8 that of the last one, too, which the steps of a
# layer without padding do not begin behind.
LATE = Drawn(
    "line",
    DType.INT8,
    (
        Layer("conv"),
        Layer("conv", 2, before=1),
        Layer("conv", 3, 2),
        Layer("residual", 2, dilation=3, before=3),
    ),
    "last",
)
# Over 4 frames only the padding of the first layer is read, over fewer that of the second, which is no zero.
REACHED_BY_FEWER_FRAMES = Drawn(
    "line", DType.INT8, (Layer("conv", 5, before=4), Layer("max", 2, dilation=3, before=3)), "last"
)


def made(drawn: Drawn, frames: int) -> Graph:
    """The network over so many frames; draws for which there is none are left out."""
    try:
        return drawn.graph(frames)
    except UnsupportedShape:
        assume(False)
        raise


def long_enough(drawn: Drawn, frames: int) -> Graph | None:
    """The network over so many frames, if each of its layers makes several steps of them."""
    try:
        return drawn.graph(frames) if steps_behind(drawn, frames) > 1 else None
    except UnsupportedShape:
        return None


def tried(graph: Graph, axis: int) -> tuple[Streaming | None, str]:
    """What there is of it, or why there is none."""
    try:
        return stream(graph, (axis,)), ""
    except ModelError as error:
        return None, str(error)


def steps_behind(drawn: Drawn, frames: int) -> int:
    """The layers."""
    for layer in drawn.layers:
        frames = (frames + layer.before + layer.after - layer.reach - 1) // layer.stride + 1
    return frames


def frames_of(data: Array, axis: int, first: int, last: int) -> Array:
    return np.ascontiguousarray(data.take(range(first, last), axis))


def answers(found: Streaming, data: Array, axis: int) -> dict[int, Array]:
    """Frames since the reset → the answer then."""
    session = Session(found.graph)
    ends = range(found.hop, data.shape[axis] + 1, found.hop)
    return {end: session.outputs([frames_of(data, axis, end - found.hop, end)])[0] for end in ends}


def newest(answer: Array, like: Array, axis: int) -> Array:
    """Of an answer that is steps, the last ones."""
    return (
        answer.take(range(answer.shape[axis] - like.shape[axis], answer.shape[axis]), axis)
        if answer.shape != like.shape
        else answer
    )


def assert_same(got: dict[int, Array], want: dict[int, Array], axis: int) -> None:
    assert want
    for end, answer in want.items():
        np.testing.assert_array_equal(got[end], newest(answer, got[end], axis), f"after {end} frames")


@given(nets(VALID, ANSWERS), st.integers(8, 40), st.integers(1, 2), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_without_padding_each_window_has_its_answer(drawn: Drawn, frames: int, hops: int, seed: int) -> None:
    graph, axis = made(drawn, frames), drawn.axis
    assume(steps_behind(drawn, frames) > 1 or drawn.head != "sequence")
    least = stream(graph, (axis,)).hop
    assume(hops * least <= frames)
    found = stream(graph, (axis,), hop=hops * least)
    assert found.warm_up is not None
    data = drawn.data(frames + 4 * found.hop + found.warm_up, seed)
    got = answers(found, data, axis)
    whole = {
        end: run_graph(graph, [frames_of(data, axis, end - frames, end)])[0]
        for end in got
        if end >= max(found.warm_up, frames)
    }
    assert_same(got, whole, axis)


@given(nets(CAUSAL, ("last", "sequence")), st.integers(2, 5), st.integers(0, 99))
@example(Drawn("rows", DType.INT8, (Layer("max", 3, before=2), Layer("conv", 3, before=2)), "last"), 3, 1)
@example(
    Drawn("line", DType.FLOAT32, (Layer("max", 2, 2, 2, before=2), Layer("avg", 3, before=2)), "sequence"),
    4,
    1,
)
@example(LATE, 5, 0)
@example(REACHED_BY_FEWER_FRAMES, 4, 0)
@settings(max_examples=30, deadline=None)
def test_with_causal_padding_an_answer_is_that_of_all_frames(drawn: Drawn, windows: int, seed: int) -> None:
    """Since the reset, from as many on as is said; where it is of fewer, of the newest window."""
    axis = drawn.axis
    least = int(np.prod([layer.stride for layer in drawn.layers]))
    frames = least * windows
    assume(steps_behind(drawn, frames) > 1)  # else the last window is all of what a layer makes
    graph = made(drawn, frames)
    found, refused = tried(graph, axis)
    if found is None:  # a layer without padding makes those behind it late
        assert "where the steps of layers above begin" in refused
        assert any(layer.before < layer.reach or layer.stride > 1 for layer in drawn.layers)
        return
    data = drawn.data(3 * frames, seed)
    got = answers(found, data, axis)
    assert found.whole_from <= frames
    if found.warm_up is None and all(layer.before == layer.reach for layer in drawn.layers):
        assert found.whole_from == found.hop
    since = found.whole_from if found.warm_up is None else frames
    graphs = {end: long_enough(drawn, end) for end in got if end >= since}
    longer = {
        end: run_graph(network, [frames_of(data, axis, 0, end)])[0]
        for end, network in graphs.items()
        if network
    }
    assert_same(got, longer, axis)
    if found.warm_up is not None:
        windows_of = {end: frames_of(data, axis, end - frames, end) for end in got if end >= frames}
        assert_same(got, {end: run_graph(graph, [window])[0] for end, window in windows_of.items()}, axis)


def test_answers_before_the_first_whole_one() -> None:
    found, _ = tried(LATE.graph(10), LATE.axis)
    assert found is not None
    assert (found.warm_up, found.whole_from) == (None, 10)
    assert "an answer is made of all frames since the reset, from frame 10 on" in found.notes[0].text
    data = LATE.data(30, 0)
    got = answers(found, data, LATE.axis)
    assert not np.array_equal(got[8], run_graph(LATE.graph(8), [frames_of(data, LATE.axis, 0, 8)])[0])
    found, _ = tried(REACHED_BY_FEWER_FRAMES.graph(4), REACHED_BY_FEWER_FRAMES.axis)
    assert found is not None
    assert (found.warm_up, found.whole_from) == (None, 1)


@given(nets(SAME, ("mean", "max", "last")), st.integers(16, 30), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_padding_at_the_edges_is_refused_or_replaced_by_frames(drawn: Drawn, frames: int, seed: int) -> None:
    """Then the answers are those of the network without padding over a longer window."""
    drawn = Drawn(
        drawn.form,
        drawn.dtype,
        tuple(x for x in drawn.layers if x.kind not in ("residual", "both")),
        drawn.head,
    )
    assume(any(layer.after for layer in drawn.layers))
    # A layer that makes one step makes it of the whole window: padding behind it is none in time.
    assume(steps_behind(replace(drawn, layers=drawn.layers[:-1]), frames) > 1)
    graph, axis = made(drawn, frames), drawn.axis
    exact, refused = tried(graph, axis)
    assume(exact is None)  # else the padding is behind what the answer is made of
    assert "net.py" in refused
    assert 'edges="continue"' in refused
    found = stream(graph, (axis,), edges="continue")
    assert found.warm_up is not None
    assert any("in the place of padding" in note.text and note.origin for note in found.notes)
    data = drawn.data(found.warm_up + 3 * found.hop, seed)
    got = answers(found, data, axis)
    # What the last of the window's steps is made of, padding counted as frames; as many steps before the head.
    last = steps_behind(drawn, frames) - 1
    longer = 1 if drawn.head == "last" else last + 1
    for layer in reversed(drawn.layers):
        last = last * layer.stride - layer.before + layer.reach
        longer = (longer - 1) * layer.stride + layer.reach + 1
    assert found.lag == max(last - (frames - 1), 0)
    unread = max(frames - 1 - last, 0)
    plain = made(drawn.unpadded(), longer)
    wanted = {
        end: run_graph(plain, [frames_of(data, axis, end - unread - longer, end - unread)])[0]
        for end in got
        if end >= found.warm_up
    }
    assert_same(got, wanted, axis)


def with_steps_in_front(frames: int, front: Callable[[TimeNet, Tensor], Tensor]) -> Graph:
    """A convolution of three steps, behind whatever stands before the first; its last step."""
    net = TimeNet(DType.INT8, (1, frames, 2, 3))
    net.axis = 1
    y = net.time_conv(Layer("conv", 3), front(net, net.x), 4)
    steps = y.shape[1]
    return net.finish(net.add(Slice(1, steps - 1, steps), y, like=y)).graph


def constants(value: Array) -> Callable[[TimeNet, Tensor], Tensor]:
    def front(net: TimeNet, x: Tensor) -> Tensor:
        return net.add(Concat(1), net.constant(value, x.type.quant), x, like=x)

    return front


def test_constants_in_front_are_padding() -> None:
    """Of one value: a state can hold them, and a network over one step more has the same before it."""
    front = constants(np.full((1, 4, 2, 3), 7, np.int8))
    short, data = (
        with_steps_in_front(1 + 1, front),
        np.random.default_rng(0).integers(-128, 128, (1, 9, 2, 3)),
    )
    found, frames = stream(short, (1,)), data.astype(np.int8)
    assert found.warm_up is None or found.warm_up > 2
    got = answers(found, frames, 1)
    wanted = {
        n: run_graph(with_steps_in_front(n, front), [frames_of(frames, 1, 0, n)])[0] for n in (2, 3, 5, 9)
    }
    assert_same(got, wanted, 1)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_padding_made_of_frames_is_no_constant(mode: Literal["reflect", "replicate"]) -> None:
    def front(net: TimeNet, x: Tensor) -> Tensor:
        return net.add(Pad(((0, 0), (2, 0), (0, 0), (0, 0)), mode), x, like=x)

    found, refused = tried(with_steps_in_front(4, front), 1)
    assert found is not None, refused  # the last step is made of frames alone
    net = TimeNet(DType.INT8, (1, 4, 2, 3))
    net.axis = 1
    y = net.time_conv(Layer("conv", 3, dilation=2), front(net, net.x), 4)
    found, refused = tried(net.finish(net.add(Slice(1, 1, 2), y, like=y)).graph, 1)
    assert found is None
    assert "1 before the first step of the window, which has no value of its own" in refused


def test_a_window_that_is_no_whole_number_of_runs() -> None:
    drawn = Drawn("rows", DType.INT8, (Layer("conv", 3, 2, before=2), Layer("conv", 3, 2, before=2)), "last")
    found, refused = tried(drawn.graph(6), 1)
    assert found is None
    assert "6 frames are no whole number of runs of 4" in refused
    found, _ = tried(drawn.graph(8), 1)
    assert found is not None
    with pytest.raises(UsageError, match="6 frames a run"):
        stream(drawn.graph(8), (1,), hop=6)
    # Of every second frame: the window's first, and the second of all that came since the reset.
    drawn = Drawn("rows", DType.INT8, (Layer("conv", 1, 2), Layer("conv", 3, before=2)), "last")
    found, refused = tried(drawn.graph(3), 1)
    assert found is None
    assert "3 frames are no whole number of runs of 2" in refused


def test_fewer_steps_have_no_labels_of_more() -> None:
    graph = Drawn("rows", DType.INT8, (Layer("conv", 3),), "sequence").graph(6)
    program = Program("steps", graph, labels=tuple(map(str, range(graph.outputs[0].type.count))))
    assert not from_bytes(program.streaming(1).data, "steps").labels
    one = Drawn("rows", DType.INT8, (Layer("conv", 3),), "mean").graph(6)
    assert Program("one", one, labels=("a", "b", "c")).streaming(1).labels == ("a", "b", "c")


@given(
    st.sampled_from([DType.INT8, DType.FLOAT32]),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(0, 1), st.integers(0, 1)),
)
@settings(max_examples=15, deadline=None)
def test_a_convolution_of_one_pixel_is_a_linear_layer(
    dtype: DType, window: tuple[int, int, int, int], unread: tuple[int, int]
) -> None:
    height, width, down, across = window
    shape = 1, down * (height - 1) + 1 + unread[0], across * (width - 1) + 1 + unread[1], 3
    net = TimeNet(dtype, shape)
    net.axis = 1
    attrs = Conv2d(stride_h=2, stride_w=2, dilation_h=down, dilation_w=across)
    net.layer_of(attrs, net.x, 4, (height, width))
    graph = net.finish(net.nodes[-1].output).graph
    linear = check(pointwise_to_linear(graph), "pointwise_to_linear")
    assert "conv2d" not in {node.op for node in linear.nodes}
    data = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    given = data if dtype is DType.FLOAT32 else (data * 50).clip(-128, 127).astype(np.int8)
    np.testing.assert_array_equal(run_graph(graph, [given])[0], run_graph(linear, [given])[0])
