# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of fully connected layers grow with that go row by row (tinyet_linear_1x4_dsp.h)."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.delegates.cortex_m import linear_1x4
from tinyet.delegates.cortex_m.rounding import Form
from tinyet.ir import Node
from tinyet.ops.shared.cost_models import Parts
from tinyet.opset import CostModel


def work(node: Node, *, two_sided: bool) -> Mapping[str, int]:
    count, depth = node.input(1).shape
    rows, eights = node.output.type.count // count, -(-depth // 8)
    turns, groups = -(-eights // linear_1x4.TURN), rows * -(-count // 4)
    parts: Parts = {
        "call": 1,
        "row": rows,
        "eight inputs": rows * eights,
        "turn of inputs": rows * turns,
        "odd depth": rows * int(depth % 8 > 0),
        f"last {depth % 8} inputs": rows,
        "four outputs": groups,
        "four outputs of two sides": groups * int(two_sided),
        "turn": groups * turns,
        "eight products": groups * eights,
        "last outputs": rows * int(count % 4 > 0),
        f"last {count % 4} outputs": rows,
        "last outputs apart": rows * int(count % 4 > 0 and count > 4),
    }
    return parts


def code(node: Node, *, two_sided: bool) -> Mapping[str, int]:
    count, depth = node.input(1).shape
    return {
        "call": 1,
        "two sides": int(two_sided),
        "several rows": int(node.output.type.count > count),
        "odd depth": int(depth % 8 > 0),
        "last outputs": int(count % 4 > 0),
    }


def paired_sides(node: Node) -> bool:
    return linear_1x4.rounding_of(node).form is Form.TWO_SIDED


def wide_sides(node: Node) -> bool:
    return linear_1x4.wide_rounding(node).form is Form.TWO_SIDED


COST_MODELS: Mapping[str, CostModel] = {
    "tinyet_linear_s8_packed_1x4_dsp": CostModel(
        lambda n: work(n, two_sided=paired_sides(n)), lambda n: code(n, two_sided=False)
    ),
    "tinyet_linear_s8_w16_1x4_dsp": CostModel(
        lambda n: work(n, two_sided=wide_sides(n)), lambda n: code(n, two_sided=wide_sides(n))
    ),
}
"""By the kernels' names. PACKED has the code of both roundings always."""
