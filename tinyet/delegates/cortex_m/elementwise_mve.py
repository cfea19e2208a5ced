# SPDX-License-Identifier: Apache-2.0
"""int8 arithmetic element by element for Helium (tinyet_elementwise_mve.h): sums and differences, sixteen values at a
time, are one affine form with 21 or 22 fraction bits, proved exact for every pair of values; products, eight at a time,
have the two roundings of the specification. The larger and the lesser of two, of int16, too, and bounds.

Operands are of one shape, or one has a value for each row or column of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium, refuse_core
from tinyet.delegates.cortex_m.elementwise import INT8, bounds_of, extremum_bounds, refuse_walk, walk_of
from tinyet.delegates.cortex_m.rounding_mve import HEADERS_EVEN
from tinyet.ir import Node
from tinyet.ops import clamp, mul
from tinyet.ops.shared import addition, affine, broadcast
from tinyet.ops.shared.addition import HalfEvenScaling, Scaling
from tinyet.ops.shared.affine import INT32_LIMIT, Affine
from tinyet.ops.shared.clip import clip_call
from tinyet.ops.shared.factors import above_int8
from tinyet.opset import Call, CostModel, FieldValue, Kernel, Refuse, Struct, library_call

SYMBOL, ROWS, PRODUCT = "tinyet_affine_s8_same_mve", "tinyet_affine_s8_rows_mve", "tinyet_mul_s8_mve"
PRODUCT_EVEN, CLIP = "tinyet_mul_s8_rne_mve", "tinyet_clip_s8_mve"
FURTHEST = 31
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_elementwise_mve.h")
SHIFTS = (6, 5)
"""The second of two rounding shifts, behind one by 16: one has finer factors, one leaves sums more room."""


@lru_cache(maxsize=1024)
def form_of(s: Scaling | HalfEvenScaling) -> Affine | None:
    """Its offset and its shift are those of the C form."""
    every = np.arange(-128, 128, dtype=np.int8)
    a, b = every[:, None], every[None, :]
    wide = a.astype(np.int64), b.astype(np.int64)
    want, (ratio_a, ratio_b) = s.apply(a, b), s.ratios
    for shift in SHIFTS:
        found = affine.find_at(*wide, want, (float(ratio_a), float(ratio_b)), s.clamp, 16 + shift)
        if found is None:
            continue
        sums = np.abs(found.a * wide[0]) + np.abs(found.b * wide[1])
        rounding = 2**15 + 2 ** (15 + shift)
        if int(sums.max()) + abs(found.c) + rounding <= INT32_LIMIT:
            return Affine(found.a, found.b, found.c - rounding, shift)
    return None


def work(node: Node) -> Mapping[str, int]:
    sixteens, last = divmod(node.output.type.count, 16)
    clamped = bounds_of(node) != INT8
    return {
        "call": 1,
        "sixteen values": sixteens,
        "sixteen values within bounds": sixteens * int(clamped),
        "last value": last,
    }


ScalingOf = Callable[[Node], Scaling | HalfEvenScaling]
SUM: ScalingOf = partial(addition.own_scaling, sign=1)
DIFFERENCE: ScalingOf = partial(addition.own_scaling, sign=-1)


def same(scaling_of: ScalingOf, dtypes: str = "s8") -> Kernel:
    """For an operator of such sums."""

    def refuse(node: Node, target: Target) -> str | None:
        if (reason := no_helium(target) or refuse_walk(node, "same")) is not None:
            return reason
        found = form_of(scaling_of(node))
        return "no affine form of 21 or 22 fraction bits is exact for these scales" if found is None else None

    def lower(node: Node, target: Target) -> Call:
        s = scaling_of(node)
        found = form_of(s)
        assert found is not None
        low, high = s.clamp
        fields = {
            "count": node.output.type.count,
            "a_factor": found.a,
            "b_factor": found.b,
            "offset": found.c,
            "shift": found.shift,
        }
        return library_call(
            SYMBOL, node, [0, 1], Struct("tinyet_affine_s8_mve_params", {**fields, "low": low, "high": high})
        )

    return Kernel(
        SYMBOL, dtypes, lower, HEADERS, (f"{SYMBOL}.c",), refuse, "cortex_m", cost_model=CostModel(work)
    )


# ---------------------------------------------------------------- rows


def refuse_rows(node: Node) -> str | None:
    found = walk_of(node)
    return "operands that repeat neither by rows nor by columns" if found is None else None


def rows_struct(node: Node) -> Struct:
    """The tinyet_rows_mve of a node that refuse_rows does not refuse."""
    walk = walk_of(node)
    assert walk is not None
    step = {"same": walk.row, "per_column": 0, "per_row": 1}[walk.kind]
    fields = {"rows": walk.rows, "row": walk.row, "step": step, "per_row": int(walk.kind == "per_row")}
    return Struct("tinyet_rows_mve", fields)


def rows_work(node: Node, lanes: int, *, apart: bool = True) -> Mapping[str, int]:
    """Of rows that are walked so many values at a time. apart: whether those with one value of the other operand, for
    which that is not loaded again and again, are parts of their own."""
    walk = walk_of(node)
    assert walk is not None
    whole, last = divmod(walk.row, lanes)
    parts = {
        "row": walk.rows,
        "row with a loop": walk.rows * int(whole > 0),
        "row with a rest": walk.rows * int(last > 0),
        "values at a time": walk.rows * whole,
    }
    if apart:
        by_one = walk.kind == "per_row"
        parts = by_kind(parts, "by one", chosen=by_one)
    return {"call": 1, **parts}


def by_kind(parts: Mapping[str, int], kind: str, *, chosen: bool) -> dict[str, int]:
    """The same parts twice: as they are, and of a kind; one of both is nothing."""
    none = dict.fromkeys(parts, 0)
    plain, others = (none, parts) if chosen else (parts, none)
    return {**plain, **{f"{name} {kind}": times for name, times in others.items()}}


def in_rows(scaling_of: ScalingOf, dtypes: str = "s8") -> Kernel:
    """Sums of values for columns or rows; for an operator of such sums."""

    def refuse(node: Node, target: Target) -> str | None:
        if (reason := no_helium(target) or refuse_rows(node)) is not None:
            return reason
        found = form_of(scaling_of(node))
        return "no affine form of 21 or 22 fraction bits is exact for these scales" if found is None else None

    def lower(node: Node, target: Target) -> Call:
        s, walk = scaling_of(node), walk_of(node)
        found = form_of(s)
        assert found is not None
        assert walk is not None
        a, b = (found.b, found.a) if walk.swapped else (found.a, found.b)
        fields: dict[str, FieldValue] = {"walk": rows_struct(node), "a_factor": a, "b_factor": b}
        fields |= {"offset": found.c, "shift": found.shift, "low": s.clamp[0], "high": s.clamp[1]}
        return library_call(ROWS, node, walk.order, Struct("tinyet_affine_s8_rows_mve_params", fields))

    def work_of(node: Node) -> Mapping[str, int]:
        walk = walk_of(node)
        assert walk is not None
        fours = {"four last values": walk.rows * -(-(walk.row % 16) // 4)}
        return {**rows_work(node, 16), **by_kind(fours, "by one", chosen=walk.kind == "per_row")}

    sources = (f"{ROWS}.c",)
    return Kernel(ROWS, dtypes, lower, HEADERS, sources, refuse, "cortex_m", cost_model=CostModel(work_of))


# ---------------------------------------------------------------- products


def refuse_product(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target) or refuse_rows(node)) is not None:
        return reason
    in_range = -FURTHEST <= mul.factor(node).shift < 0
    return None if in_range else "a factor of one half and more, or below 2**-31"


def refuse_even_product(node: Node, target: Target) -> str | None:
    return refuse_core(node, target) or refuse_rows(node)


def lower_product(node: Node, _target: Target) -> Call:
    scale = mul.factor(node)
    return product_call(PRODUCT, node, scale.multiplier, scale.shift, node.output.type.zero_point)


def lower_even_product(node: Node, _target: Target) -> Call:
    above = above_int8(node)
    floats = np.array([mul.half_even_factor(node), node.output.type.zero_point + above], np.float32)
    factor, added = map(int, floats.view(np.int32))
    return product_call(PRODUCT_EVEN, node, factor, added, -above)


def product_call(symbol: str, node: Node, multiplier: int, shift: int, zero_point: int) -> Call:
    walk, (low, high) = walk_of(node), bounds_of(node)
    assert walk is not None
    a, b = (node.input(i).type.zero_point for i in walk.order)
    fields: dict[str, FieldValue] = {
        "walk": rows_struct(node),
        "a_zero_point": a,
        "b_zero_point": b,
        "zero_point": zero_point,
        "multiplier": multiplier,
        "shift": shift,
        "low": low,
        "high": high,
    }
    return library_call(symbol, node, walk.order, Struct("tinyet_mul_s8_mve_params", fields))


# ---------------------------------------------------------------- the larger, the lesser, bounds


def extremum(name: str, dtype: str) -> Kernel:
    symbol = f"tinyet_{name}_{dtype}_mve"
    lanes = 16 if dtype == "s8" else 8

    def refuse(node: Node, target: Target) -> str | None:
        return no_helium(target) or refuse_rows(node)

    def lower(node: Node, target: Target) -> Call:
        walk = walk_of(node)
        assert walk is not None
        return library_call(symbol, node, walk.order, rows_struct(node))

    def work_of(node: Node) -> Mapping[str, int]:
        walk = walk_of(node)
        assert walk is not None
        vectors, per_row = walk.rows * -(-walk.row // lanes), int(walk.kind == "per_row")
        return {"call": 1, "row": walk.rows, "vector": vectors, "vector by one": vectors * per_row}

    sources = (f"{symbol}.c",)
    return Kernel(symbol, dtype, lower, HEADERS, sources, refuse, "cortex_m", cost_model=CostModel(work_of))


def clip(bounds: Callable[[Node], tuple[int, int]], refuse: Refuse) -> Kernel:
    """One operand within bounds."""

    def refused(node: Node, target: Target) -> str | None:
        return no_helium(target) or refuse(node, target)

    def lower(node: Node, target: Target) -> Call:
        index = broadcast.varying_input(node) if len(node.inputs) > 1 else 0
        assert index is not None
        return clip_call(node, index, bounds(node), CLIP)

    def work_of(node: Node) -> Mapping[str, int]:
        return {"call": 1, "sixteen values": -(-node.output.type.count // 16)}

    sources = (f"{CLIP}.c",)
    return Kernel(CLIP, "s8", lower, HEADERS, sources, refused, "cortex_m", cost_model=CostModel(work_of))


ADD_KERNELS = (
    *(same(SUM), in_rows(SUM)),
    *(make(addition.own_half_even_scaling, "s8_rne") for make in (same, in_rows)),
)
SUB_KERNELS = (same(DIFFERENCE), in_rows(DIFFERENCE))
MUL_KERNELS = (
    Kernel(
        PRODUCT,
        "s8",
        lower_product,
        (*HEADERS, "tinyet_elementwise_s16_mve.h"),
        (f"{PRODUCT}.c",),
        refuse_product,
        "cortex_m",
        cost_model=CostModel(lambda node: rows_work(node, 8)),
    ),
    Kernel(
        PRODUCT_EVEN,
        "s8_rne",
        lower_even_product,
        (*HEADERS, "tinyet_elementwise_s16_mve.h", *HEADERS_EVEN),
        (f"{PRODUCT_EVEN}.c",),
        refuse_even_product,
        "cortex_m",
        cost_model=CostModel(lambda node: rows_work(node, 8)),
    ),
)
MAXIMUM_KERNELS = (
    clip(extremum_bounds(lambda c: (c, INT8[1])), broadcast.refuse_fold),
    extremum("maximum", "s8"),
    extremum("maximum", "s16"),
)
MINIMUM_KERNELS = (
    clip(extremum_bounds(lambda c: (INT8[0], c)), broadcast.refuse_fold),
    extremum("minimum", "s8"),
    extremum("minimum", "s16"),
)
CLAMP_KERNELS = (clip(clamp.integer_range, clamp.refuse_clip),)
