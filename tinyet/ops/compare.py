# SPDX-License-Identifier: Apache-2.0
"""Compares element by element: 1 where the relation holds, 0 elsewhere. With a NaN only `not_equal` holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.ops.shared import broadcast, stepped
from tinyet.ops.shared.counting import values
from tinyet.opset import Call, CostModel, Kernel, Op, Struct, elementwise, library_call

Relation = Literal["equal", "not_equal", "greater", "greater_equal"]


@dataclass(frozen=True)
class Compare(Attrs):
    """inputs: a, b, both float32 or both int32, of one shape or a single element; output: int32, a relation b."""

    name: ClassVar[str] = "compare"
    relation: Relation


_RELATIONS: Mapping[Relation, Callable[[Array, Array], Any]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


def relation_of(node: Node) -> Relation:
    assert isinstance(node.attrs, Compare)
    return node.attrs.relation


def check(node: Node) -> str | None:
    dtypes = {node.input(0).dtype, node.input(1).dtype}
    if dtypes not in ({DType.FLOAT32}, {DType.INT32}):
        return f"compares float32 or int32 values, not {' with '.join(sorted(d.value for d in dtypes))}"
    return None if node.output.dtype is DType.INT32 else "the result of a comparison must be int32"


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    a, b = broadcast.operands(inputs)
    found = _RELATIONS[relation_of(node)](a, b)
    return (np.asarray(found, np.int32).reshape(node.output.shape),)


def lower(node: Node, _target: Target) -> Call:
    a, b = node.input(0), node.input(1)
    fields = {"count": node.output.type.count, "a_step": stepped.step(a), "b_step": stepped.step(b)}
    symbol = f"tinyet_{relation_of(node)}_{a.dtype.suffix}"
    return library_call(symbol, node, [0, 1], Struct("tinyet_compare_params", fields))


OP = Op(
    attrs=Compare,
    summary="1 where a relation between a and b holds, 0 elsewhere",
    infer=stepped.infer,
    inputs=(2, 2),
    reference=reference,
    iteration=elementwise,
    check=check,
    kernels=tuple(
        Kernel(
            "tinyet_compare",
            dtypes,
            lower,
            ("tinyet_compare.h",),
            ("tinyet_compare.c",),
            cost_model=CostModel(values),
        )
        for dtypes in ("f32_s32", "s32")
    ),
)
