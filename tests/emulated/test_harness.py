# SPDX-License-Identifier: Apache-2.0
"""The harness on every board that QEMU has, on Renode where it is, and as a process under sanitizers."""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.calls.board import STRICT
from tests.emulated.harness_model import (
    BIG,
    ENDLESS_RECURSION,
    EVENT,
    FAULT_IN_EVENT,
    MODEL,
    NEGATIVE_STATUS,
    NO_MEMORY,
    NOT_READY,
    NULL_CALL,
    PROFILED,
    SMALL,
    STACK_BUFFER,
    STATUS_IN_EVENT,
    UNALIGNED,
    UNDEFINED,
    expected_outputs,
    line_of,
    make_inputs,
)
from tests.ops.emulated import require_emulator
from tinyet.boards import Board, all_boards, load_board
from tinyet.build import find_renode
from tinyet.build.gcc import build_firmware
from tinyet.device import device, host, protocol, qemu
from tinyet.device.child import Child
from tinyet.device.device import Device, DeviceFault, ModelFailed, open_device
from tinyet.device.links import Link, PipeLink
from tinyet.errors import EmulatorError, ToolchainError

HOST_MODEL = Path(__file__).with_name("host_model.c")
BOARDS = {board.name: board for board in all_boards() if board.qemu}
LONG = 10_000

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(
        shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed"
    ),
    pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed"),
]


@pytest.fixture(scope="module", params=sorted(BOARDS))
def board(request: pytest.FixtureRequest) -> Board:
    found = BOARDS[request.param]
    for tool in (found.toolchain.compiler, str(found.toolchain.qemu)):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    return found


@pytest.fixture(scope="module")
def elf(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_firmware(board, [MODEL], [], tmp_path_factory.mktemp(board.name), flags=STRICT)


@pytest.fixture(scope="module")
def opened(board: Board, elf: Path) -> Iterator[Device]:
    with open_device(board, elf) as opened_device:
        yield opened_device


def test_info(board: Board, opened: Device) -> None:
    info = opened.info()
    assert (info.name, info.hash) == ("harness_model", "0123456789abcdef" * 4)
    assert info.num_layers == 3
    assert info.inputs == (protocol.Slot(0, BIG), protocol.Slot(BIG, SMALL))
    assert info.outputs == (protocol.Slot(0, BIG), protocol.Slot(BIG + SMALL, 4))
    assert info.stack_bytes == board.stack_bytes
    assert info.counter_hz == board.clock_hz
    assert opened.count_unit == "instructions"


def test_outputs(opened: Device) -> None:
    for seed in range(3):
        inputs = make_inputs(10, seed=seed)
        result = opened.run(inputs)
        assert result.outputs == expected_outputs(inputs)
        assert not result.stopped


def test_outputs_over_the_uart(board: Board, elf: Path) -> None:
    """As on the board itself and in Renode, with the very file; `opened` has one with another word in it."""
    link = PipeLink(Child(qemu.command(board, str(elf)), pipes=True))
    with Device(
        link, elf=elf, ticks_per_instruction=None, bytes_per_second=qemu.BYTES_PER_SECOND
    ) as over_uart:
        inputs = make_inputs(11)
        assert over_uart.run(inputs).outputs == expected_outputs(inputs)


def test_the_word_that_says_semihosting(elf: Path, tmp_path: Path) -> None:
    before, copy = elf.read_bytes(), qemu.with_semihosting(elf)
    assert copy is not None
    assert len(copy) == len(before)
    assert [copy[i] for i in range(len(copy)) if copy[i] != before[i]] == [1]
    stripped = tmp_path / "stripped.elf"
    stripped.write_bytes(b"\x7fELF" + before[4:600])
    assert qemu.with_semihosting(stripped) is None, "a file that is cut short is started as it is"


def test_long_frames(board: Board, tmp_path: Path) -> None:
    elf = build_firmware(board, [MODEL], [], tmp_path, [("BIG", f"{LONG}u")], flags=STRICT)
    with open_device(board, elf) as device_:
        assert device_.info().inputs[0] == protocol.Slot(0, LONG)
        for seed in range(3):
            inputs = make_inputs(10, seed=seed, big=LONG)
            result = device_.run(inputs)
            inverted, total = expected_outputs(inputs)
            assert result.outputs == (inverted, total)
            assert not result.stopped
        assert device_.read(0, LONG) == inverted
        assert device_.read(LONG + SMALL, 4) == total
        assert device_.run(inputs) == result
        with pytest.raises(EmulatorError, match="not in the arena"):
            device_.read(device_.info().arena_bytes - 1, 2)


def test_equal_runs_have_equal_counts(board: Board, elf: Path, opened: Device) -> None:
    inputs = make_inputs(12_345)
    first = opened.run(inputs)
    opened.run(make_inputs(77_777, seed=5))
    time.sleep(0.01)
    assert opened.run(inputs) == first
    with open_device(board, elf) as another:
        assert another.run(inputs) == first


def test_counts_are_instructions(opened: Device) -> None:
    """The spin loop has 3 instructions a turn; what else is in its layer does not depend on the turns."""
    few = opened.run(make_inputs(1))
    for turns in (2, 3, 1000, 1_000_000, 3_000_000):
        more = opened.run(make_inputs(turns))
        extra = 3 * (turns - 1)
        # The counter's interrupts come every 195 000 to 1 700 000 instructions, and are taken off exactly.
        assert more.layer_counts[1] - few.layer_counts[1] == pytest.approx(extra, abs=2)
        assert more.total - few.total == pytest.approx(extra, abs=2)
        assert abs(more.layer_counts[0] - few.layer_counts[0]) <= 1
        assert abs(more.layer_counts[2] - few.layer_counts[2]) <= 1
    # The call of spin(), its return and the test before it.
    assert 3 <= few.layer_counts[1] - 3 <= 10
    assert 0 <= few.total - sum(few.layer_counts) <= 40


def test_counts_of_a_layer_do_not_depend_on_its_place(opened: Device) -> None:
    """Layer 0 is the same work in a run that stops behind it."""
    whole = opened.run(make_inputs(50))
    cut = opened.run(make_inputs(50), stop_after=0)
    assert abs(cut.layer_counts[0] - whole.layer_counts[0]) <= 1


def test_stop_after(opened: Device) -> None:
    inputs = make_inputs(10)
    result = opened.run(inputs, stop_after=0)
    assert result.stopped
    assert result.outputs == ()
    assert result.layer_runs == (1, 0, 0)
    assert result.layer_counts[1:] == (0, 0)
    assert opened.read(0, BIG) == expected_outputs(inputs)[0]
    assert opened.read(BIG, SMALL) == inputs[1]
    assert opened.run(inputs, stop_after=1).layer_runs == (1, 1, 0)
    assert opened.run(inputs, stop_after=2).layer_runs == (1, 1, 1)
    with pytest.raises(EmulatorError, match="no layer 3"):
        opened.run(inputs, stop_after=3)


def test_read(opened: Device) -> None:
    inputs = make_inputs(10)
    opened.run(inputs)
    inverted, total = expected_outputs(inputs)
    assert opened.read(BIG + SMALL, 4) == total
    assert opened.read(17, 100) == inverted[17:117]
    assert opened.read(opened.info().arena_bytes, 0) == b""
    with pytest.raises(EmulatorError, match="not in the arena"):
        opened.read(opened.info().arena_bytes - 1, 2)


def test_stack(opened: Device) -> None:
    result = opened.run(make_inputs(10), uninterrupted=True)
    # The buffer, the frames of run() and invert(), and nothing that is not the model's.
    assert STACK_BUFFER <= result.stack_bytes <= STACK_BUFFER + 64
    assert result.layer_counts == ()
    assert result.total == 0
    interrupted = opened.run(make_inputs(1_000_000)).stack_bytes
    assert result.stack_bytes <= interrupted <= result.stack_bytes + 108


def test_long_uninterrupted_run(opened: Device) -> None:
    """The counter passes its 24 bits while its interrupt is held back: reading it must not wait for that interrupt."""
    result = opened.run(make_inputs(3_000_000), uninterrupted=True)
    assert not result.stopped
    assert result.total == 0
    assert result.outputs == opened.run(make_inputs(3_000_000)).outputs


def test_inputs_of_a_wrong_length(opened: Device) -> None:
    with pytest.raises(EmulatorError, match=r"takes inputs of \[600, 16\] bytes, got \[600, 15\]"):
        opened.run([bytes(BIG), bytes(SMALL - 1)])


def test_the_harness_refuses_what_is_wrong(board: Board, elf: Path) -> None:
    """Frames that no Device sends: the harness answers each with an error, and goes on."""
    link = qemu.start(board, elf)
    try:
        talk = Conversation(link)
        talk.settle()
        arena = BIG + SMALL + 16
        assert talk.error(protocol.Command.RUN, bytes(100)) == (protocol.Reason.BAD_LENGTH, 12 + BIG + SMALL)
        assert talk.error(protocol.Command.READ, b"") == (protocol.Reason.BAD_LENGTH, 8)
        for offset, n in ((0, arena + 1), (arena, 1), (1, 0xFFFFFFFF), (0xFFFFFFFF, 1)):
            reply = talk.error(protocol.Command.READ, protocol.pack_read(offset, n))
            assert reply == (protocol.Reason.OUT_OF_ARENA, arena)
        assert talk.error(42, b"abc") == (protocol.Reason.UNKNOWN_COMMAND, 42)
        # Damaged, cut short, garbage without and with frame edges: each time the next frame is understood.
        good = protocol.encode(protocol.Frame(protocol.Command.INFO, 9, b""))
        other = protocol.encode(protocol.Frame(protocol.Command.INFO, 8, b""))
        damaged = bytes([*other[:-2], other[-2] ^ 1, *other[-1:]])
        rng = random.Random(3)
        for junk in (
            damaged,
            other[:5],
            b"\xdb",
            b"\xc0\xdb\xc0",
            rng.randbytes(300),
            b"\xc0" * 7,
            b"\xc0\xdb\x00",
        ):
            link.write(junk + good, time.monotonic() + 10)
            assert talk.reply(9).command == protocol.Command.INFO
    finally:
        link.close()


class Conversation:
    """Frames over a link, without the checks of a Device."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._decoder = protocol.Decoder()
        self._frames: list[protocol.Frame] = []

    def settle(self) -> None:
        """Ask until the board has started."""
        for _ in range(50):
            hello = protocol.Frame(protocol.Command.INFO, 200, b"")
            self._link.write(protocol.encode(hello), time.monotonic() + 5)
            try:
                self.reply(200, seconds=0.2)
            except TimeoutError:
                continue
            return
        raise AssertionError("no answer")

    def reply(self, tag: int, seconds: float = 20.0) -> protocol.Frame:
        deadline = time.monotonic() + seconds
        while True:
            while self._frames:
                frame = self._frames.pop(0)
                if frame.tag == tag:
                    return frame
            self._frames += self._decoder.feed(self._link.read(deadline))

    def error(self, command: int, payload: bytes) -> tuple[int, int]:
        self._link.write(protocol.encode(protocol.Frame(command, 7, payload)), time.monotonic() + 20)
        frame = self.reply(7)
        assert frame.command == protocol.Command.ERROR
        return protocol.unpack_error(frame.payload)


@pytest.mark.parametrize(
    ("fault", "name"), [(UNDEFINED, "UNDEFINED"), (NULL_CALL, "NULL_CALL"), (NO_MEMORY, "NO_MEMORY")]
)
def test_fault_names_the_line(board: Board, elf: Path, fault: int, name: str) -> None:
    with open_device(board, elf) as victim:
        with pytest.raises(DeviceFault) as caught:
            victim.run(make_inputs(10, fault))
        assert caught.value.layer == 1
        assert caught.value.location is not None
        assert f"harness_model.c:{line_of(name)} run_into" in caught.value.location
        assert "in layer 1" in str(caught.value)


def test_after_a_fault_the_device_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_board("mps2_an386")
    with open_device(board, build_firmware(board, [MODEL], [], tmp_path, flags=STRICT)) as victim:
        with pytest.raises(DeviceFault):
            victim.run(make_inputs(10, UNDEFINED))
        # A read is answered in milliseconds; the core, which stands in a loop, takes all of the time that is waited.
        monkeypatch.setattr(device, "_WORK_SECONDS", 1.0)
        with pytest.raises(EmulatorError, match="did not answer READ"):
            victim.read(0, 4)


def test_unaligned_access(board: Board, elf: Path) -> None:
    """Load multiple needs an aligned address on every Arm core, an atomic access on every RISC-V core."""
    with open_device(board, elf) as victim, pytest.raises(DeviceFault) as caught:
        victim.run(make_inputs(10, UNALIGNED))
    assert f"harness_model.c:{line_of('UNALIGNED')} run_into" in (caught.value.location or "")
    if board.cpu != "cortex-m0":
        assert "unaligned access" in str(caught.value)


def test_stack_overflow_is_a_fault(board: Board, elf: Path) -> None:
    with open_device(board, elf) as victim, pytest.raises(DeviceFault) as caught:
        victim.run(make_inputs(10, ENDLESS_RECURSION))
    assert caught.value.stack_overflow
    assert caught.value.layer == 1
    assert "stack overflow" in str(caught.value)
    assert "stack_bytes" in str(caught.value)


@pytest.mark.parametrize("name", ["mps2_an385", "mps2_an386", "mps2_an500", "netduinoplus2", "xtensa_lx60"])
def test_a_stack_that_is_too_small_is_named(name: str, tmp_path: Path) -> None:
    """Whatever lies below it: nothing, or, on the MPS2 boards, what swallows writes in silence."""
    for stack_bytes in (256, 264, 512):
        board = dataclasses.replace(load_board(name), stack_bytes=stack_bytes)
        require_emulator(name)
        small = build_firmware(board, [MODEL], [], tmp_path / str(stack_bytes), flags=STRICT)
        with pytest.raises(EmulatorError) as caught, open_device(board, small) as opened:
            opened.run(make_inputs(1_000_000))
        assert "raise stack_bytes in the board file" in str(caught.value.hint), (
            stack_bytes,
            str(caught.value),
        )


def test_negative_status(opened: Device) -> None:
    with pytest.raises(ModelFailed, match="status -7 outside the layers") as caught:
        opened.run(make_inputs(10, NEGATIVE_STATUS))
    assert (caught.value.status, caught.value.layer) == (-7, None)


def test_a_status_inside_an_event_names_it(opened: Device) -> None:
    with pytest.raises(ModelFailed) as caught:
        opened.run(make_inputs(10, STATUS_IN_EVENT))
    assert (caught.value.status, caught.value.layer) == (-8, EVENT)
    # and the next run starts afresh
    assert opened.run(make_inputs(10)).outputs == expected_outputs(make_inputs(10))


def test_a_fault_inside_an_event_names_it(board: Board, elf: Path) -> None:
    with open_device(board, elf) as opened, pytest.raises(DeviceFault) as caught:
        opened.run(make_inputs(10, FAULT_IN_EVENT))
    assert caught.value.layer == EVENT


def test_events_are_counted(opened: Device) -> None:
    few, many = (opened.run(make_inputs(turns, PROFILED)) for turns in (1, 100_001))
    assert len(many.event_counts) == 1
    assert many.event_counts[0] - few.event_counts[0] == pytest.approx(300_000, abs=2)
    assert many.layer_counts[1] - few.layer_counts[1] == pytest.approx(300_000, abs=2)
    assert len(many.layer_counts) == 3
    assert opened.run(make_inputs(5)).event_counts == (0,), "counts do not pile up from run to run"


def test_what_is_to_be_prepared_is_prepared_once(board: Board, elf: Path) -> None:
    with open_device(board, elf) as fresh:
        for _ in range(2):
            with pytest.raises(ModelFailed, match="status -1 "):
                fresh.run(make_inputs(10, NOT_READY))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
def test_an_emulator_waits_without_running(board: Board, elf: Path) -> None:
    """The harness polls its UART: an emulator that nobody asks anything would spend a whole core on that."""
    link = qemu.start(board, elf)
    states = Path(f"/proc/{link.child.process.pid}/stat")

    def stopped() -> bool:
        return states.read_text().rpartition(")")[2].split()[0] == "T"

    assert not stopped()
    with Device(link, elf=elf, ticks_per_instruction=1.0, bytes_per_second=qemu.BYTES_PER_SECOND) as waiting:
        for _ in range(2):
            for _ in range(1000):
                if stopped():
                    break
                time.sleep(0.01)
            assert stopped()
            assert waiting.run(make_inputs(10)).outputs == expected_outputs(make_inputs(10))
    assert link.child.process.returncode == -signal.SIGKILL


def test_a_run_has_a_deadline(tmp_path: Path) -> None:
    board = load_board("mps2_an386")
    elf = build_firmware(board, [MODEL], [], tmp_path, flags=STRICT)
    with (
        open_device(board, elf, timeout=0.2) as slow,
        pytest.raises(EmulatorError, match="did not answer RUN within"),
    ):
        slow.run(make_inputs(0xFFFFFFFF))


def test_a_firmware_that_is_no_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "main.c"
    source.write_text("int main(void) { for (;;) { } }\n")
    board = load_board("mps2_an386")
    silent = build_firmware(board, [source], [], tmp_path, harness=False, flags=STRICT)
    monkeypatch.setattr(device, "_HELLO_TRIES_SECONDS", 0.3)
    with pytest.raises(EmulatorError, match="did not answer INFO"):
        open_device(board, silent)


def test_qemu_that_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="the firmware cannot be read"):
        open_device(load_board("mps2_an386"), tmp_path / "missing.elf")
    broken = tmp_path / "broken.elf"
    for content, words in ((b"", "is an empty file"), (b"text", "is no ELF file")):
        broken.write_bytes(content)
        with pytest.raises(ToolchainError, match=words):
            open_device(load_board("mps2_an386"), broken)
    broken.write_bytes(b"\x7fELF")
    with pytest.raises(EmulatorError, match="the core locked up"):
        open_device(load_board("mps2_an386"), broken)


@pytest.mark.parametrize("sanitize", [True, False])
def test_host(tmp_path: Path, sanitize: bool) -> None:
    executable = host.build_host([HOST_MODEL], [], tmp_path, sanitize=sanitize, flags=("-O1", *STRICT[1:]))
    with open_device(load_board("mps2_an386"), executable, on="host") as process:
        assert process.count_unit == "nanoseconds"
        inputs = [bytes(range(16))]
        result = process.run(inputs)
        assert result.outputs == (bytes(range(1, 17)),)
        assert result.stack_bytes == 0
        assert result.layer_runs == (1,)
        assert process.run(inputs, stop_after=0).stopped
        assert process.read(0, 4) == bytes(range(1, 5))
        if sanitize:
            # An input byte of 255 makes the model write behind its arena.
            with pytest.raises(EmulatorError, match=r"host_model\.c:11"):
                process.run([b"\xff" * 16])


@pytest.mark.skipif(find_renode.find_renode() is None, reason="Renode is not installed (TINYET_RENODE, PATH)")
@pytest.mark.parametrize("name", [board.name for board in all_boards() if board.renode])
def test_renode(name: str, tmp_path: Path) -> None:
    board = load_board(name)
    firmware = build_firmware(board, [MODEL], [], tmp_path, flags=STRICT)
    with open_device(board, firmware, on="renode") as emulated:
        inputs = make_inputs(1)
        few = emulated.run(inputs)
        assert few.outputs == expected_outputs(inputs)
        assert emulated.run(inputs) == few
        many = emulated.run(make_inputs(1_000_000))
        assert many.layer_counts[1] - few.layer_counts[1] == pytest.approx(3 * 999_999, abs=2)
        with pytest.raises(DeviceFault) as caught:
            emulated.run(make_inputs(10, UNDEFINED))
        assert f"harness_model.c:{line_of('UNDEFINED')} run_into" in (caught.value.location or "")


def test_renode_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TINYET_RENODE", str(tmp_path / "renode"))
    with pytest.raises(ToolchainError, match="there is no Renode at"):
        open_device(load_board("mps2_an386"), tmp_path / "firmware.elf", on="renode")


def test_unknown_place(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match="no way to run on 'simulator'"):
        open_device(load_board("mps2_an386"), tmp_path / "firmware.elf", on="simulator")


def test_serial_port_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match="serial port cannot be opened"):
        open_device(load_board("mps2_an386"), tmp_path / "firmware.elf", on=f"serial:{tmp_path / 'ttyNONE'}")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_serial_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A harness behind a pseudo-terminal, which is a serial port to pyserial."""
    executable = host.build_host([HOST_MODEL], [], tmp_path, sanitize=False)
    master, slave = os.openpty()
    port = os.ttyname(slave)
    try:
        with (
            subprocess.Popen([executable], stdin=master, stdout=master) as harness,
            open_device(load_board("mps2_an386"), tmp_path / "none.elf", on=f"serial:{port}") as board,
        ):
            # Every byte value goes through unchanged, both ways.
            for first in range(0, 240, 16):
                result = board.run([bytes(range(first, first + 16))])
                assert result.outputs == (bytes(range(first + 1, first + 17)),)
            harness.kill()
            harness.wait()
            # Nothing tells a port that the board behind it is gone: it is waited for.
            monkeypatch.setattr(device, "_WORK_SECONDS", 0.5)
            with pytest.raises(EmulatorError, match=r"did not answer READ|ended while it answered READ"):
                board.read(0, 1)
    finally:
        os.close(master)
        os.close(slave)
