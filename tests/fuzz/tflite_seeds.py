# SPDX-License-Identifier: Apache-2.0
"""Small .tflite files that between them use every operator that the importer knows, in the types that it has; branches,
loops, variables and custom operators among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.importers.tflite.one_operator import File, Fixed, Value
from tests.importers.tflite.test_signal import ONE, front_end
from tests.importers.tflite.test_state import add_both_ways, add_lstm, add_svdf, branches, counting, looping
from tests.oracle.tflm import custom_model
from tests.tflite_files import Writer, small_cnn
from tinyet.ir import Array
from tinyet.tflite import Model, read_model
from tinyet.tflite import options as o

SCALES = {"int8": (0.1, 7), "int16": (1e-3, 0), "uint8": (0.1, 135)}
ALL = ("float32", "int8", "int16")
BYTES = ("float32", "int8")
FLOAT = ("float32",)
BOOL = ("bool",)
WHOLE = ("int32",)

Build = Callable[[str], tuple[list[Value | Fixed], Value | list[Value], Any]]
"""For a type: inputs, outputs, options."""


def of(kind: str, *shape: int) -> Value:
    return Value(shape, kind, *SCALES.get(kind, (0.0, 0)))


def ints(*values: Any) -> Fixed:
    return Fixed(np.array(values, np.int32))


def one(value: int) -> Fixed:
    return Fixed(np.array(value, np.int32))


def _same(*shape: int, options: Any = None, count: int = 1) -> Build:
    """As many inputs, and an output like them."""
    return lambda t: ([of(t, *shape)] * count, of(t, *shape), options)


def _truth(t: str) -> tuple[list[Value | Fixed], Value, Any]:
    return [of(t, 2, 3), of(t, 2, 3)], Value((2, 3), "bool"), None


def _to(
    out: tuple[int, ...], *held: Fixed, shape: tuple[int, ...] = (2, 4, 6, 3), options: Any = None
) -> Build:
    """x and constants to another shape."""
    return lambda t: ([of(t, *shape), *held], of(t, *out), options)


def _table(t: str) -> Array:
    return np.arange(12).reshape(4, 3).astype(np.dtype(t))


UNARY = "CEIL COS FLOOR LOG NEG ROUND RSQRT SIGN SIN SQRT SQUARE"
UNARY_BYTES = "ABS ELU EXP HARD_SWISH RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1"
CASES: tuple[tuple[str, tuple[str, ...], Build], ...] = (
    *((code, FLOAT, _same(2, 3)) for code in (*UNARY.split(), *UNARY_BYTES.split())),
    *((code, ("int8",), _same(2, 3)) for code in UNARY_BYTES.split()),
    *((code, BYTES, _truth) for code in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")),
    *((code, (*ALL, "int32"), _same(2, 3, count=2)) for code in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")),
    *((code, BOOL, _truth) for code in ("LOGICAL_AND", "LOGICAL_OR")),
    *((code, WHOLE, _same(2, 3, count=2)) for code in ("FLOOR_DIV", "FLOOR_MOD")),
    *(
        (code, (*ALL, "int32"), _same(2, 3, count=2, options=kind(1)))
        for code, kind in (("ADD", o.AddOptions), ("SUB", o.SubOptions), ("MUL", o.MulOptions))
    ),
    ("DIV", (*BYTES, "int32"), _same(2, 3, count=2, options=o.DivOptions())),
    ("LOGICAL_NOT", BOOL, _same(2, 3)),
    ("ADD_N", BYTES, _same(2, 3, count=2)),
    ("POW", FLOAT, lambda t: ([of(t, 2, 3), Fixed(np.array(2.0, np.float32))], of(t, 2, 3), None)),
    ("GELU", BYTES, _same(2, 3, options=o.GeluOptions(True))),
    ("LEAKY_RELU", ALL, _same(2, 3, options=o.LeakyReluOptions(0.2))),
    ("LOGISTIC", FLOAT, _same(2, 3)),
    ("LOGISTIC", ("int8",), lambda t: ([of(t, 2, 3)], Value((2, 3), t, 1 / 256, -128), None)),
    ("TANH", FLOAT, _same(2, 3)),
    ("TANH", ("int8",), lambda t: ([of(t, 2, 3)], Value((2, 3), t, 1 / 128, 0), None)),
    ("PRELU", FLOAT, lambda t: ([of(t, 2, 3), Fixed(np.full((1, 3), 0.2, np.float32))], of(t, 2, 3), None)),
    ("PRELU", ("int8",), lambda t: ([of(t, 2, 3), Fixed(np.full((1, 3), 40, np.int8), 0.01)], of(t, 2, 3), None)),
    ("SOFTMAX", FLOAT, _same(2, 3, options=o.SoftmaxOptions(1.0))),
    ("SOFTMAX", ("int8",), lambda t: ([of(t, 2, 3)], Value((2, 3), t, 1 / 256, -128), o.SoftmaxOptions(1.0))),
    ("LOG_SOFTMAX", FLOAT, _same(2, 3)),
    ("LOG_SOFTMAX", ("int8",), lambda t: ([of(t, 2, 3)], Value((2, 3), t, 1 / 16, 127), None)),
    ("L2_NORMALIZATION", FLOAT, _same(2, 3, options=o.L2NormOptions())),
    ("SELECT", ALL, lambda t: ([Value((2, 3), "bool"), of(t, 2, 3), of(t, 2, 3)], of(t, 2, 3), None)),
    ("SELECT_V2", ALL, lambda t: ([Value((2, 3), "bool"), of(t, 2, 3), of(t, 1, 3)], of(t, 2, 3), None)),
    ("RESHAPE", ALL, _to((6, 24), ints(6, -1))),
    ("SQUEEZE", ALL, _to((4, 3), shape=(1, 4, 1, 3))),
    ("EXPAND_DIMS", ALL, _to((2, 4, 1, 6, 3), one(2))),
    ("TRANSPOSE", ALL, _to((2, 3, 4, 6), ints(0, 3, 1, 2))),
    ("CONCATENATION", ALL, lambda t: ([of(t, 2, 3), of(t, 2, 4)], of(t, 2, 7), o.ConcatenationOptions(1))),
    ("PACK", ALL, lambda t: ([of(t, 2, 3)] * 2, of(t, 2, 2, 3), o.PackOptions(2, 1))),
    ("UNPACK", ALL, lambda t: ([of(t, 2, 3)], [of(t, 3)] * 2, o.UnpackOptions(2, 0))),
    ("SPLIT", ALL, lambda t: ([one(1), of(t, 2, 4)], [of(t, 2, 2)] * 2, o.SplitOptions(2))),
    ("SPLIT_V", ALL, lambda t: ([of(t, 2, 4), ints(1, 3), one(1)], [of(t, 2, 1), of(t, 2, 3)], o.SplitVOptions(2))),
    ("SLICE", ALL, _to((2, 2, 3, 2), ints(0, 1, 0, 1), ints(-1, 2, 3, 2))),
    (
        "STRIDED_SLICE",
        ALL,
        _to(
            (4, 3, 2),
            *(ints(1, 0, 5, 0), ints(2, 4, -7, 3), ints(1, 1, -2, 2)),
            options=o.StridedSliceOptions(shrink_axis_mask=1),
        ),
    ),
    ("GATHER", ALL, _to((2, 4, 4, 3), ints(3, 0, 0, 1), options=o.GatherOptions(2))),
    ("GATHER", FLOAT, lambda t: ([Fixed(_table(t)), Value((2,), "int32")], of(t, 2, 3), o.GatherOptions())),
    ("GATHER_ND", ALL, _to((2, 6, 3), ints((1, 2), (0, 0)))),
    ("EMBEDDING_LOOKUP", FLOAT, lambda t: ([Value((2,), "int32"), Fixed(_table(t))], of(t, 2, 3), None)),
    ("REVERSE_V2", ALL, _to((2, 4, 6, 3), ints(1))),
    ("REVERSE_SEQUENCE", ALL, _to((2, 4, 6, 3), ints(3, 3), options=o.ReverseSequenceOptions(1, 0))),
    ("DYNAMIC_UPDATE_SLICE", ALL, lambda t: ([of(t, 4, 5), of(t, 2, 3), ints(1, 7)], of(t, 4, 5), None)),
    ("TILE", ALL, _to((4, 9), ints(2, 3), shape=(2, 3))),
    ("BROADCAST_TO", ALL, _to((3, 4), ints(3, 4), shape=(1, 4))),
    ("PAD", ALL, _to((2, 7, 6, 3), ints((0, 0), (1, 2), (0, 0), (0, 0)))),
    ("MIRROR_PAD", ALL, _to((2, 7, 6, 3), ints((0, 0), (1, 2), (0, 0), (0, 0)), options=o.MirrorPadOptions(1))),
    ("SPACE_TO_DEPTH", ALL, _to((2, 2, 3, 12), options=o.SpaceToDepthOptions(2))),
    ("DEPTH_TO_SPACE", ALL, _to((2, 8, 12, 1), shape=(2, 4, 6, 4), options=o.DepthToSpaceOptions(2))),
    ("SPACE_TO_BATCH_ND", ALL, _to((12, 2, 2, 2), ints(2, 3), ints((0, 1), (1, 0)), shape=(2, 3, 5, 2))),
    ("BATCH_TO_SPACE_ND", ALL, _to((2, 3, 5, 2), ints(2, 3), ints((0, 1), (1, 0)), shape=(12, 2, 2, 2))),
    ("RESIZE_NEAREST_NEIGHBOR", ALL, _to((2, 7, 9, 3), ints(7, 9), options=o.ResizeNearestNeighborOptions())),
    ("RESIZE_BILINEAR", BYTES, _to((2, 7, 9, 3), ints(7, 9), options=o.ResizeBilinearOptions(half_pixel_centers=True))),
    *(
        (code, ALL, _to((2, 1, 1, 3), ints(1, 2), options=o.ReducerOptions(True)))
        for code in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
    ),
    ("REDUCE_PROD", FLOAT, _to((2, 3), ints(1), shape=(2, 4, 3), options=o.ReducerOptions())),
    *(
        (code, BOOL, _to((2, 3), ints(1), shape=(2, 4, 3), options=o.ReducerOptions()))
        for code in ("REDUCE_ALL", "REDUCE_ANY")
    ),
    ("ARG_MAX", BYTES, lambda t: ([of(t, 2, 3), one(1)], Value((2,), "int32"), o.ArgMaxOptions(2))),
    ("ARG_MIN", BYTES, lambda t: ([of(t, 2, 3), one(1)], Value((2,), "int32"), o.ArgMinOptions(2))),
    ("CUMSUM", FLOAT, lambda t: ([of(t, 2, 3), one(1)], of(t, 2, 3), o.CumsumOptions(True, True))),
    ("CAST", WHOLE, lambda t: ([of(t, 2, 3)], Value((2, 3)), o.CastOptions(2, 0))),
    ("QUANTIZE", FLOAT, lambda t: ([of(t, 2, 3)], of("int8", 2, 3), None)),
    ("QUANTIZE", ("int8", "uint8"), lambda t: ([of(t, 2, 3)], Value((2, 3), "int8", 0.05, 1), None)),
    ("DEQUANTIZE", ("int8", "int16"), lambda t: ([of(t, 2, 3)], of("float32", 2, 3), None)),
    *(
        (code, ALL, _to((2, 2, 3, 3), options=o.Pool2DOptions(1, 2, 2, 2, 2, 1)))
        for code in ("AVERAGE_POOL_2D", "MAX_POOL_2D")
    ),
    ("L2_POOL_2D", FLOAT, _to((2, 2, 3, 3), options=o.Pool2DOptions(1, 2, 2, 2, 2))),
    ("BATCH_MATMUL", ALL, lambda t: ([of(t, 2, 3, 4), of(t, 2, 4, 5)], of(t, 2, 3, 5), o.BatchMatMulOptions())),
)  # fmt: skip


def _single(code: str, kind: str, build: Build) -> Model:
    inputs, outputs, options = build(kind)
    file = File()
    file.add(code, inputs, outputs, options)
    return file.model()


def _layers(kind: str) -> list[Model]:
    """Layers with weights, by channel where they are integers."""
    rng = np.random.default_rng(5)
    models: list[Model] = []

    def layer(
        code: str,
        shape: tuple[int, ...],
        weights: tuple[int, ...],
        axis: int,
        out: tuple[int, ...],
        options: Any,
        before: Sequence[Array] = (),
    ) -> None:
        w = Writer()
        count = weights[axis]
        real = kind == "float32"
        x = w.value(shape, kind, None if real else 0.02, 3 if kind == "int8" else 0)
        y = w.value(out, kind, None if real else 0.05, -4 if kind == "int8" else 0)
        if real:
            held = w.constant(rng.standard_normal(weights).astype(np.float32))
            bias = w.constant(rng.standard_normal(count).astype(np.float32))
        else:
            scales = tuple(rng.uniform(0.002, 0.02, count).tolist())
            held = w.constant(rng.integers(-127, 128, weights).astype(np.int8), scales, axis)
            wide = "int32" if kind == "int8" else "int64"
            bias = w.constant(rng.integers(-300, 300, count).astype(wide), tuple(0.02 * s for s in scales))
        sizes = tuple(w.constant(a) for a in before)
        inputs = (*sizes, held, x, bias) if sizes else (x, held, bias)
        w.call(code, inputs, (y,), options)
        models.append(w.model((x,), (y,)))

    layer("CONV_2D", (1, 5, 6, 3), (4, 3, 3, 3), 0, (1, 5, 6, 4), o.Conv2DOptions(0, 1, 1, 1))
    layer(
        "DEPTHWISE_CONV_2D",
        (1, 5, 6, 3),
        (1, 3, 3, 6),
        3,
        (1, 3, 3, 6),
        o.DepthwiseConv2DOptions(0, 2, 2, 2, 3),
    )
    layer("FULLY_CONNECTED", (2, 7), (4, 7), 0, (2, 4), o.FullyConnectedOptions(1))
    sizes = [np.array([1, 4, 6, 2], np.int32)]
    layer(
        "TRANSPOSE_CONV", (1, 2, 3, 3), (2, 2, 2, 3), 0, (1, 4, 6, 2), o.TransposeConvOptions(1, 2, 2), sizes
    )
    return models


def _folded() -> list[Model]:
    """What is computed when the file is read: constants to what is added to an input."""
    models = []
    shape = (2, 3)
    sizes = np.array(shape, np.int32)
    number, row = np.array(0.5, np.float32), np.arange(3, dtype=np.float32)
    makers: dict[str, tuple[tuple[Array, ...], tuple[int, ...], Any]] = {
        "FILL": ((sizes, number), shape, None),
        "ZEROS_LIKE": ((np.ones(shape, np.float32),), shape, None),
        "BROADCAST_TO": ((row, sizes), shape, None),
        "TILE": ((row, np.array([2], np.int32)), (6,), None),
        "RANGE": ((np.array(0, np.float32), np.array(3, np.float32), np.array(1, np.float32)), (3,), None),
        "GATHER": ((row, np.array([2, 0, 1], np.int32)), (3,), o.GatherOptions()),
        "PAD": ((row, np.array([[1, 2]], np.int32)), (6,), None),
        "NEG": ((row,), (3,), None),
        "DEQUANTIZE": ((row.astype(np.float16),), (3,), None),
    }
    for code, (constants, made, options) in makers.items():
        w = Writer()
        inputs = tuple(w.constant(data) for data in constants)
        y = w.call(code, inputs, (w.value(made, "float32", None),), options)
        x = w.value((1,), "float32", None)
        out = w.call("ADD", (x, y), (w.value(made, "float32", None),), o.AddOptions())
        models.append(w.model((x,), (out,)))
    w = Writer()
    x = w.value((4, 6), "float32", None)
    four = w.call("SHAPE", (x,), (w.value((2,), "int32", None),), o.ShapeOptions(2))
    common = w.call(
        "BROADCAST_ARGS", (four, w.constant(np.array([1, 1], np.int32))), (w.value((2,), "int32", None),)
    )
    rank = w.call("RANK", (x,), (w.value((), "int32", None),))
    y = w.call("RESHAPE", (x, common), (w.value((4, 6), "float32", None),))
    counted = w.call("CAST", (rank,), (w.value((), "float32", None),), o.CastOptions(2, 0))
    out = w.call("ADD", (y, counted), (w.value((4, 6), "float32", None),), o.AddOptions())
    models.append(w.model((x,), (out,)))
    w = Writer()
    x = w.value((2, 3), "float32", None)
    pads, number_in = w.constant(np.array([[1, 0], [0, 2]], np.int32)), w.constant(np.array(-3, np.float32))
    models.append(
        w.model((x,), (w.call("PADV2", (x, pads, number_in), (w.value((3, 5), "float32", None),)),))
    )
    return models


def _with_states() -> list[Model]:
    models = [counting(), looping(2), branches(True), branches(False)]
    for kind in ("int8", "int16", "float32"):
        w = Writer()
        x, y = add_svdf(w, np.random.default_rng(1), kind, 2, 1)
        models.append(w.model((x,), (y,)))
    w = Writer()
    x, ways = add_both_ways(w, np.random.default_rng(3), merged=False)
    models.append(w.model((x,), ways))
    for kind in BYTES:
        w = Writer()
        x, y = add_lstm(w, np.random.default_rng(2), kind, inner=True)
        models.append(w.model((x,), (y,)))
    return models


def _custom() -> list[Model]:
    models = [read_model(front_end())]
    each: Any = ONE
    for name, options, held, (shape, kind), outputs in each:
        constants = [np.arange(int(np.prod(s)), dtype=np.int16).reshape(s) for s in held]
        given = [np.zeros(shape, kind.numpy)]
        models.append(read_model(custom_model(name, options, constants, given, outputs)))
    return models


def seeds() -> list[Model]:
    """All of them; the more ordinary first."""
    models = [small_cnn("int8"), small_cnn("uint8", 1)]
    models += [_single(code, kind, build) for code, kinds, build in CASES for kind in kinds]
    for kind in ALL:
        models += _layers(kind)
    return [*models, *_folded(), *_with_states(), *_custom()]
