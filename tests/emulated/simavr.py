# SPDX-License-Identifier: Apache-2.0
"""Runs AVR firmwares in simavr, through the program around libsimavr that the product has (simavr/tinyet_simavr.c)."""

from __future__ import annotations

import ctypes.util
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tinyet.device import simavr

HOST_SECONDS = 300.0


@dataclass(frozen=True)
class Run:
    """What a firmware sent on its UART before it ended, and the cycles it took."""

    output: bytes
    cycles: int


def build_runner() -> Path:
    """The runner; skips, saying what is missing, where libsimavr or a compiler is absent."""
    for tool in ("gcc", "avr-gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if ctypes.util.find_library("simavr") is None or not Path("/usr/include/simavr/sim_avr.h").exists():
        pytest.skip("libsimavr-dev is not installed")
    return simavr.runner()


def execute(elf: Path, mcu: str, hz: int, timeout: float, data: bytes = b"", until: str = "") -> Run:
    """Run a firmware until it sleeps with interrupts off, or has sent `until`.

    hz: its clock; timeout: seconds of that clock; data: bytes that its first UART receives. Fails when the firmware
    crashes or takes longer.
    """
    command = [
        str(build_runner()),
        str(elf),
        mcu,
        str(hz),
        str(timeout),
        *(["0", "cycles", until] if until else []),
    ]
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=HOST_SECONDS)
    *noise, cycles = done.stderr.decode(errors="replace").splitlines() or [""]
    reason = {3: "crashed", 4: f"took longer than {timeout} simulated seconds"}.get(done.returncode, "failed")
    shown = done.stdout[-1000:].decode("latin-1")
    assert done.returncode == 0, (
        f"{elf.name} {reason}: {' '.join(noise)} {cycles}\nits output ends in: {shown}"
    )
    return Run(done.stdout, int(cycles))


def run(elf: Path, mcu: str, hz: int, timeout: float, data: bytes = b"", until: str = "") -> str:
    """As `execute`; only the text that the firmware sent."""
    return execute(elf, mcu, hz, timeout, data, until).output.decode("latin-1")
