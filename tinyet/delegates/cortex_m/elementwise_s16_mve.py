# SPDX-License-Identifier: Apache-2.0
"""int16 sums, differences and products, other scales and bounds for Helium, eight values at a time
(tinyet_elementwise_s16_mve.h): VQRDMLAH and VRSHL are the two roundings of the specification for factors below one
half, the first beside what corrects the second for values below zero. Operands are of one shape, or one has a value for
each row or column of the other. Other scales between int8 and int16, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.delegates.cortex_m.elementwise import bounds_of, extremum_bounds, walk_of
from tinyet.delegates.cortex_m.elementwise_mve import refuse_rows, rows_work
from tinyet.ir import DType, Node
from tinyet.numerics import Multiplier
from tinyet.ops import clamp, mul
from tinyet.ops.shared import addition, broadcast, rescale
from tinyet.ops.shared.clip import clip_call
from tinyet.opset import Call, CostModel, FieldValue, Kernel, Struct, library_call

SUM, SUM_PER_ROW, PRODUCT = "tinyet_add_s16_mve", "tinyet_add_s16_per_row_mve", "tinyet_mul_s16_mve"
CLIP = "tinyet_clip_s16_mve"
RESCALED = ("s16", "s16_s8", "s8_s16")
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_elementwise_s16_mve.h")
FURTHEST = 31
INT16 = (-(2**15), 2**15 - 1)
HALF = Multiplier(2**30, 0)


def refuse_right(factor: Multiplier) -> str | None:
    """Why such a factor is not a rounded shift to the right behind a product."""
    return None if -FURTHEST <= factor.shift < 0 else "a factor of one half and more, or below 2**-31"


def work(node: Node) -> Mapping[str, int]:
    eights, last = divmod(node.output.type.count, 8)
    return {"call": 1, "loop": int(eights > 0), "eight values": eights, "last values": int(last > 0)}


def kernel(
    symbol: str,
    lower: Callable[[Node, Target], Call],
    refuse: Callable[[Node], str | None],
    work: Callable[[Node], Mapping[str, int]] = work,
    dtypes: str = "s16",
) -> Kernel:
    def refused(node: Node, target: Target) -> str | None:
        return no_helium(target) or refuse(node)

    sources = (f"{symbol}.c",)
    return Kernel(symbol, dtypes, lower, HEADERS, sources, refused, "cortex_m", cost_model=CostModel(work))


# ---------------------------------------------------------------- sums and differences


def larger_first(node: Node, sign: int) -> tuple[bool, tuple[Multiplier, Multiplier, Multiplier]]:
    """Whether the operands change places so that the larger scale comes first; the factors in that order, and the
    sum's."""
    a, b, last = addition.own_scaling(node, sign).factors
    return (True, (b, a, last)) if a != HALF else (False, (a, b, last))


def refuse_sum(node: Node, sign: int, *, per_row: bool) -> str | None:
    if (reason := refuse_rows(node)) is not None:
        return reason
    walk = walk_of(node)
    assert walk is not None
    if (walk.kind == "per_row") != per_row:
        return f"only {'with' if per_row else 'without'} one value of an operand for each row of the other"
    _, (_, lesser, last) = larger_first(node, sign)
    return (None if lesser == HALF else refuse_right(lesser)) or refuse_right(last)


def sum_fields(node: Node, sign: int) -> dict[str, int]:
    """What the structs of both kernels have, in their order."""
    swapped, (_, lesser, last) = larger_first(node, sign)
    walk, (low, high) = walk_of(node), bounds_of(node)
    assert walk is not None
    return {
        "multiplier": lesser.multiplier,
        "shift": lesser.shift,
        "out_multiplier": last.multiplier,
        "out_shift": last.shift,
        "low": low,
        "high": high,
        "rows": walk.rows,
        "row": walk.row,
        "x_factor": (sign if swapped else 1) * 2**14,
        "y_sign": 1 if swapped else sign,
    }


def sums(sign: int) -> Kernel:
    """Of one shape, or with values for columns; for the operator in which b has this sign."""

    def lower(node: Node, target: Target) -> Call:
        order = [1, 0] if larger_first(node, sign)[0] else [0, 1]
        whole = node.output.type.count
        fields = sum_fields(node, sign)
        steps = {
            f"{name}_row": fields["row"] if node.input(index).type.count == whole else 0
            for name, index in zip("xy", order, strict=True)
        }
        return library_call(SUM, node, order, Struct("tinyet_add_s16_mve_params", {**fields, **steps}))

    def work_of_sums(node: Node) -> Mapping[str, int]:
        parts = rows_work(node, 8, apart=False)
        scaled = int(larger_first(node, sign)[1][1] != HALF)
        of_two = ("values at a time", "row with a rest")
        return {**parts, **{f"{part} of two scales": parts[part] * scaled for part in of_two}}

    return kernel(SUM, lower, lambda node: refuse_sum(node, sign, per_row=False), work_of_sums)


def sums_per_row(sign: int) -> Kernel:
    """With one value for each row."""

    def of_each(node: Node) -> bool:
        """Whether the values of rows are those of the smaller scale."""
        walk = walk_of(node)
        assert walk is not None
        swapped, (_, lesser, _) = larger_first(node, sign)
        return lesser == HALF or walk.swapped == swapped

    def lower(node: Node, target: Target) -> Call:
        walk, fields = walk_of(node), sum_fields(node, sign)
        assert walk is not None
        swapped, (_, lesser, _) = larger_first(node, sign)
        if lesser == HALF and walk.swapped != swapped:
            # Of equal scales either is the larger one: the one of rows is rescaled, once for each.
            fields |= {"x_factor": fields["y_sign"] * 2**14, "y_sign": fields["x_factor"] >> 14}
        struct = Struct("tinyet_add_s16_per_row_mve_params", {**fields, "of_each": int(of_each(node))})
        return library_call(SUM_PER_ROW, node, walk.order, struct)

    def work_of_sums(node: Node) -> Mapping[str, int]:
        parts, other = rows_work(node, 8, apart=False), int(not of_each(node))
        of_other = ("row", "row with a rest", "values at a time")
        rescaled = {f"{part} rescaled": parts[part] * other for part in of_other}
        return {**parts, **rescaled}

    return kernel(SUM_PER_ROW, lower, lambda node: refuse_sum(node, sign, per_row=True), work_of_sums)


# ---------------------------------------------------------------- products


def refuse_product(node: Node) -> str | None:
    return refuse_rows(node) or refuse_right(mul.factor(node))


def lower_product(node: Node, target: Target) -> Call:
    walk, factor, (low, high) = walk_of(node), mul.factor(node), bounds_of(node)
    assert walk is not None
    step = {"same": walk.row, "per_column": 0, "per_row": 1}[walk.kind]
    fields: dict[str, FieldValue] = {
        "multiplier": factor.multiplier,
        "shift": factor.shift,
        "low": low,
        "high": high,
        "rows": walk.rows,
        "row": walk.row,
        "b_row": step,
        "per_row": int(walk.kind == "per_row"),
    }
    return library_call(PRODUCT, node, walk.order, Struct("tinyet_mul_s16_mve_params", fields))


# ---------------------------------------------------------------- one operand


def refuse_rescale(factor: Callable[[Node], Multiplier]) -> Callable[[Node], str | None]:
    def refuse(node: Node) -> str | None:
        if any(t.dtype is DType.INT16 and t.type.zero_point for t in (node.input(0), node.output)):
            return "only int16 without zero points"
        shift = factor(node).shift
        most = rescale.MAX_LEFT_SHIFTS[node.input(0).dtype]
        return None if -FURTHEST <= shift <= most else f"a shift by {shift}"

    return refuse


def rescaled(
    factor: Callable[[Node], Multiplier], bounds: Callable[[Node], tuple[int, int]], dtypes: str
) -> Kernel:
    symbol = f"tinyet_requantize_{dtypes}_mve"

    def lower(node: Node, target: Target) -> Call:
        return rescale.rescale_call(node, factor(node), bounds(node), symbol)

    def work_of_shift(node: Node) -> Mapping[str, int]:
        parts = work(node)
        return {**parts, "eight values to the left": parts["eight values"] * int(factor(node).shift >= 0)}

    made = kernel(symbol, lower, refuse_rescale(factor), work_of_shift, dtypes)
    return replace(made, headers=(*HEADERS, "tinyet_rescale_mve.h"))


def clip(bounds: Callable[[Node], tuple[int, int]], refuse: Callable[[Node], str | None]) -> Kernel:
    def lower(node: Node, target: Target) -> Call:
        index = broadcast.varying_input(node) if len(node.inputs) > 1 else 0
        assert index is not None
        return clip_call(node, index, bounds(node), CLIP)

    return kernel(CLIP, lower, refuse, work_of_clip)


def refuse_clip(node: Node) -> str | None:
    return None if node.input(0).type.quant == node.output.type.quant else "only where the scale stays"


def refuse_fold(node: Node) -> str | None:
    return (
        None if broadcast.varying_input(node) is not None else "only where one operand is a scalar constant"
    )


def work_of_clip(node: Node) -> Mapping[str, int]:
    return {"call": 1, "eight values": -(-node.output.type.count // 8)}


ADD_KERNELS, SUB_KERNELS = (sums(1), sums_per_row(1)), (sums(-1), sums_per_row(-1))
MUL_KERNELS = (kernel(PRODUCT, lower_product, refuse_product, lambda node: rows_work(node, 8)),)
MAXIMUM_KERNELS = (clip(extremum_bounds(lambda c: (c, INT16[1]), INT16), refuse_fold),)
MINIMUM_KERNELS = (clip(extremum_bounds(lambda c: (INT16[0], c), INT16), refuse_fold),)
CLAMP_KERNELS = (
    clip(clamp.integer_range, refuse_clip),
    *(rescaled(clamp.factor, clamp.integer_range, dtypes) for dtypes in RESCALED),
)
REQUANTIZE_KERNELS = tuple(
    rescaled(rescale.exact_factor, lambda node: node.output.dtype.range, dtypes) for dtypes in RESCALED
)
