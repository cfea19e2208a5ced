# SPDX-License-Identifier: Apache-2.0
"""One line about a node, for the comment above its specialised function."""

from __future__ import annotations

import math

from tinyet.ir import Node
from tinyet.ops.linear import Linear
from tinyet.ops.shared.convolution import attrs_of


def summary(node: Node) -> str:
    if isinstance(node.attrs, Linear):
        count, depth = node.input(1).shape
        return f"{math.prod(node.output.shape[:-1])} x {depth} -> {count}, fully connected"
    attrs = attrs_of(node)
    sizes = ["x".join(map(str, s[1:])) for s in (node.input(0).shape, node.output.shape)]
    kernel = "x".join(map(str, node.input(1).shape[1:3]))
    return f"{sizes[0]} -> {sizes[1]}, kernel {kernel}, stride {attrs.stride_h}x{attrs.stride_w}"
