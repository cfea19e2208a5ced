# SPDX-License-Identifier: Apache-2.0
"""A call server as a process of this machine: a program, or an emulator with a firmware."""

from __future__ import annotations

import atexit
import fcntl
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO

from tests.calls.encoding import PreparedCall, Server, server_of
from tests.calls.table import FunctionTable
from tests.ops.objects import directory
from tinyet.device import calls
from tinyet.device.calls import Result
from tinyet.stack.bound import Stack

ANSWER_SECONDS = 120.0


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def built_once(name: str, build: Callable[[Path], object]) -> Path:
    """A folder of the session in which the first worker that needs it has built something. A failure is
    not tried again: it fails every test that needs it."""
    folder = directory() / name
    folder.mkdir(exist_ok=True)
    complaints = folder / "complaints"
    with _locked(folder / "lock"):
        if not complaints.exists():
            text = ""
            try:
                build(folder)
            except Exception as error:  # noqa: BLE001 - it is raised again in each test
                text = str(error) or repr(error)
            complaints.write_text(text, encoding="utf-8")
        text = complaints.read_text(encoding="utf-8")
    assert not text, text
    return folder


@dataclass
class Process:
    """A server that runs. It is started when it is asked for the first time, and again after a crash.

    command: starts it. elf: its firmware, where the stack that a call takes is to be within the bound of its code;
    unbounded: functions may have no bound.
    """

    command: Sequence[str]
    table: FunctionTable
    environment: Mapping[str, str] = field(default_factory=dict)
    elf: Path | None = None
    unbounded: bool = False
    answer_seconds: float = ANSWER_SECONDS
    _running: subprocess.Popen[bytes] | None = None
    _errors: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    _server: Server | None = None

    @property
    def server(self) -> Server:
        """What it can call, and how it lays out structs."""
        if self._server is None:
            head, body = self.ask(calls.layouts_request())
            self._server = server_of(self.table, calls.unpack_layouts(calls.answer_head(head)[0], body))
        return self._server

    def takes(self, prepared: PreparedCall) -> bool:
        """Whether its memory holds the call."""
        room = self.server.memory_bytes
        return room == 0 or prepared.request.placed()[1] <= room

    def run(self, prepared: PreparedCall) -> Result:
        """Fails with the server's last words when the call ends it, and where it takes more stack than its bound."""
        request = prepared.request
        head, body = self.ask(calls.request_bytes(request))
        result = calls.unpack_result(calls.answer_head(head)[0], body, request.blocks)
        if self._stack is not None:
            bounds = [self._stack.function(f"call_{call.function}") for call in request.calls]
            unknown = [bound.unknown for bound in bounds if bound.bytes is None]
            assert self.unbounded or not unknown, unknown
            most = max((bound.bytes or 0 for bound in bounds), default=0)
            assert unknown or result.stack_bytes <= most, f"{result.stack_bytes} bytes of stack: {bounds}"
        return result

    @cached_property
    def _stack(self) -> Stack | None:
        return None if self.elf is None else Stack(self.elf)

    def close(self) -> None:
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None

    def ask(self, request: bytes) -> tuple[bytes, bytes]:
        """The head and the rest of the answer. Fails with the server's last words when it ends."""
        if self._running is None:
            self._start()
        assert self._running is not None
        assert self._running.stdin is not None
        deadline = time.monotonic() + self.answer_seconds
        try:
            self._running.stdin.write(request)
            self._running.stdin.flush()
            head = self._read(calls.HEAD_BYTES, deadline)
            return head, self._read(calls.answer_head(head)[1], deadline)
        except (BrokenPipeError, EOFError):
            raise AssertionError(self._last_words()) from None

    def _start(self) -> None:
        self._errors.seek(0)
        self._errors.truncate()
        self._running = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **self.environment},
        )
        atexit.register(self.close)

    def _read(self, size: int, deadline: float) -> bytes:
        assert self._running is not None
        assert self._running.stdout is not None
        at = self._running.stdout.fileno()
        parts: list[bytes] = []
        while size:
            if not select.select([at], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self.close()
                raise AssertionError("the call server does not answer")
            part = os.read(at, size)
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _last_words(self) -> str:
        assert self._running is not None
        status = self._running.wait(ANSWER_SECONDS)
        self.close()
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace")
        return f"the call server ended with status {status}\n{text[:6000]}"
