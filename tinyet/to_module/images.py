# SPDX-License-Identifier: Apache-2.0
"""Pools and resizing of images: (N, C, H, W) in torch."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tinyet.errors import RefusedError
from tinyet.ir import Array, DType
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.avg_pool2d import AvgPool2d, window_counts
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.resize import Resize, nearest, samples
from tinyet.ops.shared.pooling import Pool
from tinyet.to_module.build import Build, Value, constant
from tinyet.to_module.form import IMAGE
from tinyet.to_module.shapes import padded


def _ceil_mode(b: Build, attrs: Pool) -> bool | None:
    """Whether torch's rounding of the output's size must be upwards so that the windows are those of the graph, which
    may end behind the image by more than it begins before it; None where neither gives them."""
    _, height, width, _ = b.node.input(0).shape
    _, out_h, out_w, _ = b.node.output.shape
    axes = (
        (height, out_h, attrs.kernel_h, attrs.stride_h, attrs.dilation_h, attrs.pad_top),
        (width, out_w, attrs.kernel_w, attrs.stride_w, attrs.dilation_w, attrs.pad_left),
    )
    if any(2 * pad > kernel for _, _, kernel, _, _, pad in axes):
        return None
    for ceil in (False, True):
        sizes = []
        for size, _, kernel, stride, dilation, pad in axes:
            covered = size + 2 * pad - dilation * (kernel - 1) - 1
            found = (-(-covered // stride) if ceil else covered // stride) + 1
            # A window that would begin behind the image is none.
            sizes.append(found - (ceil and (found - 1) * stride >= size + pad))
        if sizes == [out_h, out_w]:
            return ceil
    return None


def _kernel(attrs: Pool) -> tuple[tuple[int, int], tuple[int, int]]:
    return (attrs.kernel_h, attrs.kernel_w), (attrs.stride_h, attrs.stride_w)


def _around(attrs: Pool) -> tuple[tuple[int, int], ...]:
    return (0, 0), (attrs.pad_top, attrs.pad_bottom), (attrs.pad_left, attrs.pad_right), (0, 0)


def max_pool2d(b: Build) -> None:
    """What torch has no padding for has its edge repeated around it, which is in each window that leaves the image."""
    attrs, x = b.attrs(MaxPool2d), b.take(0, IMAGE)
    kernel, stride = _kernel(attrs)
    dilation = attrs.dilation_h, attrs.dilation_w
    ceil = _ceil_mode(b, attrs)
    pads = attrs.pad_top, attrs.pad_left
    if ceil is None:
        if dilation != (1, 1):
            raise RefusedError(
                "has a dilation, and a padding that is not as large on both sides",
                "pad the image in front of it",
            )
        x = padded(b, x, _around(attrs), "replicate")
        pads, ceil = (0, 0), False
    layer = nn.MaxPool2d(kernel, stride, pads, dilation, ceil_mode=ceil)
    b.give(b.step(layer, [x])[0], IMAGE)


def avg_pool2d(b: Build) -> None:
    attrs, x = b.attrs(AvgPool2d), b.take(0, IMAGE)
    kernel, stride = _kernel(attrs)
    around = _around(attrs)
    rows, columns = window_counts(b.node)
    counts = np.asarray(rows[:, None] * columns)
    wanted = counts if attrs.fixed_divisor is None else np.full_like(counts, attrs.fixed_divisor)
    if (attrs.dilation_h, attrs.dilation_w) == (1, 1):
        ceil = _ceil_mode(b, attrs)
        symmetric = all(before == after for before, after in around)
        pads = attrs.pad_top, attrs.pad_left
        # Windows of which torch counts the padding behind the image otherwise are left to the steps below.
        if (
            ceil is not None
            and attrs.divisor is None
            and (not attrs.count_include_pad or (symmetric and not ceil))
        ):
            layer = nn.AvgPool2d(kernel, stride, pads, ceil, attrs.count_include_pad)
            b.give(b.step(layer, [x])[0], IMAGE)
            return
        x = padded(b, x, around) if any(map(any, around)) else x
        same = int(wanted.flat[0]) if (wanted == wanted.flat[0]).all() else None
        function = partial(
            F.avg_pool2d, kernel_size=kernel, stride=stride, divisor_override=same or math.prod(kernel)
        )
        made = b.call(function, [x], "" if same else "sums")
        if same is None:
            made = _divided(b, made, wanted, math.prod(kernel))
        b.give(made, IMAGE)
        return
    x = padded(b, x, around) if any(map(any, around)) else x
    channels, dilation = x.shape[3], (attrs.dilation_h, attrs.dilation_w)
    weight = constant(np.full((channels, 1, *kernel), 1 / wanted.flat[0], np.float32))
    function = partial(F.conv2d, stride=stride, dilation=dilation, groups=channels)
    same = (wanted == wanted.flat[0]).all()
    made = b.call(function, [x, weight], "" if same else "sums")
    if not same:
        made = _divided(b, made, wanted, int(wanted.flat[0]))
    b.give(made, IMAGE)


def _divided(b: Build, slot: str, wanted: Array, by: int) -> str:
    """Averages that were divided by one number, divided by others: one for each window, (out_h, out_w)."""
    share = (np.float32(by) / wanted.astype(np.float32)).astype(np.float32)
    averages = Value(slot, b.node.output.shape, IMAGE)
    return b.call(torch.mul, [averages, constant(share.reshape(1, 1, *wanted.shape))])


def adaptive_avg_pool2d(b: Build) -> None:
    attrs = b.attrs(AdaptiveAvgPool2d)
    layer = nn.AdaptiveAvgPool2d((attrs.out_h, attrs.out_w))
    b.give(b.step(layer, [b.take(0, IMAGE)])[0], IMAGE)


def resize(b: Build) -> None:
    """torch's, where it has these positions: else rows and columns are taken, and mixed."""
    attrs, x = b.attrs(Resize), b.take(0, IMAGE)
    _, height, width, _ = x.shape
    size = attrs.out_h, attrs.out_w
    pairs = ((height, attrs.out_h, attrs.ratio_h), (width, attrs.out_w, attrs.ratio_w))
    mode: str | None = None
    floats = b.node.input(0).dtype is DType.FLOAT32
    if not floats and attrs.mode != "nearest":
        raise RefusedError("mixes whole numbers", "make them floats first")
    if attrs.align_corners and attrs.mode == "bilinear":
        ratios = [
            np.float32(n - 1) / np.float32(out - 1) if out > 1 else np.float32(0) for n, out, _ in pairs
        ]
        mode = "bilinear"
    else:
        ratios = [np.float32(n) / np.float32(out) for n, out, _ in pairs]
        if attrs.mode == "nearest" and not attrs.align_corners:
            mode = "nearest-exact" if attrs.half_pixel else "nearest"
        elif attrs.mode == "bilinear" and attrs.half_pixel:
            mode = "bilinear"
    if (
        floats
        and mode is not None
        and all(np.float32(r) == found for (_, _, r), found in zip(pairs, ratios, strict=True))
    ):
        corners = attrs.align_corners if mode == "bilinear" else None
        function = partial(F.interpolate, size=size, mode=mode, align_corners=corners)
        b.give(b.call(function, [x]), IMAGE)
        return
    if attrs.mode == "nearest":
        rows, columns = nearest(b.node)
        b.give(b.call(_taken, [x, constant(rows), constant(columns)]), IMAGE)
        return
    rows_, columns_ = samples(b.node)
    for dim, along in ((3, columns_), (2, rows_)):
        shape = [1] * 4
        shape[dim] = -1
        weight = np.asarray(along.weight, np.float32).reshape(shape)
        out = (x.shape[0], attrs.out_h if dim == 2 else x.shape[1], attrs.out_w, x.shape[3])
        held = (along.lower, along.upper, np.float32(1) - weight, weight)
        mixed = b.call(partial(_mixed, dim=dim), [x, *map(constant, held)], "" if dim == 2 else "columns")
        x = Value(mixed, out, IMAGE)
    b.give(x.slot, IMAGE)


def _taken(x: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    return x.index_select(2, rows).index_select(3, columns)


def _mixed(
    x: torch.Tensor,
    lower: torch.Tensor,
    upper: torch.Tensor,
    below: torch.Tensor,
    above: torch.Tensor,
    dim: int,
) -> torch.Tensor:
    return x.index_select(dim, lower) * below + x.index_select(dim, upper) * above
