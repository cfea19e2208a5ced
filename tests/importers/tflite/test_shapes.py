# SPDX-License-Identifier: Apache-2.0
"""What moves values: other shapes and orders, parts, pads, space and depth, conversions, reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.importers.tflite.one_operator import BOTH, File, Fixed, Oracle, Value, scaled
from tinyet.tflite.options import (
    ArgMaxOptions,
    ArgMinOptions,
    ConcatenationOptions,
    CumsumOptions,
    DepthToSpaceOptions,
    GatherOptions,
    MirrorPadOptions,
    PackOptions,
    Pool2DOptions,
    ReducerOptions,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
    SpaceToDepthOptions,
    SplitOptions,
    SplitVOptions,
    StridedSliceOptions,
    UnpackOptions,
)

TYPES = ("float32", "int8", "int16")


def ints(*values: object) -> Fixed:
    return Fixed(np.array(values, np.int32))


def like(type_: str, *shape: int) -> Value:
    """Of one quantization for all of a type."""
    scale, zero_point = {"int8": (0.1, 7), "int16": (1e-3, 0)}.get(type_, (0.0, 0))
    return Value(shape, type_, scale, zero_point)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("oracle", BOTH)
def test_parts_and_orders(oracle: Oracle, type_: str) -> None:
    file, x = File(), like(type_, 2, 3, 4, 5)

    def of(*shape: int) -> Value:
        return like(type_, *shape)

    file.add("TRANSPOSE", [x, ints(0, 3, 1, 2)], of(2, 5, 3, 4))
    file.add("TRANSPOSE", [of(3, 4), ints(1, 0)], of(4, 3))
    file.add("CONCATENATION", [x, of(2, 3, 4, 2)], of(2, 3, 4, 7), ConcatenationOptions(3))
    file.add("CONCATENATION", [x, x, of(2, 1, 4, 5)], of(2, 7, 4, 5), ConcatenationOptions(-3))
    file.add("SPLIT", [Fixed(np.array(2, np.int32)), x], [of(2, 3, 2, 5)] * 2, SplitOptions(2))
    file.add(
        "SPLIT_V",
        [x, ints(1, 3, 1), Fixed(np.array(3, np.int32))],
        [of(2, 3, 4, 1), of(2, 3, 4, 3), of(2, 3, 4, 1)],
        SplitVOptions(3),
    )
    file.add("SLICE", [x, ints(0, 1, 0, 2), ints(-1, 2, 3, 2)], of(2, 2, 3, 2))
    file.add("PAD", [x, Fixed(np.array([[0, 1], [2, 0], [1, 1], [0, 3]], np.int32))], of(3, 5, 6, 8))
    slices: tuple[
        tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[str, Any], tuple[int, ...]], ...
    ] = (
        ((0, 0, 0, 0), (2, 3, 4, 5), (1, 2, 1, 3), {}, (2, 2, 4, 2)),
        ((1, -1, 3, 4), (2, -4, 0, 0), (1, -1, -2, -1), {}, (1, 3, 2, 4)),
        ((1, 9, 9, 1), (9, 1, 9, 4), (1, 1, 1, 2), {"begin_mask": 6, "end_mask": 4}, (1, 1, 4, 2)),
        ((1, 0, -2, 1), (2, 3, 4, 4), (1, 1, 1, 2), {"shrink_axis_mask": 5}, (3, 2)),
    )
    for begin, end, step, masks, shape in slices:
        file.add(
            "STRIDED_SLICE",
            [x, ints(*begin), ints(*end), ints(*step)],
            of(*shape),
            StridedSliceOptions(**masks),
        )
    file.add("EXPAND_DIMS", [of(3, 4), ints(1)], of(3, 1, 4))
    file.add("SQUEEZE", [of(3, 1, 4)], of(3, 4))
    file.add("RESIZE_NEAREST_NEIGHBOR", [x, ints(7, 9)], of(2, 7, 9, 5), ResizeNearestNeighborOptions())
    file.add(
        "RESIZE_NEAREST_NEIGHBOR",
        [x, ints(2, 9)],
        of(2, 2, 9, 5),
        ResizeNearestNeighborOptions(half_pixel_centers=True),
    )
    file.add(
        "RESIZE_NEAREST_NEIGHBOR",
        [x, ints(5, 7)],
        of(2, 5, 7, 5),
        ResizeNearestNeighborOptions(align_corners=True),
    )
    if type_ != "int16" or oracle == "litert":
        file.add(
            "PADV2",
            [
                x,
                Fixed(np.array([[0, 1], [2, 0], [1, 1], [0, 3]], np.int32)),
                Fixed(
                    np.array([-3], np.dtype(type_)),
                    *((0.1, 7) if type_ == "int8" else (1e-3, 0) if type_ == "int16" else ()),
                ),
            ],
            of(3, 5, 6, 8),
        )
    if type_ != "int16":
        file.add("PACK", [of(3, 4)] * 3, of(3, 3, 4), PackOptions(3, 1))
        file.add("UNPACK", [x], [of(2, 3, 5)] * 4, UnpackOptions(4, 2))
        file.add("GATHER", [x, ints(3, 0, 0, 1, 2)], of(2, 3, 5, 5), GatherOptions(2))
        file.add("GATHER", [x, Fixed(np.array(1, np.int32))], of(3, 4, 5), GatherOptions(0))
        file.add("GATHER_ND", [x, ints((1, 2), (0, 0))], of(2, 4, 5))
        file.add("SPACE_TO_DEPTH", [of(2, 4, 6, 3)], of(2, 2, 3, 12), SpaceToDepthOptions(2))
        file.add("DEPTH_TO_SPACE", [of(2, 2, 3, 12)], of(2, 4, 6, 3), DepthToSpaceOptions(2))
        file.add("SPACE_TO_BATCH_ND", [of(2, 3, 5, 2), ints(2, 3), ints((0, 1), (1, 0))], of(12, 2, 2, 2))
        file.add("BATCH_TO_SPACE_ND", [of(12, 2, 2, 2), ints(2, 3), ints((0, 1), (1, 0))], of(2, 3, 5, 2))
        file.add("BROADCAST_TO", [of(1, 4), ints(3, 4)], of(3, 4), version=2)
        for mode, pads in ((0, ((1, 2), (0, 2))), (1, ((3, 1), (4, 2)))):
            file.add(
                "MIRROR_PAD",
                [of(3, 4), ints(*pads)],
                of(3 + sum(pads[0]), 4 + sum(pads[1])),
                MirrorPadOptions(mode),
            )
        file.add("DYNAMIC_UPDATE_SLICE", [of(4, 5), of(2, 3), ints(1, 7)], of(4, 5))
    if type_ == "float32" or (type_ == "int8" and oracle == "litert"):
        file.add("REVERSE_V2", [x, ints(1)], x)
    if oracle == "litert" and type_ != "int16":
        file.add("TILE", [of(2, 3), ints(2, 3)], of(4, 9))
        file.add("SLICE", [x, Fixed(np.array([0, 1, 0, 2])), Fixed(np.array([-1, 2, 3, 2]))], of(2, 2, 3, 2))
    file.check([oracle])


@pytest.mark.parametrize("oracle", BOTH)
def test_reductions(oracle: Oracle) -> None:
    file, x = File(), Value((2, 3, 4, 5))
    for axes, keep, out in (
        ((1, 2), True, (2, 1, 1, 5)),
        ((1, 2), False, (2, 5)),
        ((-1,), False, (2, 3, 4)),
        ((0, 3), True, (1, 3, 4, 1)),
    ):
        for code, ulps in (("MEAN", 1), ("SUM", 1), ("REDUCE_MAX", 0), ("REDUCE_MIN", 0)):
            file.add(code, [x, ints(*axes)], Value(out), ReducerOptions(keep), ulps=ulps)
        if oracle == "litert":
            file.add("REDUCE_PROD", [x, ints(*axes)], Value(out), ReducerOptions(keep), ulps=2)
            file.add(
                "REDUCE_ANY", [Value(x.shape, "bool"), ints(*axes)], Value(out, "bool"), ReducerOptions(keep)
            )
        file.add(
            "REDUCE_ALL", [Value(x.shape, "bool"), ints(*axes)], Value(out, "bool"), ReducerOptions(keep)
        )
    for type_ in ("float32", "int8"):
        file.add(
            "ARG_MAX",
            [like(type_, 4, 30, 3), Fixed(np.array(1, np.int32))],
            Value((4, 3), "int32"),
            ArgMaxOptions(2),
        )
        file.add(
            "ARG_MIN",
            [like(type_, 4, 30, 3), Fixed(np.array(1, np.int32))],
            Value((4, 3), "int32"),
            ArgMinOptions(2),
        )
        same = like(type_, 3, 5)
        file.add("REDUCE_MAX", [same, ints(1)], like(type_, 3), ReducerOptions())
    for exclusive in (False, True):
        for reverse in (False, True):
            file.add(
                "CUMSUM",
                [Value((3, 6, 2)), Fixed(np.array(1, np.int32))],
                Value((3, 6, 2)),
                CumsumOptions(exclusive, reverse),
                ulps=1,
            )
    file.check([oracle])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("oracle", BOTH)
def test_integer_reductions(oracle: Oracle, seed: int) -> None:
    rng, file = np.random.default_rng(seed), File()
    for type_ in ("int8", "int16"):
        around = 0.05 if type_ == "int8" else 1e-3
        for axes, out in (((1, 2), (2, 5)), ((3,), (2, 7, 6)), ((0,), (7, 6, 5))):
            file.add(
                "MEAN",
                [scaled(rng, (2, 7, 6, 5), type_, around), ints(*axes)],
                scaled(rng, out, type_, around),
                ReducerOptions(),
            )
            if type_ == "int8" and oracle == "tflm":
                file.add(
                    "SUM",
                    [scaled(rng, (2, 7, 6, 5)), ints(*axes)],
                    scaled(rng, out, around=0.5),
                    ReducerOptions(),
                )
    file.check([oracle])


@pytest.mark.parametrize("oracle", BOTH)
def test_tables_and_pools(oracle: Oracle) -> None:
    file = File()
    indices, table = Value((7,), "int32", low=0, high=8), np.linspace(-1, 1, 45, dtype=np.float32)
    file.add("EMBEDDING_LOOKUP", [indices, Fixed(table.reshape(9, 5))], Value((7, 5)))
    file.add("GATHER", [Fixed(table.reshape(9, 5)), indices], Value((7, 5)), GatherOptions(0))
    for padding, shape in ((0, (1, 4, 3, 2)), (1, (1, 3, 2, 2))):
        for activation in (0, 3):
            options = Pool2DOptions(padding, 2, 2, 3, 2, activation)
            file.add("L2_POOL_2D", [Value((1, 7, 6, 2))], Value(shape), options, ulps=2)
    file.check([oracle])


@pytest.mark.parametrize(("half_pixel", "corners"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("oracle", BOTH)
def test_bilinear(oracle: Oracle, half_pixel: bool, corners: bool) -> None:
    file = File()
    for height, width in ((3, 5), (7, 2), (1, 9), (6, 6)):
        for type_ in ("float32", "int8"):
            x, y = like(type_, 2, 4, 3, 3), like(type_, 2, height, width, 3)
            file.add(
                "RESIZE_BILINEAR",
                [x, ints(height, width)],
                y,
                ResizeBilinearOptions(0, 0, corners, half_pixel),
                ulps=4,
            )
    file.check([oracle])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("oracle", BOTH)
def test_conversions(oracle: Oracle, seed: int) -> None:
    rng, file, shape = np.random.default_rng(seed), File(), (30, 40)
    for type_ in ("int8", "int16"):
        around = 0.05 if type_ == "int8" else 1e-3
        for other in ("int8", "int16"):
            file.add(
                "QUANTIZE",
                [scaled(rng, shape, type_, around)],
                scaled(rng, shape, other, 0.05 if other == "int8" else 1e-3),
            )
        file.add("QUANTIZE", [Value(shape)], scaled(rng, shape, type_, around))
        file.add("DEQUANTIZE", [scaled(rng, shape, type_, around)], Value(shape))
        file.add("CAST", [Value(shape, type_)], Value(shape))
        if oracle == "tflm":
            file.add("QUANTIZE", [scaled(rng, shape, type_, around)], Value(shape, "int32", 1e-5))
        file.add("QUANTIZE", [Value(shape, "int32", around * 3e-7)], scaled(rng, shape, type_, around))
        file.add("CAST", [Value(shape, type_)], Value(shape, "int32"))
        file.add("CAST", [Value(shape, "int32")], Value(shape, type_))
    # As a softmax of int8 gives them.
    shifted = Value(shape, "int16", 1 / 65536, -32768)
    if oracle == "tflm":
        file.add("DEQUANTIZE", [shifted], Value(shape))
        file.add("QUANTIZE", [shifted], Value(shape, "int32", 1 / 32768))
        file.add("QUANTIZE", [shifted], scaled(rng, shape, "int8", 0.004))
        file.add("QUANTIZE", [shifted], Value(shape, "int16", 1e-4, 123))
        file.add("QUANTIZE", [scaled(rng, shape)], Value(shape, "int16", 2e-4, -700))
    file.add("CAST", [Value(shape, "int32")], Value(shape))
    file.add("CAST", [Value(shape, "bool")], Value(shape))
    file.check([oracle])
