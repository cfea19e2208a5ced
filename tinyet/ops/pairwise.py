# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of two int32, element by element: what leaves 32 bits is wrapped, as in two's complement.

Division by 0, which the kernels of TensorFlow Lite refuse when they run, gives 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.numerics import Int64, wrap_int32
from tinyet.ops.shared import broadcast, stepped
from tinyet.opset import ALONE, Call, Kernel, Op, Struct, elementwise, library_call

PairFunction = Literal[
    "add",
    "sub",
    "mul",
    "div",
    "floor_div",
    "floor_mod",
    "maximum",
    "minimum",
    "squared_difference",
    "bit_and",
    "bit_or",
    "bit_xor",
    "shift_left",
    "shift_right",
]
"""div rounds towards zero; the rest of floor_mod has the divisor's sign. shift_right keeps the sign; a shift by less
than 0 or more than 31 bits moves all of them out."""


@dataclass(frozen=True)
class Pairwise(Attrs):
    """inputs: a, b, int32, of one shape or a single element; output: int32, function(a, b)."""

    name: ClassVar[str] = "pairwise"
    function: PairFunction


def _not_zero(b: Int64) -> Int64:
    return np.asarray(np.where(b == 0, 1, b), np.int64)


def _truncated(a: Int64, b: Int64) -> Int64:
    return np.asarray(np.where(b == 0, 0, np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(_not_zero(b)))))


def _bits(b: Int64) -> Int64:
    """By how many bits; 32 move all of them out."""
    return np.asarray(np.where((b < 0) | (b > 31), 32, b), np.int64)


_FUNCTIONS: Mapping[PairFunction, Callable[[Int64, Int64], Int64]] = {
    "add": lambda a, b: np.asarray(a + b),
    "sub": lambda a, b: np.asarray(a - b),
    "mul": lambda a, b: np.asarray(a * b),
    "div": _truncated,
    "floor_div": lambda a, b: np.asarray(np.where(b == 0, 0, a // _not_zero(b))),
    "floor_mod": lambda a, b: np.asarray(np.where(b == 0, 0, a % _not_zero(b))),
    "maximum": lambda a, b: np.asarray(np.maximum(a, b)),
    "minimum": lambda a, b: np.asarray(np.minimum(a, b)),
    "squared_difference": lambda a, b: np.asarray(wrap_int32(a - b) ** 2),
    "bit_and": lambda a, b: np.asarray(a & b),
    "bit_or": lambda a, b: np.asarray(a | b),
    "bit_xor": lambda a, b: np.asarray(a ^ b),
    "shift_left": lambda a, b: np.asarray(a << _bits(b)),
    "shift_right": lambda a, b: np.asarray(a >> _bits(b)),
}


def function_of(node: Node) -> PairFunction:
    assert isinstance(node.attrs, Pairwise)
    return node.attrs.function


def check(node: Node) -> str | None:
    dtypes = {t.dtype for t in (node.input(0), node.input(1), node.output)}
    if dtypes != {DType.INT32}:
        return f"computes with int32, not {', '.join(sorted(d.value for d in dtypes))}"
    return None


def compute(function: PairFunction, a: Array, b: Array) -> Int64:
    """Of whole numbers that int32 holds, broadcast; wrapped to int32, held in int64."""
    return wrap_int32(_FUNCTIONS[function](a.astype(np.int64), b.astype(np.int64)))


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    a, b = broadcast.operands(inputs)
    return (compute(function_of(node), a, b).astype(np.int32).reshape(node.output.shape),)


def lower(node: Node, _target: Target) -> Call:
    a, b = node.input(0), node.input(1)
    fields = {"count": node.output.type.count, "a_step": stepped.step(a), "b_step": stepped.step(b)}
    symbol = f"tinyet_{function_of(node)}_s32"
    return library_call(symbol, node, [0, 1], Struct("tinyet_binary_s32_params", fields))


OP = Op(
    attrs=Pairwise,
    summary="arithmetic of two int32, element by element",
    infer=stepped.infer,
    inputs=(2, 2),
    reference=reference,
    iteration=elementwise,
    check=check,
    kernels=(
        Kernel(
            "tinyet_binary_s32",
            "s32",
            lower,
            ("tinyet_binary_s32.h",),
            ("tinyet_binary_s32.c",),
            no_cost_model=ALONE,
        ),
    ),
)
