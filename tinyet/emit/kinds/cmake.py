# SPDX-License-Identifier: Apache-2.0
"""A CMake project: a static library to install or to add to another build, and two programs.

src/                 the application: one run on an embedded sample
lib/<name>/src/      the model and the kernels it uses
harness/             the program that serves the model to a host
platform/support/    what the programs run on: this machine, and startup code and drivers of a bare-metal board
cmake/<board>.cmake  the toolchain file, for cores whose compiler stands by itself

The library is for every board. The programs are for this machine and for bare-metal boards: on another board its
framework starts a program.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence

from tinyet.assets.templating import render
from tinyet.boards import Board
from tinyet.boards.cpus import CLANG_LINK_FLAGS
from tinyet.emit.facts import ModelFacts
from tinyet.emit.kinds.kind import ProjectKind
from tinyet.emit.kinds.tree import (
    Tree,
    basename,
    context_of,
    firmware,
    harness_files,
    model_files,
    sample_files,
    support_files,
    template_text,
    tflm_header,
)

# Of the harness, with its description of the model, on every machine.
_EVERYWHERE = ("main.c", "tinyet_harness.c")


def refusal(_board: Board) -> str | None:
    """Why there can be no project of this kind for a board, or None: the library is for every board."""
    return None


def tree(board: Board, facts: ModelFacts, model_sources: Mapping[str, str]) -> Tree:
    """The project's files."""
    toolchain = board.target.toolchain
    context = context_of(board, facts, model_sources) | {
        "toolchain": toolchain,
        "public_headers": _public_headers([f"{facts.name}.h", tflm_header(facts.name)], model_sources),
        "board_harness_sources": [
            path for path in board.harness_sources if basename(path) not in _EVERYWHERE
        ],
        "licences": sorted(path for path in model_sources if basename(path) == "LICENSE"),
        "build_dir": f"build-{board.target.family}",
    }
    model_dir = f"lib/{facts.name}/src"
    files = (
        model_files(model_dir, model_sources)
        | harness_files("harness", context)
        | {
            ".gitignore": "/build*/\n/CMakeUserPresets.json\n",
            "LICENSE": template_text("common/LICENSE"),
            "README.md": render("project/cmake/README.md.j2", context),
            "CMakeLists.txt": render("project/cmake/CMakeLists.txt.j2", context),
            "CMakePresets.json": _presets(board),
            "platform/support/tinyet_platform.h": firmware("include/tinyet_platform.h"),
            "platform/support/tinyet_posix.c": firmware("platform/tinyet_posix.c"),
            "src/main.c": render("project/common/main.c.j2", context),
            **sample_files("src", context),
        }
    )
    if board.bare_metal:
        files |= support_files("platform/support", board)
    if toolchain is not None:
        flags = {
            "target_flags": shlex.join((*board.machine_flags, *toolchain.library_flags)),
            "clang_flags": shlex.join(board.target.clang_flags or ()),
            "clang_link_flags": shlex.join(CLANG_LINK_FLAGS),
        }
        files[f"cmake/{board.name}.cmake"] = render("project/cmake/toolchain.cmake.j2", context | flags)
    return Tree(files, model_dir, "harness/model_desc.c", ("src/main.c",))


def _public_headers(headers: Sequence[str], model_sources: Mapping[str, str]) -> list[str]:
    """Headers, of the model's files, and those that they include, sorted; one that is not there is left out."""
    found: set[str] = set()
    rest = list(headers)
    while rest:
        name = rest.pop()
        if name in model_sources and name not in found:
            found.add(name)
            rest += re.findall(r'^\s*#\s*include "([^"]+)"', model_sources[name], re.MULTILINE)
    return sorted(found)


def _presets(board: Board) -> str:
    """The presets of `cmake --preset`: this machine as `host`, and the board where it has a toolchain file."""
    presets: list[dict[str, object]] = [
        {"name": "host", "displayName": "This machine", "binaryDir": "${sourceDir}/build"}
    ]
    if board.target.toolchain is not None:
        preset: dict[str, object] = {
            "name": board.name,
            "displayName": board.title,
            "binaryDir": f"${{sourceDir}}/build-{board.target.family}",
            "toolchainFile": f"${{sourceDir}}/cmake/{board.name}.cmake",
        }
        presets.append(preset)
        if board.target.clang_flags is not None:
            changes = {
                "name": f"{board.name}-clang",
                "displayName": f"{board.title}, compiled by Clang",
                "binaryDir": f"{preset['binaryDir']}-clang",
                "cacheVariables": {"TINYET_COMPILER": "clang"},
            }
            presets.append(preset | changes)
    values = {
        "version": 3,
        "cmakeMinimumRequired": {"major": 3, "minor": 21},
        "configurePresets": presets,
        "buildPresets": [{"name": preset["name"], "configurePreset": preset["name"]} for preset in presets],
    }
    return json.dumps(values, indent=2) + "\n"


KIND = ProjectKind(
    "cmake",
    (
        "`cmake`",
        "CMake: a static library with a package, for this machine and the board",
        "your own build",
        "[generated-code.md](generated-code.md)",
    ),
    refusal,
    tree,
    bare=lambda board: board.bare_metal,
    library=True,
)
