# SPDX-License-Identifier: Apache-2.0
"""Softmax and its logarithm along the last axis, at LiteRT's output scale (tinyet_softmax_dsp.h,
tinyet_softmax_mve.h); for Helium at other scales, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.ir import Node
from tinyet.ops import log_softmax, softmax
from tinyet.ops.shared.shapes import around_axis
from tinyet.ops.shared.softmax import FIXED_HEADERS, attrs_of, exponentials_call, has_scale, refuse_scale
from tinyet.opset import Call, CostModel, Kernel
from tinyet.tiles.helium import LANES

SYMBOL, SYMBOL_MVE, SYMBOL_S16 = "tinyet_softmax_s8_dsp", "tinyet_softmax_s8_mve", "tinyet_softmax_s16_mve"
SYMBOL_SCALED, SYMBOL_SCALED_S16 = "tinyet_softmax_scaled_s8_mve", "tinyet_softmax_scaled_s16_mve"
SYMBOL_LOG, SYMBOL_LOG_SCALED = "tinyet_log_softmax_s8_mve", "tinyet_log_softmax_scaled_s8_mve"
LEAST_DEPTH = 4
LEAST_SCALE_S16 = 2.0**-28
"""Of int16, so that outputs are shifted to the right by one bit and more."""


def refuse_rows(node: Node, scale: tuple[float, int] = softmax.LITERT_S8) -> str | None:
    if not has_scale(node, scale):
        return f"only an output scale of {scale[0]} and zero point {scale[1]}"
    return refuse_other_axes(node)


def refuse_other_axes(node: Node) -> str | None:
    _, _, inner = around_axis(node.input(0).shape, attrs_of(node).axis)
    return "only along the last axis" if inner != 1 else None


def refuse(node: Node, _target: Target) -> str | None:
    if (reason := refuse_rows(node)) is not None:
        return reason
    depth = node.input(0).shape[attrs_of(node).axis]
    return f"{depth} values in a row, needs {LEAST_DEPTH}" if depth < LEAST_DEPTH else None


def refuse_mve(node: Node, target: Target) -> str | None:
    return no_helium(target) or refuse_rows(node)


def refuse_scaled(node: Node, target: Target) -> str | None:
    return no_helium(target) or refuse_scale(softmax.LITERT_S8)(node, target) or refuse_other_axes(node)


def refuse_scaled_s16(node: Node, target: Target) -> str | None:
    if node.output.type.scale < LEAST_SCALE_S16:
        return f"an output scale of {node.output.type.scale}, needs {LEAST_SCALE_S16}"
    return no_helium(target) or refuse_scale(softmax.LITERT_S16)(node, target) or refuse_other_axes(node)


def refuse_s16(node: Node, target: Target) -> str | None:
    return no_helium(target) or refuse_rows(node, softmax.LITERT_S16)


def refuse_log(node: Node, target: Target) -> str | None:
    return no_helium(target) or refuse_rows(node, log_softmax.LITERT)


def refuse_log_scaled(node: Node, target: Target) -> str | None:
    reason = no_helium(target) or refuse_scale(log_softmax.LITERT)(node, target) or refuse_other_axes(node)
    if reason is not None:
        return reason
    form = log_softmax.format_of(node)
    near = form.to_sum.shift >= 0 and -31 <= form.to_out.shift <= -1
    return None if near else "an input scale below 2**-27, or an output scale below 2**-25 or far above one"


def lower(node: Node, _target: Target, symbol: str) -> Call:
    return exponentials_call(symbol, node, softmax.EXPONENTIALS, {}, "tinyet_softmax_s8_params")


def lower_s16(node: Node, target: Target) -> Call:
    return replace(softmax.lower_s16(node, target), symbol=SYMBOL_S16)


def lower_scaled(node: Node, target: Target) -> Call:
    return replace(softmax.lower_scaled_s8(node, target), symbol=SYMBOL_SCALED)


def lower_scaled_s16(node: Node, target: Target) -> Call:
    return replace(softmax.lower_scaled_s16(node, target), symbol=SYMBOL_SCALED_S16)


def lower_log(node: Node, target: Target) -> Call:
    return replace(log_softmax.lower_s8(node, target), symbol=SYMBOL_LOG)


def lower_log_scaled(node: Node, target: Target) -> Call:
    return replace(log_softmax.lower_scaled_s8(node, target), symbol=SYMBOL_LOG_SCALED)


def work(node: Node) -> Mapping[str, int]:
    rows, depth, _ = around_axis(node.input(0).shape, attrs_of(node).axis)
    fours, last = divmod(depth, 4)
    return {
        "call": 1,
        "row": rows,
        "four values": rows * fours,
        "last values": rows * int(last > 0),
        "last value": rows * last,
    }


def work_mve(node: Node) -> Mapping[str, int]:
    rows, depth, _ = around_axis(node.input(0).shape, attrs_of(node).axis)
    return {
        "call": 1,
        "row": rows,
        "four values": rows * -(-depth // 4),
        "sixteen values": rows * -(-depth // LANES),
    }


def work_s16(node: Node) -> Mapping[str, int]:
    rows, depth, _ = around_axis(node.input(0).shape, attrs_of(node).axis)
    eights, last = divmod(depth, 8)
    return {
        "call": 1,
        "row": rows,
        "eight values": rows * eights,
        "row of eights": rows * int(eights > 0),
        "last values": rows * int(last > 0),
    }


KERNELS = (
    Kernel(
        SYMBOL_MVE,
        "s8",
        partial(lower, symbol=SYMBOL_MVE),
        ("tinyet_softmax.h", "tinyet_softmax_mve.h"),
        (f"{SYMBOL_MVE}.c",),
        refuse_mve,
        "cortex_m",
        cost_model=CostModel(work_mve),
    ),
    Kernel(
        SYMBOL,
        "s8",
        partial(lower, symbol=SYMBOL),
        ("tinyet_softmax_dsp.h",),
        (f"{SYMBOL}.c",),
        refuse,
        "cortex_m",
        cost_model=CostModel(work),
    ),
    Kernel(
        SYMBOL_S16,
        "s16",
        lower_s16,
        (*softmax.TABLE_HEADERS, "tinyet_softmax_mve.h"),
        (f"{SYMBOL_S16}.c",),
        refuse_s16,
        "cortex_m",
        cost_model=CostModel(work_s16),
    ),
    Kernel(
        SYMBOL_SCALED,
        "s8",
        lower_scaled,
        (*FIXED_HEADERS, "tinyet_softmax_mve.h"),
        (f"{SYMBOL_SCALED}.c",),
        refuse_scaled,
        "cortex_m",
        cost_model=CostModel(work_mve),
    ),
    Kernel(
        SYMBOL_SCALED_S16,
        "s16",
        lower_scaled_s16,
        (*softmax.TABLE_HEADERS, "tinyet_softmax_mve.h"),
        (f"{SYMBOL_SCALED_S16}.c",),
        refuse_scaled_s16,
        "cortex_m",
        cost_model=CostModel(work_s16),
    ),
)

LOG_KERNELS = (
    Kernel(
        SYMBOL_LOG,
        "s8",
        lower_log,
        (*FIXED_HEADERS, "tinyet_softmax_mve.h"),
        (f"{SYMBOL_LOG}.c",),
        refuse_log,
        "cortex_m",
        cost_model=CostModel(work_mve),
    ),
    Kernel(
        SYMBOL_LOG_SCALED,
        "s8",
        lower_log_scaled,
        (*FIXED_HEADERS, "tinyet_softmax_mve.h"),
        (f"{SYMBOL_LOG_SCALED}.c",),
        refuse_log_scaled,
        "cortex_m",
        cost_model=CostModel(work_mve),
    ),
)
