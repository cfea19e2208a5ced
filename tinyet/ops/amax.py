# SPDX-License-Identifier: Apache-2.0
"""Greatest element over axes. float32: a NaN makes the result NaN; of equals (0 and -0) the first stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Node
from tinyet.ops.shared import reduction
from tinyet.opset import Call, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class Amax(reduction.Reduce):
    """inputs: x; output: the greatest elements over `axes`, of the same quantization."""

    name: ClassVar[str] = "amax"


def greater(candidate: npt.NDArray[Any], best: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.asarray((candidate > best) | (candidate != candidate))  # a NaN only


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    return (reduction.fold(node, x, greater),)


def kernels_of(name: str) -> tuple[Kernel, ...]:
    """`tinyet_<name>_s8`, `_s16` and `_f32`, one C file each."""

    def kernel(dtypes: str) -> Kernel:
        symbol = f"tinyet_{name}_{dtypes}"

        def lower(node: Node, _target: Target) -> Call:
            params = Struct("tinyet_reduce_params", {"shape": reduction.shape_struct(node)})
            return library_call(symbol, node, [0], params)

        return Kernel(symbol, dtypes, lower, ("tinyet_reduce.h",), (f"{symbol}.c",), reduction.refuse)

    return kernel("s8"), kernel("s16"), kernel("f32")


OP = Op(
    attrs=Amax,
    summary="greatest element over axes",
    infer=reduction.infer,
    reference=reference,
    check=reduction.check_selecting,
    same_scale=True,
    kernels=kernels_of("amax"),
)
