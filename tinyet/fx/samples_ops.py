# SPDX-License-Identifier: Apache-2.0
"""A converter's integers as samples, as an operator of torch: `tinyet::samples` is `tinyet.ops.samples`."""

from __future__ import annotations

import torch
from torch import Tensor


@torch.library.custom_op("tinyet::samples", mutates_args=())
def samples(x: Tensor, shift: int, offset: int, unsigned: bool) -> Tensor:
    values = x.long() & (0xFFFF if unsigned else -1)
    return ((values >> shift) - offset).clamp(-32768, 32767).to(torch.int16)


samples.register_fake(lambda x, *_: x.new_empty(x.shape, dtype=torch.int16))

SAMPLES = torch.ops.tinyet.samples.default
