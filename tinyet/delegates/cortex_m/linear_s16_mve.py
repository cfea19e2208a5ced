# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers with int16 activations for Helium: row by row (tinyet_linear_mve.h), many rows as pixels of a
convolution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_s16_mve
from tinyet.delegates.cortex_m.conv2d_mve import struct_of, vectors
from tinyet.delegates.cortex_m.conv2d_s16_mve import BYTES, plan_in_bytes, refuse_rounding, rounding_of
from tinyet.delegates.cortex_m.linear import row_count
from tinyet.delegates.cortex_m.linear_mve import HEADERS, Parts, with_printed
from tinyet.delegates.cortex_m.linear_rows_mve import rows_kernel
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Array, Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import by_copied_vectors
from tinyet.opset import Call, Constant, CostModel, Exact, Kernel, Layouts
from tinyet.tiles import helium_linear, int16
from tinyet.tiles.helium_linear import OUTPUTS, Printed, Rounding16

ROW, ROWS = "tinyet_linear_s16_1x8_mve", "tinyet_linear_s16_4x2_mve"


@dataclass(frozen=True)
class RowPlan(Parts):
    """How a row becomes outputs of int16."""

    bits = 16
    rounding: Rounding16

    @property
    def printed(self) -> tuple[Printed, ...]:
        return (*self.products, self.rounding)

    @property
    def places(self) -> Int64:
        """The output of each place of tinyet_linear_mve.h; behind the last one `count`."""
        eights = np.arange(OUTPUTS * self.eights).reshape(-1, OUTPUTS // 2, 2).swapaxes(1, 2).ravel()
        return np.asarray(np.minimum(eights, self.count), np.int64)


def row_plan(node: Node) -> RowPlan:
    (count, depth), r = node.input(1).shape, rounding_of(node)
    rounding = Rounding16(r.exponent, r.low > int16.LOW, r.high < int16.HIGH, count % OUTPUTS != 0)
    return RowPlan(row_count(node), BYTES * depth, count, rounding)


def stream(node: Node) -> Array:
    """The stream of tinyet_linear_mve.h, int8."""
    p, r = row_plan(node), rounding_of(node)
    multipliers = np.pad(r.multiplier, (0, 1))[p.places].astype("<i4").view(np.int8)
    return np.concatenate([p.packed(r.weights, r.bias, p.places), multipliers])


def lower(node: Node, target: Target) -> Call:
    p = row_plan(node)
    constant = Constant(
        "weights", stream(node), "bias and weights of eight outputs after another, then the multipliers"
    )
    comment = f"{p.rows} x {p.size // BYTES} -> {p.count}, fully connected, int16"
    body = p.body(ROW, "tinyet_linear_s16_shape_mve", p.rounding.name, struct_of(rounding_of(node)))
    call = specialised_call(ROW, comment, [constant], body, scratch_bytes=p.scratch_bytes, element="int16_t")
    return with_printed(call, p.printed)


def work(node: Node) -> Mapping[str, int]:
    """What is around the printed functions, and what cycles grow with beside their exact instructions."""
    p = row_plan(node)
    return {
        "call": 1,
        "row": p.rows,
        "part": p.rows * p.parts,
        "copied row": p.rows if p.copied else 0,
        "copied vector": p.rows * vectors(p.size) if p.copied else 0,
        "eight outputs": p.rows * p.eights * p.parts,
        "eight rounded outputs": p.rows * p.eights,
        "vector": p.rows * p.eights * vectors(p.size),
    }


def code(node: Node) -> Mapping[str, int]:
    """Of the wrapper: what the compiler leaves out where a literal says that it is never executed."""
    p = row_plan(node)
    return {
        "call": 1,
        "rows": int(p.rows > 1),
        "copied row": int(p.copied),
        "several parts": int(p.wider > 1),
        "parts of two sizes": int(p.parts > p.wider),
    }


def row_exact(node: Node, _layouts: Layouts, _core: str) -> Exact:
    p = row_plan(node)
    rounded = helium_linear.instructions(p.rounding, p.rows, p.rows * p.eights)
    functions = {each.name: helium_linear.code_bytes(each) for each in p.printed}
    return Exact(instructions=p.instructions + rounded, cycles={}, functions=functions, reads={})


COST_MODELS: Mapping[str, CostModel] = {ROW: CostModel(work, code, exact=row_exact)}

KERNELS = (
    rows_kernel(ROWS, "s16", conv2d_s16_mve.SOURCES, refuse_rounding, plan_in_bytes, rounding_of, BYTES),
    Kernel(
        ROW,
        "s16",
        lower,
        HEADERS,
        (f"{ROW}.c",),
        refuse_rounding,
        "cortex_m",
        access_order=by_copied_vectors,
    ),
)
