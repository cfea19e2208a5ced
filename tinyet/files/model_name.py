# SPDX-License-Identifier: Apache-2.0
"""The rule for a model's name. It names files, functions, macros, a library and build targets, so it must not clash
with any name of a system or of its tools.

C's keywords are no obstacle: the name is always a part of an identifier, or a file's name.
"""

from __future__ import annotations

import re

from tinyet.errors import UsageError
from tinyet.errors.arguments import text_given

_LONGEST = 63
_ENDING = "_model"

# <name>.h would be found in place of these: of C, C++ and POSIX, of the compilers' and C libraries' own, of Arduino's
# cores and libraries, of CMSIS and Zephyr. Upper and lower case are the same on many disks.
_HEADERS = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
stdbit stdbool stdckdint stdcountof stddef stdint stdio stdlib stdmchar stdnoreturn string tgmath threads time
uchar wchar wctype

aio cpio dirent dlfcn endian fcntl fmtmsg fnmatch ftw getopt glob grp iconv langinfo libgen libintl monetary
mqueue ndbm netdb nl_types poll pthread pwd regex sched search semaphore spawn strings stropts syslog tar
termios trace ulimit unistd utime utmpx wordexp

_ansi _newlib_version _syslist alloca ar argz byteswap cmse cpuid elf envlock envz err error execinfo fastmath
features fpu_control fstab gcov ieeefp ifaddrs inttypes link malloc memory mntent newlib nlist obstack omp paths
picolibc picotls pie printf process pty quadmath rdestl re_comp reent regdef regexp resolv semihost sgtty shadow
stab stdfix stdio_ext syscall sysexits termio thread_db ttyent ucontext unctrl unwind utmp values varargs wait
xlocale arm_acle arm_bf16 arm_cde arm_cmse arm_fp16 arm_mve arm_mve_types arm_neon arm_sve immintrin mm_malloc
x86intrin xmmintrin

arduino arduino_debug_utils bleperipheral bridge capacitivesensor client deprecated ds eeprom esp ethernet
firmata gsm hid hardwareserial httpclient interrupt ipaddress keyboard liquidcrystal mbed mouse new pdm
pins_arduino pluggableusb pprintf print printable rtc sd scheduler serial server servo softwareserial spi
stepper stream tft timer tone udp usbapi usbcore usbdesc usbhost variant wcharacter wiring wiring_private wifi
wire wmath wprogram wstring

arm_math arm_nnfunctions arm_nnsupportfunctions autoconf cmsis_compiler cmsis_gcc cmsis_os cmsis_version
core_cm0 core_cm0plus core_cm3 core_cm4 core_cm7 core_cm33 core_cm55 device irq kernel kernel_structs
posix_board_if soc version zephyr
"""
# Their files cannot be made, or opened, on Windows.
_DEVICES = "aux con conin conout nul prn " + " ".join(
    f"{port}{i}" for port in ("com", "lpt") for i in range(10)
)
# Targets that CMake has in every build; `-l<name>` of toolchains, which a library of ours would stand for.
_TARGETS = """
all all_build clean cmake_check_build_system cmake_force codegen continuous default_target depend edit_cache
experimental help install nightly nightlymemorycheck package package_source preinstall rebuild_cache run_tests test
zero_check
"""
_LIBRARIES = "atomic bsp c crypt dl g gcc m nano nosys pthread rdimon resolv rt semihost stdc supc util"
# Of the project's own: the firmware's files, and functions of the application's.
_OWN = "harness main model_desc print_outputs sample"
_OWN_FUNCTIONS = frozenset(
    {
        "print",
        "print_integer",
        "print_real",
        "fill_inputs",
        "push_inputs",
        "print_output_0",
        "read_sensor",
        "read_row",
        "push_row",
    }
)
# Words of CMake's commands, and the beginnings of its variables, as they are spelt.
_CMAKE_WORDS = frozenset(
    [
        "ALIAS",
        "ARCHIVE",
        "BUNDLE",
        "CMAKE",
        "COMPONENT",
        "CONFIGURATIONS",
        "DESCRIPTION",
        "DESTINATION",
        "DIRECTORY",
        "EXCLUDE_FROM_ALL",
        "EXPORT",
        "FILE",
        "FILES",
        "GLOBAL",
        "HOMEPAGE_URL",
        "IMPORTED",
        "INCLUDES",
        "INTERFACE",
        "LANGUAGES",
        "LIBRARY",
        "MODULE",
        "NAMESPACE",
        "OBJECT",
        "OBJECTS",
        "OPTIONAL",
        "PRIVATE",
        "PROGRAMS",
        "PROJECT",
        "PUBLIC",
        "RUNTIME",
        "SHARED",
        "STATIC",
        "TARGETS",
        "UNKNOWN",
        "VERSION",
    ]
)

# What every second file, class or folder of a model is called.
_SAYS_NOTHING = frozenset(
    {"app", "code", "example", "examples", "main", "model", "models", "module", "my_model", "src"}
)
_NO_CLASS = _SAYS_NOTHING | {"my_net", "net", "network"}

_TAKEN = (
    (frozenset(_DEVICES.split()), "Windows has no files of this name"),
    (frozenset(_TARGETS.split()), "CMake has a target of this name"),
    (frozenset(_LIBRARIES.split()), "toolchains have a library of this name"),
    (frozenset(_OWN.split()), "a file of the generated projects is called so"),
    (
        frozenset(_HEADERS.split()),
        "there is a header of this name that C, a C library or a framework includes",
    ),
)


def interface(name: str, inputs: int, outputs: int, states: int = 0) -> frozenset[str]:
    """The declarations of the model `name` in its public header."""
    words = ["arena", "run", "init", "push_rows", "restart_rows", "quantize_row", "image", "advance"]
    words += ["context", "layers", "identity", "is", "check_constants", "selftest"]
    words += ["slice", "step", "restart", "retained", "ranges", "alive"]
    words += [f"golden_{i}" for i in range(inputs)]
    words += ["reset", "mark", "sum", "save_state", "restore_state", *(f"state_{i}" for i in range(states))]
    words += [f"{verb}input_{i}" for i in range(inputs) for verb in ("", "set_")]
    words += [f"{verb}output_{i}" for i in range(outputs) for verb in ("", "get_")]
    return frozenset(f"{name}_{word}" for word in words)


def name_problem(name: str) -> str | None:
    """Why a model cannot be called so, or None."""
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        return "it is not a C identifier of ASCII letters, digits and underscores that begins with a letter"
    if len(name) > _LONGEST:
        return f"it has more than {_LONGEST} characters"
    low = name.lower()
    if low == "tinyet" or low.startswith("tinyet_"):
        return "names that begin with tinyet are tinyet's own"
    if name in _CMAKE_WORDS:
        return "it is a word of CMake's"
    if interface(name, 1, 1) & _OWN_FUNCTIONS:
        return "the application has functions of such names"
    return next((reason for words, reason in _TAKEN if low in words), None)


def check_name(name: str, where: str | None = None) -> str:
    """The name itself. Raises UsageError when a model cannot be called so; where: what gave the name."""
    problem = name_problem(name)
    if problem is not None:
        raise UsageError(
            f"a model cannot be called {name!r}: {problem}", where, f"for example --name {safe_name(name)}"
        )
    return name


def given_or_derived(name: object, *candidates: str) -> str:
    """The name that was given, checked; for None the first of the candidates that says something, made safe.

    candidates: what the user calls the model elsewhere, the nearest first: its file, its class, its folder. Words that
    every second model is called by say nothing; where nothing else is left, the name is `model`.
    """
    if name is not None:
        return check_name(text_given(name, "name", 'the prefix of the C functions: name="keywords"'))
    names = (safe_name(text) for text in candidates if re.search(r"[A-Za-z]", text))
    return next((each for each in names if each.lower().removesuffix(_ENDING) not in _SAYS_NOTHING), "model")


def class_name(model: object) -> str:
    """The name of a model's class, `KeywordNet` as `keyword_net`; empty where it says nothing, as `Net`, and
    where it is torch's, or of no model."""
    kind = type(model)
    if model is None or kind.__module__.partition(".")[0] == "torch":
        return ""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind.__name__).lower()
    return "" if name in _NO_CLASS else name


def safe_name(text: str) -> str:
    """A name that a model may have, like `text`."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    if not name:
        return "model"
    name = (f"model_{name}" if name[0].isdigit() else name)[: _LONGEST - len(_ENDING)]
    if name.lower().startswith("tinyet"):
        name = f"my_{name}"
    return name if name_problem(name) is None else f"{name}{_ENDING}"
