# SPDX-License-Identifier: Apache-2.0
"""Softmax of int8 in the arithmetic of ONNX Runtime's QLinearSoftmax: float32, from a table of the 256 exponentials,
which are so large that a sum of them just does not overflow."""

from __future__ import annotations

import math

import numpy as np

from tinyet.ir import Array, DType, Node
from tinyet.numerics import float32, round_half_even
from tinyet.ops.shared.integers import check_activations, saturated
from tinyet.ops.shared.softmax import attrs_of

_LARGEST = float(np.finfo(np.float32).max)
_RESERVE = 5.0
"""By this the logarithm of the largest sum stays below that of the largest float32."""


def depth(node: Node) -> int:
    return node.input(0).shape[attrs_of(node).axis]


def steps(node: Node) -> np.float32:
    """Output steps of 1, whole."""
    with np.errstate(over="ignore"):
        return np.float32(np.floor(np.float32(1) / np.float32(node.output.type.scale)))


def exponentials(node: Node) -> float32.Float32:
    """float32 (256,): of 0, -1, -2 … input steps, times e^(88.7 - 5) / depth; computed in float64."""
    scale = float(np.float32(node.input(0).type.scale))
    largest = max(0.0, math.log(_LARGEST / depth(node)) - _RESERVE) / scale
    with np.errstate(under="ignore"):
        return np.asarray(np.exp((largest - np.arange(256)) * scale), np.float32)


def check(node: Node) -> str | None:
    if complaint := check_activations(node.input(0)) or check_activations(node.output):
        return complaint
    if getattr(node.attrs, "beta", 1.0) != 1.0:
        return "rounded to even, values are multiplied by beta before"
    with np.errstate(over="ignore"):
        if not np.isfinite(exponentials(node)[0] * steps(node)):
            return f"exponentials times 1 / {node.output.type.scale:.6g} exceed float32"
    return None


def along_last(node: Node, x: Array) -> Array:
    """int8 (…, depth) → int8."""
    wide = x.astype(np.int64)
    exps = exponentials(node)[wide.max(axis=-1, keepdims=True) - wide]
    shares = exps * steps(node) / float32.sum_in_order(exps)
    return saturated(round_half_even(shares) + node.output.type.zero_point, DType.INT8)
