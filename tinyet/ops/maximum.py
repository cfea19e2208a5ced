# SPDX-License-Identifier: Apache-2.0
"""The larger of a and b with numpy's broadcasting; NaN wherever an operand is NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.ir import Attrs
from tinyet.ops.shared import broadcast, extremum
from tinyet.opset import Op


@dataclass(frozen=True)
class Maximum(Attrs):
    """inputs: a, b, which broadcast; either may be a constant. As integers they share the output's
    quantization."""

    name: ClassVar[str] = "maximum"


OP = Op(
    attrs=Maximum,
    summary="the larger of a and b, broadcasting",
    infer=broadcast.infer,
    reference=extremum.pair_reference(np.greater),
    check=broadcast.check_same_scale,
    inplace=(0, 1),
    same_scale=True,
    kernels=extremum.pair_kernels("tinyet_maximum", lambda c, whole: (c, whole[1])),
)
