# SPDX-License-Identifier: Apache-2.0
"""How the values of a tensor lie in memory, where they do not lie row-major without gaps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Arrangement:
    """How the values of a node's first input and of its output lie in the arena; by default row-major without gaps.

    input, output: bytes from one pixel, all values of the last axis, to the next, where other tensors' values lie
    between them; 0 where nothing does.
    reads_pairs, writes_pairs: as the multiplications of cores with DSP take them: int16, two pixels after another, for
    each of their channels c, c + 2 and c + 1, c + 3 (c a multiple of 4) a word of the first pixel and one of the
    second. Twice the bytes; of an even number of pixels, and a multiple of 4 channels.
    """

    input: int = 0
    output: int = 0
    reads_pairs: bool = False
    writes_pairs: bool = False


DENSE = Arrangement()
"""Row-major without gaps, both."""
