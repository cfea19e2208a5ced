# SPDX-License-Identifier: Apache-2.0
"""a - b with numpy's broadcasting and a fused clamp. In int8 and int16 as LiteRT's SUB, bit for bit: addition.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyet.ops.shared import addition, broadcast
from tinyet.ops.shared.cost_models import COST_MODELS
from tinyet.opset import Op, elementwise, with_cost_models


@dataclass(frozen=True)
class Sub(broadcast.Arithmetic):
    """a - b"""

    name: ClassVar[str] = "sub"


OP = Op(
    attrs=Sub,
    summary="a - b, broadcasting, with fused clamp",
    infer=broadcast.infer,
    inputs=(2, 2),
    reference=addition.reference_of(-1),
    iteration=elementwise,
    check=addition.check,
    inplace=(0, 1),
    kernels=with_cost_models(addition.kernels_of("sub", -1), COST_MODELS),
)
