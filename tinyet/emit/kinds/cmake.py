# SPDX-License-Identifier: Apache-2.0
"""A CMake project: a static library, and for this machine and bare-metal boards two programs.

src/                 the application: one run on an embedded sample
lib/<name>/src/      the model and the kernels it uses
harness/             the firmware that serves the model to a host
platform/support/    startup code, UART and linker script of the board
"""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.boards import Board
from tinyet.emit.facts import ModelFacts
from tinyet.emit.kinds.tree import Tree, context_of, firmware, harness_files, model_files, support_files
from tinyet.templating import render


def refusal(board: Board) -> str | None:
    """Why there can be no project of this kind for a board, or None."""
    return None if board.bare_metal else "it has no UART and counter, which a bare-metal firmware needs"


def tree(board: Board, facts: ModelFacts, model_sources: Mapping[str, str]) -> Tree:
    """The project's files."""
    context = context_of(board, facts, model_sources)
    model_dir = f"lib/{facts.name}/src"
    files = (
        model_files(model_dir, model_sources)
        | harness_files("harness", context)
        | support_files("platform/support", board)
        | {
            ".gitignore": "/build*/\n",
            "README.md": render("project/cmake/README.md.j2", context),
            "CMakeLists.txt": render("project/cmake/CMakeLists.txt.j2", context),
            f"cmake/{board.name}.cmake": render("project/cmake/toolchain.cmake.j2", context),
            "platform/support/tinyet_platform.h": firmware("include/tinyet_platform.h"),
            "platform/support/tinyet_posix.c": firmware("platform/tinyet_posix.c"),
            "src/main.c": render("project/common/main.c.j2", context),
            f"src/{facts.name}_sample.h": render("project/common/sample.h.j2", context),
        }
    )
    return Tree(files, model_dir, "harness/model_desc.c", ("src/main.c",))
