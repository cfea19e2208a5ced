# SPDX-License-Identifier: Apache-2.0
"""The larger of a and b with numpy's broadcasting; NaN wherever an operand is NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.ops.shared import broadcast, extremum
from tinyet.opset import Op, elementwise


@dataclass(frozen=True)
class Maximum(extremum.Pair):
    """The larger of a and b."""

    name: ClassVar[str] = "maximum"


OP = Op(
    attrs=Maximum,
    summary="the larger of a and b, broadcasting",
    infer=broadcast.infer,
    inputs=(2, 2),
    reference=extremum.pair_reference(np.greater),
    iteration=elementwise,
    check=broadcast.check_same_scale,
    inplace=(0, 1),
    same_scale=True,
    kernels=extremum.pair_kernels("tinyet_maximum", lambda c, whole: (c, whole[1])),
)
