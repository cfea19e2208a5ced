# SPDX-License-Identifier: Apache-2.0
"""Runs a board in Renode, on platform descriptions of our own, with time that is a count of instructions.

Renode executes `PerformanceInMips` instructions in a microsecond of its virtual time. The platforms give
the counter a frequency that makes a tick one instruction.
"""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path

from tinyet import assets
from tinyet.boards import Board, Renode
from tinyet.build import find_renode
from tinyet.build.size import check_elf
from tinyet.device.child import Child
from tinyet.device.links import SocketLink
from tinyet.errors import EmulatorError, MissingTool

BYTES_PER_SECOND = 1000.0

# The UART's socket; included behind the board's own script.
_HARNESS_SCRIPT = "harness.resc"
# It prints this as its last command: Renode drops the rest when a command fails,
# and ends with status 0 either way.
_MARKER = "tinyet: the machine is running"
# After a failed script Renode waits for the next command: this one reports the script's end in either case.
_END_MARKER = "tinyet: the script is over"
_END_COMMAND = b"python \"print('tinyet: the script ' + 'is over')\"\n"
_START_SECONDS = 60.0
_POLL_SECONDS = 0.05


def _machine(board: Board) -> Renode:
    if board.renode is None:
        raise EmulatorError(
            what=f"tinyet has no Renode platform for the board {board.name}",
            hint="run on: " + (", ".join(board.emulators) or "serial:PORT"),
        )
    return board.renode


def ticks_per_instruction(board: Board) -> float:
    """Ticks of the board's counter an instruction."""
    machine = _machine(board)
    return machine.counter_hz / (machine.mips * 1e6)


def start(board: Board, elf: Path) -> SocketLink:
    """Start Renode with the firmware; return the link to its UART. Raises EmulatorError, ToolchainError."""
    _machine(board)
    renode = find_renode.find_renode()
    if renode is None:
        raise MissingTool(
            what=f"Renode is not installed; running {board.name} in it needs it",
            where=f"${find_renode.VARIABLE}, PATH, renode-run",
            hint=find_renode.hint(),
        )
    find_renode.check_renode(renode)
    check_elf(elf)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    scripts = assets.path("renode")
    words = [
        *(str(renode), "--console", "--disable-gui", "--plain", "--hide-log"),
        *("-e", f"$elf=@{_escape(elf.resolve())}"),
        *("-e", f"$port={port}"),
        *("-e", f"include @{_escape(scripts / f'{board.name}.resc')}"),
        *("-e", f"include @{_escape(scripts / _HARNESS_SCRIPT)}"),
    ]
    child = Child(words, pipes=False, watched=(_MARKER, _END_MARKER))
    try:
        return SocketLink(_connect(child, port), child)
    except BaseException:
        child.end()
        raise


def _escape(path: Path) -> str:
    """A path as Renode's monitor reads it."""
    return str(path).replace("\\", "/").replace(" ", "\\ ")


def _connect(child: Child, port: int) -> socket.socket:
    """Wait for the script's end, then for its UART's socket."""
    assert child.process.stdin is not None
    # A Renode that has ended already says why below.
    with contextlib.suppress(OSError):
        child.process.stdin.write(_END_COMMAND)
        child.process.stdin.flush()
    deadline = time.monotonic() + _START_SECONDS
    while True:
        # The end of the script first: both may arrive between two questions.
        status = child.process.poll()
        is_over = child.said(_END_MARKER) or status is not None or time.monotonic() > deadline
        if child.said(_MARKER):
            break
        if is_over:
            child.end()
            ended = "" if status is None else f": it ended at once, with exit status {status}"
            words = child.last_words()
            raise EmulatorError(
                what=f"Renode did not start the machine{ended}\n{words}".rstrip(),
                where=" ".join(map(str, child.process.args if isinstance(child.process.args, list) else [])),
                hint="the lines above are the end of Renode's own output"
                if words
                else "it said nothing: does it start by hand? " + find_renode.hint(),
            )
        time.sleep(_POLL_SECONDS)
    try:
        return socket.create_connection(("127.0.0.1", port), timeout=max(1.0, deadline - time.monotonic()))
    except OSError as error:
        child.end()
        raise EmulatorError(
            what=f"Renode runs the machine, and nobody answers for its UART at port {port}: "
            f"{error.strerror or error}\n{child.last_words()}".rstrip(),
            hint="does a firewall keep programs of this machine from each other?",
        ) from error
