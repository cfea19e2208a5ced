# SPDX-License-Identifier: Apache-2.0
"""Shared parts of fully connected layers, with quantized or dynamically quantized input."""

from __future__ import annotations

import math

import numpy as np

from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Node, Shape
from tinyet.numerics import Float64
from tinyet.ops.shared.integers import exact_dtype
from tinyet.ops.shared.packing import interleave_rows
from tinyet.ops.shared.shapes import expect_rank
from tinyet.ops.shared.weighted import expect_bias
from tinyet.opset import Constant, Iteration, Nest, operand


def infer(node: Node) -> tuple[Shape, ...]:
    """(…, K) and weights (N, K) to (…, N)."""
    shape = node.input(0).shape
    out_count, depth = expect_rank(node, 1, 2)
    if not shape or shape[-1] != depth:
        raise UnsupportedShape(f"{node.op}: weights for {depth} inputs, x is of shape {shape}", node.where)
    expect_bias(node, out_count, "outputs")
    return ((*shape[:-1], out_count),)


def iterate(node: Node) -> Iteration:
    nest = Nest()
    *rows, n = nest.all_parallel(node.output.shape)
    k = nest.reduced(node.input(1).shape[1])
    bias = None if node.optional_input(2) is None else operand(n)
    return nest.iteration([operand(*rows, k), operand(n, k), bias], [operand(*rows, n)])


def exact_sums(_node: Node, numbers: Float64, weights: Array) -> Float64:
    """The sums of the products, (rows, N), of integers in float64 less their zero point."""
    # Within the bound of `exact_dtype`, so the order in which a matrix product adds makes no difference.
    dtype = exact_dtype(numbers, weights)
    rows = numbers.reshape(-1, weights.shape[1]).astype(dtype)
    return np.asarray(rows @ weights.T.astype(dtype), np.float64)


def size_fields(node: Node) -> dict[str, int]:
    out_count, depth = node.input(1).shape
    return {"rows": math.prod(node.output.shape[:-1]), "depth": depth, "out_count": out_count}


def row_weights(node: Node) -> Constant:
    return Constant("weights", interleave_rows(node.input(1).array), "four inputs of four outputs in turn")
