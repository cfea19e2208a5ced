# SPDX-License-Identifier: Apache-2.0
"""A state's value for the next run: the same values, at the state's place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.ir import Array, Attrs, Node
from tinyet.ops.shared.access_orders import by_copy
from tinyet.ops.shared.movement import check_rearranged, copy_kernels
from tinyet.ops.shared.shapes import same_shape
from tinyet.opset import Op, elementwise


@dataclass(frozen=True)
class StateWrite(Attrs):
    """inputs: what is to be kept, of any shape; the state's value of before. Output: the first, in the place of the
    second, which nobody reads any more."""

    name: ClassVar[str] = "state_write"


def reference(_node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    return (x.copy(),)


def check(node: Node) -> str | None:
    if node.input(1).shape != node.output.shape:
        return f"a state of shape {node.input(1).shape} for a value of shape {node.output.shape}"
    return check_rearranged(node)


OP = Op(
    attrs=StateWrite,
    summary="a state's value for the next run, where the state lies",
    infer=same_shape,
    reference=reference,
    iteration=elementwise,
    check=check,
    inputs=(2, 2),
    inplace=(1,),
    kernels=copy_kernels(by_copy),
)
