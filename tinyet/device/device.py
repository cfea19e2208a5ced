# SPDX-License-Identifier: Apache-2.0
"""A device that runs the harness: an emulated board, a real one, or a process on this machine."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

from tinyet.boards import Board
from tinyet.build import process
from tinyet.device import host, protocol, qemu, renode, serial_port, simavr
from tinyet.device.links import Link, LinkClosed
from tinyet.device.protocol import Command, Frame, Info, Reason
from tinyet.errors import EmulatorError, ToolchainError
from tinyet.files.identity import BYTES, Identity, read_identity

CountUnit = Literal["instructions", "cycles", "nanoseconds"]

# A board that is still starting loses requests: INFO is asked again, each time with twice the patience, until this
# much time is over.
_HELLO_SECONDS = 0.1
_HELLO_TRIES_SECONDS = 20.0
# A request is sent so many times in all if a bad line has damaged it or its reply: no request changes a later one's
# result.
_TRIES = 3
# A board that was reset and answers again does so in this time; one whose port had gone with it, in that.
_RESET_SECONDS = 1.0
_RETURN_SECONDS = 10.0
# What a device may take to answer what is no run.
_WORK_SECONDS = 5.0
# The bytes of a reply follow each other: without more of them for so long, a device stands still, regardless of the
# patience for the first.
_LEAST_STILL_SECONDS = 1.0
_INFO_BYTES = 400
# A layer's count and, generously, those of its parts: for deadlines only.
_COUNT_BYTES = 32
_DEFAULT_TIMEOUT = 120.0
_RAISE_STACK = "generate again with a larger --stack, or raise stack_bytes in the board file"
# QEMU's words for a fault that nothing can handle.
_LOCKUP = "Lockup: can't escalate"


@dataclass(frozen=True)
class RunResult:
    """One run of the model.

    outputs:      bytes of each output; empty when the run was stopped early.
    layer_counts: of each layer, in the device's `count_unit`, without the cost of counting: the sum of its runs,
                  where it is computed by rows; 0 where it did not run. Empty for an uninterrupted run.
    layer_runs:   how often each layer ran.
    total: of the whole run, likewise: the layers and the code between them. 0 for an uninterrupted run.
    stack_bytes:  the deepest the stack went below the harness's own frames; 0 where it cannot be measured.
                  The registers that an interrupt of the counter saves, up to 108 bytes, can be in it,
                  unless the run was uninterrupted.
    stopped:      the run ended after the layer that was asked for.
    event_counts: of each part of a layer that a delegate tells apart, in the order of their numbers; they include the
    cost of telling them apart.
    """

    outputs: tuple[bytes, ...]
    layer_counts: tuple[int, ...]
    total: int
    stack_bytes: int
    stopped: bool
    event_counts: tuple[int, ...] = ()
    layer_runs: tuple[int, ...] = ()


class ModelFailed(EmulatorError):  # noqa: N818 - as the device says it
    """The model returned a negative status. `layer` is the number of the layer, or of a part of one, that did."""

    def __init__(self, status: int, layer: int | None) -> None:
        self.status = status
        self.layer = layer
        inside = "outside the layers" if layer is None else f"in layer {layer}"
        super().__init__(
            what=f"the model returned status {status} {inside}",
            hint="negative statuses are listed in tinyet_common.h; a delegate may have its own",
        )


class DeviceFault(EmulatorError):  # noqa: N818 - a fault is what the core calls it
    """The core has faulted. `location` is "file.c:line function" when the elf tells."""

    title = "device fault"

    def __init__(self, fault: protocol.Fault, location: str | None) -> None:
        self.registers = fault.registers
        self.layer = fault.layer
        self.pc = fault.pc
        self.stack_overflow = fault.stack_overflow
        self.location = location
        inside = "outside the layers" if fault.layer is None else f"in layer {fault.layer}"
        shown = " ".join(
            f"{name}={value:08x}" for name, value in fault.registers.items() if value or name in ("pc", "lr")
        )
        super().__init__(
            what=f"the device faulted {inside}: {fault.cause}\n{shown}",
            where=location or (None if fault.pc is None else f"pc {fault.pc:#010x}"),
            hint=_RAISE_STACK if fault.stack_overflow else None,
        )


class Device:
    """Talks to the harness over a link. A context manager; leaving it closes the link.

    elf:     where the source lines of faults are looked up, with the tools of the compiler whose names begin with
             `prefix`.
    ticks_per_instruction: of an emulator that gives every instruction the same time; None on real hardware.
    timeout: seconds that a run may take, and without a byte in the midst of an answer. Sending and receiving have time
             of their own, by the number of bytes.

    A device that is lost in mid-run, and answers again, was reset. It runs once more if that gives the first run's
    result.
    """

    def __init__(
        self,
        link: Link,
        *,
        elf: Path | None,
        prefix: str = "",
        ticks_per_instruction: float | None,
        bytes_per_second: float,
        timeout: float = _DEFAULT_TIMEOUT,
    ) -> None:
        self._link = link
        self._elf = elf
        self._prefix = prefix
        self._ticks_per_instruction = ticks_per_instruction
        self._bytes_per_second = bytes_per_second
        self._timeout = timeout
        self._decoder = protocol.Decoder()
        self._tag = 0
        # Whether the states are known to be those after a reset.
        self._afresh = False
        self._selected = 0
        try:
            self._info = self._greet(_HELLO_TRIES_SECONDS)
        except BaseException:
            link.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, and the emulator behind it."""
        self._link.close()

    @property
    def count_unit(self) -> CountUnit:
        """The unit of the counts of `run`. Instructions of an emulator are not cycles."""
        if self._info.counter_kind is protocol.CounterKind.NANOSECONDS:
            return "nanoseconds"
        return "cycles" if self._ticks_per_instruction is None else "instructions"

    def info(self) -> Info:
        """The harness's description of its model."""
        return self._info

    def run(
        self,
        inputs: Sequence[bytes],
        stop_after: int | None = None,
        *,
        runs: int = 1,
        uninterrupted: bool = False,
    ) -> RunResult:
        """Run the model once.

        inputs:     bytes of each input, in the model's order, and then of each state; or without the states, which
        are then those of the previous run, or of a reset.
        stop_after: index of the last layer to run; the arena can then be read. None runs all.
        runs:       of that layer, which may run several times, after which to stop.
        uninterrupted: measure the stack exactly, and count nothing: the counter's interrupt is held back.
        Raises EmulatorError: a wrong number of bytes, no answer in time, a device that is gone, or that was reset and
        has lost its states; ModelFailed, for a negative status; DeviceFault.
        """
        info = self._info
        wanted = [slot.bytes for slot in info.inputs]
        given = [len(data) for data in inputs]
        stay = info.num_states > 0 and given == wanted[: -info.num_states]
        if wanted != given and not stay:
            raise EmulatorError(
                what=f"the model takes inputs of {wanted} bytes, got {given}",
                hint="quantize the inputs with the scales in the model's header, without padding",
            )
        if stop_after is not None and not 0 <= stop_after < info.num_layers:
            raise EmulatorError(what=f"there is no layer {stop_after}: the model has {info.num_layers}")
        if runs < 1:
            raise EmulatorError(what=f"a layer cannot be stopped after {runs} of its runs")
        output_bytes = sum(slot.bytes for slot in info.outputs)
        request = protocol.pack_run(inputs, stop_after, runs, uninterrupted=uninterrupted, states_stay=stay)
        reply_bytes = output_bytes + _COUNT_BYTES * info.num_layers
        # A second run would go on from the states that a first one, whose reply was lost, has left.
        tries = 1 if stay else _TRIES
        afresh, self._afresh = self._afresh, False
        try:
            reply = self._ask(Command.RUN, request, reply_bytes, self._timeout, tries)
        except (_NoAnswerError, _GoneError) as lost:
            self._meet_again(lost, states_are_lost=stay and not afresh)
            if stay:
                self._ask(Command.RESET, b"", reply_bytes=0)
            reply = self._ask(Command.RUN, request, reply_bytes, self._timeout, tries)
        raw = protocol.unpack_run(reply, output_bytes)
        if raw.stack_bytes == protocol.STACK_OVERFLOW:
            raise EmulatorError(
                what=f"stack overflow: the model has used all of the {info.stack_bytes} bytes of the stack, or more",
                hint=_RAISE_STACK,
            )
        if raw.status < 0:
            raise ModelFailed(raw.status, raw.failed)
        counts = protocol.Counts(0, ())
        if not uninterrupted:
            counts = protocol.net_counts(info, raw, self._ticks_per_instruction)
        outputs: list[bytes] = []
        at = 0
        for slot in info.outputs if raw.status == 0 else ():
            outputs.append(raw.outputs[at : at + slot.bytes])
            at += slot.bytes
        return RunResult(
            tuple(outputs),
            counts.layers,
            counts.total,
            raw.stack_bytes,
            raw.status != 0,
            counts.events,
            raw.runs,
        )

    def reset(self) -> None:
        """Reset the model's states to those before the first run."""
        self._ask(Command.RESET, b"", reply_bytes=0)
        self._afresh = True

    def steps(
        self, inputs: Sequence[bytes], runs: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[bytes, ...]]:
        """Run the model once, slice by slice: what each took, in `count_unit`s, and the outputs, those of states
        included. inputs: without states, which are those of the previous run. runs: of layers, in each slice.
        Raises EmulatorError: the model does not run in slices, or in others; ModelFailed."""
        output_bytes = sum(slot.bytes for slot in self._info.outputs)
        reply_bytes = output_bytes + 8 * len(runs)
        self._afresh = False
        reply = self._ask(Command.STEP, b"".join(inputs), reply_bytes, self._timeout, tries=1)
        raw = protocol.unpack_steps(reply, output_bytes)
        if raw.status != 0:
            raise ModelFailed(raw.status, None)
        if len(raw.slices) != len(runs):
            raise EmulatorError(what=f"the model runs in {len(raw.slices)} slices, not in {len(runs)}")
        outputs, at = [], 0
        for slot in self._info.outputs:
            outputs.append(raw.outputs[at : at + slot.bytes])
            at += slot.bytes
        return protocol.step_counts(self._info, raw, runs, self._ticks_per_instruction), tuple(outputs)

    def identity(self) -> Identity:
        """Who the model is, as its flash says. Raises EmulatorError: it was not generated with a self-test."""
        found = read_identity(self._ask(Command.IDENTITY, b"", reply_bytes=BYTES))
        if found is None:
            raise EmulatorError(what="the device's answer is no identity of a model")
        return found

    def selftest(self) -> tuple[int, int]:
        """Check the constants, and run the self-test, which checks them, too: the statuses of both, 0 for success.
        Raises EmulatorError: the model was not generated with one."""
        reply = self._ask(Command.SELFTEST, b"", reply_bytes=8, work_seconds=self._timeout)
        self._afresh = True
        return protocol.unpack_selftest(reply)

    def select(self, number: int) -> Info:
        """Let all further requests be for one of the firmware's models, counted from 0; the description of that one."""
        self._ask(Command.SELECT, protocol.pack_select(number), reply_bytes=0)
        self._selected = number
        self._info = protocol.unpack_info(self._ask(Command.INFO, b"", _INFO_BYTES))
        return self._info

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` bytes of the arena from `offset`, as the last run has left them."""
        if n < 0 or offset < 0 or offset + n > self._info.arena_bytes:
            raise EmulatorError(
                what=f"bytes {offset} to {offset + n} are not in the arena of {self._info.arena_bytes} bytes"
            )
        reply = self._ask(Command.READ, protocol.pack_read(offset, n), reply_bytes=n)
        if len(reply) != n:
            raise EmulatorError(
                what=f"the device sent {len(reply)} bytes of its arena where {n} were asked for"
            )
        return reply

    def _meet_again(self, lost: EmulatorError, *, states_are_lost: bool) -> None:
        """Find the same firmware behind the link again, or raise an error: `lost`, without an answer."""
        deadline = time.monotonic() + _RETURN_SECONDS
        is_gone = isinstance(lost, _GoneError)
        found = None
        while found is None:
            if is_gone and not self._link.again(deadline):
                raise lost
            self._decoder = protocol.Decoder()
            try:
                found = self._greet(_HELLO_TRIES_SECONDS if is_gone else _RESET_SECONDS)
            except _GoneError:
                # A port may come and go until the board has started.
                is_gone = True
            except (_NoAnswerError, _DamagedError):
                raise lost from None
        if self._selected:
            self._ask(Command.SELECT, protocol.pack_select(self._selected), reply_bytes=0)
            found = protocol.unpack_info(self._ask(Command.INFO, b"", _INFO_BYTES))
        if found.hash != self._info.hash:
            raise EmulatorError(
                what=f"the device was lost in mid-run, and another firmware answers now: {found.name}",
                where=f"program {found.hash[:16]}…, and {self._info.hash[:16]}… before",
                hint="does somebody else flash this board?",
            ) from lost
        if states_are_lost:
            raise EmulatorError(
                what=f"the device was reset in mid-run, and its states are lost\n{lost.what}",
                hint="run the sequence again from its start, or give the states with the inputs",
            ) from lost

    def _greet(self, seconds: float) -> Info:
        give_up = time.monotonic() + seconds
        patience = _HELLO_SECONDS
        while True:
            try:
                return protocol.unpack_info(self._ask(Command.INFO, b"", _INFO_BYTES, work_seconds=patience))
            except (_NoAnswerError, _DamagedError):
                # A board that starts in the midst of a request sees half a frame.
                if time.monotonic() > give_up:
                    raise
                patience *= 2

    def _ask(
        self,
        command: Command,
        payload: bytes,
        reply_bytes: int,
        work_seconds: float | None = None,
        tries: int = _TRIES,
    ) -> bytes:
        """Send a request, again when it or its reply arrives damaged, and return the payload of the reply.

        work_seconds: that the device may compute; `_WORK_SECONDS` for None.
        """
        seconds = _WORK_SECONDS if work_seconds is None else work_seconds
        for tries_left in reversed(range(tries)):
            try:
                return self._ask_once(command, payload, reply_bytes, seconds)
            except _DamagedError:
                if tries_left == 0:
                    raise
        raise AssertionError("unreachable")

    def _ask_once(self, command: Command, payload: bytes, reply_bytes: int, work_seconds: float) -> bytes:
        # 0 is the tag of a reply to a frame whose own tag was lost.
        self._tag = self._tag % 255 + 1
        data = protocol.encode(Frame(command, self._tag, payload))
        now = time.monotonic()
        sending = len(data) / self._bytes_per_second
        # Escaping can double the bytes.
        deadline = now + sending + 2.0 * reply_bytes / self._bytes_per_second + work_seconds
        still = now + sending + work_seconds
        heard = 0
        try:
            self._link.write(data, still)
            while True:
                piece = self._link.read(min(still, deadline))
                heard += len(piece)
                still = time.monotonic() + max(work_seconds, _LEAST_STILL_SECONDS)
                for frame in self._decoder.feed(piece):
                    # A fault answers any request; other replies with another tag are late ones.
                    if frame.command == Command.FAULT:
                        raise self._fault(frame.payload)
                    if frame.tag == self._tag:
                        return self._check(command, frame)
                if self._decoder.take_damaged(command, self._tag):
                    raise _DamagedError(
                        what=f"the device's reply to {command.name} arrived damaged",
                        hint="is the cable long, or the baud rate another?",
                    )
        except LinkClosed as closed:
            self._link.close()
            words = self._link.last_words()
            if _LOCKUP in words:
                raise EmulatorError(
                    what=f"the core locked up while it answered {command.name}: a fault inside its fault handler, "
                    f"as when the stack has overflown\n{words}",
                    hint=_RAISE_STACK
                    + (", if it is the firmware of this board" if command is Command.INFO else ""),
                ) from closed
            if str(closed):
                raise _GoneError(
                    what=f"the device was lost while it answered {command.name}: {closed}",
                    hint="look at its cable and its power, and run the same again",
                ) from closed
            raise _GoneError(
                what=f"the device ended while it answered {command.name}" + (f"\n{words}" if words else ""),
                hint="the lines above are the end of its own output" if words else None,
            ) from closed
        except TimeoutError as expired:
            waited = time.monotonic() - now
            raise _NoAnswerError(
                what=f"the device did not answer {command.name} within {waited:.1f} s"
                + (f": {heard:,} bytes came, and no whole answer" if heard else ""),
                hint="is the firmware the harness, and the port the right one?"
                if command is Command.INFO
                else "does it run that long? A longer timeout waits for it; else it stands still, or was reset",
            ) from expired
        finally:
            self._link.rest()

    def _check(self, command: Command, frame: Frame) -> bytes:
        if frame.command == command:
            return frame.payload
        if frame.command != Command.ERROR:
            raise EmulatorError(what=f"the device answered {command.name} with command {frame.command}")
        reason, detail = protocol.unpack_error(frame.payload)
        texts = {
            Reason.UNKNOWN_COMMAND: f"the harness does not know command {detail}",
            Reason.BAD_LENGTH: f"the request must have {detail} bytes",
            Reason.OUT_OF_ARENA: f"the arena has {detail} bytes only",
            Reason.NO_MODEL: f"the firmware has {detail} model(s) only",
            Reason.NO_TRACE_MEMORY: f"the free RAM holds the counts of {detail} layers only (up to 16 bytes each)",
        }
        if reason == Reason.BAD_FRAME:
            raise _DamagedError(
                what=f"the device refused {command.name}: the request arrived damaged",
                hint="is the cable long, or the baud rate another?",
            )
        known = next((text for code, text in texts.items() if code == reason), f"reason {reason}")
        raise EmulatorError(what=f"the device refused {command.name}: {known}")

    def _fault(self, payload: bytes) -> DeviceFault:
        fault = protocol.unpack_fault(payload)
        location = None
        if self._elf is not None and fault.pc is not None:
            location = locate(self._elf, fault.pc, self._prefix)
            if location is None:
                # The jump itself went wrong; the place it came from is in the link register.
                caller = locate(self._elf, (fault.registers["lr"] & ~1) - 1, self._prefix)
                location = caller and f"called from {caller}"
        return DeviceFault(fault, location)


class _NoAnswerError(EmulatorError):
    """A deadline passed without a reply."""


class _GoneError(EmulatorError):
    """The other end of the link is gone."""


class _DamagedError(EmulatorError):
    """The CRC of a request or of its reply was wrong, or it was cut short."""


def locate(elf: Path, address: int, prefix: str) -> str | None:
    """Return "file.c:line function" of a code address, or None when the elf does not tell.

    prefix: of the names of the compiler's tools, as in arm-none-eabi-addr2line.
    """
    try:
        output = process.run(
            [f"{prefix}addr2line", "-f", "-C", "-e", elf, f"{address:#x}"],
            timeout=60.0,
            what="finding the source line of a fault",
        ).stdout
    except ToolchainError:
        return None
    function, _, place = output.strip().partition("\n")
    place = re.sub(r" \(discriminator \d+\)$", "", place)
    # A table of vectors has a line too, but no function.
    return None if "??" in (function, place[:2]) or place.endswith(":?") else f"{place} {function}"


class _Emulator(Protocol):
    """A module that starts one."""

    BYTES_PER_SECOND: float

    def start(self, board: Board, elf: Path) -> Link: ...

    def ticks_per_instruction(self, board: Board) -> float | None: ...


_EMULATORS: dict[str, _Emulator] = {"qemu": qemu, "renode": renode, "simavr": simavr}


def open_device(board: Board, elf: Path, on: str = "qemu", *, timeout: float = _DEFAULT_TIMEOUT) -> Device:
    """Start the harness and say hello to it.

    on: "qemu", "renode", "simavr", "serial:PORT" (the board is already flashed; `elf` only explains faults), or "host"
        (`elf` is an executable that host.build_host has made).
    Raises EmulatorError or ToolchainError.
    """
    emulator = _EMULATORS.get(on)
    if emulator is not None:
        return Device(
            emulator.start(board, elf),
            elf=elf,
            prefix=board.toolchain.prefix,
            ticks_per_instruction=emulator.ticks_per_instruction(board),
            bytes_per_second=emulator.BYTES_PER_SECOND,
            timeout=timeout,
        )
    if on == "host":
        return Device(
            host.start(elf),
            elf=None,
            ticks_per_instruction=None,
            bytes_per_second=host.BYTES_PER_SECOND,
            timeout=timeout,
        )
    if on.startswith("serial:"):
        return Device(
            serial_port.open_port(on.removeprefix("serial:"), board.baud),
            elf=elf,
            prefix="" if board.target.toolchain is None else board.target.toolchain.prefix,
            ticks_per_instruction=None,
            # 8 data bits, a start and a stop bit
            bytes_per_second=board.baud / 10,
            timeout=timeout,
        )
    raise EmulatorError(
        what=f"there is no way to run on {on!r}", hint="one of: qemu, renode, simavr, host, serial:PORT"
    )
