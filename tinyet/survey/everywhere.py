# SPDX-License-Identifier: Apache-2.0
"""One model on many emulated boards: does it fit, are the answers the host's, what does it cost there."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tinyet.accounts.fronts import cycles_said
from tinyet.boards import Board, all_boards, load_board
from tinyet.data import Data
from tinyet.delegates import Delegates
from tinyet.emit.kinds import PROJECT_KINDS, kinds_for
from tinyet.errors import FitError, TinyetError, UsageError
from tinyet.messages.stages import stage
from tinyet.program import Program
from tinyet.projects.one import generate
from tinyet.validation import ValidationResult

ALL_EMULATED = "all-emulated"


@dataclass(frozen=True)
class BoardResult:
    """error: why there is no result; of what does not fit, a FitError. result: of the emulated run. milliseconds: from
    the plan's estimated cycles, at the board's clock; None on a core without a model of them."""

    board: str
    cpu: str
    on: str
    error: TinyetError | None
    result: ValidationResult | None = None
    milliseconds: float | None = None

    @property
    def verdict(self) -> Literal["exact", "NOT EXACT", "too large", "failed"]:
        """In a word or two."""
        if self.result is None:
            return "too large" if isinstance(self.error, FitError) else "failed"
        return "exact" if self.result.bit_exact else "NOT EXACT"

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            "board": self.board,
            "cpu": self.cpu,
            "on": self.on,
            "verdict": self.verdict,
            "error": None if self.error is None else str(self.error),
            "milliseconds": self.milliseconds,
            "result": None if self.result is None else self.result.to_json(),
        }


def boards_given(text: str) -> tuple[Board, ...]:
    """`all-emulated`, every board that QEMU has, and those of Renode's where that is installed; or boards by name or
    file, a comma between. Raises UsageError for none, and for those that no emulator has, BoardError for one that is
    not known."""
    if text == ALL_EMULATED:
        return tuple(board for board in all_boards() if _emulator(board) is not None)
    found = tuple(load_board(name.strip()) for name in text.split(",") if name.strip())
    if not found:
        raise UsageError("there is no board to validate on", hint=f"--boards {ALL_EMULATED}, or some by name")
    if real := [board.name for board in found if not board.emulators]:
        hint = "tinyet validate DIR --on serial:PORT"
        raise UsageError(f"{', '.join(real)}: no emulator has them", hint=hint)
    return found


def _emulator(board: Board) -> str | None:
    if "qemu" in board.emulators:
        return "qemu"
    return "renode" if "renode" in board.emulators and shutil.which("renode") is not None else None


def validate_on(
    program: Program,
    board: Board,
    *,
    evaluation: Data | None = None,
    delegates: Delegates | None = None,
    optimize: str = "balanced",
    max_samples: int | None = None,
    timeout: float = 60.0,
) -> BoardResult:
    """A project for the board, in a folder that is thrown away, built and run in the board's emulator.

    All parameters: as of `tinyet.generate` and `Project.validate`. What goes wrong is in the result."""
    on = _emulator(board) or board.emulators[0]
    with tempfile.TemporaryDirectory(prefix="tinyet-") as scratch:
        try:
            project = generate(
                program,
                board,
                Path(scratch, "project"),
                kind=next(kind for kind in kinds_for(board) if PROJECT_KINDS[kind].application),
                delegates=delegates,
                optimize=optimize,
                evaluation=evaluation,
            )
            if on != "simavr":  # whose harness needs the compiler alone
                stage("building the firmware")
                project.build()
            result = project.validate(on=on, max_samples=max_samples, timeout=timeout)
        except TinyetError as error:
            return BoardResult(board.name, board.cpu, on, error)
    cycles = cycles_said(project.deployment.decision.figures, board.target)
    milliseconds = None if cycles is None else 1e3 * cycles / board.clock_hz
    return BoardResult(board.name, board.cpu, on, None, result, milliseconds)
