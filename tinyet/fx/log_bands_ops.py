# SPDX-License-Identifier: Apache-2.0
"""Logarithms of bands of a spectrum as one operator of torch, which a program computes in fixed point or in float32.

`tinyet::log_bands` takes frames of int16 samples (…, S), the window (S,) and filters (B, n // 2 + 1), and gives
float32 (…, B): log(filters @ |rfft(x * window, n)|**2 + floor). In torch these are real numbers; `arithmetic` says what
a program shall compute them in. `fixed_point` spells out those that stay in float32.
"""

from __future__ import annotations

import torch
from torch import Tensor

FLOAT, FIXED, AUTO = range(3)
"""Arithmetics: float32, fixed point, what measuring says."""


@torch.library.custom_op("tinyet::log_bands", mutates_args=())
def log_bands(x: Tensor, window: Tensor, filters: Tensor, n: int, floor: float, arithmetic: int) -> Tensor:  # noqa: ARG001
    power = torch.fft.rfft(x.to(window.dtype) * window, n).abs() ** 2
    return torch.log(power @ filters.T + floor)


log_bands.register_fake(lambda x, window, filters, *_: window.new_empty((*x.shape[:-1], filters.shape[0])))

LOG_BANDS = torch.ops.tinyet.log_bands.default
