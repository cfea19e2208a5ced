# SPDX-License-Identifier: Apache-2.0
"""Products of int16 matrices for Helium (tinyet_matmul_s16_mve.h): the second one's columns are packed in scratch, two
of which are multiplied by two rows at a time; sums have 64 bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.ir import Node
from tinyet.ops import matmul
from tinyet.opset import Call, CostModel, Kernel, ScratchArg

SYMBOL = "tinyet_matmul_s16_mve"
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_matmul.h", "tinyet_matmul_s16_mve.h")
LANES = 8
MOST_DEPTH = 4680
"""Of which seven columns are as far apart as 16 bits hold."""


def refuse(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    depth = node.input(0).shape[-1]
    return f"a depth of {depth}, takes up to {MOST_DEPTH}" if depth > MOST_DEPTH else None


def scratch_bytes(node: Node) -> int:
    depth, columns = node.input(1).shape[-2:]
    return 2 * columns * (depth + -depth % LANES)


def lower(node: Node, target: Target) -> Call:
    call = matmul.lower(node, target)
    *args, params = call.args
    args = [*args, ScratchArg(), params]
    return replace(call, symbol=SYMBOL, args=tuple(args), scratch_bytes=scratch_bytes(node))


def work(node: Node) -> Mapping[str, int]:
    offsets, (rows, depth) = matmul.batch_offsets(node), node.input(0).shape[-2:]
    columns = node.output.shape[-1]
    packed = 1 + int(np.count_nonzero(np.diff(offsets[:, 1])))
    pairs, eights = len(offsets) * -(-rows // 2), -(-depth // LANES)
    calls = int(columns > 1) + columns % 2
    return {
        "call": 1,
        "matrix": len(offsets),
        "packed row": packed * depth,
        "eight packed values": packed * depth * -(-columns // LANES),
        "two rows": pairs,
        "walk of two rows": pairs * calls,
        "two columns": pairs * -(-columns // 2),
        "eight products": pairs * -(-columns // 2) * eights,
    }


KERNELS = (
    Kernel(SYMBOL, "s16", lower, HEADERS, (f"{SYMBOL}.c",), refuse, "cortex_m", cost_model=CostModel(work)),
)
