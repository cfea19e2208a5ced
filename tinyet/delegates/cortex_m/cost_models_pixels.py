# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of convolutions grow with that take one or two pixels at a time (tinyet_conv2d_2x2_dsp.h,
tinyet_conv2d_k8_dsp.h): see cost_models.py."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.delegates.cortex_m import conv2d, conv2d_2x2, conv2d_k8, cost_models
from tinyet.delegates.cortex_m.conv2d import Geometry, Stored
from tinyet.delegates.cortex_m.int16x2 import NHW2C2
from tinyet.ir import Node
from tinyet.ops.shared.cost_models import Parts, axis
from tinyet.opset import DENSE, CostModel, Layouts


def widening_turn(quads: int) -> int:
    """Fours of values of a turn of tinyet_widen_two_dsp."""
    return quads if quads <= 8 else next((n for n in (8, 7, 6, 5) if quads % n == 0), 4)


def seen(g: Geometry) -> Parts:
    """The pixels that the kernel reads, two at a time."""
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    columns = axis(g.in_w, g.out_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left)
    y, x = np.divmod(np.arange(g.out_h * g.out_w), g.out_w)
    whole = rows.whole[y] & columns.whole[x]  # of each pixel
    doubles = len(whole) // 2
    together = whole[: 2 * doubles].reshape(-1, 2).all(axis=1)  # neither of two pixels has an edge
    # Pixels that are looked at row by row, and what of them is in the image.
    checked = np.append(np.repeat(~together, 2), [not g.inside] * (len(whole) % 2))
    in_rows, in_columns = rows.inside.sum(axis=1)[y], columns.inside.sum(axis=1)[x]
    dilated = g.dilation_w > 1
    taps = g.kernel_w if dilated else 1
    segments, quads = g.kernel_h * taps, g.together // 4
    blocks, singles, edges = g.batch * doubles, g.batch * (len(whole) % 2), g.batch * int((~together).sum())
    parts: Parts = {
        "call": 1,
        "block": blocks,
        "block of several rows": blocks * int(g.out_h > 1),
        "block that may reach out": blocks * int(not g.inside),
        "block with an edge": edges,
        "single pixel": singles,
        "row": (blocks - edges) * segments,
        "row with an edge": edges * segments,
        "row of one": singles * segments,
        "four values of two": blocks * segments * quads,
        "four values of one": singles * segments * quads,
        f"last {g.together % 4} values": (blocks + singles) * segments,
        "hidden row": g.batch * int((checked * (g.kernel_h - in_rows)).sum()) * taps,
    }
    turn = widening_turn(quads)
    if quads > turn:
        parts["turn of widening"] = blocks * segments * (quads // turn)
    if dilated:
        parts["hidden tap"] = g.batch * int((checked * in_rows * (g.kernel_w - in_columns)).sum())
    else:
        cut = checked * in_rows * ~columns.whole[x]
        parts["edge"] = g.batch * int(cut.sum())
        parts["edge byte"] = g.batch * int(cut.sum()) * g.together
        parts["copied edge"] = g.batch * int((cut * (in_columns > 0)).sum())
        parts["copied edge byte"] = g.batch * int((cut * in_columns).sum()) * g.in_c
    return parts


def two_work(node: Node, layouts: Layouts = DENSE) -> Mapping[str, int]:
    g, r = conv2d.geometry(node), conv2d.rounding_of(node, Stored.INT16)
    steps, unroll = len(conv2d_2x2.order_of(g)) // 2, conv2d_2x2.unroll_of(g)
    pairs, pixels, form = -(-g.out_c // 2), g.out_h * g.out_w, cost_models.form_name(r)
    doubles, alone = g.batch * (pixels // 2) * pairs, g.batch * (pixels % 2) * pairs
    parts = seen(g) if layouts.reads is not NHW2C2 else {"call": 1, "block": g.batch * (pixels // 2)}
    parts[f"two channels, {form}"] = doubles
    parts["two pairs"] = doubles * steps
    parts[f"two channels of one, {form}"] = alone
    parts["two pairs of one"] = alone * steps
    if unroll != steps:
        parts["two channels by a loop"] = doubles + alone
        parts["turn"] = (doubles + alone) * (steps // unroll)
    if conv2d_2x2.together(g) > 1:
        parts["four channels"] = doubles // 2
    parts["odd channel"] = g.batch * -(-pixels // 2) * (g.out_c % 2)
    parts["clamped output"] = g.batch * pixels * g.out_c * (cost_models.bounds(r.low, r.high) > 0)
    return parts


def two_code(node: Node) -> Mapping[str, int]:
    g, r = conv2d.geometry(node), conv2d.rounding_of(node, Stored.INT16)
    steps, unroll = len(conv2d_2x2.order_of(g)) // 2, conv2d_2x2.unroll_of(g)
    form, copies = cost_models.form_name(r), 1 + g.out_c % 2 if g.out_c > 2 else 1
    alone = copies * (g.out_h * g.out_w % 2)
    together = conv2d_2x2.together(g)
    rows = code_rows(g)
    quads = g.together // 4
    turn = widening_turn(quads)
    return {
        "call": 1,
        "copy": copies,
        f"copy, {form}": copies * together,
        "two pairs": copies * unroll * together,
        "copy for one": alone,
        f"copy for one, {form}": alone,
        "two pairs of one": alone * unroll,
        "loop": (copies + alone) * (unroll != steps),
        "outside": int(not g.inside),
        "row": rows,
        "dilated": int(g.dilation_w > 1),
        "four values": rows * (turn + (quads % turn if turn else 0)),
        "looped values": rows * int(quads > turn),
        f"last {g.together % 4} values": rows,
        "single pixel": int(alone > 0),
        "single pixel, several rows": int(alone > 0 and g.kernel_h > 1),
        "several images": int(g.batch > 1),
        "clamp": int(cost_models.bounds(r.low, r.high) > 0),
    }


def code_rows(g: Geometry) -> int:
    """Copies of the code that widens a kernel row of two pixels."""
    if g.out_h * g.out_w < 2:
        return 0
    waits = g.together % 2 and g.dilation_w == 1
    written_out = next((n for n in (3, 2) if g.kernel_h % n == 0), 3) if waits else 1
    fits = g.in_h >= (g.kernel_h - 1) * g.dilation_h + 1 and g.in_w >= (g.kernel_w - 1) * g.dilation_w + 1
    return (min(g.kernel_h, written_out) if fits else 0) + int(not g.inside)


def few_work(node: Node) -> Mapping[str, int]:
    g, r = conv2d.geometry(node), conv2d.rounding_of(node, Stored.INT16)
    count, unroll = g.out_w * g.out_c, conv2d_k8.unroll_of(g)
    return {
        "call": 1,
        "pixel": g.out_w,
        "four values": g.out_w * (g.in_c // 4),
        "two values": g.out_w * (g.in_c // 2 % 2),
        "last value": g.out_w * (g.in_c % 2),
        f"output, {cost_models.form_name(r)}": count,
        "pair of inputs": count * -(-g.in_c // 2),
        "turn": count // unroll if unroll != g.out_c else 0,
        "clamped output": count * (cost_models.bounds(r.low, r.high) > 0),
    }


def few_code(node: Node) -> Mapping[str, int]:
    g, r = conv2d.geometry(node), conv2d.rounding_of(node, Stored.INT16)
    unroll = conv2d_k8.unroll_of(g)
    return {
        "call": 1,
        "four values": g.in_c // 4,
        f"output, {cost_models.form_name(r)}": unroll,
        "pair of inputs": unroll * -(-g.in_c // 2),
        "clamp": int(cost_models.bounds(r.low, r.high) > 0),
    }


COST_MODELS: Mapping[str, CostModel] = {
    conv2d_2x2.SYMBOL: CostModel(two_work, two_code, two_work),
    conv2d_k8.SYMBOL: CostModel(few_work, few_code),
}
"""By the kernels' names."""
