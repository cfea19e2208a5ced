# SPDX-License-Identifier: Apache-2.0
"""Least element over axes. float32: a NaN makes the result NaN; of equals (0 and -0) the first stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tinyet.ir import Array, Node
from tinyet.ops.amax import kernels_of
from tinyet.ops.shared import reduction
from tinyet.opset import Op


@dataclass(frozen=True)
class Amin(reduction.Reduce):
    """inputs: x; output: the least elements over `axes`, of the same quantization."""

    name: ClassVar[str] = "amin"


def less(candidate: npt.NDArray[Any], best: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.asarray((candidate < best) | (candidate != candidate))  # a NaN only


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    return (reduction.fold(node, x, less),)


OP = Op(
    attrs=Amin,
    summary="least element over axes",
    infer=reduction.infer,
    reference=reference,
    check=reduction.check_selecting,
    same_scale=True,
    kernels=kernels_of("amin"),
)
