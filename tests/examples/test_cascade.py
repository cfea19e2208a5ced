# SPDX-License-Identifier: Apache-2.0
"""The small network that wakes a large one: both in one arena, on an emulated board, as the host reference hears it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.examples.loading import EXAMPLES, load
from tests.ops.emulated import require_emulator

pytest.importorskip("torch", reason="torch is not installed: the networks are quantized here")
pytest.importorskip("torchao", reason="torchao is not installed: the networks are quantized here")

demo = load("cascade/demo.py")
gallery = load("gallery.py")


def test_the_weights_ship() -> None:
    assert (EXAMPLES / "cascade" / "wake.pt").stat().st_size < 20_000


@pytest.mark.emulated
def test_it_sleeps_and_hears_on_a_board(tmp_path: Path) -> None:
    require_emulator("mps2_an386")
    both = demo.programs()
    project = demo.generate(both, "mps2_an386", tmp_path / "p")
    assert project.shared.arena_bytes < project.shared.apart_bytes
    windows = np.asarray(demo.windows_heard())
    gallery.use_application(project, demo.application(windows))
    project.build()
    heard = gallery.run_application(project)
    assert heard == demo.heard_by_the_host(both, windows)
    # Every other second is silent.
    assert heard[1::2].count("asleep") >= 0.75 * len(heard[1::2])
    assert heard[::2].count("asleep") <= 0.25 * len(heard[::2])
    assert len({"yes", "no", "stop", "go"} & set(heard)) >= 3
