# SPDX-License-Identifier: Apache-2.0
"""The fused activation of an operator: its attribute `clamp`, and the bounds that a kernel takes."""

from __future__ import annotations

from typing import Protocol, cast, runtime_checkable

from tinyet.ir import DType, Node
from tinyet.numerics import clamp_range


@runtime_checkable
class Clamped(Protocol):
    """Attributes with the real bounds of the fused activation: (0, inf) is ReLU."""

    @property
    def clamp(self) -> tuple[float, float]: ...


def clamp_of(node: Node) -> tuple[float, float]:
    """The real bounds."""
    # Asked of every layer by most kernels; of a protocol, isinstance takes fifty times as long.
    return cast("Clamped", node.attrs).clamp


def clamp_complaint(node: Node) -> str | None:
    """The error in the bounds, or None."""
    low, high = clamp_of(node)
    return None if low <= high else f"an empty range from {low} to {high}"


def clamp_fields(node: Node) -> dict[str, int | float]:
    """The fields of a parameter struct: integer bounds of an integer output, the real ones of a float output."""
    out, clamp = node.output.type, clamp_of(node)
    low, high = clamp if out.dtype is DType.FLOAT32 else clamp_range(clamp, out)
    return {"clamp_low": low, "clamp_high": high}
