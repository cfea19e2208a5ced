# SPDX-License-Identifier: Apache-2.0
"""Emulators, compilers and lines that do not do what they should: what they said comes through, at once."""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from tinyet.boards import load_board
from tinyet.build import doctor, find_renode, gcc, objects, process
from tinyet.device import device as device_module
from tinyet.device import protocol
from tinyet.device.device import Device, open_device
from tinyet.device.links import LinkClosed
from tinyet.device.protocol import Command, Frame
from tinyet.errors import EmulatorError, ToolchainError

Reply = Callable[[Frame], bytes]


def _script(place: Path, text: str) -> Path:
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)
    return place


@pytest.fixture
def elf(tmp_path: Path) -> Path:
    place = tmp_path / "firmware.elf"
    place.write_bytes(b"\x7fELF")
    return place


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo no runtime found >&2; exit 3", "ended at once, with exit status 3\nno runtime found"),
        ("exit 0", "ended at once, with exit status 0"),
    ],
)
def test_a_renode_that_ends_at_once(
    script: str, words: str, elf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody reads its input: writing to it fails or does not, as the machine is busy.
    monkeypatch.setenv("TINYET_RENODE", str(_script(tmp_path / "renode", script)))
    with pytest.raises(EmulatorError) as caught:
        open_device(load_board("mps2_an386"), elf, on="renode")
    assert words in caught.value.what
    assert caught.value.hint


@pytest.mark.parametrize("kind", ["directory", "text"])
def test_a_renode_that_is_no_program(
    kind: str, elf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "renode"
    if kind == "directory":
        place.mkdir()
    else:
        place.write_text("a text")
    monkeypatch.setenv("TINYET_RENODE", str(place))
    with pytest.raises(ToolchainError, match="not Renode's executable"):
        open_device(load_board("mps2_an386"), elf, on="renode")


def test_doctor_finds_the_renode_that_validate_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = _script(tmp_path / "renode-1.16.1", "echo Renode v1.16.1.1234")
    module = types.ModuleType("renode_run.get")

    def get_default_renode_path(*, try_to_download: bool) -> str:
        assert not try_to_download
        sys.stdout.write("Looking in $PATH...\n")
        return str(installed)

    module.get_default_renode_path = get_default_renode_path  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "renode_run", types.ModuleType("renode_run"))
    monkeypatch.setitem(sys.modules, "renode_run.get", module)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TINYET_RENODE", raising=False)
    assert find_renode.find_renode() == installed
    check = next(check for check in doctor.checks() if check.name == "renode")
    assert check.version == "1.16.1.1234"


def test_a_compiler_that_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "main.c"
    source.write_text("int main(void) { return 0; }\n")
    compiler = str(_script(tmp_path / "arm-none-eabi-gcc", "exit 0"))
    with pytest.raises(ToolchainError, match=r"there is no \w+\.o"):
        objects.compile_object([compiler], source, tmp_path / "main.o", what="compiling")
    (tmp_path / "main.o").touch()
    with pytest.raises(ToolchainError, match=r"main\.o is empty"):
        process.check_made(tmp_path / "main.o", [compiler], what="compiling")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(objects, "compile_objects", lambda *_args, **_options: [source])
    with pytest.raises(ToolchainError, match=r"there is no firmware\.elf"):
        gcc.build_firmware(load_board("mps2_an386"), [source], [], tmp_path / "b", harness=False)


def test_a_tool_that_prints_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_MOST_OUTPUT", 1_000_000)
    for talk in ("yes a line", "yes a line >&2", "yes | tr -d '\\n'"):
        tool = _script(tmp_path / "tool", talk)
        with pytest.raises(
            ToolchainError, match="talking was ended: it printed more than 1,000,000"
        ) as caught:
            process.run([tool], timeout=600, what="talking")
        assert len(caught.value.what) < 11_000


class LossyLink:
    """A line to a harness with one input and one output of four bytes, which is the input. What comes back is what
    `replies` makes of each reply in turn, then the reply itself."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self._decoder = protocol.Decoder()
        self._coming = b""
        self.runs: list[bytes] = []
        self.info = _info()

    def write(self, data: bytes, deadline: float) -> None:  # noqa: ARG002
        for request in self._decoder.feed(data):
            if request.command == Command.INFO:
                self._coming += protocol.encode(Frame(Command.INFO, request.tag, self.info))
                continue
            data = request.payload[12:] or bytes(4)  # the states that stay
            self.runs.append(data)
            words = (0, protocol.NO_LAYER, 64, 0, 0)
            payload = b"".join(word.to_bytes(4, "little") for word in words) + bytes(8) + data
            reply = Frame(Command.RUN, request.tag, payload)
            self._coming += self._replies.pop(0)(reply) if self._replies else protocol.encode(reply)

    def read(self, deadline: float) -> bytes:  # noqa: ARG002
        if not self._coming:
            raise TimeoutError
        data, self._coming = self._coming[:7], self._coming[7:]
        return data

    def rest(self) -> None:
        return

    def close(self) -> None:
        return

    def again(self, deadline: float) -> bool:  # noqa: ARG002
        return False

    def last_words(self) -> str:
        return ""


def _info(program: bytes = b"0", states: int = 0, layers: int = 0) -> bytes:
    numbers = (protocol.PROTOCOL, 2, 8, layers, 1, 1000, 4096)
    head = b"".join(number.to_bytes(4, "little") for number in numbers) + bytes(24) + bytes(4)
    slots = b"".join(number.to_bytes(4, "little") for number in (1, 0, 4, 1, 4, 4, states))
    return head + slots + b"\x01m" + program * 64


def _device(link: LossyLink) -> Device:
    return Device(link, elf=None, ticks_per_instruction=1.0, bytes_per_second=1e6)


def _flip(at: int) -> Reply:
    def damage(frame: Frame) -> bytes:
        data = bytearray(protocol.encode(frame))
        data[at] ^= 1
        return bytes(data)

    return damage


def _shorter(frame: Frame) -> bytes:
    data = protocol.encode(frame)
    return data[:12] + data[14:]


@pytest.mark.parametrize("damage", [_flip(2), _flip(1), _flip(9), _flip(20), _flip(-3), _shorter])
def test_a_damaged_reply_is_asked_for_again(damage: Reply) -> None:
    """A run depends on its inputs alone, so the second one gives what the first did."""
    link = LossyLink(damage, damage)
    with _device(link) as device:
        assert device.run([b"abcd"]).outputs == (b"abcd",)
    assert link.runs == [b"abcd"] * 3


def test_a_line_that_damages_every_reply() -> None:
    with (
        _device(LossyLink(*[_flip(20)] * 3)) as device,
        pytest.raises(EmulatorError, match="the device's reply to RUN arrived damaged"),
    ):
        device.run([b"abcd"])


def test_what_else_is_on_the_line_is_no_damaged_reply() -> None:
    link = LossyLink(lambda frame: b"[00:01] a log line\r\n" + protocol.encode(frame))
    with _device(link) as device:
        assert device.run([b"abcd"]).outputs == (b"abcd",)
    assert len(link.runs) == 1


class LockedUp(LossyLink):
    def read(self, deadline: float) -> bytes:
        if self.runs:
            raise LinkClosed
        return super().read(deadline)

    def last_words(self) -> str:
        return "qemu: fatal: Lockup: can't escalate 3 to HardFault (current priority -1)"


def test_a_lockup_names_the_stack() -> None:
    with _device(LockedUp()) as device, pytest.raises(EmulatorError, match="the core locked up") as caught:
        device.run([b"abcd"])
    assert caught.value.hint == "raise stack_bytes in the board file"


class Resetting(LossyLink):
    """A board that loses the next requests for a run, with what it was; `comes_back`: after its port has gone, too."""

    def __init__(
        self,
        loses: int,
        *,
        gone: bool = False,
        comes_back: bool = True,
        then: bytes | None = None,
        states: int = 0,
    ) -> None:
        super().__init__()
        self.info = _info(states=states)
        self.loses = loses
        self._then = self.info if then is None else then
        self._goes, self._comes_back = gone, comes_back
        self._is_gone = False
        self.asked: list[Command] = []

    def write(self, data: bytes, deadline: float) -> None:
        for request in self._decoder.feed(data):
            self.asked.append(Command(request.command))
            if request.command == Command.RUN and self.loses:
                self.loses -= 1
                self.info, self._is_gone = self._then, self._goes
            elif request.command == Command.RESET:
                self._coming += protocol.encode(Frame(Command.RESET, request.tag, b""))
            else:
                super().write(protocol.encode(request), deadline)

    def read(self, deadline: float) -> bytes:
        if self._is_gone:
            raise LinkClosed("the serial port COM3 is gone")
        return super().read(deadline)

    def again(self, deadline: float) -> bool:  # noqa: ARG002
        self._is_gone = not self._comes_back
        return self._comes_back


@pytest.mark.parametrize("gone", [False, True])
def test_a_board_that_was_reset_in_mid_run_is_asked_again(gone: bool) -> None:
    link = Resetting(1, gone=gone)
    with _device(link) as device:
        assert device.run([b"abcd"]).outputs == (b"abcd",)
    assert link.asked == [Command.INFO, Command.RUN, Command.INFO, Command.RUN]


def test_a_board_that_is_reset_in_every_run_is_told() -> None:
    link = Resetting(2)
    with _device(link) as device, pytest.raises(EmulatorError, match="did not answer RUN") as caught:
        device.run([b"abcd"])
    assert "was reset" in str(caught.value.hint)
    assert link.asked.count(Command.RUN) == 2


def test_a_board_that_was_unplugged_in_mid_run_is_told() -> None:
    link = Resetting(1, gone=True, comes_back=False)
    with (
        _device(link) as device,
        pytest.raises(EmulatorError, match=r"lost while it answered RUN: .* COM3 is gone"),
    ):
        device.run([b"abcd"])


def test_another_firmware_after_a_reset_is_told() -> None:
    with (
        _device(Resetting(1, then=_info(b"1"))) as device,
        pytest.raises(EmulatorError, match="another firmware answers"),
    ):
        device.run([b"abcd"])


def test_states_that_a_reset_has_lost_are_told_and_those_that_are_known_are_not_missed() -> None:
    """A run that goes on from the device's own states can be had again only where these are what a reset makes."""
    link = Resetting(1, states=1)
    with _device(link) as device:
        device.reset()
        assert device.run([]).outputs == (bytes(4),)
        assert link.asked[2:] == [Command.RUN, Command.INFO, Command.RESET, Command.RUN]
        link.loses = 1
        with pytest.raises(EmulatorError, match="its states are lost") as caught:
            device.run([])
        assert "from its start" in str(caught.value.hint)
        link.loses = 1
        assert device.run([b"abcd"]).outputs == (b"abcd",), "the host gives the states"


class Slow(LossyLink):
    """A slow line, and what is heard on it: nothing, or the beginning of a reply. Time stands."""

    def __init__(self, heard: bytes) -> None:
        super().__init__()
        self.info = _info(layers=100_000)
        self._heard = heard
        self.patience: list[float] = []

    def read(self, deadline: float) -> bytes:
        if self.runs:
            self.patience.append(deadline - time.monotonic())
            data, self._heard = self._heard[:1], self._heard[1:]
            if not data:
                raise TimeoutError
            return data
        return super().read(deadline)


@pytest.mark.parametrize(
    ("heard", "words"),
    [(b"", r"did not answer RUN within \d+\.\d s\n"), (b"\xc0\x02\x01", "3 bytes came, and no whole answer")],
)
def test_a_device_that_stands_still_is_told_after_the_seconds_that_were_stated(
    heard: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the whole of its answer may take: hours here."""
    monkeypatch.setattr(device_module, "_RESET_SECONDS", 0.0)
    link = Slow(heard)
    with (
        Device(link, elf=None, ticks_per_instruction=1.0, bytes_per_second=200.0, timeout=7.0) as device,
        pytest.raises(EmulatorError, match=words),
    ):
        device.run([b"abcd"])
    assert len(link.patience) > len(heard)
    assert all(seconds < 8 for seconds in link.patience[: len(heard) + 1])
