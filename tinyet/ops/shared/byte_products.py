# SPDX-License-Identifier: Apache-2.0
"""Constants of the kernels whose products are of two bytes, for cores that multiply no more at once: AVR.

Inputs are taken as u = x + 128, weights as v = w + 128, so that a product has 16 bits and no sign to extend; with
sum(u * w) = sum(u * v) - 128 * sum(u), what is too much depends on inputs alone. Depthwise layers have weights with
their sign, for there each output would need a sum of inputs of its own. Outputs are as two_products.py has them, with
eight bits behind the upper factor, for a shift by a byte is no instruction, and eight more where sums ask for them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.ops.shared import packed_words
from tinyet.ops.shared.packed_words import described, rows_of
from tinyet.ops.shared.two_products import Rescaling
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import Constant, Struct

PIXELS = 4
RIGHT = 8
"""TINYET_BYTES_RIGHT."""
RUN = 256
"""Products that sums of 24 bits hold, behind which they are added to those of 32."""
_UNIT = 2**24
"""The upper factor of a unit that is an output step: eight bits of its word are those of the lower one."""
_MOST = 2**15 - 1  # of an int16, which counts taps, outputs and what lies in the arena


@memoize_by_weights
def rescaling(node: Node) -> Rescaling | str:
    """Of the sums of inputs u = x + 128 by weights; why there is none otherwise."""
    found = packed_words.rescaling(node, RIGHT)
    if isinstance(found, str):
        found = packed_words.rescaling(node, RIGHT, finer=RIGHT)
    if isinstance(found, str):
        return found
    if found.right != RIGHT:
        return "sums reach too far for 24 bits"
    return "a unit of the sum is an output step or more" if (found.upper >= _UNIT).any() else found


def refuse(node: Node, scratch: int) -> str | None:
    """scratch: bytes of it."""
    if max(scratch, node.input(0).type.count, node.output.type.count) > _MOST:
        return "more values than 16 bits count"
    found = rescaling(node)
    return found if isinstance(found, str) else None


def patch_bytes(node: Node) -> int:
    """Scratch of convolutions: what four pixels see."""
    taps: int = rows_of(node).shape[1]
    return PIXELS * taps


@memoize_by_weights
def stream(node: Node) -> Constant:
    """Of each channel the sum before the first product and what makes an output: above the 24 bits of the upper factor
    are the eight of the lower one, in whose place are the lowest."""
    sums = rescaling(node)
    assert isinstance(sums, Rescaling)
    weights = rows_of(node).astype(np.int64)
    start = folded_bias(node) - 128 * weights.sum(axis=1) - sums.start
    factors = replace(sums, upper=sums.upper | sums.lower << 24, lower=sums.lowest)
    words = np.concatenate([start[:, None], factors.words(0, len(weights))], axis=1) & 0xFFFFFFFF
    return Constant("stream", words.astype(np.uint32), "as tinyet_byte_products.h")


def lifted(node: Node) -> Constant:
    """The weights, plus 128."""
    return Constant("weights", (rows_of(node).astype(np.int64) + 128).astype(np.uint8), "plus 128")


def signed(node: Node) -> Constant:
    return Constant("weights", rows_of(node))


def words(node: Node) -> Struct:
    """The struct tinyet_packed_words."""
    sums = rescaling(node)
    assert isinstance(sums, Rescaling)
    return described(node, sums, 128)
