# SPDX-License-Identifier: Apache-2.0
"""Products of int8 matrices for Helium (tinyet_matmul_mve.h): the second one is packed in scratch as weights of a fully
connected layer are, by whose printed products each row of the first one is multiplied. Zero points are left for behind
that: sums of columns are products with ones, those of rows are added up beside."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium, vectors
from tinyet.delegates.cortex_m.linear_mve import Parts, with_printed
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.numerics import clamp_range
from tinyet.ops import matmul
from tinyet.ops.shared.clamped import clamp_of
from tinyet.opset import Call, Constant, CostModel, Exact, Kernel, Layouts
from tinyet.tiles import helium_linear
from tinyet.tiles.helium import LANES
from tinyet.tiles.helium_linear import OUTPUTS

SYMBOL = "tinyet_matmul_s8_mve"
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_linear_mve.h", "tinyet_matmul_mve.h")
SOURCES = (f"{SYMBOL}.c", "tinyet_linear_s8_1x8_mve.c")
FURTHEST = 31


class Rows(Parts):
    """Of int8, with all columns of the other matrix."""

    bits = 8


def rows_of(node: Node) -> Rows:
    """How one row becomes sums; its scratch has b, too."""
    return Rows(1, node.input(0).shape[-1], node.output.shape[-1])


def refuse(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    in_range = -FURTHEST <= matmul.factor(node).shift < 0
    return None if in_range else "a factor of one half and more, or below 2**-31"


def scratch_bytes(p: Rows) -> int:
    seen = vectors(p.size)
    return 2 * 4 * OUTPUTS * p.eights + LANES * OUTPUTS * p.eights * seen + LANES * seen


def times_of(node: Node) -> tuple[int, int, int]:
    """Products of matrices; how often b is packed; rows of all."""
    offsets = matmul.batch_offsets(node)
    packed = 1 + int(np.count_nonzero(np.diff(offsets[:, 1])))
    return len(offsets), packed, len(offsets) * node.input(0).shape[-2]


def lower(node: Node, _target: Target) -> Call:
    p, scale = rows_of(node), matmul.factor(node)
    count, rows = times_of(node)[0], node.input(0).shape[-2]
    low, high = clamp_range(clamp_of(node), node.output.type)
    offsets = matmul.batch_offsets(node) * np.array([rows * p.size, p.size * p.count])
    table = Constant("batches", offsets.astype(np.int32), "offsets of the matrices in a and in b")
    a, b = (node.input(i).type.zero_point for i in (0, 1))
    functions = [each.name for each in p.products]
    rounding = (scale.multiplier, scale.shift, node.output.type.zero_point, low, high)
    body = (
        "static const tinyet_matmul_shape_mve shape = {",
        f"    {count}, {rows}, {p.size}, {p.count}, {p.eights}, {p.parts}, {p.wider}, {p.vectors},",
        f"    {a}, {b}, {{{', '.join(map(str, rounding))}}},",
        f"    {functions[0]}, {functions[1] if len(functions) > 1 else 'NULL'}}};",
        f"{SYMBOL}(input_0, input_1, output, scratch, batches, &shape);",
    )
    summary = f"{count} times {rows} x {p.size} by {p.size} x {p.count}"
    call = specialised_call(SYMBOL, summary, [table], body, (0, 1), scratch_bytes(p))
    return with_printed(call, p.products)


def summed(node: Node) -> int:
    """Rows that are multiplied only for the sums of columns."""
    return times_of(node)[1] if node.input(0).type.zero_point else 0


def work(node: Node) -> Mapping[str, int]:
    """What is around the printed products, and what cycles grow with beside their exact instructions."""
    p, (count, packed, rows) = rows_of(node), times_of(node)
    columns, of_sums = summed(node), int(node.input(1).type.zero_point != 0)
    seen = vectors(p.size)
    return {
        "call": 1,
        "matrix": count,
        "packed matrix": packed,
        "packed row": packed * p.size,
        "packed eight": packed * p.size * p.eights,
        "vector of zeros": packed * seen * OUTPUTS * p.eights * int(p.copied),
        "sums of columns": columns,
        "eight sums of columns": columns * p.eights,
        "row": rows,
        "part": (rows + columns) * p.parts,
        "copied vector": rows * seen * int(p.copied),
        "vector of a row's sum": rows * seen * of_sums,
        "four outputs": rows * -(-p.count // 4),
        "eight outputs": (rows + columns) * p.parts * p.eights,
        "vector": (rows + columns) * p.eights * seen,
    }


def exact(node: Node, _layouts: Layouts, _core: str) -> Exact:
    p, times = rows_of(node), times_of(node)[2] + summed(node)
    functions = {each.name: helium_linear.code_bytes(each) for each in p.products}
    return Exact(instructions=times * p.instructions, cycles={}, functions=functions, reads={})


def code(node: Node) -> Mapping[str, int]:
    """Of the wrapper: what the compiler leaves out where a literal says that it is never executed."""
    p, (count, _, rows) = rows_of(node), times_of(node)
    zero_points = [int(node.input(i).type.zero_point != 0) for i in (0, 1)]
    return {
        "call": 1,
        "several products": int(count > 1),
        "several rows": int(rows > count),
        "copied row": int(p.copied),
        "several parts": int(p.wider > 1),
        "parts of two sizes": int(p.parts > p.wider),
        "sums of columns": zero_points[0],
        "sums of rows": zero_points[1],
    }


KERNELS = (
    Kernel(
        SYMBOL,
        "s8",
        lower,
        HEADERS,
        SOURCES,
        refuse,
        "cortex_m",
        cost_model=CostModel(work, code, exact=exact),
    ),
)
