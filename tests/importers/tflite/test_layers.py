# SPDX-License-Identifier: Apache-2.0
"""Layers with weights: drawn shapes and scales, all in one file, beside TFLM and LiteRT."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.importers.tflite.originals import RUNTIMES, assert_same, installed
from tests.tflite_files import Writer
from tinyet import from_tflite
from tinyet.errors import TinyetError
from tinyet.tflite import Quantization, Runtime, TensorInfo
from tinyet.tflite.enumerations import TYPES
from tinyet.tflite.options import (
    ArgMaxOptions,
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Pool2DOptions,
    TransposeConvOptions,
)

runtimes = pytest.mark.parametrize(
    "runtime",
    [
        pytest.param(r, marks=pytest.mark.skipif(not installed(r), reason=f"needs {RUNTIMES[r]}"))
        for r in ("tflm", "litert")
    ],
)
KINDS = ("int8", "int16", "float32")
ACTIVATIONS = (0, 1, 3)
SHORT = ("int16", "int32")
"""Activations beside biases that ask for sums of 32 bits."""
ULPS = 16


class Drawn:
    """A file of many layers, each with an input and an output of its own."""

    def __init__(self, seed: int) -> None:
        self.rng, self.w = np.random.default_rng(seed), Writer()
        self.inputs: list[int] = []
        self.outputs: list[int] = []

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def activation(self) -> int:
        return int(self.rng.choice(ACTIVATIONS))

    def value(self, shape: tuple[int, ...], kind: str, scale: float) -> int:
        if kind == "float32":
            return self.w.value(shape, kind, None)
        return self.w.value(shape, kind, scale, self.number(-128, 127) if kind == "int8" else 0)

    def weights(
        self, shape: tuple[int, ...], kind: str, axis: int, *, each: bool = True, bias: str = ""
    ) -> tuple[int, ...]:
        """Weights along whose axis each index has a scale, or all have one; and the bias for them, of type `bias` where
        it is not the usual one."""
        count = shape[axis]
        if kind == "float32":
            reals = self.w.constant(self.rng.standard_normal(count).astype(np.float32))
            return self.w.constant(self.rng.standard_normal(shape).astype(np.float32)), reals
        scales = tuple(self.rng.uniform(0.002, 0.02, count if each else 1).tolist())
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        usual = "int32" if kind == "int8" else "int64"
        numbers = self.rng.integers(-3000, 3000, count).astype(bias or usual)
        return self.w.constant(data, scales, axis), self.w.constant(numbers, tuple(0.02 * s for s in scales))

    def layer(
        self, code: str, x: int, before: tuple[int, ...], behind: tuple[int, ...], y: int, options: object
    ) -> None:
        self.w.call(code, (*before, x, *behind), (y,), options)  # type: ignore[arg-type]
        self.inputs.append(x)
        self.outputs.append(y)

    def check(self, runtime: Runtime, folder: Path) -> None:
        assert_same(self.w, self.inputs, self.outputs, runtime, folder, ulps=ULPS)


def out_scale(depth: int) -> float:
    """About what the sums fill in int8; int16 has fewer of its numbers then."""
    return 0.02 * 0.01 * math.sqrt(depth) * 60


@runtimes
@pytest.mark.parametrize("depthwise", [False, True])
def test_convolutions(depthwise: bool, runtime: Runtime, tmp_path: Path) -> None:
    d = Drawn(1)
    usual = [(kind, "") for kind in KINDS]
    for kind, bias in usual if depthwise else (*usual, SHORT):
        for case in range(5):
            h, w, c, o = (d.number(3, 8) for _ in range(4))
            kh, kw, sh, sw = d.number(1, 3), d.number(1, 3), d.number(1, 2), d.number(1, 2)
            same = bool(d.number(0, 1))
            dh, dw = (d.number(1, 2), d.number(1, 2)) if (sh, sw) == (1, 1) and same else (1, 1)
            size = [-(-n // s) if same else (n - k) // s + 1 for n, s, k in ((h, sh, kh), (w, sw, kw))]
            x = d.value((1, h, w, c), kind, 0.02)
            act = d.activation()
            if depthwise:
                o = c * d.number(1, 2)
                weights = d.weights((1, kh, kw, o), kind, 3)
                options: object = DepthwiseConv2DOptions(1 - same, sw, sh, o // c, act, dw, dh)
            else:
                weights = d.weights((o, kh, kw, c), kind, 0, each=case > 0, bias=bias)
                weights = weights[:1] if runtime == "tflm" and bias and case == 4 else weights
                asked = TYPES.index(bias) if bias else 0
                options = Conv2DOptions(1 - same, sw, sh, act, dw, dh, asked)
            y = d.value((1, *size, o), kind, out_scale(kh * kw * c))
            d.layer("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", x, (), weights, y, options)
    d.check(runtime, tmp_path)


@runtimes
def test_transposed_convolutions(runtime: Runtime, tmp_path: Path) -> None:
    d = Drawn(2)
    for kind in KINDS:
        for case in range(6):
            h, w, c, o = (d.number(1, 5) for _ in range(4))
            kh, kw, sh, sw = (d.number(1, 4) for _ in range(4))
            same = bool(d.number(0, 1))
            size = [n * s if same else (n - 1) * s + max(k, s) for n, s, k in ((h, sh, kh), (w, sw, kw))]
            x, y = (
                d.value((1, h, w, c), kind, 0.02),
                d.value((1, *size, o), kind, out_scale(kh * kw * c)),
            )
            weights, bias = d.weights((o, kh, kw, c), kind, 0, each=case > 0)
            shape = d.w.constant(np.array([1, *size, o], np.int32))
            options = TransposeConvOptions(1 - same, sw, sh, d.activation())
            d.layer("TRANSPOSE_CONV", x, (shape, weights), (bias,) if case > 1 else (), y, options)
    d.check(runtime, tmp_path)


@runtimes
def test_fully_connected(runtime: Runtime, tmp_path: Path) -> None:
    """Also of more dimensions than two, with and without the last one kept; many outputs, so that roundings differ."""
    d = Drawn(3)
    usual = [(kind, "") for kind in KINDS]
    # LiteRT rounds sums of either length in the same way.
    for kind, asked in (*usual, SHORT) if runtime == "tflm" else usual:
        for case in range(6):
            rows, depth, count = d.number(1, 4), d.number(1, 60), d.number(100, 300)
            keep = case == 4
            x = d.value((1, rows, depth) if keep else (rows, depth), kind, 0.02)
            y = d.value((1, rows, count) if keep else (rows, count), kind, out_scale(depth))
            weights, bias = d.weights((count, depth), kind, 0, each=case % 2 == 0, bias=asked)
            type_ = TYPES.index(asked) if asked else 0
            options = FullyConnectedOptions(d.activation(), 0, keep, quantized_bias_type=type_)
            d.layer("FULLY_CONNECTED", x, (), (weights, bias if case < 3 else -1), y, options)
    d.check(runtime, tmp_path)


@pytest.mark.skipif(not installed("tflm"), reason="needs tflite_micro")
@pytest.mark.parametrize(
    ("number", "scales"),
    [
        (-190195, (0.01033055316656828, 0.016452133655548096, 0.3825511038303375)),
        (-71153, (0.023768935352563858, 0.008389507420361042, 0.2270192950963974)),
        (-77816, (0.0264474768191576, 0.010119770653545856, 0.24647457897663116)),
    ],
)
def test_scales_are_multiplied_in_float64(
    number: int, scales: tuple[float, float, float], tmp_path: Path
) -> None:
    """Sums whose results are others with a product in float32."""
    d = Drawn(10)
    x, y = d.w.value((1, 1), "int8", scales[0]), d.w.value((1, 1), "int8", scales[2])
    weights = d.w.constant(np.zeros((1, 1), np.int8), scales[1:2])
    bias = d.w.constant(np.array([number], np.int32), (scales[0] * scales[1],))
    d.layer("FULLY_CONNECTED", x, (), (weights, bias), y, FullyConnectedOptions())
    d.check("tflm", tmp_path)


def int4(shape: tuple[int, ...], rng: np.random.Generator, scales: tuple[float, ...]) -> TensorInfo:
    numbers = rng.integers(-7, 8, shape).astype(np.int8)
    flat = np.append(numbers.reshape(-1), np.zeros(numbers.size % 2, np.int8)).astype(np.uint8) & 15
    data = (flat[::2] + 16 * flat[1::2]).astype(np.uint8).tobytes()
    return TensorInfo("model/int4", shape, "int4", data, Quantization(scales, (0,) * len(scales), 0))


@runtimes
def test_int4_weights(runtime: Runtime, tmp_path: Path) -> None:
    d = Drawn(4)
    for shape in ((5, 1, 1, 7), (4, 3, 3, 2), (9, 21), (120, 8)):
        scales = tuple(d.rng.uniform(0.05, 0.1, shape[0] if len(shape) == 4 else 1).tolist())
        d.w.tensors.append(int4(shape, d.rng, scales))
        weights = len(d.w.tensors) - 1
        bias = d.w.constant(
            d.rng.integers(-300, 300, shape[0]).astype(np.int32), tuple(0.02 * s for s in scales)
        )
        if len(shape) == 4:
            h, w = 6 - shape[1] + 1, 5 - shape[2] + 1
            x, y = d.value((1, 6, 5, shape[3]), "int8", 0.02), d.value((1, h, w, shape[0]), "int8", 0.05)
            d.layer("CONV_2D", x, (), (weights, bias), y, Conv2DOptions(1, 1, 1))
        else:
            x, y = d.value((3, shape[1]), "int8", 0.02), d.value((3, shape[0]), "int8", 0.05)
            d.layer("FULLY_CONNECTED", x, (), (weights, bias), y, FullyConnectedOptions())
    d.check(runtime, tmp_path)


@runtimes
def test_batch_matmul(runtime: Runtime, tmp_path: Path) -> None:
    d = Drawn(5)
    for kind in KINDS:
        for adj_x, adj_y in ((False, False), (True, False), (False, True), (True, True)):
            batch, m, k, n = (d.number(1, 5) for _ in range(4))
            a = d.value((batch, k, m) if adj_x else (batch, m, k), kind, 0.02)
            b = d.value((batch, n, k) if adj_y else (batch, k, n), kind, 0.03)
            y = d.value((batch, m, n), kind, 0.02 * 0.03 * np.sqrt(k) * (60 if kind == "int8" else 15000))
            d.w.call("BATCH_MATMUL", (a, b), (y,), BatchMatMulOptions(adj_x, adj_y))
            d.inputs += [a, b]
            d.outputs.append(y)
    d.check(runtime, tmp_path)


@runtimes
def test_computed_weights(runtime: Runtime, tmp_path: Path) -> None:
    d = Drawn(11)
    for kind in KINDS[:: 2 if runtime == "tflm" else -3]:
        x, w = d.value((3, 7), kind, 0.02), d.w.value((5, 7), kind, 0.01 if kind == "int8" else None)
        y = d.value((3, 5), kind, 0.05)
        d.layer("FULLY_CONNECTED", x, (), (w, -1), y, FullyConnectedOptions(1))
        d.inputs.append(w)
    d.check(runtime, tmp_path)


@runtimes
def test_embeddings_and_roots_of_squares(runtime: Runtime, tmp_path: Path) -> None:
    d = Drawn(12)
    table = d.w.constant(d.rng.standard_normal((256, 5)).astype(np.float32))
    scores, axis = d.value((4, 256), "float32", 0), d.w.constant(np.array(1, np.int32))
    ids = d.w.call("ARG_MAX", (scores, axis), (d.w.value((4,), "int32", None),), ArgMaxOptions(2))
    y = d.w.call("EMBEDDING_LOOKUP", (ids, table), (d.w.value((4, 5), "float32", None),))
    d.inputs.append(scores)
    d.outputs.append(y)
    x, z = d.value((1, 6, 6, 3), "float32", 0), d.value((1, 3, 3, 3), "float32", 0)
    d.layer("L2_POOL_2D", x, (), (), z, Pool2DOptions(0, 2, 2, 3, 3, 3))
    d.check(runtime, tmp_path)


@pytest.mark.parametrize("code", ["DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"])
def test_biases_that_the_original_misreads_are_refused(code: str, tmp_path: Path) -> None:
    d = Drawn(13)
    x, y = d.value((1, 1, 1, 3), "int16", 0.02), d.value((1, 1, 1, 3), "int16", 0.05)
    if code == "DEPTHWISE_CONV_2D":
        d.layer(
            code,
            x,
            (),
            d.weights((1, 1, 1, 3), "int16", 3, bias="int32"),
            y,
            DepthwiseConv2DOptions(1, 1, 1, 1),
        )
    else:
        weights, bias = d.weights((3, 1, 1, 3), "int16", 0, bias="int32")
        shape = d.w.constant(np.array([1, 1, 1, 3], np.int32))
        d.layer(code, x, (shape, weights), (bias,), y, TransposeConvOptions(1, 1, 1))
    assert "takes for int64" in refusal(d, tmp_path)


@runtimes
def test_scales_beside_biases_mean_nothing(runtime: Runtime, tmp_path: Path) -> None:
    """Some converters wrote them along an axis that a bias has not; LiteRT refuses these, TFLM does not look."""
    d = Drawn(6)
    x, y = d.value((1, 4, 4, 2), "int8", 0.02), d.value((1, 4, 4, 3), "int8", 0.05)
    weights, bias = d.weights((3, 1, 1, 2), "int8", 0)
    told = d.w.tensors[bias]
    axis = 3 if runtime == "tflm" else 0
    d.w.tensors[bias] = TensorInfo(
        told.name, told.shape, told.type, told.data, Quantization((0.5, 0.25, 7.0), (0,) * 3, axis)
    )
    d.layer("CONV_2D", x, (), (weights, bias), y, Conv2DOptions(1, 1, 1))
    d.check(runtime, tmp_path)


@pytest.mark.skipif(not installed("litert"), reason="needs ai_edge_litert")
@pytest.mark.parametrize("code", ["FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D"])
def test_int8_weights_beside_floats(code: str, tmp_path: Path) -> None:
    """Of dynamic-range files: LiteRT's hybrid layers, one sample and several of different ranges."""
    d = Drawn(8)
    for case in range(6):
        batch, c, o = 1 + case % 3, d.number(2, 9), d.number(1, 20)
        each = case % 2 == 0 or code == "DEPTHWISE_CONV_2D"
        if code == "FULLY_CONNECTED":
            x, y = d.value((batch, c), "float32", 0), d.value((batch, o), "float32", 0)
            weights, _ = d.weights((o, c), "int8", 0, each=each)
            options: object = FullyConnectedOptions(d.activation(), 0, False, case > 2)
        elif code == "CONV_2D":
            x, y = d.value((batch, 5, 5, c), "float32", 0), d.value((batch, 5, 5, o), "float32", 0)
            weights, _ = d.weights((o, 3, 3, c), "int8", 0, each=each)
            options = Conv2DOptions(0, 1, 1, d.activation())
        else:
            x, y = d.value((batch, 5, 5, c), "float32", 0), d.value((batch, 5, 5, c), "float32", 0)
            weights, _ = d.weights((1, 3, 3, c), "int8", 3, each=each)
            options = DepthwiseConv2DOptions(0, 1, 1, 1, d.activation())
        count = c if code == "DEPTHWISE_CONV_2D" else o
        bias = d.w.constant(d.rng.standard_normal(count).astype(np.float32))
        d.layer(code, x, (), (weights, bias), y, options)
    d.check("litert", tmp_path)


def test_integer_weights_of_transposed_convolutions_beside_floats_are_refused(tmp_path: Path) -> None:
    d = Drawn(9)
    x, y = d.value((1, 2, 2, 2), "float32", 0), d.value((1, 2, 2, 3), "float32", 0)
    weights, _ = d.weights((3, 1, 1, 2), "int8", 0)
    shape = d.w.constant(np.array([1, 2, 2, 3], np.int32))
    d.layer("TRANSPOSE_CONV", x, (shape, weights), (), y, TransposeConvOptions(0, 1, 1))
    assert "float activations" in refusal(d, tmp_path)


def test_weights_with_a_zero_point_are_refused(tmp_path: Path) -> None:
    d = Drawn(7)
    x, y = d.value((1, 4), "int8", 0.02), d.value((1, 3), "int8", 0.05)
    weights = d.w.constant(np.ones((3, 4), np.int8), (0.1,), zero_point=3)
    d.layer("FULLY_CONNECTED", x, (), (weights,), y, FullyConnectedOptions())
    assert "symmetric" in refusal(d, tmp_path)


def refusal(d: Drawn, folder: Path) -> str:
    path = folder / "refused.tflite"
    path.write_bytes(d.w.file(tuple(d.inputs), tuple(d.outputs)))
    with pytest.raises(TinyetError) as caught:
        from_tflite(path)
    return str(caught.value)
