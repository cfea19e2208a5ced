# SPDX-License-Identifier: Apache-2.0
"""Golden files: the exact text that a test expects stands in a file beside the test, and one option accepts a new one.

    def test_boards(golden: Golden) -> None:
        golden(tinyet("boards").out, "boards.txt")

compares with `golden/<module>/boards.txt` beside the module, or with the file of that name in the folder beside it that
the module calls GOLDEN_FOLDER. With `pytest --update-golden` (and any choice of tests) the file is written where it
differs; then read the diff. A name is a literal, or an f-string of parametrized arguments, and no two tests share one:
so `tests/acceptance/test_golden_files.py` knows every file, and workers never meet in one.

The text must be the same on every machine: no version, path, time, or digit that is measured or that a float library
computes. Leave those out, or replace them.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest


@dataclass(frozen=True)
class Golden:
    """The golden files of one test.

    folder: where those of its module are. update: write them instead of comparing. node: the test, as pytest names it.
    places: directories of this machine, which no text may name.
    """

    folder: Path
    update: bool
    node: str
    places: tuple[str, ...]

    def __call__(self, text: str, name: str) -> None:
        """Fail, with a diff, where `text` is not byte for byte (in UTF-8) what is in the file `name`."""
        place = self.folder / name
        for directory in self.places:
            assert directory not in text, "a golden file holds what is the same on every machine"
        if self.update:
            write_changed(place, text)
        complaint = difference(place, text)
        if complaint is not None:
            pytest.fail(f'{complaint}\nto accept it: pytest "{self.node}" --update-golden', pytrace=False)


def write_changed(place: Path, text: str) -> None:
    """Write a file, unless it holds just this."""
    if not place.is_file() or place.read_bytes() != text.encode():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())


def difference(place: Path, text: str) -> str | None:
    """What is wrong with a file that should hold `text`; None when it does."""
    if not place.is_file():
        return f"there is no golden file {place}"
    expected = place.read_bytes().decode()
    if expected == text:
        return None
    # Ends of lines are compared, too, and shown where only they differ.
    keep = expected.splitlines() == text.splitlines()
    old, new = (
        [repr(line) for line in t.splitlines(keepends=True)] if keep else t.splitlines()
        for t in (expected, text)
    )
    diff = difflib.unified_diff(old, new, "expected", "came out", lineterm="")
    return "\n".join([f"the golden file {place} differs", *diff])


def folder_of(module: ModuleType, path: Path) -> Path:
    """Where the golden files of a test module are; path: the module's file."""
    return path.parent / getattr(module, "GOLDEN_FOLDER", f"golden/{path.stem}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write golden files that differ instead of comparing with them",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Golden:
    return Golden(
        folder_of(request.module, request.path),
        bool(request.config.getoption("update_golden")),
        request.node.nodeid,
        (str(request.config.rootpath), str(tmp_path_factory.getbasetemp())),
    )
