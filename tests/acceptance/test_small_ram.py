# SPDX-License-Identifier: Apache-2.0
"""Networks whose layers as a whole need more, on boards with 32 KB of RAM: by rows they fit, to the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import tinyet
from benchmarks.nets import NETWORKS
from tests.ops.emulated import require_emulator
from tests.torch_helpers import mlperf_models
from tinyet.boards import load_board
from tinyet.deployment import deploy
from tinyet.planning.objective import Objective
from tinyet.program import Program
from tinyet.project import Project

ROOT = Path(__file__).resolve().parents[2]
RAM = 32 * 1024

pytestmark = pytest.mark.emulated


def check(program: Program, image: torch.Tensor, project: Project) -> None:
    """It fits into the RAM, stack included, where whole layers do not; and each layer's values are the reference's.

    image: (1, rows, columns, channels)
    """
    size = project.build()
    plan = project.deployment.plan
    assert plan.fusion_groups
    # The stack is at the one end of the RAM, all else at the other, and the linker has held them apart.
    assert project.board.ram.bytes == RAM
    assert size.ram + size.stack <= RAM
    result = project.validate(image.numpy(), on="qemu", sqnr_samples=0)
    assert result.bit_exact, result.first_mismatch
    assert result.ram_with_stack_bytes is not None
    assert result.ram_with_stack_bytes <= RAM
    whole = deploy(
        program.graph,
        project.board.target,
        objective=Objective(ram=RAM - project.board.stack_bytes, untiled=True),
    )
    assert whole.plan.arena_bytes > RAM


def test_resnet8_on_an_nrf51(tmp_path: Path) -> None:
    """A chip that has no more: nRF51422 xxAC, a Cortex-M0."""
    require_emulator("nrf51_dk")
    models = mlperf_models()
    images, _ = models.cifar10("calibration")
    calibration: list[Any] = list(images[::16].split(8))
    program = tinyet.compile(
        models.resnet8(), (images[:1],), calibration=calibration, name="resnet8", channels_last=True
    )
    project = tinyet.generate(program, "nrf51_dk", tmp_path / "resnet8", kind="cmake")
    check(program, images[:1].permute(0, 2, 3, 1).contiguous(), project)


def test_mobilenet_v1_on_a_cortex_m4(tmp_path: Path) -> None:
    """Of width 0.25, with random weights, and an image of 96 by 96 pixels: that alone is 27,648 bytes."""
    require_emulator()
    network = NETWORKS["mobilenet_v1"]
    images = network.data(8)
    program = tinyet.compile(
        network.built(), (images[:1],), calibration=[images], name="mobilenet_v1", channels_last=True
    )
    text = (ROOT / "boards" / "mps2_an386.toml").read_text(encoding="utf-8")
    # The second size is the RAM's, the first the flash's.
    before, flash, after = text.replace("stack_bytes = 4096", "stack_bytes = 2048").split("0x00400000")
    own = tmp_path / "small_m4.toml"
    own.write_text(f"{before}0x00400000{flash}{RAM}{after}", encoding="utf-8")
    assert load_board(own).ram.bytes == RAM
    project = tinyet.generate(program, own, tmp_path / "mobilenet", kind="cmake")
    check(program, images[:1].permute(0, 2, 3, 1).contiguous(), project)
