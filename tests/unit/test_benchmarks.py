# SPDX-License-Identifier: Apache-2.0
"""Benchmarks are run by hand: here, whether what they import is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import forked
from tinyet.boards import board_names, load_board
from tinyet.emit.kinds import kinds_for

ROOT = Path(__file__).resolve().parent.parent.parent

pytest.importorskip("torchao")


def test_every_benchmark_can_be_imported(tmp_path: Path) -> None:
    names = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))
    # A script finds what lies beside it.
    text = "import sys\nsys.path.insert(0, 'benchmarks')\n" + "".join(
        f"import benchmarks.{n}\n" for n in names
    )
    script = tmp_path / "imports.py"
    script.write_text(text, encoding="utf-8")
    done = forked.python([str(script)], ROOT, os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks" / "boards").glob("*.toml")), ids=lambda path: path.stem
)
def test_boards_of_published_figures(path: Path) -> None:
    board = load_board(path)
    assert path.stem not in board_names()
    assert "arduino" in kinds_for(board)
