# SPDX-License-Identifier: Apache-2.0
"""Networks over a window, and those that take its newest frames: the same answers, to the bit; else a refusal."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.over_time_nets import Drawn, nets
from tinyet.errors import ModelError, UnsupportedShape
from tinyet.ir import Array, Graph
from tinyet.over_time import Streaming, stream
from tinyet.reference import Session, run_graph

VALID, CAUSAL, SAME = ("none",), ("none", "causal", "causal"), ("none", "same", "same")
ANSWERS = ("last", "mean", "max", "flat", "sequence")


def made(drawn: Drawn, frames: int) -> Graph:
    """The network over so many frames; draws for which there is none are left out."""
    try:
        return drawn.graph(frames)
    except UnsupportedShape:
        assume(False)
        raise


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


@given(nets(CAUSAL, ("last", "sequence")), st.integers(2, 12), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_with_causal_padding_an_answer_is_that_of_all_frames(drawn: Drawn, windows: int, seed: int) -> None:
    """Since the reset; where it is of fewer, of the newest window."""
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
    longer = {
        end: run_graph(made(drawn, end), [frames_of(data, axis, 0, end)])[0] for end in got if end >= frames
    }
    assert_same(got, longer, axis)
    if found.warm_up is not None:
        windows_of = {end: frames_of(data, axis, end - frames, end) for end in got if end >= frames}
        assert_same(got, {end: run_graph(graph, [window])[0] for end, window in windows_of.items()}, axis)


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
