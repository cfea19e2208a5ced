# SPDX-License-Identifier: Apache-2.0
"""Constants of the convolutions by Winograd's F(4x4, 3x3) for cores whose products have 32 bits
(tinyet_conv2d_winograd.h): of that whose weights are transformed ahead of time, here called wide, and of that with int8
weights, which transforms those of some output channels at a time.

Their sums are 576 times a layer's, modulo 2**32; the inverse of 9 leaves 64 times, which fits, and is what
one_product.py rounds. Transformed inputs are halves of words, and so are transformed weights: `refuse` checks both.
"""

from __future__ import annotations

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize
from tinyet.numerics import Int64
from tinyet.ops.shared import one_product
from tinyet.ops.shared.one_product import Rounding
from tinyet.ops.shared.winograd import F4, TOGETHER, parts_of, refuse_shape, transformed_weights
from tinyet.opset import Constant, FieldValue

CHANNELS = 4
LIFT = 2**15
"""Of the lower half of a word of transformed inputs."""
KEPT = 3
"""Times a layer's input and output: what transformed inputs of all tiles and the weights of a block may take."""
_SUMS = F4.positions * TOGETHER * CHANNELS


@memoize
def rounding(node: Node) -> Rounding | str:
    """Of 2**F4.power times a sum."""
    return one_product.rounding(node, before=F4.power)


def weights(node: Node) -> Int64:
    """(out_c, positions, in_c)"""
    return transformed_weights(F4, node.input(1).array.astype(np.int64))


def refuse(node: Node) -> str | None:
    """Why a layer is not computed so."""
    reason = refuse_shape(F4, node)
    if reason is not None:
        return reason
    found = rounding(node)
    if isinstance(found, str):
        return found
    most = 128 * int(np.abs(F4.inputs).sum(axis=1).max()) ** 2
    if max(most, int(np.abs(weights(node)).max())) >= 2**15:
        return "what is transformed leaves int16"
    return None


def stream(node: Node) -> Constant:
    """Bias and rounding of each channel, and what takes the lift of lower halves away."""
    r = rounding(node)
    assert isinstance(r, Rounding)
    scale = F4.odd << F4.power
    taps = node.input(1).array.astype(np.int64).sum(axis=3)
    # The last two rows and columns of a tile are lifted, which the last two of its outputs see.
    seen = [
        taps[:, 2, 2],
        taps[:, 2, 1:].sum(axis=1),
        taps[:, 1:, 2].sum(axis=1),
        taps[:, 1:, 1:].sum(axis=(1, 2)),
    ]
    lifts = [-LIFT * scale * each for each in seen]
    data = np.stack([r.bias * scale, r.multiplier, r.offset, r.shift, *lifts], axis=1) & 0xFFFFFFFF
    return Constant("stream", data.astype(np.uint32), "as tinyet_conv2d_winograd.h")


def in_blocks(found: Int64) -> Int64:
    """(out_c, ...) → (blocks, CHANNELS, ...); channels that are missing have weights of zero."""
    padded = np.pad(found, ((0, -len(found) % CHANNELS), *((0, 0) for _ in found.shape[1:])))
    return padded.reshape(-1, CHANNELS, *found.shape[1:])


def wide_constants(node: Node) -> tuple[Constant, Constant]:
    """The stream and the weights, transformed."""
    found = in_blocks(weights(node)).transpose(0, 2, 3, 1).astype(np.int16)
    return stream(node), Constant("weights", np.ascontiguousarray(found), "transformed, of four channels")


def constants(node: Node) -> tuple[Constant, Constant]:
    """The stream and the weights, as they are."""
    taps = node.input(1).array.astype(np.int64)
    found = in_blocks(taps.reshape(len(taps), -1, taps.shape[3])).transpose(0, 3, 2, 1).astype(np.int8)
    return stream(node), Constant("weights", np.ascontiguousarray(found), "of four channels")


def input_bytes(node: Node) -> int:
    """Transformed inputs of four tiles, int16."""
    return 2 * TOGETHER * F4.positions * int(node.input(1).shape[3])


def wide_scratch_bytes(node: Node) -> int:
    """These, and the sums of four channels."""
    return input_bytes(node) + 4 * _SUMS


def blocks(node: Node) -> int:
    """Of four output channels."""
    return -(-node.output.shape[3] // CHANNELS)


def block_bytes(node: Node) -> int:
    """Transformed weights of a block, int16."""
    return 2 * CHANNELS * F4.positions * int(node.input(1).shape[3])


def kept(node: Node) -> int:
    """How many times four tiles there are, if transformed inputs of all stay in scratch, so that weights of one block
    at a time are enough; else zero. They do where they are four; and where not all weights have room, but these have,
    in KEPT times the layer's input and output."""
    batch, out_h, out_w, _ = node.output.shape
    steps = -(-(-(-out_h // F4.tile) * -(-out_w // F4.tile)) // TOGETHER)
    if batch > 1 or (steps > 1 and parts_of(node, blocks(node), block_bytes(node), kept=False) == 1):
        return 0
    room = KEPT * (node.input(0).type.bytes + node.output.type.bytes)
    return steps if steps == 1 or steps * input_bytes(node) + block_bytes(node) <= room else 0


def parts(node: Node) -> int:
    """How many times weights of some output channels are transformed."""
    return parts_of(node, blocks(node), block_bytes(node), kept=kept(node) > 0)


def at_once(node: Node) -> int:
    """Blocks of each of these parts."""
    return -(-blocks(node) // parts(node))


def scratch_bytes(node: Node) -> int:
    """Inputs, sums, and transformed weights."""
    more = max(0, kept(node) - 1) * input_bytes(node)
    return wide_scratch_bytes(node) + more + at_once(node) * block_bytes(node)


def wide_fields(node: Node) -> dict[str, FieldValue]:
    """Of the params, behind the shape."""
    return one_product.fields(node, rounding(node))


def fields(node: Node) -> dict[str, FieldValue]:
    """The same of the kernel with int8 weights."""
    return {**wide_fields(node), "at_once": at_once(node), "kept": kept(node)}
