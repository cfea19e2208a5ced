# SPDX-License-Identifier: Apache-2.0
"""int8 softmax along the last axis, at LiteRT's output scale (tinyet_softmax_dsp.h)."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.boards.cpus import Target
from tinyet.ir import Node
from tinyet.ops import softmax
from tinyet.ops.shared.shapes import around_axis
from tinyet.ops.shared.softmax import attrs_of, exponentials_call, has_scale
from tinyet.opset import Call, CostModel, Kernel

SYMBOL = "tinyet_softmax_s8_dsp"
LEAST_DEPTH = 4


def refuse(node: Node, _target: Target) -> str | None:
    if not has_scale(node, softmax.LITERT_S8):
        return "only an output scale of 1/256 and zero point -128"
    _, depth, inner = around_axis(node.input(0).shape, attrs_of(node).axis)
    if inner != 1:
        return "only along the last axis"
    return f"{depth} values in a row, needs {LEAST_DEPTH}" if depth < LEAST_DEPTH else None


def lower(node: Node, _target: Target) -> Call:
    return exponentials_call(SYMBOL, node, softmax.EXPONENTIALS, {}, "tinyet_softmax_s8_params")


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


KERNELS = (
    Kernel(
        SYMBOL,
        "s8",
        lower,
        ("tinyet_softmax_dsp.h",),
        (f"{SYMBOL}.c",),
        refuse,
        "cortex_m",
        cost_model=CostModel(work),
    ),
)
