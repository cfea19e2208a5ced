# SPDX-License-Identifier: Apache-2.0
"""The harness's protocol, host side: frames through a bad line, and the payloads of replies."""

from __future__ import annotations

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyet.device import protocol
from tinyet.device.protocol import Decoder, Frame, RawCount, RawRun, encode
from tinyet.errors import EmulatorError

frames = st.builds(
    Frame,
    command=st.integers(0, 255),
    tag=st.integers(0, 255),
    payload=st.one_of(
        st.binary(max_size=300), st.lists(st.sampled_from([0xC0, 0xDB, 0xDC, 0xDD]), max_size=40).map(bytes)
    ),
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


def decode(pieces: list[bytes]) -> list[Frame]:
    decoder = Decoder()
    return [frame for piece in pieces for frame in decoder.feed(piece)]


def test_known_bytes() -> None:
    """The line format itself, so that both sides cannot change together unnoticed."""
    frame = Frame(command=3, tag=0xC0, payload=b"\xdb")
    assert encode(frame).hex() == "c0" + "03" + "dbdc" + "01000000" + "dbdd" + "bbf90d91" + "c0"
    assert decode([encode(frame)]) == [frame]


@given(st.lists(frames, max_size=5), st.lists(st.integers(0, 10_000), max_size=20))
def test_split_anywhere(sent: list[Frame], places: list[int]) -> None:
    stream = b"".join(encode(frame) for frame in sent)
    assert decode(cut(stream, places)) == sent


@given(frames, frames, st.binary(max_size=100))
def test_garbage_between_frames_costs_no_frame(first: Frame, second: Frame, garbage: bytes) -> None:
    got = decode([encode(first), garbage, encode(second)])
    # Garbage could be a frame only with a CRC-32 that fits: it is not, in any example that will be drawn.
    assert got == [first, second]


@given(frames, st.data())
def test_one_wrong_bit_is_noticed(frame: Frame, data: st.DataObject) -> None:
    line = bytearray(encode(frame))
    bit = data.draw(st.integers(0, 8 * len(line) - 1))
    line[bit // 8] ^= 1 << bit % 8
    following = Frame(1, 2, b"abc")
    # A bit of an END is an exception: what then lies between the two ENDs left is damaged just as well.
    assert decode([bytes(line), encode(following)])[-1:] == [following]
    assert frame not in decode([bytes(line)])


@given(frames, st.data())
def test_a_frame_cut_short_is_dropped(frame: Frame, data: st.DataObject) -> None:
    line = encode(frame)
    kept = data.draw(st.integers(0, len(line) - 2))
    following = Frame(1, 2, b"abc")
    assert decode([line[:kept], encode(following)]) == [following]


def test_noise_without_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that babbles for minutes fills no memory, and is understood as soon as it speaks."""
    monkeypatch.setattr(protocol, "_MOST_LINE_BYTES", 1000)
    decoder, frame = Decoder(), Frame(1, 2, b"abc")
    for _ in range(500):
        assert decoder.feed(b"x" * 100) == []
        assert sum(map(len, decoder._pending)) <= 1000
    assert decoder.feed(encode(frame)) == [frame]
    assert decoder.feed(encode(Frame(1, 2, b"y" * 991)) + encode(frame)) == [frame]


def test_ends_alone_are_no_frames() -> None:
    assert decode([b"\xc0\xc0\xc0", b"\xc0"]) == []


def info_payload(
    version: int = protocol.PROTOCOL, kind: int = 1, arena: int = 1000, layers: int = 3, states: int = 0
) -> bytes:
    return (
        struct.pack("<7I", version, 2, arena, layers, kind, 16_000_000, 2048)
        + struct.pack("<3Q", 10, 90, 5 | 2 << 48)
        + struct.pack("<I", 5)
        + struct.pack("<I4I", 2, 0, 100, 100, 20)
        + struct.pack("<I2I", 1, 120, 10)
        + struct.pack("<I", states)
        + b"\x03kws"
        + b"0" * 64
    )


def test_info() -> None:
    info = protocol.unpack_info(info_payload())
    assert (info.name, info.hash, info.abi) == ("kws", "0" * 64, 2)
    assert (info.arena_bytes, info.num_layers, info.stack_bytes) == (1000, 3, 2048)
    assert info.inputs == (protocol.Slot(0, 100), protocol.Slot(100, 20))
    assert info.outputs == (protocol.Slot(120, 10),)
    assert info.empty_layer == RawCount(5, 2)
    assert info.num_states == 0
    assert protocol.unpack_info(info_payload(states=1)).num_states == 1


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (info_payload(version=1), "version 1 of the harness protocol"),
        (info_payload(kind=9), "unknown kind of counter, 9"),
        (info_payload()[:-1], "too short"),
        (info_payload() + b"x", "expected"),
        (b"", "too short"),
        (info_payload(arena=129), "describes a model that cannot be: .* 10 bytes at 120"),
        (info_payload(layers=0xFFFF_FFFF), "describes a model that cannot be: .* 4294967295 layers"),
        (info_payload(states=2), "describes a model that cannot be: .* 2 states"),
        (info_payload().replace(struct.pack("<I", 2) + bytes(4), b"\xff" * 8), "too short"),
    ],
)
def test_info_that_is_none(payload: bytes, message: str) -> None:
    with pytest.raises(EmulatorError, match=message):
        protocol.unpack_info(payload)


def test_run_request() -> None:
    assert protocol.pack_run([b"ab", b"c"], None) == struct.pack("<III", 0xFFFFFFFF, 1, 0) + b"abc"
    assert protocol.pack_run([b"ab"], 7, uninterrupted=True) == struct.pack("<III", 7, 1, 1) + b"ab"
    assert protocol.pack_run([b"ab"], None, states_stay=True) == struct.pack("<III", 0xFFFFFFFF, 1, 2) + b"ab"
    assert protocol.pack_run([b"ab"], 7, 30) == struct.pack("<III", 7, 30, 0) + b"ab"


def test_run_reply() -> None:
    payload = (
        struct.pack("<i4I4Q2I", 0, protocol.NO_LAYER, 512, 2, 1, 1 << 48 | 500, 100, 300, 40, 1, 24)
        + b"result"
    )
    run = protocol.unpack_run(payload, 6)
    layers, events = (RawCount(100, 0), RawCount(300, 0)), (RawCount(40, 0),)
    assert run == RawRun(0, None, 512, RawCount(500, 1), layers, events, (1, 24), b"result")
    with pytest.raises(EmulatorError, match="too short"):
        protocol.unpack_run(payload, 7)
    with pytest.raises(EmulatorError, match="expected"):
        protocol.unpack_run(payload, 5)
    # No outputs with a status that is not 0.
    failed = protocol.unpack_run(struct.pack("<i4IQ", -1, 3, 0, 0, 0, 0), 6)
    assert (failed.status, failed.failed) == (-1, 3)


def test_counts_in_instructions() -> None:
    """Readings of a machine with 12.8 ticks an instruction and 5 instructions an interrupt."""
    ticks = 12.8
    info = protocol.unpack_info(info_payload())
    empty_run, a_layer, inside = 26, 51, 27

    def reading(instructions: int, interrupts: int = 0) -> RawCount:
        return RawCount(int((instructions + 5 * interrupts) * ticks), interrupts)

    info = protocol.Info(
        **{
            **vars(info),
            "empty_run": reading(empty_run),
            "empty_layers_run": reading(empty_run + 8 * a_layer),
            "empty_layer": reading(inside),
        }
    )
    run = RawRun(
        0, None, 0, reading(empty_run + 2 * a_layer + 3_000_100, 3),
        (reading(inside + 100), reading(inside + 2_999_990, 3)), (), (1, 1), b"",
    )  # fmt: skip
    counts = protocol.net_counts(info, run, ticks)
    assert counts == protocol.Counts(3_000_100, (100, 2_999_990))
    # What counting costs is in a layer as often as it ran, and nowhere where it did not.
    run = RawRun(
        1, None, 0, reading(empty_run + 41 * a_layer + 700),
        (reading(40 * inside + 500), reading(inside + 100), reading(0)), (), (40, 1, 0), b"",
    )  # fmt: skip
    assert protocol.net_counts(info, run, ticks) == protocol.Counts(700, (500, 100, 0))


def test_counts_in_cycles() -> None:
    info = protocol.unpack_info(info_payload())
    run = RawRun(
        0, None, 0, RawCount(10 + 2 * 10 + 400, 1), (RawCount(105, 0), RawCount(3, 0)), (), (1, 1), b""
    )
    # 10 for the run, (90 - 10) / 8 for each layer, 5 inside each; never below 0.
    assert protocol.net_counts(info, run, None) == protocol.Counts(400, (100, 0))


def fault_payload(layer: int, stack_state: int, cfsr: int) -> bytes:
    stacked = (1, 2, 3, 4, 5, 0x101, 0x2000, 0x01000000)
    return struct.pack(
        "<16I", layer, stack_state, 0x20000800, 0xFFFFFFF9, cfsr, 1 << 30, 0, 0xC0000000, *stacked
    )


def test_fault() -> None:
    fault = protocol.unpack_fault(fault_payload(4, 0, 1 << 9 | 1 << 15))
    assert (fault.layer, fault.pc, fault.stack_overflow) == (4, 0x2000, False)
    assert fault.registers["lr"] == 0x101
    assert "bus fault on a data access" in fault.cause
    assert "address 0xc0000000" in fault.cause


def test_fault_outside_the_layers_on_a_core_without_status() -> None:
    fault = protocol.unpack_fault(fault_payload(protocol.NO_LAYER, 0, 0))
    assert fault.layer is None
    assert fault.cause.startswith("hard fault")


def riscv_fault(mcause: int, mtval: int, *, overflow: bool = False) -> protocol.Fault:
    registers = (mcause, 0x80001000, mtval, 0x1800, 0x80000F00, 0x80400FF0, *range(11))
    words = (2, 1 << 8 | overflow, *registers)
    return protocol.unpack_fault(struct.pack(f"<{len(words)}I", *words))


def test_fault_of_a_riscv_core() -> None:
    fault = riscv_fault(5, 0x2F000000)
    assert (fault.layer, fault.pc, fault.stack_overflow) == (2, 0x80001000, False)
    assert (fault.registers["lr"], fault.registers["sp"], fault.registers["a7"]) == (
        0x80000F00,
        0x80400FF0,
        10,
    )
    assert fault.cause == "access fault on a load: there is no memory at this address, address 0x2f000000"
    # mtval of an undefined instruction is the instruction, or 0
    assert riscv_fault(2, 0xC0001073).cause == "undefined instruction"
    assert riscv_fault(23, 0).cause == "trap with cause 23"
    assert riscv_fault(1 << 31 | 7, 0).cause == "interrupt 7, which nothing handles"


def test_stack_overflow_of_a_riscv_core() -> None:
    """The registers are good even so: the handler stores them elsewhere."""
    fault = riscv_fault(7, 0x803FFFF8, overflow=True)
    assert fault.stack_overflow
    assert fault.pc == 0x80001000
    assert fault.cause.startswith("stack overflow (access fault on a store")


def test_fault_frame_of_another_length() -> None:
    with pytest.raises(EmulatorError, match="FAULT frame"):
        protocol.unpack_fault(struct.pack("<16I", 0, 1 << 8, *range(14)))


@pytest.mark.parametrize("cfsr", [0, 1 << 12, 1 << 20])
def test_fault_of_the_stack(cfsr: int) -> None:
    """The core could not store its registers: what lies there is not to be shown."""
    fault = protocol.unpack_fault(fault_payload(1, 1, cfsr))
    assert fault.pc is None
    assert "r0" not in fault.registers
    assert "stack overflow" in fault.cause
