# SPDX-License-Identifier: Apache-2.0
"""a + b with numpy's broadcasting and a fused clamp. In int8 and int16 as LiteRT's ADD, bit for bit: addition.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyet.numerics import ElementRounding
from tinyet.ops.shared import addition, broadcast
from tinyet.ops.shared.cost_models import COST_MODELS
from tinyet.opset import Op, elementwise, with_cost_models


@dataclass(frozen=True)
class Add(broadcast.Arithmetic):
    """a + b

    rounding: of the sum of int8 values; "half_even" and "half_even_u8" are ONNX Runtime's QLinearAdd (on x86-64 with
    FMA), where one affine form of both operands gives it for all 65,536 pairs (addition.half_even_form).
    """

    name: ClassVar[str] = "add"
    rounding: ElementRounding = "double"


OP = Op(
    attrs=Add,
    summary="a + b, broadcasting, with fused clamp",
    infer=broadcast.infer,
    inputs=(2, 2),
    reference=addition.reference_of(1),
    iteration=elementwise,
    check=addition.check,
    inplace=(0, 1),
    kernels=with_cost_models((*addition.kernels_of("add", 1), *addition.EVEN_KERNELS), COST_MODELS),
)
