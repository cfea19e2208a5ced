# SPDX-License-Identifier: Apache-2.0
"""Least element over axes. float32: a NaN makes the result NaN; of equals (0 and -0) the first stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.ops.shared import extremum, reduction
from tinyet.opset import Op


@dataclass(frozen=True)
class Amin(reduction.Reduce):
    """inputs: x; output: the least elements over `axes`, of the same quantization."""

    name: ClassVar[str] = "amin"


OP = Op(
    attrs=Amin,
    summary="least element over axes",
    infer=reduction.infer,
    reference=extremum.axes_reference(np.less),
    iteration=reduction.iterate,
    check=reduction.check_selecting,
    same_scale=True,
    kernels=extremum.axes_kernels("tinyet_amin"),
)
