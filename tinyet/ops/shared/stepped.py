# SPDX-License-Identifier: Apache-2.0
"""Operators whose operands have the output's shape or are a single element, which serves everywhere: walked with a step
of 1 or 0. Anything else that broadcasts is expanded before."""

from __future__ import annotations

import numpy as np

from tinyet.errors import UnsupportedShape
from tinyet.ir import Node, Shape, Tensor


def infer(node: Node) -> tuple[Shape, ...]:
    """The common shape; raises UnsupportedShape where an operand is neither of it nor a single element."""
    shapes = [node.input(index).shape for index in range(len(node.inputs))]
    listed = ", ".join(map(str, shapes))
    try:
        common = tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        raise UnsupportedShape(f"{node.op}: {listed} do not broadcast", node.where) from None
    if any(node.input(index).type.count != 1 and shape != common for index, shape in enumerate(shapes)):
        raise UnsupportedShape(
            f"{node.op}: {listed} are neither of one shape nor single elements", node.where
        )
    return (common,)


def step(operand: Tensor) -> int:
    """Elements from one to the next."""
    return 0 if operand.type.count == 1 else 1
