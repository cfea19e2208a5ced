# SPDX-License-Identifier: Apache-2.0
"""Recursive filters as an operator of torch: one call for all samples.

`tinyet::biquads` takes x (N, T), the state before the first sample (N, S, 2) and the sections (S, 5): b0, b1, b2, a1,
a2. It gives y (N, T) and the state behind the last sample, in transposed direct form II. It can be differentiated with
respect to x.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Reals = npt.NDArray[np.float64]


_FEWEST_ROWS = 32
"""From here on numpy takes a step of all rows at once sooner than Python takes it row by row."""


@torch.library.custom_op("tinyet::biquads", mutates_args=())
def biquads(x: Tensor, state: Tensor, sections: Tensor) -> tuple[Tensor, Tensor]:
    values, left, rows = x.detach().numpy(), state.detach().clone().numpy(), sections.detach().numpy()
    y = values.copy()
    if y.dtype == np.float64 and len(y) < _FEWEST_ROWS:
        _row_by_row(y, left, rows)
        return torch.from_numpy(y), torch.from_numpy(left)
    for s, (b0, b1, b2, a1, a2) in enumerate(rows):
        first, second = left[:, s, 0], left[:, s, 1]
        for t in range(y.shape[1]):
            value = y[:, t].copy()
            y[:, t] = made = b0 * value + first
            first, second = (b1 * value - a1 * made) + second, b2 * value - a2 * made
        left[:, s, 0], left[:, s, 1] = first, second
    return torch.from_numpy(y), torch.from_numpy(left)


def _row_by_row(y: Reals, left: Reals, sections: npt.NDArray[Any]) -> None:
    """In place. Python's floats are float64: the same bits, and of few rows much sooner than by arrays."""
    for row, states in zip(y, left, strict=True):
        values = row.tolist()
        for state, (b0, b1, b2, a1, a2) in zip(states, sections.tolist(), strict=True):
            first, second = state.tolist()
            for t, value in enumerate(values):
                values[t] = made = b0 * value + first
                first, second = (b1 * value - a1 * made) + second, b2 * value - a2 * made
            state[:] = first, second
        row[:] = values


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
