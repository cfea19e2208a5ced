# SPDX-License-Identifier: Apache-2.0
"""Operators that torch leaves whole, in terms of others: copies of views, statistics that come in pairs, products along
an axis, orders. torch traces what these functions call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

Spelling = Callable[..., Any]


def _copied(view: Callable[..., Any]) -> Spelling:
    """A view's elements in bytes of their own; of several views each."""

    def spelled(x: Tensor, *args: Any, **options: Any) -> Any:
        found = view(x, *args, **options)
        if isinstance(found, Tensor):
            return found.clone(memory_format=torch.contiguous_format)
        return [part.clone(memory_format=torch.contiguous_format) for part in found]

    return spelled


def var_mean(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    axes = list(dim) if dim else list(range(x.ndim))
    spread = aten.var.correction(x, axes, correction=correction, keepdim=keepdim)
    return spread, aten.mean.dim(x, axes, keepdim)


def product_along(x: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Halves of it are multiplied with each other until one is left."""
    axis = dim % max(x.ndim, 1)
    x = x if dtype is None else x.to(dtype)
    if not x.ndim:
        return x.clone()
    while (size := x.shape[axis]) > 1:
        half = size // 2
        y = x.narrow(axis, 0, half) * x.narrow(axis, half, half)
        x = y if size % 2 == 0 else torch.cat([y, x.narrow(axis, size - 1, 1)], axis)
    return x.clone() if keepdim else x.squeeze(axis).clone()


def product(x: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return product_along(x.reshape(-1), 0, dtype=dtype)


def truncated(x: Tensor) -> Tensor:
    return torch.sign(x) * torch.floor(torch.abs(x))


def ordered(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """All of the greatest or least. Of equal ones the first comes first."""
    if not x.ndim:
        return x.clone(), torch.zeros((), dtype=torch.int64)
    return aten.topk.default(x, x.shape[dim], dim, descending)  # type: ignore[no-any-return]


def ordered_stably(
    x: Tensor,
    *,
    stable: bool | None,  # noqa: ARG001 - the schema's name
    dim: int = -1,
    descending: bool = False,
) -> tuple[Tensor, Tensor]:
    return ordered(x, dim, descending)


def kth(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th least."""
    values, places = aten.topk.default(x, k, dim, False)
    found = [part.narrow(dim, k - 1, 1) for part in (values, places)]
    first, second = found if keepdim else [part.squeeze(dim) for part in found]
    return first.clone(), second.clone()


def median_along(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower one of the two in the middle."""
    return kth(x, (x.shape[dim] + 1) // 2, dim, keepdim)


def median(x: Tensor) -> Tensor:
    return median_along(x.reshape(-1), 0)[0]


SPELLED: dict[Any, Spelling] = {
    aten.view_copy.default: _copied(aten.reshape.default),
    aten._reshape_alias_copy.default: _copied(lambda x, size, _stride: aten.reshape.default(x, size)),
    aten.permute_copy.default: _copied(aten.permute.default),
    aten.slice_copy.Tensor: _copied(aten.slice.Tensor),
    aten.select_copy.int: _copied(aten.select.int),
    aten.narrow_copy.default: _copied(aten.narrow.default),
    aten.detach_copy.default: _copied(aten.alias.default),
    aten.split_copy.Tensor: _copied(aten.split.Tensor),
    aten.unbind_copy.int: _copied(aten.unbind.int),
    aten.var_mean.correction: var_mean,
    aten.prod.default: product,
    aten.prod.dim_int: product_along,
    aten.trunc.default: truncated,
    aten.sort.default: ordered,
    aten.sort.stable: ordered_stably,
    aten.kthvalue.default: kth,
    aten.median.dim: median_along,
    aten.median.default: median,
}
"""Operator → a function of its arguments that calls others."""
