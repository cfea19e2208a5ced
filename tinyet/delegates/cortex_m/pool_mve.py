# SPDX-License-Identifier: Apache-2.0
"""Pools with sliding windows for Helium (tinyet/tiles/helium_pools.py), int8 and int16: windows side by side that have
as many taps in the image, those at a border, too, are a printed function; around them is a loop over rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import pool
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import DType, Node
from tinyet.ops import avg_pool2d
from tinyet.ops.shared import pooling
from tinyet.ops.shared.access_orders import by_window_pixels
from tinyet.ops.shared.averaging import division
from tinyet.ops.shared.cost_models import Axis, axes
from tinyet.opset import DENSE, Call, CostModel, Exact, Kernel, Layouts, LayoutSupport, only_strides
from tinyet.tiles.helium_pools import Average, Windows, files

HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_pool_mve.h")
SOURCES = ("tinyet_pool_mve.c",)
MOST_RUNS = 16
"""Of rows times those of columns: each has a call, and most of them a function of their own."""


@dataclass(frozen=True)
class Run:
    """Windows that follow each other along one axis, of as many taps in the image each. start: the first tap of the
    first one."""

    count: int
    start: int
    taps: int


def runs_along(axis: Axis, stride: int, dilation: int, before: int) -> list[Run]:
    """All windows of an axis, in their order."""
    runs: list[Run] = []
    for i, inside in enumerate(axis.inside):
        taps = int(inside.sum())
        start = i * stride - before + int(inside.argmax()) * dilation
        last = runs[-1] if runs else None
        if last is not None and (last.taps, last.start + last.count * stride) == (taps, start):
            runs[-1] = replace(last, count=last.count + 1)
        else:
            runs.append(Run(1, start, taps))
    return runs


def runs_of(node: Node) -> tuple[list[Run], list[Run]]:
    """Of rows and of columns."""
    a = pooling.attrs_of(node)
    rows, columns = axes(node, a, a.kernel_h, a.kernel_w)
    return (
        runs_along(rows, a.stride_h, a.dilation_h, a.pad_top),
        runs_along(columns, a.stride_w, a.dilation_w, a.pad_left),
    )


def average_of(count: int, divisor: int, zero_point: int, dtype: DType) -> Average | None:
    """Of so many taps in the image: by the largest reciprocal of 16 bits, of int16 of 32; None where that is not exact
    for all sums, or these leave as many bits."""
    d, bits = division(count, divisor, zero_point, dtype), 16 * dtype.bytes
    shift = max(j for j in range(bits) if -(-(2 ** (bits + j)) // divisor) < 2**bits)
    multiplier = -(-(2 ** (bits + shift)) // divisor)
    most = dtype.range[1] * count + d.start + d.offset
    # floor(u * m / 2**s) is floor(u / d) as long as u * (m * d - 2**s) < 2**s.
    error = multiplier * divisor - 2 ** (bits + shift)
    if -dtype.range[0] * max(divisor, count) > 2 ** (bits - 1) or most * error >= 2 ** (bits + shift):
        return None
    return Average(multiplier, shift, d.offset + d.start, d.bias, d.even, d.start, divisor)


def is_copy(node: Node, count: int) -> bool:
    """Whether the average of so many taps is the value of one; as a maximum is."""
    return count == 1 and avg_pool2d.attrs_of(node).fixed_divisor in (None, 1)


def average_in(node: Node, count: int) -> Average | None:
    """Of a window with so many taps in the image."""
    x, fixed = node.input(0).type, avg_pool2d.attrs_of(node).fixed_divisor
    zero_point = x.zero_point if x.quant is not None else 0
    return average_of(count, fixed or count, zero_point, x.dtype)


def windows_of(node: Node, rows: Run, columns: Run, layouts: Layouts) -> Windows:
    a, (_, _, width, channels), size = pooling.attrs_of(node), node.input(0).shape, node.input(0).dtype.bytes
    taps = rows.taps * columns.taps
    averaged = node.op == "avg_pool2d" and not is_copy(node, taps)
    pixel, out_pixel = layouts.input or size * channels, layouts.output or size * channels
    return Windows(
        rows.taps,
        columns.taps,
        channels,
        a.dilation_h * width * pixel,
        a.dilation_w * pixel,
        a.stride_w * pixel,
        out_pixel,
        average_in(node, taps) if averaged else None,
        8 * size,
    )


def all_windows(node: Node, layouts: Layouts) -> list[tuple[Run, Run, Windows]]:
    rows, columns = runs_of(node)
    return [(row, column, windows_of(node, row, column, layouts)) for row in rows for column in columns]


def refuse_windows(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    rows, columns = runs_of(node)
    if not all(run.taps for run in (*rows, *columns)):
        return "a window that lies wholly in the padding"
    if len(rows) * len(columns) > MOST_RUNS:
        return f"windows of {len(rows)} x {len(columns)} kinds, takes up to {MOST_RUNS}"
    fits = all(windows.fits for _, _, windows in all_windows(node, DENSE))
    return None if fits else "too many taps, or too far apart"


def refuse_average(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    if (
        node.input(0).dtype is DType.INT8
        and (reason := pool.refuse_windows_average(node, target)) is not None
    ):
        return reason
    counts, fixed = avg_pool2d.distinct_counts(node), avg_pool2d.attrs_of(node).fixed_divisor
    if counts == [1] or (fixed is not None and fixed < counts[-1]):
        return "one tap, or a divisor below the number of taps"
    if not all(is_copy(node, count) or average_in(node, count) for count in counts):
        return f"no exact reciprocal for windows of {counts} taps"
    return refuse_windows(node, target)


# ---------------------------------------------------------------- the function


def lower(node: Node, _target: Target, layouts: Layouts = DENSE, *, symbol: str) -> Call:
    (batch, height, width, channels), a = node.input(0).shape, pooling.attrs_of(node)
    x = node.input(0)
    pixel = (layouts.input or channels * x.dtype.bytes) // x.dtype.bytes
    out_pixel = (layouts.output or channels * x.dtype.bytes) // x.dtype.bytes
    rows, columns = runs_of(node)
    body: list[str] = []
    for row in rows:
        again = row.count > 1
        body += [f"for (int32_t y = 0; y < {row.count}; y++) {{"] if again else []
        for column in columns:
            at = (row.start * width + column.start) * pixel
            moved = f" + {a.stride_h * width * pixel} * y" if again else ""
            windows = windows_of(node, row, column, layouts)
            body.append(f"{'  ' * again}{windows.name}(input + {at}{moved}, output, {column.count});")
            body.append(f"{'  ' * again}output += {column.count * out_pixel};")
        body += ["}"] if again else []
    if batch > 1:
        image = f"  input += {height * width * pixel};"
        body = [f"for (int32_t n = 0; n < {batch}; n++) {{", *(f"  {line}" for line in body), image, "}"]
    kind = "maxima" if node.op == "max_pool2d" else "averages"
    made = specialised_call(
        symbol, f"{kind} of {pool.window_text(node)}", (), body, element=f"{x.dtype.value}_t"
    )
    printed: dict[str, str] = {}
    for _, _, windows in all_windows(node, layouts):
        printed |= files(windows)
    return replace(made, files=printed)


def takes(node: Node, layouts: Layouts) -> bool:
    fits = all(windows.fits for _, _, windows in all_windows(node, layouts))
    return only_strides(node, layouts) and fits


# ---------------------------------------------------------------- what costs grow with


def work(node: Node, layouts: Layouts = DENSE) -> Mapping[str, int]:
    """What is around the printed windows, and what cycles grow with beside their exact instructions."""
    (rows, _), batch = runs_of(node), node.output.shape[0]
    found = {"call": 1, "image": batch, "row": batch * sum(row.count for row in rows if row.count > 1)}
    parts = "run", "pointer of a run", "window", "step of a window", "vector", "vector of taps"
    found |= dict.fromkeys(parts, 0)
    for row, column, windows in all_windows(node, layouts):
        calls = batch * row.count
        vectors = calls * column.count * windows.vectors
        found["run"] += calls
        found["pointer of a run"] += calls * len(windows.pieces)
        found["window"] += calls * column.count
        found["step of a window"] += calls * column.count * len(windows.after)
        found["vector"] += vectors
        found["vector of taps"] += vectors * row.taps * column.taps
    return found


def exact(node: Node, layouts: Layouts, _core: str) -> Exact:
    batch, instructions, functions = node.output.shape[0], 0, dict[str, int]()
    for row, column, windows in all_windows(node, layouts):
        calls = batch * row.count
        instructions += windows.instructions(calls, calls * column.count)
        functions[windows.name] = windows.code_bytes
    return Exact(instructions=instructions, cycles={}, functions=functions, reads={})


def code(node: Node) -> Mapping[str, int]:
    """Of the wrapper."""
    rows, columns = runs_of(node)
    loops = sum(row.count > 1 for row in rows)
    return {
        "call": 1,
        "run": len(rows) * len(columns),
        "loop": loops,
        "images": int(node.output.shape[0] > 1),
    }


def kernel(kind: str, dtype: str, refuse: Callable[[Node, Target], str | None]) -> Kernel:
    symbol = f"tinyet_{kind}_pool2d_{dtype}_mve"
    made = partial(lower, symbol=symbol)
    return Kernel(
        symbol,
        dtype,
        made,
        HEADERS,
        SOURCES,
        refuse,
        "cortex_m",
        layout_support=LayoutSupport(made, takes),
        access_order=by_window_pixels,
    )


MAX_KERNELS = tuple(kernel("max", dtype, refuse_windows) for dtype in ("s8", "s16"))
AVERAGE_KERNELS = tuple(kernel("avg", dtype, refuse_average) for dtype in ("s8", "s16"))
COST_MODELS: Mapping[str, CostModel] = {
    made.symbol: CostModel(work, code, layout_work=work, exact=exact)
    for made in (*MAX_KERNELS, *AVERAGE_KERNELS)
}
