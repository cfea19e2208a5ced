# SPDX-License-Identifier: Apache-2.0
"""Someone at a terminal sees what tinyet is at; a file or a pipe gets nothing of it."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import shutil
from pathlib import Path

import pytest

from tests.cli.command import plain, tinyet
from tinyet.cli import run, ui
from tinyet.messages.stages import part, stage

_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

_MODEL = """\
import torch

def model():
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()

def example_inputs():
    return (torch.ones(1, 4),)

def calibration():
    return [torch.randn(1, 4) for _ in range(8)]
"""


class Terminal(io.StringIO):
    """Keeps what is written to it, as a terminal would show it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    plain(monkeypatch)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def at_terminal(*arguments: str) -> str:
    """What a command shows on standard error, a terminal; standard output is a file."""
    out, err = io.StringIO(), Terminal()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert run(list(arguments)) == 0, err.getvalue()
    assert "next: " in out.getvalue() or "device = host" in out.getvalue()
    return err.getvalue()


def missing(shown: str, *names: str) -> list[str]:
    """The names that were not shown one after the other."""
    found, at = [], 0
    for name in names:
        place = shown.find(name, at)
        found += [name] if place < 0 else []
        at = max(at, place)
    return found


@_TORCH
def test_each_stage_is_named_at_a_terminal_only(here: Path) -> None:
    (here / "net.py").write_text(_MODEL)
    command = ("generate", "net.py", "--board", "mps2_an386", "-o", "p")
    shown = at_terminal(*command)
    stages = (
        "loading torch",
        "loading net.py",
        "exporting the model",
        "decomposing the model",
        "importing the graph",
        "inserting observers",
        "calibrating",
        "converting to integers",
        "exporting the graph",
        "importing the graph",
        "passes: fold requantize",
        "comparing with the float model",
        "choosing kernels",
        "planning memory",
        "encoding the program",
        "generating C",
        "writing the project",
    )
    assert missing(shown, *stages) == []
    ended = tinyet(*command)
    assert (ended.status, ended.err.splitlines()[:1]) == (0, ["note:"])
    if shutil.which("cc"):
        shown = at_terminal("validate", "p", "--on", "host")
        assert missing(shown, "reading the program", "compiling the harness", "running on host") == []
        ended = tinyet("validate", "p", "--on", "host")
        assert (ended.status, ended.err.splitlines()[:1]) == (0, ["note:"])


def test_counting_belongs_to_its_stage() -> None:
    err = Terminal()
    with contextlib.redirect_stderr(err), ui.stages("first [bold]") as progress:
        stage("second\x1b]0;title\x07")
        progress(2, 3)
        stage("third")
    shown = err.getvalue()
    assert missing(shown, "first [bold]", "second", "third") == []
    assert "\x1b]0" not in shown
    assert "/3" not in shown[shown.index("third") :]


def test_a_part_of_several_says_which_it_is() -> None:
    err = Terminal()
    with contextlib.redirect_stderr(err), ui.stages("first"):
        with part("microbit", 1, 2):
            stage("planning memory")
        with part("mps2_an386", 2, 2):
            pass
        stage("last")
    shown = err.getvalue()
    assert (
        missing(
            shown, "microbit (1 of 2)", "microbit (1 of 2): planning memory", "mps2_an386 (2 of 2)", "last"
        )
        == []
    )
    assert ": last" not in shown


def test_colours_for_a_file_are_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    err = io.StringIO()
    with contextlib.redirect_stderr(err), ui.stages("first"), ui.counting("second"), ui.working("third"):
        stage("fourth")
    assert err.getvalue() == ""
