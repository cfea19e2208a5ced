# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of convolutions grow with that take one or two pixels at a time (tinyet_dsp_conv2d_two.h,
tinyet_dsp_conv2d_few.h): see claims.py."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.delegates.cortex_m import claims, conv2d, conv2d_few, conv2d_two
from tinyet.delegates.cortex_m.conv2d import Geometry, Stored
from tinyet.ir import Node
from tinyet.ops.shared.claims import Parts, axis
from tinyet.opset import DENSE, Arrangement, Claim


def widening_turn(quads: int) -> int:
    """Fours of values of a turn of tinyet_dsp_widen_two."""
    return quads if quads <= 8 else next((n for n in (8, 7, 6, 5) if quads % n == 0), 4)


def seen(g: Geometry) -> Parts:
    """What the kernel sees of all pixels, two of them at a time."""
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    columns = axis(g.in_w, g.out_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left)
    pixels = g.out_h * g.out_w
    blocks, singles = g.batch * (pixels // 2), g.batch * (pixels % 2)
    dilated = g.dilation_w > 1
    segments, quads = g.kernel_h * (g.kernel_w if dilated else 1), g.together // 4
    parts: Parts = {
        "call": 1,
        "block": blocks,
        "single pixel": singles,
        "segment": (blocks + singles) * segments,
        "row that may be outside": (2 * blocks + singles) * segments * int(not rows.inside.all()),
        "four values of two": blocks * segments * quads,
        "four values of one": singles * segments * quads,
        "several rows": 2 * (blocks + singles) * int(g.out_h > 1),
        f"last {g.together % 4} values": (blocks + singles) * segments,
    }
    turn = widening_turn(quads)
    if quads > turn:
        parts["turn of widening"] = blocks * segments * (quads // turn)
    if not columns.inside.all():
        there = int(rows.inside.sum())  # kernel rows of all output rows
        if dilated:
            parts["tap that may be outside"] = g.batch * there * g.out_w * g.kernel_w
        else:
            cut = g.batch * there * int((~columns.whole).sum())
            values = columns.inside.sum(axis=1)[~columns.whole].sum()
            parts["row that may reach out"] = g.batch * there * g.out_w
            parts["edge"] = cut
            parts["edge byte"] = cut * g.together
            parts["copied edge byte"] = g.batch * there * int(values) * g.in_c
    return parts


def two_work(node: Node, arrangement: Arrangement = DENSE) -> Mapping[str, int]:
    g, r = conv2d.geometry(node), conv2d.rounding_of(node, Stored.INT16)
    steps, unroll = len(conv2d_two.order_of(g)) // 2, conv2d_two.unroll_of(g)
    pairs, pixels, form = -(-g.out_c // 2), g.out_h * g.out_w, claims.form_name(r)
    doubles, alone = g.batch * (pixels // 2) * pairs, g.batch * (pixels % 2) * pairs
    parts = seen(g) if not arrangement.reads_pairs else {"call": 1, "block": g.batch * (pixels // 2)}
    parts[f"two channels, {form}"] = doubles
    parts["two pairs"] = doubles * steps
    parts[f"two channels of one, {form}"] = alone
    parts["two pairs of one"] = alone * steps
    if unroll != steps:
        parts["two channels by a loop"] = doubles + alone
        parts["turn"] = (doubles + alone) * (steps // unroll)
    if conv2d_two.together(g) > 1:
        parts["four channels"] = doubles // 2
    parts["odd channel"] = g.batch * -(-pixels // 2) * (g.out_c % 2)
    parts["clamped output"] = g.batch * pixels * g.out_c * (claims.bounds(r.low, r.high) > 0)
    return parts


def two_code(node: Node) -> Mapping[str, int]:
    g, r = conv2d.geometry(node), conv2d.rounding_of(node, Stored.INT16)
    steps, unroll = len(conv2d_two.order_of(g)) // 2, conv2d_two.unroll_of(g)
    form, copies = claims.form_name(r), 1 + g.out_c % 2 if g.out_c > 2 else 1
    alone = copies * (g.out_h * g.out_w % 2)
    together = conv2d_two.together(g)
    quads = g.together // 4
    turn = widening_turn(quads)
    rest = quads % turn if quads else 0
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
        "kernel": int(g.kernel_h > 1),
        "dilated": int(g.dilation_w > 1),
        "four values": turn + rest,
        f"last {g.together % 4} values": 1,
        "several images": int(g.batch > 1),
        "clamp": int(claims.bounds(r.low, r.high) > 0),
    }


def few_work(node: Node) -> Mapping[str, int]:
    g, r = conv2d.geometry(node), conv2d.rounding_of(node, Stored.INT16)
    count, unroll = g.out_w * g.out_c, conv2d_few.unroll_of(g)
    return {
        "call": 1,
        "pixel": g.out_w,
        "four values": g.out_w * (g.in_c // 4),
        "two values": g.out_w * (g.in_c // 2 % 2),
        "last value": g.out_w * (g.in_c % 2),
        f"output, {claims.form_name(r)}": count,
        "pair of inputs": count * -(-g.in_c // 2),
        "turn": count // unroll if unroll != g.out_c else 0,
        "clamped output": count * (claims.bounds(r.low, r.high) > 0),
    }


def few_code(node: Node) -> Mapping[str, int]:
    g, r = conv2d.geometry(node), conv2d.rounding_of(node, Stored.INT16)
    unroll = conv2d_few.unroll_of(g)
    return {
        "call": 1,
        "four values": g.in_c // 4,
        f"output, {claims.form_name(r)}": unroll,
        "pair of inputs": unroll * -(-g.in_c // 2),
        "clamp": int(claims.bounds(r.low, r.high) > 0),
    }


CLAIMS: Mapping[str, Claim] = {
    conv2d_two.SYMBOL: Claim(two_work, two_code, two_work),
    conv2d_few.SYMBOL: Claim(few_work, few_code),
}
"""By the kernels' names."""
