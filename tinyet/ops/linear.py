# SPDX-License-Identifier: Apache-2.0
"""Fully connected layer on the last dimension: out = x @ weights.T + bias, with a fused clamp.

The int8 form rounds twice, as TFLM and CMSIS-NN do (LiteRT's own reference rounds once here, in float64): it
is a 1x1 convolution whose pixels are the rows of x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.numerics import NO_CLAMP, Rounding, float32
from tinyet.ops.shared import byte_products, fully_connected, nibbles, packed_words, two_taps, weighted
from tinyet.ops.shared.access_orders import by_copied_vectors, by_vectors
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.cost_models import COST_MODELS
from tinyet.ops.shared.cost_models_float import COST_MODELS as FLOAT_COST_MODELS
from tinyet.ops.shared.cost_models_words import COST_MODELS as WORDS_COST_MODELS
from tinyet.ops.shared.factors import rounds_half_even
from tinyet.ops.shared.fully_connected import row_weights, size_fields
from tinyet.ops.shared.packing import interleave_pairs
from tinyet.opset import (
    Call,
    Constant,
    FieldValue,
    Kernel,
    Op,
    Pointer,
    Struct,
    library_call,
    with_cost_models,
)


@dataclass(frozen=True)
class Linear(Attrs):
    """inputs: x (…, K); weights (N, K) constant; bias (N,) constant or None. Output: (…, N).

    clamp: real bounds of the fused activation: (0, inf) is ReLU.
    rounding: of the sums of int8 values; "half_even" is ONNX Runtime's QLinearMatMul and QGemm.
    """

    name: ClassVar[str] = "linear"
    clamp: tuple[float, float] = NO_CLAMP
    rounding: Rounding = "double"


def float_sums(x: Array, weights: Array, bias: Array | None) -> float32.Float32:
    """float32 (rows, N): bias, then one product after another."""
    values, w = x.reshape(-1, weights.shape[1]).astype(np.float32), weights.astype(np.float32)
    sums = np.zeros((values.shape[0], weights.shape[0]), np.float32)
    if bias is not None:
        sums += bias.astype(np.float32)
    product = np.empty_like(sums)
    with np.errstate(over="ignore", invalid="ignore"):
        for column, of_column in zip(values.T, np.ascontiguousarray(w.T), strict=True):
            sums += np.multiply(column[:, None], of_column, out=product)
    return sums


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, weights, bias = weighted.operands(inputs)
    if node.input(0).dtype is DType.FLOAT32:
        values = float32.clamp(float_sums(x, weights, bias), *clamp_of(node))
        return (values.reshape(node.output.shape),)
    product = fully_connected.exact_sums(node, x.astype(np.float64) - node.input(0).type.zero_point, weights)
    acc = product.astype(np.int64) + (bias.astype(np.int64) if bias is not None else 0)
    return (weighted.rescaled(node, acc).reshape(node.output.shape),)


# ---------------------------------------------------------------- portable kernels


def layer_call(node: Node, constants: Sequence[Constant]) -> Call:
    """`tinyet_linear_<dtype>`, with _w4 behind it for int4 weights, _rne for sums that are rounded to even."""
    suffix = node.input(0).dtype.suffix
    # In int8 the zero point of x is in the bias.
    numbers = {k: v for k, v in weighted.number_fields(node).items() if k != "in_zero_point"}
    params = Struct(f"tinyet_linear_{suffix}_params", {**size_fields(node), **numbers})
    narrow = "_w4" if node.input(1).dtype is DType.INT4 else "_rne" if rounds_half_even(node) else ""
    return library_call(f"tinyet_linear_{suffix}{narrow}", node, [0], params, constants)


def folded_call(node: Node, weights: Constant) -> Call:
    """The last block of four outputs is computed whole."""
    return layer_call(node, weighted.folded_constants(node, weights, round_to=4))


def lower_s8(node: Node, _target: Target) -> Call:
    return folded_call(node, row_weights(node))


def lower_packed_words(node: Node, _target: Target) -> Call:
    sizes = size_fields(node)
    fields: dict[str, FieldValue] = {"rows": sizes["rows"], "depth": sizes["depth"]}
    symbol = "tinyet_linear_s8_packed_words"
    params = Struct(f"{symbol}_params", {**fields, "words": packed_words.fields(node)})
    scratch = packed_words.patch_bytes(node)
    return library_call(symbol, node, [0], params, [packed_words.stream(node)], scratch)


def refuse_packed_words(node: Node, _target: Target) -> str | None:
    return packed_words.refuse(node)


def lower_bytes(node: Node, _target: Target) -> Call:
    sizes = size_fields(node)
    fields: dict[str, FieldValue] = {"rows": sizes["rows"], "depth": sizes["depth"]}
    fields |= {"words": byte_products.words(node), "weights": Pointer("weights")}
    params = Struct("tinyet_linear_s8_bytes_params", fields)
    constants = byte_products.stream(node), byte_products.lifted(node)
    return library_call("tinyet_linear_s8_bytes", node, [0], params, constants, sizes["depth"])


def refuse_bytes(node: Node, _target: Target) -> str | None:
    return byte_products.refuse(node, size_fields(node)["depth"])


def lower_two_taps(node: Node, _target: Target) -> Call:
    sizes = size_fields(node)
    fields: dict[str, FieldValue] = {"rows": sizes["rows"], "depth": sizes["depth"]}
    fields |= {"words": packed_words.fields(node), "weights": Pointer("weights")}
    params = Struct("tinyet_linear_s8_two_taps_params", fields)
    scratch = two_taps.scratch_bytes(node)
    return library_call("tinyet_linear_s8_two_taps", node, [0], params, two_taps.constants(node), scratch)


def refuse_two_taps(node: Node, _target: Target) -> str | None:
    return two_taps.refuse(node)


def lower_s8_w4(node: Node, _target: Target) -> Call:
    return folded_call(node, nibbles.narrowed(row_weights(node), 1))


def lower_s16(node: Node, _target: Target) -> Call:
    """Weights: for each four outputs, a pair of depth of the first two, then of the other two."""
    weights = node.input(1).array
    pairs = interleave_pairs(np.pad(weights, ((0, -len(weights) % 4), (0, 0))))
    packed = np.ascontiguousarray(pairs.reshape(-1, 2, *pairs.shape[1:]).transpose(0, 2, 1, 3))
    return folded_call(node, Constant("weights", packed, "a0 b0 a1 b1 c0 d0 c1 d1 of four outputs"))


def lower_f32(node: Node, _target: Target) -> Call:
    return layer_call(node, weighted.constants(node, Constant("weights", node.input(1).array)))


HEADERS = ("tinyet_linear.h",)
ROWS = (*HEADERS, "tinyet_int16x2.h", "tinyet_dot_1x4.h")

OP = Op(
    attrs=Linear,
    summary="fully connected layer on the last dimension, fused clamp",
    infer=fully_connected.infer,
    inputs=(2, 3),
    reference=reference,
    iteration=fully_connected.iterate,
    check=weighted.check_weighted,
    bias=(2, 1),
    kernels=with_cost_models(
        (
            Kernel(
                "tinyet_linear_s8", "s8", lower_s8, ROWS, ("tinyet_linear_s8.c",), access_order=by_vectors
            ),
            Kernel(
                "tinyet_linear_s8_packed_words",
                "s8",
                lower_packed_words,
                ("tinyet_conv2d.h", "tinyet_packed_words.h"),
                ("tinyet_linear_s8_packed_words.c", "tinyet_packed_words.c"),
                refuse_packed_words,
                access_order=by_copied_vectors,
            ),
            Kernel(
                "tinyet_linear_s8_two_taps",
                "s8",
                lower_two_taps,
                ("tinyet_conv2d.h", "tinyet_packed_words.h", "tinyet_two_taps.h"),
                ("tinyet_linear_s8_two_taps.c",),
                refuse_two_taps,
                access_order=by_copied_vectors,
            ),
            Kernel(
                "tinyet_linear_s8_bytes",
                "s8",
                lower_bytes,
                ("tinyet_conv2d.h", "tinyet_packed_words.h", "tinyet_byte_products.h"),
                ("tinyet_linear_s8_bytes.c",),
                refuse_bytes,
                access_order=by_copied_vectors,
                first_on="avr",
            ),
            Kernel(
                "tinyet_linear_s8_rne",
                "s8_rne",
                lower_s8,
                (*ROWS, "tinyet_rne.h"),
                ("tinyet_linear_s8_rne.c",),
                access_order=by_vectors,
            ),
            Kernel(
                "tinyet_linear_s8_w4",
                "s8_w4",
                lower_s8_w4,
                (*HEADERS, "tinyet_int16x2.h", "tinyet_int4.h"),
                ("tinyet_linear_s8_w4.c",),
                nibbles.refuse_long_sums,
                access_order=by_vectors,
            ),
            Kernel(
                "tinyet_linear_s16",
                "s16",
                lower_s16,
                (*HEADERS, "tinyet_int16x2.h"),
                ("tinyet_linear_s16.c",),
                access_order=by_vectors,
            ),
            Kernel(
                "tinyet_linear_f32",
                "f32",
                lower_f32,
                HEADERS,
                ("tinyet_linear_f32.c",),
                access_order=by_vectors,
            ),
        ),
        {**COST_MODELS, **FLOAT_COST_MODELS, **WORDS_COST_MODELS},
    ),
)
