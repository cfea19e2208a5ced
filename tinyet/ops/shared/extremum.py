# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the operators that select the greatest or least value: of two operands, or over axes.

In float a NaN is selected wherever there is one; of equals (0 and -0) the later operand, or the first element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, Node
from tinyet.ops.shared import broadcast, reduction
from tinyet.ops.shared.clip import clip_call, clip_kernels
from tinyet.ops.shared.cost_models import reduced
from tinyet.opset import Call, CostModel, Kernel, Reference, Struct, library_call, library_kernels

Beats = Callable[[Array, Array], Any]
"""np.greater or np.less: whether a value is selected before another."""


@dataclass(frozen=True)
class Pair(Attrs):
    """inputs: a, b, which broadcast; either may be a constant. As integers they share the output's quantization."""


DTYPES = ("s8", "s16", "f32")


def wins(beats: Beats, candidate: Array, other: Array) -> npt.NDArray[np.bool_]:
    return np.asarray(beats(candidate, other) | (candidate != candidate))  # a NaN only


# ---------------------------------------------------------------- of two operands


def pair_reference(beats: Beats) -> Reference:
    def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        a, b = broadcast.operands(inputs)
        return (np.where(wins(beats, a, b), a, b),)

    return reference


def pair_kernels(name: str, bounds: Callable[[int, tuple[int, int]], tuple[int, int]]) -> tuple[Kernel, ...]:
    """`bounds` of a clip that does the same as a scalar constant: of its raw value and the range of the type."""

    def lower_clip(node: Node, _target: Target) -> Call:
        index = broadcast.varying_input(node)
        assert index is not None
        other, whole = node.input(1 - index), node.output.dtype.range
        constant = other.array.reshape(-1)[0] if other.is_constant else None
        return clip_call(node, index, whole if constant is None else bounds(int(constant), whole))

    def lower(node: Node, _target: Target) -> Call:
        return broadcast.plain_call(f"{name}_{node.output.dtype.suffix}", node)

    general = (broadcast.kernel(f"{name}_{dtype}", lower, "tinyet_extremum.c") for dtype in DTYPES)
    return (*clip_kernels(lower_clip, broadcast.refuse_fold), *general)


# ---------------------------------------------------------------- over axes


def axes_reference(beats: Beats) -> Reference:
    def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = inputs[0]
        assert x is not None
        parts = reduction.slices(node, x)
        best = next(parts).copy()
        for part in parts:
            best = np.where(wins(beats, part, best), part, best)
        return (np.asarray(best, x.dtype).reshape(node.output.shape),)

    return reference


def axes_kernels(name: str) -> tuple[Kernel, ...]:
    def lower(node: Node, _target: Target) -> Call:
        params = Struct("tinyet_reduce_params", {"shape": reduction.shape_struct(node)})
        return library_call(f"{name}_{node.output.dtype.suffix}", node, [0], params)

    return library_kernels(name, DTYPES, lower, ("tinyet_reduce.h",), reduction.refuse, CostModel(reduced))
