# SPDX-License-Identifier: Apache-2.0
"""Product of two matrices, or of batches of them whose leading dimensions broadcast, with a fused clamp.

int8: LiteRT's BATCH_MATMUL: sum of (a - zero_point(a)) * (b - zero_point(b)), requantized once with
scale(a) * scale(b) / scale(out), whose product is rounded to float32 first; or, by its rounding, ONNX Runtime's
QLinearMatMul. int16: LiteRT's with sums of 64 bits and their rounding (numerics.requantize_64).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import QuantizationError, UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import NO_CLAMP, Int64, Multiplier, Rounding, float32, quantize_multiplier
from tinyet.ops.shared import factors, weighted_s16
from tinyet.ops.shared.clamped import clamp_complaint, clamp_fields, clamp_of
from tinyet.ops.shared.cost_models import Parts, outputs
from tinyet.ops.shared.integers import check_activations, representable
from tinyet.opset import (
    ONE,
    Call,
    Constant,
    CostModel,
    FieldValue,
    Index,
    Iteration,
    Nest,
    Op,
    Pointer,
    Struct,
    library_call,
    library_kernels,
    operand,
)

MAX_MATRICES = 1 << 14
"""Products in one node: the kernel has a table of them."""


@dataclass(frozen=True)
class MatMul(Attrs):
    """inputs: a (…, M, K); b (…, K, N); the leading dimensions broadcast as in numpy. Output: (…, M, N).

    rounding: of the sums of int8 values; "half_even" is ONNX Runtime's QLinearMatMul.
    """

    name: ClassVar[str] = "matmul"
    clamp: tuple[float, float] = NO_CLAMP
    rounding: Rounding = "double"


def infer(node: Node) -> tuple[Shape, ...]:
    a, b = node.input(0).shape, node.input(1).shape
    if min(len(a), len(b)) < 2 or a[-1] != b[-2]:
        raise UnsupportedShape(f"matmul: {a} by {b}", node.where)
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise UnsupportedShape(f"matmul: the batches of {a} and {b} do not broadcast", node.where) from None
    if math.prod(batch) > MAX_MATRICES:
        raise UnsupportedShape(f"matmul: {math.prod(batch)} matrices, at most {MAX_MATRICES}", node.where)
    return ((*batch, a[-2], b[-1]),)


def iterate(node: Node) -> Iteration:
    nest, a, b = Nest(), node.input(0), node.input(1)
    *batch, row, column = nest.all_parallel(node.output.shape)
    inner = nest.reduced(a.shape[-1])

    def matrices(shape: Shape) -> Sequence[Index]:
        own = batch[len(batch) + 2 - len(shape) :]
        return [ONE if size == 1 else place for size, place in zip(shape[:-2], own, strict=True)]

    left, right = operand(*matrices(a.shape), row, inner), operand(*matrices(b.shape), inner, column)
    return nest.iteration([left, right], [operand(*batch, row, column)])


def check(node: Node) -> str | None:
    complaint = clamp_complaint(node)
    if complaint is not None:
        return complaint
    types = {node.input(0).dtype, node.input(1).dtype, node.output.dtype}
    if types == {DType.FLOAT32}:
        return None
    if types not in ({DType.INT8}, {DType.INT16}):
        return f"no form with {', '.join(sorted(t.value for t in types))}"
    complaint = check_activations(node.input(0), node.input(1), node.output)
    if complaint is not None:
        return complaint
    if factors.rounds_half_even(node):
        return check_half_even(node, types)
    try:
        real = real_factor(node)
    except QuantizationError as error:
        return error.what
    depth = node.input(0).shape[-1]
    if types == {DType.INT16}:
        return weighted_s16.rescaling(real, weighted_s16.LARGEST**2 * depth)
    if 255 * 256 * depth >= 2**31:
        return "sums could overflow 32 bits"
    fits = representable(lambda: factors.shifts_fit(255 * 255 * depth, factor(node).shift))
    return None if fits else "the output's scale is too small for the sums"


def check_half_even(node: Node, types: set[DType]) -> str | None:
    if types != {DType.INT8}:
        return "only sums of int8 are rounded to even"
    if not representable(lambda: bool(half_even_factor(node) > 0)):
        return "the factor of the sums is no normal float32"
    fits = 255 * 256 * node.input(0).shape[-1] < 2**31
    return None if fits else "sums could overflow 32 bits"


def half_even_factor(node: Node) -> np.float32:
    """scale(a) * scale(b) / scale(out) in float32, as ONNX Runtime multiplies and divides. Raises QuantizationError."""
    (factor,) = factors.half_even_factors(node)[:1]
    return np.float32(factor)


def real_factor(node: Node) -> float:
    """scale(a) * scale(b) in float32, / scale(out) in float64."""
    return factors.scale_product(node.input(0).type.scale, node.input(1).type.scale) / node.output.type.scale


def factor(node: Node) -> Multiplier:
    return quantize_multiplier(real_factor(node))


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    a, b = inputs[0], inputs[1]
    assert a is not None
    assert b is not None
    if node.input(0).dtype is DType.FLOAT32:
        left, right = a.astype(np.float32), b.astype(np.float32)
        sums = np.zeros(node.output.shape, np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(left.shape[-1]):
                sums += left[..., :, k : k + 1] * right[..., k : k + 1, :]
        return (float32.clamp(sums, *clamp_of(node)),)
    # float64 holds every integer below 2**53, so the matrix product is exact and fast.
    wide = (x.astype(np.float64) - t.type.zero_point for x, t in ((a, node.input(0)), (b, node.input(1))))
    acc = np.matmul(*wide).astype(np.int64)
    if factors.rounds_half_even(node):
        return (factors.rescaled_half_even(node, acc, half_even_factor(node)),)
    scale = factor(node)
    return (factors.rescaled(node, acc, scale.multiplier, scale.shift),)


# ---------------------------------------------------------------- portable kernels


def batch_offsets(node: Node) -> Int64:
    """For each matrix of the output, which matrix of a and of b it is the product of: int64 (batches, 2)."""
    batch = node.output.shape[:-2]
    columns = []
    for tensor in (node.input(0), node.input(1)):
        index = np.arange(math.prod(tensor.shape[:-2])).reshape(tensor.shape[:-2])
        columns.append(np.broadcast_to(index, batch).ravel())
    return np.stack(columns, axis=1).astype(np.int64)


def lower(node: Node, _target: Target) -> Call:
    """The table: offsets in elements."""
    out = node.output.dtype
    rows, depth = node.input(0).shape[-2:]
    columns = node.output.shape[-1]
    offsets = batch_offsets(node) * np.array([rows * depth, depth * columns])
    table = Constant("batches", offsets.astype(np.int32), "offsets of the matrices in a and in b")
    fields: dict[str, FieldValue] = {
        "count": len(offsets),
        "rows": rows,
        "depth": depth,
        "columns": columns,
        "batches": Pointer("batches"),
    }
    if out is DType.INT8:
        zero_points = {"a": node.input(0), "b": node.input(1), "out": node.output}
        fields |= {f"{name}_zero_point": t.type.zero_point for name, t in zero_points.items()}
    even = factors.rounds_half_even(node)
    if even:
        fields |= {"multiplier": int(half_even_factor(node).view(np.int32)), "shift": 0}
    elif out is not DType.FLOAT32:
        fields |= factors.factor_fields(factor(node), out)
    params = Struct(f"tinyet_matmul_{out.suffix}_params", {**fields, **clamp_fields(node)})
    return library_call(f"tinyet_matmul_{out.suffix}{'_rne' if even else ''}", node, [0, 1], params, [table])


def multiplied(node: Node) -> Parts:
    """tinyet_matmul: a row by four columns at a time."""
    depth, columns = node.input(0).shape[-1], node.output.shape[-1]
    rows = node.output.type.count // max(columns, 1)
    quads, rest = divmod(columns, 4)
    return {
        "call": 1,
        "matrix": math.prod(node.output.shape[:-2]),
        "row": rows,
        "value of a row": rows * depth,
        "four columns": rows * quads,
        "products of four columns": rows * quads * depth,
        "column": rows * rest,
        "product of a column": rows * rest * depth,
        **outputs(node, rows * columns),
    }


OP = Op(
    attrs=MatMul,
    summary="product of matrices, batches broadcast, fused clamp",
    infer=infer,
    inputs=(2, 2),
    reference=reference,
    iteration=iterate,
    check=check,
    kernels=(
        *library_kernels(
            "tinyet_matmul",
            ("s8", "s16", "f32"),
            lower,
            ("tinyet_matmul.h",),
            cost_model=CostModel(multiplied),
        ),
        *library_kernels(
            "tinyet_matmul",
            ("s8_rne",),
            lower,
            ("tinyet_matmul.h", "tinyet_rne.h"),
            cost_model=CostModel(multiplied),
        ),
    ),
)
