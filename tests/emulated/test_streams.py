# SPDX-License-Identifier: Apache-2.0
"""A network with a layer of each kind that can be computed by rows, on every kind of core."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.ops.emulated import require_emulator
from tests.streamed import (
    STATUS,
    Fault,
    averaged,
    choosing,
    deployed,
    everything,
    harness,
    heads,
    residual,
    sequence,
    spoilt_by,
)
from tinyet.boards import load_board
from tinyet.device.device import DeviceFault, ModelFailed, open_device
from tinyet.ir import DType
from tinyet.memory.breakpoints import breakpoints
from tinyet.mismatch.locate import locate_mismatch
from tinyet.program import Program
from tinyet.projects.one import generate
from tinyet.reference import evaluate

BOARDS = [
    *("nrf51_dk", "mps2_an385", "mps2_an386", "mps2_an500", "mps2_an505", "mps3_an547", "riscv32_virt"),
]
RIGHT = 255  # the number of no fault

pytestmark = pytest.mark.emulated


@pytest.mark.parametrize("name", BOARDS)
def test_a_network_by_rows(name: str, tmp_path: Path) -> None:
    require_emulator(name)
    board = load_board(name)
    program = everything(DType.INT8)
    deployment = deployed(program, board.target)
    plan = deployment.plan
    fusion_group = max(plan.fusion_groups, key=lambda found: len(found.nodes))
    assert len(fusion_group.nodes) >= 6
    runs = tuple(step.runs for step in deployment.steps)
    halts = [
        breakpoint_
        for breakpoint_ in breakpoints(fusion_group)
        if breakpoint_.runs == fusion_group.runs(breakpoint_.node) // 2 and breakpoint_.made
    ]
    index = {step.node: step.index for step in deployment.steps}
    places = [
        plan.row_offset(fusion_group.rows[breakpoint_.made[0][0]], breakpoint_.places[breakpoint_.made[0]])
        for breakpoint_ in halts
    ]
    faults = [Fault(index[s.node], s.runs, "flip", offset) for s, offset in zip(halts, places, strict=True)]
    last = faults[-1]
    faults += [Fault(last.layer, last.run, "status"), Fault(last.layer, last.run, "fault")]
    elf = harness(program, deployment, board, tmp_path, spoilt_by(program, faults))

    def given(number: int) -> list[bytes]:
        return [a.tobytes() for a in choosing(program, number)]

    with open_device(board, elf) as device:
        result = device.run(given(RIGHT))
        values = evaluate(program.graph, choosing(program, RIGHT))
        assert result.outputs == tuple(values[t].tobytes() for t in program.graph.outputs)
        assert result.layer_runs == runs
        assert all(count > 0 for count in result.layer_counts)
        # The moves of rows, and what is done next: no layer's, and less than the layers.
        assert 0 < result.total - sum(result.layer_counts) < sum(result.layer_counts) / 2
        assert device.run(given(RIGHT)) == result

        halt = halts[0]
        half = device.run(given(RIGHT), stop_after=index[halt.node], runs=halt.runs)
        assert half.stopped
        assert half.layer_runs[index[halt.node]] == halt.runs
        tensor = halt.node.outputs[0]
        read = device.read(places[0], len(halt.made) * fusion_group.rows[tensor].row_bytes)
        assert read == values[tensor][:, [row for _, row in halt.made]].tobytes()

        for number in (0, len(halts) // 2, len(halts) - 1):
            (tensor, row), *_ = halts[number].made
            values = evaluate(program.graph, choosing(program, number))
            found = locate_mismatch(deployment, device, given(number), values, 0)
            assert found is not None
            assert (found.layer, found.value) == (faults[number].layer, tensor.name)
            assert found.index == (0, row, *(0 for _ in tensor.shape[2:]))
            assert f"in row {row}" in str(found) or f"in rows {row} to" in str(found)
            assert deployment.steps[found.layer].line in found.source
        with pytest.raises(ModelFailed) as status:
            device.run(given(len(faults) - 2))
        assert (status.value.status, status.value.layer) == (STATUS, last.layer)
        with pytest.raises(DeviceFault) as fault:
            device.run(given(len(faults) - 1))
        assert fault.value.layer == last.layer


def test_the_estimate_counts_what_the_harness_counts(tmp_path: Path) -> None:
    """Instructions of each layer by QEMU's plugin, and by the counter without what counting each run costs."""
    require_emulator()
    project = generate(residual(DType.INT8), "mps2_an386", tmp_path / "project", optimize="size")
    assert project.deployment.plan.fusion_groups
    project.build()
    result = project.validate(np.ones((1, 18, 10, 4), np.float32), estimate=True)
    assert result.bit_exact
    assert result.estimate is not None
    counted = {layer.name: layer.count for layer in result.layers}
    assert {layer.name: layer.estimate and layer.estimate.instructions for layer in result.layers} == counted
    assert abs(result.estimate.whole.instructions - (result.count or 0)) <= 8


@pytest.mark.parametrize("network", [averaged, sequence], ids=lambda network: network.__name__)
@pytest.mark.parametrize("name", ["nrf51_dk", "mps2_an385", "mps2_an386", "mps2_an505", "riscv32_virt"])
def test_rows_that_become_one_value(name: str, network: Callable[[DType], Program], tmp_path: Path) -> None:
    """Of images, and of sequences; in two runs, of which the second finds what the first has left."""
    require_emulator(name)
    board, program = load_board(name), network(DType.INT8)
    deployment = deployed(program, board.target)
    summing = [
        n
        for fusion_group in deployment.plan.fusion_groups
        for n in fusion_group.nodes
        if fusion_group.rules[n].reduces
    ]
    assert [node.op for node in summing] == ["mean"]
    with open_device(board, harness(program, deployment, board, tmp_path)) as device:
        for number in range(2):
            inputs = choosing(program, number)
            values = evaluate(program.graph, inputs)
            result = device.run([a.tobytes() for a in inputs])
            assert result.outputs == tuple(values[t].tobytes() for t in program.graph.outputs)


@pytest.mark.parametrize("name", ["mps2_an386", "riscv32_virt"])
def test_heads_by_rows_of_queries(name: str, tmp_path: Path) -> None:
    """The rows of scores are along an axis inside of the heads', and so is what is wrong in one of them."""
    require_emulator(name)
    board, program = load_board(name), heads(DType.INT8)
    deployment = deployed(program, board.target)
    plan = deployment.plan
    scores = [step for step in deployment.steps if step.node.op == "softmax"]
    assert [plan.line_buffer(step.node.output) is not None for step in scores] == [True, True]
    (group,) = (found for found in plan.fusion_groups if scores[0].node in found.rules)
    at = next(each for each in breakpoints(group) if each.node is scores[0].node and each.runs == 20)
    offset = plan.row_offset(group.rows[scores[0].node.output], at.places[at.made[0]])
    fault = Fault(scores[0].index, at.runs, "flip", offset)
    elf = harness(program, deployment, board, tmp_path, spoilt_by(program, [fault]))
    with open_device(board, elf) as device:
        for number in (RIGHT, 0):
            inputs = choosing(program, number)
            raw, values = [a.tobytes() for a in inputs], evaluate(program.graph, inputs)
            outputs = tuple(values[t].tobytes() for t in program.graph.outputs)
            found = locate_mismatch(deployment, device, raw, values, 0)
            if number == RIGHT:
                assert device.run(raw).outputs == outputs
                assert found is None
            else:
                assert found is not None
                assert (found.layer, found.index, found.rows) == (fault.layer, (0, 0, 19, 0), (19, 19))
