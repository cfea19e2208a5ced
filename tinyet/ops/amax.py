# SPDX-License-Identifier: Apache-2.0
"""Greatest element over axes. float32: a NaN makes the result NaN; of equals (0 and -0) the first stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.ops.shared import extremum, reduction
from tinyet.opset import Op


@dataclass(frozen=True)
class Amax(reduction.Reduce):
    """inputs: x; output: the greatest elements over `axes`, of the same quantization."""

    name: ClassVar[str] = "amax"


OP = Op(
    attrs=Amax,
    summary="greatest element over axes",
    infer=reduction.infer,
    reference=extremum.axes_reference(np.greater),
    iteration=reduction.iterate,
    check=reduction.check_selecting,
    same_scale=True,
    kernels=extremum.axes_kernels("tinyet_amax"),
)
