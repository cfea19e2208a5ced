# SPDX-License-Identifier: Apache-2.0
"""Two pixels in one product, a channel at a time: what is proved of its runs. The kernel itself is in
test_conv2d.py, on boards in tests/emulated/test_operators.py."""

from __future__ import annotations

import numpy as np
import pytest

from tests.delegates.test_winograd import layer
from tinyet.ops.shared import packed_words, paired_channels
from tinyet.ops.shared.two_products import Rescaling


@pytest.mark.parametrize("largest", [2, 127])
def test_runs_add_up_to_the_sums_of_both_pixels(largest: int) -> None:
    """In 32 bits, with the inputs that reach farthest, too; no run leaves 16 bits, nor could be longer."""
    rng = np.random.default_rng(largest)
    weights, bias = rng.integers(-largest, largest + 1, (3, 3, 3, 5)), rng.integers(-9000, 9000, 3)
    weights[0, 0, 0] = -128  # two of them are too many for a run
    node = layer(weights, bias, scale=0.01)
    sums = packed_words.rescaling(node)
    assert isinstance(sums, Rescaling)
    stream, packed = paired_channels.constants(node)
    at, rows = 0, weights.reshape(3, -1)
    x = rng.integers(-128, 128, (50, 2, 45))
    x[0], x[1] = 127, -128
    x[2] = np.where(rows[0] > 0, 127, -128)
    x[3] = -x[2] - 1
    pairs = (x[:, 1] << 16) + x[:, 0]
    for channel, w in enumerate(rows):
        both, second = (np.full(50, int(stream.data[channel, i])) for i in range(2))
        tap = 0
        while count := int(packed.data[at]) // 4:
            assert count <= paired_channels.LONGEST
            run = packed.data[at + 1 : at + 1 + count].astype(np.int64)
            np.testing.assert_array_equal(run, w[tap : tap + count])
            total = pairs[:, tap : tap + count] @ run
            assert np.abs(x[:, :, tap : tap + count] @ run).max() < 2**15
            assert np.abs(total).max() < 2**31 - 2**15
            both, second = both + total, second + (total - 2**15 >> 16)
            at, tap = at + 1 + count, tap + count
            if tap < 45 and count < paired_channels.LONGEST:
                assert np.abs(w[tap - count : tap + 1]).sum() > 255
        assert tap == 45
        at += 1
        want = bias[channel] - 3 * w.sum() - sums.start[channel] + x @ w
        for pixel, found in enumerate((both - (second << 16), second)):
            np.testing.assert_array_equal(found & 0xFFFFFFFF, want[:, pixel] & 0xFFFFFFFF)
    assert at == len(packed.data)
