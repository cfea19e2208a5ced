# SPDX-License-Identifier: Apache-2.0
"""Sums, products and extremes of two tensors, element by element."""

from __future__ import annotations

from collections.abc import Callable

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn.buffer_sizes import Code, code_of
from tinyet.delegates.cmsis_nn.wrapper import Local, checked, delegated_call, dims, kernel
from tinyet.ir import DType, Node
from tinyet.numerics import Multiplier, clamp_range
from tinyet.ops import mul
from tinyet.ops.shared import addition
from tinyet.ops.shared.broadcast import node_loops
from tinyet.ops.shared.clamped import clamp_of
from tinyet.opset import Call, Kernel, Refuse


def refuse_broadcast(node: Node, _target: Target) -> str | None:
    """Sums and products know no broadcasting."""
    walk = node_loops(node)
    same = len(walk.size) == 1 and (walk.a_stride, walk.b_stride) == ((1,), (1,))
    return None if same else "only operands of one shape"


def rescaling(factor: Multiplier, offset: int) -> str:
    return f"/* offset, multiplier, shift */ {offset}, {factor.multiplier}, {factor.shift}"


def summary(node: Node) -> str:
    return f"{node.op} {'x'.join(map(str, node.output.shape))}"


def arithmetic(
    function: str, dtype: DType, arguments: Callable[[Node], list[str]], refuse: Refuse = refuse_broadcast
) -> Kernel:
    """Of two operands of one shape; `arguments` as the function has them, before the number of values."""

    def lower(node: Node, _target: Target) -> Call:
        ending = checked(function, [*arguments(node), f"/* values */ {node.output.type.count}"])
        return delegated_call(function, summary(node), [ending], inputs=(0, 1), ctype=f"{dtype.value}_t")

    return kernel(function, dtype.suffix, lower, refuse)


def adding(node: Node) -> list[str]:
    s = addition.own_scaling(node, 1)
    a, b, out = s.factors
    return [
        "input_0",
        "input_1",
        rescaling(a, -s.zero_points[0]),
        rescaling(b, -s.zero_points[1]),
        f"/* left shift */ {s.left_shift}",
        "output",
        rescaling(out, s.zero_points[2]),
        f"/* clamp */ {s.clamp[0]}, {s.clamp[1]}",
    ]


def multiplying(node: Node) -> list[str]:
    low, high = clamp_range(clamp_of(node), node.output.type)
    return [
        "input_0",
        "input_1",
        f"/* offsets */ {-node.input(0).type.zero_point}, {-node.input(1).type.zero_point}",
        "output",
        rescaling(mul.factor(node), node.output.type.zero_point),
        f"/* clamp */ {low}, {high}",
    ]


def refuse_mul_s16(node: Node, target: Target) -> str | None:
    """The product of -32768 and itself is 2**30: see MOST_SUM."""
    if code_of(target) is Code.DSP:
        return "the largest product is one more than the rescaling for DSP takes"
    return "only factors of one and less" if mul.factor(node).shift > 0 else refuse_broadcast(node, target)


def extreme_dims(node: Node) -> tuple[Local, Local, Local] | None:
    """Dimensions of a, b and the output: of one shape, or as many rows of one operand as of the output, and of the
    other one row for all of them, or one value for each. None for other ways of broadcasting, some of which the library
    gets wrong."""
    walk = node_loops(node)
    if len(walk.size) > 2:
        return None
    rows, row = (1, *walk.size) if len(walk.size) == 1 else walk.size
    sizes = []
    for stride in (walk.a_stride, walk.b_stride):
        outer, inner = (1, *stride) if len(stride) == 1 else stride
        sizes.append((rows if outer else 1, row if inner else 1))
    if (rows, row) not in sizes:
        return None
    names = ("dims_0", "dims_1", "output_dims")
    a, b, out = (
        dims(n, *size[:1], 1, 1, size[1]) for n, size in zip(names, (*sizes, (rows, row)), strict=True)
    )
    return a, b, out


def refuse_extreme(node: Node, _target: Target) -> str | None:
    if extreme_dims(node) is None:
        return "only operands of which one repeats as a whole, or each of its values"
    return None


def extreme(function: str) -> Kernel:
    def lower(node: Node, _target: Target) -> Call:
        structs = extreme_dims(node)
        assert structs is not None
        arguments = ["NULL", "input_0", "&dims_0", "input_1", "&dims_1", "output", "&output_dims"]
        ending = checked(function, arguments)
        return delegated_call(function, summary(node), [*structs, ending], inputs=(0, 1))

    return kernel(function, "s8", lower, refuse_extreme)


ADD_KERNELS = (
    arithmetic("arm_elementwise_add_s8", DType.INT8, adding),
    arithmetic("arm_elementwise_add_s16", DType.INT16, adding),
)
MUL_KERNELS = (
    arithmetic("arm_elementwise_mul_s8", DType.INT8, multiplying),
    arithmetic("arm_elementwise_mul_s16", DType.INT16, multiplying, refuse_mul_s16),
)
MINIMUM_KERNELS = (extreme("arm_minimum_s8"),)
MAXIMUM_KERNELS = (extreme("arm_maximum_s8"),)
