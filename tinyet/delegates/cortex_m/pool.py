# SPDX-License-Identifier: Apache-2.0
"""Pools (tinyet_pool_dsp.h): with sliding windows, and over whole images as AvgPool2d, Mean and Sum."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64, Multiplier
from tinyet.ops import avg_pool2d
from tinyet.ops.shared import pooling, reduction, summation
from tinyet.ops.shared.access_orders import by_window_pixels, in_groups, of_input
from tinyet.ops.shared.averaging import division, division_table
from tinyet.opset import DENSE, AccessOrder, Call, Constant, Kernel, Layouts, LayoutSupport, only_strides

HEADERS = ("tinyet_dsp.h", "tinyet_pool_dsp.h")
MOST_PIXELS = 255  # sums are int16, or parts of sums
LEAST_PART = 248  # TINYET_DSP_PIXELS
MOST_SUMMED = 2**22
"""Pixels of an image, whose sums are int32."""
STRAIGHT = 16  # TINYET_DSP_STRAIGHT


def refuse_sizes(pixels: int, channels: int, most: int) -> str | None:
    if channels < 4:
        return f"{channels} channels, needs 4"
    return f"{pixels} values to sum, at most {most}" if pixels > most else None


def c_division(count: int, divisor: int, zero_point: int) -> str:
    """The tinyet_division as a C initialiser."""
    multiplier, shift, start, offset, even, bias, by = astuple(division(count, divisor, zero_point))
    return f"{{{multiplier}u, {shift}u, {start}, {offset}, {int(even)}u, {bias}, {by}}}"


def refuse_average(node: Node, target: Target) -> str | None:
    _, height, width, channels = shape = node.input(0).shape
    if not avg_pool2d.attrs_of(node).is_whole(shape):
        return "only windows that are the whole image"
    return refuse_sizes(height * width, channels, MOST_SUMMED)


def lower_average(node: Node, target: Target) -> Call:
    batch, height, width, channels = node.input(0).shape
    count = height * width
    divisor = avg_pool2d.attrs_of(node).fixed_divisor or count
    body = (
        f"const tinyet_division division = {c_division(count, divisor, node.input(0).type.zero_point)};",
        f"tinyet_average_s8_dsp(input, output, /* images */ {batch}, /* pixels */ {count},",
        f"    /* channels */ {channels}, division);",
    )
    text = f"averages of {count} pixels, {channels} channels"
    return specialised_call("tinyet_average_s8_dsp", text, (), body)


def window_lines(node: Node) -> tuple[str, ...]:
    """C of a `tinyet_pool2d_shape shape`, a member's name before each value."""
    fields = pooling.shape_fields(node)
    listed = [f".{name} = {value}" for name, value in fields.items()]
    return (
        f"const tinyet_pool2d_shape shape = {{{', '.join(listed[:6])},",
        f"    {', '.join(listed[6:])}}};",
    )


def window_text(node: Node) -> str:
    a = pooling.attrs_of(node)
    image = "x".join(map(str, node.input(0).shape[1:]))
    return f"windows of {a.kernel_h}x{a.kernel_w} taps of {image} values"


def refuse_channels(node: Node, target: Target) -> str | None:
    channels = node.input(0).shape[3]
    return f"{channels} channels, needs 4" if channels < 4 else None


def pixel_strides(node: Node, layouts: Layouts) -> str:
    channels = node.input(0).shape[3]
    return f"/* pixel stride */ {layouts.input or channels}, {layouts.output or channels}"


def lower_windows_max(node: Node, target: Target, layouts: Layouts = DENSE) -> Call:
    body = (
        *window_lines(node),
        f"tinyet_max_pool2d_s8_dsp(input, output, shape, {pixel_strides(node, layouts)});",
    )
    return specialised_call("tinyet_max_pool2d_s8_dsp", f"maxima of {window_text(node)}", (), body)


def refuse_windows_average(node: Node, target: Target) -> str | None:
    a = avg_pool2d.attrs_of(node)
    if refuse_average(node, target) is None:
        return "windows that are the whole image are sums in one run"
    return refuse_sizes(a.kernel_h * a.kernel_w, node.input(0).shape[3], MOST_PIXELS)


def lower_windows_average(node: Node, target: Target, layouts: Layouts = DENSE) -> Call:
    x, a, counts = node.input(0).type, avg_pool2d.attrs_of(node), avg_pool2d.distinct_counts(node)
    taps = a.kernel_h * a.kernel_w
    constants: list[Constant] = []
    first, table = 0, "NULL"
    if counts != [taps]:
        first, divisions = division_table(counts, a.fixed_divisor, x.zero_point, x.dtype)
        constants, table = [divisions], divisions.name
    body = (
        *window_lines(node),
        f"const tinyet_division division = {c_division(taps, a.fixed_divisor or taps, x.zero_point)};",
        f"tinyet_avg_pool2d_s8_dsp(input, output, shape, {pixel_strides(node, layouts)}, division, {table},",
        f"    /* first count */ {first});",
    )
    text = f"averages of {window_text(node)}"
    return specialised_call("tinyet_avg_pool2d_s8_dsp", text, constants, body)


def refuse_sum(node: Node, target: Target) -> str | None:
    sizes = reduction.loops(node)
    if sizes is None or sizes[1] != 1 or sizes[4] == 1:
        return "only sums over one run of axes before the last ones"
    return refuse_sizes(sizes[3], sizes[4], MOST_SUMMED)


def sum_call(node: Node, multiplier: Multiplier) -> Call:
    sizes = reduction.loops(node)
    assert sizes is not None
    outer, _, middle, count, channels = sizes
    bias, out = -node.input(0).type.zero_point * count, node.output.type
    body = (
        f"tinyet_sum_s8_dsp(input, output, /* images */ {outer * middle}, /* pixels */ {count},",
        f"    /* channels */ {channels}, /* bias */ {bias},",
        f"    /* factor */ {multiplier.multiplier}, {multiplier.shift}, /* zero point */ {out.zero_point});",
    )
    return specialised_call(
        "tinyet_sum_s8_dsp", f"{node.op} of {count} pixels, {channels} channels", (), body
    )


def lower_mean(node: Node, target: Target) -> Call:
    return sum_call(node, summation.mean_multiplier(node))


def lower_sum(node: Node, target: Target) -> Call:
    return sum_call(node, summation.sum_multiplier(node))


def by_int8x4(images: int, pixels: int, channels: int) -> AccessOrder:
    """Four channels of an image at a time, whose sums are complete before they are written."""
    of_image = -(-channels // 4)

    def end(groups: Int64) -> Int64:
        image, quad = np.divmod(groups, of_image)
        return np.asarray(image * channels + np.minimum(4 * quad + 4, channels), np.int64)

    def first(groups: Int64) -> Int64:
        image, quad = np.divmod(groups, of_image)
        return np.asarray(image * pixels * channels + np.minimum(4 * quad, channels - 4), np.int64)

    return in_groups(images * of_image, end, first, images * pixels * channels, gathered=True)


@of_input
def of_images(node: Node) -> AccessOrder:
    batch, height, width, channels = node.input(0).shape
    return by_int8x4(batch, height * width, channels)


@of_input
def of_runs(node: Node) -> AccessOrder:
    sizes = reduction.loops(node)
    assert sizes is not None
    outer, _, middle, count, channels = sizes
    return by_int8x4(outer * middle, count, channels)


AVERAGE_KERNELS = (
    Kernel(
        "tinyet_average_s8_dsp",
        "s8",
        lower_average,
        HEADERS,
        (),
        refuse_average,
        "cortex_m",
        access_order=of_images,
    ),
    Kernel(
        "tinyet_avg_pool2d_s8_dsp",
        "s8",
        lower_windows_average,
        HEADERS,
        (),
        refuse_windows_average,
        "cortex_m",
        layout_support=LayoutSupport(lower_windows_average, only_strides),
        access_order=by_window_pixels,
    ),
)
MAX_KERNELS = (
    Kernel(
        "tinyet_max_pool2d_s8_dsp",
        "s8",
        lower_windows_max,
        HEADERS,
        (),
        refuse_channels,
        "cortex_m",
        layout_support=LayoutSupport(lower_windows_max, only_strides),
        access_order=by_window_pixels,
    ),
)
MEAN_KERNELS = (
    Kernel("tinyet_sum_s8_dsp", "s8", lower_mean, HEADERS, (), refuse_sum, "cortex_m", access_order=of_runs),
)
SUM_KERNELS = (
    Kernel("tinyet_sum_s8_dsp", "s8", lower_sum, HEADERS, (), refuse_sum, "cortex_m", access_order=of_runs),
)
