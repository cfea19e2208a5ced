# SPDX-License-Identifier: Apache-2.0
"""The identity, with bytes of its own for the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.ir import Array, Attrs, Node
from tinyet.ops.shared.movement import check_rearranged, copy_kernels
from tinyet.ops.shared.shapes import same_shape
from tinyet.opset import Op, elementwise


@dataclass(frozen=True)
class Copy(Attrs):
    """inputs: x of any shape."""

    name: ClassVar[str] = "copy"


def reference(_node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    return (x.copy(),)


OP = Op(
    attrs=Copy,
    summary="the same values in bytes of their own",
    infer=same_shape,
    reference=reference,
    iteration=elementwise,
    check=check_rearranged,
    inplace=(0,),
    same_scale=True,
    kernels=copy_kernels(),
)
