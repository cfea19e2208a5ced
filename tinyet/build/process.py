# SPDX-License-Identifier: Apache-2.0
"""Starts external tools: one way to run them, one way to fail.

A missing tool is reported before anything is started, with the command that installs it. A tool that fails or
hangs is reported with its command line and the end of its output, and leaves no child process behind.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tinyet.build.ending import undisturbed
from tinyet.errors import MissingTool, ToolchainError

# Characters of a failed tool's output that an error repeats.
_TAIL_LINES = 25
_TAIL_CHARACTERS = 10_000

# Characters that a stream of a tool may bring: none that is run here says a tenth of it.
_MOST_OUTPUT = 1 << 28
# A longer line is read in pieces of so many characters.
_PIECE = 1 << 16

# How long the pipes of a tool that has ended may stay open.
_DRAIN_SECONDS = 5.0

# tool -> package names, by package manager. The manager is the first one of _MANAGERS on this machine.
_PACKAGES: Mapping[str, Mapping[str, str]] = {
    "arm-none-eabi-gcc": {
        "apt-get": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
        "dnf": "arm-none-eabi-gcc-cs arm-none-eabi-newlib",
        "pacman": "arm-none-eabi-gcc arm-none-eabi-newlib",
        "brew": "--cask gcc-arm-embedded",
        "winget": "Arm.GnuArmEmbeddedToolchain",
    },
    "newlib": {
        "apt-get": "libnewlib-arm-none-eabi",
        "dnf": "arm-none-eabi-newlib",
        "pacman": "arm-none-eabi-newlib",
        "brew": "--cask gcc-arm-embedded",
        "winget": "Arm.GnuArmEmbeddedToolchain",
    },
    "qemu-system-arm": {
        "apt-get": "qemu-system-arm",
        "dnf": "qemu-system-arm",
        "pacman": "qemu-system-arm",
        "brew": "qemu",
        "winget": "SoftwareFreedomConservancy.QEMU",
    },
    "cc": {"apt-get": "gcc libc6-dev", "dnf": "gcc", "pacman": "gcc", "brew": "gcc", "winget": "LLVM.LLVM"},
    "g++": {"apt-get": "g++", "dnf": "gcc-c++", "pacman": "gcc", "brew": "gcc", "winget": "LLVM.LLVM"},
    "cmake": {
        "apt-get": "cmake", "dnf": "cmake", "pacman": "cmake", "brew": "cmake", "winget": "Kitware.CMake",
    },
    "riscv64-unknown-elf-gcc": {
        "apt-get": "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
        "dnf": "gcc-riscv64-linux-gnu",
        "pacman": "riscv64-elf-gcc riscv64-elf-newlib",
        "brew": "riscv64-elf-gcc",
        "winget": "xpack-dev-tools.riscv-none-elf-gcc",
    },
    "qemu-system-riscv32": {
        "apt-get": "qemu-system-misc",
        "dnf": "qemu-system-riscv",
        "pacman": "qemu-system-riscv",
        "brew": "qemu",
        "winget": "SoftwareFreedomConservancy.QEMU",
    },
    "xtensa-lx106-elf-gcc": {
        "apt-get": "gcc-xtensa-lx106 picolibc-xtensa-lx106-elf",
        "dnf": "gcc-xtensa-lx106-elf",
        "pacman": "xtensa-lx106-elf-gcc",
        "brew": "xtensa-lx106-elf",
        "winget": "xtensa-lx106-elf",
    },
    "qemu-system-xtensa": {
        "apt-get": "qemu-system-misc",
        "dnf": "qemu-system-xtensa",
        "pacman": "qemu-system-xtensa",
        "brew": "qemu",
        "winget": "SoftwareFreedomConservancy.QEMU",
    },
    "clang": {"apt-get": "clang", "dnf": "clang", "pacman": "clang", "brew": "llvm", "winget": "LLVM.LLVM"},
    "avr-gcc": {
        "apt-get": "gcc-avr avr-libc",
        "dnf": "avr-gcc avr-libc",
        "pacman": "avr-gcc avr-libc",
        "brew": "avr-gcc",
        "winget": "ZakKemble.avr-gcc",
    },
    "simavr": {
        "apt-get": "simavr libsimavr-dev",
        "dnf": "simavr simavr-devel",
        "pacman": "simavr",
        "brew": "simavr",
        "winget": "simavr",
    },
    "ninja": {
        "apt-get": "ninja-build",
        "dnf": "ninja-build",
        "pacman": "ninja",
        "brew": "ninja",
        "winget": "Ninja-build.Ninja",
    },
    "dtc": {
        "apt-get": "device-tree-compiler",
        "dnf": "dtc",
        "pacman": "dtc",
        "brew": "dtc",
        "winget": "oss-winget.dtc",
    },
    "git": {"apt-get": "git", "dnf": "git", "pacman": "git", "brew": "git", "winget": "Git.Git"},
}  # fmt: skip

# package manager -> how it installs. On a machine with none of them, Debian's command is the hint.
_MANAGERS: Mapping[str, str] = {
    "apt-get": "sudo apt-get install -y",
    "dnf": "sudo dnf install -y",
    "pacman": "sudo pacman -S --needed",
    "brew": "brew install",
    "winget": "winget install",
}

# The same package holds several tools.
_ALIASES: Mapping[str, str] = {
    **{
        f"arm-none-eabi-{tool}": "arm-none-eabi-gcc"
        for tool in ("ar", "as", "g++", "gcc-ar", "ld", "nm", "objcopy", "objdump", "size", "addr2line")
    },
    **{
        f"riscv64-unknown-elf-{tool}": "riscv64-unknown-elf-gcc"
        for tool in ("ar", "g++", "nm", "objcopy", "objdump", "size", "addr2line")
    },
    **{
        f"xtensa-lx106-elf-{tool}": "xtensa-lx106-elf-gcc"
        for tool in ("ar", "g++", "nm", "objcopy", "objdump", "size", "addr2line")
    },
    "picolibc": "riscv64-unknown-elf-gcc",
    "gcc": "cc",
}


def install_command(tool: str) -> str:
    """Return the one command that installs `tool` on this machine."""
    packages = _PACKAGES.get(_ALIASES.get(tool, tool))
    if packages is None:
        return f"install {tool} and put it on PATH"
    manager = next((name for name in _MANAGERS if shutil.which(name)), "apt-get")
    return f"{_MANAGERS[manager]} {packages[manager]}"


def find_tool(name: str, *, what: str, env: Mapping[str, str] | None = None) -> Path:
    """Return the path of an executable.

    name: a bare name looked up on PATH (of `env` when given), or a path.
    what: the task that needs it, as in "compiling the kernels".
    Raises MissingTool with the install command when it is not there.
    """
    search = None if env is None else env.get("PATH", os.defpath)
    found = shutil.which(name, path=search)
    if found is None:
        raise MissingTool(
            what=f"{name} is not installed; {what} needs it", where="PATH", hint=install_command(name)
        )
    return Path(found)


def run(
    cmd: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    timeout: float,
    env: Mapping[str, str] | None = None,
    what: str,
    on_output: Callable[[str], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end and return what it printed.

    cmd:       the tool and its arguments; never a shell line.
    timeout:   seconds; then the tool and all of its children are killed.
    env:       the whole environment; None inherits this process's.
    what:      the task, as in "building the firmware", for error messages.
    on_output: called with each line of either stream, without its end, as it appears (from another thread).

    Standard input is empty. Raises ToolchainError when the tool is missing, fails, or takes too long.
    """
    words = [str(word) for word in cmd]
    line = shlex.join(words)
    tool = find_tool(words[0], what=what, env=env)
    process: subprocess.Popen[str] | None = None
    outputs: list[list[str]] = [[], []]
    readers: list[threading.Thread] = []
    expired = False
    try:
        with undisturbed():
            process = subprocess.Popen(
                [str(tool), *words[1:]],
                cwd=cwd,
                env=None if env is None else dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                # A group of its own, so that a timeout also ends the compilers a build tool has started.
                start_new_session=sys.platform != "win32",
            )
        for stream, lines in zip((process.stdout, process.stderr), outputs, strict=True):
            assert stream is not None
            end = functools.partial(_kill_group, process)
            readers.append(
                threading.Thread(target=_collect, args=(stream, lines, on_output, end), daemon=True)
            )
            readers[-1].start()
        wait(process, timeout)
    except subprocess.TimeoutExpired:
        expired = True
    except BaseException:
        # An interrupt: nothing that was started here outlives this call.
        if process is not None:
            _kill_group(process)
        raise
    assert process is not None
    if expired:
        _kill_group(process)
    for reader in readers:
        reader.join(_DRAIN_SECONDS)
    if any(reader.is_alive() for reader in readers):
        # A child that the tool left behind still holds the pipe.
        _kill_group(process)
    stdout, stderr = ("".join(lines) for lines in outputs)
    if max(len(stdout), len(stderr)) > _MOST_OUTPUT:
        raise ToolchainError(
            what=f"{what} was ended: it printed more than {_MOST_OUTPUT:,} characters\n{tail(stdout, stderr)}",
            where=line,
            hint="run the command by hand to see what it says again and again",
        )
    if expired:
        raise ToolchainError(
            what=f"{what} did not end within {timeout:g} s\n{tail(stdout, stderr)}".rstrip(),
            where=line,
            hint="run the command by hand to see where it waits",
        )
    if process.returncode != 0:
        raise ToolchainError(
            what=f"{what} failed (exit status {process.returncode})\n{tail(stdout, stderr)}".rstrip(),
            where=line,
            hint="the lines above are the end of the tool's own output",
        )
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


def ends_within(child: int, seconds: float) -> bool:
    """Whether a process that this one has started, and has not waited for, ends in so many seconds, as Linux tells by
    `os.pidfd_open`. Raises OSError where the kernel does not know of it."""
    descriptor = os.pidfd_open(child)
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        return bool(ended.poll(1000 * seconds))
    finally:
        os.close(descriptor)


def wait(process: subprocess.Popen[Any], timeout: float) -> int:
    """Wait for a process to end; its exit status. Raises subprocess.TimeoutExpired after `timeout` seconds.

    Popen.wait with a timeout looks again and again, soon every 50 ms only: a compiler takes less. Linux says at once.
    """
    # Python has it where it was built with headers of such a Linux: conda's was not.
    if sys.platform == "linux" and hasattr(os, "pidfd_open") and process.poll() is None:
        deadline = time.monotonic() + timeout
        with contextlib.suppress(OSError):  # A kernel that does not know of it.
            ends_within(process.pid, timeout)
        timeout = max(0.0, deadline - time.monotonic())
    return process.wait(timeout)


def check_made(out: Path, command: Sequence[str | Path], *, what: str) -> None:
    """Raise ToolchainError when a tool that has ended well has not made its file, or an empty one."""
    if not out.is_file() or out.stat().st_size == 0:
        raise ToolchainError(
            what=f"{what} said nothing of a failure, and yet "
            + (f"{out.name} is empty" if out.is_file() else f"there is no {out.name}"),
            where=shlex.join(map(str, command)),
            hint=f"is {command[0]} the compiler, and is there room on the disk?",
        )


def tail(stdout: str, stderr: str) -> str:
    """Return the last lines of stderr, or of stdout when nothing was said on stderr."""
    text = stderr if stderr.strip() else stdout
    return "\n".join(text.rstrip()[-_TAIL_CHARACTERS:].splitlines()[-_TAIL_LINES:])


def _collect(
    stream: IO[str], lines: list[str], on_output: Callable[[str], None] | None, end: Callable[[], None]
) -> None:
    """Read a stream to its end; the pipe must be drained even without a listener. An endless one is cut off."""
    characters = 0
    with stream:
        while line := stream.readline(_PIECE):
            characters += len(line)
            lines.append(line)
            if characters > _MOST_OUTPUT:
                end()
                return
            if on_output is not None:
                on_output(line.rstrip("\r\n"))


def _kill_group(process: subprocess.Popen[str]) -> None:
    """End a process and its children, whether or not it has ended by itself."""
    if sys.platform == "win32":
        process.kill()
    else:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            # The whole group is gone already (macOS says so with EPERM).
            process.poll()
    process.wait()
