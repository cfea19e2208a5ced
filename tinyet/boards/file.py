# SPDX-License-Identifier: Apache-2.0
"""The form of a board file: a table of the file is a class here, a key is a field.

What a key may hold is said by its field, and pydantic refuses everything else. What keys have to do with each
other is in `_contradictions`, which works with the keys that are right on their own.
"""

from __future__ import annotations

import copy
import functools
import itertools
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from tinyet import assets
from tinyet.boards.board import (
    DEFAULT_BAUD,
    Arduino,
    Board,
    Memory,
    PlatformIo,
    Qemu,
    Renode,
    Simavr,
    Uart,
    Zephyr,
)
from tinyet.boards.cpus import CPUS, FPUS, RUNS_CODE_OF, Target
from tinyet.boards.flash import Flash
from tinyet.boards.strings import (
    Chip,
    Fqbn,
    OptionalText,
    Overlay,
    Platform,
    PlatformIoBoard,
    QemuArguments,
    QemuMachine,
    SectionName,
    Settings,
    Text,
    Url,
    ZephyrBoard,
    board_complaint,
    memory_complaint,
    one_of,
)
from tinyet.errors import BoardError, bullet_list
from tinyet.messages.text import printable, shown

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# The drivers of bare-metal boards, by family: firmware/platform/tinyet_uart_<name>.c, tinyet_counter_<name>.c.
_DRIVERS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "uart": {
        "arm": ("cmsdk", "stm32f4", "stm32f7", "nrf51"),
        "riscv": ("ns16550",),
        "xtensa": ("ns16550",),
    },
    "counter": {"arm": ("systick", "nrf51"), "riscv": ("riscv",), "xtensa": ("ccount",)},
}
# Drivers whose pins are chosen by software: how the board file writes a pin, and an example.
_PIN_FORMS: Mapping[str, tuple[str, str]] = {
    "stm32f4": (r"P([A-I])(\d{1,2})", "PA2"),
    "stm32f7": (r"P([A-K])(\d{1,2})", "PA9"),
    "nrf51": (r"P([01])\.(\d{1,2})", "P0.24"),
}
# Drivers whose registers lie as far apart as the board has them.
_SPACED = ("ns16550",)
_ADDRESSES = 1 << 32
_MOST_MEMORIES = 16
_LINE_BYTES = (4, 8, 16, 32, 64)

_Record = TypeVar("_Record")


class _Table(BaseModel):
    # A misspelt key would otherwise be ignored in silence.
    model_config = ConfigDict(strict=True, extra="forbid")

    @field_validator("*")
    @classmethod
    def _keep(cls, value: object, info: ValidationInfo) -> object:
        """The context holds what is right, also of a table that is wrong elsewhere: (table, key) -> value."""
        if info.context is not None:
            info.context[cls, info.field_name] = value
        return value


class _Range(_Table):
    origin: int = Field(ge=0, lt=_ADDRESSES)
    bytes: int = Field(ge=1, le=_ADDRESSES)


def _line_of(value: int) -> int:
    if value not in _LINE_BYTES:
        raise ValueError(f"is {value}; it is one of {', '.join(map(str, _LINE_BYTES))}")
    return value


_Line = Annotated[int, AfterValidator(_line_of)]


class _Sections(_Table):
    """Of frameworks' own linker scripts."""

    arduino: SectionName | None = None
    zephyr: SectionName | None = None


class _Ram(_Range):
    read_waits: int | None = Field(None, ge=0, le=4096)
    write_waits: int | None = Field(None, ge=0, le=4096)
    line_bytes: _Line = 4
    cached: bool = False
    dma: bool = True
    family: OptionalText = ""


class _Extra(_Ram):
    read_only: bool = False
    sections: _Sections = _Sections()


class _Memories(_Table):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Extra]

    flash: _Range
    ram: _Ram

    def records(self) -> dict[str, Memory]:
        """By name: the flash, the RAM, then the others as they are in the file."""
        return {
            name: _memory(name, table)
            for name, table in (("flash", self.flash), ("ram", self.ram), *self.__pydantic_extra__.items())
        }


def _memory(name: str, table: _Range) -> Memory:
    known = table.model_dump(exclude={"origin", "bytes", "read_only", "sections"})
    fixed = name in ("flash", "vectors") or (isinstance(table, _Extra) and table.read_only)
    named = table.sections.model_dump(exclude_none=True) if isinstance(table, _Extra) else {}
    return Memory(
        name, table.origin, table.bytes, "rx" if fixed else "rwx", **known, sections=tuple(named.items())
    )


class _Flash(_Table):
    wait_states: int = Field(ge=0, le=4096)
    line_bytes: _Line = 4
    shared: bool = False
    code_lines: int = Field(1, ge=1, le=4096)
    data_lines: int = Field(1, ge=1, le=4096)
    prefetch: bool = False
    family: OptionalText = ""

    @field_validator("data_lines")
    @classmethod
    def _own(cls, value: int, info: ValidationInfo) -> int:
        if info.data.get("shared"):
            raise ValueError("is not known where code and data share the lines")
        return value


class _Uart(_Table):
    driver: str
    base: int = Field(ge=0, lt=_ADDRESSES)
    baud: int = Field(DEFAULT_BAUD, ge=1200, le=10_000_000)
    tx: int | None = Field(None, validate_default=True)
    rx: int | None = Field(None, validate_default=True)
    spacing: int | None = Field(None, validate_default=True)

    @field_validator("tx", "rx", mode="plain")
    @classmethod
    def _pin(cls, text: object, info: ValidationInfo) -> int | None:
        """The pin's number as the driver takes it."""
        driver = info.data.get("driver", "")
        if driver not in _PIN_FORMS:
            if text is not None and driver in sum(_DRIVERS["uart"].values(), ()):
                raise ValueError("is not known here")
            return None
        if text is None:
            raise ValueError("is missing")
        form, example = _PIN_FORMS[driver]
        match = re.fullmatch(form, str(text))
        if match is None:
            raise ValueError(f"is {shown(text)}; a pin is written as in {example!r}")
        port, pin = match.groups()
        pins_a_port = 32 if port.isdigit() else 16
        if int(pin) >= pins_a_port:
            raise ValueError(f"is {shown(text)}, and a port has {pins_a_port} pins")
        return (int(port) if port.isdigit() else ord(port) - ord("A")) * pins_a_port + int(pin)

    @field_validator("spacing", mode="plain")
    @classmethod
    def _spacing(cls, value: object, info: ValidationInfo) -> int | None:
        """Bytes from one register to the next, of drivers that leave it to the board."""
        if info.data.get("driver") not in _SPACED:
            if value is not None:
                raise ValueError("is not known here")
            return None
        if value is None:
            return 1
        if isinstance(value, bool) or value not in (1, 2, 4):
            raise ValueError(f"is {value!r}; it is 1, 2 or 4")
        return int(str(value))


class _Counter(_Table):
    driver: str


class _Qemu(_Table):
    machine: QemuMachine
    args: QemuArguments = ()
    serial: int = Field(0, ge=0, le=15)
    counter_hz: int = Field(ge=1, le=1_000_000_000)


class _Renode(_Table):
    counter_hz: int = Field(ge=1, le=1_000_000_000)
    mips: int = Field(ge=1, le=100_000)


class _Simavr(_Table):
    mcu: Chip


class _PlatformIo(_Table):
    platform: Platform
    board: PlatformIoBoard
    framework: Annotated[str, one_of(("arduino", "zephyr"))] = ""


class _Arduino(_Table):
    fqbn: Fqbn


class _Zephyr(_Table):
    board: ZephyrBoard
    conf: Settings = ""
    overlay: Overlay = ""


class _File(_Table):
    title: Text
    vendor: OptionalText = ""
    url: Url = ""
    cpu: Annotated[str, one_of((*CPUS, *RUNS_CODE_OF))]
    features: frozenset[str] = Field(frozenset(), strict=False, validate_default=True)
    mcu: Chip = Field("", validate_default=True)
    clock_hz: int = Field(ge=1, le=2_000_000_000)
    stack_bytes: int = Field(ge=256, le=1 << 24)
    memory: _Memories
    flash: _Flash | None = None
    uart: _Uart | None = None
    counter: _Counter | None = None
    qemu: _Qemu | None = None
    renode: _Renode | None = None
    simavr: _Simavr | None = None
    platformio: _PlatformIo | None = None
    arduino: _Arduino | None = None
    zephyr: _Zephyr | None = None


def board_of(values: Mapping[str, Any], path: Path, text: str) -> Board:
    """The board that a file at `path` describes: its text, and the values in it.

    Raises BoardError with everything that is wrong.
    """
    file, problems = _read(values)
    lines = _lines(text)
    problems = [_with_line(problem, lines) for problem in problems]
    complaint = board_complaint(path.stem)
    if complaint is not None:
        problems.append(complaint)
    if file is None or problems:
        raise BoardError(
            what=f"mistakes in the board file: {len(problems)}\n{bullet_list(problems)}",
            where=str(path),
            hint=f"take one that comes with tinyet as a model, such as {assets.path('boards') / 'mps2_an386.toml'}",
        )
    memories, uart = file.memory.records(), file.uart
    return Board(
        name=path.stem,
        title=file.title,
        vendor=file.vendor,
        url=file.url,
        core=file.cpu,
        target=Target(
            RUNS_CODE_OF.get(file.cpu, file.cpu),
            file.features,
            file.mcu,
            _record(Flash, file.flash),
            file.cpu if file.cpu in RUNS_CODE_OF else "",
        ),
        clock_hz=file.clock_hz,
        flash=memories.pop("flash"),
        ram=memories.pop("ram"),
        vectors=memories.pop("vectors", None),
        extra_memories=tuple(memories.values()),
        stack_bytes=file.stack_bytes,
        uart=Uart(uart.driver, uart.base, uart.baud, uart.tx, uart.rx, uart.spacing) if uart else None,
        counter=file.counter.driver if file.counter else None,
        qemu=_record(Qemu, file.qemu),
        renode=_record(Renode, file.renode),
        simavr=_record(Simavr, file.simavr),
        platformio=_record(PlatformIo, file.platformio),
        arduino=_record(Arduino, file.arduino),
        zephyr=_record(Zephyr, file.zephyr),
    )


def _lines(text: str) -> dict[str, int]:
    """Line of each key, from 1, as far as simple TOML shows it: dotted key -> line."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        head = re.match(r"\s*\[([A-Za-z0-9_.-]+)\]", line)
        key = re.match(r"\s*([A-Za-z0-9_.-]+)\s*=", line)
        if head:
            table = f"{head[1]}."
            found.setdefault(head[1], number)
        elif key:
            found.setdefault(table + key[1], number)
    return found


def _with_line(problem: str, lines: Mapping[str, int]) -> str:
    """The problem, after the line of its key, or of the table that the key should be in."""
    key = problem.split(" ", 1)[0]
    while key and key not in lines:
        key = key.rpartition(".")[0]
    return f"line {lines[key]}: {problem}" if key else problem


def _record(kind: Callable[..., _Record], table: _Table | None) -> _Record | None:
    return None if table is None else kind(**table.model_dump())


def _read(values: Mapping[str, Any]) -> tuple[_File | None, list[str]]:
    """The file, where it has the right form, and all that is wrong with it."""
    right: dict[tuple[type[_Table], str], Any] = {}
    try:
        file, errors = _File.model_validate(values, context=right), []
    except ValidationError as error:
        file, errors = None, error.errors()
    unknown = [error["loc"] for error in errors if error["type"] == "extra_forbidden"]
    if not unknown:
        return file, [_sentence(error) for error in errors] + list(_contradictions(values, right))
    # A key that is not known spoils its table; without the key, the table is looked at as any other.
    known: Any = copy.deepcopy(values)
    for *tables, key in unknown:
        del functools.reduce(operator.getitem, tables, known)[key]
    return None, [f"{_dotted(key)} is not known here" for key in unknown] + _read(known)[1]


def _sentence(error: ErrorDetails) -> str:
    key = _dotted(error["loc"])
    match error["type"]:
        case "missing":
            return f"{key} is missing"
        case "model_type":
            return f"{key} must be a table"
        case "tuple_type" | "frozen_set_type":
            return f"{key} must be a list of strings"
        case "value_error":
            return f"{key} {error['ctx']['error']}"
    # pydantic says "Input should be a valid integer", "String should have at least 1 character".
    return f"{key} is {shown(error['input'])}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _dotted(key: tuple[int | str, ...]) -> str:
    return ".".join(printable(str(part)) for part in key)


def _contradictions(
    values: Mapping[str, Any], right: Mapping[tuple[type[_Table], str], Any]
) -> Iterator[str]:
    """Contradictions between keys: `values` has the tables of the file, `right` the values that are valid on their
    own."""
    for one, other in (("uart", "counter"), ("counter", "uart")):
        if other in values and one not in values:
            yield f"{one} is missing: a bare-metal board has uart and counter"
    if "uart" not in values:
        for emulator in ("qemu", "renode"):
            if emulator in values:
                yield f"{emulator} needs uart and counter: only bare-metal firmware is emulated"
        platformio = values.get("platformio")
        framework = isinstance(platformio, dict) and "framework" in platformio
        if not (framework or "arduino" in values or "zephyr" in values):
            yield "one of uart, platformio with a framework, arduino or zephyr must be there"

    cpu = right.get((_File, "cpu"))
    cpu = RUNS_CODE_OF.get(cpu, cpu) if cpu else None
    core = CPUS[cpu] if cpu else None
    for table, key in ((_Uart, "uart"), (_Counter, "counter")):
        driver = right.get((table, "driver"))
        drivers = _DRIVERS[key].get(core.family, ()) if core else sum(_DRIVERS[key].values(), ())
        if driver is not None and driver not in drivers:
            among = f"which is none of {', '.join(drivers)}" if drivers else f"and {cpu} has no driver"
            yield f"{key}.driver is {shown(driver)}, {among}"
    if core and "simavr" in values and core.family != "avr":
        yield f"simavr is not known for {cpu}: it simulates AVR"
    if core and (_File, "mcu") in right and core.has_mcu != bool(right[_File, "mcu"]):
        yield "mcu is missing: GCC wants it" if core.has_mcu else f"mcu is not known for {cpu}"
    if core and (_File, "features") in right:
        features = right[_File, "features"]
        for feature in sorted(core.always - features):
            yield f"features must contain {feature!r}: every {cpu} has it"
        for feature in sorted(features - core.always - core.optional):
            yield f"features contains {shown(feature)}, which no {cpu} has"
        if features <= core.always | core.optional and "fpu" in features:
            if core.family == "arm" and (cpu, "fpu64" in features) not in FPUS:
                yield f"features must contain 'fpu64' with 'fpu': the {cpu} has both or none"
        elif "fpu64" in features:
            yield "features contains 'fpu64' without 'fpu'"

    memories = right[_File, "memory"].records().values() if (_File, "memory") in right else ()
    if len(memories) > _MOST_MEMORIES:
        yield f"memory has {len(memories)} tables; {_MOST_MEMORIES} is the most"
        memories = ()
    for memory in memories:
        complaint = memory_complaint(memory.name)
        if complaint is not None:
            yield complaint
        if memory.end > _ADDRESSES:
            yield f"memory.{memory.name} ends behind the 32-bit address space"
        yield from _memory_contradictions(memory)
    # Where constants have an address space of their own, every address is in the flash and in the RAM.
    apart = {"vectors", "flash"} if core and "progmem" in core.always else {"vectors"}
    for one, two in itertools.combinations(memories, 2):
        if one.origin < two.end and two.origin < one.end and not {one.name, two.name} & apart:
            yield f"memory.{two.name} overlaps memory.{one.name}"
    stack_bytes = right.get((_File, "stack_bytes"), 0)
    if stack_bytes % 8:
        yield "stack_bytes must be a multiple of 8, as the procedure call standard wants of the stack"
    if memories and stack_bytes >= right[_File, "memory"].ram.bytes:
        yield f"stack_bytes leaves nothing of the {right[_File, 'memory'].ram.bytes} bytes of memory.ram"


def _memory_contradictions(memory: Memory) -> Iterator[str]:
    """Of one memory's keys."""
    if memory.name in ("auto", "arena"):
        yield f"memory.{memory.name} cannot be told from --place NAME={memory.name}: name it otherwise"
    if memory.name == "vectors" and memory != Memory(memory.name, memory.origin, memory.bytes, memory.access):
        yield "memory.vectors has an origin and bytes only: nothing but the vectors is put there"
    if memory.read_only and memory.write_waits is not None:
        yield f"memory.{memory.name}.write_waits is stated of a memory that is read_only"
    elif not memory.read_only and (memory.read_waits is None) != (memory.write_waits is None):
        missing = "read_waits" if memory.read_waits is None else "write_waits"
        yield f"memory.{memory.name}.{missing} is missing: an access of either kind takes its time"
    if memory.read_waits is None and (memory.family or memory.line_bytes != 4):
        stated = "family" if memory.family else "line_bytes"
        yield f"memory.{memory.name}.{stated} is of waits, and there are no read_waits"
