# SPDX-License-Identifier: Apache-2.0
"""Shared parts of layers that quantize their input at run time: float32 in and out, int8 products between.

Every step is float32, in the order of firmware/src/tinyet_dynamic_quantize.c:

    low = min(0, x...), high = max(0, x...)          NaN counts as nothing
    scale = max((high - low) / 255, eps)
    zero point = -128 - nearest(low / scale)         halves to even; clamped to -128 ... 127
    q = nearest(x / scale) + zero point              halves away from zero; clamped; NaN is the zero point
    sum = Σ (q - zero point) * weight                exact, in int32
    y = clamp(float(sum) * (scale * scale(weights[channel])) + bias[channel])

Scale and zero point are those of torch's `choose_qparams` (per tensor, affine), bit for bit where that is defined: for
finite values whose range does not overflow float32. The integers are the Quantize operator's, so a value near a half
can be one step from torch's, which multiplies by the reciprocal and rounds halves to even.

ONNX's DynamicQuantizeLinear is the same, less 128, with integers to even; with eps at its least, the smallest normal
float32, these are ONNX Runtime's, bit for bit.

LiteRT's hybrid kernels (portable_tensor_utils.cc) quantize each row or image by itself, so here is one only. Sums and
outputs are as above; nearest is with halves away from zero:

    symmetric:   scale = max(high, -low) / 127            q = nearest(x * (127 / max(high, -low)))
    asymmetric:  scale = (high - low) / 255               q = nearest(zero point + x * (1 / scale))
                 zero point = nearest(-128 - low / scale)

Asymmetric scales are LiteRT's, which it computes in float64, but for one in 2**29; its zero point can differ by one
where it is near a half: then an extreme value's integer is clamped where LiteRT's is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from tinyet.ir import Array, DType, Node
from tinyet.numerics import Float64, Int64, float32, round_half_away
from tinyet.ops.shared.clamped import clamp_complaint, clamp_fields, clamp_of
from tinyet.ops.shared.integers import magnitudes
from tinyet.ops.shared.weighted import float_bias
from tinyet.opset import Constant, FieldValue, Iteration, Pointer, Reference, Struct

LOW, HIGH = -128, 127
DEFAULT_EPS = float(np.finfo(np.float32).eps)
"""The smallest scale: what torchao's observers have by default."""

Floats = npt.NDArray[np.float32]


Rule = Literal["torch", "symmetric", "asymmetric", "onnx"]
"""The quantization of x at run time, in the order of the C enumeration: those in the middle are LiteRT's."""

LITERT: tuple[Rule, ...] = ("symmetric", "asymmetric")
LEAST_EPS = float(np.finfo(np.float32).tiny)
"""The smallest scale that there can be."""


@runtime_checkable
class Dynamic(Protocol):
    """Attributes with the smallest scale of x, which is quantized as a whole, and whose rule that is."""

    @property
    def eps(self) -> float: ...

    @property
    def rule(self) -> Rule: ...


def eps_of(node: Node) -> float:
    """The smallest scale of x."""
    assert isinstance(node.attrs, Dynamic)
    return node.attrs.eps


def rule_of(node: Node) -> Rule:
    assert isinstance(node.attrs, Dynamic)
    return node.attrs.rule


def check(node: Node) -> str | None:
    """The type rule; inputs: x float32, weights int8, bias float32 or None."""
    eps = eps_of(node)
    x, weights, bias, out = node.input(0), node.input(1), node.optional_input(2), node.output
    if not weights.is_constant or (bias is not None and not bias.is_constant):
        return "weights and bias must be constants"
    complaint = clamp_complaint(node)
    if complaint is not None:
        return complaint
    if (x.dtype, out.dtype) != (DType.FLOAT32, DType.FLOAT32):
        return "it quantizes float32 while it runs, and gives float32"
    if weights.dtype not in (DType.INT8, DType.INT4):
        return f"weights must be int8, not {weights.dtype.value}"
    if bias is not None and bias.dtype is not DType.FLOAT32:
        return "the bias must be float32"
    if rule_of(node) in LITERT and x.type.count != math.prod(
        x.shape[-3:] if len(weights.shape) == 4 else x.shape[-1:]
    ):
        return "LiteRT quantizes each row by itself: there may be one only"
    quant = weights.type.quant
    if quant is None or any(quant.zero_point) or quant.axis not in (None, 0):
        return "weights must be quantized symmetrically, per tensor or per output channel"
    if not (math.isfinite(eps) and np.float32(eps) >= LEAST_EPS):
        return f"the smallest scale must be a positive number, not {eps}"
    # |q - zero point| <= 255: the sum must not leave int32.
    return (
        "sums could overflow 32 bits"
        if 255 * int(magnitudes(weights.array).max(initial=0)) >= 2**31
        else None
    )


def choose_params(x: Array, eps: float) -> tuple[np.float32, int]:
    """(scale, zero point) of a whole tensor."""
    values = x.astype(np.float32).ravel()
    low = np.fmin.reduce(values, initial=np.float32(0))
    high = np.fmax.reduce(values, initial=np.float32(0))
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.maximum((high - low) / np.float32(255), np.float32(eps))
        ratio = low / scale
    nearest = 0 if np.isnan(ratio) else int(np.rint(ratio))
    return np.float32(scale), min(max(LOW - nearest, LOW), HIGH)


def quantized(x: Array, scale: np.float32, zero_point: int, rule: Rule = "torch") -> Array:
    """The int8 numbers of float32 values."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.nan_to_num((x.astype(np.float32) / scale).astype(np.float32), nan=0.0)
    nearest = np.rint(scaled) if rule == "onnx" else round_half_away(scaled)
    rounded = np.clip(nearest, -(2.0**31), 2.0**31)
    return np.asarray(np.clip(rounded + zero_point, LOW, HIGH), np.int8)


def _nearest(values: Floats, low: int) -> Int64:
    """Halves away from zero, within low … 127; NaN is low."""
    inside = np.where(values > low, np.minimum(values, np.float32(HIGH)), np.float32(low)).astype(np.float32)
    whole = np.trunc(inside)
    rest = inside - whole
    return np.asarray(whole + (rest >= 0.5) - (rest <= -0.5), np.int64)


def _over_255(high: np.float32, low: np.float32) -> np.float32:
    """(high - low) / 255, nearly as if rounded once: the rests of difference and quotient are exact."""
    span = high - low
    part = span - high
    span_rest = (high - (span - part)) + (-low - part)
    scale = span / np.float32(255)
    scale_rest = (span - np.float32(256) * scale) + scale
    return np.float32(scale + (scale_rest + span_rest) / np.float32(255))


def as_litert(x: Array, rule: Rule) -> tuple[Array, np.float32, int]:
    """(integers, scale, zero point) of a row or an image."""
    values = x.astype(np.float32)
    low = np.fmin.reduce(values.ravel(), initial=np.float32(0))
    high = np.fmax.reduce(values.ravel(), initial=np.float32(0))
    if not low < high:
        return np.zeros(x.shape, np.int64), np.float32(1), 0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if rule == "symmetric":
            reach = np.maximum(-low, high)
            numbers = _nearest((values * (np.float32(HIGH) / reach)).astype(np.float32), -HIGH)
            return numbers, np.float32(reach / np.float32(HIGH)), 0
        scale = _over_255(high, low)
        zero_point = int(_nearest(np.float32(LOW) - np.asarray(low / scale, np.float32), LOW))
        scaled = (values * (np.float32(1) / scale)).astype(np.float32)
        return _nearest((np.float32(zero_point) + scaled).astype(np.float32), LOW), scale, zero_point


def weight_scales(node: Node) -> Floats:
    """(channels,)"""
    quant, channels = node.input(1).type.quant, node.input(1).shape[0]
    assert quant is not None
    return np.broadcast_to(np.asarray(quant.scale, np.float32), (channels,)).copy()


def finished(node: Node, sums: npt.NDArray[Any], scale: np.float32) -> Floats:
    """float32 outputs of exact sums (…, channels)."""
    with np.errstate(over="ignore", invalid="ignore"):
        factors = scale * weight_scales(node)
        values = sums.astype(np.float32) * factors + float_bias(node)
    return float32.clamp(values, *clamp_of(node))


def reference_of(sums: Callable[[Node, Float64, Array], Float64]) -> Reference:
    """`sums` of the node, of integers less their zero point in float64, and of the weights: exact."""

    def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x, weights = inputs[0], inputs[1]
        assert x is not None
        assert weights is not None
        rule = rule_of(node)
        if rule in LITERT:
            integers, scale, zero_point = as_litert(x, rule)
        else:
            scale, zero_point = choose_params(x, eps_of(node))
            integers = quantized(x, scale, zero_point, rule)
        numbers = integers.astype(np.float64) - zero_point
        return (finished(node, sums(node, numbers, weights), scale).reshape(node.output.shape),)

    return reference


def whole_input(iterate: Callable[[Node], Iteration]) -> Callable[[Node], Iteration]:
    """The iteration of the same layer with a quantized input."""
    return lambda node: replace(iterate(node), whole={0: "quantizes its input by the range of all of it"})


# ---------------------------------------------------------------- kernels


def constants(node: Node, weights: Constant, round_to: int = 1) -> tuple[Constant, ...]:
    """The four arrays of a kernel; the sums of weights are filled up with zeros to a multiple of `round_to`."""
    numbers = node.input(1).array.astype(np.int64)
    sums = numbers.reshape(numbers.shape[0], -1).sum(axis=1)
    return (
        weights,
        Constant("weight_sums", np.pad(sums, (0, -len(sums) % round_to)).astype(np.int32)),
        Constant("weight_scales", weight_scales(node)),
        Constant("bias", float_bias(node)),
    )


def layer_struct(node: Node) -> Struct:
    """The struct that every kernel has behind its shape."""
    fields: dict[str, FieldValue] = {
        **{name: Pointer(name) for name in ("weights", "weight_sums", "weight_scales", "bias")},
        "smallest_scale": eps_of(node),
        "rule": get_args(Rule).index(rule_of(node)),
        **clamp_fields(node),
    }
    return Struct("tinyet_dynamic_layer", fields)
