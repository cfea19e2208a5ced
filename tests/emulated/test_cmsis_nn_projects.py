# SPDX-License-Identifier: Apache-2.0
"""Projects with the files of CMSIS-NN in a folder: they build as they are, and compute what they should."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import small
from tinyet import assets
from tinyet.build.process import run
from tinyet.delegates import CMSIS_NN
from tinyet.errors import ToolchainError
from tinyet.projects.one import generate

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(
        assets.cmsis_nn_dir() is None,
        reason=f"the sources of CMSIS-NN {assets.CMSIS_NN_VERSION} are not here",
    ),
    pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed"),
]
KERNELS = ["arm_convolve_s8", "arm_max_pool_s8", "arm_fully_connected_s8"]


def test_platformio(tmp_path: Path) -> None:
    pytest.importorskip("platformio")
    lines: list[str] = []
    project = generate(small.program(), "mps2_an386", tmp_path / "p", delegates=(CMSIS_NN,))
    assert (project.path / "lib/small/src/cmsis_nn/LICENSE").is_file()
    project.build(on_output=lines.append)
    # The project asks for warnings, and the library gives it none.
    assert not [line for line in lines if "cmsis_nn" in line and "warning" in line]
    result = project.validate(small.images(3), on="qemu")
    assert result.bit_exact
    assert [layer.kernel for layer in result.layers] == KERNELS
    assert project.validate(small.images(2), on="host").bit_exact


def test_cmake(tmp_path: Path) -> None:
    """For the board, and for this machine, where warnings are errors too."""
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    project = generate(small.program(), "mps3_an547", tmp_path / "p", kind="cmake", delegates=(CMSIS_NN,))
    project.build()
    result = project.validate(small.images(3), on="qemu")
    assert result.bit_exact
    assert [layer.kernel for layer in result.layers] == KERNELS
    assert project.validate(small.images(2), on="host").bit_exact
    commands: list[list[str | Path]] = [
        ["-S", project.path, "-B", tmp_path / "b"],
        ["--build", tmp_path / "b"],
    ]
    for command in commands:
        run(["cmake", *command], timeout=300, what="building for this machine")


def test_nothing_is_written_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TINYET_CMSIS_NN", raising=False)
    monkeypatch.setattr("tinyet.delegates.cmsis_nn.sources.URL", "file:///nowhere")
    with pytest.raises(ToolchainError, match="is not on this machine"):
        generate(small.program(), "mps2_an386", tmp_path / "p", delegates=(CMSIS_NN,))
    assert not (tmp_path / "p").exists()
