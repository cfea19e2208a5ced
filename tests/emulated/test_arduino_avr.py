# SPDX-License-Identifier: Apache-2.0
"""Generated Arduino libraries on the Uno's processor: compiled with Arduino's own core for it, run in simavr."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests import small
from tests.emulated import arduino, simavr
from tinyet.boards import Board, load_board
from tinyet.build.size import measure
from tinyet.data import make_samples
from tinyet.device.child import Child
from tinyet.device.device import Device
from tinyet.device.links import PipeLink
from tinyet.errors import FitError
from tinyet.ir import Array
from tinyet.program import Program
from tinyet.project import Project
from tinyet.projects.one import generate
from tinyet.validation import validate

HARDWARE = Path("/usr/share/arduino/hardware/arduino/avr")
# Seconds of the simulated clock.
SECONDS = 30.0

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(
        not (HARDWARE / "platform.txt").is_file(),
        reason="Arduino's AVR core is not installed (arduino-core-avr)",
    ),
    pytest.mark.skipif(shutil.which("avr-g++") is None, reason="avr-g++ is not installed (gcc-avr)"),
]


def read_properties(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def core_of(board: Board) -> arduino.Core:
    """The board's core with the flags of its platform.txt and boards.txt."""
    assert board.arduino is not None
    platform = read_properties(HARDWARE / "platform.txt")
    boards = read_properties(HARDWARE / "boards.txt")
    name = board.arduino.fqbn.split(":")[2]
    mcu, board_id = boards[f"{name}.build.mcu"], boards[f"{name}.build.board"]
    assert (mcu, boards[f"{name}.build.f_cpu"]) == (board.target.mcu, f"{board.clock_hz}L")
    macros = [f"-mmcu={mcu}", f"-DF_CPU={board.clock_hz}L", "-DARDUINO=10819"]
    macros += [f"-DARDUINO_{board_id}", "-DARDUINO_ARCH_AVR"]

    def flags(key: str) -> list[str]:
        # Warnings are the tests' own, and -M... writes files nobody reads.
        words = re.sub(r"\{[^}]*\}", "", platform[key]).split()
        return [word for word in words if word not in ("-c", "-MMD", "-w")]

    sources = HARDWARE / "cores" / "arduino"
    variant = HARDWARE / "variants" / boards[f"{name}.build.variant"]
    return arduino.Core(
        prefix="avr-",
        c=(*flags("compiler.c.flags"), *macros),
        cpp=(*flags("compiler.cpp.flags"), *macros),
        link=(*flags("compiler.c.elf.flags"), f"-mmcu={mcu}", "-lm"),
        sources=tuple(sorted(path for path in sources.iterdir() if path.suffix in (".c", ".cpp", ".S"))),
        includes=(sources, variant),
        # GCC 5, which Debian has, defines DECIMAL_DIG for C only; the core is made for GCC 7.
        own=("-w", "-DDECIMAL_DIG=__DECIMAL_DIG__"),
    )


@pytest.fixture(scope="module")
def board() -> Board:
    return load_board("arduino_uno")


@pytest.fixture(scope="module")
def core(board: Board) -> arduino.Core:
    return core_of(board)


@pytest.fixture(scope="module")
def core_archive(core: arduino.Core, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return core.build(tmp_path_factory.mktemp("core") / "objects")


@pytest.fixture
def build(core: arduino.Core, core_archive: Path, tmp_path: Path) -> Callable[..., Path]:
    def built(project: Project, sketch: str, standard: str = "") -> Path:
        place = tmp_path / f"{project.path.name}-{sketch}"
        library = arduino.build_library(core, arduino.library_of(project), place / "library", standard)
        archives = (library, core_archive)
        return arduino.build_sketch(
            core, arduino.library_of(project), sketch, archives, place / "sketch", standard
        )

    return built


MODELS: dict[str, Callable[[], Program]] = {
    "convolution": lambda: small.program(channels=2),
    "mlp": lambda: small.program(size=4, channels=1, hidden=12),
    "float": lambda: Program("small", small.graph(real=True, size=4, channels=2), None, ()),
}


def samples_of(program: Program, count: int) -> list[Array]:
    rng = np.random.default_rng(1)
    return [rng.uniform(-5, 5, program.inputs[0].shape).astype(np.float32) for _ in range(count)]


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_sketch_prints_what_the_reference_computes(
    model: str, board: Board, build: Callable[..., Path], tmp_path: Path
) -> None:
    program = MODELS[model]()
    for index, sample in enumerate(samples_of(program, 2)):
        project = generate(program, "arduino_uno", tmp_path / f"p{index}", kind="arduino", sample=[sample])
        elf = build(project, "RunSmallModel")
        text = simavr.run(elf, board.target.mcu, board.clock_hz, SECONDS, until="done\r\n")
        arduino.check_printed(text.splitlines(), program, sample)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_harness_answers_bit_exactly(
    model: str, board: Board, build: Callable[..., Path], tmp_path: Path
) -> None:
    program = MODELS[model]()
    project = generate(program, "arduino_uno", tmp_path / "p", kind="arduino")
    elf = build(project, "Harness")
    size = measure(elf)
    assert size.ram < board.ram.bytes
    words = [str(simavr.build_runner()), str(elf), board.target.mcu, str(board.clock_hz), "1e9"]
    link = PipeLink(Child(words, pipes=True))
    with Device(link, elf=None, ticks_per_instruction=None, bytes_per_second=2000.0) as device:
        assert device.info().stack_bytes == 0
        assert device.count_unit == "nanoseconds"
        data = np.concatenate(samples_of(program, 3))
        result = validate(
            program,
            project.deployment,
            device,
            make_samples(program.inputs, [data], None),
            on="simavr",
            board=board.name,
            sizes=project.sizes,
        )
    assert result.bit_exact
    assert len(result.layers) == len(project.deployment.steps)
    assert sum(layer.count or 0 for layer in result.layers) > 0


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_the_harness_behind_a_serial_port(board: Board, build: Callable[..., Path], tmp_path: Path) -> None:
    """As with a real board that the IDE has flashed: `validate` needs no file of the firmware."""
    program = MODELS["mlp"]()
    project = generate(program, "arduino_uno", tmp_path / "p", kind="arduino")
    elf = build(project, "Harness")
    words = [str(simavr.build_runner()), str(elf), board.target.mcu, str(board.clock_hz), "1e9"]
    master, slave = os.openpty()
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as chip:
        assert chip.stdin is not None
        assert chip.stdout is not None
        pumps = [
            threading.Thread(target=_pump, args=ends, daemon=True)
            for ends in ((master, chip.stdin.fileno()), (chip.stdout.fileno(), master))
        ]
        for pump in pumps:
            pump.start()
        try:
            data = np.concatenate(samples_of(program, 2))
            result = project.validate(data, on=f"serial:{os.ttyname(slave)}")
        finally:
            chip.kill()
            chip.wait()
            # The end of the terminal ends the thread that waits for it.
            os.close(slave)
            for pump in pumps:
                pump.join(10.0)
            os.close(master)
    assert result.bit_exact
    assert result.count_unit == "nanoseconds"


def _pump(source: int, target: int) -> None:
    """Move bytes from one file to another until either ends."""
    with contextlib.suppress(OSError):
        while data := os.read(source, 4096):
            os.write(target, data)


def test_the_same_files_answer_on_this_machine(tmp_path: Path) -> None:
    program = MODELS["convolution"]()
    project = generate(program, "arduino_uno", tmp_path / "p", kind="arduino")
    data = np.concatenate(samples_of(program, 2))
    assert project.validate(data, on="host").bit_exact


def test_the_library_is_clean_in_newer_standards(
    board: Board, build: Callable[..., Path], tmp_path: Path
) -> None:
    """Cores of other vendors choose C++14 or C++17."""
    program = small.program(channels=2)
    sample = samples_of(program, 1)[0]
    project = generate(program, "arduino_uno", tmp_path / "p", kind="arduino", sample=[sample])
    elf = build(project, "RunSmallModel", "-std=gnu++17")
    text = simavr.run(elf, board.target.mcu, board.clock_hz, SECONDS, until="done\r\n")
    arduino.check_printed(text.splitlines(), program, sample)
    build(project, "Harness", "-std=gnu++17")


def test_a_model_that_does_not_fit_is_refused_with_numbers(tmp_path: Path) -> None:
    with pytest.raises(FitError, match=r"\d+ bytes") as caught:
        generate(small.program(size=24), "arduino_uno", tmp_path / "p", kind="arduino")
    assert "2048" in caught.value.what
    assert not (tmp_path / "p").exists()
