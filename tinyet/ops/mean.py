# SPDX-License-Identifier: Apache-2.0
"""Mean over axes; over height and width it is global average pooling.

int8, int16: LiteRT's MEAN, a sum requantized by a multiplier with 1 / count in it (summation.mean_multiplier), also
where the scales agree. float32: the sum of Sum, divided by the count. The C functions are those of Sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyet.ir import Node
from tinyet.numerics import Rounding
from tinyet.ops.shared import reduction, summation
from tinyet.ops.shared.cost_models import COST_MODELS
from tinyet.opset import Op, with_cost_models


@dataclass(frozen=True)
class Mean(reduction.Reduce):
    """inputs: x; output: means over `axes`.

    rounding: of the sums of int8 values; "half_even" is ONNX Runtime's QLinearGlobalAveragePool.
    """

    name: ClassVar[str] = "mean"
    rounding: Rounding = "double"


def divisor(node: Node) -> float:
    return float(reduction.count(node))


OP = Op(
    attrs=Mean,
    summary="mean over axes (global average pooling)",
    infer=reduction.infer,
    reference=summation.reference_of(summation.mean_multiplier, divisor),
    iteration=reduction.iterate_sum,
    check=summation.check_of(summation.mean_multiplier),
    reduce_tiles=summation.reduce_tiles(summation.mean_multiplier),
    kernels=with_cost_models(
        summation.kernels_of(summation.mean_multiplier, divisor, half_even=True), COST_MODELS
    ),
)
