# SPDX-License-Identifier: Apache-2.0
"""Links over a socket or over the pipes of a process."""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
import time
from typing import IO, Protocol

from tinyet.device.child import CHUNK, END_SECONDS, Child

# The most pieces that have arrived and are not read yet: a device may talk without end.
_MOST_WAITING = 64
_DRAIN_SECONDS = 0.02


class LinkClosed(Exception):  # noqa: N818 - the end of a stream, an error only to who waits for more
    """The other end of a link is gone; the text says which, where that is known."""


class Link(Protocol):
    """A stream of bytes to the harness, with deadlines in time.monotonic() seconds."""

    def write(self, data: bytes, deadline: float) -> None:
        """Send all of `data`. Raises LinkClosed, or TimeoutError past the deadline."""

    def read(self, deadline: float) -> bytes:
        """Return the bytes that have arrived, at least one. Raises LinkClosed, or TimeoutError past the deadline."""

    def rest(self) -> None:
        """Nothing is asked until the next write: an emulator, which would spend a whole core on waiting, stops."""

    def close(self) -> None:
        """End the connection, and the process behind it. May be called twice."""

    def again(self, deadline: float) -> bool:
        """Connect anew to a device that was gone and comes back, as a board does that is reset. Whether it did."""

    def last_words(self) -> str:
        """The output of the process behind the link before it ended; empty for none."""


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


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
            data = self._socket.recv(CHUNK)
        except ConnectionResetError as error:
            self._child.wait_briefly()
            raise LinkClosed from error
        if not data:
            self._child.wait_briefly()
            raise LinkClosed
        return data

    def rest(self) -> None:
        # Behind a socket may be many machines, which are not stopped.
        return

    def close(self) -> None:
        self._socket.close()
        self._child.end()

    def again(self, deadline: float) -> bool:  # noqa: ARG002
        return False

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
        self._inbox: queue.Queue[bytes] = queue.Queue(_MOST_WAITING)
        self._threads = [
            threading.Thread(target=pump, daemon=True) for pump in (self._pump_out, self._pump_in)
        ]
        for thread in self._threads:
            thread.start()

    def _pump_out(self) -> None:
        """Write the outbox, until an empty piece or until the reader is gone."""
        try:
            while data := self._outbox.get():
                self._to.write(data)
                self._to.flush()
        except OSError:
            return

    def _pump_in(self) -> None:
        """Put arriving bytes into the inbox; an empty piece is the end."""
        data = b"first"
        while data:
            data = os.read(self._from.fileno(), CHUNK)
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
        self.child.end()
        # With the child gone, both threads wait only for room in the inbox.
        give_up = time.monotonic() + END_SECONDS
        for thread in self._threads:
            while thread.is_alive() and time.monotonic() < give_up:
                with contextlib.suppress(queue.Empty):
                    self._inbox.get_nowait()
                thread.join(_DRAIN_SECONDS)
        with contextlib.suppress(OSError):
            self._to.close()
        self._from.close()

    def again(self, deadline: float) -> bool:  # noqa: ARG002
        return False

    def last_words(self) -> str:
        return self.child.last_words()
