# SPDX-License-Identifier: Apache-2.0
"""Steps that move values: other shapes, parts, padding. TFLite's windows know two paddings, SAME and VALID; any other
becomes an operator before them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyet.exporters.tflite.context import Context
from tinyet.ir import Array, DType, Shape, Tensor
from tinyet.ops.shared.window import Window
from tinyet.tflite.enumerations import SAME, VALID
from tinyet.tflite.options import GatherOptions, ReshapeOptions, StridedSliceOptions


def pad(ctx: Context, x: int, pads: Sequence[tuple[int, int]], fill: float, out: int | None = None) -> int:
    """x with a constant around it, raw as the tensor holds it: PAD where that is zero, else PADV2."""
    info = ctx.tensors[x]
    shape = tuple(a + n + b for n, (a, b) in zip(info.shape, pads, strict=True))
    made = ctx.like(x, shape) if out is None else out
    held = ctx.numbers([list(p) for p in pads], "pads")
    zero = 0 if info.quantization is None else info.quantization.zero_point[0]
    if fill == zero and info.type != "uint8":
        return ctx.call("PAD", [x, held], made)
    number = ctx.constant(np.array([fill], info.type), "fill")
    if info.quantization is not None:
        ctx.quantized(number, info.quantization)
    return ctx.call("PADV2", [x, held, number], made)


def reshaped(ctx: Context, x: int, shape: Shape, out: int | None = None) -> int:
    """The same values under another shape."""
    made = ctx.like(x, shape) if out is None else out
    return ctx.call("RESHAPE", [x, ctx.numbers(shape, "shape")], made, ReshapeOptions(tuple(shape)))


def crop(ctx: Context, x: int, begin: Sequence[int], end: Sequence[int], out: int | None = None) -> int:
    """Part of a tensor, every element between the corners."""
    made = ctx.like(x, tuple(b - a for a, b in zip(begin, end, strict=True))) if out is None else out
    return strided(ctx, x, begin, end, [1] * len(begin), made)


def strided(
    ctx: Context, x: int, begin: Sequence[int], end: Sequence[int], steps: Sequence[int], out: int
) -> int:
    """Every so manyeth element between the corners."""
    corners = [ctx.numbers(n, s) for n, s in ((begin, "begin"), (end, "end"), (steps, "steps"))]
    return ctx.call("STRIDED_SLICE", [x, *corners], out, StridedSliceOptions())


def gathered(ctx: Context, x: int, indices: Array, axis: int, out: int | None = None) -> int:
    """Elements of an axis by constant indices."""
    info = ctx.tensors[x]
    shape = (*info.shape[:axis], len(indices), *info.shape[axis + 1 :])
    made = ctx.like(x, shape) if out is None else out
    held = ctx.constant(indices.astype(np.int32), f"indices_{axis}")
    return ctx.call("GATHER", [x, held], made, GatherOptions(axis))


def same_before(size: int, reach: int, stride: int) -> int:
    """Padding of SAME before an image; reach: pixels that a window spans."""
    return max((math.ceil(size / stride) - 1) * stride + reach - size, 0) // 2


def windowed(
    ctx: Context, x: Tensor, attrs: Window, kernel: tuple[int, int], fill: float, *, explicit: bool = False
) -> tuple[int, int]:
    """(the image, SAME or VALID) for the node at hand, whose input x is the image: itself where one of the two means
    the node's own pads, else padded with a raw value. explicit: padding that counts, so SAME is not it."""
    sides = (
        (attrs.stride_h, attrs.dilation_h * (kernel[0] - 1) + 1, attrs.pad_top),
        (attrs.stride_w, attrs.dilation_w * (kernel[1] - 1) + 1, attrs.pad_left),
    )
    needed, is_valid, is_same = [], True, True
    for (stride, reach, before), size, made in zip(
        sides, x.shape[1:3], ctx.node.output.shape[1:3], strict=True
    ):
        behind = max((made - 1) * stride + reach - size - before, 0)
        needed.append((before, behind))
        is_valid = is_valid and before == behind == 0
        is_same = is_same and made == math.ceil(size / stride) and before == same_before(size, reach, stride)
    index = ctx.of(x)
    if is_valid:
        return index, VALID
    if is_same and not explicit:
        return index, SAME
    return pad(ctx, index, [(0, 0), *needed, (0, 0)], fill), VALID


def lowest(tensor: Tensor) -> float:
    """A value that is never the greatest of a window."""
    return -math.inf if tensor.dtype is DType.FLOAT32 else tensor.dtype.range[0]
