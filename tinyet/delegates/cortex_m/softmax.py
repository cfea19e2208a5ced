# SPDX-License-Identifier: Apache-2.0
"""int8 softmax along the last axis, at LiteRT's output scale (tinyet_softmax_dsp.h, tinyet_softmax_mve.h)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.ir import Node
from tinyet.ops import softmax
from tinyet.ops.shared.shapes import around_axis
from tinyet.ops.shared.softmax import attrs_of, exponentials_call, has_scale
from tinyet.opset import Call, CostModel, Kernel
from tinyet.tiles.helium import LANES

SYMBOL, SYMBOL_MVE = "tinyet_softmax_s8_dsp", "tinyet_softmax_s8_mve"
LEAST_DEPTH = 4


def refuse_rows(node: Node) -> str | None:
    if not has_scale(node, softmax.LITERT_S8):
        return "only an output scale of 1/256 and zero point -128"
    _, _, inner = around_axis(node.input(0).shape, attrs_of(node).axis)
    return "only along the last axis" if inner != 1 else None


def refuse(node: Node, _target: Target) -> str | None:
    if (reason := refuse_rows(node)) is not None:
        return reason
    depth = node.input(0).shape[attrs_of(node).axis]
    return f"{depth} values in a row, needs {LEAST_DEPTH}" if depth < LEAST_DEPTH else None


def refuse_mve(node: Node, target: Target) -> str | None:
    return no_helium(target) or refuse_rows(node)


def lower(node: Node, _target: Target, symbol: str) -> Call:
    return exponentials_call(symbol, node, softmax.EXPONENTIALS, {}, "tinyet_softmax_s8_params")


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
)
