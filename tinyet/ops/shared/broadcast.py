# SPDX-License-Identifier: Apache-2.0
"""What the operators of two broadcasting operands share: shapes, type rules, loops, and folding of constant
operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, DType, Node, Shape
from tinyet.numerics import NO_CLAMP, Int64, float32
from tinyet.ops.shared.integers import INTEGERS, check_activations
from tinyet.ops.shared.table import TABLE_HEADERS, TABLE_SOURCES, every_int8, table_call
from tinyet.opset import Call, Kernel, Struct, library_call

# TINYET_BROADCAST_LOOPS in tinyet_broadcast.h: dimensions outside the innermost.
MAX_LOOPS = 5

Reference = Callable[[Node, Sequence[Array | None]], tuple[Array, ...]]


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


def operands(inputs: Sequence[Array | None]) -> tuple[Array, Array]:
    """Both arrays of a node of two operands."""
    a, b = inputs
    assert a is not None
    assert b is not None
    return a, b


def float_operands(inputs: Sequence[Array | None]) -> tuple[float32.Float32, float32.Float32]:
    """operands, as float32."""
    a, b = operands(inputs)
    return a.astype(np.float32), b.astype(np.float32)


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


# ---------------------------------------------------------------- float


def float_reference(
    function: Callable[[float32.Float32, float32.Float32], Array],
    a: Array,
    b: Array,
    clamp: tuple[float, float] = NO_CLAMP,
) -> float32.Float32:
    """One IEEE operation on float32 operands, then the fused clamp."""
    with np.errstate(all="ignore"):
        value = np.asarray(function(a.astype(np.float32), b.astype(np.float32)), np.float32)
    return float32.clamp(value, *clamp)


def float_call(symbol: str, node: Node, clamp: tuple[float, float] = NO_CLAMP) -> Call:
    params = Struct(
        "tinyet_binary_f32_params",
        {"shape": shape_struct(node), "clamp_low": clamp[0], "clamp_high": clamp[1]},
    )
    return library_call(symbol, node, [0, 1], params)


# ---------------------------------------------------------------- kernels


HEADERS = ("tinyet_binary.h", "tinyet_broadcast.h")


def kernel(
    symbol: str,
    lower: Callable[[Node, Target], Call],
    source: str,
    refuse: Callable[[Node, Target], str | None] = refuse_loops,
) -> Kernel:
    """A library kernel of two operands whose symbol ends in its dtype; `refuse` must include refuse_loops."""
    return Kernel(symbol, symbol.rsplit("_", 1)[1], lower, HEADERS, (source,), refuse)


def plain_call(symbol: str, node: Node) -> Call:
    """The call of a kernel that wants to know the shape only."""
    params = Struct("tinyet_pair_params", {"shape": shape_struct(node)})
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


def table_kernel(reference: Reference) -> Kernel:
    """The kernel for int8 nodes with one varying input: 256 bytes, looked up."""

    def lower(node: Node, target: Target) -> Call:
        index = varying_input(node)
        assert index is not None
        inputs = [
            every_int8() if t is node.input(index) else t.array.reshape(-1) for t in map(node.input, (0, 1))
        ]
        return table_call(node, index, reference(node, inputs)[0])

    return Kernel("tinyet_table_s8", "s8", lower, TABLE_HEADERS, TABLE_SOURCES, refuse_fold)


def refuse_fold(node: Node, target: Target) -> str | None:
    return None if varying_input(node) is not None else "only where one operand is a scalar constant"


def clip_call(node: Node, bounds: Callable[[int], tuple[int, int]]) -> Call:
    """minimum or maximum with a scalar constant, whose raw value gives the `bounds` of a clip."""
    index = varying_input(node)
    assert index is not None
    other = node.input(1 - index)
    low, high = bounds(int(other.array.reshape(-1)[0])) if other.is_constant else node.output.dtype.range
    params = Struct("tinyet_clip_params", {"low": low, "high": high, "count": node.output.type.count})
    return library_call(f"tinyet_clip_{node.output.dtype.suffix}", node, [index], params)


def clip_kernels(lower: Callable[[Node, Target], Call]) -> tuple[Kernel, ...]:
    """One for each integer type."""

    def kernel(dtypes: str) -> Kernel:
        symbol = f"tinyet_clip_{dtypes}"
        return Kernel(symbol, dtypes, lower, ("tinyet_clip.h",), (f"{symbol}.c",), refuse_fold)

    return kernel("s8"), kernel("s16")
