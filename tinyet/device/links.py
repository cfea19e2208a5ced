# SPDX-License-Identifier: Apache-2.0
"""Links over a socket or over the pipes of a process, and the processes behind them."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
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

    def rest(self) -> None:
        """Nothing is asked until the next write: an emulator stops, which would spend a whole core on waiting."""

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
    """A process in a temporary directory of its own, which ends with it.

    Its standard input is a pipe, which stays open until the end. Its standard output is a pipe too with
    `pipes`; without, it goes to a file, as its errors always do.
    """

    def __init__(self, words: list[str], *, pipes: bool) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="tinyet-")
        self._log = Path(self._directory.name, "output.txt")
        with self._log.open("wb") as log:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                words,
                cwd=self._directory.name,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if pipes else log,
                stderr=log,
                start_new_session=sys.platform != "win32",
            )
        self._words = ""

    def pause(self) -> None:
        """Stop the process and its children until `proceed`, where the system can."""
        if sys.platform != "win32":
            self._signal(signal.SIGSTOP)

    def proceed(self) -> None:
        """Let a paused process go on."""
        if sys.platform != "win32":
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        # Not to a process that has ended: its number may be another's by now.
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def end(self) -> None:
        """Kill the process and its children, keep the end of what it said, and remove its directory."""
        if self.process.poll() is None:
            if sys.platform == "win32":
                self.process.kill()
            else:
                # Renode's launcher is a script with the emulator as its child.
                self._signal(signal.SIGKILL)
            self.process.wait(_END_SECONDS)
        if self._log.exists():
            self._words = self._log.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace").strip()
        self._directory.cleanup()

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

    def rest(self) -> None:
        # What is behind a socket may be many machines, with a life of their own.
        return

    def close(self) -> None:
        self._socket.close()
        self._child.end()

    def last_words(self) -> str:
        return self._child.last_words()


class PipeLink:
    """A link over a child's standard input and output.

    A thread each way does the waiting: pipes have no deadlines, and not every system can select() on them.
    """

    def __init__(self, child: Child) -> None:
        self.child = child
        assert child.process.stdin is not None
        assert child.process.stdout is not None
        self._to: IO[bytes] = child.process.stdin
        self._from: IO[bytes] = child.process.stdout
        self._outbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=pump, daemon=True) for pump in (self._pump_out, self._pump_in)
        ]
        for thread in self._threads:
            thread.start()

    def _pump_out(self) -> None:
        """Write what is in the outbox, until an empty piece or until nobody reads it."""
        try:
            while data := self._outbox.get():
                self._to.write(data)
                self._to.flush()
        except OSError:
            return

    def _pump_in(self) -> None:
        """Put what arrives into the inbox; an empty piece is the end."""
        data = b"first"
        while data:
            data = os.read(self._from.fileno(), _CHUNK)
            self._inbox.put(data)

    def write(self, data: bytes, deadline: float) -> None:
        _seconds_left(deadline)
        self.child.proceed()
        self._outbox.put(data)

    def read(self, deadline: float) -> bytes:
        try:
            data = self._inbox.get(timeout=_seconds_left(deadline))
        except queue.Empty:
            raise TimeoutError from None
        if not data:
            self._inbox.put(b"")
            self.child.wait_briefly()
            raise LinkClosed
        return data

    def rest(self) -> None:
        self.child.pause()

    def close(self) -> None:
        self._outbox.put(b"")
        # With the child gone, neither thread has anything left to wait for.
        self.child.end()
        for thread in self._threads:
            thread.join(_END_SECONDS)
        with contextlib.suppress(OSError):
            self._to.close()
        self._from.close()

    def last_words(self) -> str:
        return self.child.last_words()
