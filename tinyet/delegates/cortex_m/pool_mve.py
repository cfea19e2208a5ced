# SPDX-License-Identifier: Apache-2.0
"""int8 pools with sliding windows for Helium (tinyet_pool_mve.h): windows in the image are printed, the others those of
pool.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import cost_models_pooling, pool
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.ops import avg_pool2d
from tinyet.ops.shared import pooling
from tinyet.ops.shared.access_orders import by_window_pixels
from tinyet.ops.shared.averaging import division, division_table
from tinyet.ops.shared.cost_models import Axis, axes
from tinyet.opset import (
    DENSE,
    Call,
    Constant,
    CostModel,
    Exact,
    Kernel,
    Layouts,
    LayoutSupport,
    only_strides,
)
from tinyet.tiles.helium_pools import Average, Windows, files

MAXIMA, AVERAGES = "tinyet_max_pool2d_s8_mve", "tinyet_avg_pool2d_s8_mve"
HEADERS = (*pool.HEADERS, "tinyet_mve.h", "tinyet_pool_mve.h")
SOURCES = ("tinyet_pool_mve.c",)


def average_of(taps: int) -> Average | None:
    """Of two taps to 255: by the largest 16-bit reciprocal; None where that is not exact for all sums."""
    d = division(taps, taps, 0)
    shift = max(j for j in range(16) if -(-(2 ** (16 + j)) // taps) < 2**16)
    multiplier = -(-(2 ** (16 + shift)) // taps)
    most = 127 * taps + d.offset
    # floor(u * m / 2**s) is floor(u / d) as long as u * (m * d - 2**s) < 2**s.
    if most >= 2**16 or most * (multiplier * taps - 2 ** (16 + shift)) >= 2 ** (16 + shift):
        return None
    return Average(multiplier, shift, d.offset, d.bias, d.even)


def both_axes(node: Node) -> tuple[Axis, Axis]:
    a = pooling.attrs_of(node)
    return axes(node, a, a.kernel_h, a.kernel_w)


def columns_inside(node: Node) -> tuple[int, int]:
    """The first column of windows that lie in the image, and that behind the last one."""
    inside = np.flatnonzero(both_axes(node)[1].whole)
    return (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)


def windows_of(node: Node, layouts: Layouts) -> Windows:
    a, (_, _, width, channels) = pooling.attrs_of(node), node.input(0).shape
    pixel, out_pixel = layouts.input or channels, layouts.output or channels
    return Windows(
        a.kernel_h,
        a.kernel_w,
        channels,
        a.dilation_h * width * pixel,
        a.dilation_w * pixel,
        a.stride_w * pixel,
        out_pixel,
        average_of(a.kernel_h * a.kernel_w) if node.op == "avg_pool2d" else None,
    )


def refuse_windows(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target) or pool.refuse_channels(node, target)) is not None:
        return reason
    rows, columns = both_axes(node)
    if not (rows.whole.any() and columns.whole.any()):
        return "no window lies in the image"
    return None if windows_of(node, DENSE).fits else "too many taps, or too far apart"


def refuse_average(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target) or pool.refuse_windows_average(node, target)) is not None:
        return reason
    a = avg_pool2d.attrs_of(node)
    taps = a.kernel_h * a.kernel_w
    if taps == 1 or (a.fixed_divisor or taps) != taps:
        return "one tap, or a divisor that is not the number of taps"
    if average_of(taps) is None:
        return f"no exact reciprocal of {taps} in 16 bits"
    return refuse_windows(node, target)


def lower(
    symbol: str, node: Node, layouts: Layouts, divisions: tuple[str, ...], constants: tuple[Constant, ...]
) -> Call:
    windows, (first, behind) = windows_of(node, layouts), columns_inside(node)
    more = "".join(f", {each}" for each in divisions)
    body = (
        *pool.window_lines(node),
        f"{symbol}(input, output, shape, {pool.pixel_strides(node, layouts)},",
        f"    /* columns in the image */ {first}, {behind}, {windows.name}{more});",
    )
    kind = "maxima" if windows.average is None else "averages"
    made = specialised_call(symbol, f"{kind} of {pool.window_text(node)}", constants, body)
    return replace(made, files=files(windows))


def lower_max(node: Node, _target: Target, layouts: Layouts = DENSE) -> Call:
    return lower(MAXIMA, node, layouts, (), ())


def lower_average(node: Node, _target: Target, layouts: Layouts = DENSE) -> Call:
    x, a, counts = node.input(0).type, avg_pool2d.attrs_of(node), avg_pool2d.distinct_counts(node)
    rows, columns = both_axes(node)
    if rows.whole.all() and columns.whole.all():
        return lower(AVERAGES, node, layouts, ("NULL", "/* first count */ 0"), ())
    first, table = division_table(counts, a.fixed_divisor, x.zero_point, x.dtype)
    return lower(AVERAGES, node, layouts, (table.name, f"/* first count */ {first}"), (table,))


def takes(node: Node, layouts: Layouts) -> bool:
    return only_strides(node, layouts) and windows_of(node, layouts).fits


# ---------------------------------------------------------------- what costs grow with


def runs_of(node: Node) -> tuple[int, int]:
    """Rows of windows that are printed, and their windows."""
    (rows, columns), batch = both_axes(node), node.output.shape[0]
    count = batch * int(rows.whole.sum())
    return count, count * int(columns.whole.sum())


def work(node: Node, layouts: Layouts = DENSE) -> Mapping[str, int]:
    """What is around the printed windows, and what cycles grow with beside their exact instructions."""
    runs, inside = runs_of(node)
    (rows, columns), (batch, _, _, channels) = both_axes(node), node.output.shape
    windows = windows_of(node, layouts)
    quads = -(-channels // 4)
    pixels = batch * rows.positions * columns.positions
    empty = pixels - batch * int(rows.inside.any(axis=1).sum()) * int(columns.inside.any(axis=1).sum())
    walked = pixels - inside - empty
    tap_rows = batch * rows.in_image * int(columns.inside.any(axis=1).sum()) - inside * rows.taps
    padded = int(not (rows.whole.all() and columns.whole.all()))
    return {
        "call": 1,
        "image": batch,
        "row": batch * rows.positions,
        "row, padded": batch * rows.positions * padded,
        "run": runs,
        "row outside": batch * rows.outside,
        "column outside": batch * rows.positions * columns.outside,
        "window outside": empty,
        "window at a border": walked,
        "four channels at a border": walked * quads,
        "row of taps at a border": tap_rows * quads,
        "tap at a border": (batch * rows.in_image * columns.in_image - inside * rows.taps * columns.taps)
        * quads,
        "window": inside,
        "vector": inside * windows.vectors,
        "vector of taps": inside * windows.vectors * rows.taps * columns.taps,
    }


def exact(node: Node, layouts: Layouts, _core: str) -> Exact:
    windows = windows_of(node, layouts)
    return Exact(
        instructions=windows.instructions(*runs_of(node)),
        cycles={},
        functions={windows.name: windows.code_bytes},
        reads={},
    )


def code(node: Node) -> Mapping[str, int]:
    """Of the wrapper."""
    found = cost_models_pooling.code(node)
    return {name: found[name] for name in ("call", "rows", "padded", "odd channels")}


def kind(node: Node) -> str:
    """By what decides what the compiler makes of windows at a border."""
    rows, columns = both_axes(node)
    if rows.whole.all() and columns.whole.all():
        return "inside"
    channels = node.output.shape[3]
    return f"padded, {'one' if channels == 4 else 'odd' if channels % 4 else 'many'}"


COST_MODELS: Mapping[str, CostModel] = dict.fromkeys(
    (MAXIMA, AVERAGES), CostModel(work, code, layout_work=work, kind=kind, exact=exact)
)

MAX_KERNELS = (
    Kernel(
        MAXIMA,
        "s8",
        lower_max,
        HEADERS,
        SOURCES,
        refuse_windows,
        "cortex_m",
        layout_support=LayoutSupport(lower_max, takes),
        access_order=by_window_pixels,
    ),
)
AVERAGE_KERNELS = (
    Kernel(
        AVERAGES,
        "s8",
        lower_average,
        HEADERS,
        SOURCES,
        refuse_average,
        "cortex_m",
        layout_support=LayoutSupport(lower_average, takes),
        access_order=by_window_pixels,
    ),
)
