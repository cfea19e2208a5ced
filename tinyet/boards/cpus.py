# SPDX-License-Identifier: Apache-2.0
"""Processor cores: their families, instruction sets and optional features, and how GCC is called for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tinyet.boards.flash import Flash

Family = Literal["arm", "avr", "riscv", "xtensa"]

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Cpu:
    """A core.

    isa:      its instruction set, as its architecture's manual writes it.
    always:   features that each of them has; optional: features that its maker may leave out.
    has_mcu:  GCC must also be told the chip (`mcu` in the board file).
    """

    family: Family
    isa: str
    always: frozenset[str] = _NONE
    optional: frozenset[str] = _NONE
    has_mcu: bool = False


# The features: dsp (packed 16-bit arithmetic of Cortex-M), fpu (single precision), fpu64 (double precision),
# mve (Helium), progmem (constants are in an address space of their own, reached by instructions of their own).
CPUS: Mapping[str, Cpu] = {
    "cortex-m0": Cpu("arm", "Armv6-M"),
    "cortex-m0plus": Cpu("arm", "Armv6-M"),
    "cortex-m3": Cpu("arm", "Armv7-M"),
    "cortex-m4": Cpu("arm", "Armv7E-M", frozenset({"dsp"}), frozenset({"fpu"})),
    "cortex-m7": Cpu("arm", "Armv7E-M", frozenset({"dsp"}), frozenset({"fpu", "fpu64"})),
    "cortex-m33": Cpu("arm", "Armv8-M", _NONE, frozenset({"dsp", "fpu"})),
    "cortex-m55": Cpu("arm", "Armv8.1-M", frozenset({"dsp"}), frozenset({"fpu", "fpu64", "mve"})),
    "avr5": Cpu("avr", "AVRe+", frozenset({"progmem"}), has_mcu=True),
    "rv32imc": Cpu("riscv", "RV32IMC"),
    "rv32imac": Cpu("riscv", "RV32IMAC"),
    "xtensa-lx106": Cpu("xtensa", "Xtensa LX106"),
    "xtensa-lx6": Cpu("xtensa", "Xtensa LX6", frozenset({"fpu"})),
    "xtensa-lx7": Cpu("xtensa", "Xtensa LX7", frozenset({"fpu"})),
}

# A core that the compiler does not know → the one whose code it runs, and whose name the compiler has.
RUNS_CODE_OF: Mapping[str, str] = {"cortex-m85": "cortex-m55"}

# Clang's objects say that they need no executable stack, those of GCC's libraries say nothing of it.
CLANG_LINK_FLAGS = ("-Wl,-z,noexecstack",)

# (cpu, has double precision) -> GCC's name of the FPU.
FPUS: Mapping[tuple[str, bool], str] = {
    ("cortex-m4", False): "fpv4-sp-d16",
    ("cortex-m7", False): "fpv5-sp-d16",
    ("cortex-m7", True): "fpv5-d16",
    ("cortex-m33", False): "fpv5-sp-d16",
    ("cortex-m55", True): "auto",
}


@dataclass(frozen=True)
class Toolchain:
    """The tools that compile a firmware without an operating system for a family, or for a core with its own
    compiler.

    prefix:        of the tools' names, as in arm-none-eabi-gcc.
    library_flags: that choose the C library, for compiling (where its headers are) and for linking.
    qemu:          the emulator's program, or None.
    optimization:  the compiler's level where no other is asked for; on AVR that of Arduino and PlatformIO.
    """

    prefix: str
    library_flags: tuple[str, ...]
    qemu: str | None
    optimization: str = "-O2"

    @property
    def compiler(self) -> str:
        return f"{self.prefix}gcc"


# Of Xtensa, whose cores are configured one by one, each has a compiler of its own: those of LX6 and LX7 come with
# Espressif's build systems only, so they have no entry.
TOOLCHAINS: Mapping[str, Toolchain] = {
    "arm": Toolchain("arm-none-eabi-", ("--specs=nano.specs",), "qemu-system-arm"),
    "avr": Toolchain("avr-", (), None, "-Os"),
    "riscv": Toolchain("riscv64-unknown-elf-", ("--specs=picolibc.specs",), "qemu-system-riscv32"),
    "xtensa-lx106": Toolchain("xtensa-lx106-elf-", (), "qemu-system-xtensa"),
}


@dataclass(frozen=True)
class Target:
    """The target of code generation: the core, its optional features, and the chip where GCC needs it. flash: how the
    memory that code and constants are in lets the core wait; None where nobody says it. timed_as: the core by whose
    model cycles are stated, where that is another than `cpu`, whose code it runs."""

    cpu: str
    features: frozenset[str]
    mcu: str = ""
    flash: Flash | None = None
    timed_as: str = ""

    @property
    def family(self) -> Family | Literal["host"]:
        """Whose instructions it has, and with them which of the library's assembly; "host" where the core is none of
        the table, as that of this machine."""
        return CPUS[self.cpu].family if self.cpu in CPUS else "host"

    @property
    def isa(self) -> str:
        return CPUS[self.cpu].isa

    @property
    def pointer_bytes(self) -> int:
        """Of a pointer in a struct; also where operators are tried on this machine, as on a core of 32 bits."""
        return 2 if self.family == "avr" else 4

    @property
    def toolchain(self) -> Toolchain | None:
        return TOOLCHAINS.get(self.family, TOOLCHAINS.get(self.cpu))

    @property
    def machine_flags(self) -> tuple[str, ...]:
        """GCC's flags for the core, for compiling and for linking."""
        match self.family:
            case "arm":
                return self._arm_flags
            case "avr":
                return (f"-mmcu={self.mcu}",)
            case "riscv":
                # 32-bit code from a compiler whose own default is 64 bits; jumps and data lie within 2 GB of another.
                return (f"-march={self.cpu}", "-mabi=ilp32", "-mcmodel=medany")
            case "xtensa":
                # Constants lie beside the code that loads them. Calls reach 512 KB, enough for all code of a firmware.
                return ("-mtext-section-literals",)
            case "host":
                return ()

    @property
    def clang_flags(self) -> tuple[str, ...] | None:
        """Clang's flags for the core, for compiling; None where GCC alone is used."""
        if self.family != "arm":
            return None
        # "auto" is GCC's word for what Clang does by itself. GCC's libraries have short enums.
        flags = tuple(flag for flag in self._arm_flags if flag != "-mfpu=auto")
        return ("--target=arm-none-eabi", *flags, "-fshort-enums")

    @property
    def _arm_flags(self) -> tuple[str, ...]:
        cpu = self.cpu
        if cpu == "cortex-m33" and "dsp" not in self.features:
            cpu += "+nodsp"
        if cpu == "cortex-m55":
            # Helium's float vectors, which compilers use by themselves, take subnormal numbers for zero.
            cpu += "+nomve.fp" if "mve" in self.features else "+nomve"
        if "fpu" not in self.features:
            return ("-mthumb", f"-mcpu={cpu}", "-mfloat-abi=soft")
        fpu = FPUS[self.cpu, "fpu64" in self.features]
        return ("-mthumb", f"-mcpu={cpu}", "-mfloat-abi=hard", f"-mfpu={fpu}")


HOST = Target("host", frozenset())
"""This machine, without extensions: no core of the table, so kernels know no cost on it."""
