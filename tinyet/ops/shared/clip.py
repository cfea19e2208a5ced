# SPDX-License-Identifier: Apache-2.0
"""Integers between two bounds, in one quantization: one C function a type."""

from __future__ import annotations

from tinyet.ir import Node
from tinyet.ops.shared.counting import values
from tinyet.opset import Call, CostModel, Kernel, Lower, Refuse, Struct, library_call, library_kernels


def clip_call(node: Node, index: int, bounds: tuple[int, int], symbol: str = "") -> Call:
    """Input `index` within the bounds, which are raw integers. symbol: of the function, where it is not the portable
    one."""
    params = Struct(
        "tinyet_clip_params", {"low": bounds[0], "high": bounds[1], "count": node.output.type.count}
    )
    return library_call(symbol or f"tinyet_clip_{node.output.dtype.suffix}", node, [index], params)


def clip_kernels(lower: Lower, refuse: Refuse) -> tuple[Kernel, ...]:
    """One for each integer type; `lower` makes a clip_call."""
    return library_kernels("tinyet_clip", ("s8", "s16"), lower, ("tinyet_clip.h",), refuse, CostModel(values))
