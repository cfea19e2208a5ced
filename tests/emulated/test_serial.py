# SPDX-License-Identifier: Apache-2.0
"""Boards behind a serial port, played by the harness as a process behind a pseudo-terminal: those that reset when the
port is opened, that talk before they listen, and those at the end of a bad line."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tinyet.boards import load_board
from tinyet.device import device, host, protocol
from tinyet.device.device import Device, open_device
from tinyet.errors import EmulatorError

pytestmark = pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")

MODEL = Path(__file__).with_name("host_model.c")
SAMPLE = [bytes(range(16))]
EXPECTED = (bytes(range(1, 17)),)
# What a boot loader and a chip's ROM print, with bytes that look like the protocol's.
CHATTER = b"ets Jun  8 2016 00:22:57\r\nrst:0x1 (POWERON_RESET)\r\n\xc0\xdb\xc0\x02\x01garbage\xc0"


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return host.build_host([MODEL], [], tmp_path_factory.mktemp("harness"), sanitize=False)


class Board:
    """Copies bytes between a pseudo-terminal and a harness.

    boot_seconds: from the first byte that arrives (the port is open), as long as an Arduino's boot loader takes; what
    arrives before is lost, and `CHATTER` is sent. damage: changes what goes to the harness.
    """

    def __init__(
        self, harness: Path, *, boot_seconds: float = 0.0, damage: Callable[[bytes], bytes] = bytes
    ) -> None:
        self._master, self._slave = os.openpty()
        self._harness = harness
        self._boot_seconds = boot_seconds
        self._damage = damage
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def port(self) -> str:
        return os.ttyname(self._slave)

    def _run(self) -> None:
        if self._boot_seconds:
            select.select([self._master], [], [], 10)
            os.write(self._master, CHATTER)
            ready = time.monotonic() + self._boot_seconds
            while time.monotonic() < ready and not self._over.is_set():
                if select.select([self._master], [], [], 0.02)[0]:
                    # In small pieces: the harness then begins in the midst of a frame.
                    os.read(self._master, 5)
        with subprocess.Popen(
            [self._harness], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            while not self._over.is_set():
                output = child.stdout.fileno()
                ready_files = select.select([self._master, output], [], [], 0.02)[0]
                if self._master in ready_files:
                    child.stdin.write(self._damage(os.read(self._master, 4096)))
                if output in ready_files:
                    os.write(self._master, os.read(output, 4096))
            child.kill()

    def end(self) -> None:
        self._over.set()
        self._thread.join(15)
        os.close(self._master)
        os.close(self._slave)


@pytest.fixture
def boards() -> Iterator[list[Board]]:
    """Boards put in here are ended with the test."""
    made: list[Board] = []
    yield made
    for board in made:
        board.end()


def connect(board: Board, tmp_path: Path) -> Device:
    return open_device(load_board("mps2_an386"), tmp_path / "none.elf", on=f"serial:{board.port}")


@pytest.mark.parametrize("boot_seconds", [0.35, 1.5])
def test_a_board_that_resets_when_the_port_is_opened(
    harness: Path, tmp_path: Path, boards: list[Board], boot_seconds: float
) -> None:
    boards.append(Board(harness, boot_seconds=boot_seconds))
    with connect(boards[0], tmp_path) as board:
        assert board.run(SAMPLE).outputs == EXPECTED
        # Late answers to the first greetings are not taken for those of later requests.
        for _ in range(20):
            assert board.run(SAMPLE).outputs == EXPECTED
            assert board.read(0, 4) == EXPECTED[0][:4]


def test_a_damaged_request_is_sent_again(harness: Path, tmp_path: Path, boards: list[Board]) -> None:
    line = Line()
    boards.append(Board(harness, damage=line))
    with connect(boards[0], tmp_path) as board:
        line.damage_next = 2
        assert board.run(SAMPLE).outputs == EXPECTED
        assert line.damage_next == 0
        assert board.run(SAMPLE).outputs == EXPECTED


def test_a_line_that_damages_everything_is_told(harness: Path, tmp_path: Path, boards: list[Board]) -> None:
    line = Line()
    boards.append(Board(harness, damage=line))
    with connect(boards[0], tmp_path) as board:
        line.damage_next = 1000
        with pytest.raises(EmulatorError, match="refused RUN: the request arrived damaged"):
            board.run(SAMPLE)
        line.damage_next = 0
        assert board.run(SAMPLE).outputs == EXPECTED


class Line:
    """Flips a bit in the midst of the next requests; each arrives in one piece here."""

    def __init__(self) -> None:
        self.damage_next = 0

    def __call__(self, data: bytes) -> bytes:
        if self.damage_next == 0:
            return data
        self.damage_next -= 1
        at = len(data) - 6
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_a_port_without_a_harness(
    harness: Path, tmp_path: Path, boards: list[Board], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "_HELLO_TRIES_SECONDS", 0.5)
    boards.append(Board(harness, boot_seconds=5))
    with pytest.raises(EmulatorError, match="did not answer INFO") as caught:
        connect(boards[0], tmp_path)
    assert "is the firmware the harness, and the port the right one?" in str(caught.value)


class Fragile:
    """A board whose port is a link to a terminal, as udev makes them. At the next runs it is told of, in this order, it
    is "reset", which loses the request; "replugged", which takes its port away and gives it another; "unplugged"; or
    nothing happens to it."""

    def __init__(self, harness: Path, port: Path, *events: str) -> None:
        self.port = port
        self._harness = harness
        self._events = list(events)
        self._over = threading.Event()
        self._plugged = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._plugged.wait(15)

    def _run(self) -> None:
        event = "plugged in"
        while event != "unplugged" and not self._over.is_set():
            self.port.unlink(missing_ok=True)
            master, slave = os.openpty()
            self.port.symlink_to(os.ttyname(slave))
            self._plugged.set()
            event = "reset"
            while event == "reset":
                with subprocess.Popen(
                    [self._harness], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
                ) as child:
                    event = self._serve(child, master)
                    child.kill()
            self.port.unlink()
            os.close(master)
            os.close(slave)

    def _serve(self, child: subprocess.Popen[bytes], master: int) -> str:
        """What has happened to the board in the end."""
        assert child.stdin is not None
        assert child.stdout is not None
        output, decoder = child.stdout.fileno(), protocol.Decoder()
        while not self._over.is_set():
            ready = select.select([master, output], [], [], 0.02)[0]
            if output in ready:
                os.write(master, os.read(output, 4096))
            if master in ready:
                data = os.read(master, 4096)
                is_run = any(frame.command == protocol.Command.RUN for frame in decoder.feed(data))
                if is_run and self._events and (event := self._events.pop(0)):
                    return event
                child.stdin.write(data)
        return "unplugged"

    def end(self) -> None:
        self._over.set()
        self._thread.join(15)


@contextlib.contextmanager
def fragile(harness: Path, tmp_path: Path, *events: str) -> Iterator[Device]:
    board = Fragile(harness, tmp_path / "ttyACM0", *events)
    try:
        with open_device(
            load_board("mps2_an386"), tmp_path / "none.elf", on=f"serial:{board.port}", timeout=0.4
        ) as opened:
            yield opened
    finally:
        board.end()


def test_a_board_that_is_reset_or_replugged_in_mid_run_is_asked_again(harness: Path, tmp_path: Path) -> None:
    with fragile(harness, tmp_path, "reset", "", "replugged") as board:
        for _ in range(3):
            assert board.run(SAMPLE).outputs == EXPECTED


def test_a_board_that_is_unplugged_in_mid_run_is_told(
    harness: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "_RETURN_SECONDS", 0.2)
    with fragile(harness, tmp_path, "unplugged") as board:
        for _ in range(2):
            with pytest.raises(EmulatorError, match=r"answered RUN: the serial port .* is gone") as caught:
                board.run(SAMPLE)
        assert "cable" in str(caught.value.hint)
        with pytest.raises(EmulatorError, match="while it answered READ"):
            board.read(0, 4)
