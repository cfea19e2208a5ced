# SPDX-License-Identifier: Apache-2.0
"""Cores whose model is a table: which loads overlap."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tinyet.timing.cores import CORES
from tinyet.timing.instruction import Instruction
from tinyet.timing.thumb import decode

LDR = decode(0xF8D1, 0x4004)  # LDR r4, [r1, #4]
LDR_BEHIND = decode(0xF8D2, 0x4004)  # LDR r4, [r2, #4]
LDR_POST = decode(0xF852, 0x5B04)  # LDR r5, [r2], #4
LDR_PRE = decode(0xF852, 0x5F04)  # LDR r5, [r2, #4]!
STR_INDEXED = decode(0xF841, 0x5003)  # STR r5, [r1, r3]
STR_INDEXED_BEHIND = decode(0xF842, 0x5003)  # STR r5, [r2, r3]


@pytest.mark.parametrize(
    ("block", "m3", "m4"),
    [
        ([LDR, LDR, LDR], 4, 4),
        ([LDR, LDR_POST], 4, 3),
        ([LDR, LDR_PRE], 4, 3),
        ([LDR_POST, LDR], 3, 3),
        ([LDR_POST, LDR_BEHIND], 4, 3),
        ([LDR, LDR_POST, LDR], 5, 4),
        ([LDR, STR_INDEXED], 3, 3),
        ([LDR_POST, STR_INDEXED], 3, 3),
        ([LDR_POST, STR_INDEXED_BEHIND], 4, 3),
    ],
)
def test_loads_that_overlap(block: Sequence[Instruction], m3: int, m4: int) -> None:
    assert (CORES["cortex-m3"].straight(block), CORES["cortex-m4"].straight(block)) == (m3, m4)
