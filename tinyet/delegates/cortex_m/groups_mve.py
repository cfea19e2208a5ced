# SPDX-License-Identifier: Apache-2.0
"""Convolutions of several groups for Helium: as one group, with weights of zero between the groups. Sixteen products
are one instruction, so that most of them may be with zeros before it is slower than what takes groups one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyet.ir import Node, constant
from tinyet.ir.memoize import memoize
from tinyet.ops.shared.convolution import attrs_of

MOST_GROUPS = 16
"""Beyond which planning need not ask what it would cost."""


def refuse_groups(node: Node) -> str | None:
    groups, (*_, inputs), (*_, outputs) = attrs_of(node).groups, node.input(0).shape, node.output.shape
    if groups > MOST_GROUPS:
        return f"{groups} groups, takes up to {MOST_GROUPS}"
    return "one channel a group" if 1 < groups == inputs == outputs else None


def of_one_group(node: Node) -> Node:
    """The same of one group, which may be the node itself."""
    return node if attrs_of(node).groups == 1 else _merged(node)


@memoize
def _merged(node: Node) -> Node:
    attrs, weights = attrs_of(node), node.input(1)
    outputs, kernel_h, kernel_w, own = weights.shape
    wide = np.zeros((attrs.groups, outputs // attrs.groups, kernel_h, kernel_w, attrs.groups, own), np.int8)
    each = np.arange(attrs.groups)
    wide[each, :, :, :, each] = weights.array.reshape(attrs.groups, -1, kernel_h, kernel_w, own)
    array = wide.reshape(outputs, kernel_h, kernel_w, attrs.groups * own)
    tensor = constant(weights.name, array, weights.type.quant, weights.dtype)
    return node.replace(attrs=replace(attrs, groups=1), inputs=[node.input(0), tensor, *node.inputs[2:]])
