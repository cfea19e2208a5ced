# SPDX-License-Identifier: Apache-2.0
"""Board files: those that come with tinyet, a user's own, and wrong ones."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from tinyet import assets
from tinyet.boards import Board, all_boards, board_names, load_board
from tinyet.errors import BoardError
from tinyet.templating import linker_script

NAMES = board_names()

# Core, flash bytes, RAM bytes. Written down apart from the board files, to catch a slip in either.
SIZES = {
    "microbit": ("cortex-m0", 256 << 10, 16 << 10),
    "mps2_an385": ("cortex-m3", 4 << 20, 4 << 20),
    "mps2_an386": ("cortex-m4", 4 << 20, 4 << 20),
    "mps2_an500": ("cortex-m7", 4 << 20, 4 << 20),
    "mps2_an505": ("cortex-m33", 4 << 20, 4 << 20),
    "mps3_an547": ("cortex-m55", 2 << 20, 4 << 20),
    "netduinoplus2": ("cortex-m4", 1 << 20, 128 << 10),
    "nrf51_dk": ("cortex-m0", 256 << 10, 32 << 10),
}

OWN = """
title = "My board"
cpu = "cortex-m33"
features = ["dsp"]
clock_hz = 64_000_000
stack_bytes = 2048
[memory.flash]
origin = 0x0
bytes = 0x80000
[memory.ram]
origin = 0x20000000
bytes = 0x10000
[uart]
driver = "cmsdk"
base = 0x40004000
[counter]
driver = "systick"
"""


def write(tmp_path: Path, text: str, name: str = "mine.toml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_boards_are_those_of_the_table() -> None:
    assert set(NAMES) == set(SIZES)
    assert [board.name for board in all_boards()] == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_facts(name: str) -> None:
    board = load_board(name)
    assert (board.cpu, board.flash.bytes, board.ram.bytes) == SIZES[name]
    assert board.emulators
    for source in board.support_sources + board.support_headers:
        assert (assets.path("firmware") / source).is_file()
    if board.renode:
        script = (assets.path("renode") / f"{name}.resc").read_text()
        platform = (assets.path("renode") / f"{name}.repl").read_text()
        assert f"PerformanceInMips {board.renode.mips}\n" in script
        assert f"systickFrequency: {board.renode.counter_hz}\n" in platform
        memories = {
            (int(origin, 16), int(size, 16))
            for origin, size in re.findall(
                r"MappedMemory @ sysbus (0x[0-9a-fA-F]+)\n    size: (0x[0-9a-fA-F]+)", platform
            )
        }
        declared = (board.flash, board.ram, *board.extra_memories)
        assert memories == {(memory.origin, memory.bytes) for memory in declared}


def test_machine_flags() -> None:
    def flags(name: str) -> str:
        return " ".join(load_board(name).machine_flags)

    assert flags("microbit") == "-mthumb -mcpu=cortex-m0 -mfloat-abi=soft"
    assert flags("mps2_an386") == "-mthumb -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16"
    assert flags("mps2_an500") == "-mthumb -mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16"
    assert flags("mps3_an547") == "-mthumb -mcpu=cortex-m55 -mfloat-abi=hard -mfpu=auto"


def test_features_leave_their_mark_in_the_flags(tmp_path: Path) -> None:
    with_dsp = load_board(write(tmp_path, OWN))
    assert with_dsp.machine_flags == ("-mthumb", "-mcpu=cortex-m33", "-mfloat-abi=soft")
    without = load_board(write(tmp_path, OWN.replace('["dsp"]', '["fpu"]')))
    expected = ("-mthumb", "-mcpu=cortex-m33+nodsp", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16")
    assert without.machine_flags == expected


def test_own_board(tmp_path: Path) -> None:
    path = write(tmp_path, OWN)
    board = load_board(path)
    assert board == load_board(str(path))
    assert board.name == "mine"
    assert board.target.features == {"dsp"}
    assert board.emulators == ()
    assert dict(board.defines) == {
        "TINYET_CLOCK_HZ": "64000000u",
        "TINYET_UART_BASE": "0x40004000",
        "TINYET_UART_BAUD": "115200u",
    }


def test_pins() -> None:
    assert dict(load_board("nrf51_dk").defines)["TINYET_UART_TX_PIN"] == "9u"
    assert dict(load_board("netduinoplus2").defines)["TINYET_UART_RX_PIN"] == "3u"


def test_unknown_board_names_the_nearest() -> None:
    with pytest.raises(BoardError) as caught:
        load_board("mps2-an368")
    assert "did you mean mps2_an386" in str(caught.value)
    with pytest.raises(BoardError, match="there is no board 'zzz'") as caught:
        load_board("zzz")
    assert "did you mean" not in str(caught.value)
    assert "microbit" in str(caught.value)


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match="cannot be read: No such file"):
        load_board(tmp_path / "none.toml")
    with pytest.raises(BoardError, match=r"is not TOML: .*line 1"):
        load_board(write(tmp_path, "title = \n"))


def test_everything_that_is_wrong_is_listed(tmp_path: Path) -> None:
    text = """
        cpu = "cortex-m4"
        features = ["fpu", "mve"]
        clock_hz = "fast"
        stack_bytes = 1004
        colour = "red"
        [memory.flash]
        origin = 0x20000000
        bytes = 0x1000
        [memory.ram]
        origin = 0x20000800
        bytes = 900
        kind = "fast"
        [uart]
        driver = "stm32f4"
        base = 0x40004400
        tx = "A2"
        rx = "PA16"
        [qemu]
        args = "-nographic"
    """
    with pytest.raises(BoardError) as caught:
        load_board(write(tmp_path, text, "Mine.toml"))
    message = str(caught.value)
    for part in (
        "title is missing",
        "features must contain 'dsp'",
        "features contains 'mve', which no cortex-m4 has",
        "clock_hz must be a whole number",
        "stack_bytes must be a multiple of 8",
        "stack_bytes leaves nothing of the 900 bytes",
        "colour is not known here",
        "memory.ram overlaps memory.flash",
        "memory.ram.kind is not known here",
        "uart.tx is 'A2'; a pin is written as in 'PA2'",
        "uart.rx is 'PA16', and a port has 16 pins",
        "counter is missing",
        "qemu.machine is missing",
        "qemu.args must be a list of strings",
        "qemu.counter_hz is missing",
        "the file's name 'Mine.toml' must be lower-case",
    ):
        assert part in message
    assert f"mistakes in the board file: {message.count('  - ')}" in message
    assert str(tmp_path / "Mine.toml") in message


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("[uart]", "[uartt]", "uart is missing"),
        ('driver = "systick"', 'driver = "dwt"', "'dwt', which is none of systick, nrf51"),
        ("bytes = 0x80000", "bytes = 0x180000000", "memory.flash.bytes must be a whole number"),
        ("origin = 0x20000000", "origin = 0xFFFFF000", "memory.ram ends behind the 32-bit address space"),
        ("clock_hz = 64_000_000", "clock_hz = true", "clock_hz must be a whole number"),
        ('["dsp"]', '["fpu64"]', "contains 'fpu64', which no cortex-m33 has"),
        ('cpu = "cortex-m33"', 'cpu = "cortex-a9"', "'cortex-a9', which is none of cortex-m0"),
        ("[memory.ram]", "[memory.RAM]", "memory.ram is missing"),
        ("[counter]", "counter = 3\n[extra]", "counter must be a table"),
    ],
)
def test_one_mistake(tmp_path: Path, old: str, new: str, part: str) -> None:
    assert old in OWN
    text = OWN.replace(old, new)
    if new.startswith("counter = 3"):
        text = "counter = 3\n" + OWN.replace(old, "[extra]")
    with pytest.raises(BoardError) as caught:
        load_board(write(tmp_path, text))
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("cpu", "features", "part"),
    [
        ("cortex-m55", '["dsp", "fpu", "mve"]', "must contain 'fpu64' with 'fpu'"),
        ("cortex-m7", '["dsp", "fpu64"]', "'fpu64' without 'fpu'"),
    ],
)
def test_features_that_need_each_other(tmp_path: Path, cpu: str, features: str, part: str) -> None:
    text = OWN.replace("cortex-m33", cpu).replace('["dsp"]', features)
    with pytest.raises(BoardError) as caught:
        load_board(write(tmp_path, text))
    assert part in str(caught.value)


def test_linker_script_has_the_memories(tmp_path: Path) -> None:
    script = linker_script(load_board("mps3_an547"))
    assert "VECTORS (rx) : ORIGIN = 0x00000000, LENGTH = 0x400" in script
    assert "DTCM (rwx) : ORIGIN = 0x20000000, LENGTH = 0x80000" in script
    assert "*(.tinyet.dtcm .tinyet.dtcm.*)" in script
    own = linker_script(load_board(write(tmp_path, OWN)))
    assert "FLASH (rx) : ORIGIN = 0x00000000, LENGTH = 0x80000" in own
    assert "RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 0x10000" in own
    assert ". += 2048;" in own
    assert "VECTORS" not in own


def test_boards_are_frozen() -> None:
    board: Board = load_board("microbit")
    with pytest.raises(dataclasses.FrozenInstanceError):
        board.name = "other"  # type: ignore[misc]
