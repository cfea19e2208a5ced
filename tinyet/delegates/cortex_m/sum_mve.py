# SPDX-License-Identifier: Apache-2.0
"""Means and sums for Helium (tinyet_sum_mve.h): over all pixels, eight channels at a time, and of rows, four at a
time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import refuse_core
from tinyet.delegates.cortex_m.rounding_mve import HEADERS_EVEN
from tinyet.ir import DType, Node
from tinyet.numerics import Int64, Multiplier
from tinyet.ops.shared import reduction, summation
from tinyet.ops.shared.access_orders import in_groups, of_input
from tinyet.ops.shared.factors import rounds_half_even
from tinyet.ops.shared.summation import half_even_bits
from tinyet.opset import AccessOrder, Call, CostModel, Kernel, Struct, library_call
from tinyet.tiles.helium import LANES

SYMBOL, SYMBOL_S16, SYMBOL_EVEN = "tinyet_sum_s8_mve", "tinyet_sum_s16_mve", "tinyet_sum_s8_rne_mve"
SYMBOL_ROWS, SYMBOL_ROWS_S16 = "tinyet_sum_s8_rows_mve", "tinyet_sum_s16_rows_mve"
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_sum_mve.h")
CHANNELS = 8
MOST_PIXELS = 256
"""Whose sum int16 holds."""
ROWS = 4


def sizes_of(node: Node) -> tuple[int, int, int] | None:
    """Images, pixels, channels."""
    sizes = reduction.loops(node)
    if sizes is None or sizes[1] != 1 or sizes[4] == 1:
        return None
    outer, _, middle, count, channels = sizes
    return outer * middle, count, channels


def sizes_taken(node: Node) -> tuple[int, int, int]:
    found = sizes_of(node)
    assert found is not None
    return found


def work(node: Node) -> Mapping[str, int]:
    images, pixels, channels = sizes_taken(node)
    eights = images * -(-channels // CHANNELS)
    return {
        "call": 1,
        "image": images,
        "eight channels": eights,
        "eight values": eights * pixels,
        "sums of int16": eights * -(-pixels // MOST_PIXELS),
    }


def work_s16(node: Node) -> Mapping[str, int]:
    """Behind the eights fours, of which the last may be fewer."""
    images, pixels, channels = sizes_taken(node)
    eights, fours = images * (channels // CHANNELS), images * -(-(channels % CHANNELS) // 4)
    return {
        "call": 1,
        "image": images,
        "eight channels": eights,
        "eight values": eights * pixels,
        "four channels": fours,
        "four values": fours * pixels,
    }


def rows_of(node: Node) -> tuple[int, int] | None:
    """Rows, and values of each."""
    sizes = reduction.loops(node)
    if sizes is None or sizes[1] != 1 or sizes[4] != 1:
        return None
    return sizes[0] * sizes[2], sizes[3]


def rows_taken(node: Node) -> tuple[int, int]:
    found = rows_of(node)
    assert found is not None
    return found


def work_rows(node: Node) -> Mapping[str, int]:
    (rows, count), lanes = rows_taken(node), LANES // node.input(0).dtype.bytes
    fours = -(-rows // ROWS)
    return {"call": 1, "four rows": fours, "four vectors": fours * -(-count // lanes)}


@of_input
def by_groups(node: Node) -> AccessOrder:
    """Eight channels of an image at a time, four of int16, whose sums are complete before they are written."""
    (images, pixels, channels), size = sizes_taken(node), node.input(0).dtype.bytes
    group = CHANNELS // size
    of_image = -(-channels // group)

    def end(groups: Int64) -> Int64:
        image, number = np.divmod(groups, of_image)
        return np.asarray(size * (image * channels + np.minimum(group * (number + 1), channels)), np.int64)

    def first(groups: Int64) -> Int64:
        image, number = np.divmod(groups, of_image)
        return np.asarray(size * (image * pixels * channels + group * number), np.int64)

    return in_groups(images * of_image, end, first, size * images * pixels * channels, gathered=True)


def kernels(multiplier_of: Callable[[Node], Multiplier]) -> tuple[Kernel, ...]:
    """Of an operator whose sums have this factor."""

    def refuse_any(node: Node, target: Target) -> str | None:
        if (reason := refuse_core(node, target)) is not None or rounds_half_even(node):
            return reason
        if node.input(0).dtype is DType.INT16 and (
            node.input(0).type.zero_point or node.output.type.zero_point
        ):
            return "only int16 without zero points"
        shift = multiplier_of(node).shift
        return None if -31 <= shift <= -1 else "a factor of one half and more, or below 2**-31"

    def refuse(node: Node, target: Target) -> str | None:
        if sizes_of(node) is None:
            return "only sums over one run of axes before the last ones"
        return refuse_any(node, target)

    def refuse_rows(node: Node, target: Target) -> str | None:
        if rows_of(node) is None:
            return "only sums over the last axes"
        return refuse_any(node, target)

    def lower_rows(node: Node, _target: Target) -> Call:
        (rows, count), factor = rows_taken(node), multiplier_of(node)
        fields = {
            "bias": -node.input(0).type.zero_point * count,
            "multiplier": factor.multiplier,
            "shift": factor.shift,
            "zero_point": node.output.type.zero_point,
            "rows": rows,
            "count": count,
        }
        symbol = SYMBOL_ROWS if node.input(0).dtype is DType.INT8 else SYMBOL_ROWS_S16
        return library_call(symbol, node, [0], Struct("tinyet_sum_rows_mve_params", fields))

    def of_rows(symbol: str, dtypes: str) -> Kernel:
        cost_model = CostModel(work_rows)
        source = f"{symbol}.c"
        return Kernel(
            symbol, dtypes, lower_rows, HEADERS, (source,), refuse_rows, "cortex_m", cost_model=cost_model
        )

    def lower(node: Node, _target: Target) -> Call:
        images, pixels, channels = sizes_taken(node)
        even = rounds_half_even(node)
        factor = Multiplier(half_even_bits(node), 0) if even else multiplier_of(node)
        fields = {
            "bias": -node.input(0).type.zero_point * pixels,
            "multiplier": factor.multiplier,
            "shift": factor.shift,
            "zero_point": node.output.type.zero_point,
            "images": images,
            "pixels": pixels,
            "channels": channels,
        }
        params = Struct("tinyet_sum_s8_mve_params", fields)
        return library_call(SYMBOL_EVEN if even else SYMBOL, node, [0], params)

    def lower_s16(node: Node, _target: Target) -> Call:
        (images, pixels, channels), factor = sizes_taken(node), multiplier_of(node)
        fields = {"multiplier": factor.multiplier, "shift": factor.shift}
        fields |= {"images": images, "pixels": pixels, "channels": channels}
        return library_call(SYMBOL_S16, node, [0], Struct("tinyet_sum_s16_mve_params", fields))

    return (
        Kernel(
            SYMBOL_S16,
            "s16",
            lower_s16,
            HEADERS,
            (f"{SYMBOL_S16}.c",),
            refuse,
            "cortex_m",
            cost_model=CostModel(work_s16),
            access_order=by_groups,
        ),
        Kernel(
            SYMBOL,
            "s8",
            lower,
            HEADERS,
            (f"{SYMBOL}.c",),
            refuse,
            "cortex_m",
            cost_model=CostModel(work),
            access_order=by_groups,
        ),
        Kernel(
            SYMBOL_EVEN,
            "s8_rne",
            lower,
            (*HEADERS, *HEADERS_EVEN),
            (f"{SYMBOL_EVEN}.c",),
            refuse,
            "cortex_m",
            cost_model=CostModel(work),
            access_order=by_groups,
        ),
        of_rows(SYMBOL_ROWS, "s8"),
        of_rows(SYMBOL_ROWS_S16, "s16"),
    )


MEAN_KERNELS = kernels(summation.mean_multiplier)
SUM_KERNELS = kernels(summation.sum_multiplier)
