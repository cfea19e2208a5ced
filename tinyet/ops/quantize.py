# SPDX-License-Identifier: Apache-2.0
"""float32 → int8 or int16, as LiteRT's QUANTIZE: a float32 division, halves away from zero, then the zero point,
saturated.

Beyond LiteRT, which leaves both undefined: infinities and large values saturate, NaN becomes the zero point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.ir import Array, Attrs, DType, Node
from tinyet.numerics import quantize
from tinyet.ops.shared import conversion
from tinyet.ops.shared.integers import INTEGERS, check_activations
from tinyet.ops.shared.shapes import same_shape
from tinyet.opset import Op, each_row, each_step


@dataclass(frozen=True)
class Quantize(Attrs):
    """inputs: x, float32 of any shape. The output is int8 or int16 with one scale a tensor."""

    name: ClassVar[str] = "quantize"


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if x.dtype is not DType.FLOAT32 or out.dtype not in INTEGERS:
        return f"quantizes float32 to int8 or int16, not {x.dtype.value} to {out.dtype.value}"
    return check_activations(out)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    assert inputs[0] is not None
    return (quantize(inputs[0], node.output.type),)


OP = Op(
    attrs=Quantize,
    summary="float32 to int8 or int16",
    infer=same_shape,
    reference=reference,
    rows=each_row,
    over_time=each_step,
    check=check,
    kernels=conversion.kernels_of("tinyet_quantize", ("f32_s8", "f32_s16"), lambda node: node.output.type),
)
