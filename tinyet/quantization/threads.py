# SPDX-License-Identifier: Apache-2.0
"""torch on one thread: for a microcontroller's network, one sample at a time, more threads only wait for each
other, and on a busy machine they take many times as long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
