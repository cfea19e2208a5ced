# SPDX-License-Identifier: Apache-2.0
"""The rules for each string of a board file.

A board file comes from anyone, and its strings go to compilers, build systems and emulators, some of which would run
what they are told to. So a string is one of a list, or has a form in which none of them finds a command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Annotated

from pydantic import AfterValidator, Field

from tinyet.messages.text import KCONFIG_SETTING, shown

# PlatformIO runs the Python that a platform brings, so a platform is one of PlatformIO's own, of its registry.
_PLATFORMS = """
atmelavr atmelmegaavr atmelsam espressif32 espressif8266 freescalekinetis infineonxmc maxim32 nordicnrf51 nordicnrf52
nxpimxrt nxplpc raspberrypi renesas-ra sifive siliconlabsefm32 ststm32 teensy ticc13x0 titiva
"""
PLATFORMS = tuple(_PLATFORMS.split())
# QEMU's options that describe the machine and reach nothing outside of it: option -> form of its value.
_QEMU_OPTIONS = {
    "-bios": r"none",
    "-cpu": r"[a-z0-9][a-z0-9.-]*(,[a-z0-9-]+=(on|off|[0-9]+))*",
    "-global": r"[a-z0-9][a-z0-9_.-]*\.[a-z0-9-]+=(on|off|0x[0-9a-f]{1,16}|[0-9]{1,19})",
    "-m": r"[0-9]{1,6}[KMG]?",
    "-smp": r"[1-9]",
}
# Of devicetree source: what the C preprocessor or dtc would read other files for, or take for the end of a line.
_OVERLAY_TEXT = re.compile(r"[A-Za-z0-9_,.+*/&<>=(){}\[\];:\"'@#|^~! \t\n-]*")
_OVERLAY_FORBIDDEN = re.compile(
    r"#(?!(address|size|[a-z-]{1,40})-cells\b)[a-z]*|/(include|incbin|plugin|dts-v1)\b/?"
)
# Words of GNU ld's scripts, where the memories are regions of these names in capitals.
_LINKER_WORDS = """
absolute addr align assert at bind block constant copy data_segment_align defined dsect entry extern float
force_common_allocation group hidden hll include info input insert length loadaddr log2ceil map max memory min next
nocrossrefs nofloat noload only_if_ro only_if_rw origin output overlay phdrs provide sections segment_start sizeof
sizeof_headers special startup subalign syslib target version
"""
# Names of projects' other environments, presets and folders.
_TAKEN = frozenset({"arduino", "arduino_harness", "harness", "host"})
_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
_PUNCTUATION = " .,:;+()/&'_#®™°-"
_MOST_LINES = 200


def one_of(choices: Iterable[str], why: str = "") -> AfterValidator:
    """One of a list; `why` is the reason for others to be refused."""

    def check(value: str) -> str:
        if value not in choices:
            raise ValueError(f"is {shown(value)}, which is none of {', '.join(choices)}{why and f': {why}'}")
        return value

    return AfterValidator(check)


def written(form: str, example: str, most: int = 64) -> AfterValidator:
    """Text of a form, in ASCII, of at most so many characters."""
    pattern = re.compile(form, re.ASCII)

    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise ValueError(f"is {shown(value)}; it is written as in {example!r}")
        if len(value) > most:
            raise ValueError(f"is {shown(value)}: more than {most} characters")
        return value

    return AfterValidator(check)


def _checked(check: Callable[[str], str | None]) -> AfterValidator:
    """Text that `check` has no complaint about."""

    def validate(value: str) -> str:
        complaint = check(value)
        if complaint is not None:
            raise ValueError(complaint)
        return value

    return AfterValidator(validate)


def _prose(value: str) -> str | None:
    if len(value) > 100:
        return f"is {shown(value)}: more than 100 characters"
    wrong = sorted({char for char in value if not char.isalnum() and char not in _PUNCTUATION})
    if wrong:
        return f"is {shown(value)}: it can hold letters, digits and {_PUNCTUATION.strip()}, not {shown(''.join(wrong))}"
    return f"is {shown(value)}: it begins or ends with a blank" if value != value.strip() else None


def _platform(value: str) -> str | None:
    name, at, version = value.partition("@")
    if name not in PLATFORMS:
        return (
            f"is {shown(value)}, which is none of {', '.join(PLATFORMS)}; PlatformIO runs what a platform brings, so "
            "another one is named in the project's user.ini"
        )
    if at and not re.fullmatch(r"(\^|~|>=|<=)?[0-9]{1,9}(\.[0-9]{1,9}){0,3}", version, re.ASCII):
        return f"is {shown(value)}; a version is written as in 'ststm32@^17.1'"
    return None


def _settings(value: str) -> str | None:
    lines = value.splitlines()
    if len(lines) > _MOST_LINES:
        return f"has {len(lines)} lines; {_MOST_LINES} is the most"
    for line in lines:
        if not KCONFIG_SETTING.fullmatch(line):
            return (
                f"has the line {shown(line)}; a line is a comment, or is written as in 'CONFIG_SERIAL=y', with y, n, m "
                "or a number: strings are for the application's own .conf file"
            )
    return None


def _overlay(value: str) -> str | None:
    if len(value) > 1 << 14:
        return f"has {len(value)} characters; {1 << 14} is the most"
    if not _OVERLAY_TEXT.fullmatch(value):
        wrong = sorted({char for char in value if not _OVERLAY_TEXT.fullmatch(char)})
        return f"holds {shown(''.join(wrong))}, which no devicetree needs"
    found = _OVERLAY_FORBIDDEN.search(value)
    if found:
        return f"holds {found[0]!r}: it can have nodes and properties, and cannot read other files"
    return None


def memory_complaint(name: str) -> str | None:
    """The error in a memory's name, or None."""
    if not _NAME.fullmatch(name):
        return f"memory.{shown(name)} must be lower-case letters, digits and _, at most 48"
    return (
        f"memory.{name} is a word of linker scripts: name it otherwise"
        if name in _LINKER_WORDS.split()
        else None
    )


def board_complaint(name: str) -> str | None:
    """The error in a board file's name (without .toml), or None."""
    if not _NAME.fullmatch(name):
        return f"the file's name {shown(f'{name}.toml')} must be lower-case letters, digits and _, then .toml"
    return f"the file's name cannot be {name}.toml: projects use that name" if name in _TAKEN else None


def check_qemu_arguments(words: tuple[str, ...]) -> tuple[str, ...]:
    """Raise ValueError unless they are options that describe the machine, each with its value."""
    for option, value in zip(words[::2], (*words[1::2], ""), strict=False):
        form = _QEMU_OPTIONS.get(option)
        if form is None:
            raise ValueError(f"holds {shown(option)}, which is none of {', '.join(_QEMU_OPTIONS)}")
        if len(value) > 100 or not re.fullmatch(form, value, re.ASCII):
            raise ValueError(f"has {shown(value)} as value of {option}, which is not of the form {form}")
    return words


Text = Annotated[str, Field(min_length=1), _checked(_prose)]
OptionalText = Annotated[str, _checked(_prose)]
Url = Annotated[str, written(r"(https?://[A-Za-z0-9._~:/?#@&+,;=%-]+)?", "https://example.com/board", 300)]
Chip = Annotated[str, written(r"([a-z][a-z0-9]+)?", "atmega328p")]
QemuMachine = Annotated[str, written(r"[a-z0-9][a-z0-9._-]*", "mps2-an386")]
QemuArguments = Annotated[tuple[str, ...], Field(strict=False), AfterValidator(check_qemu_arguments)]
Platform = Annotated[str, _checked(_platform)]
PlatformIoBoard = Annotated[str, written(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", "nucleo_f446re")]
Fqbn = Annotated[
    str,
    written(
        r"\w[\w.-]*:\w[\w.-]*:\w[\w.-]*(:\w+=[\w.-]+(,\w+=[\w.-]+)*)?", "arduino:mbed_nano:nano33ble", 200
    ),
]
ZephyrBoard = Annotated[
    str, written(r"\w[\w-]*(@\w[\w.]*)?(/\w[\w-]*|/(?=/))*", "nrf5340dk/nrf5340/cpuapp", 100)
]
SectionName = Annotated[str, written(r"\.[A-Za-z_][A-Za-z0-9_.]*", ".dtcm_bss")]
"""Of an ELF file; of no form in which a compiler or an assembler finds an option."""
Settings = Annotated[str, _checked(_settings)]
Overlay = Annotated[str, _checked(_overlay)]
