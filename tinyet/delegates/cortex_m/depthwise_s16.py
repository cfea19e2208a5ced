# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions with int16 activations, two channels at a time in planes (tinyet_depthwise_s16_dsp.h)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import depthwise
from tinyet.delegates.cortex_m.depthwise import LARGEST_OFFSET, Geometry
from tinyet.delegates.cortex_m.packing import join_bytes, words
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16, parts_refusal, rounding
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.convolution import attrs_of
from tinyet.opset import Call, Constant, Kernel, Lower, Refuse

HEADERS = (*depthwise.HEADERS, "tinyet_s16_dsp.h", "tinyet_depthwise_s16_dsp.h")


def oriented(r: Rounding16, node: Node, transposed: bool) -> Int64:
    """The weights, (channels, taps along v, taps along u)."""
    kernel = r.weights.reshape(len(r.weights), *node.input(1).shape[1:3])
    return kernel.transpose(0, 2, 1) if transposed else kernel


def geometries(node: Node, *, three: bool) -> list[Geometry]:
    """Of two channels at a time; steps are in values."""
    found = (g for g in depthwise.geometries(node, three=three) if g.group == 2)
    return [replace(g, traffic=2 * g.traffic) for g in found if not three or refuse_geometry(g) is None]


def refuse_geometry(g: Geometry) -> str | None:
    """Why the kernel for 3x3 cannot compute it, or None."""
    if g.u.dilation != 1 or g.u.stride > 2:
        return "needs dilation 1 and stride 1 or 2 along one axis"
    reach = 2 * g.v.dilation * g.row_words + 3 * g.u.stride
    return "rows are too long" if 4 * reach > LARGEST_OFFSET else None


def refuse(node: Node, target: Target) -> str | None:
    channels = node.input(0).shape[3]
    if attrs_of(node).groups != channels or node.input(1).shape[0] != channels:
        return "only one channel in and out a group"
    if node.input(1).shape[1:3] != (3, 3):
        return "only 3x3 kernels"
    if channels < 2:
        return "a single channel"
    if not geometries(node, three=True):
        return next(reason for g in depthwise.geometries(node, three=True) if (reason := refuse_geometry(g)))
    r = rounding(node)
    return r.refusal or parts_refusal(r, [r.weights])


def refuse_any(node: Node, target: Target) -> str | None:
    channels = node.input(0).shape[3]
    if attrs_of(node).groups != channels:
        return "only one channel in a group"
    if channels < 2:
        return "a single channel"
    if refuse(node, target) is None:
        return "tinyet_depthwise_s16_chw_3x3_dsp is made for it"
    r = rounding(node)
    return r.refusal or parts_refusal(r, [r.weights])


def cheapest(node: Node, *, three: bool) -> Geometry:
    """The cheapest form of the kernel, for a node that was not refused."""
    return min(geometries(node, three=three), key=lambda g: g.instructions)


def stream(r: Rounding16, kernel: Int64) -> Int64:
    """The stream of the kernel for 3x3, (words,). kernel: (channels, 3, 3)."""
    spare = np.zeros((len(kernel), 3, 1), np.int64)
    rows = join_bytes(np.concatenate([kernel[:, :, :1], spare, kernel[:, :, 1:]], axis=2))
    return words(np.concatenate([rows, np.stack([r.bias, r.multiplier], axis=1)], axis=1).ravel())


def stream_any(r: Rounding16, kernel: Int64) -> Int64:
    """The stream of the kernel for any size, (words,). kernel: (channels, taps along v, taps along u)."""
    taps = depthwise.paired_taps(kernel)
    return words(np.concatenate([taps, np.stack([r.bias, r.multiplier], axis=1)], axis=1).ravel())


def call(node: Node, g: Geometry, name: str, packed: Int64, scratch: int) -> Call:
    batch, _, _, channels = node.input(0).shape
    u, v = g.u, g.v
    parts: tuple[tuple[str, tuple[int, ...]], ...] = (
        ("", (batch, channels, node.output.shape[3] // channels)),
        ("in", (u.size, v.size, u.step, v.step)),
        ("out", (u.out, v.out, u.out_step, v.out_step)),
        ("kernel", (u.kernel, v.kernel)),
        ("stride", (u.stride, v.stride)),
        ("dilation", (u.dilation, v.dilation)),
        ("pad", (u.pad, v.pad)),
        ("planes", (g.part, g.apart, g.between, g.tile)),
    )
    texts = [(f"/* {title} */ " if title else "") + ", ".join(map(str, values)) for title, values in parts]
    body = (
        "const tinyet_depthwise_s16_shape_dsp shape = {" + ", ".join(texts[:3]) + ",",
        "    " + ", ".join(texts[3:]) + "};",
        f"const tinyet_rounding_s16_dsp rounding = {rounding(node).literal};",
        f"{name}(input, output, scratch, weights, shape, rounding);",
    )
    constant = Constant("weights", packed.astype(np.int32), "weights, bias and factor of each channel")
    return specialised_call(name, summary(node), [constant], body, scratch_bytes=scratch, element="int16_t")


def lower(node: Node, target: Target) -> Call:
    g, r = cheapest(node, three=True), rounding(node)
    packed = stream(r, oriented(r, node, g.transposed))
    return call(node, g, "tinyet_depthwise_s16_chw_3x3_dsp", packed, g.scratch)


def lower_any(node: Node, target: Target) -> Call:
    g, r = cheapest(node, three=False), rounding(node)
    packed = stream_any(r, oriented(r, node, g.transposed))
    return call(node, g, "tinyet_depthwise_s16_chw_dsp", packed, g.scratch + 8 * g.tap_words)


def kernel(name: str, lower: Lower, refuse: Refuse, *, three: bool) -> Kernel:
    chosen = partial(cheapest, three=three)
    access_order, replaces = depthwise.access_order_of(chosen), depthwise.replaces_of(chosen)
    return Kernel(
        name, "s16", lower, HEADERS, (), refuse, "cortex_m", access_order=access_order, replaces=replaces
    )


KERNELS = (
    kernel("tinyet_depthwise_s16_chw_3x3_dsp", lower, refuse, three=True),
    kernel("tinyet_depthwise_s16_chw_dsp", lower_any, refuse_any, three=False),
)
