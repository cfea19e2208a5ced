# SPDX-License-Identifier: Apache-2.0
"""Builds generated CMake projects for their board, as their own README says."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from tinyet.boards import Board
from tinyet.build import clang
from tinyet.build.builder import HARNESS, Builder, OnOutput
from tinyet.build.process import find_tool, run
from tinyet.errors import ProjectError, ToolchainError

_SECONDS = 600.0


def build_dir(project_dir: Path, board: Board) -> Path:
    """Build directory of the project for its board: one for each family of cores."""
    return project_dir / f"build-{board.target.family}"


def elf_path(project_dir: Path, board: Board, program: str) -> Path:
    """Path of the built firmware of one program of the project (`<model>_app`, `<model>_harness`)."""
    return build_dir(project_dir, board) / f"{program}.elf"


def check_directory(project_dir: Path) -> None:
    """Raise ProjectError for a directory in which CMake can never build."""
    path = project_dir.absolute()
    inside = "/".join(path.parts[1:])
    strange = sorted(set(re.findall(r"[\";:\\\x00-\x1f\x7f]|\$(?:ENV|CACHE)?[({<]", inside)))
    if re.search(r"\[[^\]]*$", inside):
        strange.append("[")
    if strange:
        raise ProjectError(
            f"CMake builds in no directory whose path has {' '.join(ascii(part)[1:-1] for part in strange)}",
            str(path),
            "choose a directory with another name",
        )


def build(
    project_dir: Path,
    board: Board,
    *,
    compiler: str = clang.GCC,
    on_output: Callable[[str], None] | None = None,
) -> None:
    """Build the application and the harness for the board.

    compiler: "gcc", or "clang" (clang-16, ...) for a Cortex-M; another one than before builds everything anew.
    on_output: called with each line that the build prints, as it appears.
    Raises ToolchainError when the project has no programs for its board, when cmake or the compiler is missing, or when
    the build fails.
    """
    project_dir = project_dir.absolute()
    check_directory(project_dir)
    what = f"building {project_dir.name} with CMake"
    if not board.bare_metal:
        raise ToolchainError(
            f"a CMake project for {board.name} is a library: tinyet has no startup code to build a program from",
            str(project_dir),
            "add it to your own build, as its README.md says; to run it here: tinyet validate --on host",
        )
    clang.check_compiler(compiler, board)
    for tool in (board.toolchain.compiler, *(() if compiler == clang.GCC else (compiler,))):
        find_tool(tool, what=what)
    toolchain = project_dir / "cmake" / f"{board.name}.cmake"
    if not toolchain.is_file():
        raise ToolchainError(
            "the project's CMake toolchain file is missing", str(toolchain), "generate it again"
        )
    directory = build_dir(project_dir, board)
    options = [] if board.target.clang_flags is None else [f"-DTINYET_COMPILER={compiler}"]
    if _compiler_of(directory) not in (None, compiler):
        # CMake keeps the compiler that a directory has begun with.
        if directory.is_symlink():
            raise ProjectError(
                "another compiler built here before, and what it left lies behind a link, where tinyet removes nothing",
                str(directory),
                "remove the link, or what it leads to",
            )
        shutil.rmtree(directory)
    commands: tuple[list[str | Path], ...] = (
        ["cmake", "-S", project_dir, "-B", directory, "--toolchain", toolchain, *options],
        ["cmake", "--build", directory],
    )
    for command in commands:
        run(command, cwd=project_dir, timeout=_SECONDS, what=what, on_output=on_output)


def _compiler_of(directory: Path) -> str | None:
    """The compiler of an existing build directory; None where it cannot be told."""
    cache = directory / "CMakeCache.txt"
    found = re.search(
        r"^TINYET_COMPILER:\w+=(.*)$",
        cache.read_text("utf-8", "replace") if cache.is_file() else "",
        re.MULTILINE,
    )
    return found[1] if found else None


def _build(project_dir: Path, board: Board, compiler: str, on_output: OnOutput) -> None:
    build(project_dir, board, compiler=compiler, on_output=on_output)


def _elf(project_dir: Path, board: Board, model: str, env: str) -> Path:
    return elf_path(project_dir, board, f"{model}_{'harness' if env == HARNESS else 'app'}")


BUILDER = Builder(
    _build,
    _elf,
    ("cmake", "arm-none-eabi-gcc", "newlib", "qemu-system-arm"),
    emulated=True,
    chooses=True,
    check_directory=check_directory,
)
