# SPDX-License-Identifier: Apache-2.0
"""What is worked out of a node is worked out once, and forgotten with the node."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from tinyet.ir import Node, QuantParams, Tensor, TensorType, constant
from tinyet.ir.memoize import memoize, memoize_by_weights
from tinyet.ir.types import DType
from tinyet.ops.linear import Linear
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


def test_layers_of_the_same_weights_share_whatever_their_image() -> None:
    asked = []

    @memoize_by_weights
    def total(node: Node, times: int = 1) -> int:
        asked.append(node)
        return times * int(node.input(1).array.sum())

    def layer(size: int, weights: tuple[int, ...] = (1, 2), scale: float = 0.5, clamp: float = 6.0) -> Node:
        quant = QuantParams((scale,), (0,))
        x, y = (Tensor(n, TensorType((1, size, 2), DType.INT8, quant)) for n in "xy")
        return Node(Linear((0.0, clamp)), (x, constant("w", np.array([weights], np.int8), quant), None), (y,))

    first = layer(4)
    assert [total(each) for each in (first, layer(5), first, layer(4))] == [3, 3, 3, 3]
    assert asked == [first]
    others = [layer(4, (2, 2)), layer(4, scale=0.25), layer(4, clamp=5.0)]
    assert [*map(total, others), total(first, 2), total(first, times=3)] == [4, 3, 3, 6, 9]
    assert asked == [first, *others, first, first]
