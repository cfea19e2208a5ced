# SPDX-License-Identifier: Apache-2.0
"""Sum over axes.

int8: requantize(sum of (x - zero point)), the formula of LiteRT's and TFLM's SUM. float32: one addition after
another, over the reduced elements in row-major order, starting from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyet.ir import Node
from tinyet.ops.shared import reduction, summation
from tinyet.ops.shared.cost_models import COST_MODELS
from tinyet.opset import Op, with_cost_models


@dataclass(frozen=True)
class Sum(reduction.Reduce):
    """inputs: x; output: sums over `axes`."""

    name: ClassVar[str] = "sum"


def divisor(_node: Node) -> float:
    return 1.0


OP = Op(
    attrs=Sum,
    summary="sum over axes",
    infer=reduction.infer,
    reference=summation.reference_of(summation.sum_multiplier, divisor),
    iteration=reduction.iterate_sum,
    check=summation.check_of(summation.sum_multiplier),
    reduce_tiles=summation.reduce_tiles(summation.sum_multiplier),
    kernels=with_cost_models(summation.kernels_of(summation.sum_multiplier, divisor), COST_MODELS),
)
