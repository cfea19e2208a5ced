# SPDX-License-Identifier: Apache-2.0
"""int16 activations and int4 weights beside int8: instructions a product of layers of each kind, and the ratios.

    python benchmarks/widths.py [--board mps2_an386] [--results NAME]

Twice: by kernels whose weights lie in flash as they are (int4 two to a byte), and by the fastest of all that the
delegate cortex_m has. Weights and inputs are random; every output is compared with the operator's reference. Counts are
executed instructions in QEMU, not cycles.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import kernels as layers
from benchmarks import record
from benchmarks.cost_grids import of_type
from tinyet.boards import Board, load_board
from tinyet.delegates import CORTEX_M, PORTABLE, Delegate
from tinyet.ir import Array, Node
from tinyet.ops.linear import Linear
from tinyet.opset import Kernel
from tinyet.planning.objective import Objective

LAYERS: dict[str, Node] = {
    "3x3, 16x16x32 -> 32": layers.conv((16, 16, 32), 32, (3, 3)),
    "3x3, 8x8x64 -> 64, no ReLU": layers.conv((8, 8, 64), 64, (3, 3), relu=False),
    "3x3, 32x32x3 -> 16": layers.conv((32, 32, 3), 16, (3, 3)),
    "5x5, 16x16x16 -> 24, stride 2": layers.conv((16, 16, 16), 24, (5, 5), 2),
    "1x1, 16x16x64 -> 64": layers.conv((16, 16, 64), 64, (1, 1)),
    "1x1, 16x16x16 -> 64": layers.conv((16, 16, 16), 64, (1, 1)),
    "depthwise 3x3, 16x16x64": layers.conv((16, 16, 64), 0, (3, 3)),
    "depthwise 3x3, 24x24x32, stride 2": layers.conv((24, 24, 32), 0, (3, 3), 2),
    "depthwise 5x5, 16x16x64": layers.conv((16, 16, 64), 0, (5, 5)),
    "depthwise 1x9, 64x32": layers.conv((1, 64, 32), 0, (1, 9)),
    "linear 640 -> 128": layers.linear(640, 128),
    "linear 64 -> 64": layers.linear(64, 64),
    "linear 128 -> 64, 16 rows": layers.weighted(
        Linear(layers.NONE), layers.activation("x", (16, 128)), (64, 128), False
    ),
}
TYPES = {"s8": "int8", "s16": "int16", "s8_w4": "int4"}


AS_BYTES = ("tinyet_linear_s8_packed", "tinyet_conv2d_s8_packed", "tinyet_linear_s8_1x4")
"""Kernels in whose weights an int4 takes a byte, but for depthwise ones, which have few."""


def widens(kernel: Kernel) -> bool:
    """Whether its weights take more flash than they have bits."""
    as_bytes = kernel.dtypes == "s8_w4" and kernel.symbol.startswith(AS_BYTES)
    return as_bytes or "_w16" in kernel.symbol or "winograd" in kernel.symbol


def compact(delegate: Delegate) -> Delegate:
    kept = {op: tuple(k for k in kernels if not widens(k)) for op, kernels in delegate.kernels.items()}
    return dataclasses.replace(delegate, kernels=kept)


def measured(board: Board, delegate: Delegate) -> dict[str, list[tuple[str, float]]]:
    """For each layer the kernel and its instructions a product, of each of TYPES."""
    nodes = [of_type(node, dtypes) for node in LAYERS.values() for dtypes in TYPES]
    graph = layers.side_by_side(nodes)
    rng = np.random.default_rng(1)
    arrays: list[Array] = [
        rng.integers(t.dtype.range[0], t.dtype.range[1] + 1, t.shape).astype(t.dtype.numpy)
        for t in graph.inputs
    ]
    run = layers.run(graph, arrays, board, [delegate, PORTABLE], Objective("speed"))
    found = {
        step.node: (step.call.kernel, count / step.macs)
        for step, count in zip(run.deployment.steps, run.counts, strict=True)
    }
    own = iter(graph.nodes)
    return {name: [found[next(own)] for _ in TYPES] for name in LAYERS}


def report(found: dict[str, list[tuple[str, float]]]) -> None:
    for name, ((kernel, base), *others) in found.items():
        print(f"{name:34} {kernel:33} {base:6.3f}")
        for title, (other, count) in zip(list(TYPES.values())[1:], others, strict=True):
            print(f"{title:>34} {other:33} {count:6.3f} {count / base:6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="mps2_an386")
    record.add_option(parser)
    options = parser.parse_args()
    board = load_board(options.board)
    found = {}
    for title, delegate in (("weights as they are", compact(CORTEX_M)), ("the fastest", CORTEX_M)):
        print(f"{title}, on {board.name}: instructions a product, and of int8's")
        found[title] = measured(board, delegate)
        report(found[title])
    record.write(options.results, found)


if __name__ == "__main__":
    main()
