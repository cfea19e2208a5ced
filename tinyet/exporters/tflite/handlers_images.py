# SPDX-License-Identifier: Apache-2.0
"""Handlers of operators on images without weights: pools, other sizes, padding."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.exporters.tflite.context import Context, Handler, RefusedError
from tinyet.exporters.tflite.moves import crop, gathered, lowest, pad, windowed
from tinyet.ir import Attrs, DType
from tinyet.ops import pad as padding_op
from tinyet.ops import resize as resize_op
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.pad import Pad
from tinyet.ops.resize import Resize
from tinyet.ops.shared.pooling import Pool
from tinyet.ops.shared.window import zero_of
from tinyet.tflite.enumerations import REFLECT, VALID
from tinyet.tflite.options import (
    MirrorPadOptions,
    Pool2DOptions,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
)


def _pool(ctx: Context, code: str, attrs: Pool, fill: float, *, explicit: bool) -> None:
    if (attrs.dilation_h, attrs.dilation_w) != (1, 1):
        raise RefusedError(f"{code} has no dilation", "pool without dilation")
    kernel = attrs.kernel_h, attrs.kernel_w
    image, padding = windowed(ctx, ctx.node.input(0), attrs, kernel, fill, explicit=explicit)
    options = Pool2DOptions(padding, attrs.stride_w, attrs.stride_h, attrs.kernel_w, attrs.kernel_h)
    ctx.call(code, [image], ctx.out, options)


def max_pool(ctx: Context) -> None:
    attrs = ctx.node.attrs
    assert isinstance(attrs, MaxPool2d)
    pads = max(attrs.pad_top, attrs.pad_bottom), max(attrs.pad_left, attrs.pad_right)
    alone = pads[0] >= attrs.kernel_h or pads[1] >= attrs.kernel_w
    if alone and ctx.node.output.dtype is DType.FLOAT32:
        raise RefusedError(
            "a window lies wholly in the padding, of which LiteRT makes a finite number", "pad less"
        )
    _pool(ctx, "MAX_POOL_2D", attrs, lowest(ctx.node.input(0)), explicit=False)


def average_pool(ctx: Context) -> None:
    """Padding that counts is made explicit; padding that does not is SAME's."""
    attrs, x = ctx.node.attrs, ctx.node.input(0)
    assert isinstance(attrs, AvgPool2d)
    if x.dtype is DType.FLOAT32:
        ctx.in_float()
    if attrs.divisor not in (None, attrs.kernel_h * attrs.kernel_w):
        raise RefusedError("AVERAGE_POOL_2D divides by its window", "leave divisor_override away")
    counted = attrs.fixed_divisor is not None
    before = len(ctx.operators)
    _pool(ctx, "AVERAGE_POOL_2D", attrs, zero_of(x.type), explicit=counted)
    if not counted and len(ctx.operators) > before + 1:
        raise RefusedError(
            "AVERAGE_POOL_2D leaves out SAME's padding only, and this is another",
            "count_include_pad=True, or no padding",
        )


def adaptive_average_pool(ctx: Context) -> None:
    attrs, x = ctx.node.attrs, ctx.node.input(0)
    assert isinstance(attrs, AdaptiveAvgPool2d)
    _, height, width, _ = x.shape
    if height % attrs.out_h or width % attrs.out_w:
        raise RefusedError(
            f"AVERAGE_POOL_2D has windows of one size, {height}x{width} pixels do not divide by "
            f"{attrs.out_h}x{attrs.out_w}",
            "a size that divides the image",
        )
    if x.dtype is DType.FLOAT32:
        ctx.in_float()
    size = height // attrs.out_h, width // attrs.out_w
    ctx.call("AVERAGE_POOL_2D", [ctx.x()], ctx.out, Pool2DOptions(VALID, size[1], size[0], size[1], size[0]))


def resize(ctx: Context) -> None:
    """LiteRT takes the ratios from the sizes: what has others is gathered, where it is the nearest pixel."""
    node, attrs = ctx.node, ctx.node.attrs
    assert isinstance(attrs, Resize)
    _, height, width, _ = node.input(0).shape
    sizes = ((height, attrs.out_h, attrs.ratio_h), (width, attrs.out_w, attrs.ratio_w))
    plain = all(_is_plain(*size, attrs.align_corners) for size in sizes)
    options = attrs.align_corners, attrs.half_pixel
    held = (attrs.out_h, attrs.out_w)
    if attrs.mode == "bilinear":
        if not plain:
            raise RefusedError(
                "RESIZE_BILINEAR takes its ratio from the sizes, and this is another",
                "give interpolate a size in place of a scale_factor",
            )
        if node.output.dtype is DType.FLOAT32:
            ctx.in_float()
        inputs = [ctx.x(), ctx.numbers(held, "size")]
        ctx.call("RESIZE_BILINEAR", inputs, ctx.out, ResizeBilinearOptions(0, 0, *options))
    elif plain:
        inputs = [ctx.x(), ctx.numbers(held, "size")]
        ctx.call("RESIZE_NEAREST_NEIGHBOR", inputs, ctx.out, ResizeNearestNeighborOptions(*options))
    else:
        rows, columns = resize_op.nearest(node)
        lines = gathered(ctx, ctx.x(), rows, 1)
        gathered(ctx, lines, columns, 2, ctx.out)


def _is_plain(size: int, out: int, ratio: float, align_corners: bool) -> bool:
    """Whether a ratio is LiteRT's own for these sizes."""
    if align_corners and out == 1:
        return size == 1
    of_corners = align_corners and out > 1
    top, bottom = (size - 1, out - 1) if of_corners else (size, out)
    return bool(np.float32(ratio) == np.float32(top) / np.float32(bottom))


def padding(ctx: Context) -> None:
    node, attrs = ctx.node, ctx.node.attrs
    assert isinstance(attrs, Pad)
    x, shape = ctx.x(), node.input(0).shape
    if attrs.mode == "reflect":
        held = ctx.numbers([list(pair) for pair in attrs.pads], "pads")
        ctx.call("MIRROR_PAD", [x, held], ctx.out, MirrorPadOptions(REFLECT))
        return
    if attrs.mode == "replicate":
        grown = [axis for axis, pair in enumerate(attrs.pads) if any(pair)]
        for axis in grown or [0]:
            before, after = attrs.pads[axis]
            index = np.clip(np.arange(-before, shape[axis] + after), 0, shape[axis] - 1)
            x = gathered(ctx, x, index, axis, ctx.out if axis == (grown or [0])[-1] else None)
        return
    cropped = [
        (max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(shape, attrs.pads, strict=True)
    ]
    pads = [(max(before, 0), max(after, 0)) for before, after in attrs.pads]
    if all(found == (0, n) for found, n in zip(cropped, shape, strict=True)):
        pad(ctx, x, pads, padding_op.fill_value(node)[0], ctx.out)
        return
    only = not any(map(any, pads))
    begin, end = ([pair[i] for pair in cropped] for i in (0, 1))
    x = crop(ctx, x, begin, end, ctx.out if only else None)
    if not only:
        pad(ctx, x, pads, padding_op.fill_value(node)[0], ctx.out)


HANDLERS: Mapping[type[Attrs], Handler] = {
    AdaptiveAvgPool2d: adaptive_average_pool,
    AvgPool2d: average_pool,
    MaxPool2d: max_pool,
    Pad: padding,
    Resize: resize,
}
