# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation of int8 and int16 for Helium, four values at a time (tinyet_batch_norm_mve.h)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.ir import DType, Node
from tinyet.numerics import clamp_range, reduced_multiplier
from tinyet.ops import batch_norm
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.shapes import around_axis
from tinyet.opset import Call, Constant, CostModel, FieldValue, Kernel, Pointer, Struct, library_call

SYMBOLS = {DType.INT8: "tinyet_batch_norm_s8_mve", DType.INT16: "tinyet_batch_norm_s16_mve"}
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_batch_norm_mve.h")
FOUR, FURTHEST = 4, 31


def sizes_of(node: Node) -> tuple[int, int, int]:
    return around_axis(node.input(0).shape, batch_norm.attrs_of(node).axis)


def refuse(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    shift = batch_norm.channels(node).shift
    fits = shift.min() >= -FURTHEST and shift.max() < 0
    return None if fits else "a channel's factor is one half and more, or below 2**-31"


def values(node: Node) -> Constant:
    """int32, (fours of channels, 4, 4) or (channels, 4): weights, biases, multipliers and shifts."""
    c, wide = batch_norm.channels(node), node.output.dtype is DType.INT16
    bias = c.bias - node.input(0).type.zero_point * c.weight
    multiplier = reduced_multiplier(c.multiplier) << 16 if wide else c.multiplier
    kinds = np.stack([c.weight, bias, multiplier, c.shift], axis=1).astype(np.int32)
    if sizes_of(node)[2] == 1:
        fours = np.pad(kinds, ((0, -len(kinds) % FOUR), (0, 0)), mode="edge")
        kinds = np.ascontiguousarray(fours.reshape(-1, FOUR, len(kinds[0])).swapaxes(1, 2))
    return Constant("values", kinds, "weight, bias, multiplier and shift")


def lower(node: Node, _target: Target) -> Call:
    (outer, channels, inner), out = sizes_of(node), node.output.type
    low, high = clamp_range(clamp_of(node), out)
    fields: dict[str, FieldValue] = {"outer": outer, "channels": channels, "inner": inner}
    fields |= {"values": Pointer("values"), "zero_point": out.zero_point, "low": low, "high": high}
    params = Struct("tinyet_batch_norm_mve_params", fields)
    return library_call(SYMBOLS[out.dtype], node, [0], params, [values(node)])


def work(node: Node) -> Mapping[str, int]:
    outer, channels, inner = sizes_of(node)
    if inner > 1:
        rows = outer * channels
        return {"call": 1, "image": outer, "channel": rows, "four values": rows * -(-inner // FOUR)}
    fours, rest = divmod(channels, FOUR)
    return {
        "call": 1,
        "four channels": fours,
        "last channels": int(rest > 0),
        "pixel of four channels": outer * fours,
        "pixel of last channels": outer * int(rest > 0),
    }


KERNELS = tuple(
    Kernel(
        symbol, dtype.suffix, lower, HEADERS, (f"{symbol}.c",), refuse, "cortex_m", cost_model=CostModel(work)
    )
    for dtype, symbol in SYMBOLS.items()
)
