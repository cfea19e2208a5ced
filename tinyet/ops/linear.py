# SPDX-License-Identifier: Apache-2.0
"""Fully connected layer on the last dimension: out = x @ weights.T + bias, with a fused clamp.

The int8 form rounds twice, as TFLM and CMSIS-NN do (LiteRT's own reference rounds once here, in float64): it
is a 1x1 convolution whose pixels are the rows of x.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import NO_CLAMP, clamp_range
from tinyet.ops.conv2d import check_weighted, clamp_float, form_constants, rescaled
from tinyet.ops.shared import nibbles, weighted_s16
from tinyet.ops.shared.packing import interleave_pairs, interleave_rows
from tinyet.ops.shared.window import expect_rank
from tinyet.opset import Call, Constant, Kernel, Op, Pointer, Struct, library_call


@dataclass(frozen=True)
class Linear(Attrs):
    """inputs: x (…, K); weights (N, K) constant; bias (N,) constant or None. Output: (…, N).

    clamp: real bounds of the fused activation: (0, inf) is ReLU.
    """

    name: ClassVar[str] = "linear"
    clamp: tuple[float, float] = NO_CLAMP


def attrs_of(node: Node) -> Linear:
    assert isinstance(node.attrs, Linear)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    shape = node.input(0).shape
    out_count, depth = expect_rank(node, 1, 2)
    if not shape or shape[-1] != depth:
        raise UnsupportedShape(f"linear: weights for {depth} inputs, x is of shape {shape}", node.where)
    bias = node.optional_input(2)
    if bias is not None and bias.shape != (out_count,):
        raise UnsupportedShape(f"linear: bias of shape {bias.shape} for {out_count} outputs", node.where)
    return ((*shape[:-1], out_count),)


def macs(node: Node) -> int:
    return node.output.type.count * node.input(1).shape[1]


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, weights, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
    assert x is not None
    assert weights is not None
    clamp = attrs_of(node).clamp
    out_count, depth = weights.shape
    rows = x.reshape(-1, depth)
    if node.input(0).dtype is DType.FLOAT32:
        sums = np.zeros((rows.shape[0], out_count), np.float32)
        if bias is not None:
            sums += bias.astype(np.float32)
        values, w = rows.astype(np.float32), weights.astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(depth):
                sums += values[:, k : k + 1] * w[:, k]
        return (clamp_float(sums, clamp).reshape(node.output.shape),)
    # float64 holds every integer below 2**53, so the matrix product is exact and fast.
    product = (rows.astype(np.float64) - node.input(0).type.zero_point) @ weights.T.astype(np.float64)
    acc = product.astype(np.int64) + (bias.astype(np.int64) if bias is not None else 0)
    return (rescaled(node, acc, clamp).reshape(node.output.shape),)


# ---------------------------------------------------------------- portable kernels


def size_fields(node: Node) -> dict[str, int]:
    out_count, depth = node.input(1).shape
    return {"rows": math.prod(node.output.shape[:-1]), "depth": depth, "out_count": out_count}


def call_s8(symbol: str, node: Node, packed: Constant) -> Call:
    low, high = clamp_range(attrs_of(node).clamp, node.output.type)
    params = Struct(
        "tinyet_linear_s8_params",
        {
            **size_fields(node),
            "weights": Pointer("weights"),
            "bias": Pointer("bias"),
            "multiplier": Pointer("multiplier"),
            "shift": Pointer("shift"),
            "out_zero_point": node.output.type.zero_point,
            "clamp_low": low,
            "clamp_high": high,
        },
    )
    weights, bias, multiplier, shift = form_constants(node, packed)
    # The last block of four outputs is computed whole.
    missing = -len(bias.data) % 4
    bias = replace(bias, data=np.pad(bias.data.astype(np.int32), (0, missing)))
    return library_call(symbol, node, [0], params, (weights, bias, multiplier, shift))


def row_weights(node: Node) -> Constant:
    return Constant("weights", interleave_rows(node.input(1).array), "four inputs of four outputs in turn")


def lower_s8(node: Node, _target: Target) -> Call:
    return call_s8("tinyet_linear_s8", node, row_weights(node))


def lower_s8_w4(node: Node, _target: Target) -> Call:
    return call_s8("tinyet_linear_s8_w4", node, nibbles.narrowed(row_weights(node), 1))


def lower_s16(node: Node, _target: Target) -> Call:
    """Weights: for each four outputs, a pair of depth of the first two, then of the other two."""
    weights = node.input(1).array
    pairs = interleave_pairs(np.pad(weights, ((0, -len(weights) % 4), (0, 0))))
    packed = np.ascontiguousarray(pairs.reshape(-1, 2, *pairs.shape[1:]).transpose(0, 2, 1, 3))
    constant = Constant("weights", packed, "a0 b0 a1 b1 c0 d0 c1 d1 of four outputs")
    fields = {**size_fields(node), **weighted_s16.fields(node, attrs_of(node).clamp)}
    params = Struct("tinyet_linear_s16_params", fields)
    constants = weighted_s16.constants(node, constant, round_to=4)
    return library_call("tinyet_linear_s16", node, [0], params, constants)


def lower_f32(node: Node, _target: Target) -> Call:
    bias = node.optional_input(2)
    low, high = attrs_of(node).clamp
    params = Struct(
        "tinyet_linear_f32_params",
        {
            **size_fields(node),
            "weights": Pointer("weights"),
            "bias": Pointer("bias"),
            "clamp_low": low,
            "clamp_high": high,
        },
    )
    constants = (
        Constant("weights", node.input(1).array),
        Constant("bias", np.zeros(node.input(1).shape[0], np.float32) if bias is None else bias.array),
    )
    return library_call("tinyet_linear_f32", node, [0], params, constants)


HEADERS = ("tinyet_linear.h",)
ROWS = (*HEADERS, "tinyet_pairs.h", "tinyet_rows.h")

OP = Op(
    attrs=Linear,
    summary="fully connected layer on the last dimension, fused clamp",
    infer=infer,
    reference=reference,
    check=check_weighted,
    macs=macs,
    bias=(2, 1),
    kernels=(
        Kernel("tinyet_linear_s8", "s8", lower_s8, ROWS, ("tinyet_linear_s8.c",)),
        Kernel(
            "tinyet_linear_s8_w4",
            "s8w4",
            lower_s8_w4,
            (*HEADERS, "tinyet_pairs.h", "tinyet_nibbles.h"),
            ("tinyet_linear_s8_w4.c",),
            nibbles.refuse_long_sums,
        ),
        Kernel("tinyet_linear_s16", "s16", lower_s16, (*HEADERS, "tinyet_pairs.h"), ("tinyet_linear_s16.c",)),
        Kernel("tinyet_linear_f32", "f32", lower_f32, HEADERS, ("tinyet_linear_f32.c",)),
    ),
)
