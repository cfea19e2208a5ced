# SPDX-License-Identifier: Apache-2.0
"""Emulators and harnesses as processes: their output is bounded, and none outlives its starter.

A process that is killed cleans nothing up. So each child has a guard, a shell that waits at a pipe from here. If the
pipe ends before the guard was dismissed, this process is gone: the guard ends the child's group, and removes its
directory. The child begins behind a gate, another shell, which becomes the command once the guard stands: at no moment
does it run without one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from tinyet.build.ending import undisturbed
from tinyet.build.process import wait

CHUNK = 65536
END_SECONDS = 5.0
_TAIL_BYTES = 4000

# A pipe that ends before the first line opens nothing. `read` takes no byte behind the line.
_GATE = 'read -r line && exec "$@"'
_GATE_KEEPER = "/bin/sh"
# $1 is the child's group, $2 its directory. A signal to a group of processes need not be meant for the guard.
_GUARD = 'trap \'\' HUP INT TERM; read -r line || { kill -KILL "-$1"; rm -rf -- "$2"; }'


class Child:
    """A process in a temporary directory of its own, which ends with it.

    Its standard input is a pipe, which stays open until the end. Its standard output is a pipe too with
    `pipes`; without, it is read with its errors, as a log whose end is kept. watched: lines of the log that `said` is
    asked for. files: name → contents, in the directory, where it is started.
    """

    def __init__(
        self,
        words: list[str],
        *,
        pipes: bool,
        watched: tuple[str, ...] = (),
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self._words = ""
        self._directory = tempfile.TemporaryDirectory(prefix="tinyet-", ignore_cleanup_errors=True)
        try:
            for name, contents in (files or {}).items():
                Path(self._directory.name, name).write_bytes(contents)
            with undisturbed():
                self._start(words, pipes, watched)
        except BaseException:
            if hasattr(self, "process"):
                self._kill()
            if hasattr(self, "_guard"):
                self._guard.dismiss()
            self._directory.cleanup()
            raise

    def _start(self, words: list[str], pipes: bool, watched: tuple[str, ...]) -> None:
        # A system without this shell has neither gates nor guards.
        gated = sys.platform != "win32" and os.access(_GATE_KEEPER, os.X_OK)
        if gated and shutil.which(words[0]) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), words[0])
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            [_GATE_KEEPER, "-c", _GATE, "tinyet-gate", *words] if gated else words,
            cwd=self._directory.name,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if pipes else subprocess.STDOUT,
            start_new_session=sys.platform != "win32",
        )
        self.process.args = words
        self._guard = _Guard(self.process.pid, self._directory.name)
        if gated:
            assert self.process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write(b"\n")
                self.process.stdin.flush()
        log = self.process.stderr if pipes else self.process.stdout
        assert log is not None
        self._log = _Log(log, watched)

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
        """Kill the process and its children, keep the end of its output, and remove its directory."""
        self._kill()
        self._words = self._log.end() or self._words
        self._directory.cleanup()
        self._guard.dismiss()

    def _kill(self) -> None:
        if self.process.poll() is None:
            if sys.platform == "win32":
                self.process.kill()
            else:
                # Renode's launcher is a script with the emulator as its child.
                self._signal(signal.SIGKILL)
            self.wait_briefly()

    def wait_briefly(self) -> None:
        """Give a process whose stream has ended the time to end too, and to print why."""
        try:
            wait(self.process, END_SECONDS)
        except subprocess.TimeoutExpired:
            return

    def said(self, line: str) -> bool:
        """Whether one of the watched lines has been in the log."""
        return self._log.said(line)

    def last_words(self) -> str:
        return self._words


class _Log:
    """Reads a stream as it grows, to its end, and keeps the last of it: a process may say as much as it likes."""

    def __init__(self, stream: IO[bytes], watched: tuple[str, ...]) -> None:
        self._stream = stream
        self._unseen = {line.encode() for line in watched}
        self._tail = b""
        self._bytes = 0
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    def _pump(self) -> None:
        with self._stream as stream:
            while data := os.read(stream.fileno(), CHUNK):
                # A line may have begun in the piece before.
                window = self._tail + data
                self._unseen = {line for line in self._unseen if line not in window}
                self._bytes += len(data)
                self._tail = window[-_TAIL_BYTES:]

    def said(self, line: str) -> bool:
        return line.encode() not in self._unseen

    def end(self) -> str:
        """The end of the output, once it is complete."""
        self._thread.join(END_SECONDS)
        words = self._tail.decode("utf-8", "replace").strip()
        left_out = self._bytes - len(self._tail)
        return f"[{left_out:,} bytes]\n{words}" if left_out else words


class _Guard:
    """Ends a group of processes, and removes a directory, when this process is gone before it says otherwise."""

    def __init__(self, group: int, directory: str) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if sys.platform == "win32":
            return
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [_GATE_KEEPER, "-c", _GUARD, "tinyet-guard", str(group), directory],
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def dismiss(self) -> None:
        """There is nothing to guard any more. May be called twice."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            process.communicate(b"\n", END_SECONDS)
