# SPDX-License-Identifier: Apache-2.0
"""Where weights lie in what kernels have packed: measured with some weights, and true of others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests import small, streamed
from tinyet.auditing.layout import layouts_of
from tinyet.boards import load_board
from tinyet.delegates import CMSIS_NN, DEFAULT, Delegate
from tinyet.deployment import Step, deploy
from tinyet.ir import DType, Tensor
from tinyet.numerics import Int64
from tinyet.program import Program

# Their weights are transformed, so that each lies in many places together with others.
TRANSFORMED = {
    "tinyet_conv2d_s8_w16_winograd_f2x2_dsp",
    "tinyet_conv2d_s8_w16_winograd_f4x4_dsp",
    "tinyet_conv2d_s8_w16_winograd_f4x4",
}
# Where a run of taps ends depends on the weights, so that some of them move others.
IN_RUNS = {
    "tinyet_conv2d_s8_packed_words",
    "tinyet_conv2d_1x1_s8_packed_words",
    "tinyet_linear_s8_packed_words",
    "tinyet_conv2d_s8_paired_fours_4x1",
}


def bits(tensor: Tensor) -> Int64:
    values = np.ascontiguousarray(tensor.array).ravel()
    return (values.view(np.int32) if tensor.dtype is DType.FLOAT32 else values).astype(np.int64)


def moved(step: Step, index: int) -> tuple[Step, Tensor]:
    """The layer with its weights in another order, packed by the same kernel; all places are others'."""
    tensor = step.node.input(index)
    array = tensor.array.reshape(tensor.shape[0], -1)[:, ::-1].reshape(tensor.shape)
    other = Tensor(tensor.name, tensor.type, np.ascontiguousarray(array))
    inputs = [*step.node.inputs[:index], other, *step.node.inputs[index + 1 :]]
    node = step.node.replace(inputs=inputs)
    return replace(step, node=node, call=step.choice.kernel.lower(node, TARGETS["cortex_m"])), other


TARGETS = {"cortex_m": load_board("mps2_an386").target}
PROGRAMS = [
    streamed.chain(DType.INT8),
    streamed.inverted(DType.INT8),
    streamed.inverted(DType.FLOAT32),
    streamed.dilated(DType.INT16),
    small.program(size=8, channels=8, hidden=16),
]


@pytest.mark.parametrize(
    ("board", "delegates", "least"),
    [("mps2_an386", DEFAULT, 60), ("mps2_an386", (CMSIS_NN,), 14), ("microbit", DEFAULT, 35)],
)
def test_every_weight_is_read_back(board: str, delegates: tuple[Delegate, ...], least: int) -> None:
    """Of every kernel that could compute a layer, at least so many, by every family of packing."""
    target, kernels = load_board(board).target, set[str]()
    for program in PROGRAMS:
        deployment = deploy(program.graph, target, delegates)
        for step in deployment.steps:
            for candidate in deployment.decision.candidates[step.node]:
                symbol = candidate.choice.kernel.symbol
                kernels.add(symbol)
                tried = replace(step, choice=candidate.choice, call=candidate.call)
                packed = {c.name: c.data.tobytes() for c in candidate.call.constants}
                weights = [t for t in step.node.inputs[1:2] if t is not None and t.is_constant]
                found = layouts_of(tried, deployment.plan, target)
                for tensor in weights:
                    layout = next(each for each in found if each.tensor is tensor)
                    if symbol not in IN_RUNS:
                        assert (layout.readable == layout.count) == (symbol not in TRANSFORMED), symbol
                    for places in layout.places:
                        read = places.read(packed[places.constant])
                        assert (read == bits(tensor)[places.weight]).all(), symbol
    assert len(kernels) >= least, sorted(kernels)


@pytest.mark.parametrize("program", PROGRAMS[:2], ids=lambda program: program.name)
def test_places_hold_other_weights_too(program: Program) -> None:
    """A place is the weight's, not by chance one of the same value."""
    target = TARGETS["cortex_m"]
    deployment = deploy(program.graph, target)
    read = 0
    for step in deployment.steps:
        for layout in layouts_of(step, deployment.plan, target):
            if not layout.places or step.node.inputs[1] is not layout.tensor:
                continue
            other, tensor = moved(step, 1)
            packed = {c.name: c.data.tobytes() for c in other.call.constants}
            for places in layout.places:
                if places.shift.any() or places.borrows:
                    continue  # by how much, and whether, is the weights' own
                right = places.holds(packed[places.constant], bits(tensor))
                # Those of pairs in a lane may lend one to the weight above.
                assert right.mean() > (0.5 if any(p.borrows for p in layout.places) else 0.99), step
                read += len(right)
    assert read > 100
