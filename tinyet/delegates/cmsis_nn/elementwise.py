# SPDX-License-Identifier: Apache-2.0
"""Sums, products and extremes of two tensors, element by element."""

from __future__ import annotations

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn.buffer_sizes import Code, code_of
from tinyet.delegates.cmsis_nn.wrapper import Local, checked, delegated_call, dims, kernel
from tinyet.ir import Node
from tinyet.numerics import Multiplier, clamp_range
from tinyet.ops import add, mul
from tinyet.ops.shared.broadcast import node_loops
from tinyet.opset import Call


def refuse_broadcast(node: Node, _target: Target) -> str | None:
    """Sums and products know no broadcasting."""
    walk = node_loops(node)
    same = len(walk.size) == 1 and (walk.a_stride, walk.b_stride) == ((1,), (1,))
    return None if same else "only operands of one shape"


def rescaling(factor: Multiplier, offset: int) -> str:
    return f"/* offset, multiplier, shift */ {offset}, {factor.multiplier}, {factor.shift}"


def summary(node: Node) -> str:
    return f"{node.op} {'x'.join(map(str, node.output.shape))}"


def adding(function: str, ctype: str, node: Node) -> Call:
    s = add.scaling(node, add.attrs_of(node).clamp, 1)
    a, b, out = s.factors
    arguments = [
        "input_0",
        "input_1",
        rescaling(a, -s.zero_points[0]),
        rescaling(b, -s.zero_points[1]),
        f"/* left shift */ {s.left_shift}",
        "output",
        rescaling(out, s.zero_points[2]),
        f"/* clamp */ {s.clamp[0]}, {s.clamp[1]}",
        f"/* values */ {node.output.type.count}",
    ]
    statements = [checked(function, arguments)]
    return delegated_call(function, summary(node), statements, inputs=(0, 1), ctype=ctype)


def multiplying(function: str, ctype: str, node: Node) -> Call:
    low, high = clamp_range(mul.attrs_of(node).clamp, node.output.type)
    arguments = [
        "input_0",
        "input_1",
        f"/* offsets */ {-node.input(0).type.zero_point}, {-node.input(1).type.zero_point}",
        "output",
        rescaling(mul.factor(node), node.output.type.zero_point),
        f"/* clamp */ {low}, {high}",
        f"/* values */ {node.output.type.count}",
    ]
    statements = [checked(function, arguments)]
    return delegated_call(function, summary(node), statements, inputs=(0, 1), ctype=ctype)


def lower_add_s8(node: Node, _target: Target) -> Call:
    return adding("arm_elementwise_add_s8", "int8_t", node)


def lower_add_s16(node: Node, _target: Target) -> Call:
    return adding("arm_elementwise_add_s16", "int16_t", node)


def lower_mul_s8(node: Node, _target: Target) -> Call:
    return multiplying("arm_elementwise_mul_s8", "int8_t", node)


def refuse_mul_s16(node: Node, target: Target) -> str | None:
    """The product of -32768 and itself is 2**30: see MOST_SUM."""
    if code_of(target) is Code.DSP:
        return "the largest product is one more than the rescaling for DSP takes"
    return "only factors of one and less" if mul.factor(node).shift > 0 else refuse_broadcast(node, target)


def lower_mul_s16(node: Node, _target: Target) -> Call:
    return multiplying("arm_elementwise_mul_s16", "int16_t", node)


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


def lower_extreme(node: Node, function: str) -> Call:
    structs = extreme_dims(node)
    assert structs is not None
    arguments = ["NULL", "input_0", "&dims_0", "input_1", "&dims_1", "output", "&output_dims"]
    return delegated_call(function, summary(node), [*structs, checked(function, arguments)], inputs=(0, 1))


def lower_minimum(node: Node, _target: Target) -> Call:
    return lower_extreme(node, "arm_minimum_s8")


def lower_maximum(node: Node, _target: Target) -> Call:
    return lower_extreme(node, "arm_maximum_s8")


ADD_KERNELS = (
    kernel("arm_elementwise_add_s8", "s8", lower_add_s8, refuse_broadcast),
    kernel("arm_elementwise_add_s16", "s16", lower_add_s16, refuse_broadcast),
)
MUL_KERNELS = (
    kernel("arm_elementwise_mul_s8", "s8", lower_mul_s8, refuse_broadcast),
    kernel("arm_elementwise_mul_s16", "s16", lower_mul_s16, refuse_mul_s16),
)
MINIMUM_KERNELS = (kernel("arm_minimum_s8", "s8", lower_minimum, refuse_extreme),)
MAXIMUM_KERNELS = (kernel("arm_maximum_s8", "s8", lower_maximum, refuse_extreme),)
