# SPDX-License-Identifier: Apache-2.0
"""Constants of the convolution by Winograd's F(4x4, 3x3) for cores whose products have 32 bits
(tinyet_conv2d_winograd.h).

Its sums are 576 times a layer's, modulo 2**32; the inverse of 9 leaves 64 times, which fits, and is what one_product.py
rounds. Transformed inputs are halves of words, and so are transformed weights: `refuse` checks both.
"""

from __future__ import annotations

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize
from tinyet.numerics import Int64
from tinyet.ops.shared import one_product
from tinyet.ops.shared.one_product import Rounding
from tinyet.ops.shared.winograd import F4, refuse_shape, transformed_weights
from tinyet.opset import Constant, FieldValue

CHANNELS = 4
TILES = 4
_SUMS = F4.positions * TILES * CHANNELS


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


def constants(node: Node) -> tuple[Constant, Constant]:
    """The stream and the weights."""
    r = rounding(node)
    assert isinstance(r, Rounding)
    scale = F4.odd << F4.power
    stream = np.stack([r.bias * scale, r.multiplier, r.offset, r.shift], axis=1) & 0xFFFFFFFF
    found = weights(node)
    padded = np.pad(found, ((0, -len(found) % CHANNELS), (0, 0), (0, 0)))
    blocks = padded.reshape(-1, CHANNELS, *found.shape[1:]).transpose(0, 2, 3, 1)
    return Constant("stream", stream.astype(np.uint32), "as tinyet_conv2d_winograd.h"), Constant(
        "weights", np.ascontiguousarray(blocks).astype(np.int16), "transformed, of four channels"
    )


def input_bytes(node: Node) -> int:
    """Transformed inputs of four tiles, int16."""
    return 2 * TILES * F4.positions * int(node.input(1).shape[3])


def scratch_bytes(node: Node) -> int:
    """These, and the sums of four channels."""
    return input_bytes(node) + 4 * _SUMS


def fields(node: Node) -> dict[str, FieldValue]:
    """Of the params, behind the shape."""
    return one_product.fields(node, rounding(node))
