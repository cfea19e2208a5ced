# SPDX-License-Identifier: Apache-2.0
"""Recursive filters as an operator of torch: one call for all samples.

`tinyet::biquads` takes x (N, T), the state before the first sample (N, S, 2) and the sections (S, 5): b0, b1, b2, a1,
a2. It gives y (N, T) and the state behind the last sample, in transposed direct form II. It can be differentiated with
respect to x.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


@torch.library.custom_op("tinyet::biquads", mutates_args=())
def biquads(x: Tensor, state: Tensor, sections: Tensor) -> tuple[Tensor, Tensor]:
    values, left, rows = x.detach().numpy(), state.detach().clone().numpy(), sections.detach().numpy()
    y = values.copy()
    for s, (b0, b1, b2, a1, a2) in enumerate(rows):
        first, second = left[:, s, 0], left[:, s, 1]
        for t in range(y.shape[1]):
            value = y[:, t].copy()
            y[:, t] = made = b0 * value + first
            first, second = (b1 * value - a1 * made) + second, b2 * value - a2 * made
        left[:, s, 0], left[:, s, 1] = first, second
    return torch.from_numpy(y), torch.from_numpy(left)


def _keep_sections(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG001 - torch's signature
    ctx.save_for_backward(*inputs[1:])


def _backward(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, None, None]:
    """A filter is a triangular matrix with equal diagonals: transposed, it filters backwards."""
    state, sections = ctx.saved_tensors
    if grad is None:
        return None, None, None
    found, _ = biquads(grad.flip(1), torch.zeros_like(state), sections)
    return found.flip(1), None, None


biquads.register_fake(lambda x, state, _: (torch.empty_like(x), torch.empty_like(state)))
biquads.register_autograd(_backward, setup_context=_keep_sections)

BIQUADS = torch.ops.tinyet.biquads.default
