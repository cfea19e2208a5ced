# SPDX-License-Identifier: Apache-2.0
"""Networks of the MLPerf Tiny benchmark on every kind of core: the same bytes out, and no more memory than
promised."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tinyet
from tests.ops.emulated import require_emulator
from tests.planned import check_planned
from tinyet.boards import load_board
from tinyet.deployment import deploy
from tinyet.ir import Array
from tinyet.program import Program

ROOT = Path(__file__).resolve().parents[2]
# One board for each core. The nRF51 has 32 KB of RAM, which is what DS-CNN needs at most.
BOARDS = {
    "cortex-m0": "nrf51_dk",
    "cortex-m3": "mps2_an385",
    "cortex-m4": "mps2_an386",
    "cortex-m7": "mps2_an500",
    "cortex-m33": "mps2_an505",
    "cortex-m55": "mps3_an547",
    "rv32imac": "riscv32_virt",
    "xtensa-lx106": "xtensa_lx60",
}
ARENA_KEYWORDS = 17 * 1024
# The default takes RAM for time where a board has plenty.
ARENA_IMAGES = 76 * 1024

pytestmark = pytest.mark.emulated


@pytest.fixture(scope="module")
def mlperf() -> Iterator[ModuleType]:
    """The module that loads the trained networks and their data."""
    pytest.importorskip("torchao", reason="torchao is not installed: the networks are quantized here")
    place = Path(os.environ.get("TINYET_MLPERF_DIR", ROOT / "../shared/mlperf_tiny")) / "models.py"
    if not place.is_file():
        pytest.skip(f"no MLPerf Tiny networks at {place}: set TINYET_MLPERF_DIR")
    name = "tinyet_mlperf_models"
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[name]


@pytest.fixture(scope="module")
def keywords(mlperf: ModuleType) -> tuple[Program, Array]:
    """DS-CNN, and one sample each of four words."""
    x, labels = mlperf.keyword_test()
    calibration: list[Any] = list(x[::25].split(8))
    program = tinyet.compile(mlperf.ds_cnn(), (x[:1],), calibration=calibration, name="ds_cnn")
    first = [int(np.argmax(labels.numpy() == label)) for label in range(4)]
    return program, x[first].numpy()


@pytest.fixture(scope="module")
def wanted(keywords: tuple[Program, Array]) -> list[bytes]:
    """The reference's outputs."""
    program, x = keywords
    outputs = [program.run(sample, as_float=False) for sample in x]
    return [np.ascontiguousarray(out).tobytes() for out in outputs]


def test_the_samples_are_told_apart(wanted: list[bytes]) -> None:
    assert len(set(wanted)) == len(wanted)


@pytest.mark.parametrize("cpu", BOARDS)
def test_the_arena_of_ds_cnn(keywords: tuple[Program, Array], cpu: str) -> None:
    deployment = deploy(keywords[0].graph, load_board(BOARDS[cpu]).target)
    assert deployment.plan.arena_bytes <= ARENA_KEYWORDS


@pytest.mark.parametrize("cpu", BOARDS)
def test_ds_cnn_gives_the_same_bytes(
    keywords: tuple[Program, Array], wanted: list[bytes], cpu: str, tmp_path: Path
) -> None:
    require_emulator(BOARDS[cpu])
    program, x = keywords
    board = load_board(BOARDS[cpu])
    assert board.cpu == cpu
    project = tinyet.generate(program, board, tmp_path / "ds_cnn")
    size = project.build()
    assert size.ram + size.stack <= board.ram.bytes
    check_planned(project, size)
    assert size.sample == x[0].nbytes // x.itemsize  # found in the image, as int8
    result = project.validate(x, on="qemu", sqnr_samples=0)
    assert result.bit_exact, result.first_mismatch
    assert [np.ascontiguousarray(out[0]).tobytes() for out in result.outputs] == wanted
    assert result.stack_bytes is not None
    assert result.stack_bound is not None
    assert result.stack_bound.bytes is not None
    assert 0 < result.stack_bytes <= result.stack_bound.bytes < size.stack
    assert result.count_unit == "instructions"
    assert result.instructions is not None
    assert result.instructions > 0
    assert result.macs == sum(layer.macs for layer in result.layers) > 2_000_000


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_ds_cnn_by_clang_gives_the_same_bytes(
    keywords: tuple[Program, Array], cpu: str, tmp_path: Path
) -> None:
    require_emulator(BOARDS[cpu])
    program, x = keywords
    project = tinyet.generate(program, BOARDS[cpu], tmp_path / "ds_cnn", kind="cmake")
    project.build(compiler="clang")
    result = project.validate(x, on="qemu", sqnr_samples=0)
    assert result.samples == len(x)
    assert result.bit_exact, result.first_mismatch


def test_resnet8_is_exact_on_a_cortex_m4(mlperf: ModuleType, tmp_path: Path) -> None:
    require_emulator()
    x, _ = mlperf.cifar10("calibration")
    images, _ = mlperf.cifar10("test")
    calibration: list[Any] = list(x[::16].split(8))
    program = tinyet.compile(mlperf.resnet8(), (x[:1],), calibration=calibration, name="resnet8")
    project = tinyet.generate(program, BOARDS["cortex-m4"], tmp_path / "resnet8")
    project.build()
    result = project.validate(images[::400].numpy(), on="qemu", sqnr_samples=0)
    assert result.samples == 3
    assert result.bit_exact, result.first_mismatch
    assert result.arena_bytes <= ARENA_IMAGES
