# SPDX-License-Identifier: Apache-2.0
"""A camera's bytes from the sample to the outputs: C files, harness, application and reports of a whole project."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import tinyet
from tests.ops.emulated import require_emulator
from tinyet.emit.project import Kind

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler for this machine (cc)"),
]

_SIZE = 12
_OTHER_KINDS: tuple[Kind, ...] = ("arduino", "zephyr", "platformio")


class Camera(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A frame of bytes, (N, H, W, C) as the driver gives it, normalised channel by channel."""

    def __init__(self, normalised: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.normalised = normalised
        self.conv = torch.nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.head = torch.nn.Linear(4, 3)

    def forward(self, x):  # type: ignore[no-untyped-def]
        x = x.permute(0, 3, 1, 2).float() / 255
        if self.normalised:
            x = (x - torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)) / torch.tensor([0.2, 0.25, 0.3]).view(
                3, 1, 1
            )
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


@pytest.mark.parametrize("normalised", [False, True], ids=["exact", "normalised"])
def test_frames_of_bytes(normalised: bool, tmp_path: Path) -> None:
    frames = torch.randint(0, 256, (6, _SIZE, _SIZE, 3), dtype=torch.uint8)
    frames[0, 0, 0, :], frames[0, 0, 1, :] = 0, 255
    program = tinyet.compile(
        Camera(normalised).eval(), (frames[:1],), calibration=frames.split(2), name="camera"
    )
    program.save(tmp_path / "camera.tet")
    program = tinyet.load(tmp_path / "camera.tet")
    np.savez(tmp_path / "frames.npz", inputs=frames.numpy(), labels=np.zeros(6, int))
    project = tinyet.generate(
        program, "mps2_an386", tmp_path / "p", kind="cmake", evaluation=tmp_path / "frames.npz"
    )
    header = next((tmp_path / "p").rglob("camera.h")).read_text()
    assert "uint8_t *camera_input_0(void)" in header
    assert "SCALE" not in header[header.index("CAMERA_INPUT_0") : header.index("CAMERA_OUTPUT_0")]
    result = project.validate(on="host")
    assert (result.bit_exact, result.samples, result.synthetic) == (True, 6, False)
    assert result.layers[0].sqnr_db is not None
    require_emulator("mps2_an386")
    project.build()
    on_board = project.validate(on="qemu")
    assert (on_board.bit_exact, on_board.samples) == (True, 6)
    # A byte costs next to nothing where the scale is exact, and a look into a table elsewhere.
    assert on_board.layers[0].op == "lookup"
    assert on_board.layers[0].count is not None
    assert on_board.layers[0].count <= (3 if not normalised else 14) * _SIZE * _SIZE * 3 + 120
    for kind in _OTHER_KINDS:
        other = tinyet.generate(program, "nano_33_ble", tmp_path / kind, kind=kind)
        assert other.validate(frames.numpy(), on="host").bit_exact
