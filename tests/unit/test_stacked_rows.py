# SPDX-License-Identifier: Apache-2.0
"""Stacked line buffers: how much of them moves, and that it costs no memory."""

from __future__ import annotations

import numpy as np
import pytest

from tinyet.boards import load_board
from tinyet.deployment import deploy
from tinyet.ir import DType, Graph, Node, QuantParams, Tensor, TensorType, constant
from tinyet.memory.fusion import FusionGroup, Run, Shift
from tinyet.ops import tile_map
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.mean import Mean
from tinyet.opset import TileMap
from tinyet.planning.fusion import fused
from tinyet.planning.objective import Objective

ROWS, ROW_BYTES, LAYERS = 24, 5 * 16, 4
"""Of each image, and pairs of layers."""


def chain(rows: int = ROWS) -> Graph:
    """A convolution, and pairs of a depthwise and a pointwise one, as in DS-CNN."""

    def tensor(name: str, channels: int) -> Tensor:
        return Tensor(name, TensorType((1, rows, 5, channels), DType.INT8, QuantParams.per_tensor(0.05, -3)))

    def conv(x: Tensor, name: str, kernel: int, *, groups: int = 1) -> Node:
        size = (16, kernel, kernel, x.shape[3] // groups)
        weights = constant("w", np.ones(size, np.int8), QuantParams((0.01,) * 16, (0,) * 16, 0))
        pad = kernel // 2
        attrs = Conv2d(groups=groups, pad_top=pad, pad_bottom=pad, pad_left=pad, pad_right=pad)
        return Node(attrs, (x, weights, None), (tensor(name, 16),))

    x = tensor("x", 4)
    nodes = [conv(x, "first", 3)]
    for k in range(LAYERS):
        nodes.append(conv(nodes[-1].output, f"depthwise_{k}", 3, groups=16))
        nodes.append(conv(nodes[-1].output, f"pointwise_{k}", 1))
    return Graph("chain", (x,), (nodes[-1].output,), tuple(nodes))


def grouped(graph: Graph, scratch: dict[Node, int], *, on_output: bool, times: int = 1) -> FusionGroup:
    rules = {n: rule for n in graph.nodes if isinstance(rule := tile_map(n, times=times), TileMap)}
    found = fused(graph, graph.nodes, rules, align=4, stacked=True, on_output=on_output, scratch=scratch)
    assert found is not None
    return found


def alive(found: FusionGroup, moment: int) -> int:
    rows = (found.rows[tensor] for tensor in found.stacked_buffers)
    return sum(int(each.behind[moment] - each.first[moment]) * each.row_bytes for each in rows)


@pytest.mark.parametrize("scratch", [0, 200])
def test_windows_move_once_a_row(scratch: int) -> None:
    """A row that is dropped is where the next layer's window grows: all go back to the start once for each row, and no
    more memory is needed than there are rows at once, with the scratch memory of the first layer on top."""
    graph = chain()
    areas = {graph.nodes[0]: scratch}
    found = grouped(graph, areas, on_output=False)
    steady = [action for action in found.actions if isinstance(action, Shift) and action.by < 0]
    assert len(steady) <= ROWS + LAYERS
    # Two rows of each window, and the new one of the first layer.
    assert max(action.bytes for action in steady) <= (2 * LAYERS + 1) * ROW_BYTES
    assert sum(found.moved) <= (ROWS + LAYERS) * (2 * LAYERS + 1) * ROW_BYTES
    runs = [k for k, action in enumerate(found.actions) if isinstance(action, Run)]
    most = max(alive(found, k) + areas.get(found.actions[k].node, 0) for k in runs)  # type: ignore[union-attr]
    high = max(int(found.heights[k]) + areas.get(found.actions[k].node, 0) for k in runs)  # type: ignore[union-attr]
    assert high <= most


def test_windows_of_uneven_rows_move_once_a_step() -> None:
    """Two rows a step, but the last one computes a row again: so the results of depthwise layers get rows while they
    hold one, only then, and are on top of those that stay all the same."""
    found = grouped(chain(ROWS + 1), {}, on_output=False, times=2)
    numbers = {t.name: found.rows[t].number for t in found.stacked_buffers}
    depthwise = {numbers[f"depthwise_{k}"] for k in range(LAYERS)}
    assert min(n for n in depthwise if n is not None) == LAYERS
    steps = ROWS // 2 + 1
    assert sum(found.moved) <= (steps + LAYERS) * (2 * LAYERS + 2) * ROW_BYTES


def test_two_rows_a_step_where_there_is_room() -> None:
    """Of five pixels: a limit that leaves room for two rows at a time makes the network faster, a smaller one is kept
    by one at a time."""
    graph = chain()
    (last,) = graph.outputs
    mean = Tensor("mean", TensorType((1, 1, 1, 16), DType.INT8, last.type.quant))
    average = Node(Mean((1, 2), keepdims=True), (last,), (mean,))
    graph = graph.replace(nodes=(*graph.nodes, average), outputs=(mean,))
    target = load_board("mps2_an386").target
    tight, roomy = (deploy(graph, target, objective=Objective(ram=ram)) for ram in (1600, 2000))
    for deployment, rows in (tight, 1), (roomy, 2):
        (found,) = deployment.plan.fusion_groups
        assert {found.rules[node].out for node in graph.nodes[:-1]} == {rows}
    assert tight.plan.arena_bytes <= 1600 < roomy.plan.arena_bytes <= 2000
    assert roomy.decision.figures.time < 0.9 * tight.decision.figures.time


def test_rows_of_one_step_share_windows() -> None:
    """Depthwise results are there for one step, each after the other."""
    found = grouped(chain(), {}, on_output=False)
    numbers = {t.name: found.rows[t].number for t in found.stacked_buffers}
    assert len({numbers[f"depthwise_{k}"] for k in range(LAYERS)}) == 1
    assert len({numbers[f"pointwise_{k}"] for k in range(LAYERS - 1)}) == LAYERS - 1
    assert found.windows == len({*numbers.values()}) == LAYERS + 1
    # On top of those that stay.
    assert numbers["depthwise_0"] == LAYERS


def test_the_output_beneath_never_moves() -> None:
    found = grouped(chain(), {}, on_output=True)
    assert found.base is not None
    assert found.rows[found.base].number == 0
    assert not found.rows[found.base].start.any()
    assert all(action.first > 0 for action in found.actions if isinstance(action, Shift))
