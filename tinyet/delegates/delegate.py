# SPDX-License-Identifier: Apache-2.0
"""What a delegate is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tinyet.boards import Target
from tinyet.ir import Attrs
from tinyet.opset import Kernel


def any_target(_target: Target) -> str | None:
    """A delegate that runs everywhere."""
    return None


@dataclass(frozen=True)
class Delegate:
    """A named set of kernels.

    kernels: operator → its kernels here, best first.
    supports: why the delegate cannot be used on a target at all, or None.
    """

    name: str
    kernels: Mapping[type[Attrs], tuple[Kernel, ...]]
    supports: Callable[[Target], str | None] = any_target
