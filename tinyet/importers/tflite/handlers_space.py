# SPDX-License-Identifier: Apache-2.0
"""Handlers that pad, resize, and move between space, depth and batch."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.building import finish, flipped, joined, like, moved, permuted, piece
from tinyet.importers.tflite.context import Context, Handler
from tinyet.importers.tflite.handlers_layers import image_of
from tinyet.ir import Tensor
from tinyet.ops.pad import Pad
from tinyet.ops.resize import Resize, ResizeMode
from tinyet.tflite.enumerations import REFLECT, SYMMETRIC
from tinyet.tflite.options import (
    DepthToSpaceOptions,
    MirrorPadOptions,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
    SpaceToDepthOptions,
)

Pads = tuple[tuple[int, int], ...]


def _pairs(ctx: Context, position: int, role: str, count: int) -> Pads:
    """(before, after) for each of some dimensions. Raises RefusedError."""
    found = ctx.numbers(position, role)
    if len(found) != 2 * count or min(found, default=0) < 0:
        raise RefusedError(f"has {role} {found} for {count} dimensions")
    return tuple(zip(found[::2], found[1::2], strict=True))


# ---------------------------------------------------------------- pads


def _filled(ctx: Context, x: Tensor, pads: Pads, value: float) -> Tensor:
    """x with a real number around it; whole numbers by putting constants beside it."""
    shape = [before + n + after for n, (before, after) in zip(x.shape, pads, strict=True)]
    if not any(map(any, pads)):
        return x
    if x.type.quant is not None or x.dtype.value == "float32":
        return moved(ctx, Pad(pads, value=value), x, shape)
    for axis, both in enumerate(pads):
        edges = [
            ctx.new_constant("edge", ctx.filled((*x.shape[:axis], n, *x.shape[axis + 1 :]), value, x.dtype))
            for n in both
            if n
        ]
        parts = [*edges[: bool(both[0])], x, *edges[bool(both[0]) :]]
        x = joined(ctx, parts, axis)
    return x


def pad(ctx: Context) -> None:
    """PAD, and PADV2 with the number that it is given, as it stands in memory. Both pad real zeros otherwise."""
    ctx.expect_inputs(2, 3)
    x = ctx.x(0)
    pads, value = _pairs(ctx, 1, "pads", len(x.shape)), 0.0
    if ctx.op.code == "PADV2" and ctx.has(2):
        found = ctx.constant(2, "value").data.reshape(-1)
        if len(found) != 1:
            raise RefusedError(f"has {len(found)} values to pad")
        value = float(found[0])
        if x.type.quant is not None:
            value = x.type.scale * (value - x.type.zero_point)
    finish(ctx, _filled(ctx, x, pads, value))


def mirror_pad(ctx: Context) -> None:
    """Mirrored padding at both ends, with the edge (symmetric) or without (reflect)."""
    ctx.expect_inputs(2)
    mode, x = ctx.options(MirrorPadOptions).mode, ctx.x(0)
    if mode not in (REFLECT, SYMMETRIC):
        raise RefusedError(f"has a mode {mode}")
    skipped = int(mode == REFLECT)
    for axis, (before, after) in enumerate(_pairs(ctx, 1, "pads", len(x.shape))):
        size = x.shape[axis]
        if max(before, after) > size - skipped:
            raise RefusedError(f"mirrors {max(before, after)} of {size} elements")
        parts = [x]
        if before:
            parts.insert(0, flipped(ctx, piece(ctx, x, axis, skipped, skipped + before), [axis]))
        if after:
            end = size - skipped
            parts.append(flipped(ctx, piece(ctx, x, axis, end - after, end), [axis]))
        x = joined(ctx, parts, axis)
    finish(ctx, x)


# ---------------------------------------------------------------- sizes


def _resized(ctx: Context, mode: ResizeMode, align_corners: bool, half_pixel: bool) -> None:
    """inputs: image, (height, width). Ratios in float32, as the kernels compute them."""
    ctx.expect_inputs(2)
    x = image_of(ctx)
    sizes = ctx.numbers(1, "size")
    if len(sizes) != 2 or min(sizes) < 1:
        raise RefusedError(f"has a size {sizes}")
    if align_corners and half_pixel:
        raise RefusedError("aligns corners, and samples at half pixels", "let one of both be")
    ratios = [
        float(np.float32(n - 1) / np.float32(size - 1))
        if align_corners and size > 1
        else float(np.float32(n) / np.float32(size))
        for n, size in zip(x.shape[1:3], sizes, strict=True)
    ]
    attrs = Resize(sizes[0], sizes[1], mode, align_corners, half_pixel, *ratios)
    finish(ctx, ctx.emit_as(attrs, [x], like(x, (x.shape[0], *sizes, x.shape[3]))))


def resize_bilinear(ctx: Context) -> None:
    options = ctx.options(ResizeBilinearOptions)
    _resized(ctx, "bilinear", options.align_corners, options.half_pixel_centers)


def resize_nearest(ctx: Context) -> None:
    options = ctx.options(ResizeNearestNeighborOptions)
    _resized(ctx, "nearest", options.align_corners, options.half_pixel_centers)


# ---------------------------------------------------------------- space, depth, batch


def space_to_depth(ctx: Context) -> None:
    x, block = image_of(ctx), ctx.options(SpaceToDepthOptions).block_size
    n, height, width, channels = x.shape
    if block < 1 or height % block or width % block:
        raise RefusedError(f"has blocks of {block} in an image of {height} x {width}")
    apart = ctx.reshape(x, (n, height // block, block, width // block, block, channels))
    finish(ctx, permuted(ctx, apart, (0, 1, 3, 2, 4, 5)))


def depth_to_space(ctx: Context) -> None:
    x, block = image_of(ctx), ctx.options(DepthToSpaceOptions).block_size
    n, height, width, channels = x.shape
    if block < 1 or channels % block**2:
        raise RefusedError(f"has blocks of {block} for {channels} channels")
    apart = ctx.reshape(x, (n, height, width, block, block, channels // block**2))
    finish(ctx, permuted(ctx, apart, (0, 1, 3, 2, 4, 5)))


def _blocks(ctx: Context, x: Tensor) -> list[int]:
    blocks = ctx.numbers(1, "blocks")
    if not 1 <= len(blocks) < len(x.shape) or min(blocks) < 1:
        raise RefusedError(f"has blocks {blocks} for {len(x.shape)} dimensions")
    return blocks


def space_to_batch(ctx: Context) -> None:
    """inputs: x (N, space…, rest…), blocks, pads of the space. LiteRT pads real zeros, TFLM zero bytes."""
    ctx.expect_inputs(3)
    x = ctx.x(0)
    blocks = _blocks(ctx, x)
    count = len(blocks)
    pads = _pairs(ctx, 2, "pads", count)
    zero = 0.0 if x.type.quant is None or ctx.runtime == "litert" else x.type.scale * -x.type.zero_point
    x = _filled(ctx, x, ((0, 0), *pads, *((0, 0),) * (len(x.shape) - 1 - count)), zero)
    if any(n % block for n, block in zip(x.shape[1:], blocks, strict=False)):
        raise RefusedError(f"has blocks {blocks} in {list(x.shape[1 : 1 + count])}")
    split = [part for n, block in zip(x.shape[1:], blocks, strict=False) for part in (n // block, block)]
    apart = ctx.reshape(x, (x.shape[0], *split, *x.shape[1 + count :]))
    inner = [2 + 2 * i for i in range(count)]
    outer = [1 + 2 * i for i in range(count)]
    finish(ctx, permuted(ctx, apart, (*inner, 0, *outer, *range(1 + 2 * count, len(apart.shape)))))


def batch_to_space(ctx: Context) -> None:
    """inputs: x (blocks… * N, space…, rest…), blocks, crops of the space."""
    ctx.expect_inputs(3)
    x = ctx.x(0)
    blocks = _blocks(ctx, x)
    count, all_blocks = len(blocks), math.prod(blocks)
    crops = _pairs(ctx, 2, "crops", count)
    if x.shape[0] % all_blocks:
        raise RefusedError(f"has blocks {blocks} in a batch of {x.shape[0]}")
    n = x.shape[0] // all_blocks
    apart = ctx.reshape(x, (*blocks, n, *x.shape[1:]))
    order = [count, *(i for axis in range(count) for i in (count + 1 + axis, axis))]
    mixed = permuted(ctx, apart, (*order, *range(2 * count + 1, len(apart.shape))))
    space = [size * block for size, block in zip(x.shape[1:], blocks, strict=False)]
    y = ctx.reshape(mixed, (n, *space, *x.shape[1 + count :]))
    for axis, (before, after) in enumerate(crops, start=1):
        if before + after >= y.shape[axis]:
            raise RefusedError(f"crops {before} and {after} of {y.shape[axis]}")
        y = piece(ctx, y, axis, before, y.shape[axis] - after)
    finish(ctx, y)


HANDLERS: Mapping[str, Handler] = {
    "PAD": pad,
    "PADV2": pad,
    "MIRROR_PAD": mirror_pad,
    "RESIZE_BILINEAR": resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": resize_nearest,
    "SPACE_TO_DEPTH": space_to_depth,
    "DEPTH_TO_SPACE": depth_to_space,
    "SPACE_TO_BATCH_ND": space_to_batch,
    "BATCH_TO_SPACE_ND": batch_to_space,
}
