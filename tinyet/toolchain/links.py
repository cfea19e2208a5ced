# SPDX-License-Identifier: Apache-2.0
"""Links over a socket or over the pipes of a process, and the processes behind them."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, Protocol

_CHUNK = 65536
_TAIL_BYTES = 4000
_END_SECONDS = 5.0


class LinkClosed(Exception):  # noqa: N818 - the end of a stream, an error only to who waits for more
    """The other end of a link is gone."""


class Link(Protocol):
    """A stream of bytes to the harness, with deadlines in time.monotonic() seconds."""

    def write(self, data: bytes, deadline: float) -> None:
        """Send all of `data`. Raises LinkClosed, or TimeoutError past the deadline."""

    def read(self, deadline: float) -> bytes:
        """Return what has arrived, at least a byte. Raises LinkClosed, or TimeoutError past the deadline."""

    def close(self) -> None:
        """End the connection, and the process behind it. May be called twice."""

    def last_words(self) -> str:
        """What the process behind the link printed before it ended; empty when there is none."""


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class Child:
    """A process whose output goes to a file in a temporary directory of its own, and both end with it."""

    def __init__(
        self,
        words: list[str],
        *,
        pass_fds: tuple[int, ...] = (),
        pipes: bool = False,
        hold_stdin: bool = False,
        directory: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        self.directory = directory or tempfile.TemporaryDirectory(prefix="tinyet-")
        self._log = Path(self.directory.name, "output.txt")
        with self._log.open("wb") as log:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                words,
                cwd=self.directory.name,
                stdin=subprocess.PIPE if pipes or hold_stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE if pipes else log,
                stderr=log,
                pass_fds=pass_fds,
            )
        self._words = ""

    def end(self) -> None:
        """Kill the process if it still runs, keep the end of what it said, and remove its directory."""
        try:
            # One that is about to end by itself has something to say.
            self.process.wait(0.0 if self.process.poll() is None else _END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(_END_SECONDS)
        if self._log.exists():
            self._words = self._log.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace").strip()
        self.directory.cleanup()

    def wait_briefly(self) -> None:
        """Give a process whose stream has ended the time to end too, and to print why."""
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return

    def output(self) -> str:
        """What it has printed so far (without pipes)."""
        return self._log.read_text("utf-8", "replace")

    def last_words(self) -> str:
        return self._words


class SocketLink:
    """A link over a connected socket to a child process."""

    def __init__(self, sock: socket.socket, child: Child) -> None:
        self._socket = sock
        self._child = child

    def write(self, data: bytes, deadline: float) -> None:
        self._socket.settimeout(_seconds_left(deadline))
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            self._child.wait_briefly()
            raise LinkClosed from error

    def read(self, deadline: float) -> bytes:
        self._socket.settimeout(_seconds_left(deadline))
        try:
            data = self._socket.recv(_CHUNK)
        except ConnectionResetError as error:
            self._child.wait_briefly()
            raise LinkClosed from error
        if not data:
            self._child.wait_briefly()
            raise LinkClosed
        return data

    def close(self) -> None:
        self._socket.close()
        self._child.end()

    def last_words(self) -> str:
        return self._child.last_words()


class PipeLink:
    """A link over a child's standard input and output."""

    def __init__(self, child: Child) -> None:
        self._child = child
        assert child.process.stdin is not None
        assert child.process.stdout is not None
        self._to: IO[bytes] = child.process.stdin
        self._from: IO[bytes] = child.process.stdout
        os.set_blocking(self._to.fileno(), False)

    def write(self, data: bytes, deadline: float) -> None:
        while data:
            if select.select([], [self._to], [], _seconds_left(deadline))[1]:
                try:
                    data = data[os.write(self._to.fileno(), data) :]
                except BrokenPipeError as error:
                    self._child.wait_briefly()
                    raise LinkClosed from error

    def read(self, deadline: float) -> bytes:
        if not select.select([self._from], [], [], _seconds_left(deadline))[0]:
            raise TimeoutError
        data = os.read(self._from.fileno(), _CHUNK)
        if not data:
            self._child.wait_briefly()
            raise LinkClosed
        return data

    def close(self) -> None:
        self._to.close()
        self._from.close()
        self._child.end()

    def last_words(self) -> str:
        return self._child.last_words()
