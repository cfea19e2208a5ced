# SPDX-License-Identifier: Apache-2.0
"""int4 weights, two to a byte, in the layouts that firmware/include/tinyet_int4.h reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Node
from tinyet.ops.shared.integers import magnitudes
from tinyet.opset import Constant


def pack_nibbles(weights: Array, axis: int) -> Array:
    """int8 values in -8 … 7 → int8 bytes, `axis` half as long, rounded up: what stands at 2 i along the axis in
    the low half, what stands at 2 i + 1 in the high half; zero where there is none."""
    along = np.moveaxis(weights.astype(np.int8).view(np.uint8), axis, 0)
    even, odd = along[::2], np.zeros_like(along[::2])
    odd[: len(along) // 2] = along[1::2]
    return np.ascontiguousarray(np.moveaxis((even & 15) | (odd << 4), 0, axis)).view(np.int8)


def narrowed(weights: Constant, axis: int) -> Constant:
    """The weights of an int8 kernel, words of four along the last axis, as those of the int4 kernel of the same
    layout: the words that stand at 2 i and 2 i + 1 along `axis` in one."""
    return replace(
        weights, data=pack_nibbles(weights.data, axis), comment=f"int4, two words in one: {weights.comment}"
    )


def refuse_long_sums(node: Node, _target: Target) -> str | None:
    """Cores with the DSP extension add up 16 times each product; |x| <= 128, for the zero point is in the bias."""
    largest = int(magnitudes(node.input(1).array).max(initial=0))
    return (
        "only weights whose magnitudes sum to less than 2**20 a channel"
        if 16 * 128 * largest >= 2**31
        else None
    )
