# SPDX-License-Identifier: Apache-2.0
"""Two-dimensional maximum pooling, NHWC. Padding never wins; dilation is supported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node
from tinyet.ops.shared import access_orders, pooling
from tinyet.ops.shared.cost_models import COST_MODELS
from tinyet.ops.shared.movement import check_moved
from tinyet.ops.shared.pooling import Pool
from tinyet.opset import Call, Iteration, Op, Struct, library_call, library_kernels, with_cost_models


@dataclass(frozen=True)
class MaxPool2d(Pool):
    """input: x (N, H, W, C). A window that lies wholly in the padding gives the type's lowest value.

    A float window that holds a NaN gives NaN, as in PyTorch.
    """

    name: ClassVar[str] = "max_pool2d"


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    lowest = -np.inf if node.input(0).dtype is DType.FLOAT32 else node.input(0).dtype.range[0]
    best = np.full(node.output.shape, lowest, np.float32)
    # float32 holds every int8 and int16, and its comparisons are the kernel's.
    for view in pooling.windows(node, x.astype(np.float32), lowest):
        tap = view.astype(np.float32)
        best = np.where((tap > best) | np.isnan(tap), tap, best)
    return (best.astype(node.output.dtype.numpy),)


def iterate(node: Node) -> Iteration:
    return pooling.iterate(
        node, -np.inf if node.input(0).dtype is DType.FLOAT32 else node.input(0).dtype.range[0]
    )


def lower(node: Node, _target: Target) -> Call:
    params = Struct("tinyet_max_pool2d_params", pooling.shape_fields(node))
    return library_call(f"tinyet_max_pool2d_{node.input(0).dtype.suffix}", node, [0], params)


HEADERS = ("tinyet_max_pool2d.h", "tinyet_window.h")

OP = Op(
    attrs=MaxPool2d,
    summary="maximum pooling: stride, dilation, a padding for each side",
    infer=pooling.infer,
    reference=reference,
    iteration=iterate,
    part=pooling.part,
    check=check_moved,
    same_scale=True,
    kernels=with_cost_models(
        library_kernels(
            "tinyet_max_pool2d",
            ("s8", "s16", "f32"),
            lower,
            HEADERS,
            pooling.refuse_far,
            access_order=access_orders.by_window_pixels,
        ),
        COST_MODELS,
    ),
)
