# SPDX-License-Identifier: Apache-2.0
"""Constants of the kernel for fully connected layers that takes two outputs' weights in one multiplication, where
weights are a byte each.

With weights w as bytes w + 128, each second byte of a word is already 2**16 b + a of two outputs, and the others are
that after a shift. Two taps' products are added,

    x0 (2**16 b0 + a0) + x1 (2**16 b1 + a1) - 128 (2**16 + 1) (x0 + x1) + 2**15,

where the third term, the same for all outputs, takes out what the 128 have added. The low half is then that of the
first output's sum plus 2**15, the high one the second's: exact as long as both sums of two products are within int16,
which they are unless both weights are -128. After that the halves are added to sums of 32 bits.
"""

from __future__ import annotations

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.ops.shared import packed_words
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.two_products import Rescaling
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import Constant

OUTPUTS = 4
"""Of a block: two words of weights a pair of taps."""


def refuse(node: Node) -> str | None:
    weights = rows_of(node)
    twos = weights[:, : weights.shape[1] // 2 * 2].reshape(len(weights), -1, 2)
    if bool((twos == -128).all(axis=2).any()):
        return "two neighbouring weights of -128"
    return packed_words.refuse(node)


@memoize_by_weights
def constants(node: Node) -> tuple[Constant, Constant]:
    """The stream and the weights of tinyet_two_taps.h."""
    sums = packed_words.rescaling(node)
    assert isinstance(sums, Rescaling)
    weights, bias = rows_of(node).astype(np.int64), folded_bias(node) - sums.start
    more, taps = -len(weights) % OUTPUTS, weights.shape[1] % 2
    pairs = (weights.shape[1] + taps) // 2
    padded = np.pad(weights, ((0, more), (0, taps))) + 128
    start = np.pad(bias, (0, more)).reshape(-1, 2)
    both = start[:, 0] + (start[:, 1] << 16) - (pairs << 15)
    starts = np.stack([both, start[:, 1]], axis=1).reshape(-1, OUTPUTS) & 0xFFFFFFFF
    rounding = sums.padded(more).words(0, len(padded)).reshape(len(starts), -1)
    stream = np.concatenate([starts, rounding], axis=1).astype(np.uint32)
    # (blocks, word, output of a word, pairs, tap): bytes of a word are its taps of its outputs.
    by_words = padded.reshape(-1, 2, 2, pairs, 2).transpose(0, 3, 1, 2, 4).reshape(len(starts), pairs, 2, 4)
    words = (by_words << np.array([0, 8, 16, 24])).sum(axis=3).astype(np.uint32)
    return Constant("stream", stream, "as tinyet_two_taps.h"), Constant(
        "weights", words, "two taps of two outputs a word, plus 128"
    )


def scratch_bytes(node: Node) -> int:
    """Three words for each two taps."""
    taps: int = rows_of(node).shape[1]
    return (taps + 1) // 2 * 12
