# SPDX-License-Identifier: Apache-2.0
"""Twice as many layers take about twice as many steps: lines of tinyet that are executed are counted, not seconds."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from tests.passes.build import Builder as Passes
from tests.passes.build import per_tensor
from tests.unit.test_memory_overlap import evenly
from tests.unit.test_memory_storage import Builder, op_of
from tinyet.ir import DType, Graph, Node, Tensor, TensorType, constant
from tinyet.memory import plan_memory
from tinyet.ops.add import Add
from tinyet.ops.clamp import Clamp
from tinyet.ops.concat import Concat
from tinyet.ops.linear import Linear
from tinyet.ops.permute import Permute
from tinyet.ops.requantize import Requantize
from tinyet.ops.unary import Unary
from tinyet.opset import AccessOrder
from tinyet.passes.fold_requantize import fold_requantize
from tinyet.passes.fuse_clamp import fuse_clamp
from tinyet.passes.keep_integers import keep_integers
from tinyet.passes.layout_apply import optimize_layout

_MOST = 2.5
"""Times as many lines for twice the graph: what is quadratic takes four times."""


@functools.cache
def _is_tinyets(file: str) -> bool:
    return "/tinyet/" in file.replace("\\", "/")


def lines_of(function: Callable[[], object]) -> int:
    """Lines of tinyet that a call executes."""
    count = 0

    def line(_frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal count
        if event == "line":
            count += 1
        return line

    def call(frame: FrameType, _event: str, _arg: Any) -> Any:
        return line if _is_tinyets(frame.f_code.co_filename) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def recurrent(steps: int) -> Graph:
    """Slices of one input that lives long, gates that are slices of one value, products and sums in place."""
    b = Builder()
    x, h = b.input(steps, 8), b.input(1, 8)
    for step in range(steps):
        gates = b.mix(b.slice(x, step, step + 1), h, shape=(1, 24))
        reset, update, new = (b.pointwise(b.slice(gates, i * 8, i * 8 + 8, axis=1)) for i in range(3))
        candidate = b.pointwise(new, b.pointwise(reset, h))
        h = b.pointwise(b.pointwise(update, candidate), b.pointwise(update, h))
    return b.graph(h)


def windows(steps: int) -> Graph:
    """Results that all become windows of one concatenation, each made in place."""
    b = Builder()
    x = b.input(1, 8)
    rows = []
    for _ in range(steps):
        x = b.mix(x, shape=(1, 8))
        rows.append(b.pointwise(b.mix(x, shape=(1, 8))))
    return b.graph(b.concat(*rows))


def in_place(steps: int) -> Graph:
    """One value that is overwritten again and again."""
    b = Builder()
    x = b.mix(b.input(4, 8), shape=(4, 8))
    for _ in range(steps):
        x = b.pointwise(x)
    return b.graph(x)


@pytest.mark.parametrize("make", [recurrent, windows, in_place])
def test_planning(make: Callable[[int], Graph]) -> None:
    def access_order(node: Node, index: int) -> AccessOrder | None:
        return evenly(node, index) if node.op == "mix" else None

    options: dict[str, Any] = {"search_budget": 2_000, "order_budget": 2_000, "access_order": access_order}
    few, many = (
        lines_of(functools.partial(plan_memory, make(steps), op_of, {}, **options)) for steps in (20, 40)
    )
    assert many < _MOST * few


def clamped(layers: int) -> Graph:
    """Linear layers, each with a clamp behind it."""
    x = first = Tensor("x", TensorType((1, 4), DType.FLOAT32))
    weights = constant("weights", np.eye(4, dtype=np.float32))
    nodes = []
    for i in range(layers):
        y, z = (Tensor(f"{name}{i}", x.type) for name in "yz")
        nodes += [Node(Linear(), (x, weights, None), (y,)), Node(Clamp(0.0, 6.0), (y,), (z,))]
        x = z
    return Graph("clamped", (first,), (x,), tuple(nodes))


def permuted(layers: int) -> Graph:
    """Functions of single elements between changes of layout."""
    x = first = Tensor("x", TensorType((1, 4, 5, 6), DType.FLOAT32))
    nodes = []
    for i in range(layers):
        order = (0, 2, 3, 1)
        y = Tensor(f"y{i}", TensorType(tuple(x.shape[axis] for axis in order), DType.FLOAT32))
        z = Tensor(f"z{i}", y.type)
        nodes += [Node(Permute(order), (x,), (y,)), Node(Unary("sigmoid"), (y,), (z,))]
        x = z
    return Graph("permuted", (first,), (x,), tuple(nodes))


def rescaled(layers: int) -> Graph:
    """Sums, each brought to another scale."""
    b = Passes()
    x = b.input(1, 4, quant=per_tensor(0.5))
    for _ in range(layers):
        x = b.emit(Requantize(), b.emit(Add(), x, x, quant=per_tensor(0.1)), quant=per_tensor(0.5))
    return b.graph(x)


def moved(layers: int) -> Graph:
    """Integers that are real numbers while they are moved, and one more value at each place that is not."""
    b = Passes()
    x, y = b.dequantize(b.input(1, 4, quant=per_tensor(0.5))), b.input(1, 4)
    found = []
    for _ in range(layers):
        x = b.reshape(b.reshape(x, 4, 1), 1, 4)
        found.append(b.quantize(b.reshape(b.emit(Concat(1), x, y), 8, 1), per_tensor(0.5)))
    return b.graph(*found)


@pytest.mark.parametrize(
    ("run", "make"),
    [
        (fuse_clamp, clamped),
        (optimize_layout, permuted),
        (fold_requantize, rescaled),
        (keep_integers, moved),
    ],
    ids=["fuse_clamp", "layout", "fold_requantize", "keep_integers"],
)
def test_passes(run: Callable[[Graph], Graph], make: Callable[[int], Graph]) -> None:
    few, many = (lines_of(functools.partial(run, make(layers))) for layers in (20, 40))
    assert many < _MOST * few
