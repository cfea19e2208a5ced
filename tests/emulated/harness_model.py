# SPDX-License-Identifier: Apache-2.0
"""What harness_model.c takes and gives: for all tests that run it, wherever they do."""

from __future__ import annotations

import random
import struct
from pathlib import Path

MODEL = Path(__file__).with_name("harness_model.c")
BIG, SMALL, STACK_BUFFER = 600, 16, 512
UNDEFINED, NULL_CALL, UNALIGNED, NO_MEMORY, ENDLESS_RECURSION, NEGATIVE_STATUS = range(1, 7)
STATUS_IN_EVENT, FAULT_IN_EVENT, PROFILED, NOT_READY = range(7, 11)
EVENT = 3  # the first number behind the layers


def make_inputs(spins: int, fault: int = 0, seed: int = 1, big: int = BIG) -> list[bytes]:
    rng = random.Random(seed)
    return [struct.pack("<IB", spins, fault) + rng.randbytes(big - 5), rng.randbytes(SMALL)]


def expected_outputs(inputs: list[bytes]) -> tuple[bytes, ...]:
    return bytes(byte ^ 0xFF for byte in inputs[0]), struct.pack("<I", sum(inputs[1]))


def line_of(fault: str) -> int:
    lines = MODEL.read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"/* line: {fault} */"))
