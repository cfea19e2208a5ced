# SPDX-License-Identifier: Apache-2.0
"""From sound to features: windows, energies, filter banks, noise, gain, logarithms; the C, and TFLM's answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.ops.signalling import answers, case, needs_tflm, numbers, refused
from tests.oracle import tflm
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, DType, Node, Tensor, constant
from tinyet.ops.signal_energy import SignalEnergy
from tinyet.ops.signal_fft_auto_scale import SignalFftAutoScale
from tinyet.ops.signal_filter_bank import SignalFilterBank
from tinyet.ops.signal_filter_bank_log import SignalFilterBankLog
from tinyet.ops.signal_filter_bank_spectral_subtraction import SignalFilterBankSpectralSubtraction
from tinyet.ops.signal_filter_bank_square_root import SignalFilterBankSquareRoot, root
from tinyet.ops.signal_pcan import ENTRIES, SignalPcan
from tinyet.ops.signal_window import SignalWindow

S16, S32, U32 = DType.INT16, DType.INT32, DType.UINT32
counts = st.integers(1, 40)


@st.composite
def signal_window_nodes(draw: st.DrawFn) -> Case:
    rng, count = drawing.random(draw), draw(counts)
    shape = (*draw(st.sampled_from(((), (1,), (2, 2)))), count)
    attrs = SignalWindow(draw(st.integers(0, 31)))
    return case(attrs, [numbers(rng, shape, S16)], [S16], [numbers(rng, (count,), S16)])


@st.composite
def signal_fft_auto_scale_nodes(draw: st.DrawFn) -> Case:
    """Few values, so that -32768 is the last, or none, as often."""
    rng = drawing.random(draw)
    x = numbers(rng, (draw(st.integers(1, 6)),), S16)
    return case(SignalFftAutoScale(), [x >> draw(st.integers(0, 15))], [S16, S32])


@st.composite
def signal_energy_nodes(draw: st.DrawFn) -> Case:
    rng, count = drawing.random(draw), draw(counts)
    start, end = sorted(draw(st.tuples(st.integers(0, count), st.integers(0, count))))
    return case(SignalEnergy(start, end), [numbers(rng, (2 * count,), S16)], [U32])


@st.composite
def signal_filter_bank_nodes(draw: st.DrawFn) -> Case:
    rng, count, bands = drawing.random(draw), draw(counts), draw(st.integers(2, 8))
    widths = rng.integers(0, count + 1, bands)
    starts = [rng.integers(0, count - width + 1) for width in widths]
    firsts = np.cumsum(widths) - widths
    weights = [numbers(rng, (max(int(widths.sum()), 1),), S16) for _ in range(2)]
    tables = [np.asarray(t, np.int16) for t in (*weights, starts, firsts, widths)]
    return case(SignalFilterBank(), [numbers(rng, (count,), U32)], [U32], tables)


@st.composite
def signal_filter_bank_square_root_nodes(draw: st.DrawFn) -> Case:
    """Squares, and their neighbours, among sums of all sizes."""
    rng, count = drawing.random(draw), draw(counts)
    roots = numbers(rng, (count,), U32).astype(np.uint64)
    sums: npt.NDArray[Any] = roots * roots + rng.integers(0, 3, count, np.uint64) * roots
    halves = [np.uint64(0xFFFFFFFF), np.uint64(32)]
    words = np.stack([sums & halves[0], sums >> halves[1]], 1).astype(np.uint32)
    any_ = numbers(rng, (count, 2), U32)
    x = np.where(rng.random((count, 1)) < 0.5, words, any_)
    shift = np.asarray(draw(st.integers(0, 31)), np.int32)
    return case(SignalFilterBankSquareRoot(), [x, shift], [U32])


@st.composite
def signal_filter_bank_spectral_subtraction_nodes(draw: st.DrawFn) -> Case:
    rng, count, bits = drawing.random(draw), draw(counts), draw(st.integers(0, 31))
    weights = [draw(st.integers(0, 2**31 - 1)) for _ in range(5)]
    if draw(st.booleans()):  # as they are used
        bits = 14
        weights = [w % (1 << bits) for w in weights]
        weights[1], weights[3] = (1 << bits) - weights[0], (1 << bits) - weights[2]
    attrs = SignalFilterBankSpectralSubtraction(
        weights[0],
        weights[1],
        weights[2],
        weights[3],
        weights[4],
        draw(st.integers(0, 31)),
        bits,
        draw(st.booleans()),
    )
    return case(attrs, [numbers(rng, (count,), U32) for _ in range(2)], [U32, U32])


@st.composite
def signal_pcan_nodes(draw: st.DrawFn) -> Case:
    rng, count = drawing.random(draw), draw(counts)
    gains = numbers(rng, (ENTRIES + draw(st.integers(0, 3)),), S16)
    attrs = SignalPcan(draw(st.integers(0, 63)))
    return case(attrs, [numbers(rng, (count,), U32) for _ in range(2)], [U32], [gains])


@st.composite
def signal_filter_bank_log_nodes(draw: st.DrawFn) -> Case:
    rng, count = drawing.random(draw), draw(counts)
    scale = draw(st.one_of(st.integers(0, 3000), st.integers(0, 2**31 - 1)))
    attrs = SignalFilterBankLog(scale, draw(st.integers(0, 31)))
    return case(attrs, [numbers(rng, (count,), U32)], [S16])


EVERY = (
    signal_window_nodes(),
    signal_fft_auto_scale_nodes(),
    signal_energy_nodes(),
    signal_filter_bank_nodes(),
    signal_filter_bank_square_root_nodes(),
    signal_filter_bank_spectral_subtraction_nodes(),
    signal_pcan_nodes(),
    signal_filter_bank_log_nodes(),
)
test_host = bodies.host(st.one_of(*EVERY))


# ---------------------------------------------------------------- TFLM


def by_tflm(
    name: str, drawn: Case, options: Mapping[str, int | bool], inputs: Sequence[Array], outputs: Sequence[str]
) -> list[npt.NDArray[Any]]:
    """The outputs of one run, of these types; the first dimension is that of the node's."""
    constants = [t.array for t in drawn.node.inputs if t is not None and t.is_constant]
    shapes = [
        t.shape if kind != "uint64" else t.shape[:1]
        for t, kind in zip(drawn.node.outputs, outputs, strict=True)
    ]
    return tflm.run_custom(name, options, constants, [inputs], list(zip(shapes, outputs, strict=True)))[0]


def sums(words: Array) -> npt.NDArray[np.uint64]:
    """(C, 2) as numbers of 64 bits."""
    low, high = words.astype(np.uint64).T
    return np.asarray(low | high << np.uint64(32), np.uint64)


def attributes(drawn: Case) -> dict[str, int]:
    return dataclasses.asdict(drawn.node.attrs)


def equal(name: str, nodes: st.SearchStrategy[Case], **titles: str) -> bodies.Test:
    """The outputs of an operator, whose attributes have these names in the file and else the same."""

    @drawing.quick
    @given(nodes)
    def test(drawn: Case) -> None:
        options = {titles.get(key, key): value for key, value in attributes(drawn).items()}
        kinds = [t.dtype.value for t in drawn.node.outputs]
        wanted = by_tflm(name, drawn, options, drawn.inputs, kinds)
        for got, want in zip(answers(drawn), wanted, strict=True):
            np.testing.assert_array_equal(got, want)

    marked: bodies.Test = needs_tflm(test)
    return marked


test_window = equal("SignalWindow", signal_window_nodes())
test_auto_scale = equal("SignalFftAutoScale", signal_fft_auto_scale_nodes())
test_pcan = equal("SignalPCAN", signal_pcan_nodes())
test_log = equal(
    "SignalFilterBankLog",
    signal_filter_bank_log_nodes(),
    scale="output_scale",
    correction_bits="input_correction_bits",
)


@needs_tflm
@drawing.quick
@given(signal_energy_nodes())
def test_energy(drawn: Case) -> None:
    """TFLM writes those of the range only."""
    attrs = attributes(drawn)
    start, end = attrs["start"], attrs["end"]
    (want,) = by_tflm(
        "SignalEnergy", drawn, {"start_index": start, "end_index": end}, drawn.inputs, ["uint32"]
    )
    (got,) = answers(drawn)
    np.testing.assert_array_equal(got[start:end], want[start:end])
    assert not got[:start].any()
    assert not got[end:].any()


@needs_tflm
@drawing.quick
@given(signal_filter_bank_nodes())
def test_filter_bank(drawn: Case) -> None:
    (got,) = answers(drawn)
    (want,) = by_tflm("SignalFilterBank", drawn, {"num_channels": len(got)}, drawn.inputs, ["uint64"])
    np.testing.assert_array_equal(sums(got), want)


@needs_tflm
@drawing.quick
@given(signal_filter_bank_square_root_nodes())
def test_square_root(drawn: Case) -> None:
    x, shift = drawn.inputs
    (want,) = by_tflm("SignalFilterBankSquareRoot", drawn, {}, [sums(x), shift], ["uint32"])
    np.testing.assert_array_equal(answers(drawn)[0], want)


@needs_tflm
@drawing.quick
@given(signal_filter_bank_spectral_subtraction_nodes(), st.integers(1, 5))
def test_spectral_subtraction(drawn: Case, runs: int) -> None:
    """Over several runs, the first of them with no noise before it."""
    attrs, count = attributes(drawn), len(drawn.inputs[0])
    options = {("spectral_subtraction_bits" if k == "bits" else k): v for k, v in attrs.items()}
    signals = [np.asarray(drawn.inputs[i % 2].astype(np.uint32) // np.uint32(i + 1)) for i in range(runs)]
    outputs = [((count,), "uint32")] * 2
    wanted = tflm.run_custom(
        "SignalFilterBankSpectralSubtraction",
        options | {"num_channels": count},
        [],
        [[x] for x in signals],
        outputs,
    )
    noise: Array = np.zeros(count, np.uint32)
    for x, want in zip(signals, wanted, strict=True):
        got = answers(case(drawn.node.attrs, [x, noise], [U32, U32]))
        np.testing.assert_array_equal(got, want)
        noise = got[1]


# ---------------------------------------------------------------- by hand


def test_roots_round_to_the_nearest() -> None:
    assert [root(n) for n in (0, 1, 2, 3, 6, 7, 12, 13)] == [0, 1, 1, 2, 2, 3, 3, 4]
    assert root(2**32 - 1) == 0xFFFF, "16 bits, as far as it has 32"
    assert root(2**32) == 0x10000
    assert root(2**64 - 1) == 0xFFFFFFFF


@pytest.mark.parametrize(
    ("sound", "shift"), [([0, 0], 0), ([3, -1], 13), ([-32768], 0), ([-32768, 3], 13), ([-32768, -3], 0)]
)
def test_auto_scale_of_the_smallest_number(sound: list[int], shift: int) -> None:
    drawn = case(SignalFftAutoScale(), [np.array(sound, np.int16)], [S16, S32])
    assert answers(drawn)[1] == shift


def test_logarithms_are_some() -> None:
    x = np.array([1, 2, 10, 1000, 10**9], np.uint32)
    (found,) = answers(case(SignalFilterBankLog(1000, 0), [x], [S16]))
    np.testing.assert_allclose(found, np.log(x) * 1000, atol=1.5)


# ---------------------------------------------------------------- refusals


def vector(name: str, count: int, dtype: DType = U32) -> Tensor:
    return tensor(name, (count,), dtype, 1.0 if dtype is S16 else None)


def test_shapes() -> None:
    x, number = vector("x", 4), tensor("n", (), S32)
    table = {count: constant("c", np.zeros(count, np.int16)) for count in (1, 3, 4, ENTRIES - 1)}
    for node, words in (
        (Node(SignalWindow(0), (x, table[3]), (x,)), "a window of 3"),
        (Node(SignalEnergy(0, 3), (x,), (x,)), "frequencies 0 to 3"),
        (Node(SignalEnergy(2, 1), (x,), (x,)), "frequencies 2 to 1"),
        (Node(SignalFilterBank(), (x, table[3], table[4], *[table[3]] * 3), (x,)), r"\(3,\)"),
        (Node(SignalFilterBank(), (x, table[3], table[3], *[table[1]] * 3), (x,)), "no channel"),
        (Node(SignalFilterBankSquareRoot(), (x, number), (x,)), r"\(C, 2\)"),
        (Node(SignalPcan(0), (x, x, table[ENTRIES - 1]), (x,)), "gains"),
        (Node(SignalPcan(0), (x, vector("y", 3), table[4]), (x,)), r"\(4,\)"),
    ):
        with pytest.raises(UnsupportedShape, match=words):
            ops.infer(node)


def test_types() -> None:
    x, sound = vector("x", 4), vector("s", 4, S16)
    window = constant("w", np.zeros(4, np.int16))
    assert "shift is 32" in refused(Node(SignalWindow(32), (sound, window), (sound,)))
    assert "must be a constant" in refused(Node(SignalWindow(0), (sound, sound), (sound,)))
    assert "must be int16, is uint32" in refused(Node(SignalWindow(0), (x, window), (sound,)))
    assert "must be uint32" in refused(Node(SignalEnergy(0, 2), (sound,), (sound,)))
    subtraction = SignalFilterBankSpectralSubtraction(1, 1, 1, 1, -1, 32, 0, False)
    assert "min_signal_remaining is -1" in refused(Node(subtraction, (x, x), (x, x)))
    assert "correction_bits is 32" in refused(Node(SignalFilterBankLog(1, 32), (x,), (sound,)))


def test_bands_lie_inside() -> None:
    weights = constant("w", np.zeros(3, np.int16))
    x, out = vector("x", 4), tensor("y", (1, 2), U32)
    for starts, firsts, widths, words in (
        ([0, 2], [0, 0], [1, 3], "4 frequencies"),
        ([0, 0], [0, 1], [1, 3], "3 weights"),
        ([0, -1], [0, 0], [1, 1], "4 frequencies"),
        ([0, 0], [0, 0], [1, -1], "4 frequencies"),
    ):
        tables = [constant("t", np.array(t, np.int16)) for t in (starts, firsts, widths)]
        assert words in refused(Node(SignalFilterBank(), (x, weights, weights, *tables), (out,)))
