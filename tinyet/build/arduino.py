# SPDX-License-Identifier: Apache-2.0
"""Builds the sketches of generated Arduino libraries with arduino-cli, as the Arduino IDE does."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from tinyet.boards import Board
from tinyet.build.builder import HARNESS, Builder, OnOutput
from tinyet.build.manifest import MANIFEST
from tinyet.build.process import run
from tinyet.build.tree import read_manifest
from tinyet.errors import InternalError, ProjectError, ToolchainError

_SCRIPT = "https://raw.githubusercontent.com/arduino/arduino-cli/master/install.sh"
# Seconds; a first build compiles the board's core.
_SECONDS = 900.0
_HARNESS = "Harness.ino"


def install_command() -> str:
    """The one command that installs arduino-cli on this machine."""
    if shutil.which("brew"):
        return "brew install arduino-cli"
    if sys.platform == "win32":
        return "winget install ArduinoSA.CLI"
    return f"mkdir -p ~/.local/bin && curl -fsSL {_SCRIPT} | BINDIR=~/.local/bin sh"


def elf_path(project_dir: Path, *, harness: bool) -> Path:
    """Where the firmware is when built: the sketch that runs the model, or the harness.

    Raises ProjectError when the manifest names no sketch.
    """
    sketch = _sketch(project_dir, harness=harness)
    return _build_path(project_dir, sketch) / f"{sketch.name}.elf"


def build(project_dir: Path, board: Board, *, on_output: Callable[[str], None] | None = None) -> None:
    """Build both sketches for the board.

    on_output: called with each line that the build prints, as it appears.
    Raises ToolchainError when arduino-cli is missing, or when a build fails.
    """
    if board.arduino is None:
        raise InternalError(f"the board {board.name} has no name in Arduino")
    project_dir = project_dir.absolute()
    if shutil.which("arduino-cli") is None:
        raise ToolchainError(
            what=f"arduino-cli is not installed; building {project_dir.name} needs it",
            where="PATH",
            hint=f"{install_command()}\narduino-cli core install {board.arduino.core}\n"
            "or build it in the Arduino IDE, which does the same: Sketch > Include Library > Add .ZIP Library",
        )
    for harness in (False, True):
        sketch = _sketch(project_dir, harness=harness)
        run(
            [
                *("arduino-cli", "compile", "--fqbn", board.arduino.fqbn, "--library", sketch.parents[2]),
                *("--build-path", _build_path(project_dir, sketch), sketch.parent),
            ],
            cwd=project_dir,
            timeout=_SECONDS,
            what=f"building {sketch.name} with arduino-cli",
            on_output=on_output,
        )


def _build_path(project_dir: Path, sketch: Path) -> Path:
    return project_dir / "build" / sketch.stem


def _sketch(project_dir: Path, *, harness: bool) -> Path:
    """A sketch's file: <Name>/examples/<sketch>/<sketch>.ino."""
    yours = read_manifest(project_dir).get("yours")
    found = [str(path) for path in yours if str(path).endswith(".ino")] if isinstance(yours, list) else []
    if len(found) != 1 or len(PurePosixPath(found[0]).parts) != 4:
        raise ProjectError(
            "the manifest does not name one sketch", str(project_dir / MANIFEST), "generate the project again"
        )
    run = project_dir / found[0]
    return run.parents[1] / Path(_HARNESS).stem / _HARNESS if harness else run


def _build(project_dir: Path, board: Board, _compiler: str, on_output: OnOutput) -> None:
    build(project_dir, board, on_output=on_output)


def _elf(project_dir: Path, _board: Board, _model: str, env: str) -> Path:
    return elf_path(project_dir, harness=env == HARNESS)


BUILDER = Builder(_build, _elf, ("arduino-cli",), framework_harness=lambda _board: HARNESS)
