# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one group with int16 activations, four pixels by two channels a block (tinyet_conv2d_s16_dsp.h).

Each with weights in int8 and, for more flash and fewer instructions, with these widened to int16 ahead of time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d
from tinyet.delegates.cortex_m.conv2d import Geometry, Stored, geometry
from tinyet.delegates.cortex_m.packing import (
    group_taps,
    join_bytes,
    neighbours,
    pack_int16x2,
    padded_channels,
    words,
)
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16, parts_refusal, rounding
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.opset import AccessOrders, Call, Constant, Kernel, Refuse

HEADERS = (*conv2d.HEADERS, "tinyet_s16_dsp.h", "tinyet_conv2d_s16_dsp.h")

MOST_PARTS = 16
Order = list[tuple[int, int]]


def rows_order(g: Geometry) -> Order:
    return conv2d.rows_order(g, neighbours)


def patches_order(g: Geometry) -> Order:
    return conv2d.patches_order(g, neighbours)


def of_part(r: Rounding16, order: Order) -> Int64:
    """The weights of some taps, (channels, 2 * taps)."""
    return np.pad(r.weights, ((0, 0), (0, 1)))[:, np.array(order).ravel()]  # NONE is the last one


def parts(r: Rounding16, order: Order, taps_of_lane: int) -> list[Order]:
    """The taps in as few parts of equally many lanes as have sums that are proved to fit; none where none do."""
    lanes = len(order) // taps_of_lane
    for count in range(1, MOST_PARTS + 1):
        if lanes % count == 0:
            size = lanes // count * taps_of_lane
            found = [order[i : i + size] for i in range(0, len(order), size)]
            if parts_refusal(r, [of_part(r, part) for part in found]) is None:
                return found
    return []


def refuse_sums(r: Rounding16, order: Order, taps_of_lane: int) -> str | None:
    if r.refusal is not None:
        return r.refusal
    found = parts(r, order, taps_of_lane)
    return None if found else f"sums of more than 32 bits, also in up to {MOST_PARTS} equal parts"


def stream(r: Rounding16, found: list[Order], stored: Stored) -> Int64:
    """The words of tinyet_conv2d_s16_dsp.h."""
    bias = padded_channels(r.bias, 2).reshape(-1, 2)
    blocks = []
    for i, part in enumerate(found):
        blocks.append(bias if i == 0 else np.zeros_like(bias))
        taps = group_taps(r.weights, part, 2)  # (pairs of channels, taps, 4)
        if stored is Stored.INT8:
            blocks.append(join_bytes(taps))
        else:
            both = np.stack([pack_int16x2(taps[..., c], taps[..., c + 2]) for c in (0, 1)], axis=-1)
            blocks.append(both.reshape(len(taps), -1))
    blocks.append(padded_channels(r.multiplier, 2).reshape(-1, 2))
    return words(np.concatenate(blocks, axis=1).ravel())


def gemm_call(
    name: str,
    stored: Stored,
    g: Geometry,
    r: Rounding16,
    order: Order,
    taps_of_lane: int,
    scratch: int,
    text: str,
) -> Call:
    found = parts(r, order, taps_of_lane)
    constant = Constant(
        "weights",
        stream(r, found, stored).astype(np.int32),
        "bias, weights and factor of two channels after another",
    )
    unroll = conv2d.unroll_of(len(found[0]), taps_of_lane)
    body = (
        f"const tinyet_conv2d_shape_dsp shape = {g.literal(unroll)};",
        f"const tinyet_rounding_s16_dsp rounding = {r.literal};",
        f"{name}(input, output, scratch, weights, TINYET_DSP_{stored.name}, /* parts */ {len(found)}, shape,",
        "    rounding);",
    )
    return specialised_call(
        stored.named(name), text, [constant], body, scratch_bytes=scratch, element="int16_t"
    )


def rows_call(g: Geometry, r: Rounding16, text: str, stored: Stored) -> Call:
    order = rows_order(g)
    scratch = 4 * len(order) // g.kernel_w * g.lane_words
    return gemm_call("tinyet_conv2d_s16_direct_4x2_dsp", stored, g, r, order, g.kernel_w, scratch, text)


def lower_rows(node: Node, target: Target, stored: Stored) -> Call:
    return rows_call(geometry(node), rounding(node), summary(node), stored)


def lower_patches(node: Node, target: Target, stored: Stored) -> Call:
    g = geometry(node)
    order = patches_order(g)
    scratch = 16 * len(order) + 4 * -(-g.kernel_w * g.in_c // 2)
    return gemm_call(
        "tinyet_conv2d_s16_im2col_4x2_dsp", stored, g, rounding(node), order, 1, scratch, summary(node)
    )


def refuse_rows(node: Node, target: Target) -> str | None:
    g = geometry(node)
    return conv2d.refuse_rows(node, target) or refuse_sums(rounding(node), rows_order(g), g.kernel_w)


def refuse_patches(node: Node, target: Target) -> str | None:
    return conv2d.refuse_patches(node, target) or refuse_sums(
        rounding(node), patches_order(geometry(node)), 1
    )


def kernels(stored: Stored) -> tuple[Kernel, ...]:
    def kernel(name: str, lower: Callable[..., Call], refuse: Refuse, access_order: AccessOrders) -> Kernel:
        lowered = partial(lower, stored=stored)
        return Kernel(
            stored.named(name), "s16", lowered, HEADERS, (), refuse, "cortex_m", access_order=access_order
        )

    return (
        kernel("tinyet_conv2d_s16_direct_4x2_dsp", lower_rows, refuse_rows, conv2d.row_by_fours),
        kernel("tinyet_conv2d_s16_im2col_4x2_dsp", lower_patches, refuse_patches, conv2d.by_fours),
    )


KERNELS, WIDE_KERNELS = kernels(Stored.INT8), kernels(Stored.INT16)
