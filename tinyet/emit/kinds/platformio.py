# SPDX-License-Identifier: Apache-2.0
"""A PlatformIO project: bare metal with a local platform of its own, or a framework of PlatformIO's registry, or both.

Bare metal, for boards that tinyet has startup code for:

src/                 the application: one run on an embedded sample
lib/<name>/src/      the model and the kernels it uses
harness/             the firmware that serves the model to a host
platform/support/    startup code, UART and linker script of the board
arduino/             with Arduino's core for the same board: the application
arduino_harness/     likewise: what the harness has of its own there

A framework (src/, lib/ and harness/ as above): no platform/, and what Zephyr wants in zephyr/.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tinyet.assets.templating import render
from tinyet.boards import Board
from tinyet.emit.facts import ModelFacts
from tinyet.emit.kinds import zephyr
from tinyet.emit.kinds.kind import ProjectKind
from tinyet.emit.kinds.tree import (
    Tree,
    basename,
    context_of,
    firmware,
    harness_files,
    model_files,
    qemu_command,
    sample_files,
    support_files,
    template_text,
)

# Files of a harness on Arduino's core beside model_desc.c and tinyet_harness.c.
_ARDUINO_PLATFORM = ("platform/tinyet_arduino.cpp", "platform/tinyet_arduino.h")


def refusal(board: Board) -> str | None:
    """Why there can be no project of this kind for a board, or None."""
    if board.bare_metal:
        return None
    if board.platformio is None or not board.platformio.framework:
        return "its file names no framework for it in PlatformIO's registry, and it is not a bare-metal board"
    return zephyr.refusal(board) if board.platformio.framework == "zephyr" else None


def tree(board: Board, facts: ModelFacts, model_sources: Mapping[str, str]) -> Tree:
    """The project's files."""
    # Zephyr brings its own build of everything in src/, so that bare metal has no place beside it.
    with_arduino = board.platformio is not None and board.platformio.framework == "arduino"
    model_dir = f"lib/{facts.name}/src"
    context = context_of(board, facts, model_sources) | {
        "arduino": with_arduino,
        "sample_in_progmem": "progmem" in board.target.features,
        "library_flags": _library_flags(board),
        "licences": sorted(path for path in model_sources if basename(path) == "LICENSE"),
    }
    files = model_files(model_dir, model_sources) | {
        ".gitignore": "/.pio/\n" + ("/platform/link/*/\n" if board.bare_metal and with_arduino else ""),
        "LICENSE": template_text("common/LICENSE"),
        "README.md": render("project/platformio/README.md.j2", context),
        "platformio.ini": render("project/platformio/platformio.ini.j2", context),
        f"lib/{facts.name}/library.json": render("project/platformio/library.json.j2", context),
    }
    yours = "src/main.c"
    if board.bare_metal:
        files |= _bare_metal_files(board, context)
        if with_arduino:
            files |= _arduino_files(context, "arduino", "arduino_harness")
            return Tree(files, model_dir, "harness/model_desc.c", (yours, "arduino/main.cpp"))
    elif with_arduino:
        yours = "src/main.cpp"
        files |= _arduino_files(context, "src", "harness")
        files |= {
            **sample_files("src", context),
            "harness/model_desc.c": render("project/common/model_desc.c.j2", context),
        }
        shared = (
            *("include/tinyet_frames.h", "include/tinyet_harness.h", "include/tinyet_platform.h"),
            "harness/tinyet_harness.c",
        )
        files |= {f"harness/{basename(path)}": firmware(path) for path in shared}
    else:
        files |= zephyr.platformio_files(board, facts, model_sources)
        return Tree(files, model_dir, "harness/model_desc.c", (yours, "zephyr/prj.conf"))
    return Tree(files, model_dir, "harness/model_desc.c", (yours,))


def _bare_metal_files(board: Board, context: Mapping[str, object]) -> dict[str, str]:
    """The application, the harness, and the local platform."""
    # PlatformIO follows this link to the local platform. It would write one itself, with the absolute path of
    # the project; this one stays right when the project is moved or copied.
    link = {"cwd": ".", "spec": {"owner": None, "id": None, "name": "platform", "uri": "symlink://platform"}}
    return (
        harness_files("harness", context)
        | support_files("platform/support", board)
        | {
            "platform/platform.json": render("project/platformio/platform/platform.json.j2", context),
            "platform/platform.py": template_text("platformio/platform/platform.py"),
            "platform/builder/main.py": template_text("platformio/platform/builder/main.py"),
            "platform/link/platform.pio-link": json.dumps(link, indent=2) + "\n",
            f"platform/boards/{board.name}.json": _board_json(board),
            "src/main.c": render("project/common/main.c.j2", context),
            **sample_files("src", context),
        }
    )


def _arduino_files(context: Mapping[str, object], application: str, harness: str) -> dict[str, str]:
    """The C++ files on Arduino's core, in the directories of the application and of the harness."""
    return {f"{harness}/{basename(path)}": firmware(path) for path in _ARDUINO_PLATFORM} | {
        f"{application}/main.cpp": render("project/platformio/arduino/main.cpp.j2", context),
        f"{harness}/main.cpp": render("project/platformio/arduino/harness.cpp.j2", context),
    }


def _library_flags(board: Board) -> str:
    """Compiler flags of the model. A float multiply and add must round twice everywhere; the rest depends on the
    compiler.

    No warning stops a user's build: his compiler may know some that ours did not.
    """
    flags = ["-ffp-contract=off"]
    if board.platformio is not None and board.platformio.framework:
        # The compilers of the registry are many, and some are old: they warn of less than they could. Their frameworks
        # ask for small code; the kernels are written for -O2, but on AVR there is no room for that.
        flags += [] if board.target.family == "avr" else ["-O2"]
        return " ".join([*flags, "-Wall", "-Wextra"])
    return " ".join([*flags, "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion"])


def _board_json(board: Board) -> str:
    """The board in PlatformIO's form; its sizes are the limits of PlatformIO's own size check."""
    text = {
        "name": board.title,
        "vendor": board.vendor or "generic",
        "url": board.url,
        "platforms": ["tinyet"],
        "frameworks": [],
        "build": {
            "mcu": board.name,
            "cpu": board.cpu,
            "f_cpu": f"{board.clock_hz}L",
            "toolchain": board.toolchain.prefix,
            "machine_flags": list(board.machine_flags),
            "library_flags": list(board.toolchain.library_flags),
            "defines": [list(pair) for pair in board.defines],
            "qemu": qemu_command(board) if board.qemu else "",
        },
        "upload": {"maximum_size": board.flash.bytes, "maximum_ram_size": board.ram.bytes},
    }
    return json.dumps(text, indent=2) + "\n"


KIND = ProjectKind(
    "platformio",
    (
        "`platformio` (the default)",
        "PlatformIO, in VS Code or on the command line",
        "emulated boards: bare metal, offline; real boards: the framework that the board file names",
        "README.md in the project",
    ),
    refusal,
    tree,
    bare=lambda board: board.bare_metal and not (board.platformio is not None and board.platformio.framework),
    framework=lambda board: None if board.platformio is None else board.platformio.framework or None,
    library=True,
)
