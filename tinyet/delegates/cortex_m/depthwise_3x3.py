# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions of 3x3 on planes of int16: output rows by printed functions (tinyet_depthwise_dsp.h)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import depthwise
from tinyet.delegates.cortex_m.depthwise import Geometry
from tinyet.delegates.cortex_m.int16x2 import NHW2C2
from tinyet.delegates.cortex_m.packing import join_bytes, pack_int16x2, words
from tinyet.delegates.cortex_m.rounding import Form, Rounding
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.opset import DENSE, Call, Kernel, Layouts, LayoutSupport
from tinyet.opset.cost import cycles_of
from tinyet.tiles.core import page_of
from tinyet.tiles.depthwise import Rows
from tinyet.tiles.depthwise_code import files


@dataclass(frozen=True)
class Family:
    """symbol: the kernel's name. wide: weights lie in flash as int16, ready for the multiplication."""

    symbol: str
    wide: bool


BYTES = Family("tinyet_depthwise_s8_chw_3x3_dsp", wide=False)
WIDE = Family("tinyet_depthwise_s8_w16_chw_3x3_dsp", wide=True)


def rows_of(node: Node, g: Geometry, r: Rounding | Rounding16) -> Rows:
    """What computes the output rows of a tile, of a group of channels."""
    u, v = g.u, g.v
    return Rows(
        outputs=u.out,
        stride=u.stride,
        stride_v=v.stride,
        dilation_v=v.dilation,
        row_words=g.row_words,
        plane_rows=g.tile_rows(g.tile),
        channels=g.group,
        together=1 + g.two_rows,
        alone=g.two_rows and v.out % 2 > 0,
        step=u.out_step,
        two=u.out_two,
        below=v.out_step,
        pairs=g.pairs,
        turn=g.turn if u.out > 1 else 0,
        wide=g.wide,
        exponent=r.exponent if r.form is Form.ONE_SIDED else None,
        low=r.low,
        high=r.high,
        zero_point=0 if g.wide else node.output.type.zero_point,
        bits=8 * g.size,
    )


def stream(r: Rounding, kernel: Int64, zero_point: int) -> Int64:
    """The stream of tinyet_depthwise_rows_dsp.h with int8 weights, (words,). kernel: (channels, 3, 3)."""
    bias, multiplier, shift = depthwise.self_contained(r, zero_point)
    before = replace(r, shift=shift).before
    return joined(kernel, shift, np.stack([bias << before, multiplier], axis=1))


def joined(kernel: Int64, shift: Int64, ends: Int64) -> Int64:
    """The words of int8 weights with a shift, (channels,), in the spare byte, and of what is behind them."""
    spare = np.zeros((len(kernel), 3, 1), np.int64)
    spare[:, 0, 0] = shift
    rows = join_bytes(np.concatenate([kernel[:, :, :1], spare, kernel[:, :, 1:]], axis=2))
    return words(np.concatenate([rows, ends], axis=1).ravel())


def stream_wide(r: Rounding, kernel: Int64, zero_point: int, stride: int) -> Int64:
    """The same with int16 weights."""
    bias, multiplier, shift = depthwise.self_contained(r, zero_point)
    before = replace(r, shift=shift).before
    shifted = kernel << before[:, None, None]
    if stride == 1:
        # {w0, w1}, {w1, w2} of each row
        pairs = pack_int16x2(shifted[..., [0, 1]], shifted[..., [1, 2]]).reshape(len(kernel), -1)
    else:
        thirds = np.pad(shifted[..., 2], ((0, 0), (0, 1)))[:, [[0, 3], [1, 2]]]
        two = pack_int16x2(thirds[:, 0], thirds[:, 1])
        pairs = np.concatenate([pack_int16x2(shifted[..., 0], shifted[..., 1]), two], axis=1)
    one_sided = (1 << max(r.exponent - 1, 0)) + (zero_point << r.exponent) + (1 << np.maximum(shift - 2, 0))
    two_sided = (2 * zero_point + 1) << np.maximum(shift - 1, 0)  # as tinyet_offset_dsp
    ends = [one_sided] if r.form is Form.ONE_SIDED else [two_sided, shift]
    tail = np.stack([bias << before, multiplier, *ends], axis=1)
    return words(np.concatenate([pairs, tail], axis=1).ravel())


def lower(node: Node, target: Target, layouts: Layouts = DENSE, *, family: Family) -> Call:
    page = page_of(cycles_of(target))
    g, r = depthwise.geometry_in(node, layouts, wide=family.wide), depthwise.rounding_of(node)
    kernel, zero_point = depthwise.oriented(r, node, g.transposed), node.output.type.zero_point
    packed = stream_wide(r, kernel, zero_point, g.u.stride) if family.wide else stream(r, kernel, zero_point)
    rows = rows_of(node, g, r)
    return depthwise.call(node, g, family.symbol, packed, rows, files(rows, page), page)


def kernel_of(family: Family) -> Kernel:
    chosen = partial(depthwise.cheapest, three=True, wide=family.wide)
    lowered = partial(lower, family=family)
    return Kernel(
        family.symbol,
        "s8",
        lowered,
        depthwise.HEADERS,
        (),
        depthwise.refuse,
        "cortex_m",
        layout_support=LayoutSupport(lowered, partial(depthwise.takes, wide=family.wide), (NHW2C2,)),
        access_order=depthwise.access_order_of(chosen),
        replaces=depthwise.replaces_of(chosen),
    )


KERNELS = (kernel_of(BYTES), depthwise.KERNEL)
WIDE_KERNELS = (kernel_of(WIDE),)
"""For flash: faster."""
# A channel has few weights: those of int4 lie in flash as bytes, too.
NIBBLE_KERNELS = tuple(replace(kernel, dtypes="s8_w4") for kernel in KERNELS)
