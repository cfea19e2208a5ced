# SPDX-License-Identifier: Apache-2.0
"""Runs command lines in this process and looks at what they leave."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path

import pytest

from tinyet.cli import run


@dataclass(frozen=True)
class Ended:
    """A command line that has ended."""

    status: int
    out: str
    err: str


def tinyet(*arguments: str | Path) -> Ended:
    """Run `tinyet` with these arguments; neither stream is a terminal."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run([str(argument) for argument in arguments])
    return Ended(status, out.getvalue(), err.getvalue())


def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment says nothing of terminals or colours."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def listing(directory: Path) -> list[str]:
    """Everything below a directory but Python's own cache."""
    paths = (p.relative_to(directory).as_posix() for p in directory.rglob("*"))
    return sorted(path for path in paths if "__pycache__" not in path)


def refused(directory: Path, title: str, *arguments: str | Path, status: int = 1) -> str:
    """Run a command line that must fail, and return its error.

    Asserted: the exit status; one block on standard error, which begins with `title`; nothing on standard
    output; no traceback; no file written or removed below `directory`.
    """
    before = listing(directory)
    ended = tinyet(*arguments)
    assert ended.status == status, ended
    assert ended.out == ""
    first, *rest = ended.err.rstrip("\n").split("\n")
    assert first.startswith(f"{title}: "), ended.err
    assert "Traceback" not in ended.err
    # One block: all that follows belongs to it, so another error would show as another title.
    titles = ("error:", "usage error:", "internal error:", "model error:")
    assert not any(line.startswith(titles) for line in rest), ended.err
    assert listing(directory) == before
    return ended.err


def part(error: str, label: str) -> str:
    """The `at` or the `do` of an error block, with its further lines."""
    lines = error.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith(f"  {label}: "))
    more = [line.strip() for line in lines[at + 1 :] if line.startswith("      ")]
    return "\n".join([lines[at].removeprefix(f"  {label}: "), *more])
