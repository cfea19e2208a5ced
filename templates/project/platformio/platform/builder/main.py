# SPDX-License-Identifier: Apache-2.0
"""How PlatformIO compiles and links a bare-metal firmware. The board's facts come from ../boards/*.json."""

import shutil
import sys
from pathlib import Path

from SCons.Script import COMMAND_LINE_TARGETS, AlwaysBuild, Builder, Default, DefaultEnvironment

env = DefaultEnvironment()
board = env.BoardConfig()
project = Path(env.subst("$PROJECT_DIR")).resolve()
platform = Path(env.PioPlatform().get_dir()).resolve()
support = "$PROJECT_DIR/platform/support"
machine = board.get("build.machine_flags")
library = board.get("build.library_flags")
prefix = board.get("build.toolchain")

if platform != project / "platform":
    sys.exit(
        f"PlatformIO took the platform of another project, {platform}.\nSay platforms_dir = platform/link."
    )

env.Replace(
    AR=f"{prefix}gcc-ar",
    AS=f"{prefix}gcc",
    CC=f"{prefix}gcc",
    CXX=f"{prefix}g++",
    GDB="gdb-multiarch" if shutil.which("gdb-multiarch") else f"{prefix}gdb",
    OBJCOPY=f"{prefix}objcopy",
    RANLIB=f"{prefix}gcc-ranlib",
    SIZETOOL=f"{prefix}size",
    # D: no dates and no owners in archives.
    ARFLAGS=["rcD"],
    RANLIBFLAGS=["-D"],
    PROGNAME="firmware",
    PROGSUFFIX=".elf",
    SIZEPROGREGEXP=r"^(?:\.vectors|\.text|\.ARM\.exidx|\.data)\s+(\d+).*",
    SIZEDATAREGEXP=r"^(?:\.data|\.bss|\.stack)\s+(\d+).*",
    SIZECHECKCMD="$SIZETOOL -A -d $SOURCES",
    SIZEPRINTCMD="$SIZETOOL -B -d $SOURCES",
    LDSCRIPT_PATH="platform/support/linker.ld",
)
env.Append(
    ASFLAGS=[*machine, "-x", "assembler-with-cpp"],
    CCFLAGS=[
        *machine,
        *library,
        "-g",
        "-ffunction-sections",
        "-fdata-sections",
        # The same project gives the same bytes wherever it lies.
        f"-ffile-prefix-map={project}=.",
    ],
    CFLAGS=["-std=gnu11"],
    CXXFLAGS=["-std=gnu++17", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics"],
    CPPPATH=[support],
    CPPDEFINES=[tuple(define) for define in board.get("build.defines")],
    LINKFLAGS=[
        *machine,
        *library,
        "-nostartfiles",
        "-Wl,--gc-sections",
        '-Wl,-Map="$BUILD_DIR/firmware.map"',
    ],
    LIBS=["c", "m", "gcc"],
    BUILDERS={
        "ElfToBin": Builder(
            action=env.VerboseAction("$OBJCOPY -O binary $SOURCES $TARGET", "Building $TARGET"), suffix=".bin"
        )
    },
)

env.BuildSources("$BUILD_DIR/support", support)

elf = "$BUILD_DIR/firmware.elf" if "nobuild" in COMMAND_LINE_TARGETS else env.BuildProgram()
env.Depends(elf, f"{support}/linker.ld")
binary = env.ElfToBin("$BUILD_DIR/firmware", elf)

AlwaysBuild(env.Alias("nobuild", binary))
AlwaysBuild(env.Alias("size", elf, env.VerboseAction("$SIZEPRINTCMD", "Calculating size $SOURCE")))
buildprog = env.Alias("buildprog", binary, binary)

# `pio run -t upload` runs the command that user.ini gives as upload_command; $SOURCE is firmware.elf.
if not env.get("UPLOADCMD"):
    env.Replace(UPLOADCMD='@echo "set upload_command in user.ini, as README.md says" && exit 1')
AlwaysBuild(env.Alias("upload", elf, env.VerboseAction("$UPLOADCMD", "Uploading $SOURCE")))

qemu = board.get("build.qemu", "")
if qemu:
    env.AddCustomTarget(
        "qemu",
        elf,
        # SCons would expand a $ of its own accord, and run what is in ${ }.
        qemu.replace("$", "$$") + " -kernel $SOURCE",
        title="QEMU",
        description="Run the firmware in QEMU; Ctrl-C ends it",
    )

Default(buildprog)
