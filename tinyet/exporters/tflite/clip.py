# SPDX-License-Identifier: Apache-2.0
"""Fused activations: as an option of the operator where there is one of these bounds, else as operators behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tinyet.exporters.tflite.context import Context
from tinyet.exporters.tflite.moves import reshaped
from tinyet.ir import DType, Node, TensorType
from tinyet.numerics import NO_CLAMP, clamp_range
from tinyet.ops.shared.clamped import clamp_of
from tinyet.tflite.enumerations import ACTIVATIONS
from tinyet.tflite.options import Options

Bounds = tuple[float, float]

NONE = ACTIVATIONS.index("none")

FUSED: dict[int, Bounds] = {
    NONE: NO_CLAMP,
    ACTIVATIONS.index("relu"): (0.0, math.inf),
    ACTIVATIONS.index("relu6"): (0.0, 6.0),
    ACTIVATIONS.index("relu_n1_to_1"): (-1.0, 1.0),
}
"""Real bounds by the number of the activation."""


def same(a: Bounds, b: Bounds, type_: TensorType) -> bool:
    """Whether two bounds cut off the same of a type's values."""
    return a == b or (type_.dtype is not DType.FLOAT32 and clamp_range(a, type_) == clamp_range(b, type_))


def activation_of(node: Node) -> int | None:
    """The number of the fused activation with the node's bounds; None where there is none."""
    clamp, type_ = clamp_of(node), node.output.type
    return next((number for number, bounds in FUSED.items() if same(bounds, clamp, type_)), None)


def clip(ctx: Context, index: int, type_: TensorType, bounds: Bounds, out: int) -> None:
    """out = the value of a type within real bounds: MAXIMUM and MINIMUM with constants."""
    if type_.dtype is DType.FLOAT32:
        low, high = (None if math.isinf(b) else b for b in bounds)
    else:
        limits, range_ = clamp_range(bounds, type_), type_.dtype.range
        low, high = (None if a == b else a for a, b in zip(limits, range_, strict=True))
    steps = [(code, b) for code, b in (("MAXIMUM", low), ("MINIMUM", high)) if b is not None]
    if not steps:
        reshaped(ctx, index, type_.shape, out)
    for number, (code, bound) in enumerate(steps):
        held = ctx.constant(np.array([bound], type_.dtype.numpy), f"bound_{number}", type_.quant)
        last = number == len(steps) - 1
        index = ctx.call(code, [index, held], out if last else ctx.like(out, ctx.tensors[out].shape))


def emit_clamped(
    ctx: Context,
    code: str,
    inputs: Sequence[int],
    make: Callable[[int], Options],
    out: int | None = None,
) -> None:
    """The operator with the node's bounds. make: its options for a number of an activation. out: by default the node's
    output; else another tensor of its type."""
    number = activation_of(ctx.node)
    if number is None:
        emit_then_clip(ctx, code, inputs, make(NONE), out)
    else:
        ctx.call(code, inputs, ctx.out if out is None else out, make(number))


def emit_then_clip(
    ctx: Context, code: str, inputs: Sequence[int], options: Options | None, out: int | None = None
) -> None:
    """The operator without a fused activation, and the node's bounds behind it."""
    made = ctx.out if out is None else out
    if activation_of(ctx.node) == NONE:
        ctx.call(code, inputs, made, options)
    else:
        step = ctx.call(code, inputs, ctx.like(made, ctx.tensors[made].shape), options)
        clip(ctx, step, ctx.node.output.type, clamp_of(ctx.node), made)
