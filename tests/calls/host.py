# SPDX-License-Identifier: Apache-2.0
"""The call server of this machine: all library kernels under ASan and UBSan, built once a session, a process a worker.

Each input, constant, output and scratch has memory of its own of exactly its size: an access beside it is found.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.calls.encoding import PreparedCall, Server, server_of
from tests.calls.table import FunctionTable, function_table
from tests.ops.cases import SANITIZERS, WARNINGS
from tests.ops.objects import compiled_object, directory, run
from tinyet import assets
from tinyet.assets import kernel_sources
from tinyet.delegates import CORTEX_M, PORTABLE
from tinyet.device import calls
from tinyet.device.calls import Result

FLAGS = ("-std=c11", "-O1", "-g1", "-ffp-contract=off")
ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=8", "UBSAN_OPTIONS": "print_stacktrace=1"}
ANSWER_SECONDS = 120.0
_CORE = ("harness/tinyet_call_server.c", "harness/call_main.c", "platform/tinyet_posix.c")


def library_headers() -> list[str]:
    """The headers of all library kernels."""
    kernels = [k for d in (PORTABLE, CORTEX_M) for found in d.kernels.values() for k in found]
    return sorted({header for kernel in kernels for header in kernel.headers})


def library_sources(folder: Path) -> list[Path]:
    """The C files of all library kernels, written into the folder."""
    kernels = [k for d in (PORTABLE, CORTEX_M) for found in d.kernels.values() for k in found]
    names = sorted({source for kernel in kernels for source in kernel.sources})
    return kernel_sources.write(folder, names)


@functools.cache
def library_table() -> FunctionTable:
    """All functions of library kernels."""
    headers = library_headers()
    text = "".join(f'#include "{header}"\n' for header in headers)
    include = assets.path("firmware") / "include"
    made = run(["gcc", "-E", "-P", "-std=c11", f"-I{include}", "-"], text.encode())
    return function_table(headers, made.decode())


def build(
    folder: Path, sources: Sequence[Path], table: FunctionTable, extra: Sequence[str] = SANITIZERS
) -> Path:
    """Compile and link a server of these kernels into a folder; its path."""
    compiler = ["gcc", *FLAGS, *WARNINGS, *extra, f"-I{assets.path('firmware') / 'include'}"]
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(functools.partial(compiled_object, compiler), sources))
    return linked(folder, objects, table, compiler)


def linked(folder: Path, objects: Sequence[Path], table: FunctionTable, compiler: Sequence[str]) -> Path:
    """A server of kernels that are compiled already, in the folder; its path. compiler: as for the kernels."""
    firmware = assets.path("firmware")
    include = f"-I{firmware / 'include'}"
    # What only carries bytes is not under test, and takes its time under sanitizers.
    core = ["gcc", *FLAGS, "-DTINYET_CALL_SEPARATE", include]
    objects = [*objects, *(compiled_object(core, firmware / name) for name in _CORE)]
    source, server = folder / "table.c", folder / "call_server"
    source.write_text(table.text, encoding="utf-8")
    run([*compiler, include, "-o", str(server), str(source), *map(str, objects), "-lm"])
    return server


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@functools.cache
def library_server() -> Path:
    """The session's server, which the first worker that needs it builds; what does not compile is tried once."""
    folder = directory() / "call-server"
    folder.mkdir(exist_ok=True)
    complaints = folder / "complaints"
    with _locked(folder / "lock"):
        if not complaints.exists():
            text = ""
            try:
                build(folder, library_sources(folder / "kernels"), library_table())
            except AssertionError as error:
                text = str(error)
            complaints.write_text(text, encoding="utf-8")
        text = complaints.read_text(encoding="utf-8")
    assert not text, text
    return folder / "call_server"


@dataclass
class Process:
    """A server that runs. It is started when it is asked for the first time, and again after a crash."""

    program: Path
    table: FunctionTable
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

    def run(self, prepared: PreparedCall) -> Result:
        """Fails with the sanitizer's report when the call ends the server."""
        request = prepared.request
        head, body = self.ask(calls.request_bytes(request))
        return calls.unpack_result(calls.answer_head(head)[0], body, request.blocks)

    def close(self) -> None:
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None

    def ask(self, request: bytes) -> tuple[bytes, bytes]:
        """The head and the rest of the answer. Fails with the sanitizer's report when the server ends."""
        if self._running is None:
            self._start()
        assert self._running is not None
        assert self._running.stdin is not None
        deadline = time.monotonic() + ANSWER_SECONDS
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
            [self.program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **ENVIRONMENT},
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


@functools.cache
def library() -> Process:
    """This worker's server of all library kernels."""
    return Process(library_server(), library_table())
