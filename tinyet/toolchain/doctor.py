# SPDX-License-Identifier: Apache-2.0
"""Says what of the world outside tinyet is on this machine, what each thing is for, and how to get it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tinyet import assets
from tinyet.toolchain.process import install_command

# A tool that does not tell its version within this many seconds does not work.
_VERSION_TIMEOUT = 20.0

_RENODE_URL = (
    "https://github.com/renode/renode/releases/download/v1.16.1/renode-1.16.1.linux-portable-dotnet.tar.gz"
)


@dataclass(frozen=True)
class Check:
    """One thing that tinyet can use.

    version:    what was found, None when it is missing (`ok` is then False).
    needed_for: what does not work without it.
    install:    the one command that installs it here.
    """

    name: str
    ok: bool
    version: str | None
    needed_for: str
    install: str


# name on PyPI -> what needs it, what installs it
_PYTHON_PACKAGES = (
    ("torch", "capturing a PyTorch model", 'pip install "tinyet[torch]"'),
    ("torchao", "quantizing a PyTorch model", 'pip install "tinyet[torch]"'),
    ("platformio", "building PlatformIO projects", 'pip install "tinyet[build]"'),
    ("scons", "building PlatformIO projects without PlatformIO's registry", 'pip install "tinyet[build]"'),
    ("pyserial", "running on a real board", "pip install pyserial"),
)

# executable -> what needs it
_TOOLS = (
    ("arm-none-eabi-gcc", "building firmware without PlatformIO's own toolchain; CMake projects for a board"),
    ("qemu-system-arm", "running firmware in QEMU"),
)


def checks() -> list[Check]:
    """Look for everything that tinyet can use, in the order of the pipeline. Never raises."""
    return [
        *(_package(*row) for row in _PYTHON_PACKAGES),
        _tool(*_TOOLS[0]),
        _newlib(),
        _host_compiler(),
        _tool(*_TOOLS[1]),
        _renode(),
        _cmsis_nn(),
    ]


def _package(name: str, needed_for: str, install: str) -> Check:
    try:
        # The version comes from the metadata: importing torch would take seconds.
        version: str | None = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        version = None
    return Check(name, version is not None, version, needed_for, install)


def _tool(name: str, needed_for: str) -> Check:
    version = _version(name)
    return Check(name, version is not None, version, needed_for, install_command(name))


def _newlib() -> Check:
    """The C library of the Arm compiler: its small variant is what firmware links with."""
    answer = _output("arm-none-eabi-gcc", "-print-file-name=libc_nano.a")
    # GCC repeats the bare name when it has no such file.
    found = answer is not None and Path(answer.strip()).is_absolute()
    return Check(
        "newlib", found, "libc_nano.a" if found else None, "linking firmware", install_command("newlib")
    )


def _host_compiler() -> Check:
    name = os.environ.get("CC") or "cc"
    version = _version(name)
    return Check(
        "host cc", version is not None, version, "running the C code on this machine", install_command("cc")
    )


def _renode() -> Check:
    name = os.environ.get("TINYET_RENODE") or "renode"
    version = _version(name)
    home = "~/.local/share/renode"
    if sys.platform == "linux":
        install = (
            f"mkdir -p {home} ~/.local/bin && curl -fsSL {_RENODE_URL} | tar xz --strip-components=1"
            f" -C {home} && ln -sf {home}/renode ~/.local/bin/renode"
        )
    else:
        install = "install Renode 1.16.1 from https://github.com/renode/renode/releases"
    return Check("renode", version is not None, version, "running firmware in Renode", install)


def _cmsis_nn() -> Check:
    version, place = assets.CMSIS_NN_VERSION, assets.cmsis_nn_place()
    found = assets.cmsis_nn_dir() is not None
    return Check(
        "CMSIS-NN",
        found,
        str(place) if found else None,
        "the delegate cmsis_nn, which otherwise downloads it when it is first used",
        f"git clone --depth 1 --branch v{version} https://github.com/ARM-software/CMSIS-NN {place}",
    )


def _version(name: str) -> str | None:
    """Return the first number with dots in what `name --version` prints, or None when it does not work."""
    answer = _output(name, "--version")
    if answer is None:
        return None
    # What stands in parentheses is the packager's own number.
    match = re.search(r"\d+(?:\.\d+)+", re.sub(r"\(.*?\)", "", answer))
    return match.group() if match else "unknown"


def _output(name: str, option: str) -> str | None:
    """Return what a tool prints, or None when it is missing, fails or hangs."""
    tool = shutil.which(name)
    if tool is None:
        return None
    try:
        done = subprocess.run(
            [tool, option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_VERSION_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
