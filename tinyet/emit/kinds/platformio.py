# SPDX-License-Identifier: Apache-2.0
"""A PlatformIO project: bare metal with a local platform of its own, or a framework of PlatformIO's registry.

src/                 the application: one run on an embedded sample
lib/<name>/src/      the model and the kernels it uses
harness/             the firmware that serves the model to a host
platform/support/    startup code, UART and linker script of the board
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tinyet.boards import Board
from tinyet.emit.facts import ModelFacts
from tinyet.emit.kinds.tree import (
    Tree,
    context_of,
    harness_files,
    model_files,
    qemu_command,
    support_files,
    template_text,
)
from tinyet.templating import render


def refusal(board: Board) -> str | None:
    """Why there can be no project of this kind for a board, or None."""
    return None if board.bare_metal else "it has no UART and counter, which a bare-metal firmware needs"


def tree(board: Board, facts: ModelFacts, model_sources: Mapping[str, str]) -> Tree:
    """The project's files."""
    context = context_of(board, facts, model_sources)
    model_dir = f"lib/{facts.name}/src"
    # PlatformIO follows this link to the local platform. It would write one itself, with the absolute path of
    # the project; this one stays right when the project is moved or copied.
    link = {"cwd": ".", "spec": {"owner": None, "id": None, "name": "platform", "uri": "symlink://platform"}}
    files = (
        model_files(model_dir, model_sources)
        | harness_files("harness", context)
        | support_files("platform/support", board)
        | {
            ".gitignore": "/.pio/\n",
            "README.md": render("project/platformio/README.md.j2", context),
            "platformio.ini": render("project/platformio/platformio.ini.j2", context),
            f"lib/{facts.name}/library.json": render("project/platformio/library.json.j2", context),
            "platform/platform.json": render("project/platformio/platform/platform.json.j2", context),
            "platform/platform.py": template_text("platformio/platform/platform.py"),
            "platform/builder/main.py": template_text("platformio/platform/builder/main.py"),
            "platform/link/platform.pio-link": json.dumps(link, indent=2) + "\n",
            f"platform/boards/{board.name}.json": _board_json(board),
            "src/main.c": render("project/common/main.c.j2", context),
            f"src/{facts.name}_sample.h": render("project/common/sample.h.j2", context),
        }
    )
    return Tree(files, model_dir, "harness/model_desc.c", ("src/main.c",))


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
            "machine_flags": list(board.machine_flags),
            "defines": [list(pair) for pair in board.defines],
            "qemu": qemu_command(board) if board.qemu else "",
        },
        "upload": {"maximum_size": board.flash.bytes, "maximum_ram_size": board.ram.bytes},
    }
    return json.dumps(text, indent=2) + "\n"
