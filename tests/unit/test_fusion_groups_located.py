# SPDX-License-Identifier: Apache-2.0
"""Layers that are computed by rows, looked at one run at a time, in a process under sanitizers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ops.cases import run_on_host
from tests.streamed import (
    NETWORKS,
    STATUS,
    Fault,
    choosing,
    deployed,
    host_harness,
    residual,
    samples,
    spoilt_by,
    validated,
)
from tinyet.analysis import analyze_deployment
from tinyet.boards import load_board
from tinyet.boards.cpus import HOST, Target
from tinyet.budget.fit import peak_tensors
from tinyet.data import prepare_inputs
from tinyet.deployment import Step, deploy
from tinyet.device.device import Device, ModelFailed, open_device
from tinyet.ir import DType
from tinyet.memory.breakpoints import Breakpoint, breakpoints, fewest
from tinyet.mismatch.locate import locate_mismatch
from tinyet.planning.objective import Objective
from tinyet.reference import evaluate

BOARD = load_board("mps2_an386")
DSP = Target("host", frozenset({"dsp"}))
CASES = [(name, DType.INT8) for name in NETWORKS]
CASES += [(name, DType.INT16) for name in ("residual", "dilated", "pools", "elements", "averaged", "heads")]


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=lambda value: getattr(value, "name", value))
def test_rows_are_the_reference_bit_for_bit(name: str, dtype: DType, tmp_path: Path) -> None:
    """With the harness's marks and without."""
    program = NETWORKS[name](dtype)
    deployment = deployed(program, HOST)
    result = validated(program, deployment, host_harness(program, deployment, tmp_path), "host", BOARD)
    assert result.bit_exact
    inputs = prepare_inputs(program.inputs, list(samples(program).inputs[0]))
    values = evaluate(program.graph, inputs)
    plain = run_on_host(deployment, b"".join(np.ascontiguousarray(a).tobytes() for a in inputs))
    assert plain == b"".join(values[t].tobytes() for t in program.graph.outputs)


class Spoilt:
    """A network whose layers go wrong in each of a few of their runs, as the input says."""

    def __init__(self, name: str, dtype: DType, where: Path) -> None:
        self.program = NETWORKS[name](dtype)
        self.deployment = deployed(self.program, HOST)
        self.faults = [Fault(step.index, 1, "flip", self.first(step.index)) for step in self.whole()]
        self.rows = [-1] * len(self.faults)
        for fusion_group in self.deployment.plan.fusion_groups:
            for breakpoint_ in breakpoints(fusion_group):
                if breakpoint_.runs in (
                    1,
                    2,
                    fusion_group.runs(breakpoint_.node) // 2,
                    fusion_group.runs(breakpoint_.node),
                ):
                    tensor, row = breakpoint_.made[0]
                    offset = self.deployment.plan.row_offset(
                        fusion_group.rows[tensor], breakpoint_.places[tensor, row]
                    )
                    self.faults.append(Fault(self.index(breakpoint_), breakpoint_.runs, "flip", offset))
                    self.rows.append(row)
        self.faults.append(Fault(self.faults[-1].layer, 3, "status"))
        assert len(self.faults) < 100  # what an element of the input can be
        spoil = spoilt_by(self.program, self.faults)
        self.executable = host_harness(self.program, self.deployment, where, spoil)

    def whole(self) -> list[Step]:
        return [s for s in self.deployment.steps if self.deployment.plan.fusion_group(s.node) is None]

    def first(self, layer: int) -> int:
        return self.deployment.plan.offset(self.deployment.steps[layer].node.outputs[0])

    def index(self, breakpoint_: Breakpoint) -> int:
        return next(s.index for s in self.deployment.steps if s.node is breakpoint_.node)


@pytest.fixture(scope="module", params=["residual", "inverted", "heads"])
def spoilt(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Spoilt:
    dtype = DType.INT16 if request.param == "inverted" else DType.INT8
    return Spoilt(request.param, dtype, tmp_path_factory.mktemp(request.param))


@pytest.fixture
def device(spoilt: Spoilt) -> Iterator[Device]:
    with open_device(BOARD, spoilt.executable, "host") as opened:
        yield opened


def test_every_row_that_is_said_to_be_there_is_there(spoilt: Spoilt, device: Device) -> None:
    inputs = choosing(spoilt.program, 255)
    values = evaluate(spoilt.program.graph, inputs)
    plan = spoilt.deployment.plan
    for fusion_group in plan.fusion_groups:
        found = breakpoints(fusion_group)
        assert [sum(breakpoint_.node is node for breakpoint_ in found) for node in fusion_group.nodes] == [
            fusion_group.runs(node) for node in fusion_group.nodes
        ]
        for breakpoint_ in found:
            device.run(
                [a.tobytes() for a in inputs], stop_after=spoilt.index(breakpoint_), runs=breakpoint_.runs
            )
            for (tensor, row), place in breakpoint_.places.items():
                buffer = fusion_group.rows[tensor]
                read = device.read(plan.row_offset(buffer, place), buffer.row_bytes)
                wanted = values[tensor].take(row, buffer.axis)
                assert read == wanted.tobytes(), (tensor.name, row, breakpoint_.runs)
        assert {row for number in fewest(found) for row in found[number].places} == {
            row for breakpoint_ in found for row in breakpoint_.made
        }


def test_few_stops_are_needed(spoilt: Spoilt) -> None:
    """No more than the highest of the values has rows, and some at the end; twice as many where no row waits for the
    next."""
    for fusion_group in spoilt.deployment.plan.fusion_groups:
        found = breakpoints(fusion_group)
        highest = max(rows.height for rows in fusion_group.rows.values())
        once = max(rows.slots for rows in fusion_group.line_buffers) > 1
        most = (1 if once else 2) * highest + len(fusion_group.nodes)
        assert len(fewest(found)) <= most < len(found)


def test_the_first_wrong_layer_is_named_with_its_row(spoilt: Spoilt, device: Device) -> None:
    for number, (fault, row) in enumerate(zip(spoilt.faults, spoilt.rows, strict=False)):
        inputs = choosing(spoilt.program, number)
        values = evaluate(spoilt.program.graph, inputs)
        found = locate_mismatch(spoilt.deployment, device, [a.tobytes() for a in inputs], values, 5)
        assert found is not None
        step = spoilt.deployment.steps[fault.layer]
        tensor = step.node.outputs[0]
        group = spoilt.deployment.plan.fusion_group(step.node)
        axis = 1 if group is None else group.rows[tensor].axis
        rows = None
        if row >= 0:
            assert group is not None
            # A breakpoint is behind a tile, of which all rows are read.
            rule = group.rules[step.node]
            first = rule.first_written(step.node, row // rule.out)
            rows = (first, first + rule.out - 1)
        index = tuple(max(row, 0) if at == axis else 0 for at in range(len(tensor.shape)))
        assert (found.sample, found.layer, found.name, found.value) == (
            5,
            fault.layer,
            step.name,
            tensor.name,
        )
        assert (found.index, found.count) == (index, 1)
        assert found.host == values[tensor][index].item()
        assert found.device == int(found.host) ^ 0x40
        assert found.rows == rows
        assert (
            found.source == f"{step.name} ({step.line}): y = {step.node.op}_{step.line[-2:]}(x)"
            or step.line in found.source
        )
        if rows is not None:
            named = f"row {rows[0]}" if rows[0] == rows[1] else f"rows {rows[0]} to {rows[1]}"
            assert f"(1 differ in {named})" in str(found)


def test_what_goes_well_has_no_first_mismatch(spoilt: Spoilt, device: Device) -> None:
    inputs = choosing(spoilt.program, 255)
    raw = [a.tobytes() for a in inputs]
    assert locate_mismatch(spoilt.deployment, device, raw, evaluate(spoilt.program.graph, inputs), 0) is None
    runs = device.run(raw).layer_runs
    assert runs == tuple(step.runs for step in spoilt.deployment.steps)
    assert max(runs) > 1


def test_a_status_in_the_midst_of_a_stream_names_its_layer(spoilt: Spoilt, device: Device) -> None:
    number = len(spoilt.faults) - 1
    with pytest.raises(ModelFailed) as caught:
        device.run([a.tobytes() for a in choosing(spoilt.program, number)])
    assert (caught.value.status, caught.value.layer) == (STATUS, spoilt.faults[number].layer)


@pytest.mark.parametrize("name", ["chain", "residual", "inverted", "typed"])
def test_the_peak_is_the_rows_that_are_there(name: str) -> None:
    """What is alive at the peak, summed up, is what the plan says: no window counts more rows than it has then."""
    deployment = deployed(NETWORKS[name](DType.INT8), BOARD.target)
    worst, found = peak_tensors(deployment)
    plan = deployment.plan
    assert plan.fusion_group(plan.calls[worst]) is not None
    assert sum(each.bytes for each in found) == max(plan.alive)
    parts = [re.match(r"(\d+) of (\d+) rows of (output of|input) ", each.text) for each in found]
    there = [(int(part[1]), int(part[2])) for part in parts if part]
    assert there, "no value of which some rows are there"
    assert all(rows < height for rows, height in there), "a whole value is no number of rows"


def test_what_streams_are_and_cost() -> None:
    found = [deployed(make(DType.INT8), HOST).plan.fusion_groups for make in NETWORKS.values()]
    assert sum(map(bool, found)) >= 7, "some save nothing by the kernels of the host; most do"
    program = residual(DType.INT8)
    deployment = deployed(program, BOARD.target)
    (fusion_group,) = deployment.plan.fusion_groups
    analysis = analyze_deployment(program, deployment, BOARD)
    report: Any = analysis.to_json()
    (said,) = report["fusion_groups"]
    assert said["layers"] == [step.index for step in deployment.steps if step.node in fusion_group.rules]
    assert {(w["value"], w["rows"], w["of"], w["bytes"]) for w in said["line_buffers"]} == {
        (w.tensor.name, w.slots, w.tensor.shape[1], w.bytes) for w in fusion_group.line_buffers
    }
    assert said["moved_bytes"] == sum(fusion_group.moved) > 0
    whole = deploy(program.graph, BOARD.target, objective=Objective("size", untiled=True))
    assert analysis.whole_arena_bytes == whole.plan.arena_bytes > analysis.arena_bytes
    costs = [variant.cost for variant in deployment.decision.chosen.values()]
    assert said["instructions"] > sum(cost.instructions for cost in costs if cost is not None)
    assert 0 < said["whole_instructions"] < said["instructions"]
    assert [layer.runs for layer in analysis.layers] == [step.runs for step in deployment.steps]
    assert analyze_deployment(program, whole, BOARD).to_json()["fusion_groups"] == []


def test_the_order_of_the_calls_is_that_of_the_runs(spoilt: Spoilt) -> None:
    deployment = spoilt.deployment
    assert [deployment.order.count(step.index) for step in deployment.steps] == [
        s.runs for s in deployment.steps
    ]
    whole = deploy(spoilt.program.graph, HOST)
    assert whole.order == tuple(range(len(whole.steps)))
