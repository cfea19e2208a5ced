# SPDX-License-Identifier: Apache-2.0
"""PReLU of int8 and int16 for Helium, eight values at a time (tinyet_prelu_mve.h); a slope for each value, or one for
each row or column."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.delegates.cortex_m.elementwise import walk_of
from tinyet.delegates.cortex_m.elementwise_mve import refuse_rows, rows_struct, rows_work
from tinyet.ir import DType, Node
from tinyet.ops import prelu
from tinyet.opset import Call, CostModel, FieldValue, Kernel, Struct, library_call

HEADERS = (
    "tinyet_dsp.h",
    "tinyet_mve.h",
    "tinyet_elementwise_mve.h",
    "tinyet_elementwise_s16_mve.h",
    "tinyet_prelu_mve.h",
)
FURTHEST = 31


def symbol_of(dtype: str) -> str:
    return f"tinyet_prelu_{dtype}_mve"


def refuse(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target) or refuse_rows(node)) is not None:
        return reason
    walk = walk_of(node)
    assert walk is not None
    if walk.swapped:
        return "more slopes than values"
    if node.output.dtype is DType.INT16 and any(t.type.zero_point for t in (node.input(0), node.output)):
        return "only int16 without zero points"
    positive, negative = prelu.factors(node)
    if not -FURTHEST <= negative.shift < 0 or positive.shift < -FURTHEST:
        return "a factor of one half and more below zero, or one below 2**-31"
    return None


def lower(node: Node, _target: Target) -> Call:
    positive, negative = prelu.factors(node)
    fields: dict[str, FieldValue] = {
        "walk": rows_struct(node),
        "zero_point": node.input(0).type.zero_point,
        "slope_zero_point": node.input(1).type.zero_point,
        "out_zero_point": node.output.type.zero_point,
        "positive_multiplier": positive.multiplier,
        "positive_shift": positive.shift,
        "negative_multiplier": negative.multiplier,
        "negative_shift": negative.shift,
    }
    symbol = symbol_of(node.output.dtype.suffix)
    return library_call(symbol, node, [0, 1], Struct("tinyet_prelu_mve_params", fields))


def work(node: Node) -> Mapping[str, int]:
    parts, right = rows_work(node, 8), int(prelu.factors(node)[0].shift < 0)
    kinds = [f"{part}{kind}" for part in ("values at a time", "row with a rest") for kind in ("", " by one")]
    return {**parts, **{f"{part} to the right": parts[part] * right for part in kinds}}


KERNELS = tuple(
    Kernel(
        symbol_of(dtype),
        dtype,
        lower,
        HEADERS,
        (f"{symbol_of(dtype)}.c",),
        refuse,
        "cortex_m",
        cost_model=CostModel(work),
    )
    for dtype in ("s8", "s16")
)
