# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the conversions between float32 and integers: their C functions, one for each integer type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyet.boards.cpus import Target
from tinyet.ir import Node, TensorType
from tinyet.ops.shared.counting import values
from tinyet.opset import Call, CostModel, Kernel, Struct, library_call, library_kernels, signature

HEADERS = ("tinyet_quantize.h",)
COST_MODEL = CostModel(values)


def kernels_of(
    name: str, signatures: Sequence[str], integer: Callable[[Node], TensorType]
) -> tuple[Kernel, ...]:
    """`<name>_<from>_<to>` for each signature; `integer` gives the quantized type of a node."""

    def lower(node: Node, _target: Target) -> Call:
        type_ = integer(node)
        fields = {"scale": type_.scale, "zero_point": type_.zero_point, "count": type_.count}
        return library_call(f"{name}_{signature(node)}", node, [0], Struct("tinyet_quantize_params", fields))

    return library_kernels(name, signatures, lower, HEADERS, cost_model=COST_MODEL)
