# SPDX-License-Identifier: Apache-2.0
"""PlatformIO for tests that want a firmware, and not PlatformIO: without its imports (warm_python.py), most of Python's
time for it. What it does is the same; tests of its projects themselves start it as users do (`as_users`)."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.compilers import warm_python
from tests.ops.objects import directory
from tinyet.build import platformio, process

PLACE = "TINYET_TEST_PYTHON"
"""The environment variable that names the socket of this process's server."""
STARTED_AS = "PYTHONEXEPATH"
"""PlatformIO's own environment variable: as what it starts Python for SCons."""
LONGEST_PLACE = 100
"""Bytes of a socket's path."""

Run = Callable[..., subprocess.CompletedProcess[str]]


def install(patch: pytest.MonkeyPatch) -> None:
    """For builds of this process, and those alone."""
    patch.setattr(platformio, "run", warm(process.run))


def as_users(patch: pytest.MonkeyPatch) -> None:
    """Start PlatformIO, and let it start SCons, each in a Python of its own."""
    patch.setenv(PLACE, "")


def warm(run: Run) -> Run:
    """The same function, which runs PlatformIO in a process that has made its imports."""

    def run_it(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
        words, env = started(command, options.pop("env"))
        return run(words, **options, env=env)

    return run_it


def started(command: Sequence[str | Path], env: Mapping[str, str]) -> tuple[list[str | Path], dict[str, str]]:
    """A command that starts this Python, and its environment, so that a process with PlatformIO's imports runs it;
    where there is none, as they are."""
    assert command[0] == sys.executable
    client = _client() if os.environ.get(PLACE) != "" else None
    place = _server() if client else None
    if client is None or place is None:
        return list(command), dict(env)
    return [client, *command[1:]], {**env, PLACE: str(place), STARTED_AS: str(client)}


@functools.cache
def _client() -> Path | None:
    """The program that stands for Python, compiled once a session."""
    if sys.platform != "linux" or shutil.which("gcc") is None or not importlib.util.find_spec("platformio"):
        return None
    client = directory() / f"python-{os.getpid()}"
    source = Path(__file__).with_name("warm_python.c")
    facts = [f'-DPLACE="{PLACE}"', f'-DPYTHON="{sys.executable}"']
    done = subprocess.run(
        ["gcc", "-std=gnu11", "-O1", *facts, source, "-o", client], capture_output=True, check=False
    )
    return client if done.returncode == 0 else None  # Its own test fails then; others take longer.


@functools.cache
def _server() -> Path | None:
    """The socket of the process that has the imports. It ends with this one, whose end of its input it waits for."""
    place = directory() / f"python-{os.getpid()}.socket"
    if len(os.fsencode(place)) > LONGEST_PLACE:
        return None
    server = subprocess.Popen(
        [sys.executable, warm_python.__file__, place],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={name: said for name, said in os.environ.items() if not name.startswith("PLATFORMIO_")},
    )
    assert server.stdout is not None
    _RUNNING.append(server)
    return place if server.stdout.readline() == b"ready\n" else None


_RUNNING: list[subprocess.Popen[bytes]] = []
