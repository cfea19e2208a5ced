# SPDX-License-Identifier: Apache-2.0
"""Every board file with every kind of project: generated, the same twice, or refused with advice."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.compilers import quick_platformio
from tests.golden.programs import RELU, Builder, bias_s32, input_s8, separable, weights_s8
from tinyet import assets
from tinyet.boards import board_names, load_board
from tinyet.build import platformio
from tinyet.emit.kinds import KINDS, Kind, kinds_for
from tinyet.errors import FitError, ProjectError, ToolchainError, UsageError
from tinyet.ops.linear import Linear
from tinyet.program import Program
from tinyet.project import Project
from tinyet.projects.one import generate

BOARDS = {name: load_board(name) for name in board_names()}
REGISTRY = {name: board for name, board in BOARDS.items() if board.platformio and board.platformio.framework}
PROGRAM = separable()


@cache
def linear(inputs: int, outputs: int) -> Program:
    """One layer with inputs * outputs weights of a byte."""
    b = Builder("wide")
    x = input_s8("x", (1, inputs), 0.05, 1)
    y = b.add(
        Linear(clamp=RELU), x, weights_s8("w", (outputs, inputs), 29), bias_s32("b", outputs, 97),
        out="y", source="return self.linear(x)", quant=(0.09, 3),
    )  # fmt: skip
    return b.finish((x,), y)


def _contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BOARDS)
def test_a_board_has_the_kind_or_is_told_which_it_has(name: str, kind: Kind, tmp_path: Path) -> None:
    board = BOARDS[name]
    if kind in kinds_for(board):
        project = generate(PROGRAM, name, tmp_path / "here", kind=kind)
        assert (project.board.name, project.name) == (name, "separable")
        generate(PROGRAM, name, tmp_path / "some" / "other place", kind=kind)
        files = _contents(tmp_path / "here")
        assert files == _contents(tmp_path / "some" / "other place")
        manifest = json.loads(files["tinyet.json"])
        assert set(manifest["yours"]) <= set(files)
        assert not manifest["desc"] or manifest["desc"] in files
        model = {path.rpartition("/")[2] for path in files if path.startswith(manifest["model_dir"])}
        assert {"separable.c", "separable.h", "tinyet_common.h"} <= model
        for path, data in files.items():
            if not path.endswith(".tet"):
                assert str(tmp_path).encode() not in data, path
                assert not re.search(rb"\{\{ *(board|facts)|\{% *(if|for|end)", data), path
    else:
        with pytest.raises(UsageError, match=f"no {kind} project for the board {name}") as caught:
            generate(PROGRAM, name, tmp_path / "here", kind=kind)
        hint = str(caught.value.hint)
        kinds = re.findall(r"\w+", hint.partition(": ")[2].partition("\n")[0])
        boards = re.findall(r"\w+", hint.partition(f"boards for {kind}: ")[2])
        assert tuple(kinds) == kinds_for(board)
        assert boards == [other.name for other in BOARDS.values() if kind in kinds_for(other)]
        assert boards
        assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("name", BOARDS)
def test_whatever_the_board_something_can_be_generated(name: str) -> None:
    board = BOARDS[name]
    assert "model" in kinds_for(board)
    assert len(kinds_for(board)) > 1
    assert ("platformio" in kinds_for(board)) == (board.bare_metal or name in REGISTRY)


@pytest.mark.parametrize("name", BOARDS)
def test_a_model_fits_or_the_numbers_say_why(name: str, tmp_path: Path) -> None:
    """Weights of 40 000 bytes, and in another model 4 000 bytes of values: too much for the Arduino UNO alone."""
    board = BOARDS[name]
    for program, memory, what in (
        (linear(200, 200), board.flash, "flash"),
        (linear(4000, 3), board.ram, "RAM"),
    ):
        out = tmp_path / what
        if memory.bytes > 40_000 or (what == "RAM" and memory.bytes > 5_000):
            assert generate(program, name, out, kind="model").name == "wide"
            continue
        with pytest.raises(FitError) as caught:
            generate(program, name, out, kind="model")
        assert what in str(caught.value)
        assert str(memory.bytes) in str(caught.value).replace(" ", "").replace(",", "")
        assert re.search(r"\d+ bytes", str(caught.value))
        assert not out.exists()


def test_the_sizes_above_split_the_boards() -> None:
    """A test of both outcomes needs a board for each of them."""
    small = [name for name, board in BOARDS.items() if board.flash.bytes < 40_000 or board.ram.bytes < 5_000]
    assert small == ["arduino_uno"]


# ---- PlatformIO's own view of the generated platformio.ini ----


def _config(directory: Path, core: Path) -> dict[str, dict[str, object]]:
    """What PlatformIO reads from a project: section -> option -> value."""
    if importlib.util.find_spec("platformio") is None:
        pytest.skip("PlatformIO is not installed")
    command = [sys.executable, "-m", "platformio", "project", "config", "-d", str(directory), "--json-output"]
    words, env = quick_platformio.started(command, platformio.environment(core))
    done = subprocess.run(
        words,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return {section: dict(options) for section, options in json.loads(done.stdout)}


@pytest.mark.parametrize("name", REGISTRY)
def test_platformio_reads_the_project_as_meant(name: str, tmp_path: Path) -> None:
    board = REGISTRY[name]
    assert board.platformio is not None
    generate(PROGRAM, name, tmp_path / "p")
    config = _config(tmp_path / "p", tmp_path / "core")
    assert config["platformio"]["default_envs"] == [name]
    framework = board.platformio.framework
    registry = {
        "platform": board.platformio.platform,
        "board": board.platformio.board,
        "framework": [framework],
    }
    application, harness = config[f"env:{name}"], config["env:harness"]
    if board.bare_metal:
        for env in (application, harness):
            assert (env["platform"], env["board"], env.get("framework")) == ("symlink://platform", name, None)
        application, harness = config["env:arduino"], config["env:arduino_harness"]
        assert set(config) == {
            "platformio", "env", f"env:{name}", "env:harness", "env:arduino", "env:arduino_harness",
        }  # fmt: skip
    else:
        assert set(config) == {"platformio", "env", f"env:{name}", "env:harness"}
        assert "platforms_dir" not in config["platformio"]
    for env in (application, harness):
        assert {key: env[key] for key in registry} == registry
        assert env["lib_compat_mode"] == "off"
        assert env["monitor_speed"] == 115200
    assert "-DTINYET_TRACE=1" in " ".join(harness["build_flags"])  # type: ignore[arg-type]
    assert "-DTINYET_TRACE=1" not in " ".join(application["build_flags"])  # type: ignore[arg-type]
    # Every file and directory that the environments name is there, and has exactly one main, or one setup and loop.
    for env in (application, harness):
        sources = _sources(tmp_path / "p", env)
        text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
        starts = r"^void setup\(\)" if framework == "arduino" else r"^int main\(void\)"
        assert len(re.findall(starts, text, flags=re.MULTILINE)) == 1
        assert ("tinyet_harness_model = {" in text) == (env is harness)


def _sources(project: Path, env: dict[str, object]) -> list[Path]:
    """The C and C++ files that PlatformIO compiles for an environment, without libraries."""
    filters = env.get("build_src_filter")
    if filters is None:
        return sorted(p for p in (project / "src").rglob("*") if p.suffix in (".c", ".cpp"))
    assert isinstance(filters, list)
    found = []
    for name in re.findall(r"\+<\.\./(.+?)>", " ".join(filters)):
        place = project / name
        assert place.exists(), name
        found += [place] if place.is_file() else [p for p in place.rglob("*") if p.suffix in (".c", ".cpp")]
    return sorted(found)


@pytest.mark.parametrize("name", [name for name, board in BOARDS.items() if "platformio" in kinds_for(board)])
def test_floats_are_rounded_twice_in_every_project(name: str, tmp_path: Path) -> None:
    project = generate(PROGRAM, name, tmp_path)
    library = json.loads((project.path / "lib/separable/library.json").read_text(encoding="utf-8"))
    flags = library["build"]["flags"].split()
    assert flags[0] == "-ffp-contract=off"
    # No warning of a compiler that is not known here may stop the user's build.
    assert not any(
        "-Werror" in path.read_text(encoding="utf-8")
        for path in project.path.rglob("*")
        if path.suffix in (".json", ".ini")
    )
    assert ("-Wconversion" in flags) == (name not in REGISTRY)


def _needs_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """No network: every attempt to use it is noted."""
    tried: list[object] = []

    def connect(address: object, **_options: object) -> None:
        tried.append(address)
        raise OSError("unreachable")

    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TINYET_PLATFORMIO_DIR", str(tmp_path / "core"))
    monkeypatch.setattr("socket.create_connection", connect)
    return tried


_STANDIN_PLATFORM = """\
from platformio.public import PlatformBase


class AtmelavrPlatform(PlatformBase):
    def get_build_script(self):
        raise RuntimeError("the platform is asked to build")
"""


def test_without_a_network_a_framework_is_missed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec("platformio") is None:
        pytest.skip("PlatformIO is not installed")
    tried = _needs_registry(monkeypatch, tmp_path)
    project: Project = generate(PROGRAM, "arduino_uno", tmp_path / "uno")
    with pytest.raises(ToolchainError, match="PlatformIO's platform atmelavr") as caught:
        project.build()
    assert tried == [("api.registry.platformio.org", 443)]
    assert "network" in str(caught.value.hint)
    assert not (tmp_path / "uno" / ".pio").exists()
    both = generate(PROGRAM, "stm32f4_discovery", tmp_path / "both")
    for env in ("arduino", "arduino_harness"):
        with pytest.raises(ToolchainError, match="PlatformIO's platform ststm32"):
            platformio.build(both.path, env)
    assert len(tried) == 3
    # Once it has been downloaded nobody asks for it again: not tinyet, and not PlatformIO, which would wait a minute.
    place = tmp_path / "core" / "platforms" / "atmelavr@5.2.0"
    place.mkdir(parents=True)
    identity = {"name": "atmelavr", "version": "5.2.0"}
    spec = {"owner": "platformio", "id": None, "name": "atmelavr", "requirements": None, "uri": None}
    (place / "platform.json").write_text(json.dumps(identity))
    (place / ".piopm").write_text(json.dumps(identity | {"type": "platform", "spec": spec}))
    (place / "platform.py").write_text(_STANDIN_PLATFORM)
    with pytest.raises(ToolchainError, match="the platform is asked to build") as caught:
        project.build()
    assert "building uno [env:arduino_uno] [env:harness] with PlatformIO" in caught.value.what
    assert len(tried) == 3


def test_a_board_of_the_users_own_with_every_key(tmp_path: Path) -> None:
    """A bare-metal board that a framework reaches, too, gets both; with Zephyr as framework, bare metal alone."""
    text = (assets.path("boards") / "stm32f4_discovery.toml").read_text(encoding="utf-8")
    own = tmp_path / "my_board.toml"
    own.write_text(text)
    project = generate(PROGRAM, own, tmp_path / "both")
    assert (project.path / "my_board.toml").read_text() == text
    assert {"arduino/main.cpp", "src/main.c"} == set(
        json.loads((project.path / "tinyet.json").read_text())["yours"]
    )
    own.write_text(text.replace('framework = "arduino"', 'framework = "zephyr"'))
    files = _contents(generate(PROGRAM, own, tmp_path / "bare").path)
    assert "src/main.c" in files
    assert not any(path.startswith(("arduino", "zephyr/")) for path in files)


def test_the_reference_gives_what_the_application_shows(tmp_path: Path) -> None:
    """The sample in the project is the one that `generate` was given."""
    x = np.arange(144, dtype=np.int8).reshape(1, 8, 6, 3)
    generate(PROGRAM, "uno_r4_minima", tmp_path, sample=[x])
    text = (tmp_path / "src/separable_sample.h").read_text(encoding="utf-8")
    values = re.findall(r"0x([0-9a-f]{2}),", text)
    assert bytes.fromhex("".join(values)) == x.tobytes()


@pytest.mark.parametrize(
    ("name", "env"),
    [
        ("arduino_uno", "harness"),
        ("nucleo_u575zi_q", "harness"),
        ("stm32f4_discovery", "arduino_harness"),
        ("mps2_an386", None),
    ],
)
def test_what_a_flashed_board_runs(name: str, env: str | None, tmp_path: Path) -> None:
    """Of a framework, its own harness, built here or elsewhere; of bare metal alone, what `tinyet build` has built."""
    project = generate(PROGRAM, name, tmp_path / "p")
    if env is None:
        with pytest.raises(ProjectError, match="has not been built"):
            project.firmware("serial:/dev/ttyACM0", tmp_path)
    else:
        elf = tmp_path / "p" / ".pio" / "build" / env / "firmware.elf"
        assert project.firmware("serial:/dev/ttyACM0", tmp_path) == elf
