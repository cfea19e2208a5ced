# SPDX-License-Identifier: Apache-2.0
"""The frozen record of a board, and what follows from it: compiler flags, macros, sources of the firmware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tinyet.boards.cpus import Target, Toolchain
from tinyet.boards.flash import Flash
from tinyet.errors import BoardError

DEFAULT_BAUD = 115_200
"""The UART driver that is none: whoever holds the core, QEMU, carries blocks of bytes, and `base` is 0."""

_STACK_GUARD_BYTES = 1 << 16
_SMALLEST_REGION = 32
# What drivers share.
_UART_HEADERS: Mapping[str, tuple[str, ...]] = {
    "stm32f4": ("platform/tinyet_stm32_usart.h",),
    "stm32f7": ("platform/tinyet_stm32_usart.h",),
}


@dataclass(frozen=True)
class Memory:
    """A range of addresses. `bytes` is its size; `access` is "rx" or "rwx", as in a linker script.

    read_waits, write_waits: cycles that an access takes longer than one of the fastest memory; None where nobody has
    stated them. Those of the flash are in `Flash`. line_bytes: what one access brings. cached: through the core's data
    cache. dma: whether the DMA controllers reach it. family: whose figures these are, where they were not confirmed for
    the board's own chip. sections: by framework, the section of its linker script that lies here.
    """

    name: str
    origin: int
    bytes: int
    access: str
    read_waits: int | None = None
    write_waits: int | None = None
    line_bytes: int = 4
    cached: bool = False
    dma: bool = True
    family: str = ""
    sections: tuple[tuple[str, str], ...] = ()

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.origin + self.bytes

    @property
    def read_only(self) -> bool:
        """Whether it holds constants and code only."""
        return "w" not in self.access

    @property
    def section(self) -> str:
        """The section of tinyet's own linker scripts that lies here; none of the usual flash and RAM."""
        return f".tinyet.{self.name}"

    def section_of(self, framework: str) -> str | None:
        """The section of a framework's linker script that lies here; None where the board file names none."""
        return dict(self.sections).get(framework)


@dataclass(frozen=True)
class Uart:
    """The UART of the harness. Pins are numbers as the driver takes them; None where the board has fixed ones.
    `spacing` is bytes from one register to the next; None where the driver knows."""

    driver: str
    base: int
    baud: int
    tx_pin: int | None
    rx_pin: int | None
    spacing: int | None


@dataclass(frozen=True)
class Qemu:
    """The QEMU machine of the board and its options.

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
    """The Renode platform and script of the board: `renode/<board>.repl` and `.resc`.

    counter_hz: ticks of the counter a second of virtual time, as the platform says (systickFrequency).
    mips:       instructions in a microsecond of virtual time, as the script says (PerformanceInMips).
    """

    counter_hz: int
    mips: int


@dataclass(frozen=True)
class Simavr:
    """How simavr has the board. mcu: the chip that it simulates, as GCC names it: of the board's own core, and with the
    serial port and registers where the board's has them; it may have more memory, for the harness takes some."""

    mcu: str


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
        """The core's package in the Boards Manager: package:architecture."""
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

    `core` is the core by its own name, `target` what code is generated and compiled for: its `cpu` is another where the
    compiler does not know this core.

    `flash` holds code and constants, as much of it as an application can have; `ram` everything else;
    `vectors` is the memory the core boots from where that is not the flash; `extra_memories` are further RAMs, and
    memories of constants, that sections named `.tinyet.<memory>` go to. `uart` and `counter` are there for bare-metal
    boards, those that tinyet has startup code for; the others are reached through a framework.
    """

    name: str
    title: str
    vendor: str
    url: str
    core: str
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
    simavr: Simavr | None
    platformio: PlatformIo | None
    arduino: Arduino | None
    zephyr: Zephyr | None

    @property
    def cpu(self) -> str:
        """The core whose code it runs, as the compiler names it."""
        return self.target.cpu

    @property
    def isa(self) -> str:
        """Its instruction set, as the architecture's manual writes it."""
        return self.target.isa

    @property
    def flash_timing(self) -> Flash | None:
        """How the flash waits; None where the file says nothing of it."""
        return self.target.flash

    @property
    def bare_metal(self) -> bool:
        """Whether tinyet has startup code, a UART and a counter for the board."""
        return self.uart is not None

    @property
    def baud(self) -> int:
        """Bits per second of the harness's serial port."""
        return DEFAULT_BAUD if self.uart is None else self.uart.baud

    @property
    def stack_guard_bytes(self) -> int:
        """Bytes right below the RAM, where the stack begins, that belong to none of the board's memories: a power of
        two at a multiple of itself, as a memory protection unit wants it, or 0."""
        memories = [
            memory for memory in (self.flash, self.vectors, *self.extra_memories) if memory is not None
        ]
        size, end = _STACK_GUARD_BYTES, self.ram.origin
        while size >= _SMALLEST_REGION:
            taken = any(memory.origin < end and memory.end > end - size for memory in memories)
            if end % size == 0 and end >= size and not taken:
                return size
            size //= 2
        return 0

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
        own = (("qemu", self.qemu), ("renode", self.renode), ("simavr", self.simavr))
        return tuple(name for name, has in own if has)

    @property
    def emulator(self) -> str:
        """The first of them; QEMU, which says that it has no such machine, where there is none."""
        return self.emulators[0] if self.emulators else "qemu"

    @property
    def compiled_alone(self) -> bool:
        """Whether a harness for an emulator is made by the compiler alone, without a framework."""
        return self.bare_metal or self.simavr is not None

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
        if self.uart.spacing is not None:
            pairs.append(("TINYET_UART_SPACING", f"{self.uart.spacing}u"))
        return tuple(pairs)

    @property
    def support_sources(self) -> tuple[str, ...]:
        """The C files every bare-metal firmware for this board includes, relative to the `firmware` directory."""
        if self.uart is None:
            return ()
        startup = "" if self.target.family == "arm" else f"_{self.target.family}"
        library = "" if self.target.family == "arm" else "_picolibc"
        return (
            f"platform/tinyet_startup{startup}.c",
            "platform/tinyet_stream.c",
            f"platform/tinyet_syscalls{library}.c",
            f"platform/tinyet_counter_{self.counter}.c",
            f"platform/tinyet_uart_{self.uart.driver}.c",
            *(("platform/tinyet_arithmetic_lx106.c",) if self.cpu == "xtensa-lx106" else ()),
        )

    @property
    def harness_sources(self) -> tuple[str, ...]:
        """The C files of the harness, relative to the `firmware` directory. On a bare-metal board one of them reports
        faults of the core, and where QEMU has the board one carries the stream there."""
        suffix = "" if self.target.family == "arm" else f"_{self.target.family}"
        return (
            "harness/main.c",
            "harness/tinyet_harness.c",
            *((f"harness/tinyet_fault{suffix}.c",) if self.bare_metal else ()),
            *(("harness/tinyet_semihosting.c",) if self.bare_metal and self.qemu is not None else ()),
        )

    @property
    def support_headers(self) -> tuple[str, ...]:
        """The headers of `support_sources`, relative to the `firmware` directory."""
        if self.uart is None:
            return ()
        shared = _UART_HEADERS.get(self.uart.driver, ())
        return ("include/tinyet_platform.h", "platform/tinyet_board.h", *shared)
