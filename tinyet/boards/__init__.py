# SPDX-License-Identifier: Apache-2.0
"""Boards: what a firmware must know of the machine it runs on, read from one TOML file a board.

The boards that come with tinyet are in the `boards` directory; a user's own board is a file of the same
form, named by its path. Any of the files shows the form; `_read_board` and what it calls are its definition.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tinyet import assets
from tinyet.boards.cpus import CPUS, FPUS, Target, Toolchain
from tinyet.errors import BoardError, bullet_list

# The drivers of bare-metal boards, by family: firmware/platform/tinyet_uart_<name>.c, tinyet_counter_<name>.c.
_UART_DRIVERS: Mapping[str, tuple[str, ...]] = {
    "arm": ("cmsdk", "stm32f4", "stm32f7", "nrf51"),
    "riscv": ("ns16550",),
}
_COUNTER_DRIVERS: Mapping[str, tuple[str, ...]] = {"arm": ("systick", "nrf51"), "riscv": ("riscv",)}
_FRAMEWORKS = ("arduino", "zephyr")
_DEFAULT_BAUD = 115_200
# Drivers whose pins are chosen by software, and how the board file writes a pin.
_PIN_FORMS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "stm32f4": (re.compile(r"P([A-I])(\d{1,2})"), "PA2"),
    "stm32f7": (re.compile(r"P([A-K])(\d{1,2})"), "PA9"),
    "nrf51": (re.compile(r"P([01])\.(\d{1,2})"), "P0.24"),
}
# What drivers share.
_UART_HEADERS: Mapping[str, tuple[str, ...]] = {
    "stm32f4": ("platform/tinyet_stm32_usart.h",),
    "stm32f7": ("platform/tinyet_stm32_usart.h",),
}

# How the tools write a name, and an example of it.
_PLATFORMIO_NAME = (re.compile(r"[A-Za-z0-9_@:/.+#-]+"), "nucleo_f446re")
_FQBN = (re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+(:[\w.,=-]+)?"), "arduino:mbed_nano:nano33ble")
_ZEPHYR_NAME = (re.compile(r"[\w.-]+(@[\w.]+)?(/[\w.-]*)*"), "nrf5340dk/nrf5340/cpuapp")


@dataclass(frozen=True)
class Memory:
    """A range of addresses. `bytes` is its size; `access` is "rx" or "rwx", as in a linker script."""

    name: str
    origin: int
    bytes: int
    access: str

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.origin + self.bytes


@dataclass(frozen=True)
class Uart:
    """The UART of the harness. Pins are numbers as the driver takes them; None where the board has fixed
    ones."""

    driver: str
    base: int
    baud: int
    tx_pin: int | None
    rx_pin: int | None


@dataclass(frozen=True)
class Qemu:
    """How QEMU runs the board.

    serial:     index of the UART among QEMU's serial ports.
    counter_hz: ticks of the board's counter a second of QEMU's virtual time. It is the emulated machine's own
                figure, which may differ from the clock that the firmware has set up.
    """

    machine: str
    args: tuple[str, ...]
    serial: int
    counter_hz: int


@dataclass(frozen=True)
class Renode:
    """How Renode runs the board: its platform and script are `renode/<board>.repl` and `.resc`.

    counter_hz: ticks of the counter a second of virtual time, as the platform says (systickFrequency).
    mips:       instructions in a microsecond of virtual time, as the script says (PerformanceInMips).
    """

    counter_hz: int
    mips: int


@dataclass(frozen=True)
class PlatformIo:
    """The hardware's name in PlatformIO's registry. `framework` (arduino, zephyr) is what firmware for it is built
    on there; empty for a board that only tinyet's own startup code is used for."""

    platform: str
    board: str
    framework: str


@dataclass(frozen=True)
class Arduino:
    """The board's fully qualified name for the Arduino tools: package:architecture:board."""

    fqbn: str

    @property
    def architecture(self) -> str:
        return self.fqbn.split(":")[1]

    @property
    def core(self) -> str:
        """What the Boards Manager installs: package:architecture."""
        return ":".join(self.fqbn.split(":")[:2])


@dataclass(frozen=True)
class Zephyr:
    """The board's name for `west build -b`, and what an application needs on it beyond the board's own defaults.

    conf: lines of Kconfig, overlay: devicetree source; empty where nothing is needed.
    """

    board: str
    conf: str
    overlay: str


@dataclass(frozen=True)
class Board:
    """A board. `clock_hz` is what the core runs at: on a bare-metal board with tinyet's startup code, otherwise as its
    framework sets it.

    `flash` holds code and constants, as much of it as an application can have; `ram` everything else;
    `vectors` is the memory the core boots from where that is not the flash; `extra_memories` are further RAMs
    that sections named `.tinyet.<memory>` go to. `uart` and `counter` are there for bare-metal boards, those
    that tinyet has startup code for; the others are reached through a framework.
    """

    name: str
    title: str
    vendor: str
    url: str
    target: Target
    clock_hz: int
    flash: Memory
    ram: Memory
    vectors: Memory | None
    extra_memories: tuple[Memory, ...]
    stack_bytes: int
    uart: Uart | None
    counter: str | None
    qemu: Qemu | None
    renode: Renode | None
    platformio: PlatformIo | None
    arduino: Arduino | None
    zephyr: Zephyr | None

    @property
    def cpu(self) -> str:
        return self.target.cpu

    @property
    def isa(self) -> str:
        return self.target.isa

    @property
    def bare_metal(self) -> bool:
        """Whether tinyet has startup code, a UART and a counter for the board."""
        return self.uart is not None

    @property
    def baud(self) -> int:
        """Bits per second of the harness's serial port."""
        return _DEFAULT_BAUD if self.uart is None else self.uart.baud

    @property
    def toolchain(self) -> Toolchain:
        """The compiler of the board's family. Raises BoardError where only the framework's own build has one."""
        found = self.target.toolchain
        if found is None:
            raise BoardError(
                what=f"there is no compiler of its own for {self.cpu}",
                where=self.name,
                hint="build a project of the kind arduino, zephyr or platformio: they bring one",
            )
        return found

    @property
    def emulators(self) -> tuple[str, ...]:
        """The emulators that have this board, the fastest first."""
        return tuple(name for name, has in (("qemu", self.qemu), ("renode", self.renode)) if has)

    @property
    def machine_flags(self) -> tuple[str, ...]:
        """GCC's flags for the core, for compiling and for linking."""
        return self.target.machine_flags

    @property
    def defines(self) -> tuple[tuple[str, str], ...]:
        """Macros that the files of `support_sources` are compiled with."""
        if self.uart is None:
            return ()
        pairs = [
            ("TINYET_CLOCK_HZ", f"{self.clock_hz}u"),
            ("TINYET_UART_BASE", f"0x{self.uart.base:08X}"),
            ("TINYET_UART_BAUD", f"{self.uart.baud}u"),
        ]
        if self.uart.tx_pin is not None and self.uart.rx_pin is not None:
            pairs += [
                ("TINYET_UART_TX_PIN", f"{self.uart.tx_pin}u"),
                ("TINYET_UART_RX_PIN", f"{self.uart.rx_pin}u"),
            ]
        return tuple(pairs)

    @property
    def support_sources(self) -> tuple[str, ...]:
        """The C files every bare-metal firmware for this board includes, relative to the `firmware` directory."""
        if self.uart is None:
            return ()
        startup = "" if self.target.family == "arm" else f"_{self.target.family}"
        library = "_picolibc" if self.target.family == "riscv" else ""
        return (
            f"platform/tinyet_startup{startup}.c",
            "platform/tinyet_stream.c",
            f"platform/tinyet_syscalls{library}.c",
            f"platform/tinyet_counter_{self.counter}.c",
            f"platform/tinyet_uart_{self.uart.driver}.c",
        )

    @property
    def harness_sources(self) -> tuple[str, ...]:
        """The C files of the harness, relative to the `firmware` directory. On a bare-metal board one of them reports
        faults of the core."""
        fault = {"arm": ("harness/tinyet_fault.c",), "riscv": ("harness/tinyet_fault_riscv.c",)}
        return (
            "harness/main.c",
            "harness/tinyet_harness.c",
            *(fault.get(self.target.family, ()) if self.bare_metal else ()),
        )

    @property
    def support_headers(self) -> tuple[str, ...]:
        """The headers of `support_sources`, relative to the `firmware` directory."""
        if self.uart is None:
            return ()
        shared = _UART_HEADERS.get(self.uart.driver, ())
        return ("include/tinyet_platform.h", "platform/tinyet_board.h", *shared)


def board_names() -> tuple[str, ...]:
    """The names of the boards that come with tinyet, sorted."""
    return tuple(sorted(path.stem for path in _directory().glob("*.toml")))


def all_boards() -> tuple[Board, ...]:
    """The boards that come with tinyet, by name."""
    return tuple(load_board(name) for name in board_names())


def load_board(name_or_path: str | Path) -> Board:
    """Return a board by its name, or read a user's own from a .toml file; the file's stem is its name.

    Raises BoardError: an unknown name (with the nearest ones), a file that cannot be read, or everything
    that is wrong with it.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text or "\\" in text:
        return _read_board(Path(name_or_path))
    names = board_names()
    if text not in names:
        near = difflib.get_close_matches(text, names, n=3, cutoff=0.4)
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        raise BoardError(
            what=f"there is no board {text!r}",
            hint=f"{guess}boards: {', '.join(names)}; or give the path of your own board's .toml file",
        )
    return _read_board(_directory() / f"{text}.toml")


def _directory() -> Path:
    return assets.path("boards")


class _Table:
    """A TOML table that notes what is wrong with it instead of stopping, and what nobody has asked for."""

    def __init__(self, values: Mapping[str, object], path: str, problems: list[str]) -> None:
        self._values = dict(values)
        self._path = path
        self.problems = problems

    def complain(self, key: str, text: str) -> None:
        self.problems.append(f"{self._path}{key} {text}")

    def remaining(self) -> tuple[str, ...]:
        return tuple(self._values)

    def string(self, key: str, default: str | None = None) -> str:
        value = self._values.pop(key, default)
        if isinstance(value, str) and (value or default is not None):
            return value
        self.complain(key, "is missing" if value is None else "must be a non-empty string")
        return ""

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self.string(key)
        if value and value not in choices:
            self.complain(key, f"is {value!r}, which is none of {', '.join(choices)}")
        return value

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = self._values.pop(key, default)
        if value is None:
            self.complain(key, "is missing")
            return low
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self.complain(key, f"must be a whole number from {low} to {high:#x}")
            return low
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        value = self._values.pop(key, [])
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self.complain(key, "must be a list of strings")
        return ()

    def optional(self, key: str) -> _Table | None:
        value = self._values.pop(key, None)
        if value is None:
            return None
        if isinstance(value, dict):
            return _Table(value, f"{self._path}{key}.", self.problems)
        self.complain(key, "must be a table")
        return None

    def table(self, key: str) -> _Table:
        if key not in self._values:
            self.complain(key, "is missing")
        return self.optional(key) or _Table({}, f"{self._path}{key}.", [])

    def done(self) -> None:
        """Complain about what is left over: a misspelt key would otherwise be ignored in silence."""
        for key in self._values:
            self.complain(key, "is not known here")


def _read_board(path: Path) -> Board:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BoardError(
            what=f"the board file cannot be read: {error.strerror}",
            where=str(path),
            hint=f"boards that need no file: {', '.join(board_names())}",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BoardError(what=f"the board file is not TOML: {error}", where=str(path)) from error
    problems: list[str] = []
    root = _Table(values, "", problems)
    target = _read_target(root)
    memories = _read_memories(root, target)
    board = Board(
        name=path.stem,
        title=root.string("title"),
        vendor=root.string("vendor", default=""),
        url=root.string("url", default=""),
        target=target,
        clock_hz=root.integer("clock_hz", 1, 2_000_000_000),
        flash=memories.pop("flash"),
        ram=memories.pop("ram"),
        vectors=memories.pop("vectors", None),
        extra_memories=tuple(memories.values()),
        stack_bytes=root.integer("stack_bytes", 256, 1 << 24),
        uart=_read_uart(root.optional("uart"), target),
        counter=_read_counter(root.optional("counter"), target),
        qemu=_read_qemu(root.optional("qemu")),
        renode=_read_renode(root.optional("renode")),
        platformio=_read_platformio(root.optional("platformio")),
        arduino=_read_arduino(root.optional("arduino")),
        zephyr=_read_zephyr(root.optional("zephyr")),
    )
    root.done()
    for name, has, other in (("uart", board.uart, board.counter), ("counter", board.counter, board.uart)):
        if has is None and other is not None:
            problems.append(f"{name} is missing: a bare-metal board has uart and counter")
    if board.uart is None:
        problems += [
            f"{name} needs uart and counter: only bare-metal firmware is emulated" for name in board.emulators
        ]
        if not (board.platformio and board.platformio.framework) and not board.arduino and not board.zephyr:
            problems.append("one of uart, platformio with a framework, arduino or zephyr must be there")
    if board.stack_bytes % 8:
        problems.append(
            "stack_bytes must be a multiple of 8, as the procedure call standard wants of the stack"
        )
    if board.stack_bytes >= board.ram.bytes > 0:
        problems.append(f"stack_bytes leaves nothing of the {board.ram.bytes} bytes of memory.ram")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", board.name):
        problems.append(f"the file's name {path.name!r} must be lower-case letters, digits and _, then .toml")
    if problems:
        raise BoardError(
            what=f"mistakes in the board file: {len(problems)}\n{bullet_list(problems)}",
            where=str(path),
            hint=f"take one that comes with tinyet as a model, such as {_directory() / 'mps2_an386.toml'}",
        )
    return board


def _read_target(root: _Table) -> Target:
    cpu = root.choice("cpu", tuple(CPUS))
    features = frozenset(root.strings("features"))
    mcu = root.string("mcu", default="")
    if cpu in CPUS:
        always, optional = CPUS[cpu].always, CPUS[cpu].optional
        if CPUS[cpu].has_mcu != bool(mcu):
            root.complain("mcu", "is missing: GCC wants it" if not mcu else f"is not known for {cpu}")
        for feature in sorted(always - features):
            root.complain("features", f"must contain {feature!r}: every {cpu} has it")
        for feature in sorted(features - always - optional):
            root.complain("features", f"contains {feature!r}, which no {cpu} has")
        if features <= always | optional and "fpu" in features:
            if CPUS[cpu].family == "arm" and (cpu, "fpu64" in features) not in FPUS:
                root.complain("features", f"must contain 'fpu64' with 'fpu': the {cpu} has both or none")
        elif "fpu64" in features:
            root.complain("features", "contains 'fpu64' without 'fpu'")
    return Target(cpu, features, mcu)


def _read_memories(root: _Table, target: Target) -> dict[str, Memory]:
    # Where constants have an address space of their own, every address is in the flash and in the RAM.
    apart = ("vectors", "flash") if "progmem" in target.features else ("vectors",)
    table = root.table("memory")
    memories: dict[str, Memory] = {}
    for name in ("flash", "ram", *(key for key in table.remaining() if key not in ("flash", "ram"))):
        entry = table.table(name)
        access = "rx" if name in ("flash", "vectors") else "rwx"
        memory = Memory(
            name, entry.integer("origin", 0, 0xFFFFFFFF), entry.integer("bytes", 1, 1 << 32), access
        )
        entry.done()
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            table.complain(name, "must be lower-case letters, digits and _")
        if memory.end > 1 << 32:
            table.complain(name, "ends behind the 32-bit address space")
        for other in memories.values():
            if (
                memory.origin < other.end
                and other.origin < memory.end
                and not {name, other.name} & set(apart)
            ):
                table.complain(name, f"overlaps memory.{other.name}")
        memories[name] = memory
    return memories


def _read_uart(table: _Table | None, target: Target) -> Uart | None:
    if table is None:
        return None
    driver = table.choice("driver", _drivers(_UART_DRIVERS, target))
    base = table.integer("base", 0, 0xFFFFFFFF)
    baud = table.integer("baud", 1200, 10_000_000, default=_DEFAULT_BAUD)
    pins: list[int | None] = [None, None]
    if driver in _PIN_FORMS:
        pins = [_read_pin(table, key, *_PIN_FORMS[driver]) for key in ("tx", "rx")]
    table.done()
    return Uart(driver, base, baud, pins[0], pins[1])


def _read_pin(table: _Table, key: str, form: re.Pattern[str], example: str) -> int:
    text = table.string(key)
    match = form.fullmatch(text)
    if match is None:
        if text:
            table.complain(key, f"is {text!r}; a pin is written as in {example!r}")
        return 0
    port, pin = match.groups()
    pins_a_port = 32 if port.isdigit() else 16
    if int(pin) >= pins_a_port:
        table.complain(key, f"is {text!r}, and a port has {pins_a_port} pins")
    return (int(port) if port.isdigit() else ord(port) - ord("A")) * pins_a_port + int(pin)


def _drivers(drivers: Mapping[str, tuple[str, ...]], target: Target) -> tuple[str, ...]:
    return drivers.get(target.family, ()) if target.cpu in CPUS else sum(drivers.values(), ())


def _read_counter(table: _Table | None, target: Target) -> str | None:
    if table is None:
        return None
    driver = table.choice("driver", _drivers(_COUNTER_DRIVERS, target))
    table.done()
    return driver


def _read_qemu(table: _Table | None) -> Qemu | None:
    if table is None:
        return None
    qemu = Qemu(
        machine=table.string("machine"),
        args=table.strings("args"),
        serial=table.integer("serial", 0, 15, default=0),
        counter_hz=table.integer("counter_hz", 1, 1_000_000_000),
    )
    table.done()
    return qemu


def _read_renode(table: _Table | None) -> Renode | None:
    if table is None:
        return None
    renode = Renode(
        counter_hz=table.integer("counter_hz", 1, 1_000_000_000),
        mips=table.integer("mips", 1, 100_000),
    )
    table.done()
    return renode


def _read_platformio(table: _Table | None) -> PlatformIo | None:
    if table is None:
        return None
    names = PlatformIo(
        _name(table, "platform", _PLATFORMIO_NAME),
        _name(table, "board", _PLATFORMIO_NAME),
        table.choice("framework", _FRAMEWORKS) if "framework" in table.remaining() else "",
    )
    table.done()
    return names


def _read_arduino(table: _Table | None) -> Arduino | None:
    if table is None:
        return None
    arduino = Arduino(_name(table, "fqbn", _FQBN))
    table.done()
    return arduino


def _read_zephyr(table: _Table | None) -> Zephyr | None:
    if table is None:
        return None
    zephyr = Zephyr(
        _name(table, "board", _ZEPHYR_NAME),
        table.string("conf", default=""),
        table.string("overlay", default=""),
    )
    table.done()
    return zephyr


def _name(table: _Table, key: str, form: tuple[re.Pattern[str], str]) -> str:
    text = table.string(key)
    if text and not form[0].fullmatch(text):
        table.complain(key, f"is {text!r}; it is written as in {form[1]!r}")
    return text
