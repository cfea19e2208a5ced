# SPDX-License-Identifier: Apache-2.0
"""Logarithms of bands in fixed point: the C, and how far the answers are from those of real numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tests.ops.signalling import answers, numbers, refused
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.ops.log_bands import LogBands, logarithm
from tinyet.ops.shared import fixed_fft

LENGTHS = (4, 6, 8, 10, 12, 16, 20, 30, 32, 50, 60, 64, 96, 100, 120, 128, 200)

SIZES_OF_VECTORS = (
    *((8, 8), (16, 16), (24, 24), (32, 24), (40, 40), (64, 64), (96, 56), (120, 120), (128, 80), (160, 160)),
    *((200, 200), (256, 256), (320, 240), (400, 400), (480, 480), (512, 400), (512, 512), (600, 600)),
)
"""Values of transforms and of frames that kernels for vectors take."""


def node_of(
    rows: tuple[int, ...],
    window: np.ndarray,
    filters: np.ndarray,
    length: int,
    floor: float,
    scales: tuple[float, float] = (1.0, 2.0**-9),
) -> Node:
    x, y = (
        Tensor(name, TensorType(shape, DType.INT16, QuantParams.per_tensor(scale, 0)))
        for name, shape, scale in zip(
            "xy", ((*rows, len(window)), (*rows, len(filters))), scales, strict=True
        )
    )
    constants = [constant(n, v.astype(np.float32)) for n, v in (("window", window), ("filters", filters))]
    node = Node(LogBands(length, floor), (x, *constants), (y,))
    assert ops.infer(node) == (y.shape,)
    return node


@st.composite
def log_bands_nodes(draw: st.DrawFn, sizes: tuple[int, int] | None = None) -> Case:
    """sizes: of the transform and of a frame."""
    rng = drawing.random(draw)
    length, size = sizes or (draw(st.sampled_from(LENGTHS)), None)
    size = size or draw(st.integers(max(1, length - 5), length))
    bins = length // 2 + 1
    bands = draw(st.integers(1, 9))
    filters = np.zeros((bands, bins))
    for band in range(bands - draw(st.integers(0, 1)) * (bands > 1)):
        first, end = sorted(rng.choice(bins + 1, 2, replace=False))
        filters[band, first:end] = rng.uniform(0, 1, end - first)
    filters *= 2.0 ** int(rng.integers(-20, 20))
    if not filters.any():
        filters[0, 0] = 1.0
    window = rng.uniform(-1, 1, size) if draw(st.booleans()) else np.ones(size)
    rows = draw(st.sampled_from(((), (1,), (2, 2))))
    floor = 2.0 ** float(rng.uniform(-30, 20))
    scale = draw(st.sampled_from((1.0, 2.0**-15, 0.3)))
    node = node_of(rows, window, filters, length, floor, (scale, draw(st.sampled_from((2.0**-9, 0.1)))))
    assert ops.op_of(node).check(node) in (None, f"the floor {floor} is louder than any sound")
    if ops.op_of(node).check(node) is not None:
        node = node.replace(attrs=LogBands(length, 2.0**-30))
    return Case(node, (numbers(rng, (*rows, size), DType.INT16),))


@st.composite
def quiet_beside_loud(draw: st.DrawFn) -> Case:
    """Each bin a band: one is loud, and of some the power is a few units."""
    length, loud = 64, draw(st.integers(1, 31))
    turns = 2 * np.pi * loud * np.arange(length) / length
    x = np.rint(30000 * np.cos(turns) + draw(st.integers(-9, 9))).astype(np.int16)
    node = node_of((1,), np.ones(length), np.eye(length // 2 + 1), length, 2.0**-30)
    return Case(node, (x[None],))


test_host = bodies.host(log_bands_nodes())


def exact(case: Case) -> np.ndarray:
    attrs = case.node.attrs
    assert isinstance(attrs, LogBands)
    x = case.inputs[0].astype(np.float64) * case.node.input(0).type.scale
    spectrum = np.fft.rfft(x * case.node.input(1).array.astype(np.float64), attrs.length)
    bands = np.abs(spectrum) ** 2 @ case.node.input(2).array.astype(np.float64).T
    return np.asarray(np.log(bands + attrs.floor))


@pytest.mark.parametrize("length", [256, 400, 480, 512, 1024])
def test_near_real_numbers(length: int) -> None:
    """To three steps of the output, on average to half of one. Sounds of three steps of the converter are right to half
    a decibel: products are rounded down."""
    rng = np.random.default_rng(length)
    bins = length // 2 + 1
    filters = np.maximum(0, 1 - np.abs(np.linspace(3, bins - 8, 20)[:, None] - np.arange(bins)) / 4)
    window = np.hanning(length)
    for loudness, most, average in ((30000, 0.006, 0.001), (300, 0.006, 0.001), (3, 0.13, 0.02)):
        time = np.arange(length)
        x = np.stack(
            [
                np.cos(0.3 * time * (1 + k / 7)) * loudness + rng.standard_normal(length) * loudness / 30
                for k in range(8)
            ]
        )
        sound = np.clip(np.rint(x), -32768, 32767).astype(np.int16)
        case = Case(node_of((8,), window, filters, length, 1.0), (sound,))
        found, wanted = answers(case)[0] * 2.0**-9, exact(case)
        assert np.abs(found - wanted).max() < most
        assert np.sqrt(np.mean((found - wanted) ** 2)) < average


def test_silence_is_the_floor() -> None:
    for floor in (1e-9, 1.0, 1e6):
        case = Case(node_of((1,), np.ones(64), np.eye(33), 64, floor), (np.zeros((1, 64), np.int16),))
        np.testing.assert_allclose(answers(case)[0] * 2.0**-9, np.log(floor), atol=2.0**-9)


@pytest.mark.parametrize("length", [6, 8, 50, 64, 240, 512])
def test_nothing_leaves_32_bits(length: int) -> None:
    """The loudest sounds that there are: all samples at an end, in step with each frequency."""
    turns = 2 * np.pi * np.outer(np.arange(length // 2 + 1), np.arange(length)) / length
    waves = [np.where(np.cos(turns + phase) >= 0, 32767, -32768) for phase in (0.0, np.pi / 2, np.pi / 4)]
    x = np.concatenate([*waves, np.full((1, length), -32768)]).astype(np.int64)
    found = fixed_fft.real_transform(x << fixed_fft.left_shift(length), length)
    largest = max(np.abs(found.r).max(), np.abs(found.i).max())
    assert 2**29 < largest < 2**31
    exact = np.fft.rfft(x)
    scaled = (found.r + 1j * found.i) * 2.0 ** (fixed_fft.halvings(length) - fixed_fft.left_shift(length))
    noise = np.sum(np.abs(scaled - exact) ** 2) / np.sum(np.abs(exact) ** 2)
    assert 10 * np.log10(noise) < -90


@drawing.quick
@given(st.integers(1, 2**63))
def test_logarithm(x: int) -> None:
    found = int(logarithm(np.array([x], np.uint64))[0])
    assert abs(found / 2**15 - float(np.log2(float(x)))) < 2.5e-4


def test_refused() -> None:
    good = node_of((2,), np.ones(8), np.ones((3, 5)), 8, 1.0)
    assert ops.op_of(good).check(good) is None
    for window, filters, floor, why in (
        (np.full(8, 1.5), np.ones((3, 5)), 1.0, "greater than 1"),
        (np.ones(8), -np.ones((3, 5)), 1.0, "negative"),
        (np.ones(8), np.zeros((3, 5)), 1.0, "zero"),
        (np.full(8, np.nan), np.ones((3, 5)), 1.0, "not finite"),
        (np.ones(8), np.ones((3, 5)), 0.0, "floor"),
        (np.ones(8), np.ones((3, 5)), 1e25, "louder"),
    ):
        assert why in refused(node_of((2,), window, filters, 8, floor))
    floats = good.replace(inputs=(tensor("x", (2, 8), DType.FLOAT32), *good.inputs[1:]))
    assert "must be int16" in refused(floats)
    for shape, length in (((2, 8), 6), ((2, 8), 14), ((2, 7), 8)):
        x = Tensor("x", TensorType(shape, DType.INT16, QuantParams.per_tensor(1.0, 0)))
        wrong = Node(LogBands(length, 1.0), (x, *good.inputs[1:]), good.outputs)
        with pytest.raises(UnsupportedShape, match="log_bands"):
            ops.infer(wrong)
