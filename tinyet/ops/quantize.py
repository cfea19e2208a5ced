# SPDX-License-Identifier: Apache-2.0
"""float32 → int8 or int16, as LiteRT's QUANTIZE: a float32 division, halves away from zero, then the zero point,
saturated. To int8 also as ONNX Runtime rounds, halves to even.

Beyond LiteRT, which leaves both undefined: infinities and large values saturate, NaN becomes the zero point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.numerics import QuantizeRounding, quantize, round_half_even
from tinyet.ops.shared import conversion
from tinyet.ops.shared.factors import above_int8, rounds_half_even
from tinyet.ops.shared.integers import INTEGERS, check_activations, saturated
from tinyet.ops.shared.shapes import same_shape
from tinyet.opset import Call, Kernel, Op, Struct, elementwise, library_call


@dataclass(frozen=True)
class Quantize(Attrs):
    """inputs: x, float32 of any shape. The output is int8 or int16 with one scale a tensor.

    rounding: to int16 only "half_away".
    """

    name: ClassVar[str] = "quantize"
    rounding: QuantizeRounding = "half_away"


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if x.dtype is not DType.FLOAT32 or out.dtype not in INTEGERS:
        return f"quantizes float32 to int8 or int16, not {x.dtype.value} to {out.dtype.value}"
    if rounds_half_even(node) and out.dtype is not DType.INT8:
        return "only int8 is rounded to even"
    return check_activations(out)


def half_even_terms(node: Node) -> tuple[int, int]:
    """The addends before and after rounding a value to even."""
    assert isinstance(node.attrs, Quantize)
    zero_point, above = node.output.type.zero_point, above_int8(node)
    return (0, zero_point) if node.attrs.rounding == "half_even" else (zero_point + above, -above)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, out = inputs[0], node.output.type
    assert x is not None
    if not rounds_half_even(node):
        return (quantize(x, out),)
    before, after = half_even_terms(node)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = x.astype(np.float32) / np.float32(out.scale)
    values = round_half_even(np.nan_to_num(steps, nan=0.0) + np.float32(before)) + after
    return (saturated(values, out.dtype),)


def lower_half_even(node: Node, _target: Target) -> Call:
    before, after = half_even_terms(node)
    out = node.output.type
    fields = {"scale": out.scale, "before": float(before), "after": after, "count": out.count}
    params = Struct("tinyet_quantize_rne_params", fields)
    return library_call("tinyet_quantize_f32_s8_rne", node, [0], params)


OP = Op(
    attrs=Quantize,
    summary="float32 to int8 or int16",
    infer=same_shape,
    reference=reference,
    iteration=elementwise,
    check=check,
    kernels=(
        *conversion.kernels_of("tinyet_quantize", ("f32_s8", "f32_s16"), lambda node: node.output.type),
        Kernel(
            "tinyet_quantize_f32_s8_rne",
            "f32_s8_rne",
            lower_half_even,
            (*conversion.HEADERS, "tinyet_rne.h"),
            ("tinyet_quantize_f32_s8_rne.c",),
            cost_model=conversion.COST_MODEL,
        ),
    ),
)
