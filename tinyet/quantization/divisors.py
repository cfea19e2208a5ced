# SPDX-License-Identifier: Apache-2.0
"""Division by a constant as multiplication by its reciprocal, for int16, where kernels multiply and do not divide.

The reciprocal is rounded to float32 once: half of a unit in the last place, a five-hundredth of a step of 16 bits.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx

from tinyet.fx.edit import add_constant, get_constant

aten = torch.ops.aten


def multiply_for_divisors(module: fx.GraphModule, wanted: Callable[[fx.Node], bool]) -> None:
    """Make `x / c` a product where c is a number or a constant without 0, and the node is wanted. In place."""
    for node in module.graph.find_nodes(op="call_function", target=aten.div.Tensor):
        if not isinstance(node.args[0], fx.Node) or not wanted(node):
            continue
        divisor = node.args[1]
        if isinstance(divisor, int | float):
            factor: object = 1.0 / divisor if divisor else None
        else:
            constant = get_constant(module, divisor)
            usable = constant is not None and constant.is_floating_point() and bool((constant != 0).all())
            inverse = (
                constant.detach().double().reciprocal().float() if usable and constant is not None else None
            )
            finite = inverse is not None and bool(torch.isfinite(inverse).all())
            factor = (
                add_constant(module, node, f"{node.name}_factor", inverse)
                if finite and inverse is not None
                else None
            )
        if factor is not None:
            node.target = aten.mul.Tensor
            node.args = (node.args[0], factor)
    module.recompile()
