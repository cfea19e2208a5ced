# SPDX-License-Identifier: Apache-2.0
"""Sums over images that come row by row: on the host under sanitizers, and what the checker says of wrong plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.ops.cases import run_on_host
from tests.streamed import NETWORKS, Fault, Net, choosing, deployed, host_harness, spoilt_by
from tinyet import ops
from tinyet.boards import load_board
from tinyet.boards.cpus import HOST
from tinyet.deployment import Deployment, Step
from tinyet.device.device import open_device
from tinyet.errors import InternalError
from tinyet.ir import Attrs, DType, Graph
from tinyet.memory import MemoryPlan
from tinyet.memory.check import check_plan
from tinyet.memory.fusion import Run
from tinyet.mismatch.locate import locate_mismatch
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.sum import Sum
from tinyet.reference import evaluate

BOARD = load_board("mps2_an386")
REDUCING = (Mean, Sum, AvgPool2d, AdaptiveAvgPool2d)


def reducing(kind: type[Attrs], height: int, width: int, rng: np.random.Generator) -> Attrs:
    """An operator over a whole image."""
    if kind is AvgPool2d:
        divisor = int(rng.integers(1, 2 * height * width)) if rng.random() < 0.5 else None
        return AvgPool2d(kernel_h=height, kernel_w=width, divisor=divisor)
    if kind is AdaptiveAvgPool2d:
        return AdaptiveAvgPool2d()
    return kind(((1, 2), (2, 1))[int(rng.integers(2))], bool(rng.integers(2)))  # type: ignore[call-arg]


def reducing_steps(deployment: Deployment) -> list[Step]:
    """Those that are computed by rows."""
    rules = {
        node: rule
        for fusion_group in deployment.plan.fusion_groups
        for node, rule in fusion_group.rules.items()
    }
    return [step for step in deployment.steps if step.node in rules and rules[step.node].reduces]


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16], ids=lambda dtype: dtype.value)
@pytest.mark.parametrize("kind", REDUCING, ids=lambda kind: kind.name)
def test_sums_by_rows_are_the_reference_bit_for_bit(kind: type[Attrs], dtype: DType) -> None:
    """Several drawn images one after another, so that sums begin anew with each run."""
    rng = np.random.default_rng(REDUCING.index(kind))
    for _ in range(2):
        # Rows are whole words: only so they make a stream.
        height, width, channels = (
            int(rng.integers(12, 30)),
            4 * int(rng.integers(1, 4)),
            int(rng.integers(13, 40)),
        )
        net = Net(dtype, (1, height, width, 3))
        y = net.conv(net.x, channels)
        attrs = reducing(kind, height, width, rng)
        selects = kind in (AvgPool2d, AdaptiveAvgPool2d)
        program = net.finish(net.add(attrs, y, like=y if selects else None))
        deployment = deployed(program, HOST)
        assert [step.node.attrs for step in reducing_steps(deployment)] == [attrs]
        low, high = dtype.range
        images = [rng.integers(low, high + 1, net.x.shape).astype(dtype.numpy) for _ in range(3)]
        images[1][:] = high
        wanted = [evaluate(program.graph, [x])[program.graph.outputs[0]].tobytes() for x in images]
        assert run_on_host(deployment, b"".join(x.tobytes() for x in images)) == b"".join(wanted)


def test_real_numbers_are_summed_as_a_whole() -> None:
    """Their sums depend on their order, and are taken in that of the whole operator."""
    net = Net(DType.FLOAT32)
    y = net.conv(net.x, 16)
    assert not reducing_steps(deployed(net.finish(net.add(Mean((1, 2)), y)), HOST))


@pytest.fixture(scope="module")
def averaged() -> Deployment:
    found = deployed(NETWORKS["averaged"](DType.INT8), HOST)
    assert len(reducing_steps(found)) == 1
    return found


def test_sums_take_their_own_bytes_and_no_more(averaged: Deployment) -> None:
    """What streams work in is counted once, whatever the names of their layers' memory."""
    scratch = sum(step.call.scratch_bytes for step in averaged.steps)
    assert averaged.plan.arena_bytes <= sum(block.bytes for block in averaged.plan.blocks) + scratch


def test_sums_that_go_wrong_name_their_layer(tmp_path: Path) -> None:
    program = NETWORKS["averaged"](DType.INT8)
    deployment = deployed(program, HOST)
    (step,) = reducing_steps(deployment)
    high_byte = deployment.plan.scratch[step.node] + 4 * 3 + 1
    faults = [Fault(step.index, run, "flip", high_byte) for run in (1, step.runs // 2, step.runs - 1)]
    executable = host_harness(program, deployment, tmp_path, spoilt_by(program, faults))
    with open_device(BOARD, executable, "host") as device:
        for number in range(len(faults) + 1):
            inputs = choosing(program, number)
            values = evaluate(program.graph, inputs)
            found = locate_mismatch(deployment, device, [a.tobytes() for a in inputs], values, 0)
            if number == len(faults):
                assert found is None
            else:
                assert found is not None
                assert (found.layer, found.rows, found.count) == (step.index, None, 1)
                assert found.index[-1] == 2


def checked(graph: Graph, plan: MemoryPlan, deployment: Deployment) -> None:
    scratch = {step.node: step.call.scratch_bytes for step in deployment.steps if step.call.scratch_bytes}
    check_plan(graph, plan, ops.op_of, scratch, align=4, scratch_align=8)


def without_the_last_tile(plan: MemoryPlan, step: Step) -> MemoryPlan:
    (fusion_group,) = plan.fusion_groups
    last = fusion_group.moments(step.node)[-1]
    actions = tuple(a for k, a in enumerate(fusion_group.actions) if k != last)
    assert isinstance(fusion_group.actions[last], Run)
    return replace(plan, fusion_groups=(replace(fusion_group, actions=actions),))


def over_what_lives(plan: MemoryPlan, step: Step) -> MemoryPlan:
    """The sums lie where a window has rows."""
    place = plan.offset(step.node.input(0))
    return replace(plan, scratch={**plan.scratch, step.node: -(-place // 8) * 8})


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (without_the_last_tile, "times by rows"),
        (over_what_lives, "tiles make of"),
    ],
)
def test_plans_that_lose_sums_are_refused(
    averaged: Deployment, spoil: Callable[[MemoryPlan, Step], MemoryPlan], complaint: str
) -> None:
    (step,) = reducing_steps(averaged)
    checked(averaged.graph, averaged.plan, averaged)
    with pytest.raises(InternalError, match=complaint):
        checked(averaged.graph, spoil(averaged.plan, step), averaged)
