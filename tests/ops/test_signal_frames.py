# SPDX-License-Identifier: Apache-2.0
"""Sound in frames that is kept from run to run: the C, and what TFLM answers over many runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, expected, tensor
from tests.ops.signalling import ITSELF, case, needs_tflm, numbers, refused
from tests.oracle import tflm
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.signal_delay import SignalDelay
from tinyet.ops.signal_framer import SignalFramer
from tinyet.ops.signal_overlap_add import DTYPES, SignalOverlapAdd
from tinyet.ops.signal_stacker import SignalStacker

S16, S32, F32 = DType.INT16, DType.INT32, DType.FLOAT32
channels = st.sampled_from(((), (1,), (2,), (2, 3)))


@st.composite
def signal_delay_nodes(draw: st.DrawFn) -> Case:
    rng, outer = drawing.random(draw), draw(channels)
    x, before = (numbers(rng, (*outer, draw(st.integers(1, 9))), S16) for _ in range(2))
    return case(SignalDelay(), [x, before], [S16, S16])


@st.composite
def signal_framer_nodes(draw: st.DrawFn) -> Case:
    rng, outer = drawing.random(draw), draw(channels)
    step = draw(st.integers(1, 5))
    size = step + draw(st.integers(1, 9))
    x = numbers(rng, (*outer, step * draw(st.integers(1, 4))), S16)
    kept = draw(st.sampled_from((size - step, (size - 1) // step * step)))
    missing = np.asarray(draw(st.integers(-1, kept)), np.int32)
    return case(
        SignalFramer(size, step), [x, numbers(rng, (*outer, kept), S16), missing], [S16, S32, S16, S32]
    )


@st.composite
def signal_stacker_nodes(draw: st.DrawFn) -> Case:
    rng, count, kept = drawing.random(draw), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    attrs = SignalStacker(draw(st.integers(0, kept)), draw(st.integers(1, kept + 1)))
    inputs = [numbers(rng, (n * count,), S16) for n in (1, kept)]
    missing = np.asarray(draw(st.integers(-1, 3)), np.int32)
    return case(attrs, [*inputs, missing], [S16, S32, S16, S32])


@st.composite
def signal_overlap_add_nodes(draw: st.DrawFn) -> Case:
    rng, outer, dtype = drawing.random(draw), draw(channels), draw(st.sampled_from(DTYPES))
    step = draw(st.integers(1, 5))
    size = step + draw(st.integers(1, 9))
    x = numbers(rng, (*outer, draw(st.integers(1, 4)), size), dtype)
    left = numbers(rng, (*outer, size - step), dtype)
    return case(SignalOverlapAdd(step), [x, left], [dtype, dtype])


every = st.one_of(
    signal_delay_nodes(), signal_framer_nodes(), signal_stacker_nodes(), signal_overlap_add_nodes()
)
test_host = bodies.host(every)


# ---------------------------------------------------------------- over many runs


def runs_of(
    attrs: Attrs, sounds: Sequence[Array], states: Sequence[Array], outputs: Sequence[DType]
) -> list[list[Array]]:
    """The results of one run after another; the last outputs are the next run's states."""
    found, held = [], list(states)
    for sound in sounds:
        made = case(attrs, [sound, *held], outputs)
        out = expected(made.node, made.inputs)
        held = list(out[len(out) - len(held) :])
        found.append(list(out[: len(out) - len(held)]))
    return found


def same_as_tflm(
    name: str,
    options: Mapping[str, int | bool],
    sounds: Sequence[Array],
    outputs: Sequence[tuple[Shape, str]],
    found: Sequence[Sequence[Array]],
) -> None:
    """Where the second result says so, in those runs only in which the first is whole."""
    wanted = tflm.run_custom(name, options, [], [[x] for x in sounds], outputs)
    for got, want in zip(found, wanted, strict=True):
        for flag, truth in zip(got[1:], want[1:], strict=True):
            assert bool(flag) == bool(truth)
        if all(want[1:]):
            np.testing.assert_array_equal(got[0], want[0])


@needs_tflm
@pytest.mark.parametrize("delay", [1, 3, 8, 20])
def test_delay(delay: int) -> None:
    rng = np.random.default_rng(delay)
    sounds = [numbers(rng, (2, 8), S16) for _ in range(6)]
    found = runs_of(SignalDelay(), sounds, [np.zeros((2, delay), np.int16)], [S16, S16])
    same_as_tflm("SignalDelay", {"delay_length": delay}, sounds, [((2, 8), "int16")], found)


@needs_tflm
@pytest.mark.parametrize("prefill", [False, True])
@pytest.mark.parametrize(("size", "step", "count"), [(5, 2, 2), (6, 2, 4), (8, 3, 3), (4, 3, 9), (12, 2, 2)])
def test_framer(size: int, step: int, count: int, prefill: bool) -> None:
    rng = np.random.default_rng(size)
    sounds = [numbers(rng, (2, count), S16) for _ in range(12)]
    kept = size - step if prefill else (size - 1) // step * step
    states: list[Array] = [np.zeros((2, kept), np.int16), np.asarray(0 if prefill else kept, np.int32)]
    found = runs_of(SignalFramer(size, step), sounds, states, [S16, S32, S16, S32])
    assert any(run[1] for run in found)
    options = {"frame_size": size, "frame_step": step, "prefill": prefill}
    outputs: list[tuple[Shape, str]] = [((2, count // step, size), "int16"), ((), "bool")]
    same_as_tflm("SignalFramer", options, sounds, outputs, found)


@needs_tflm
@pytest.mark.parametrize(("left", "right", "step"), [(1, 0, 1), (2, 1, 1), (0, 2, 3), (1, 1, 2), (3, 0, 2)])
def test_stacker(left: int, right: int, step: int) -> None:
    rng, count = np.random.default_rng(left), 3
    sounds = [numbers(rng, (count,), S16) for _ in range(12)]
    states: list[Array] = [np.zeros(count * (left + right), np.int16), np.asarray(-1, np.int32)]
    found = runs_of(SignalStacker(right, step), sounds, states, [S16, S32, S16, S32])
    assert any(run[1] for run in found)
    options = {"num_channels": count, "stacker_left_context": left, "stacker_right_context": right}
    outputs: list[tuple[Shape, str]] = [((count * (left + right + 1),), "int16"), ((), "bool")]
    same_as_tflm("SignalStacker", options | {"stacker_step": step}, sounds, outputs, found)


@needs_tflm
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("size", "step"), [(6, 2), (5, 4), (7, 3)])
def test_overlap_add(size: int, step: int, dtype: DType) -> None:
    rng = np.random.default_rng(size)
    sounds = [numbers(rng, (2, 3, size), dtype) for _ in range(6)]
    states = [np.zeros((2, size - step), dtype.numpy)]
    found = runs_of(SignalOverlapAdd(step), sounds, states, [dtype, dtype])
    options = {"T": 7 if dtype is S16 else 0, "frame_step": step}
    same_as_tflm("SignalOverlapAdd", options, sounds, [((2, 3 * step), dtype.value)], found)


# ---------------------------------------------------------------- refusals


def test_shapes() -> None:
    x, short, many = (tensor("x", shape, S16, 1.0) for shape in ((2, 8), (2, 3), (8,)))
    number = tensor("n", (), S32)
    for node, words in (
        (Node(SignalDelay(), (x, many), (x, many)), "behind"),
        (Node(SignalOverlapAdd(3), (x, short), (many, short)), "left"),
        (Node(SignalFramer(6, 3), (x, short, number), (x, number, short, number)), "each 3 on"),
        (Node(SignalFramer(6, 4), (x, short, number), (x, number, short, number)), "before"),
        (Node(SignalFramer(5, 2), (x, short, short), (x, number, short, number)), "one number"),
        (Node(SignalStacker(0, 1), (many, tensor("y", (9,), S16, 1.0), number), ()), "9 values before 8"),
    ):
        with pytest.raises(UnsupportedShape, match=words):
            ops.infer(node)


def test_types() -> None:
    x, finer, real = tensor("x", (4,), S16, 1.0), tensor("y", (4,), S16, 0.5), tensor("z", (4,), F32)
    assert x.type.quant == ITSELF != finer.type.quant
    assert "quantized alike" in refused(Node(SignalDelay(), (x, finer), (x, x)))
    assert "must be int16" in refused(Node(SignalDelay(), (x, real), (x, x)))
    byte = tensor("b", (1, 4), DType.INT8, 1.0)
    assert "no form for int8" in refused(Node(SignalOverlapAdd(2), (byte, byte), (byte, byte)))
    number = tensor("n", (), S32)
    for attrs, words in ((SignalStacker(2, 1), "right is 2"), (SignalStacker(0, 3), "step is 3")):
        assert words in refused(Node(attrs, (x, x, number), (x, number, x, number)))
