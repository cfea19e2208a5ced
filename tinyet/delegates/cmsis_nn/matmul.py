# SPDX-License-Identifier: Apache-2.0
"""Products of matrices. The library wants the second one transposed: it is done ahead of time, or in scratch memory."""

from __future__ import annotations

import math

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn import buffer_sizes
from tinyet.delegates.cmsis_nn.buffer_sizes import code_of, round_up
from tinyet.delegates.cmsis_nn.movement import MOST, transposition
from tinyet.delegates.cmsis_nn.weighted import MOST_SUM, SUM_REASON, per_tensor_quant
from tinyet.delegates.cmsis_nn.wrapper import Local, checked, delegated_call, dims, kernel, pair
from tinyet.ir import Node, Shape
from tinyet.numerics import clamp_range
from tinyet.ops.matmul import factor
from tinyet.ops.shared.clamped import clamp_of
from tinyet.opset import Call, Constant


def batches(node: Node) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """(outer, inner) numbers of matrices of a and of b, each as many as the output or one, or None."""
    a, b = node.input(0).shape[:-2], node.input(1).shape[:-2]
    if math.prod(a) == 1 or math.prod(b) == 1 or strip(a) == strip(b):
        return (1, math.prod(a)), (1, math.prod(b))
    if max(len(strip(a)), len(strip(b))) > 2:
        return None
    return two(a), two(b)


def strip(shape: Shape) -> Shape:
    """Without ones in front."""
    return strip(shape[1:]) if shape and shape[0] == 1 else shape


def two(shape: Shape) -> tuple[int, int]:
    outer, inner = (1, 1, *strip(shape))[-2:]
    return outer, inner


def moves(node: Node) -> bool:
    """Transposing b moves its values."""
    return min(node.input(1).shape[-2:]) > 1


def refuse(node: Node, _target: Target) -> str | None:
    depth, columns = node.input(1).shape[-2:]
    if batches(node) is None:
        return "more than two dimensions of matrices that broadcast"
    if (255 * 255 * depth) << max(factor(node).shift, 0) >= MOST_SUM:
        return SUM_REASON
    return f"a matrix of {depth}x{columns}" if max(depth, columns) > MOST // 8 else None


def lower(node: Node, target: Target) -> Call:
    code, both = code_of(target), batches(node)
    assert both is not None
    (outer_a, inner_a), (outer_b, inner_b) = both
    rows, depth = node.input(0).shape[-2:]
    columns = node.output.shape[-1]
    scale, out = factor(node), node.output.type
    low, high = clamp_range(clamp_of(node), out)
    offsets = (
        ("input offset", str(-node.input(0).type.zero_point)),
        ("filter offset", str(-node.input(1).type.zero_point)),
        ("output offset", str(out.zero_point)),
        ("clamp", pair(low, high)),
    )
    fields = ", ".join(f"/* {what} */ {value}" for what, value in offsets)
    sums = buffer_sizes.batch_matmul_s8(code, columns)
    statements: list[Local | str] = []
    constants: list[Constant] = []
    inputs: tuple[int, ...] = (0, 1)
    scratch, a, b = sums, "input_0", "input_1"
    if node.input(1).is_constant:
        transposed = np.ascontiguousarray(np.swapaxes(node.input(1).array, -1, -2))
        constants.append(Constant("transposed", transposed, "the second matrix, transposed"))
        inputs, a, b = (0,), "input", "transposed"
    elif moves(node):
        scratch = round_up(sums, 8) + node.input(1).type.count
        statements.append(f"int8_t *const transposed = (int8_t *)scratch + {round_up(sums, 8)};")
        shape = (math.prod(node.input(1).shape[:-2]), depth, columns)
        sizes, order = (shape, (0, 2, 1)) if shape[0] > 1 else (shape[1:], (1, 0))
        before, arguments = transposition(sizes, order, code, b, "transposed")
        call = f"arm_transpose_s8({', '.join(arguments)})"
        statements += [*before, f"if ({call} != ARM_CMSIS_NN_SUCCESS) return TINYET_DELEGATE_ERROR;"]
        b = "transposed"
    statements += [
        Local("cmsis_nn_context", "context", (("", f"scratch, {sums}" if sums else "NULL, 0"),)),
        Local("cmsis_nn_bmm_params", "params", (("", f"false, false, {{{fields}}}"),)),
        per_tensor_quant(scale.multiplier, scale.shift),
        dims("dims_0", outer_a, inner_a, rows, depth),
        dims("dims_1", outer_b, inner_b, columns, depth),
        dims("output_dims", max(outer_a, outer_b), max(inner_a, inner_b), rows, columns),
        checked(
            "arm_batch_matmul_s8",
            ["&context", "&params", "&quant", "&dims_0", a, "&dims_1", b, "&output_dims", "output"],
        ),
    ]
    text = f"{node.op} {'x'.join(map(str, node.input(0).shape))} by {'x'.join(map(str, node.input(1).shape))}"
    return delegated_call(
        "arm_batch_matmul_s8", text, statements, constants=constants, inputs=inputs, scratch_bytes=scratch
    )


KERNELS = (kernel("arm_batch_matmul_s8", "s8", lower, refuse, "arm_transpose_s8"),)
