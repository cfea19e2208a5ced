# SPDX-License-Identifier: Apache-2.0
"""The bound of the stack from a call graph that is put together here, instruction by instruction; and the decoders."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from tinyet.errors import ToolchainError
from tinyet.stack import riscv, thumb, xtensa
from tinyet.stack.bound import Bound, Frame, Stack
from tinyet.stack.operation import Operation

PROGBITS, SYMTAB, STRTAB = 1, 2, 3
ALLOC, EXECUTABLE = 2, 4
OBJECT, FUNC = 1, 2
ARM, AVR = 40, 83
PUSH_LR, POP_PC, PUSH_R4_R7_LR, POP_R4_R7_PC = 0xB500, 0xBD00, 0xB5F0, 0xBDF0
BX_LR, BX_R3, BLX_R3, NOP = 0x4770, 0x4718, 0x4798, 0xBF00


def call(name: str) -> tuple[str, str]:
    return ("bl", name)


Code = list[int | tuple[str, str]]


def write(
    path: Path, functions: Mapping[str, Code], words: Mapping[str, list[str]], machine: int = ARM
) -> Path:
    """An ELF file of Thumb functions, halfword by halfword, and of objects that hold pointers to functions. The first
    function is the entry point."""
    places, at = {}, 0x100
    for name, code in functions.items():
        places[name] = at
        at += 2 * sum(1 if isinstance(one, int) else 2 for one in code)
    text = b""
    for code in functions.values():
        for one in code:
            if isinstance(one, int):
                text += struct.pack("<H", one)
                continue
            target = places.get(one[1], 0x4000)
            distance = target - (0x100 + len(text) + 4)
            bits = distance >> 1 & 0xFFFFFF
            sign, i1, i2 = bits >> 23, bits >> 22 & 1, bits >> 21 & 1
            first = 0xF000 | sign << 10 | bits >> 11 & 0x3FF
            second = 0xD000 | (1 ^ i1 ^ sign) << 13 | (1 ^ i2 ^ sign) << 11 | bits & 0x7FF
            text += struct.pack("<2H", first, second)
    data, objects, start = b"", [], 0x2000
    for name, held in words.items():
        objects.append((name, start + len(data), 4 * len(held)))
        data += b"".join(struct.pack("<I", places[one] | 1) for one in held)
    strings = b"\0"

    def string(text: str) -> int:
        nonlocal strings
        strings += text.encode() + b"\0"
        return len(strings) - len(text) - 1

    ends = [*list(places.values())[1:], at]
    symbols = bytes(16) + b"".join(
        struct.pack("<IIIBBH", string(name), place | 1, end - place, 1 << 4 | FUNC, 0, 1)
        for (name, place), end in zip(places.items(), ends, strict=True)
    )
    for name, place, size in objects:
        symbols += struct.pack("<IIIBBH", string(name), place, size, 1 << 4 | OBJECT, 0, 2)
    sections = [
        (".text", PROGBITS, ALLOC | EXECUTABLE, 0x100, text, 0),
        (".rodata", PROGBITS, ALLOC, start, data, 0),
        (".symtab", SYMTAB, 0, 0, symbols, 4),
        (".strtab", STRTAB, 0, 0, b"", 0),
    ]
    names = [string(name) for name, *_ in sections]
    contents, headers = b"", [bytes(40)]
    sections[-1] = (".strtab", STRTAB, 0, 0, strings, 0)
    for name_at, (_, kind, flags, address, body, link) in zip(names, sections, strict=True):
        row = (name_at, kind, flags, address, 52 + len(contents), len(body), link, 0, 1)
        headers.append(struct.pack("<10I", *row, 16 if kind == SYMTAB else 0))
        contents += body
    ident = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    entry, table = next(iter(places.values())) | 1, 52 + len(contents)
    header = struct.pack(
        "<16sHHIIIIIHHHHHH", ident, 2, machine, 1, entry, 0, table, 0, 52, 0, 0, 40, len(headers), 4
    )
    path.write_bytes(header + contents + b"".join(headers))
    return path


FUNCTIONS: dict[str, Code] = {
    "leaf": [0xB082, 0xB002, BX_LR],  # sub sp, #8; add sp, #8
    "middle": [PUSH_R4_R7_LR, call("leaf"), call("other"), POP_R4_R7_PC],
    "other": [PUSH_LR, POP_PC],
    "tail": [PUSH_LR, NOP, 0xF85D, 0xEB04, 0xE7F2, NOP],  # ldr lr, [sp], #4; b.n middle
    "top": [PUSH_LR, call("middle"), call("leaf"), POP_PC],
    "itself": [PUSH_LR, call("itself"), POP_PC],
    "ping": [PUSH_LR, call("pong"), POP_PC],
    "pong": [PUSH_LR, call("ping"), POP_PC],
    "all_wrong": [PUSH_LR, call("ping"), BLX_R3, call("nobody"), POP_PC],
    "pointer": [PUSH_LR, BLX_R3, POP_PC],
    "tail_pointer": [NOP, BX_R3],
    "variable": [
        0xB580,
        0xAF00,
        0x466B,
        0x1A1B,
        0x469D,
        call("leaf"),
        0x46BD,
        0xBD80,
    ],  # mov sp, r3 … mov sp, r7
    "growing": [PUSH_LR, 0xE7FD, NOP],  # b.n back to it
    "pushed": [0xB404, 0xE000, 0xBF00, 0xBC04, BX_LR],  # push {r2}; b over a nop; pop {r2}
    "switch": [PUSH_LR, 0x4687, call("middle"), POP_PC],  # mov pc, r0: what is behind has another way to it
    "measure": [PUSH_R4_R7_LR, BLX_R3, POP_R4_R7_PC],
    "run_nothing": [BX_LR],
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    words = {"tinyet_harness_model": ["middle"], "vectors": ["top"]}
    return Stack(write(tmp_path_factory.mktemp("stack") / "firmware.elf", FUNCTIONS, words))


@pytest.mark.parametrize(
    ("name", "bytes_"),
    [("leaf", 8), ("middle", 28), ("top", 32), ("tail", 28), ("pushed", 4), ("switch", 32), ("measure", 48)],
)
def test_bounds(stack: Stack, name: str, bytes_: int) -> None:
    bound = stack.function(name)
    assert (bound.bytes, bound.unknown, bound.said) == (bytes_, (), "")
    assert sum(frame.bytes for frame in bound.chain) == bytes_


def test_what_fills_up_a_function_leads_nowhere(tmp_path: Path) -> None:
    """Without optimization GCC puts a NOP behind a function of assembly alone: no computed jump goes there."""
    functions: Mapping[str, Code] = {
        "filled": [PUSH_LR, 0xF8DD, 0xF000, POP_PC, NOP, NOP],  # ldr.w pc, [sp]
        "behind": [PUSH_LR, call("filled"), POP_PC],
    }
    bound = Stack(write(tmp_path / "firmware.elf", functions, {})).function("behind")
    assert (bound.bytes, bound.unknown) == (8, ())


def test_names_that_a_compiler_has_lengthened_and_last_calls(tmp_path: Path) -> None:
    functions: dict[str, Code] = {
        "copied.constprop.0": [0xB082, 0xB002, BX_LR],
        "parted": [BX_LR],
        "parted.isra.0": [0xB082, 0xB002, BX_LR],
        "twice.isra.0": [BX_LR],
        "twice.part.0": [BX_LR],
        "never_back": [PUSH_LR, call("copied.constprop.0")],
        "behind": [PUSH_R4_R7_LR, POP_R4_R7_PC],
    }
    stack = Stack(write(tmp_path / "firmware.elf", functions, {}))
    assert [stack.function(name).bytes for name in ("copied", "parted", "never_back")] == [8, 0, 12]
    assert stack.function("twice").unknown == ("twice there is more than once",)
    assert stack.function("copied") == Bound(8, (Frame("copied", 8),))  # asked again


def test_the_chain_names_the_deepest_calls(stack: Stack) -> None:
    assert stack.function("top").chain == (Frame("top", 4), Frame("middle", 20), Frame("leaf", 8))
    assert stack.firmware == Bound(8, (Frame("leaf", 8),))


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("itself", ["itself calls itself"]),
        ("ping", ["ping calls itself (ping → pong → ping)"]),
        ("pointer", ["pointer calls a function by a pointer"]),
        ("tail_pointer", ["tail_pointer calls a function by a pointer"]),
        ("variable", ["variable sets the stack pointer"]),
        ("growing", ["growing takes more of the stack at each turn of a loop"]),
        (
            "all_wrong",
            [
                "all_wrong calls 0x00004000, where no function begins",
                "all_wrong calls a function by a pointer",
                "ping calls itself (ping → pong → ping)",
            ],
        ),
        ("nobody", ["nobody is not in the firmware by itself"]),
    ],
)
def test_what_has_no_bound_says_every_reason(stack: Stack, name: str, reasons: list[str]) -> None:
    bound = stack.function(name)
    assert bound.bytes is None
    assert len(bound.unknown) == len(reasons)
    for found, reason in zip(bound.unknown, reasons, strict=True):
        assert found.startswith(reason)
    assert bound.said.startswith(f"no bound: {reasons[0]}")


def test_a_line_has_room_for_some_reasons_only() -> None:
    assert Bound(None, (), ("a", "b", "c", "d", "e")).said == "no bound: a; b; c; and 2 more"


def test_other_instruction_sets_have_no_bound(tmp_path: Path) -> None:
    stack = Stack(write(tmp_path / "firmware.elf", FUNCTIONS, {}, machine=AVR))
    assert stack.function("leaf").unknown == ("tinyet reads no code of AVR",)


def test_what_is_no_firmware_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "firmware.elf"
    path.write_bytes(b"\x7fELF nothing")
    with pytest.raises(ToolchainError, match="the firmware's code cannot be read"):
        Stack(path)


def _thumb(*halves: int) -> Operation:
    return thumb.decode(0x1000, struct.pack(f"<{len(halves)}H", *halves), lambda at: at)


@pytest.mark.parametrize(
    ("halves", "wanted"),
    [
        ((0xB510,), Operation(2, down=8)),  # push {r4, lr}
        ((0xBD10,), Operation(2, "leave", -8, pops=0x10)),  # pop {r4, pc}
        ((0xB0FF,), Operation(2, down=508)),
        ((0xF85D, 0xFB04), Operation(4, "leave", -4)),  # ldr.w pc, [sp], #4
        ((0xF84D, 0x8D04), Operation(4, down=4)),  # str.w r8, [sp, #-4]!
        ((0xE92D, 0x4FF0), Operation(4, down=36)),  # stmdb sp!, {r4-r11, lr}
        ((0xE8BD, 0x8FF0), Operation(4, "leave", -36, pops=0x8FF0)),
        ((0xF5AD, 0x7D01), Operation(4, down=516)),  # sub.w sp, sp, #516
        ((0xF50D, 0x7D01), Operation(4, down=-516)),
        ((0xF2AD, 0x4D14), Operation(4, down=1044)),  # subw sp, sp, #1044
        ((0xED2D, 0x8B10), Operation(4, down=64)),  # vpush {d8-d15}
        ((0xECBD, 0x8B10), Operation(4, down=-64)),
        ((0xE96D, 0x4502), Operation(4, down=8)),  # strd r4, r5, [sp, #-8]!
        ((0x4695,), Operation(2, down=None)),  # mov sp, r2
        ((0x44A5,), Operation(2, down=None)),  # add sp, r4
        ((0xF107, 0x0D08), Operation(4, down=None)),  # add.w sp, r7, #8
        ((0xE8DF, 0xF000), Operation(4, "inside")),  # tbb [pc, r0]
        ((0xD806,), Operation(2, "branch", target=0x1010)),
        ((0xE7D1,), Operation(2, "jump", target=0x0FA6)),
        ((0xB1D5,), Operation(2, "branch", target=0x1038)),  # cbz
        ((0xF7FF, 0xF8B0), Operation(4, "call", target=0x164)),
        ((0xBF58,), Operation(2, makes_conditional=1)),  # it pl
        ((0x4811,), Operation(2, loads=(0, 0x1048))),  # ldr r0, [pc, #68]
        ((0xDE00,), Operation(2, "leave")),  # udf
    ],
)
def test_thumb(halves: tuple[int, ...], wanted: Operation) -> None:
    assert _thumb(*halves) == wanted


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (0x1141, Operation(2, down=16)),  # addi sp, sp, -16
        (0x7139, Operation(2, down=64)),  # addi16sp -64
        (0x6125, Operation(2, down=-96)),
        (0xDF010113, Operation(4, down=528)),
        (0x8082, Operation(2, "leave", register=1)),  # ret
        (0x8782, Operation(2, "jump_register", register=15)),  # jr a5
        (0x9782, Operation(2, "call_register", register=15)),
        (0x008000EF, Operation(4, "call", target=0x1008)),
        (0x41C28293, Operation(4)),
        (0x00001297, Operation(4, loads=(5, 0x2000))),  # auipc t0, 1
        (0x811E, Operation(2, down=None)),  # mv sp, t2
        (0x30200073, Operation(4, "leave")),  # mret
    ],
)
def test_riscv(code: int, wanted: Operation) -> None:
    assert riscv.decode(0x1000, code.to_bytes(4, "little"), lambda at: at) == wanted


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("12c1f0", Operation(3, down=16)),  # addi a1, a1, -16
        ("12d1ff", Operation(3, down=256)),  # addmi a1, a1, -256
        ("9011c0", Operation(3, down=None)),  # sub a1, a1, a9
        ("800000", Operation(3, "leave")),
        ("0df0", Operation(2, "leave")),  # ret.n
        ("c00200", Operation(3, "call_register", register=2)),
        ("a00000", Operation(3, "jump_register", register=0)),
        ("364100", Operation(3, windowed=True)),  # entry a1, 32
    ],
)
def test_xtensa(code: str, wanted: Operation) -> None:
    assert xtensa.decode(0x1000, bytes.fromhex(code) + b"\0", lambda at: at) == wanted
