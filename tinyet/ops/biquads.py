# SPDX-License-Identifier: Apache-2.0
"""Recursive filters of second-order sections, one behind the other, over a sequence; float32.

Transposed direct form II, as scipy.signal.sosfilt computes it, each operation rounded by itself:

    y = b0 * x + s0;  s0 = (b1 * x - a1 * y) + s1;  s1 = b2 * x - a2 * y
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.opset import (
    ALONE,
    Call,
    Constant,
    Iteration,
    Kernel,
    Nest,
    Op,
    Pointer,
    Struct,
    library_call,
    operand,
)

COEFFICIENTS = 5
"""b0, b1, b2, a1, a2; a0 is 1."""


@dataclass(frozen=True)
class Biquads(Attrs):
    """inputs: x (N, T); the state before the first sample (N, S, 2); a constant (S, 5), the sections. Outputs: y
    (N, T); the state behind the last sample (N, S, 2)."""

    name: ClassVar[str] = "biquads"


def infer(node: Node) -> tuple[Shape, ...]:
    x, state, sections = (node.input(index).shape for index in range(3))
    count = sections[0] if len(sections) == 2 else 0
    if len(x) != 2 or count == 0 or sections[1] != COEFFICIENTS or state != (x[0], count, 2):
        raise UnsupportedShape(f"biquads: x {x}, a state {state}, sections {sections}", node.where)
    return x, state


def iterate(node: Node) -> Iteration:
    nest = Nest()
    rows, steps = (
        make(size) for make, size in zip((nest.parallel, nest.sequential), node.input(0).shape, strict=True)
    )
    state = node.input(1).shape[1:]
    return nest.iteration(
        [
            operand(rows, steps),
            operand(rows, *nest.all_reduced(state)),
            operand(*nest.all_reduced(node.input(2).shape)),
        ],
        [operand(rows, steps), operand(rows, *nest.all_parallel(state))],
    )


def check(node: Node) -> str | None:
    for tensor in (*node.inputs, *node.outputs):
        if tensor is not None and tensor.dtype is not DType.FLOAT32:
            return f"no form for {tensor.dtype.value}"
    return None if node.input(2).is_constant else "the sections must be constants"


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, state, sections = inputs
    assert x is not None
    assert state is not None
    assert sections is not None
    y, left = np.empty_like(x), state.copy()
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for t in range(x.shape[1]):
            value = x[:, t]
            for s, (b0, b1, b2, a1, a2) in enumerate(sections):
                made = b0 * value + left[:, s, 0]
                left[:, s, 0] = (b1 * value - a1 * made) + left[:, s, 1]
                left[:, s, 1] = b2 * value - a2 * made
                value = made
            y[:, t] = value
    return y, left


def lower(node: Node, _target: Target) -> Call:
    rows, steps = node.input(0).shape
    sections = node.input(2).array
    params = Struct(
        "tinyet_biquads_f32_params",
        {"sections": Pointer("sections"), "rows": rows, "steps": steps, "count": len(sections)},
    )
    constants = [Constant("sections", sections.reshape(-1))]
    return library_call("tinyet_biquads_f32", node, [0, 1], params, constants)


OP = Op(
    attrs=Biquads,
    summary="recursive filters of second-order sections",
    infer=infer,
    inputs=(3, 3),
    reference=reference,
    iteration=iterate,
    check=check,
    products=lambda node: COEFFICIENTS * node.input(0).type.count * node.input(2).shape[0],
    carried=(1,),
    kernels=(
        Kernel(
            "tinyet_biquads_f32",
            "f32",
            lower,
            ("tinyet_biquads.h",),
            ("tinyet_biquads_f32.c",),
            no_cost_model=ALONE,
        ),
    ),
)
