# SPDX-License-Identifier: Apache-2.0
"""PlatformIO's projects on Arduino's core, compiled as PlatformIO does with a core that is on this machine, in simavr.

PlatformIO itself is not asked: its registry would have to be reached. What is compiled are the files that its
platformio.ini names, with the flags that stand there and in library.json.
"""

from __future__ import annotations

import configparser
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.emulated import arduino, simavr
from tests.emulated.test_arduino_avr import HARDWARE, MODELS, SECONDS, core_of, samples_of
from tinyet.boards import Board, load_board
from tinyet.build.size import measure
from tinyet.data import make_samples
from tinyet.device.child import Child
from tinyet.device.device import Device
from tinyet.device.links import PipeLink
from tinyet.project import Project
from tinyet.projects.one import generate
from tinyet.validation import validate

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(
        not (HARDWARE / "platform.txt").is_file(),
        reason="Arduino's AVR core is not installed (arduino-core-avr)",
    ),
    pytest.mark.skipif(shutil.which("avr-g++") is None, reason="avr-g++ is not installed (gcc-avr)"),
]


@pytest.fixture(scope="module")
def board() -> Board:
    return load_board("arduino_uno")


@pytest.fixture(scope="module")
def core_archive(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return core_of(board).build(tmp_path_factory.mktemp("core") / "objects")


def _firmware(board: Board, core_archive: Path, project: Project, env: str) -> Path:
    """One environment's firmware. Every warning is an error."""
    ini = configparser.ConfigParser()
    ini.read_string((project.path / "platformio.ini").read_text(encoding="utf-8").replace("${", "("))
    section = ini[f"env:{env}"]
    trace = [flag for flag in section.get("build_flags", "").split() if flag.startswith("-D")]
    directory = project.path / ("harness" if "harness" in section.get("build_src_filter", "") else "src")
    library = project.path / "lib" / project.name
    flags = json.loads((library / "library.json").read_text(encoding="utf-8"))["build"]["flags"].split()
    core = core_of(board)
    out = project.path / f"objects-{env}"
    out.mkdir()
    includes = (project.path / "src", library / "src", *core.includes)
    objects = [
        core.compile(source, out, includes, (*arduino.WARNINGS, *trace, *extra))
        for sources, extra in ((directory, []), (library / "src", flags))
        for source in sorted(sources.iterdir())
        if source.suffix in (".c", ".cpp")
    ]
    elf = out / "firmware.elf"
    arduino.run([f"{core.prefix}gcc", *map(str, objects), str(core_archive), *core.link, "-o", str(elf)])
    return elf


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_application_prints_what_the_reference_computes(
    model: str, board: Board, core_archive: Path, tmp_path: Path
) -> None:
    program = MODELS[model]()
    sample = samples_of(program, 1)[0]
    project = generate(program, "arduino_uno", tmp_path, sample=[sample])
    elf = _firmware(board, core_archive, project, "arduino_uno")
    lines = simavr.run(elf, board.target.mcu, board.clock_hz, SECONDS, until="done\n").splitlines()
    arduino.check_printed(lines, program, sample)
    # The sample is in program memory: RAM has the arena, and room for the stack is left.
    assert measure(elf).ram + board.stack_bytes <= board.ram.bytes


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_harness_answers_bit_exactly(
    model: str, board: Board, core_archive: Path, tmp_path: Path
) -> None:
    program = MODELS[model]()
    project = generate(program, "arduino_uno", tmp_path)
    elf = _firmware(board, core_archive, project, "harness")
    words = [str(simavr.build_runner()), str(elf), board.target.mcu, str(board.clock_hz), "1e9"]
    link = PipeLink(Child(words, pipes=True))
    with Device(link, elf=None, ticks_per_instruction=None, bytes_per_second=2000.0) as device:
        result = validate(
            program,
            project.deployment,
            device,
            make_samples(program.inputs, [np.concatenate(samples_of(program, 3))], None),
            on="simavr",
            board=board.name,
            sizes=project.sizes,
        )
    assert result.bit_exact
    assert len(result.layers) == len(project.deployment.steps)
