# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of real values: the C, TFLM's answers, the mathematics."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.ops.signalling import answers, case, needs_tflm, numbers, sounds
from tests.oracle import tflm
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node
from tinyet.ops.shared import fft
from tinyet.ops.signal_irfft import SignalIrfft
from tinyet.ops.signal_rfft import SignalRfft

LENGTHS = (4, 6, 8, 10, 12, 16, 18, 20, 30, 32, 60, 64, 90, 96, 128, 150)
TYPES = {DType.INT16: 7, DType.INT32: 2, DType.FLOAT32: 0}


@st.composite
def signal_rfft_nodes(draw: st.DrawFn) -> Case:
    length, dtype, rng = draw(st.sampled_from(LENGTHS)), draw(sounds), drawing.random(draw)
    count = draw(st.one_of(st.just(length), st.integers(1, length)))
    shape = (*draw(st.sampled_from(((), (2,), (1, 3)))), count)
    return case(SignalRfft(length), [numbers(rng, shape, dtype)], [dtype])


@st.composite
def signal_irfft_nodes(draw: st.DrawFn) -> Case:
    length, dtype, rng = draw(st.sampled_from(LENGTHS)), draw(sounds), drawing.random(draw)
    shape = (*draw(st.sampled_from(((), (2,), (1, 3)))), length + 2)
    return case(SignalIrfft(length), [numbers(rng, shape, dtype)], [dtype])


test_host = bodies.host(st.one_of(signal_rfft_nodes(), signal_irfft_nodes()))


@needs_tflm
@drawing.quick
@given(st.one_of(signal_rfft_nodes(), signal_irfft_nodes()))
def test_tflm(drawn: Case) -> None:
    attrs, out = drawn.node.attrs, drawn.node.output.type
    assert isinstance(attrs, SignalRfft | SignalIrfft)
    name = "SignalRfft" if isinstance(attrs, SignalRfft) else "SignalIrfft"
    options = {"T": TYPES[out.dtype], "fft_length": attrs.length}
    ((want,),) = tflm.run_custom(name, options, [], [drawn.inputs], [(out.shape, out.dtype.value)])
    (got,) = answers(drawn)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("length", [256, 480, 512, 1024])
def test_a_transform_is_one(length: int) -> None:
    """In float numpy's, and back again what it was; int16 within what the rounding of its stages leaves."""
    x = np.random.default_rng(length).standard_normal(length).astype(np.float32)
    found: npt.NDArray[Any] = fft.real_transform(x, length, DType.FLOAT32)
    wanted: npt.NDArray[Any] = np.fft.rfft(x.astype(np.float64)).view(np.float64)
    np.testing.assert_allclose(found, wanted, atol=1e-3)
    back: npt.NDArray[Any] = fft.inverse_transform(found, length, DType.FLOAT32)
    np.testing.assert_allclose(back, np.asarray(x, np.float64), atol=1e-5)
    fixed: npt.NDArray[Any] = fft.real_transform((x * 5000).astype(np.int16), length, DType.INT16)
    np.testing.assert_allclose(fixed, wanted * 5000 / length, atol=8)


def test_lengths() -> None:
    for length in (2, 5, 14, 22, 2 * fft.MAX_LENGTH):
        x, y = tensor("x", (2,), DType.FLOAT32), tensor("y", (length + 2,), DType.FLOAT32)
        with pytest.raises(UnsupportedShape, match="a transform of"):
            ops.infer(Node(SignalRfft(length), (x,), (y,)))
    with pytest.raises(UnsupportedShape, match="for"):
        ops.infer(Node(SignalRfft(4), (tensor("x", (5,), DType.FLOAT32),), (y,)))
    every = [n for n in range(fft.MAX_LENGTH + 1) if fft.length_complaint(n) is None]
    assert max(len(fft.stages(n // 2)) for n in every) <= fft.MAX_STAGES
