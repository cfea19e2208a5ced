# SPDX-License-Identifier: Apache-2.0
"""Inputs for a model that nobody has calibrated: enough to quantize it, and to see what that makes of each layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

BATCHES = 4


def noise_like(example_inputs: Sequence[Any]) -> list[tuple[Any, ...]]:
    """BATCHES batches in the shapes and types of the example inputs (torch tensors). Real numbers are standard normal,
    the same each time; whole numbers and truth values, which may be indices, are the example's own."""
    generator = torch.Generator().manual_seed(0)

    def like(given: Any) -> Any:
        if not given.is_floating_point():
            return given
        return torch.randn(given.shape, generator=generator, dtype=torch.float32).to(given.dtype)

    return [tuple(like(given) for given in example_inputs) for _ in range(BATCHES)]
