# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of real values as operators of torch: complex numbers are pairs of floats, real part first.

`tinyet::rfft` takes x (..., n) and gives (..., 2 * (n // 2 + 1)): the numbers of torch.fft.rfft, not scaled.
`tinyet::irfft` takes these back to (..., n) and divides by n; the imaginary part of the first number, and of the last
where n is even, counts for nothing. Both can be differentiated.
"""

from __future__ import annotations

from typing import Any

import torch


def bins_of(n: int) -> int:
    """Complex numbers of the transform of n real values."""
    return n // 2 + 1


def _pairs(z: torch.Tensor) -> torch.Tensor:
    pairs: torch.Tensor = torch.view_as_real(z).flatten(-2).clone()
    return pairs


def _complex(x: torch.Tensor) -> torch.Tensor:
    z: torch.Tensor = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    return z


@torch.library.custom_op("tinyet::rfft", mutates_args=())
def rfft(x: torch.Tensor, n: int) -> torch.Tensor:
    return _pairs(torch.fft.rfft(x, n))


@torch.library.custom_op("tinyet::irfft", mutates_args=())
def irfft(x: torch.Tensor, n: int) -> torch.Tensor:
    values: torch.Tensor = torch.fft.irfft(_complex(x), n)
    return values


def _keep_length(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:  # noqa: ARG001 - torch's signature
    ctx.n = inputs[1]


def _rfft_backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
    """Sum over k of Re(g[k] exp(2 pi i j k / n))."""
    return torch.fft.ifft(_complex(grad), ctx.n, norm="forward").real.clone(), None


def _irfft_backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
    """Numbers in the middle stand for their conjugates, too."""
    n = ctx.n
    weights = torch.full((bins_of(n),), 2.0 / n, dtype=grad.dtype)
    weights[0] = 1.0 / n
    if n % 2 == 0:
        weights[-1] = 1.0 / n
    return _pairs(torch.fft.rfft(grad, n) * weights), None


rfft.register_fake(lambda x, n: x.new_empty((*x.shape[:-1], 2 * bins_of(n))))
irfft.register_fake(lambda x, n: x.new_empty((*x.shape[:-1], n)))
rfft.register_autograd(_rfft_backward, setup_context=_keep_length)
irfft.register_autograd(_irfft_backward, setup_context=_keep_length)

RFFT, IRFFT = torch.ops.tinyet.rfft.default, torch.ops.tinyet.irfft.default

SPECTRA: frozenset[object] = frozenset({RFFT, IRFFT})
"""Both."""
