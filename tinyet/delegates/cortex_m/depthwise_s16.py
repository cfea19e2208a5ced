# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions with int16 activations, two channels at a time in planes (tinyet_depthwise_dsp.h): output rows
by the printed functions of int8, whose sums are proved to have 32 bits, and are rounded to int16."""

from __future__ import annotations

from functools import partial

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import depthwise, depthwise_3x3
from tinyet.delegates.cortex_m.depthwise import cheapest, oriented, taps_of, windows_call, windows_of
from tinyet.delegates.cortex_m.packing import words
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16, parts_refusal, rounding
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.opset import Call, Kernel, Lower, Refuse
from tinyet.opset.cost import cycles_of
from tinyet.tiles import int16
from tinyet.tiles.core import page_of
from tinyet.tiles.depthwise_code import files

THREE, ANY = "tinyet_depthwise_s16_chw_3x3_dsp", "tinyet_depthwise_s16_chw_dsp"


def refuse_rounding(r: Rounding16) -> str | None:
    return r.refusal or parts_refusal(r, [r.weights]) or int16.complaint(r.exponent, r.low, r.high)


def refuse(node: Node, target: Target) -> str | None:
    return depthwise.refuse_three(node) or refuse_rounding(rounding(node))


def refuse_any(node: Node, target: Target) -> str | None:
    if (reason := depthwise.refuse_windows(node)) is not None:
        return reason
    return f"{THREE} is made for it" if refuse(node, target) is None else refuse_rounding(rounding(node))


def ends_of(r: Rounding16) -> Int64:
    """(channels, 2): what is behind the weights of a channel."""
    return np.stack([r.bias, r.multiplier], axis=1)


def lower(node: Node, target: Target) -> Call:
    g, r = cheapest(node, three=True), rounding(node)
    packed = depthwise_3x3.joined(oriented(r, node, g.transposed), np.zeros_like(r.bias), ends_of(r))
    rows = depthwise_3x3.rows_of(node, g, r)
    page = page_of(cycles_of(target))
    return depthwise.call(node, g, THREE, packed, rows, files(rows, page), page)


def lower_any(node: Node, target: Target) -> Call:
    g, r = cheapest(node, three=False), rounding(node)
    packed = np.concatenate([taps_of(oriented(r, node, g.transposed)), ends_of(r)], axis=1)
    page = page_of(cycles_of(target))
    return windows_call(node, g, ANY, words(packed.ravel()), windows_of(node, g, r), page)


def kernel(name: str, lower: Lower, refuse: Refuse, *, three: bool) -> Kernel:
    chosen = partial(cheapest, three=three)
    return Kernel(
        name,
        "s16",
        lower,
        depthwise.HEADERS,
        (),
        refuse,
        "cortex_m",
        access_order=depthwise.access_order_of(chosen),
        replaces=depthwise.replaces_of(chosen),
    )


KERNELS = (kernel(THREE, lower, refuse, three=True), kernel(ANY, lower_any, refuse_any, three=False))
