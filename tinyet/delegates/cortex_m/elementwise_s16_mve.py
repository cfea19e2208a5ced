# SPDX-License-Identifier: Apache-2.0
"""int16 sums, differences and products of two tensors of one shape, other scales and bounds for Helium, eight values at
a time (tinyet_elementwise_s16_mve.h): VQRDMLAH and VRSHL are the two roundings of the specification for factors below
one half, the first beside what corrects the second for values below zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.delegates.cortex_m.elementwise import bounds_of, refuse_walk
from tinyet.ir import Node
from tinyet.numerics import Multiplier
from tinyet.ops import clamp, mul
from tinyet.ops.shared import addition, rescale
from tinyet.ops.shared.clip import clip_call
from tinyet.opset import Call, CostModel, Kernel, Struct, library_call

SUM, PRODUCT = "tinyet_sum_s16_same_mve", "tinyet_mul_s16_same_mve"
REQUANTIZE, CLIP = "tinyet_requantize_s16_mve", "tinyet_clip_s16_mve"
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_elementwise_s16_mve.h")
FURTHEST = 31
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
) -> Kernel:
    def refused(node: Node, target: Target) -> str | None:
        return no_helium(target) or refuse(node)

    sources = (f"{symbol}.c",)
    return Kernel(symbol, "s16", lower, HEADERS, sources, refused, "cortex_m", cost_model=CostModel(work))


# ---------------------------------------------------------------- sums and differences


def larger_first(node: Node, sign: int) -> tuple[bool, tuple[Multiplier, Multiplier, Multiplier]]:
    """Whether the operands change places so that the larger scale comes first; the factors in that order, and the
    sum's."""
    a, b, last = addition.own_scaling(node, sign).factors
    return (True, (b, a, last)) if a != HALF else (False, (a, b, last))


def sums(sign: int) -> Kernel:
    """For the operator in which b has this sign."""

    def refuse(node: Node) -> str | None:
        if (reason := refuse_walk(node, "same")) is not None:
            return reason
        _, (_, lesser, last) = larger_first(node, sign)
        return (None if lesser == HALF else refuse_right(lesser)) or refuse_right(last)

    def lower(node: Node, target: Target) -> Call:
        swapped, (_, lesser, last) = larger_first(node, sign)
        low, high = bounds_of(node)
        params = Struct(
            "tinyet_sum_s16_mve_params",
            {
                "multiplier": lesser.multiplier,
                "shift": lesser.shift,
                "out_multiplier": last.multiplier,
                "out_shift": last.shift,
                "low": low,
                "high": high,
                "count": node.output.type.count,
                "x_factor": (sign if swapped else 1) * 2**14,
                "y_sign": 1 if swapped else sign,
            },
        )
        return library_call(SUM, node, [1, 0] if swapped else [0, 1], params)

    def work_of_sums(node: Node) -> Mapping[str, int]:
        parts = work(node)
        scaled = int(larger_first(node, sign)[1][1] != HALF)
        return {**parts, "eight values of two scales": parts["eight values"] * scaled}

    return kernel(SUM, lower, refuse, work_of_sums)


# ---------------------------------------------------------------- products


def refuse_product(node: Node) -> str | None:
    return refuse_walk(node, "same") or refuse_right(mul.factor(node))


def lower_product(node: Node, target: Target) -> Call:
    factor, (low, high) = mul.factor(node), bounds_of(node)
    fields = {"multiplier": factor.multiplier, "shift": factor.shift, "low": low, "high": high}
    params = Struct("tinyet_mul_s16_mve_params", {**fields, "count": node.output.type.count})
    return library_call(PRODUCT, node, [0, 1], params)


# ---------------------------------------------------------------- one operand


def refuse_rescale(factor: Callable[[Node], Multiplier]) -> Callable[[Node], str | None]:
    def refuse(node: Node) -> str | None:
        if node.input(0).type.zero_point or node.output.type.zero_point:
            return "only without zero points"
        shift = factor(node).shift
        most = rescale.MAX_LEFT_SHIFTS[node.output.dtype]
        return None if -FURTHEST <= shift <= most else f"a shift by {shift}"

    return refuse


def rescaled(factor: Callable[[Node], Multiplier], bounds: Callable[[Node], tuple[int, int]]) -> Kernel:
    def lower(node: Node, target: Target) -> Call:
        return rescale.rescale_call(node, factor(node), bounds(node), REQUANTIZE)

    def work_of_shift(node: Node) -> Mapping[str, int]:
        parts = work(node)
        return {**parts, "eight values to the left": parts["eight values"] * int(factor(node).shift >= 0)}

    return kernel(REQUANTIZE, lower, refuse_rescale(factor), work_of_shift)


def lower_clip(node: Node, target: Target) -> Call:
    return clip_call(node, 0, clamp.integer_range(node), CLIP)


def refuse_clip(node: Node) -> str | None:
    return None if node.input(0).type.quant == node.output.type.quant else "only where the scale stays"


def work_of_clip(node: Node) -> Mapping[str, int]:
    return {"call": 1, "eight values": -(-node.output.type.count // 8)}


ADD_KERNELS, SUB_KERNELS = (sums(1),), (sums(-1),)
MUL_KERNELS = (kernel(PRODUCT, lower_product, refuse_product),)
CLAMP_KERNELS = (
    kernel(CLIP, lower_clip, refuse_clip, work_of_clip),
    rescaled(clamp.factor, clamp.integer_range),
)
REQUANTIZE_KERNELS = (rescaled(rescale.exact_factor, lambda node: node.output.dtype.range),)
