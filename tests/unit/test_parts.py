# SPDX-License-Identifier: Apache-2.0
"""Calls in parts: every kind of layer, proved; and mistakes that the proof has to find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests import streamed
from tinyet.boards import load_board
from tinyet.delegates import DEFAULT, PORTABLE, Delegate
from tinyet.deployment import Deployment, deploy, with_parts
from tinyet.emit.slices import slice_limit, slices_of
from tinyet.errors import InternalError
from tinyet.ir import DType, Node
from tinyet.memory.check import check_plan
from tinyet.ops import op_of
from tinyet.ops.conv2d import Conv2d
from tinyet.opset.parts import Part
from tinyet.planning.objective import Objective
from tinyet.planning.parts import Cut, cut_of, undisturbed

BOARD = load_board("mps2_an386")


def deployed(name: str, dtype: DType = DType.INT8, delegates: Sequence[Delegate] = DEFAULT) -> Deployment:
    graph = streamed.NETWORKS[name](dtype).graph
    return deploy(graph, BOARD.target, delegates, objective=Objective("balanced"))


# network → the operators that are cut, and whether rows are cut by channels, too, where kernels write among others
CUT = {
    "everything": ({"conv2d", "add", "max_pool2d", "mul", "unary", "avg_pool2d"}, True),
    "dilated": ({"conv2d"}, True),
    "typed": ({"conv2d", "quantize", "dequantize"}, True),
    "heads": ({"linear", "matmul", "softmax", "add", "slice"}, False),
}


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("delegates", [(PORTABLE,), DEFAULT], ids=["portable", "dsp"])
def test_layers_of_each_kind(name: str, delegates: Sequence[Delegate]) -> None:
    """As short as they can be, each proved to be the layer at the addresses that it has, by `with_parts`."""
    operators, among = CUT[name]
    deployment, slices = slices_of(deployed(name, delegates=delegates), BOARD, slice_limit(1))
    parted = [step for step in deployment.steps if step.parts]
    assert {step.node.op for step in parted} == operators
    assert any(step.groups > 1 for step in parted) == (among and delegates == DEFAULT)
    assert slices.count == sum(step.runs for step in deployment.steps) == len(deployment.order)


def test_as_few_parts_as_can_be() -> None:
    """None longer than asked where rows or groups of channels are short enough, and no more of them than needed."""
    whole = deployed("chain")
    deployment, slices = slices_of(whole, BOARD, slice_limit(9000))
    assert not any("a slice longer" in note for note in slices.notes)
    assert max(segment.cost or 0 for segment in slices.segments) <= 9000
    for before, step in zip(whole.steps, deployment.steps, strict=True):
        cost = whole.decision.chosen[before.node].instructions
        assert bool(step.parts) == (cost > 9000)
        assert len(step.parts) <= max(2 * cost // 9000 + 2, 1)


def test_a_pinned_kernel_stays() -> None:
    """Winograd's makes no fewer than four rows; with the pin there is no other, and the slice is named."""
    graph = streamed.NETWORKS["residual"](DType.INT8).graph
    free = deploy(graph, BOARD.target, DEFAULT, objective=Objective("speed"))
    kernel = "tinyet_conv2d_s8_w16_winograd_f4x4_dsp"
    layer = next(
        s.name for s in free.steps
        if kernel in {c.choice.kernel.symbol for c in free.decision.candidates[s.node]}
    )  # fmt: skip
    pinned = deploy(graph, BOARD.target, DEFAULT, objective=Objective("speed", pins={layer: kernel}))
    for whole, stays in ((free, False), (pinned, True)):
        deployment, slices = slices_of(whole, BOARD, slice_limit(3000))
        step = next(each for each in deployment.steps if each.name == layer)
        assert (step.call.kernel == kernel) == stays
        assert any(note.startswith(f"a slice longer than 3000: {step}") for note in slices.notes) == stays
        assert (
            all(part.end - part.first >= 4 or part.end == step.node.output.shape[1] for part in step.parts)
            or not stays
        )


Found = tuple[Deployment, Node, Cut]


@pytest.fixture(scope="module")
def found() -> Found:
    """A padded 3x3 convolution in single rows, by a kernel that takes a pixel's window at a time."""
    kernels = tuple(k for k in PORTABLE.kernels[Conv2d] if not k.symbol.endswith("_threes_3x4"))
    deployment = deployed(
        "chain", delegates=(replace(PORTABLE, kernels={**PORTABLE.kernels, Conv2d: kernels}),)
    )
    node = deployment.steps[0].node
    cut = cut_of(node, deployment.decision, deployment.plan, BOARD.target, 1, by_time=False)
    assert isinstance(cut, Cut)
    assert len(cut.parts) == node.output.shape[1]
    return deployment, node, cut


def shifted(part: Part, reads: int = 0, writes: int = 0) -> Part:
    return replace(part, reads={i: at + reads for i, at in part.reads.items()}, writes=part.writes + writes)


MISTAKES = {
    "a row further": lambda parts: (*parts[:4], shifted(parts[4], reads=40), *parts[5:]),
    "another one's place": lambda parts: (*parts[:4], shifted(parts[4], writes=160), *parts[5:]),
    "left out": lambda parts: (*parts[:4], *parts[5:]),
    "twice": lambda parts: (*parts[:5], *parts[4:]),
    "no padding": lambda parts: (
        *parts[:-1],
        replace(parts[-2], reads=parts[-1].reads, writes=parts[-1].writes),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_parts_are_found(mistake: str, found: Found) -> None:
    deployment, node, cut = found
    assert with_parts(deployment, {node: cut}).steps[0].runs == len(cut.parts)
    wrong = replace(cut, parts=MISTAKES[mistake](cut.parts))
    with pytest.raises(InternalError):
        with_parts(deployment, {node: wrong})


def test_what_is_written_over_is_found(found: Found) -> None:
    """The output where the input is: each part destroys what the next one reads."""
    deployment, node, cut = found
    plan, blocks = deployment.plan, list(deployment.plan.blocks)
    x, y = (plan.storage[tensor].block for tensor in (node.input(0), node.output))
    assert x != y
    assert undisturbed(plan, node, cut)
    blocks[y] = replace(blocks[y], offset=blocks[x].offset)
    over = replace(plan, blocks=tuple(blocks))
    assert not undisturbed(over, node, cut)
    scratch = {s.node: s.call.scratch_bytes for s in deployment.steps if s.call.scratch_bytes}
    with pytest.raises(InternalError, match=r"reads byte .* of what part 1 of conv2d_0 takes of x"):
        check_plan(deployment.graph, over, op_of, scratch, align=4, scratch_align=8, parts={node: cut.parts})
