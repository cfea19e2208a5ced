# SPDX-License-Identifier: Apache-2.0
"""Generated PlatformIO projects build offline for every board, to the same bytes in any place, and run."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests import tiny_model
from tests.compilers import quick_platformio
from tests.ops.objects import COMPILED, directory
from tinyet.boards import all_boards, load_board
from tinyet.build import platformio, size
from tinyet.build.tree import building, write_project
from tinyet.emit.project import project_files
from tinyet.errors import ProjectError, ToolchainError

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(
        shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed"
    ),
]


@pytest.fixture(autouse=True)
def _offline(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A core directory of this test run's own, and a network that would be noticed."""
    core = tmp_path_factory.getbasetemp() / "platformio"
    monkeypatch.setenv("TINYET_PLATFORMIO_DIR", str(core))
    # In a user's build a warning is one.
    monkeypatch.setenv("PLATFORMIO_BUILD_FLAGS", "-Werror")
    # Every connection of PlatformIO goes through this proxy, which nobody serves.
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")


def _project(directory: Path, board: str) -> Path:
    files = project_files("platformio", load_board(board), tiny_model.FACTS, tiny_model.sources())
    write_project(directory, files)
    return directory


# PlatformIO starts as users start it but for builds for each board: there, for one of each compiler.
AS_USERS = ("mps2_an386", "riscv32_virt", "xtensa_lx60")


@pytest.fixture(autouse=True)
def _as_users(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    board = getattr(request.node, "callspec", None) and request.node.callspec.params.get("board")
    if board is None or board in AS_USERS:
        quick_platformio.as_users(monkeypatch)


@pytest.mark.parametrize("board", [board.name for board in all_boards() if board.bare_metal])
def test_builds_for_every_bare_metal_board_to_the_same_bytes_in_two_places(
    board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = load_board(board).toolchain.compiler
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    here = _project(tmp_path / "here", board)
    there = _project(tmp_path / "some" / "longer path", board)
    envs = (board, "harness")
    lines: list[str] = []

    def only_objects_of(place: str) -> None:
        """Of all boards' projects in such a place: those of others may name folders in another way."""
        kept = directory() / f"of {place}"
        kept.mkdir(exist_ok=True)
        monkeypatch.setenv(COMPILED, str(kept))

    only_objects_of("here")
    firmwares = platformio.build_all(here, envs, on_output=lines.append)
    assert not [line for line in lines if "warning" in line.lower()]
    only_objects_of("there")
    for env, first, again in zip(envs, firmwares, platformio.build_all(there, envs), strict=True):
        assert first.read_bytes() == again.read_bytes()
        assert str(tmp_path).encode() not in first.read_bytes()

        cost = size.measure(first)
        symbols = {symbol.name: symbol for symbol in cost.symbols}
        assert symbols["tiny_arena"].bytes == 32
        assert symbols["tiny_arena"].section.in_ram
        assert not symbols["tiny_arena"].section.in_flash
        assert symbols["tiny_run"].section.in_flash
        assert cost.stack == load_board(board).stack_bytes
        assert ("tinyet_trace_begin" in symbols) == (env == "harness")


@pytest.mark.parametrize("env", ["arduino", "arduino_harness"])
def test_what_is_for_arduino_beside_bare_metal_compiles(env: str, tmp_path: Path) -> None:
    """With the sources and the -I of the environment, against an Arduino.h of the tests' own."""
    project = _project(tmp_path / "p", "stm32f4_discovery")
    command = [sys.executable, "-m", "platformio", "project", "config", "-d", str(project), "--json-output"]
    words, variables = quick_platformio.started(command, platformio.environment(tmp_path / "core"))
    done = subprocess.run(words, env=variables, capture_output=True, check=True)
    section = dict(dict(json.loads(done.stdout))[f"env:{env}"])
    names = re.findall(r"\+<\.\./(.+?)>", " ".join(section["build_src_filter"]))
    places = [project / name for name in names]
    found = [file for place in places for file in (place.glob("*.c*") if place.is_dir() else [place])]
    assert len(found) == (1 if env == "arduino" else 4)
    flags = [word for word in " ".join(section["build_flags"]).split() if word[:2] in ("-I", "-D")]
    library = [project / "lib" / "tiny" / "src", project / "src", Path(__file__).parents[1] / "arduino_api"]
    for source in found:
        command = ["arm-none-eabi-g++" if source.suffix == ".cpp" else "arm-none-eabi-gcc", *flags]
        command += [*load_board("stm32f4_discovery").machine_flags, "-Wall", "-Wextra", "-Werror"]
        command += [*(f"-I{path}" for path in library), "-c", str(source)]
        compiled = subprocess.run(
            [*command, "-o", str(tmp_path / "x.o")], cwd=project, capture_output=True, text=True, check=False
        )
        assert compiled.returncode == 0, compiled.stderr


def test_size_agrees_with_binutils(tmp_path: Path) -> None:
    elf = platformio.build(_project(tmp_path / "p", "mps2_an386"), "harness")
    answer = subprocess.run(["arm-none-eabi-size", "-B", elf], capture_output=True, text=True, check=True)
    text, data, bss = (int(word) for word in answer.stdout.splitlines()[1].split()[:3])
    cost = size.measure(elf)
    assert (cost.flash, cost.ram + cost.stack) == (text + data, data + bss)


def test_the_application_prints_what_the_model_computes(tmp_path: Path) -> None:
    if shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not installed")
    project = _project(tmp_path / "p", "mps2_an385")
    elf = platformio.build(project, "mps2_an385")
    board = json.loads((project / "platform/boards/mps2_an385.json").read_text())
    command = [*shlex.split(board["build"]["qemu"]), "-kernel", str(elf)]
    qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(30.0, qemu.kill)
    watchdog.start()
    lines = []
    assert qemu.stdout is not None
    with qemu:
        for line in qemu.stdout:
            lines.append(line.rstrip())
            if lines[-1] == "done":
                break
        qemu.kill()
    watchdog.cancel()

    pairs, mean = tiny_model.expected(tiny_model.SAMPLE)
    best = pairs.index(max(pairs))
    assert re.fullmatch(r"tiny: \d+ ticks", lines[0])
    assert lines[1:] == [
        "output 0: " + " ".join(map(str, pairs)),
        f"  largest: index {best}, value {(pairs[best] + 3) * 0.5:.4f}",
        f"output 1: {mean:.4f}",
        f"  largest: index 0, value {mean:.4f}",
        "done",
    ]


def test_a_copied_project_uses_its_own_platform(tmp_path: Path) -> None:
    first = _project(tmp_path / "first", "mps2_an386")
    platformio.build(first, "mps2_an386")
    copy = tmp_path / "copy"
    shutil.copytree(first, copy)
    (copy / "platform" / "support" / "linker.ld").write_text("this is no linker script")
    with pytest.raises(ToolchainError, match=r"linker\.ld"):
        platformio.build(copy, "mps2_an386")
    platformio.build(first, "mps2_an386")


def test_concurrent_builds_on_a_fresh_core_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINYET_PLATFORMIO_DIR", str(tmp_path / "core"))
    same = _project(tmp_path / "a", "mps2_an386")
    jobs = [
        (same, "harness"),
        (same, "harness"),
        (same, "mps2_an386"),
        (_project(tmp_path / "b", "microbit"), "harness"),
    ]
    failures: list[Exception] = []

    def job(project: Path, env: str) -> None:
        try:
            with building(project):
                platformio.build(project, env)
        except ToolchainError as error:
            failures.append(error)

    threads = [threading.Thread(target=job, args=arguments) for arguments in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_user_settings_are_read_and_a_compile_error_is_shown(tmp_path: Path) -> None:
    project = _project(tmp_path / "p", "mps2_an386")
    (project / "user.ini").write_text("[env]\nbuild_flags = -O2 -DUSER_SETTING=7\n")
    main = project / "src" / "main.c"
    main.write_text(main.read_text() + '\n_Static_assert(USER_SETTING == 8, "the user\'s own assertion");\n')
    with pytest.raises(ToolchainError, match="the user's own assertion") as caught:
        platformio.build(project, "mps2_an386")
    assert "platformio run" in str(caught.value.where)


@pytest.fixture
def unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A fresh core directory and no way to the registry; the addresses that were tried."""
    tried: list[object] = []

    def connect(address: object, **_options: object) -> None:
        tried.append(address)
        raise OSError("unreachable")

    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TINYET_PLATFORMIO_DIR", str(tmp_path / "core"))
    monkeypatch.setattr(socket, "create_connection", connect)
    return tried


def test_nothing_is_asked_of_the_network_when_all_is_here(tmp_path: Path, unreachable: list[object]) -> None:
    platformio.build(_project(tmp_path / "p", "mps2_an386"), "harness")
    assert not unreachable


def test_a_missing_compiler_is_found_at_once(
    tmp_path: Path, unreachable: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = _project(tmp_path / "p", "mps2_an386")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="arm-none-eabi-gcc") as caught:
        platformio.build(project, "mps2_an386")
    assert unreachable == [("api.registry.platformio.org", 443)]
    assert "SCons" not in caught.value.what
    assert "gcc-arm-none-eabi" in str(caught.value.hint)
    assert not (project / ".pio").exists()


def test_a_slow_network_is_not_waited_for(
    tmp_path: Path, unreachable: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    hold, waited = threading.Event(), threading.Event()

    def connect(address: object, **_options: object) -> None:
        unreachable.append(address)
        if not hold.wait(60):
            waited.set()
        raise OSError("too late")

    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr(platformio, "_REGISTRY_TIMEOUT", 0.3)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="arm-none-eabi-gcc"):
        platformio.prepare(tmp_path / "core", "arm-none-eabi-gcc")
    assert not waited.is_set()
    hold.set()
    assert unreachable


def test_scons_of_another_version_does_not_count(
    tmp_path: Path, unreachable: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "4.0.1" if name == "scons" else real(name)
    )
    with pytest.raises(ToolchainError, match=r"SCons 4\.\d+\.\d+") as caught:
        platformio.prepare(tmp_path / "core", "arm-none-eabi-gcc")
    assert unreachable
    assert caught.value.hint == 'pip install "tinyet[build]"'

    # The registry's own package does.
    package = tmp_path / "core" / "packages" / "tool-scons"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "tool-scons", "version": "4.41101.3"}')
    platformio.prepare(tmp_path / "core", "arm-none-eabi-gcc")


def test_a_core_directory_shared_with_a_python_that_has_scons(
    tmp_path: Path, unreachable: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    platformio.prepare(tmp_path / "core", "arm-none-eabi-gcc")
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == "scons":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(ToolchainError, match="is not installed in this Python"):
        platformio.prepare(tmp_path / "core", "arm-none-eabi-gcc")
    assert not unreachable


def test_a_missing_platformio_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ToolchainError, match="PlatformIO is not installed") as caught:
        platformio.prepare(tmp_path, "arm-none-eabi-gcc")
    assert caught.value.hint == 'pip install "tinyet[build]"'


def test_a_directory_without_a_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"platformio\.ini"):
        platformio.build(tmp_path, "harness")
