# SPDX-License-Identifier: Apache-2.0
"""What is worked out of a node is worked out once, and forgotten with the node."""

from __future__ import annotations

import gc
import weakref

from tinyet.ir import Node, Tensor, TensorType
from tinyet.ir.memoize import memoize
from tinyet.ir.types import DType
from tinyet.ops.reshape import Reshape


def test_once_for_each_node_and_argument() -> None:
    asked = []

    @memoize
    def named(node: Node, suffix: str = "") -> str:
        asked.append(suffix)
        return node.output.name + suffix

    def made(name: str) -> Node:
        tensors = [Tensor(n, TensorType((2,), DType.FLOAT32)) for n in ("x", name)]
        return Node(Reshape((2,)), (tensors[0],), (tensors[1],))

    one, other = made("one"), made("other")
    assert [named(one), named(one), named(other)] == ["one", "one", "other"]
    assert [named(one, "s"), named(one, suffix="t"), named(one, suffix="t")] == ["ones", "onet", "onet"]
    assert asked == ["", "", "s", "t"]
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None
