# SPDX-License-Identifier: Apache-2.0
"""Operators that map an int8 to an int8: a table of 256 bytes computed ahead of time by the operator's own
reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Node
from tinyet.ops.shared.counting import looked_up
from tinyet.opset import (
    Call,
    Constant,
    ConstantArg,
    CostModel,
    Definition,
    InputArg,
    Kernel,
    Layouts,
    LayoutSupport,
    OutputArg,
    Pointer,
    Struct,
    accept_all,
    library_call,
    only_strides,
)

TABLE_HEADERS = ("tinyet_lut.h",)
TABLE_SOURCES = ("tinyet_lut_s8.c",)


def every_int8() -> npt.NDArray[np.int8]:
    """All 256 values in the order of a table's entries: 0 … 127, -128 … -1, which is the order of their
    bytes."""
    return np.arange(256).astype(np.uint8).view(np.int8)


def table_call(node: Node, index: int, table: Array) -> Call:
    """Look up each element of input `index` in `table`, which is int8 (256,) in the order of every_int8."""
    params = Struct("tinyet_lut_s8_params", {"table": Pointer("table"), "count": node.output.type.count})
    return library_call("tinyet_lut_s8", node, [index], params, [Constant("table", table.reshape(256))])


def table_kernel(
    reference: Callable[[Node, Sequence[Array | None]], tuple[Array, ...]],
    refuse: Callable[[Node, Target], str | None] = accept_all,
) -> Kernel:
    """The kernel of an int8 operator of one input that works element by element."""

    def lower(node: Node, target: Target) -> Call:
        return table_call(node, 0, reference(node, [every_int8()])[0])

    def lower_pixels(node: Node, target: Target, layouts: Layouts) -> Call:
        shape = node.output.shape
        pixels, channels = math.prod(shape[:-1]), shape[-1]
        function = Definition(
            "tinyet_lut_s8",
            "TINYET_FUNCTION void",
            ("const int8_t *input", "int8_t *output", "const TINYET_ROM int8_t *table"),
            (
                f"  tinyet_lut_pixels_s8(input, output, table, /* pixels */ {pixels}, /* channels */ {channels},",
                f"      /* pixel stride */ {layouts.input or channels}, {layouts.output or channels});",
            ),
        )
        table = Constant("table", reference(node, [every_int8()])[0].reshape(256))
        return Call(function, (InputArg(0), OutputArg(0), ConstantArg("table")), None, (table,))

    cost_model = CostModel(looked_up)
    layout_support = LayoutSupport(lower_pixels, only_strides)
    return Kernel(
        "tinyet_lut_s8",
        "s8",
        lower,
        TABLE_HEADERS,
        TABLE_SOURCES,
        refuse,
        cost_model=cost_model,
        layout_support=layout_support,
    )
