# SPDX-License-Identifier: Apache-2.0
"""PlatformIO without its imports, which are four fifths of Python's time for a build: one process has made them, and
each run of PlatformIO and of its SCons is a copy of it.

    python warm_python.py SOCKET

serves runs until its input ends. It imports nothing of a test session, and no project's code runs in it, only in its
copies. warm_python.c asks it, and quick_platformio.py starts both.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

_IMPORTED = (
    *(
        "platformio.cli",
        "platformio.maintenance",
        "platformio.run.cli",
        "platformio.run.processor",
        "platformio.platform.factory",
    ),
    *("platformio.project.commands.config", "platformio.package.commands.install"),
    *("platformio.debug.config.factory", "platformio.test.runners.factory", "platformio.platform._run"),
    *("elftools.elf.elffile", "elftools.elf.descriptions", "xml.dom.minidom", "pdb"),
    *(
        "SCons.Script",
        "SCons.Builder",
        "SCons.Defaults",
        "SCons.Subst",
        "SCons.Scanner.C",
        "SCons.Scanner.Prog",
    ),
    *(
        f"SCons.Tool.{tool}"
        for tool in ("ar", "as", "cc", "c++", "g++", "gas", "gcc", "gnulink", "link", "linkloc")
    ),
)
"""What a build with PlatformIO imports, but for what is missing in this version of it."""


def serve(place: str) -> None:
    """Run what clients ask for, each in a copy of this process, until the input ends."""
    for name in _IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    woken, wakes = socket.socketpair()
    for end in (woken, wakes):
        end.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(place)
    listening.listen(64)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    running: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for waited in (listening, woken, sys.stdin):
            selector.register(waited, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    signal.set_wakeup_fd(-1)
                    _end(running)
                    return
                if key.fileobj is listening:
                    client, _ = listening.accept()
                    with contextlib.suppress(OSError, ValueError):
                        child = _start(client)
                        running[child] = client
                        selector.register(client, selectors.EVENT_READ, child)
                elif key.fileobj is woken:
                    woken.recv(4096)
                    _answer(running, selector)
                elif key.data in running:
                    # Who asked is gone: killed, with all that it had started, as it thinks.
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(key.data, signal.SIGKILL)
                    selector.unregister(key.fileobj)


def _answer(running: dict[int, socket.socket], selector: selectors.BaseSelector) -> None:
    """Tell those whose runs have ended how."""
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        client = running.pop(child)
        with contextlib.suppress(KeyError):
            selector.unregister(client)
        with contextlib.suppress(OSError):
            client.sendall(struct.pack("=i", os.waitstatus_to_exitcode(status)))
        client.close()


def _end(running: dict[int, socket.socket]) -> None:
    for child in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)


def _start(client: socket.socket) -> int:
    """Start what a client asks for; the process."""
    head, streams, _, _ = socket.recv_fds(client, 4, 3)
    try:
        (size,) = struct.unpack("=I", head)
        with client.makefile("rb") as said:
            words = [os.fsdecode(word) for word in said.read(size).split(b"\0")[:-1]]
        count = int(words[1])
        arguments = words[2 : 2 + count]
        child = os.fork()
        if child == 0:
            _run(words[0], arguments, words[2 + count :], streams)
        with contextlib.suppress(OSError):  # It is so already, or has ended.
            os.setpgid(child, child)
        return child
    finally:
        for stream in streams:
            os.close(stream)


def _run(folder: str, arguments: list[str], environment: list[str], streams: Sequence[int]) -> None:
    """In the copy: what Python does with these arguments, `-m MODULE ...` or `SCRIPT ...`. Does not return."""
    status = 1
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, 1024)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(line.partition("=")[::2] for line in environment)
        encoding = os.environ.get("PYTHONIOENCODING") or None
        sys.stdin = open(0, encoding=encoding, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding=encoding, closefd=False, errors="backslashreplace")  # noqa: SIM115
        sys.stdout.reconfigure(line_buffering=True)
        gc.enable()
        status = _status(arguments)
        atexit._run_exitfuncs()
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _status(arguments: list[str]) -> int:
    try:
        if arguments[0] == "-m":
            sys.argv = arguments[1:]
            sys.path[0] = str(Path.cwd())
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            sys.path[0] = str(Path(arguments[0]).parent)
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, int) or end.code is None:
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    return 0


if __name__ == "__main__":
    serve(sys.argv[1])
