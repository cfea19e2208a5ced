# SPDX-License-Identifier: Apache-2.0
"""The harness's protocol: frames, and the replies that travel in them. Pure; no stream is touched here.

firmware/include/tinyet_harness.h describes the form of a frame and of each reply; firmware/harness/tinyet_harness.c is
the other side.
"""

from __future__ import annotations

import enum
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyet.errors import EmulatorError

PROTOCOL = 5
NO_LAYER = 0xFFFFFFFF
# For the bytes of stack: none is left.
STACK_OVERFLOW = 0xFFFFFFFF

_END = b"\xc0"
_ESCAPE = b"\xdb"
_ESCAPED_END = b"\xdb\xdc"
_ESCAPED_ESCAPE = b"\xdb\xdd"
_HEADER = struct.Struct("<BBI")
_CRC = struct.Struct("<I")
_TICKS_MASK = (1 << 48) - 1
_EMPTY_LAYERS = 8
# No frame is longer on the line, and no model has more of either: anything larger is noise.
_MOST_LINE_BYTES = 1 << 26
_UNINTERRUPTED, _STATES_STAY = 1, 2  # in a RUN request
_BESIDE_ARENA = 0xFFFFFFFF  # TINYET_BESIDE_ARENA: an input that the model takes by rows
_MOST_LAYERS = 1 << 20


class Command(enum.IntEnum):
    """First byte of a frame."""

    INFO = 1
    RUN = 2
    READ = 3
    RESET = 4
    IDENTITY = 5
    SELFTEST = 6
    STEP = 7
    SELECT = 8
    ERROR = 0x7E
    FAULT = 0x7F


class Reason(enum.IntEnum):
    """Why the board refuses a request; first word of an ERROR frame."""

    BAD_FRAME = 1
    UNKNOWN_COMMAND = 2
    BAD_LENGTH = 3
    OUT_OF_ARENA = 4
    NO_TRACE_MEMORY = 5
    NO_MODEL = 6


@dataclass(frozen=True)
class Frame:
    """One request or reply. `command` is a number, because a frame may hold one that this side does not know."""

    command: int
    tag: int
    payload: bytes


def encode(frame: Frame) -> bytes:
    """The frame's bytes on the line."""
    body = _HEADER.pack(frame.command, frame.tag, len(frame.payload)) + frame.payload
    body += _CRC.pack(zlib.crc32(body))
    return _END + body.replace(_ESCAPE, _ESCAPED_ESCAPE).replace(_END, _ESCAPED_END) + _END


def _decode_body(line: bytes) -> Frame | None:
    """The frame between two END bytes; None when it is damaged."""
    parts = line.split(_ESCAPE)
    body = bytearray(parts[0])
    for part in parts[1:]:
        if part[:1] == _ESCAPED_END[1:]:
            body += _END
        elif part[:1] == _ESCAPED_ESCAPE[1:]:
            body += _ESCAPE
        else:
            return None
        body += part[1:]
    if len(body) < _HEADER.size + _CRC.size:
        return None
    command, tag, length = _HEADER.unpack_from(body)
    if len(body) != _HEADER.size + length + _CRC.size:
        return None
    if _CRC.unpack_from(body, len(body) - _CRC.size)[0] != zlib.crc32(body[: -_CRC.size]):
        return None
    return Frame(command, tag, bytes(body[_HEADER.size : -_CRC.size]))


def _has_its_length(body: bytes) -> bool:
    """Whether a body is as long as its header says."""
    size = _HEADER.size + _CRC.size
    return len(body) >= size and len(body) == size + int(_HEADER.unpack_from(body)[2])


class Decoder:
    """Takes the stream in pieces of any size and gives the frames in it; bytes between frames, and damaged frames,
    are dropped."""

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._damaged: list[bytes] = []

    def take_damaged(self, command: int, tag: int) -> bool:
        """Whether a damaged reply to this request has come since the last call: one whose first bytes, or whose length,
        are those of a reply. Anything else, such as another program's output on the line, is none."""
        damaged, self._damaged = self._damaged, []
        heads = {bytes((kind, tag)) for kind in (command, Command.ERROR)}
        return any(body[:2] in heads or _has_its_length(body) for body in damaged)

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes, in order."""
        *lines, rest = data.split(_END)
        frames: list[Frame] = []
        for line in lines:
            self._keep(line)
            whole = b"".join(self._pending)
            is_noise = self._pending_bytes > _MOST_LINE_BYTES
            self._pending, self._pending_bytes = [], 0
            frame = _decode_body(whole) if whole and not is_noise else None
            if frame is not None:
                frames.append(frame)
            elif whole:
                self._damaged.append(whole.replace(_ESCAPED_END, _END).replace(_ESCAPED_ESCAPE, _ESCAPE))
        if rest:
            self._keep(rest)
        return frames

    def _keep(self, piece: bytes) -> None:
        """Keep a piece of a line; of one that is too long to be a frame, only how long it is."""
        self._pending_bytes += len(piece)
        if self._pending_bytes > _MOST_LINE_BYTES:
            self._pending.clear()
        else:
            self._pending.append(piece)


class _Reader:
    """Takes numbers off a payload; a payload that is too short or too long is an error."""

    def __init__(self, payload: bytes, what: str) -> None:
        self._payload = payload
        self._at = 0
        self._what = what

    def take(self, n: int) -> bytes:
        if self._at + n > len(self._payload):
            raise EmulatorError(
                what=f"the {self._what} is {len(self._payload)} bytes long, too short for what it announces",
                hint="build the harness again with this version of tinyet",
            )
        self._at += n
        return self._payload[self._at - n : self._at]

    def number(self, n: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(n), "little", signed=signed)

    def numbers(self, n: int, count: int) -> tuple[int, ...]:
        return tuple(self.number(n) for _ in range(count))

    def done(self) -> None:
        if self._at != len(self._payload):
            raise EmulatorError(
                what=f"the {self._what} is {len(self._payload)} bytes long, expected {self._at}",
                hint="build the harness again with this version of tinyet",
            )


@dataclass(frozen=True)
class RawCount:
    """A reading of the board's counter: ticks, and how often the counter's interrupt ran meanwhile."""

    ticks: int
    interrupts: int

    @staticmethod
    def unpack(word: int) -> RawCount:
        return RawCount(word & _TICKS_MASK, word >> 48)


@dataclass(frozen=True)
class Slot:
    """The place of an input or output in the arena, in bytes."""

    offset: int
    bytes: int


class CounterKind(enum.IntEnum):
    """The unit of the board's counter."""

    CORE_CLOCK = 1
    NANOSECONDS = 2


@dataclass(frozen=True)
class Info:
    """The harness's description of the model and of itself.

    inputs, outputs: those of states are the last.
    counter_hz: of real hardware; an emulator's figure is in the board's description.
    empty_run, empty_layers_run, empty_layer: counts of a run with no layer, of one with 8 empty layers,
    and of one empty layer: the cost of counting.
    """

    name: str
    hash: str
    abi: int
    arena_bytes: int
    num_layers: int
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    num_states: int
    stack_bytes: int
    counter_kind: CounterKind
    counter_hz: int
    counter_irq_instructions: int
    empty_run: RawCount
    empty_layers_run: RawCount
    empty_layer: RawCount


@dataclass(frozen=True)
class RawRun:
    """A RUN reply with its counts as they were read, each layer's of all of its runs. failed: number of the layer or
    event that was running when the model returned early. runs: how often each layer ran."""

    status: int
    failed: int | None
    stack_bytes: int
    count: RawCount
    layers: tuple[RawCount, ...]
    events: tuple[RawCount, ...]
    runs: tuple[int, ...]
    outputs: bytes


def unpack_selftest(payload: bytes) -> tuple[int, int]:
    """The statuses of the check of the constants and of the self-test."""
    reader = _Reader(payload, "SELFTEST reply")
    constants, selftest = (reader.number(4, signed=True) for _ in range(2))
    reader.done()
    return constants, selftest


@dataclass(frozen=True)
class RawSteps:
    """A STEP reply: the reading of each slice, the last slice's status, and the outputs."""

    slices: tuple[RawCount, ...]
    status: int
    outputs: bytes


def unpack_steps(payload: bytes, output_bytes: int) -> RawSteps:
    """Raises EmulatorError for a payload that is none."""
    reader = _Reader(payload, "STEP reply")
    count = reader.number(4)
    if count > _MOST_LAYERS:
        raise EmulatorError(what=f"the STEP reply announces {count} slices")
    slices = tuple(RawCount.unpack(word) for word in reader.numbers(8, count))
    found = RawSteps(slices, reader.number(4, signed=True), reader.take(output_bytes))
    reader.done()
    return found


def unpack_info(payload: bytes) -> Info:
    """Raises EmulatorError: another version of the protocol, or a payload that is none."""
    reader = _Reader(payload, "INFO reply")
    protocol = reader.number(4)
    if protocol != PROTOCOL:
        raise EmulatorError(
            what=f"the board speaks version {protocol} of the harness protocol, not {PROTOCOL}",
            hint="build the harness again with this version of tinyet",
        )
    abi, arena_bytes, num_layers, kind, hz, stack_bytes = reader.numbers(4, 6)
    empty_run, empty_layers_run, empty_layer = (RawCount.unpack(word) for word in reader.numbers(8, 3))
    irq_instructions = reader.number(4)
    inputs = _take_slots(reader)
    outputs = _take_slots(reader)
    num_states = reader.number(4)
    name = reader.take(reader.number(1)).decode("utf-8", "replace")
    digest = reader.take(64).decode("ascii", "replace")
    reader.done()
    if kind not in set(CounterKind):
        raise EmulatorError(what=f"the board names an unknown kind of counter, {kind}")
    inside = [slot for slot in inputs if slot.offset != _BESIDE_ARENA]
    outside = [slot for slot in (*inside, *outputs) if slot.offset + slot.bytes > arena_bytes]
    if outside or num_layers > _MOST_LAYERS or num_states > min(len(inputs), len(outputs)):
        raise EmulatorError(
            what=f"the board describes a model that cannot be: an arena of {arena_bytes} bytes, {num_layers} layers, "
            f"{num_states} states" + "".join(f", {slot.bytes} bytes at {slot.offset}" for slot in outside[:1])
        )
    return Info(
        name=name,
        hash=digest,
        abi=abi,
        arena_bytes=arena_bytes,
        num_layers=num_layers,
        inputs=inputs,
        outputs=outputs,
        num_states=num_states,
        stack_bytes=stack_bytes,
        counter_kind=CounterKind(kind),
        counter_hz=hz,
        counter_irq_instructions=irq_instructions,
        empty_run=empty_run,
        empty_layers_run=empty_layers_run,
        empty_layer=empty_layer,
    )


def _take_slots(reader: _Reader) -> tuple[Slot, ...]:
    count = reader.number(4)
    return tuple(Slot(*reader.numbers(4, 2)) for _ in range(count))


def pack_run(
    inputs: Sequence[bytes],
    stop_after: int | None,
    runs: int = 1,
    *,
    uninterrupted: bool = False,
    states_stay: bool = False,
) -> bytes:
    """The payload of a RUN request.

    inputs:        with those of states, unless they stay.
    stop_after:    index of the last layer to run; None runs all.
    runs:          of that layer, after which to stop.
    uninterrupted: hold the counter's interrupt back, for an exact stack measurement.
    states_stay:   go on with the states of the previous run.
    """
    last = NO_LAYER if stop_after is None else stop_after
    flags = _UNINTERRUPTED * uninterrupted | _STATES_STAY * states_stay
    return struct.pack("<III", last, runs, flags) + b"".join(inputs)


def unpack_run(payload: bytes, output_bytes: int) -> RawRun:
    """output_bytes: of all outputs together; they are there only when the status is 0."""
    reader = _Reader(payload, "RUN reply")
    status = reader.number(4, signed=True)
    failed, stack_bytes, num_layers, num_events = reader.numbers(4, 4)
    count = RawCount.unpack(reader.number(8))
    layers = tuple(RawCount.unpack(word) for word in reader.numbers(8, num_layers))
    events = tuple(RawCount.unpack(word) for word in reader.numbers(8, num_events))
    runs = reader.numbers(4, num_layers)
    outputs = reader.take(output_bytes if status == 0 else 0)
    reader.done()
    failed_in = None if failed == NO_LAYER else failed
    return RawRun(status, failed_in, stack_bytes, count, layers, events, runs, outputs)


def pack_read(offset: int, n: int) -> bytes:
    """The payload of a READ request: `n` bytes of the arena from `offset`."""
    return struct.pack("<II", offset, n)


def pack_select(number: int) -> bytes:
    """The payload of a SELECT request: the firmware's model of that number."""
    return struct.pack("<I", number)


def unpack_error(payload: bytes) -> tuple[int, int]:
    """Return (reason, detail) of an ERROR frame; the reason is one of `Reason` if this side knows it."""
    reader = _Reader(payload, "ERROR reply")
    reason, detail = reader.numbers(4, 2)
    reader.done()
    return reason, detail


# ---- faults ----

_ARM_STATUS = ("sp", "exc_return", "cfsr", "hfsr", "mmfar", "bfar")
_ARM_STACKED = ("r0", "r1", "r2", "r3", "r12", "lr", "pc", "xpsr")
# tinyet_fault_riscv.c; its pc is mepc, its lr is ra.
_RISCV = ("mcause", "pc", "mtval", "mstatus", "lr", "sp", "gp", "tp", "s0", *(f"a{i}" for i in range(8)))
_FAMILY_RISCV = 1
# tinyet_fault_xtensa.c; its pc is EPC1, its lr is a0, its sp is a1.
_XTENSA = ("exccause", "pc", "excvaddr", "ps", "lr", "sp", *(f"a{i}" for i in range(2, 16)))
_FAMILY_XTENSA = 2

# Bit of CFSR -> meaning (Armv7-M and Armv8-M Architecture Reference Manuals, "CFSR").
_CFSR_BITS = {
    0: "instruction fetch from memory that is not executable",
    1: "data access to memory that is protected",
    3: "memory protection fault on return from an exception",
    4: "stack overflow (memory protection fault while entering an exception)",
    5: "memory protection fault while saving floating-point registers",
    8: "bus fault on an instruction fetch: jump to where there is no memory",
    9: "bus fault on a data access: there is no memory at this address",
    10: "bus fault on an earlier write (imprecise: the place is a little later than the cause)",
    11: "bus fault on return from an exception",
    12: "stack overflow (bus fault while entering an exception)",
    13: "bus fault while saving floating-point registers",
    16: "undefined instruction",
    17: "jump to an address that is not Thumb code, such as a null function pointer",
    18: "invalid return from an exception",
    19: "coprocessor or floating-point instruction that the core has not, or that is off",
    20: "stack overflow (the stack limit was passed)",
    24: "unaligned access",
    25: "division by zero",
}
_CFSR_MMFAR_VALID = 1 << 7
_CFSR_BFAR_VALID = 1 << 15

# mcause -> meaning, and whether mtval is the address (The RISC-V Instruction Set Manual, volume II, "mcause").
_MCAUSES = {
    0: ("jump to an address that is not aligned", True),
    1: ("access fault on an instruction fetch: jump to where there is no code", True),
    2: ("undefined instruction", False),
    3: ("breakpoint", False),
    4: ("unaligned access (load)", True),
    5: ("access fault on a load: there is no memory at this address", True),
    6: ("unaligned access (store or atomic)", True),
    7: ("access fault on a store: there is no memory at this address, or it is read-only", True),
    11: ("environment call", False),
}
_MCAUSE_INTERRUPT = 1 << 31

# EXCCAUSE -> meaning, and whether EXCVADDR is the address (Xtensa Instruction Set Architecture, "Exception Causes").
_EXCCAUSES = {
    0: ("undefined instruction", False),
    2: ("access fault on an instruction fetch: jump to where there is no code", True),
    3: ("access fault on a load or store", True),
    6: ("division by zero", False),
    8: ("privileged instruction", False),
    9: ("unaligned access", True),
    12: ("access fault on an instruction fetch: jump to where there is no memory", True),
    13: ("access fault on a load or store: there is no memory at this address", True),
    14: ("access fault on an instruction fetch: jump to where there is no memory", True),
    15: ("access fault on a load or store: there is no memory at this address", True),
    20: ("jump to memory that is not executable", True),
    28: ("access fault on a load: the memory is protected", True),
    29: ("access fault on a store: the memory is protected", True),
}


@dataclass(frozen=True)
class Fault:
    """A FAULT frame.

    registers: of an Arm core r0 … r3, r12, lr, pc, xpsr as stacked by the core, absent after a stack overflow, and
        sp, cfsr, hfsr, mmfar, bfar, exc_return; registers that the core does not have are 0. Of a RISC-V core mcause,
        mtval, mstatus, pc (mepc), lr (ra), sp, gp, tp, s0, a0 … a7. Of an Xtensa core exccause, excvaddr, ps, pc
        (EPC1), lr (a0), sp (a1), a2 … a15.
    """

    layer: int | None
    stack_overflow: bool
    registers: dict[str, int]

    @property
    def pc(self) -> int | None:
        return self.registers.get("pc")

    @property
    def cause(self) -> str:
        """The fault status registers in words."""
        if "mcause" in self.registers:
            return self._riscv_cause
        if "exccause" in self.registers:
            return self._cause("exccause", "excvaddr", _EXCCAUSES, "exception")
        cfsr = self.registers["cfsr"]
        causes = [text for bit, text in _CFSR_BITS.items() if cfsr >> bit & 1]
        if self.stack_overflow and not any("stack overflow" in text for text in causes):
            causes.insert(0, "stack overflow")
        if not causes:
            # Armv6-M has no status registers.
            return "hard fault: an undefined instruction, an unaligned access or an address without memory"
        if cfsr & _CFSR_BFAR_VALID:
            causes.append(f"address {self.registers['bfar']:#010x}")
        if cfsr & _CFSR_MMFAR_VALID:
            causes.append(f"address {self.registers['mmfar']:#010x}")
        return ", ".join(causes)

    @property
    def _riscv_cause(self) -> str:
        mcause = self.registers["mcause"]
        if mcause & _MCAUSE_INTERRUPT:
            return f"interrupt {mcause & ~_MCAUSE_INTERRUPT}, which nothing handles"
        return self._cause("mcause", "mtval", _MCAUSES, "trap")

    def _cause(self, cause: str, address: str, meanings: Mapping[int, tuple[str, bool]], kind: str) -> str:
        """The meaning of the number in the register `cause`, with the address where there is one."""
        number = self.registers[cause]
        text, has_address = meanings.get(number, (f"{kind} with cause {number}", False))
        found = f"{text}, address {self.registers[address]:#010x}" if has_address else text
        return f"stack overflow ({found})" if self.stack_overflow else found


def unpack_fault(payload: bytes) -> Fault:
    """The state's low byte says whether the stack has overflown, the next one whose registers follow."""
    reader = _Reader(payload, "FAULT frame")
    layer, state = reader.numbers(4, 2)
    family, stack_state = state >> 8, state & 0xFF

    def take(names: Sequence[str]) -> dict[str, int]:
        return dict(zip(names, reader.numbers(4, len(names)), strict=True))

    if family == _FAMILY_RISCV:
        registers = take(_RISCV)
    elif family == _FAMILY_XTENSA:
        registers = take(_XTENSA)
    else:
        registers = take(_ARM_STATUS)
        stacked = take(_ARM_STACKED)
        if not stack_state:
            registers |= stacked
    reader.done()
    return Fault(None if layer == NO_LAYER else layer, bool(stack_state), registers)


# ---- counts ----


@dataclass(frozen=True)
class Counts:
    """Counts of a run without the cost of counting, in one unit (instructions, cycles or nanoseconds).

    Only the cost of telling layers apart is subtracted: parts of layers (`events`) still hold about a hundred
    instructions each time, and so do the layers they are in.
    """

    total: int
    layers: tuple[int, ...]
    events: tuple[int, ...] = ()


def _units(info: Info, raw: RawCount, ticks_per_instruction: float | None) -> int:
    if ticks_per_instruction is None:
        return raw.ticks
    return round(raw.ticks / ticks_per_instruction) - raw.interrupts * info.counter_irq_instructions


def step_counts(
    info: Info, raw: RawSteps, runs: Sequence[int], ticks_per_instruction: float | None
) -> tuple[int, ...]:
    """What each slice took, in the units of `net_counts`, without the cost of counting. runs: of layers, in each."""
    empty_run = _units(info, info.empty_run, ticks_per_instruction)
    a_layer = (_units(info, info.empty_layers_run, ticks_per_instruction) - empty_run) / _EMPTY_LAYERS
    counted = [_units(info, count, ticks_per_instruction) - empty_run for count in raw.slices]
    return tuple(max(0, count - round(a_layer * layers)) for count, layers in zip(counted, runs, strict=True))


def net_counts(info: Info, run: RawRun, ticks_per_instruction: float | None) -> Counts:
    """Subtract the cost of counting from a run's readings.

    ticks_per_instruction: of an emulator, where each instruction takes the same virtual time. The result is then in
        instructions, without those of the counter's interrupt. None on real hardware: the result is in ticks, and the
        interrupt's few cycles in 2^24 stay in it.
    """

    def units(raw: RawCount) -> int:
        return _units(info, raw, ticks_per_instruction)

    empty_run = units(info.empty_run)
    empty_layer = units(info.empty_layer)
    a_layer = (units(info.empty_layers_run) - empty_run) / _EMPTY_LAYERS
    layers = tuple(
        max(0, units(raw) - runs * empty_layer) for raw, runs in zip(run.layers, run.runs, strict=True)
    )
    total = units(run.count) - empty_run - round(a_layer * sum(run.runs))
    return Counts(max(0, total), layers, tuple(units(raw) for raw in run.events))
