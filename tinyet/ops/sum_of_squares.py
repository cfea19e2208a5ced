# SPDX-License-Identifier: Apache-2.0
"""Sums of squares along the last axis, float32: powers of complex numbers, energies of frames.

The sum begins with 0; squares are added from the first element to the last, as Sum adds what Mul gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.counting import Parts
from tinyet.opset import Call, CostModel, Iteration, Kernel, Nest, Op, Struct, library_call, operand


@dataclass(frozen=True)
class SumOfSquares(Attrs):
    """inputs: x float32 (…, K). Output: (…)."""

    name: ClassVar[str] = "sum_of_squares"


def infer(node: Node) -> tuple[Shape, ...]:
    shape = node.input(0).shape
    if not shape:
        raise UnsupportedShape("sum_of_squares: one value has no last axis", node.where)
    return (shape[:-1],)


def iterate(node: Node) -> Iteration:
    nest = Nest()
    places = nest.all_parallel(node.output.shape)
    return nest.iteration([operand(*places, nest.reduced(node.input(0).shape[-1]))], [operand(*places)])


def check(node: Node) -> str | None:
    kinds = (node.input(0).dtype, node.output.dtype)
    return None if kinds == (DType.FLOAT32, DType.FLOAT32) else f"no form for {kinds[0].value}"


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    (x,) = inputs
    assert x is not None
    total = np.zeros(x.shape[:-1], np.float32)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for part in np.moveaxis(x, -1, 0):
            total = total + part * part
    return (total.reshape(node.output.shape),)


def lower(node: Node, _target: Target) -> Call:
    depth = node.input(0).shape[-1]
    params = Struct("tinyet_sum_of_squares_params", {"rows": node.output.type.count, "depth": depth})
    return library_call("tinyet_sum_of_squares_f32", node, [0], params)


def counted(node: Node) -> Parts:
    """Pairs have a loop of their own."""
    rows, depth = node.output.type.count, node.input(0).shape[-1]
    return {"call": 1, "pair": rows} if depth == 2 else {"call": 1, "row": rows, "value": rows * depth}


OP = Op(
    attrs=SumOfSquares,
    summary="sums of squares along the last axis",
    infer=infer,
    reference=reference,
    iteration=iterate,
    check=check,
    products=lambda node: node.input(0).type.count,
    kernels=(
        Kernel(
            "tinyet_sum_of_squares_f32",
            "f32",
            lower,
            ("tinyet_reduce.h",),
            ("tinyet_sum_of_squares_f32.c",),
            cost_model=CostModel(counted),
        ),
    ),
)
