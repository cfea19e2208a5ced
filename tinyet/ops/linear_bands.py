# SPDX-License-Identifier: Apache-2.0
"""A float32 product with a constant matrix whose rows are zero but for a run of columns, such as a bank of filters:
only these runs are stored, and multiplied.

The sum of a row's products begins with 0 and goes from its first column to its last. For finite x that is the sum of
all products: those that are left out add zeros. Infinities outside of a run stay outside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.opset import (
    ALONE,
    Call,
    Constant,
    Iteration,
    Kernel,
    Nest,
    Op,
    Pointer,
    Struct,
    library_call,
    operand,
    parameters,
)

X, WEIGHTS, FIRSTS, COUNTS = range(4)


@dataclass(frozen=True)
class LinearBands(Attrs):
    """inputs: x (…, K); constants: weights (W,), the runs one behind the other; int32 (N,), each run's first column;
    int32 (N,), its length. Output: (…, N)."""

    name: ClassVar[str] = "linear_bands"


def infer(node: Node) -> tuple[Shape, ...]:
    x, *tables = (node.input(index).shape for index in range(4))
    if not x or any(len(shape) != 1 for shape in tables) or tables[1] != tables[2]:
        raise UnsupportedShape(f"linear_bands: x {x}, tables {tables}", node.where)
    return ((*x[:-1], tables[1][0]),)


def iterate(node: Node) -> Iteration:
    nest = Nest()
    *rows, columns = node.input(X).shape
    beside = nest.all_parallel(tuple(rows))
    out = operand(*beside, nest.parallel(node.output.shape[-1]))
    return nest.iteration([operand(*beside, nest.reduced(columns)), *parameters(node, nest)], [out])


def check(node: Node) -> str | None:
    wanted = (DType.FLOAT32, DType.FLOAT32, DType.INT32, DType.INT32)
    for index, dtype in enumerate(wanted):
        tensor = node.input(index)
        if tensor.dtype is not dtype:
            return f"{tensor.name} must be {dtype.value}, is {tensor.dtype.value}"
        if index and not tensor.is_constant:
            return f"{tensor.name} must be a constant"
    if node.output.dtype is not DType.FLOAT32:
        return f"no form for {node.output.dtype.value}"
    firsts, counts = (node.input(index).array.astype(np.int64) for index in (FIRSTS, COUNTS))
    if np.any(counts < 0) or np.any(firsts < 0) or np.any(firsts + counts > node.input(X).shape[-1]):
        return f"a run is outside of the {node.input(X).shape[-1]} columns"
    if int(counts.sum()) != node.input(WEIGHTS).type.count:
        return f"runs of {int(counts.sum())} weights, not {node.input(WEIGHTS).type.count}"
    return None


def macs(node: Node) -> int:
    return math.prod(node.input(X).shape[:-1]) * node.input(WEIGHTS).type.count


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, weights, firsts, counts = (np.asarray(t) for t in inputs)
    rows = x.reshape(-1, x.shape[-1])
    sums = np.zeros((len(rows), len(firsts)), np.float32)
    starts = np.cumsum(counts) - counts
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for step in range(int(counts.max(initial=0))):
            (longer,) = np.nonzero(counts > step)
            sums[:, longer] = (
                sums[:, longer] + rows[:, firsts[longer] + step] * weights[starts[longer] + step]
            )
    return (sums.reshape(node.output.shape),)


def lower(node: Node, _target: Target) -> Call:
    runs = np.stack([node.input(FIRSTS).array, node.input(COUNTS).array], -1)
    rows, columns = math.prod(node.input(X).shape[:-1]), node.input(X).shape[-1]
    params = Struct(
        "tinyet_linear_bands_f32_params",
        {
            "weights": Pointer("weights"),
            "runs": Pointer("runs"),
            "rows": rows,
            "columns": columns,
            "count": len(runs),
        },
    )
    constants = [Constant("weights", node.input(WEIGHTS).array), Constant("runs", runs.reshape(-1))]
    return library_call("tinyet_linear_bands_f32", node, [X], params, constants)


OP = Op(
    attrs=LinearBands,
    summary="a product with a matrix whose rows are runs of columns: a filter bank",
    infer=infer,
    inputs=(4, 4),
    reference=reference,
    iteration=iterate,
    check=check,
    products=macs,
    kernels=(
        Kernel(
            "tinyet_linear_bands_f32",
            "f32",
            lower,
            ("tinyet_linear_bands.h",),
            ("tinyet_linear_bands_f32.c",),
            no_cost_model=ALONE,
        ),
    ),
)
