# SPDX-License-Identifier: Apache-2.0
"""int8 fully connected layers for Helium: row by row (tinyet_linear_mve.h), many rows as pixels of a convolution
(linear_rows_mve.py). How a row is cut into parts, also of those with int16 activations (linear_s16_mve.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_mve
from tinyet.delegates.cortex_m.conv2d_mve import refuse_core, vectors
from tinyet.delegates.cortex_m.linear import row_count
from tinyet.delegates.cortex_m.linear_rows_mve import rows_kernel
from tinyet.delegates.cortex_m.rounding_mve import HEADERS_EVEN, RoundingMve, rounding_mve
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Array, Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import by_copied_vectors
from tinyet.ops.shared.clamped import clamp_of
from tinyet.opset import (
    Call,
    Constant,
    CostModel,
    Exact,
    Kernel,
    Layouts,
    Struct,
)
from tinyet.tiles import helium_linear
from tinyet.tiles.helium import LANES
from tinyet.tiles.helium_linear import BLOCK, MOST_VECTORS, OUTPUTS, Printed, Products, Rounding

ROW, ROWS = "tinyet_linear_s8_1x8_mve", "tinyet_linear_s8_4x2_mve"
ROW_EVEN, ROWS_EVEN = "tinyet_linear_s8_rne_1x8_mve", "tinyet_linear_s8_rne_4x2_mve"
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_linear_mve.h")


def rounding_of(node: Node) -> RoundingMve:
    return rounding_mve(node, clamp_of(node))


def refuse(node: Node, target: Target) -> str | None:
    return refuse_core(node, target) or rounding_of(node).refused


@dataclass(frozen=True)
class Parts:
    """How rows of `size` bytes become sums.

    parts: of a row, the first `wider` of `vectors` vectors, the others of one less. eights: of places of outputs.
    """

    bits: ClassVar[int]
    rows: int
    size: int
    count: int

    @property
    def eights(self) -> int:
        return -(-self.count // OUTPUTS)

    @property
    def parts(self) -> int:
        return -(-vectors(self.size) // MOST_VECTORS)

    @property
    def vectors(self) -> int:
        return -(-vectors(self.size) // self.parts)

    @property
    def wider(self) -> int:
        return vectors(self.size) - self.parts * (self.vectors - 1)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Vectors of each part."""
        return (self.vectors,) * self.wider + (self.vectors - 1,) * (self.parts - self.wider)

    @property
    def copied(self) -> bool:
        """Whether rows are copied, since they are no whole vectors."""
        return self.size % LANES != 0

    @property
    def scratch_bytes(self) -> int:
        return 4 * OUTPUTS * self.eights + (self.size + 2 * LANES if self.copied else 0)

    @property
    def products(self) -> tuple[Products, ...]:
        """Printed: of the wider parts, of the others where there are any."""
        return tuple(Products(size, self.bits) for size in dict.fromkeys(self.sizes))

    @property
    def instructions(self) -> int:
        """Of the printed products."""
        return sum(
            helium_linear.instructions(each, self.rows * count, self.rows * count * self.eights)
            for each in self.products
            for count in [self.sizes.count(each.vectors)]
        )

    def body(self, symbol: str, shape: str, outputs: str, rounding: Struct) -> tuple[str, ...]:
        """The C of a call of the kernel. shape: the type of its shape; outputs: what makes them, the shape's last
        members."""
        depth = 8 * self.size // self.bits
        numbers = (self.rows, depth, self.count, self.eights, self.parts, self.wider, self.vectors)
        functions = [each.name for each in self.products]
        return (
            f"static const {shape} shape = {{",
            f"    {', '.join(map(str, numbers))}, {{{', '.join(map(str, rounding.fields.values()))}}},",
            f"    {functions[0]}, {functions[1] if len(functions) > 1 else 'NULL'},",
            f"    {outputs}}};",
            f"{symbol}(input, output, scratch, weights, &shape);",
        )

    def packed(self, weights: Int64, bias: Int64, places: Int64) -> Array:
        """The stream of tinyet_linear_mve.h up to the rounding, int8. weights: (outputs, inputs)."""
        lanes = 8 * LANES // self.bits
        filled = np.pad(weights, ((0, 1), (0, -weights.shape[1] % lanes))).astype(np.int8)[places]
        eights = filled.reshape(self.eights, OUTPUTS, -1, lanes).swapaxes(
            1, 2
        )  # (eights, vectors, outputs, lanes)
        parts = np.split(eights, np.cumsum(self.sizes)[:-1], axis=1)
        biases = np.pad(bias, (0, 1))[places].astype("<i4").view(np.int8)
        return np.concatenate([biases, *(part.ravel() for part in parts)])


@dataclass(frozen=True)
class RowPlan(Parts):
    """How a row becomes outputs of int8."""

    bits = 8
    rounding: Rounding

    @property
    def blocks(self) -> int:
        """Of sixteen outputs, of a row."""
        return self.count // BLOCK

    @property
    def printed(self) -> tuple[Printed, ...]:
        return (*self.products, *([self.rounding] if self.blocks else []))

    @property
    def places(self) -> Int64:
        """The output of each place of tinyet_linear_mve.h; behind the last one `count`."""
        whole = np.arange(self.count - self.count % BLOCK).reshape(-1, BLOCK // 4, 4).swapaxes(1, 2).ravel()
        left = np.arange(len(whole), OUTPUTS * self.eights)
        return np.concatenate([whole, np.minimum(left, self.count)])


def row_plan(node: Node) -> RowPlan:
    (count, depth), r = node.input(1).shape, rounding_of(node)
    lowest = r.one_sided and r.zero_point == -128 == r.low
    rounding = Rounding(not r.corrects, r.low > -128, r.high < 127, lowest, r.even)
    return RowPlan(row_count(node), depth, count, rounding)


def stream(p: RowPlan, r: RoundingMve) -> Array:
    """The stream of tinyet_linear_mve.h, int8."""
    ends = [
        np.pad(values, (0, 1), constant_values=value)[p.places].astype(kind).view(np.int8).reshape(-1, size)
        for values, value, kind, size in ((r.multiplier, 2**30, "<i4", 16), (r.shift, -1, "i1", 4))
        if kind == "<i4" or not r.even
    ]
    return np.concatenate([p.packed(r.weights, r.bias, p.places), np.concatenate(ends, axis=1).ravel()])


def lower(node: Node, target: Target) -> Call:
    p, r = row_plan(node), rounding_of(node)
    last = f"tinyet_linear_last_outputs_{'rne_' if r.even else ''}mve"
    outputs = f"{p.rounding.name if p.blocks else 'NULL'}, {last if p.count % BLOCK else 'NULL'}"
    outputs += f", {(4 if r.even else 5) * BLOCK}"
    constant = Constant(
        "weights", stream(p, r), "bias and weights of eight outputs after another, then the rounding"
    )
    comment = f"{p.rows} x {p.size} -> {p.count}, fully connected"
    body = p.body(ROW, "tinyet_linear_shape_mve", outputs, r.struct)
    symbol = ROW_EVEN if r.even else ROW
    call = specialised_call(symbol, comment, [constant], body, scratch_bytes=p.scratch_bytes)
    return with_printed(call, p.printed)


def with_printed(call: Call, printed: Sequence[Printed]) -> Call:
    files = {name: text for each in printed for name, text in helium_linear.files(each).items()}
    return replace(call, files=files)


def work(node: Node) -> Mapping[str, int]:
    """What is around the printed functions, and what cycles grow with beside their exact instructions."""
    p = row_plan(node)
    side = "one-sided" if p.rounding.one_sided else "two-sided"  # rounded to even, all are the former
    left = p.count % BLOCK
    return {
        "call": 1,
        "row": p.rows,
        "part": p.rows * p.parts,
        "copied row": p.rows if p.copied else 0,
        "copied vector": p.rows * vectors(p.size) if p.copied else 0,
        "last outputs": p.rows if left else 0,
        f"four last outputs, {side}": p.rows * -(-left // 4),
        "sixteen outputs": p.rows * p.blocks,
        "eight outputs": p.rows * p.eights * p.parts,
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
        "sixteen outputs": int(p.blocks > 0),
        "last outputs": int(p.count % BLOCK != 0),
    }


def row_exact(node: Node, _layouts: Layouts, _core: str) -> Exact:
    p = row_plan(node)
    instructions = p.instructions
    if p.blocks:
        instructions += helium_linear.instructions(p.rounding, p.rows, p.rows * p.blocks)
    functions = {each.name: helium_linear.code_bytes(each) for each in p.printed}
    return Exact(instructions=instructions, cycles={}, functions=functions, reads={})


COST_MODELS: Mapping[str, CostModel] = {
    symbol: CostModel(work, code, exact=row_exact) for symbol in (ROW, ROW_EVEN)
}

KERNELS = (
    rows_kernel(ROWS, "s8", conv2d_mve.SOURCES, refuse, conv2d_mve.plan_of, rounding_of, 1),
    Kernel(ROW, "s8", lower, HEADERS, (f"{ROW}.c",), refuse, "cortex_m", access_order=by_copied_vectors),
    rows_kernel(
        ROWS_EVEN,
        "s8_rne",
        conv2d_mve.SOURCES_EVEN,
        refuse,
        conv2d_mve.plan_of,
        rounding_of,
        1,
        HEADERS_EVEN,
    ),
    Kernel(
        ROW_EVEN,
        "s8_rne",
        lower,
        (*HEADERS, *HEADERS_EVEN),
        (f"{ROW}.c", f"{ROW_EVEN}.c"),
        refuse,
        "cortex_m",
        access_order=by_copied_vectors,
    ),
)
