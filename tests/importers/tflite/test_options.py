# SPDX-License-Identifier: Apache-2.0
"""What the options of a file say is done, or refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import tinyet.importers.tflite as room
from tests.importers.tflite.originals import assert_same, installed
from tests.tflite_files import Writer
from tinyet import from_tflite
from tinyet.errors import TinyetError
from tinyet.importers.tflite.handlers import handler_of
from tinyet.tflite import Operator, Runtime, enumerations
from tinyet.tflite.options import (
    CLASSES,
    AddOptions,
    DepthwiseConv2DOptions,
    L2NormOptions,
    ReducerOptions,
    SubOptions,
)

UNREAD = {
    "the shapes of outputs stand in the file": {
        "FullyConnectedOptions.keep_num_dims",
        "PackOptions.values_count",
        "ReshapeOptions.new_shape",
        "SplitOptions.num_splits",
        "SplitVOptions.num_splits",
        "SqueezeOptions.squeeze_dims",
        "UnpackOptions.num",
    },
    "types stand at the tensors": {
        "ArgMaxOptions.output_type",
        "ArgMinOptions.output_type",
        "CastOptions.in_data_type",
        "CastOptions.out_data_type",
        "ShapeOptions.out_type",
    },
    "the size is an input": {"ResizeBilinearOptions.new_height", "ResizeBilinearOptions.new_width"},
    "projections are refused": {
        "BidirectionalSequenceLSTMOptions.proj_clip",
        "UnidirectionalSequenceLSTMOptions.proj_clip",
    },
    "all sequences have one length": {"ReverseSequenceOptions.batch_dim"},
}
NO_ROWS = {
    "CallOptions": "CALL",
    "FakeQuantOptions": "FAKE_QUANT",
    "LocalResponseNormalizationOptions": "LOCAL_RESPONSE_NORMALIZATION",
    "OneHotOptions": "ONE_HOT",
    "SequenceRNNOptions": "UNIDIRECTIONAL_SEQUENCE_RNN",
}


def test_every_option_is_read_or_means_nothing() -> None:
    assert room.__file__ is not None
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in sorted(Path(room.__file__).parent.glob("*.py"))
    )
    known = set().union(*UNREAD.values())
    for kind, of in CLASSES.items():
        if kind in NO_ROWS:
            assert NO_ROWS[kind] in enumerations.BUILTINS
            assert handler_of(Operator(NO_ROWS[kind], (), ())) is None
            continue
        for each in fields(of):
            read = kind in text and re.search(rf"\.{each.name}\b", text) is not None
            assert read != (f"{kind}.{each.name}" in known), f"{kind}.{each.name}"


Build = Callable[[Writer], tuple[tuple[int, ...], int]]


def summed(kind: str) -> Build:
    def build(w: Writer) -> tuple[tuple[int, ...], int]:
        x, y = w.value((2, 9), kind, 0.01), w.value((2,), kind, 0.03)
        return (x,), w.call("SUM", (x, w.constant(np.array([1], np.int32))), (y,), ReducerOptions())

    return build


def added(code: str, *exponents: int, powers: bool = True) -> Build:
    def build(w: Writer) -> tuple[tuple[int, ...], int]:
        a, b, y = (w.value((700,), "int16", 2.0**exponent) for exponent in exponents)
        options = AddOptions(0, powers) if code == "ADD" else SubOptions(0, powers)
        return (a, b), w.call(code, (a, b), (y,), options)

    return build


def normalized(w: Writer) -> tuple[tuple[int, ...], int]:
    x, y = w.value((2, 3), "float32", None), w.value((2, 3), "float32", None)
    return (x,), w.call("L2_NORMALIZATION", (x,), (y,), L2NormOptions(1))


def multiplied(w: Writer) -> tuple[tuple[int, ...], int]:
    x, y = w.value((1, 4, 4, 2), "int8", 0.1), w.value((1, 4, 4, 4), "int8", 0.1)
    weights = w.constant(np.ones((1, 1, 1, 4), np.int8), (0.1,) * 4, 3)
    bias = w.constant(np.zeros(4, np.int32), (0.01,) * 4)
    options = DepthwiseConv2DOptions(1, 1, 1, 1)
    return (x,), w.call("DEPTHWISE_CONV_2D", (x, weights, bias), (y,), options)


@pytest.mark.parametrize(
    ("build", "runtime", "words"),
    [
        (summed("int8"), "litert", "unsigned bytes"),
        (summed("int16"), "litert", "unsigned bytes"),
        (added("ADD", -12, -14, -12), "litert", "rounds before it adds"),
        (added("SUB", -14, -12, -12), "litert", "rounds before it adds"),
        (normalized, "tflm", "fused activation"),
        (multiplied, "tflm", "depth multiplier of 1"),
    ],
)
def test_what_would_give_other_bits_is_refused(
    build: Build, runtime: Runtime, words: str, tmp_path: Path
) -> None:
    w = Writer()
    inputs, output = build(w)
    path = tmp_path / "refused.tflite"
    path.write_bytes(w.file(inputs, (output,)))
    with pytest.raises(TinyetError, match=words):
        from_tflite(path, runtime=runtime)


@pytest.mark.parametrize(
    ("build", "runtime"),
    [
        *((summed(kind), "tflm") for kind in ("int8", "int16")),
        *((added(code, -12, -14, -12), "tflm") for code in ("ADD", "SUB")),
        *((added(code, -12, -14, -12, powers=False), "litert") for code in ("ADD", "SUB")),
        *((added(code, -12, -12, -12), "litert") for code in ("ADD", "SUB")),
        (multiplied, "litert"),
    ],
)
def test_what_gives_the_same_is_taken(build: Build, runtime: Runtime, tmp_path: Path) -> None:
    if not installed(runtime):
        pytest.skip(f"needs {runtime}'s interpreter")
    w = Writer()
    inputs, output = build(w)
    assert_same(w, inputs, (output,), runtime, tmp_path, runs=2)
