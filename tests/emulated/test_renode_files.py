# SPDX-License-Identifier: Apache-2.0
"""The Renode files: what can be seen without Renode; and where it is, that boards start, print and fault."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.emulated.harness_model import BIG, ENDLESS_RECURSION, MODEL, NO_MEMORY, SMALL, make_inputs
from tests.small import program
from tinyet import assets, generate
from tinyet.boards import Board, all_boards
from tinyet.build import find_renode
from tinyet.build.gcc import build_firmware
from tinyet.device import renode
from tinyet.device.device import DeviceFault, open_device
from tinyet.device.links import LinkClosed
from tinyet.errors import EmulatorError, ToolchainError

RENODE = assets.path("renode")
BOARDS = {board.name: board for board in all_boards() if board.renode}
SUITE = RENODE / "tinyet.robot"

# Renode's classes that the platforms are made of, all of which Renode 1.16.1 has.
UARTS = {
    "cmsdk": "UART.CMSDK_APB_UART",
    "stm32f4": "UART.STM32_UART",
    "stm32f7": "UART.STM32F7_USART",
    "nrf51": "UART.NRF52840_UART",
}
CLASSES = {
    "CPU.CortexM",
    "IRQControllers.NVIC",
    "Memory.MappedMemory",
    "Memory.ArrayMemory",
    "Miscellaneous.NRF_CLOCK",
    "GPIOPort.NRF52840_GPIO",
    *UARTS.values(),
}
CPU_TYPES = {"cortex-m3": "cortex-m3", "cortex-m4": "cortex-m4f", "cortex-m7": "cortex-m7"}


@dataclass(frozen=True)
class Entry:
    """An entry of a .repl: `name: kind @ sysbus address`, or several of them in braces, and its attributes."""

    name: str
    kind: str
    addresses: list[int]
    attributes: dict[str, str]

    @property
    def address(self) -> int | None:
        return self.addresses[0] if self.addresses else None


def entries(board: Board) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    attributes: dict[str, str] = {}
    text = (RENODE / f"{board.name}.repl").read_text()
    # Braces on one line, as the others.
    text = re.sub(r"\{[^}]*\}", lambda match: " ".join(match[0].split()), text)
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("//"):
            continue
        if line[0] == " ":
            key, separator, value = line.strip().partition(": ")
            if separator:
                attributes[key] = value.strip('"')
            continue
        match = re.fullmatch(r"(\w+): ([\w.]+) @ (\{[^}]*\}|sysbus.*)", line)
        assert match, f"{board.name}.repl: {line}"
        addresses = [int(a, 16) for a in re.findall(r"sysbus <?(0x[0-9A-F]+)", match[3])]
        attributes = {}
        found[match[1]] = Entry(match[1], match[2], addresses, attributes)
    return found


def memories_of(board: Board) -> list[tuple[int, int]]:
    """Address and size of each MappedMemory, one that answers at several addresses as often."""
    return [
        (address, int(entry.attributes["size"], 16))
        for entry in entries(board).values()
        if entry.kind == "Memory.MappedMemory"
        for address in entry.addresses
    ]


def script(board: Board) -> str:
    return (RENODE / f"{board.name}.resc").read_text()


@pytest.fixture(params=sorted(BOARDS))
def board(request: pytest.FixtureRequest) -> Board:
    return BOARDS[request.param]


# ---- without Renode ----


def test_every_board_has_its_files() -> None:
    own = {path.stem for path in RENODE.glob("*.repl")}
    assert own == set(BOARDS)
    assert {path.stem for path in RENODE.glob("*.resc")} == own | {"harness"}
    assert len(own) >= 6


def test_nothing_is_downloaded() -> None:
    for path in RENODE.iterdir():
        text = path.read_text()
        assert "http" not in text, path
        assert "@platforms" not in text, path
        assert "using " not in text, path
        assert "ApplySVD" not in text, path


def test_platform(board: Board) -> None:
    """Memories, UART, core and clocks are those of the board file."""
    found = entries(board)
    assert {entry.kind for entry in found.values()} <= CLASSES
    declared = {(memory.origin, memory.bytes) for memory in (board.flash, board.ram, *board.extra_memories)}
    # Some chips start from an alias of their flash.
    assert set(memories_of(board)) - {(0, board.flash.bytes)} == declared - {(0, board.flash.bytes)}
    assert (0, board.flash.bytes) not in declared or board.flash.origin == 0
    assert found["cpu"].attributes["cpuType"] == CPU_TYPES[board.cpu]
    assert board.renode is not None
    assert found["nvic"].address == 0xE000E000
    assert found["nvic"].attributes["systickFrequency"] == str(board.renode.counter_hz)
    assert board.uart is not None
    uarts = [entry for entry in found.values() if entry.kind.startswith("UART.")]
    assert [(entry.kind, entry.address) for entry in uarts] == [(UARTS[board.uart.driver], board.uart.base)]


def test_script(board: Board) -> None:
    text = script(board)
    assert board.renode is not None
    (uart,) = (entry.name for entry in entries(board).values() if entry.kind.startswith("UART."))
    for line in (
        f"$repl?=$ORIGIN/{board.name}.repl",
        f"$uart=sysbus.{uart}",
        f'mach create "{board.name}"',
        f"sysbus.cpu VectorTableOffset 0x{board.flash.origin:08X}",
        f"sysbus.cpu PerformanceInMips {board.renode.mips}",
        "fault_outside_memory",
    ):
        assert f"\n{line}\n" in text, line


def test_what_is_no_memory_is_forbidden(board: Board) -> None:
    """The MPU regions that faults.py sets, interpreted as the core does: the last region that has an address wins."""
    found = entries(board)
    memories = memories_of(board)
    mpu = _Mpu(int(found["cpu"].attributes.get("numberOfMPURegions", "8")))
    code: dict[str, Any] = {"self": SimpleNamespace(Machine={"sysbus": _Bus(memories), "sysbus.cpu": mpu})}
    exec(compile((RENODE / "faults.py").read_text(), "faults.py", "exec"), code)
    code["mc_fault_outside_memory"]()
    assert mpu.MPUEnabled
    for origin, size in memories:
        for address in (origin, origin + size // 3, origin + size - 1):
            assert mpu.access(address) == 3, hex(address)
        for address in (origin - 1, origin + size):
            inside = any(o <= address < o + s for o, s in memories)
            assert address < 0 or mpu.access(address) == (3 if inside else 0), hex(address)
    assert mpu.access(0x2F000000) == 0
    assert mpu.access(0x40000000) is None, "peripherals are left to the default memory map"


class _Mpu:
    """The properties of Renode's core that set up its MPU."""

    def __init__(self, regions: int) -> None:
        self.NumberOfMPURegions = regions
        self.MPURegionNumber = 0
        self.MPURegionBaseAddress = 0
        self.MPUEnabled = False
        self.regions: dict[int, tuple[int, int, int]] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "MPURegionAttributeAndSize":
            assert self.MPURegionNumber < self.NumberOfMPURegions
            size = 2 << (value >> 1 & 31)
            assert value & 1
            assert self.MPURegionBaseAddress % size == 0
            self.regions[self.MPURegionNumber] = (self.MPURegionBaseAddress, size, value >> 24 & 7)
        else:
            super().__setattr__(name, value)

    def access(self, address: int) -> int | None:
        for _, (base, size, permissions) in sorted(self.regions.items(), reverse=True):
            if base <= address < base + size:
                return permissions
        return None


class _Bus:
    def __init__(self, memories: list[tuple[int, int]]) -> None:
        self._memories = memories

    def GetRegisteredPeripherals(self) -> list[SimpleNamespace]:  # noqa: N802 - Renode's name
        def entry(kind: str, at: int, size: int) -> SimpleNamespace:
            span = SimpleNamespace(StartAddress=at, EndAddress=at + size - 1)
            peripheral = SimpleNamespace(GetType=lambda: SimpleNamespace(Name=kind))
            return SimpleNamespace(Peripheral=peripheral, RegistrationPoint=SimpleNamespace(Range=span))

        return [
            entry("ArrayMemory", 0x40020000, 0x400),
            *(entry("MappedMemory", at, size) for at, size in self._memories),
        ]


def test_robot_suite_has_every_board() -> None:
    text = SUITE.read_text()
    for board in BOARDS.values():
        (uart,) = re.findall(r"\n\$uart=(\S+)\n", script(board))
        assert len(re.findall(rf"\b{board.name} +{re.escape(uart)}\n", text)) == 2, board.name


@pytest.mark.skipif(
    importlib.util.find_spec("robot") is None, reason="the package robotframework is not installed"
)
def test_robot_suite_is_valid(tmp_path: Path) -> None:
    """Robot's own dry run, with Renode's keywords in name and arguments only."""
    keywords = tmp_path / "keywords.robot"
    bodies = {
        "Setup": "",
        "Teardown": "",
        "Test Teardown": "",
        "Start Emulation": "",
        "Execute Command": "${command}    ${machine}=${None}",
        "Create Terminal Tester": "${uart}    ${timeout}=${None}",
        "Wait For Line On Uart": "${content}    ${timeout}=${None}    ${testerId}=${None}    ${treatAsRegex}=False",
        "Should Not Be On Uart": "${content}    ${timeout}=${None}",
    }
    keywords.write_text(
        "*** Settings ***\nLibrary    OperatingSystem\n\n*** Keywords ***\n"
        + "".join(
            f"{name}\n" + (f"    [Arguments]    {arguments}\n" if arguments else "") + "    No Operation\n"
            for name, arguments in bodies.items()
        )
    )
    run = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "robot",
                "--dryrun",
                "--output",
                "NONE",
                "--log",
                "NONE",
                "--report",
                "NONE",
            ),
            *(f"--variable=RENODEKEYWORDS:{keywords}", str(SUITE)),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{2 * len(BOARDS)} tests, {2 * len(BOARDS)} passed" in run.stdout


def test_the_model_of_the_tests_takes_the_inputs_that_they_give() -> None:
    """Those that run in Renode alone give the same."""
    text = MODEL.read_text()
    sizes = [int(re.search(rf"#define {name} (\d+)u", text)[1]) for name in ("BIG", "SMALL")]  # type: ignore[index]
    assert [BIG, SMALL] == sizes == [len(data) for data in make_inputs(10)]
    assert f"NO_MEMORY = {NO_MEMORY}," in text
    assert f"ENDLESS_RECURSION = {ENDLESS_RECURSION}," in text


def _renode_of_a_script(place: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)
    monkeypatch.setenv(find_renode.VARIABLE, str(place))
    monkeypatch.setattr(renode, "_START_SECONDS", 1e6)


@pytest.mark.skipif(sys.platform == "win32", reason="the script is one of a shell")
def test_a_script_that_fails_is_told_of_whatever_renode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It prints why, drops the rest, and takes the next command, which says that the script is over."""
    says = 'echo "There was an error executing command: broken.elf"; read -r line; echo "tinyet: the script is over"'
    _renode_of_a_script(tmp_path / "renode", f"{says}; sleep 1000", monkeypatch)
    (tmp_path / "broken.elf").write_bytes(b"\x7fELF")
    with pytest.raises(EmulatorError, match="Renode did not start the machine") as caught:
        renode.start(BOARDS["mps2_an386"], tmp_path / "broken.elf")
    assert "broken.elf" in caught.value.what


@pytest.mark.skipif(sys.platform == "win32", reason="the script is one of a shell")
def test_a_firmware_that_is_not_there_is_told_before_renode_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _renode_of_a_script(tmp_path / "renode", f"touch {tmp_path / 'started'}", monkeypatch)
    with pytest.raises(ToolchainError, match="the firmware cannot be read") as caught:
        renode.start(BOARDS["mps2_an386"], tmp_path / "missing.elf")
    assert "missing.elf" in str(caught.value.where)
    assert not (tmp_path / "started").exists()


# ---- in Renode ----

needs_renode = pytest.mark.skipif(
    find_renode.find_renode() is None or shutil.which("arm-none-eabi-gcc") is None,
    reason="Renode (TINYET_RENODE, PATH) or arm-none-eabi-gcc is not installed",
)


def printed(board: Board, elf: Path, seconds: float) -> str:
    """What a firmware prints until it says "done", or until the time is over."""
    link = renode.start(board, elf)
    text = b""
    deadline = time.monotonic() + seconds
    try:
        while not text.endswith(b"done\n"):
            text += link.read(deadline)
    except (TimeoutError, LinkClosed):
        pass
    finally:
        link.close()
    return text.decode()


@needs_renode
@pytest.mark.emulated
@pytest.mark.slow
def test_the_application_prints(board: Board, tmp_path: Path) -> None:
    project = generate(program(), board, tmp_path / "project")
    model = project.path / str(project.manifest["model_dir"])
    application = project.path / "src"
    sources = [*sorted(model.rglob("*.c")), application / "main.c"]
    elf = build_firmware(board, sources, [model, application], tmp_path, harness=False)
    lines = printed(board, elf, seconds=30).splitlines()
    assert re.fullmatch(rf"{project.name}: \d+ ticks", lines[0]), lines
    assert lines[1].startswith("output 0: "), lines
    assert lines[-1] == "done", lines


@needs_renode
@pytest.mark.emulated
@pytest.mark.parametrize("name", ["nano_33_ble", "netduinoplus2"])
def test_an_image_that_does_not_fit_faults(name: str, tmp_path: Path) -> None:
    """Linked for twice the flash. With that memory, or with Renode's answers where there is none, it would print."""
    board = BOARDS[name]
    source = tmp_path / "large.c"
    source.write_text(
        '#include "tinyet_platform.h"\n'
        f"const uint8_t weights[{board.flash.bytes + 65536}u] = {{1}};\n"
        "int main(void) {\n"
        "  volatile const uint8_t *const from = weights;\n"
        '  tinyet_platform_write("begin\\n", 6u);\n'
        "  uint32_t sum = 0u;\n"
        "  for (uint32_t i = 0u; i < sizeof weights; i += 1024u) {\n"
        "    sum += from[i];\n"
        "  }\n"
        '  tinyet_platform_write("done\\n", sum == 1u ? 5u : 4u);\n'
        "  for (;;) {\n"
        "  }\n"
        "}\n"
    )
    roomy = replace(board, flash=replace(board.flash, bytes=2 * board.flash.bytes))
    elf = build_firmware(roomy, [source], [], tmp_path, harness=False)
    assert printed(board, elf, seconds=3) == "begin\n"


@needs_renode
@pytest.mark.emulated
@pytest.mark.parametrize("name", ["nano_33_ble", "stm32f746g_disco"])
def test_an_access_outside_memory_faults(name: str, tmp_path: Path) -> None:
    board = BOARDS[name]
    elf = build_firmware(board, [MODEL], [], tmp_path)
    with open_device(board, elf, on="renode") as emulated:
        with pytest.raises(DeviceFault, match="address 0x2f000000") as caught:
            emulated.run(make_inputs(10, NO_MEMORY))
        assert "run_into" in (caught.value.location or "")


@needs_renode
@pytest.mark.emulated
@pytest.mark.parametrize("name", ["nano_33_ble", "stm32f4_discovery"])
def test_a_stack_overflow_faults(name: str, tmp_path: Path) -> None:
    board = BOARDS[name]
    elf = build_firmware(board, [MODEL], [], tmp_path)
    with open_device(board, elf, on="renode") as emulated:
        with pytest.raises(DeviceFault, match="stack overflow") as caught:
            emulated.run(make_inputs(10, ENDLESS_RECURSION))
        assert caught.value.stack_overflow


@needs_renode
@pytest.mark.emulated
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
def test_qemu_and_renode_count_the_same(tmp_path: Path) -> None:
    board = BOARDS["stm32f4_discovery"]
    elf = build_firmware(board, [MODEL], [], tmp_path)
    results = []
    for emulator in ("qemu", "renode"):
        with open_device(board, elf, on=emulator) as emulated:
            results.append(emulated.run(make_inputs(10)))
    assert results[0] == results[1]


@needs_renode
def test_a_script_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, though Renode itself only waits for the next command."""
    monkeypatch.setattr(renode, "_START_SECONDS", 1e6)
    broken = tmp_path / "broken.elf"
    broken.write_bytes(b"\x7fELF")
    with pytest.raises(EmulatorError, match="Renode did not start the machine") as caught:
        renode.start(BOARDS["mps2_an386"], broken)
    assert "broken.elf" in caught.value.what
