# SPDX-License-Identifier: Apache-2.0
"""Lists the tools outside tinyet that this machine has, their uses, and how to install them."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tinyet import assets
from tinyet.build import arduino, find_renode
from tinyet.build.builders import BUILDERS
from tinyet.build.process import install_command

# A tool that does not tell its version within this many seconds does not work.
_VERSION_TIMEOUT = 20.0


@dataclass(frozen=True)
class Check:
    """One thing that tinyet can use.

    version: the one found, None when it is missing (`ok` is then False). needed_for: features that do not work
    without it.
    install:    the one command that installs it here.
    """

    name: str
    ok: bool
    version: str | None
    needed_for: str
    install: str


_ZEPHYR_URL = "https://github.com/zephyrproject-rtos/zephyr"

# name on PyPI -> features that need it, the command that installs it
_TORCH = (
    ("torch", "capturing a PyTorch model", 'pip install "tinyet[torch]"'),
    ("torchao", "quantizing a PyTorch model", 'pip install "tinyet[torch]"'),
)
_PLATFORMIO = (
    ("platformio", "building PlatformIO projects", 'pip install "tinyet[build]"'),
    ("scons", "building PlatformIO projects without PlatformIO's registry", 'pip install "tinyet[build]"'),
)
_WEST = ("west", "building Zephyr projects", "pip install west")
_PYSERIAL = ("pyserial", "running on a real board", "pip install pyserial")

_ARM = ("arm-none-eabi-gcc", "firmware for Cortex-M in CMake projects, and without PlatformIO's own compiler")

_CAPTURE = ("torch", "torchao")

# Tools that each kind of project requires. All others serve one option or one sort of board.
NEEDED: Mapping[str, tuple[str, ...]] = {
    kind: (*_CAPTURE, *builder.tools) for kind, builder in BUILDERS.items()
}


def checks() -> list[Check]:
    """Look for everything that tinyet can use: for capture, for each kind of project, to run. Never raises."""
    return [
        *(_package(*row) for row in (*_TORCH, *_PLATFORMIO)),
        _tool(*_ARM),
        _library("newlib", "arm-none-eabi-gcc", "libc_nano.a", "linking firmware for Cortex-M"),
        _tool("riscv64-unknown-elf-gcc", "firmware for RISC-V"),
        _library("picolibc", "riscv64-unknown-elf-gcc", "picolibc.specs", "linking firmware for RISC-V"),
        _tool("xtensa-lx106-elf-gcc", "firmware for Xtensa LX106, which stands for the ESP32 boards in QEMU"),
        _tool("clang", "`tinyet build --compiler clang` of CMake projects for Cortex-M"),
        _tool("cmake", "building CMake and Zephyr projects"),
        _arduino_cli(),
        _package(*_WEST),
        _tool("ninja", "building Zephyr projects"),
        _tool("dtc", "building Zephyr projects"),
        _zephyr(),
        _zephyr_sdk(),
        _host_compiler(),
        _tool("qemu-system-arm", "running firmware for Cortex-M in QEMU"),
        _tool("qemu-system-riscv32", "running firmware for RISC-V in QEMU"),
        _tool("qemu-system-xtensa", "running firmware for Xtensa in QEMU"),
        _renode(),
        _tool("avr-gcc", "compiling for AVR without the Arduino tools"),
        _simavr(),
        _package(*_PYSERIAL),
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


def _library(name: str, compiler: str, file: str, needed_for: str) -> Check:
    """A C library of a cross compiler, by a file of it that firmware is linked with."""
    answer = _output(compiler, f"-print-file-name={file}")
    # GCC repeats the bare name when it has no such file.
    found = answer is not None and Path(answer.strip()).is_absolute()
    return Check(name, found, file if found else None, needed_for, install_command(name))


def _arduino_cli() -> Check:
    version = _version("arduino-cli", "version")
    return Check(
        "arduino-cli",
        version is not None,
        version,
        "`tinyet build` of Arduino projects",
        arduino.install_command(),
    )


def _exported(package: str) -> Iterator[Path]:
    """The directories that have put themselves into CMake's user registry under a name."""
    registry = Path("~/.cmake/packages").expanduser() / package
    for entry in sorted(registry.glob("*")):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            yield Path(entry.read_text(encoding="utf-8").strip())


def _zephyr() -> Check:
    """Zephyr's source: `$ZEPHYR_BASE`, or the path that `west zephyr-export` has noted."""
    base = os.environ.get("ZEPHYR_BASE")
    places = (
        [Path(base)] if base else [place.parents[2] for place in _exported("Zephyr") if len(place.parts) > 3]
    )
    version = None
    for place in places:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = (place / "VERSION").read_text(encoding="utf-8")
            numbers = re.findall(r"(?:MAJOR|MINOR|PATCHLEVEL)\s*=\s*(\d+)", text)
            version = version or ".".join(numbers) or None
    install = (
        f"west init -m {_ZEPHYR_URL} ~/zephyrproject && cd ~/zephyrproject && west update && west zephyr-export"
        " && west packages pip --install"
    )
    return Check("Zephyr", version is not None, version, "building Zephyr projects", install)


def _zephyr_sdk() -> Check:
    """The SDK: `$ZEPHYR_SDK_INSTALL_DIR`, or the path that its set-up has noted."""
    base = os.environ.get("ZEPHYR_SDK_INSTALL_DIR")
    places = [Path(base)] if base else [place.parent for place in _exported("Zephyr-sdk")]
    version = None
    for place in places:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            version = version or (place / "sdk_version").read_text(encoding="utf-8").strip() or None
    return Check(
        "Zephyr SDK",
        version is not None,
        version,
        "building Zephyr projects",
        "cd ~/zephyrproject/zephyr && west sdk install",
    )


def _simavr() -> Check:
    # It does not tell its version, and prints its usage with a failure status.
    found = shutil.which("simavr") is not None
    version = "unknown" if found else None
    return Check("simavr", found, version, "running firmware for AVR", install_command("simavr"))


def _host_compiler() -> Check:
    name = os.environ.get("CC") or "cc"
    version = _version(name)
    return Check(
        "host cc",
        version is not None,
        version,
        "running the C code on this machine, and `validate --estimate`",
        install_command("cc"),
    )


def _renode() -> Check:
    place = find_renode.find_renode()
    version = None if place is None else _version(str(place))
    home = "~/.local/share/renode"
    if sys.platform == "linux":
        install = (
            f"mkdir -p {home} ~/.local/bin && curl -fsSL {find_renode.RELEASE} | tar xz --strip-components=1"
            f" -C {home} && ln -sf {home}/renode ~/.local/bin/renode"
        )
    else:
        install = f"install Renode {find_renode.VERSION} from https://github.com/renode/renode/releases"
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


def _version(name: str, option: str = "--version") -> str | None:
    """Return the first number with dots in the output of `name --version`, or None when it does not work."""
    answer = _output(name, option)
    if answer is None:
        return None
    # The number in parentheses is the packager's own.
    match = re.search(r"\d+(?:\.\d+)+", re.sub(r"\(.*?\)", "", answer))
    return match.group() if match else "unknown"


def _output(name: str, option: str) -> str | None:
    """Return a tool's output, or None when it is missing, fails or hangs."""
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
