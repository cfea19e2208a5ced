# SPDX-License-Identifier: Apache-2.0
"""What `tinyet doctor` finds, with a PATH of our own making; and how external tools are run."""

from __future__ import annotations

import errno
import importlib.metadata
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tinyet import assets
from tinyet.build import process
from tinyet.build.doctor import NEEDED, Check, checks
from tinyet.errors import ToolchainError

_TOOLS = {
    *(
        "arm-none-eabi-gcc",
        "newlib",
        "host cc",
        "qemu-system-arm",
        "renode",
        "CMSIS-NN",
        "cmake",
        "ninja",
        "dtc",
    ),
    *("riscv64-unknown-elf-gcc", "picolibc", "qemu-system-riscv32", "avr-gcc", "simavr", "arduino-cli"),
    *("Zephyr", "Zephyr SDK"),
}


@pytest.fixture
def bin_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH; no other sign of tools either."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CC", "TINYET_RENODE", "TINYET_CMSIS_NN", "ZEPHYR_BASE", "ZEPHYR_SDK_INSTALL_DIR"):
        monkeypatch.delenv(name, raising=False)
    return place


def _add_tool(bin_dir: Path, name: str, script: str) -> None:
    tool = bin_dir / name
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


def _by_name() -> dict[str, Check]:
    return {check.name: check for check in checks()}


def test_nothing_but_python_on_the_path(bin_dir: Path) -> None:
    found = _by_name()
    for name in _TOOLS:
        assert not found[name].ok
        assert found[name].version is None
        assert found[name].needed_for
        assert found[name].install
    assert "gcc-arm-none-eabi" in found["arm-none-eabi-gcc"].install
    assert "renode" in found["renode"].install
    place = bin_dir.parent / "cache" / "tinyet" / "cmsis-nn" / assets.CMSIS_NN_VERSION
    assert found["CMSIS-NN"].install.endswith(str(place))


def test_versions_are_read_from_what_the_tools_print(bin_dir: Path) -> None:
    library = bin_dir / "libc_nano.a"
    library.touch()
    _add_tool(
        bin_dir,
        "arm-none-eabi-gcc",
        f'case "$1" in -print*) echo {library};; *) echo "arm-none-eabi-gcc (15:12.2.rel1-1) 12.2.1";; esac',
    )
    _add_tool(bin_dir, "qemu-system-arm", 'echo "QEMU emulator version 7.2.22 (Debian 1:7.2)"')
    _add_tool(bin_dir, "renode", "exit 1")
    _add_tool(bin_dir, "cc", 'echo "some compiler"')
    found = _by_name()
    assert found["qemu-system-arm"] == Check(
        "qemu-system-arm",
        True,
        "7.2.22",
        "running firmware for Cortex-M in QEMU",
        found["qemu-system-arm"].install,
    )
    assert found["arm-none-eabi-gcc"].version == "12.2.1"
    assert found["newlib"].ok
    assert (found["renode"].ok, found["renode"].version) == (False, None)
    assert (found["host cc"].ok, found["host cc"].version) == (True, "unknown")


def test_everything_that_a_kind_needs_is_looked_for(bin_dir: Path) -> None:
    assert bin_dir.is_dir()
    assert {name for names in NEEDED.values() for name in names} <= _by_name().keys()


def test_zephyr_is_found_as_it_has_noted_itself(bin_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = bin_dir.parent / "home"
    tree, sdk = bin_dir.parent / "zephyr", bin_dir.parent / "zephyr-sdk"
    for package, place in (
        ("Zephyr", tree / "share" / "zephyr-package" / "cmake"),
        ("Zephyr-sdk", sdk / "cmake"),
    ):
        place.mkdir(parents=True)
        registry = home / ".cmake" / "packages" / package
        registry.mkdir(parents=True)
        (registry / "0123456789abcdef").write_text(str(place))
    (tree / "VERSION").write_text("VERSION_MAJOR = 4\nVERSION_MINOR = 1\nPATCHLEVEL = 0\nVERSION_TWEAK = 0\n")
    (sdk / "sdk_version").write_text("0.17.0\n")
    found = _by_name()
    assert (found["Zephyr"].version, found["Zephyr SDK"].version) == ("4.1.0", "0.17.0")
    monkeypatch.setenv("ZEPHYR_BASE", str(bin_dir))
    assert not _by_name()["Zephyr"].ok


def test_arduino_cli_has_a_command_for_its_version(bin_dir: Path) -> None:
    _add_tool(
        bin_dir,
        "arduino-cli",
        '[ "$1" = version ] && echo "arduino-cli  Version: 1.2.0 Commit: abc Date: 2025-02-24T15:28:15Z"',
    )
    assert _by_name()["arduino-cli"].version == "1.2.0"


def test_newlib_without_its_small_variant(bin_dir: Path) -> None:
    # GCC repeats the name of a library that it does not have.
    _add_tool(bin_dir, "arm-none-eabi-gcc", 'case "$1" in -print*) echo libc_nano.a;; *) echo 12.2.1;; esac')
    found = _by_name()
    assert found["arm-none-eabi-gcc"].ok
    assert not found["newlib"].ok


def test_the_install_command_is_that_of_the_machine(bin_dir: Path) -> None:
    assert process.install_command("arm-none-eabi-objcopy").startswith(
        "sudo apt-get install -y gcc-arm-none-eabi"
    )
    _add_tool(bin_dir, "brew", "exit 0")
    assert process.install_command("qemu-system-arm") == "brew install qemu"
    assert process.install_command("unheard-of") == "install unheard-of and put it on PATH"


def test_python_packages(bin_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == "torch":
            raise importlib.metadata.PackageNotFoundError(name)
        return "9.8.7" if name == "torchao" else real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = _by_name()
    assert (found["torch"].ok, found["torch"].install) == (False, 'pip install "tinyet[torch]"')
    assert (found["torchao"].ok, found["torchao"].version) == (True, "9.8.7")
    assert found["pyserial"].version == real("pyserial")
    assert bin_dir.is_dir()


def test_run_returns_both_streams_and_passes_lines_on() -> None:
    lines: list[str] = []
    code = "import sys; print('out'); print('err', file=sys.stderr)"
    done = process.run([sys.executable, "-c", code], timeout=30, what="saying", on_output=lines.append)
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 0)
    assert sorted(lines) == ["err", "out"]


def test_a_missing_tool_is_named_with_its_install_command(bin_dir: Path) -> None:
    with pytest.raises(ToolchainError, match="qemu-system-arm is not installed; running needs it") as caught:
        process.run(["qemu-system-arm", "--version"], timeout=5, what="running")
    assert caught.value.hint == process.install_command("qemu-system-arm")
    assert not any(bin_dir.iterdir())


def test_a_failure_shows_the_command_and_the_end_of_its_errors() -> None:
    code = "import sys; print('noise'); [print('line', i, file=sys.stderr) for i in range(100)]; sys.exit(3)"
    with pytest.raises(ToolchainError) as caught:
        process.run([sys.executable, "-c", code], timeout=30, what="failing")
    assert caught.value.what.startswith("failing failed (exit status 3)\nline 75\n")
    assert caught.value.what.endswith("line 99")
    assert caught.value.where is not None
    assert caught.value.where.startswith(sys.executable)


@pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX")
def test_a_timeout_ends_the_tool_and_its_children(tmp_path: Path) -> None:
    pid_file, ended = tmp_path / "pid", tmp_path / "ended"
    wait = f"import pathlib, time; time.sleep(60); pathlib.Path({str(ended)!r}).touch()"
    code = (
        "import pathlib, subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {wait!r}])\n"
        f"pathlib.Path({str(pid_file)!r}).write_text(str(child.pid))\n"
        "print('waiting', flush=True)\n"
        f"{wait}\n"
    )
    with pytest.raises(ToolchainError, match="did not end within 1 s\nwaiting"):
        process.run([sys.executable, "-c", code], timeout=1, what="waiting")
    child = int(pid_file.read_text())
    for _ in range(100):
        if not _is_running(child):
            break
        time.sleep(0.05)
    assert not _is_running(child)
    assert not ended.exists(), "they were waited for"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody says when a process ends")
def test_the_end_of_a_tool_is_not_looked_for_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """In steps that grow, its end would be seen up to 50 ms late, of each compiler that runs."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    process.run([sys.executable, "-c", "import time; time.sleep(0.2)"], timeout=60, what="waiting")
    assert not slept
    with subprocess.Popen(["sleep", "60"]) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(waiting, 0.01)
        waiting.kill()
        assert process.wait(waiting, 60) == -signal.SIGKILL
    assert not slept


@pytest.mark.parametrize("known", [True, False], ids=["old kernel", "old Python"])
def test_tools_end_where_nobody_says_when(monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    """Linux before 5.3, and a Python that was built with its headers."""

    def unknown(_pid: int) -> int:
        raise OSError(errno.ENOSYS, "not implemented")

    if known:
        monkeypatch.setattr(os, "pidfd_open", unknown, raising=False)
    else:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    done = process.run([sys.executable, "-c", "print('made')"], timeout=60, what="making")
    assert done.stdout.split() == ["made"]


def _is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie that waits for its parent."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")
