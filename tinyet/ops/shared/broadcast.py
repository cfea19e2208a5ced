# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the operators with two broadcasting operands: shapes, type rules, loops, and folding of constant
operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import NO_CLAMP, Int64, float32
from tinyet.ops.shared.clamped import clamp_complaint, clamp_fields, clamp_of
from tinyet.ops.shared.counting import Parts, looked_up
from tinyet.ops.shared.integers import INTEGERS, check_activations, representable
from tinyet.ops.shared.table import TABLE_HEADERS, TABLE_SOURCES, every_int8, table_call
from tinyet.opset import Call, CostModel, Kernel, Lower, Reference, Refuse, Struct, library_call

# TINYET_BROADCAST_LOOPS in tinyet_broadcast.h: dimensions outside the innermost.
MAX_LOOPS = 5


@dataclass(frozen=True)
class Arithmetic(Attrs):
    """inputs: a, b, which broadcast; either may be a constant. clamp: real bounds of the fused activation."""

    clamp: tuple[float, float] = NO_CLAMP


def infer(node: Node) -> tuple[Shape, ...]:
    """The common shape of inputs 0 and 1 by numpy's rule; raises UnsupportedShape."""
    shapes = node.input(0).shape, node.input(1).shape
    try:
        return (tuple(np.broadcast_shapes(*shapes)),)
    except ValueError:
        raise UnsupportedShape(
            f"{node.op}: {shapes[0]} and {shapes[1]} do not broadcast", node.where
        ) from None


def check_elementwise(node: Node, integers: Sequence[DType] = (DType.INT8,)) -> str | None:
    """The type rule: everything float32, or everything one of `integers` with one scale a tensor."""
    tensors = [*(t for t in node.inputs if t is not None), *node.outputs]
    dtypes = {t.dtype for t in tensors}
    if dtypes == {DType.FLOAT32}:
        return None
    if dtypes not in [{dtype} for dtype in integers]:
        return "no form for " + ", ".join(t.dtype.value for t in tensors)
    return check_activations(*tensors)


def check_same_scale(node: Node) -> str | None:
    """check_elementwise, and one quantization for all integer tensors."""
    complaint = check_elementwise(node, INTEGERS)
    if complaint is None and len({t.type.quant for t in (*node.inputs, *node.outputs) if t is not None}) > 1:
        return "inputs and output must share one quantization"
    return complaint


def check_scaled(node: Node, fits: Callable[[], bool], integers: Sequence[DType] = INTEGERS) -> str | None:
    """check_elementwise, and that the factors of an integer node suit the kernels, by `fits`."""
    complaint = check_elementwise(node, integers)
    if complaint is None and isinstance(node.attrs, Arithmetic):
        complaint = clamp_complaint(node)
    if complaint is not None or node.output.dtype is DType.FLOAT32:
        return complaint
    return None if representable(fits) else "the output's scale is too small for the inputs'"


def operands(inputs: Sequence[Array | None]) -> tuple[Array, Array]:
    """Both arrays of a node of two operands."""
    a, b = inputs
    assert a is not None
    assert b is not None
    return a, b


def scales(node: Node) -> tuple[np.float32, np.float32, np.float32]:
    """Of both operands and the output, in float32: LiteRT's factors are made of these."""
    a, b, out = (np.float32(t.type.scale) for t in (node.input(0), node.input(1), node.output))
    return a, b, out


def offset(node: Node, index: int, values: Array) -> Int64:
    """The integer values of input `index` less its zero point."""
    return np.asarray(values.astype(np.int64) - node.input(index).type.zero_point, np.int64)


# ---------------------------------------------------------------- loops


@dataclass(frozen=True)
class Loops:
    """Loops outermost first: sizes, and the elements each operand moves on in one step (0 where it
    repeats)."""

    size: tuple[int, ...]
    a_stride: tuple[int, ...]
    b_stride: tuple[int, ...]


def loops(shape: Shape, a: Shape, b: Shape) -> Loops:
    """The fewest loops that walk `shape` in order, for operands of shapes a and b that broadcast to it."""
    rank = len(shape)
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    merged: list[tuple[int, int, int]] = []
    step_a = step_b = 1
    for size, size_a, size_b in zip(reversed(shape), reversed(a), reversed(b), strict=True):
        stride_a, stride_b = (step_a if size_a != 1 else 0), (step_b if size_b != 1 else 0)
        step_a, step_b = step_a * size_a, step_b * size_b
        if size == 1:
            continue
        if merged and merged[-1][0] * merged[-1][1] == stride_a and merged[-1][0] * merged[-1][2] == stride_b:
            merged[-1] = (merged[-1][0] * size, *merged[-1][1:])
        else:
            merged.append((size, stride_a, stride_b))
    merged = merged[::-1] or [(1, 1, 1)]
    return Loops(tuple(m[0] for m in merged), tuple(m[1] for m in merged), tuple(m[2] for m in merged))


def node_loops(node: Node) -> Loops:
    return loops(node.output.shape, node.input(0).shape, node.input(1).shape)


def refuse_loops(node: Node, target: Target) -> str | None:
    """A reason when the operands repeat in too many different ways to walk."""
    count = len(node_loops(node).size)
    return f"{count} loops, at most {MAX_LOOPS + 1}" if count > MAX_LOOPS + 1 else None


def shape_struct(node: Node) -> Struct:
    """tinyet_broadcast of a node that refuse_loops does not refuse."""
    walk = node_loops(node)

    def padded(values: list[int]) -> tuple[int, ...]:
        return tuple(values) + (0,) * (MAX_LOOPS - len(values))

    def jumps(stride: tuple[int, ...]) -> tuple[int, ...]:
        # When a dimension steps, those inside it are at their ends, `inner` elements on, and go back to their
        # starts.
        inner, result = 0, []
        for size, step in zip(walk.size[-2::-1], stride[-2::-1], strict=True):
            result.append(step - inner)
            inner += (size - 1) * step
        return padded(result)

    return Struct(
        "tinyet_broadcast",
        {
            "row": walk.size[-1],
            "a_step": walk.a_stride[-1],
            "b_step": walk.b_stride[-1],
            "loops": len(walk.size) - 1,
            "size": padded(list(walk.size[-2::-1])),
            "a_jump": jumps(walk.a_stride),
            "b_jump": jumps(walk.b_stride),
        },
    )


def walked(node: Node) -> Parts:
    """TINYET_BROADCAST: rows, in which both operands move on, or one of them is repeated."""
    walk = node_loops(node)
    rows, count = math.prod(walk.size[:-1]), node.output.type.count
    together = walk.a_stride[-1] == walk.b_stride[-1] == 1
    return {
        "call": 1,
        "row": rows,
        "row ended": sum(math.prod(walk.size[:loop]) for loop in range(len(walk.size) - 1)),
        "row repeating": 0 if together else rows,
        "value": count if together else 0,
        "value repeating": 0 if together else count,
    }


# ---------------------------------------------------------------- float


def arithmetic(
    function: Callable[[float32.Float32, float32.Float32], Array],
    integer: Callable[[Node, Array, Array], Array],
) -> Reference:
    """In float one IEEE operation, then the fused clamp; `integer` is of the node and its raw operands."""

    def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        a, b = operands(inputs)
        if node.output.dtype is not DType.FLOAT32:
            return (integer(node, a, b),)
        with np.errstate(all="ignore"):
            value = np.asarray(function(a.astype(np.float32), b.astype(np.float32)), np.float32)
        return (float32.clamp(value, *clamp_of(node)),)

    return reference


def lower_f32(node: Node, _target: Target) -> Call:
    """`tinyet_<operator>_f32`, one IEEE operation."""
    params = Struct("tinyet_binary_f32_params", {"shape": shape_struct(node), **clamp_fields(node)})
    return library_call(f"tinyet_{node.op}_f32", node, [0, 1], params)


# ---------------------------------------------------------------- kernels


HEADERS = ("tinyet_binary.h", "tinyet_broadcast.h")


def kernel(
    symbol: str,
    lower: Lower,
    source: str,
    refuse: Refuse = refuse_loops,
) -> Kernel:
    """A library kernel of two operands whose symbol ends in its dtype; `refuse` must include refuse_loops."""
    return Kernel(
        symbol, symbol.rsplit("_", 1)[1], lower, HEADERS, (source,), refuse, cost_model=CostModel(walked)
    )


def plain_call(symbol: str, node: Node) -> Call:
    """The call of a kernel that wants to know the shape only."""
    params = Struct("tinyet_binary_params", {"shape": shape_struct(node)})
    return library_call(symbol, node, [0, 1], params)


# ---------------------------------------------------------------- folding


def varying_input(node: Node) -> int | None:
    """The index of the only input that matters at run time, when the output depends element by element on
    nothing else: the other is a constant of one element, or both are the same tensor. None otherwise."""
    a, b = node.input(0), node.input(1)
    if a is b:
        return None if a.is_constant else 0
    for varying, fixed, index in ((a, b, 0), (b, a, 1)):
        if fixed.is_constant and fixed.type.count == 1 and not varying.is_constant:
            return index
    return None


def table_kernel(reference: Reference, dtypes: str = "s8") -> Kernel:
    """The kernel for int8 nodes with one varying input: 256 bytes, looked up. dtypes: their signature."""

    def lower(node: Node, target: Target) -> Call:
        index = varying_input(node)
        assert index is not None
        inputs = [
            every_int8() if t is node.input(index) else t.array.reshape(-1) for t in map(node.input, (0, 1))
        ]
        return table_call(node, index, reference(node, inputs)[0])

    cost_model = CostModel(looked_up)
    return Kernel(
        "tinyet_lut_s8", dtypes, lower, TABLE_HEADERS, TABLE_SOURCES, refuse_fold, cost_model=cost_model
    )


def refuse_fold(node: Node, target: Target) -> str | None:
    return None if varying_input(node) is not None else "only where one operand is a scalar constant"
