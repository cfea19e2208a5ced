# SPDX-License-Identifier: Apache-2.0
"""Board files: those that come with tinyet, a user's own, and wrong ones."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from tests.golden_files import Golden
from tinyet import assets
from tinyet.boards import Board, Flash, all_boards, board_names, load_board
from tinyet.boards.linker import linker_script
from tinyet.errors import BoardError

NAMES = board_names()

# Core, flash bytes, RAM bytes. Written down apart from the board files, to catch a slip in either.
SIZES = {
    "arduino_uno": ("avr5", 32 * 1024 - 512, 2 << 10),
    "esp32": ("xtensa-lx6", 5 << 18, 0x2C200 - 0xDB5C),
    "esp32c3": ("rv32imc", 5 << 18, 320 << 10),
    "esp32s3": ("xtensa-lx7", 5 << 18, 320 << 10),
    "microbit": ("cortex-m0", 256 << 10, 16 << 10),
    "microbit_v2": ("cortex-m4", 512 << 10, 128 << 10),
    "mps2_an385": ("cortex-m3", 4 << 20, 4 << 20),
    "mps2_an386": ("cortex-m4", 4 << 20, 4 << 20),
    "mps2_an500": ("cortex-m7", 4 << 20, 4 << 20),
    "mps2_an505": ("cortex-m33", 4 << 20, 4 << 20),
    "mps3_an547": ("cortex-m55", 2 << 20, 4 << 20),
    "nano_33_ble": ("cortex-m4", (1024 - 64 - 32) << 10, 256 << 10),
    "netduinoplus2": ("cortex-m4", 1 << 20, 128 << 10),
    "nrf51_dk": ("cortex-m0", 256 << 10, 32 << 10),
    "nrf52840_dk": ("cortex-m4", 1 << 20, 256 << 10),
    "nrf5340_dk": ("cortex-m33", 1 << 20, (512 - 64) << 10),
    "nucleo_f401re": ("cortex-m4", 512 << 10, 96 << 10),
    "nucleo_f446re": ("cortex-m4", 512 << 10, 128 << 10),
    "nucleo_h743zi": ("cortex-m7", 2 << 20, 512 << 10),
    "nucleo_l476rg": ("cortex-m4", 1 << 20, 96 << 10),
    "nucleo_u575zi_q": ("cortex-m33", 2 << 20, 768 << 10),
    "pico": ("cortex-m0plus", (2048 - 4) << 10, 256 << 10),
    "pico2": ("cortex-m33", (4096 - 8) << 10, 512 << 10),
    "portenta_h7": ("cortex-m7", 768 << 10, 523_624),
    "riscv32_virt": ("rv32imac", 4 << 20, 4 << 20),
    "stm32f4_discovery": ("cortex-m4", 1 << 20, 128 << 10),
    "stm32f746g_disco": ("cortex-m7", 1 << 20, 256 << 10),
    "teensy41": ("cortex-m7", (8192 - 256) << 10, 512 << 10),
    "uno_r4_minima": ("cortex-m4", (256 - 16) << 10, 32 << 10),
    "uno_r4_wifi": ("cortex-m4", (256 - 16) << 10, 32 << 10),
    "xiao_nrf52840": ("cortex-m4", 788 << 10, (256 - 24) << 10),
    "xtensa_lx60": ("xtensa-lx106", 3 << 20, 4 << 20),
}

# Names of the hardware in PlatformIO's registry (platform, board, framework), for Arduino and for Zephyr.
NAMES_ELSEWHERE = {
    "arduino_uno": ("atmelavr uno arduino", "arduino:avr:uno", ""),
    "esp32": ("espressif32 esp32dev arduino", "esp32:esp32:esp32", "esp32_devkitc/esp32/procpu"),
    "esp32c3": ("espressif32 esp32-c3-devkitm-1 arduino", "esp32:esp32:esp32c3", "esp32c3_devkitm"),
    "esp32s3": (
        "espressif32 esp32-s3-devkitc-1 arduino",
        "esp32:esp32:esp32s3",
        "esp32s3_devkitc/esp32s3/procpu",
    ),
    "microbit": ("nordicnrf51 bbcmicrobit ", "", "bbc_microbit"),
    "microbit_v2": (
        "nordicnrf52 bbcmicrobit_v2 arduino",
        "sandeepmistry:nRF5:BBCmicrobitV2",
        "bbc_microbit_v2",
    ),
    "mps2_an385": ("", "", "mps2/an385"),
    "mps2_an386": ("", "", "mps2/an386"),
    "mps2_an500": ("", "", "mps2/an500"),
    "mps2_an505": ("", "", ""),
    "mps3_an547": ("", "", ""),
    "xtensa_lx60": ("", "", ""),
    "nano_33_ble": ("nordicnrf52 nano33ble arduino", "arduino:mbed_nano:nano33ble", "arduino_nano_33_ble"),
    "netduinoplus2": ("ststm32 netduino2plus ", "", ""),
    "nrf51_dk": ("nordicnrf51 nrf51_dk ", "", "nrf51dk/nrf51822"),
    "nrf52840_dk": ("", "", "nrf52840dk/nrf52840"),
    "nrf5340_dk": ("", "", "nrf5340dk/nrf5340/cpuapp"),
    "nucleo_f401re": (
        "ststm32 nucleo_f401re arduino",
        "STMicroelectronics:stm32:Nucleo_64:pnum=NUCLEO_F401RE",
        "nucleo_f401re",
    ),
    "nucleo_f446re": (
        "ststm32 nucleo_f446re arduino",
        "STMicroelectronics:stm32:Nucleo_64:pnum=NUCLEO_F446RE",
        "nucleo_f446re",
    ),
    "nucleo_h743zi": (
        "ststm32 nucleo_h743zi arduino",
        "STMicroelectronics:stm32:Nucleo_144:pnum=NUCLEO_H743ZI",
        "nucleo_h743zi",
    ),
    "nucleo_l476rg": (
        "ststm32 nucleo_l476rg arduino",
        "STMicroelectronics:stm32:Nucleo_64:pnum=NUCLEO_L476RG",
        "nucleo_l476rg",
    ),
    "nucleo_u575zi_q": (
        "ststm32 nucleo_u575zi_q zephyr",
        "STMicroelectronics:stm32:Nucleo_144:pnum=NUCLEO_U575ZI_Q",
        "nucleo_u575zi_q",
    ),
    "pico": ("raspberrypi pico arduino", "rp2040:rp2040:rpipico", "rpi_pico"),
    "pico2": ("", "rp2040:rp2040:rpipico2", "rpi_pico2/rp2350a/m33"),
    "portenta_h7": (
        "ststm32 portenta_h7_m7 arduino",
        "arduino:mbed_portenta:envie_m7",
        "arduino_portenta_h7/stm32h747xx/m7",
    ),
    "riscv32_virt": ("", "", ""),
    "stm32f4_discovery": (
        "ststm32 disco_f407vg arduino",
        "STMicroelectronics:stm32:Disco:pnum=DISCO_F407VG",
        "stm32f4_disco",
    ),
    "stm32f746g_disco": (
        "ststm32 disco_f746ng arduino",
        "STMicroelectronics:stm32:Disco:pnum=DISCO_F746NG",
        "stm32f746g_disco",
    ),
    "teensy41": ("teensy teensy41 arduino", "teensy:avr:teensy41", "teensy41"),
    "uno_r4_minima": (
        "renesas-ra uno_r4_minima arduino",
        "arduino:renesas_uno:minima",
        "arduino_uno_r4@minima",
    ),
    "uno_r4_wifi": (
        "renesas-ra uno_r4_wifi arduino",
        "arduino:renesas_uno:unor4wifi",
        "arduino_uno_r4@wifi",
    ),
    "xiao_nrf52840": ("", "Seeeduino:nrf52:xiaonRF52840", "xiao_ble"),
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


def told(error: BoardError, directory: Path) -> str:
    """The error without the places of this machine."""
    return f"{error}\n".replace(str(directory), "DIRECTORY").replace(str(assets.path("boards")), "BOARDS")


def test_how_long_the_flash_lets_the_core_wait(tmp_path: Path) -> None:
    assert load_board(write(tmp_path, OWN)).flash_timing is None
    short = OWN.replace("[uart]", "[flash]\nwait_states = 1\n[uart]")
    assert load_board(write(tmp_path, short)).flash_timing == Flash(1, 4, 1, 1, prefetch=False)
    assert load_board("nucleo_f446re").flash_timing == Flash(5, 16, 64, 8, prefetch=True)
    assert load_board("nucleo_f401re").flash_timing == Flash(2, 16, 64, 8, prefetch=True)
    assert load_board("stm32f4_discovery").flash_timing == Flash(0, 4, 1, 1, prefetch=False)
    assert load_board("pico").flash_timing == Flash(56, 8, 2048, 1, prefetch=False, shared=True)


def test_every_chip_says_how_its_flash_waits_and_no_simulated_machine_does() -> None:
    simulated = {"riscv32_virt", "xtensa_lx60"} | {name for name in NAMES if name.startswith("mps")}
    assert {board.name for board in all_boards() if board.flash_timing is None} == simulated


def test_the_boards_are_those_of_the_table() -> None:
    assert set(NAMES) == set(SIZES)
    assert [board.name for board in all_boards()] == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_facts(name: str) -> None:
    board = load_board(name)
    assert (board.cpu, board.flash.bytes, board.ram.bytes) == SIZES[name]
    assert board.emulators or not board.bare_metal
    for source in board.support_sources + board.support_headers:
        assert (assets.path("firmware") / source).is_file()
    if board.renode:
        script = (assets.path("renode") / f"{name}.resc").read_text()
        platform = (assets.path("renode") / f"{name}.repl").read_text()
        assert f"PerformanceInMips {board.renode.mips}\n" in script
        assert f"systickFrequency: {board.renode.counter_hz}\n" in platform


@pytest.mark.parametrize("name", NAMES)
def test_names_elsewhere(name: str) -> None:
    board = load_board(name)
    pio = board.platformio
    assert NAMES_ELSEWHERE[name] == (
        f"{pio.platform} {pio.board} {pio.framework}" if pio else "",
        board.arduino.fqbn if board.arduino else "",
        board.zephyr.board if board.zephyr else "",
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_file_names_its_sources(name: str) -> None:
    """What is known from elsewhere can be looked up there; what a file keeps back for a bootloader, it says."""
    text = (assets.path("boards") / f"{name}.toml").read_text(encoding="utf-8")
    board = load_board(name)
    if board.bare_metal and board.arduino is None:
        return  # known from the maker's own pages, under `url`
    _, _, sources = text.partition("\n# From: ")
    for wanted, where in (
        (board.platformio and board.platformio.framework, "platformio/platform-"),
        (board.zephyr, "zephyrproject-rtos/zephyr"),
    ):
        assert not wanted or where in sources, where
    assert board.url.startswith("https://")
    power_of_two = board.flash.bytes & (board.flash.bytes - 1) == 0
    assert power_of_two or re.search(r"keeps?|kept|table", text.partition("\ntitle")[0])


def test_the_ids_have_the_form_of_their_tools(tmp_path: Path, golden: Golden) -> None:
    """Wrong ones are refused, each with an example of a right one."""
    text = (
        OWN
        + """
        [platformio]
        platform = "ststm32 "
        board = ""
        framework = "mbed"
        [arduino]
        fqbn = "arduino:avr"
        [zephyr]
        board = "nrf52840dk nrf52840"
        conf = 3
    """
    )
    with pytest.raises(BoardError) as caught:
        load_board(write(tmp_path, text))
    golden(told(caught.value, tmp_path), "wrong_ids.txt")


def test_a_board_that_only_a_framework_reaches(tmp_path: Path) -> None:
    bare = OWN.partition("[uart]")[0]
    board = load_board(write(tmp_path, bare + '[zephyr]\nboard = "native_sim"\noverlay = "/ {};"\n'))
    assert not board.bare_metal
    assert (board.support_sources, board.support_headers, board.defines, board.emulators) == ((), (), (), ())
    assert board.baud == 115_200
    assert board.zephyr is not None
    assert (board.zephyr.conf, board.zephyr.overlay) == ("", "/ {};")
    with pytest.raises(BoardError, match="one of uart, platformio with a framework, arduino or zephyr"):
        load_board(write(tmp_path, bare))
    with pytest.raises(BoardError, match="qemu needs uart and counter"):
        load_board(
            write(tmp_path, bare + '[arduino]\nfqbn = "a:b:c"\n[qemu]\nmachine = "x"\ncounter_hz = 1\n')
        )


def test_a_core_that_the_compiler_does_not_know() -> None:
    board = load_board(Path(__file__).parents[2] / "benchmarks" / "boards" / "ek_ra8d1.toml")
    assert (board.core, board.cpu) == ("cortex-m85", "cortex-m55")
    assert board.target.timed_as == "cortex-m85"
    assert "-mcpu=cortex-m55+nomve.fp" in board.machine_flags
    assert all(other.core == other.cpu and not other.target.timed_as for other in all_boards())


def test_an_address_space_for_constants_alone(tmp_path: Path) -> None:
    """On AVR an address is in the flash and in the RAM; elsewhere that is a mistake."""
    uno = load_board("arduino_uno")
    assert (uno.flash.origin, uno.ram.origin) == (0, 0x100)
    assert uno.machine_flags == ("-mmcu=atmega328p",)
    assert uno.arduino is not None
    assert (uno.arduino.core, uno.arduino.architecture) == ("arduino:avr", "avr")
    text = (assets.path("boards") / "arduino_uno.toml").read_text(encoding="utf-8")
    with pytest.raises(BoardError, match=r"memory\.ram overlaps memory\.flash"):
        load_board(
            write(
                tmp_path,
                text.replace("avr5", "cortex-m0").replace('["progmem"]', "[]").replace("mcu =", "# mcu ="),
            )
        )


def test_machine_flags() -> None:
    def flags(name: str) -> str:
        return " ".join(load_board(name).machine_flags)

    assert flags("microbit") == "-mthumb -mcpu=cortex-m0 -mfloat-abi=soft"
    assert flags("mps2_an386") == "-mthumb -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16"
    assert flags("mps2_an500") == "-mthumb -mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16"
    assert flags("xtensa_lx60") == "-mtext-section-literals"
    assert flags("mps3_an547") == "-mthumb -mcpu=cortex-m55+nomve.fp -mfloat-abi=hard -mfpu=auto"


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


def test_everything_that_is_wrong_is_listed(tmp_path: Path, golden: Golden) -> None:
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
    message = told(caught.value, tmp_path)
    golden(message, "all_wrong.txt")
    assert f"mistakes in the board file: {message.count('  - ')}" in message


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("[uart]", "[uartt]", "uart is missing"),
        ('driver = "systick"', 'driver = "dwt"', "'dwt', which is none of systick, nrf51"),
        ("bytes = 0x80000", "bytes = 0x180000000", "memory.flash.bytes is 6442450944: input should be less"),
        ("origin = 0x20000000", "origin = 0xFFFFF000", "memory.ram ends behind the 32-bit address space"),
        ("clock_hz = 64_000_000", "clock_hz = true", "clock_hz is True: input should be a valid integer"),
        (
            "clock_hz = 64_000_000",
            "clock_hz = 0",
            "clock_hz is 0: input should be greater than or equal to 1",
        ),
        ('title = "My board"', 'title = ""', "title is '': string should have at least 1 character"),
        ('["dsp"]', '["dsp", 3]', "features.1 is 3: input should be a valid string"),
        ('["dsp"]', '"dsp"', "features must be a list of strings"),
        ('["dsp"]', '["fpu64"]', "contains 'fpu64', which no cortex-m33 has"),
        (
            'cpu = "cortex-m33"',
            'cpu = "xtensa-lx7"',
            "uart.driver is 'cmsdk', which is none of ns16550",
        ),
        ('cpu = "cortex-m33"', 'cpu = "rv32imc"', "counter.driver is 'systick', which is none of riscv"),
        ('cpu = "cortex-m33"', 'cpu = "avr5"', "mcu is missing: GCC wants it"),
        ('"cmsdk"', '"cmsdk"\ntx = "PA2"', "uart.tx is not known here"),
        ('"cmsdk"', '"stm32f4"\ntx = "PA2"', "uart.rx is missing"),
        ('cpu = "cortex-m33"', 'cpu = "cortex-a9"', "'cortex-a9', which is none of cortex-m0"),
        ("[memory.ram]", "[memory.RAM]", "memory.ram is missing"),
        ("[counter]", "counter = 3\n[extra]", "counter must be a table"),
        ("[uart]", "[flash]\nline_bytes = 16\n[uart]", "flash.wait_states is missing"),
        ("[uart]", "[flash]\nwait_states = 5000\n[uart]", "flash.wait_states is 5000: input should be less"),
        (
            "[uart]",
            "[flash]\nwait_states = 1\nshared = true\ndata_lines = 2\n[uart]",
            "flash.data_lines is not known where code and data share the lines",
        ),
        (
            "[uart]",
            '[flash]\nwait_states = 1\nfamily = "$(x)"\n[uart]',
            "flash.family",
        ),
        (
            "[uart]",
            "[flash]\nwait_states = 1\nline_bytes = 12\n[uart]",
            "flash.line_bytes is 12; it is one of 4, 8",
        ),
        (
            "[uart]",
            "[flash]\nwait_states = 1\ncode_lines = 0\n[uart]",
            "flash.code_lines is 0: input should be",
        ),
        (
            "[uart]",
            "[flash]\nwait_states = 1\nprefetch = 1\n[uart]",
            "flash.prefetch is 1: input should be a valid",
        ),
        ("[uart]", "[flash]\nwait_states = 1\ncache = true\n[uart]", "flash.cache is not known here"),
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


@pytest.mark.parametrize("name", ["mps3_an547", "riscv32_virt"])
def test_linker_script(name: str, golden: Golden) -> None:
    """Those of boards with a memory for vectors and one more, and of another kind of processor."""
    golden(linker_script(load_board(name)), f"{name}.ld")


def test_linker_script_of_an_own_board(tmp_path: Path, golden: Golden) -> None:
    golden(linker_script(load_board(write(tmp_path, OWN))), "own.ld")


def test_boards_are_frozen() -> None:
    board: Board = load_board("microbit")
    with pytest.raises(dataclasses.FrozenInstanceError):
        board.name = "other"  # type: ignore[misc]
