# SPDX-License-Identifier: Apache-2.0
"""What layers agree on about how values lie between them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from tests.golden.programs import Builder, bias_s32, input_s8, weights_s8
from tinyet.boards import load_board
from tinyet.delegates import CORTEX_M, PORTABLE, Delegate
from tinyet.deployment import Deployment, deploy
from tinyet.ir import Tensor
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.mean import Mean
from tinyet.ops.mul import Mul
from tinyet.ops.unary import Unary
from tinyet.planning.objective import Objective
from tinyet.program import Program

TARGET = load_board("mps2_an386").target
QUANT = (0.05, -3)


def separable() -> Program:
    """Depthwise and pointwise; the tensor between them is the largest."""
    b = Builder("separable")
    x = input_s8("x", (1, 8, 8, 16), *QUANT)
    window: dict[str, Any] = {"pad_top": 1, "pad_bottom": 1, "pad_left": 1, "pad_right": 1}
    y = b.add(
        Conv2d(**window, groups=16, clamp=(0.0, math.inf)),
        x,
        weights_s8("d", (16, 3, 3, 1), 37),
        bias_s32("db", 16, 411),
        out="between",
        source="",
        quant=QUANT,
        module="depthwise",
    )
    y = b.add(
        Conv2d(clamp=(0.0, math.inf)),
        y,
        weights_s8("p", (8, 1, 1, 16), 53),
        bias_s32("pb", 8, 173),
        out="y",
        source="",
        quant=QUANT,
        module="pointwise",
    )
    return b.finish((x,), y)


def between(deployment: Deployment) -> Tensor:
    return deployment.steps[0].node.output


def test_pairs_of_pixels_where_there_is_room() -> None:
    graph = separable().graph
    pins = {"pointwise": "tinyet_conv2d_s8_w16_im2col_2x2_dsp"}
    fast = deploy(graph, TARGET, objective=Objective("speed", pins=pins))
    assert fast.plan.form(between(fast)) == "pairs of pixels"
    assert fast.plan.extent(between(fast)) == 2 * between(fast).type.bytes
    # Not for more of the arena than otherwise, and never for more than there is.
    balanced = deploy(graph, TARGET, objective=Objective("balanced", pins=pins))
    assert balanced.plan.form(between(balanced)) == ""
    assert balanced.plan.arena_bytes < fast.plan.arena_bytes
    room = fast.plan.arena_bytes - 1
    tight = deploy(graph, TARGET, objective=Objective("speed", ram=room, pins=pins))
    assert tight.plan.form(between(tight)) == ""
    assert tight.plan.arena_bytes <= room


def test_a_scalar_between_layers() -> None:
    """It has no pixels that could lie in another way."""
    b = Builder("scaled")
    x = input_s8("x", (1, 4, 4, 4), *QUANT)
    mean = b.add(Mean((0, 1, 2, 3), False), x, out="mean", source="", quant=QUANT)
    size = b.add(Unary("abs"), mean, out="size", source="", quant=QUANT)
    again = b.add(Unary("abs"), size, out="again", source="", quant=QUANT)
    y = b.add(Mul(), x, again, out="y", source="", quant=QUANT)
    found = deploy(b.finish((x,), y).graph, TARGET, objective=Objective("speed"))
    assert [step.choice.kernel.layout_support is not None for step in found.steps] == [
        False,
        True,
        True,
        False,
    ]
    assert not any(found.plan.form(step.node.output) for step in found.steps)


def silent(delegate: Delegate) -> Delegate:
    """Its kernels, as if they promised nothing about the order of their work."""
    kernels = {
        op: tuple(dataclasses.replace(kernel, access_order=None, replaces=None) for kernel in found)
        for op, found in delegate.kernels.items()
    }
    return dataclasses.replace(delegate, kernels=kernels)


def test_kernels_whose_output_lies_over_their_input_where_there_is_no_room_for_others() -> None:
    graph = separable().graph
    found = {
        ram: deploy(graph, TARGET, (silent(CORTEX_M), PORTABLE), objective=Objective(ram=ram))
        for ram in (None, 1700, 1300, 1000)
    }
    delegates = {ram: [step.choice.delegate.name for step in d.steps] for ram, d in found.items()}
    assert delegates[None] == ["cortex_m", "cortex_m"]
    # 1024 bytes in, 1024 between, 512 out: only the depthwise layer needs more than there is.
    assert delegates[1700] == ["portable", "cortex_m"]
    assert delegates[1300] == ["portable", "portable"]
    assert all(found[ram].plan.arena_bytes <= ram for ram in (1700, 1300))
    assert [len(d.plan.overlaps) for d in found.values()] == [0, 1, 2, 2]
    # Where nothing is small enough, what needs the least.
    assert 1000 < found[1000].plan.arena_bytes <= found[1300].plan.arena_bytes
    assert max(found[1300].plan.alive) == found[1300].plan.lower_bound
