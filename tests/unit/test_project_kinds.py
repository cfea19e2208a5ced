# SPDX-License-Identifier: Apache-2.0
"""What is known of a kind of project stands in its own files, and nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tinyet
from tinyet.build.builders import BUILDERS
from tinyet.emit.kinds import KINDS, PROJECT_KINDS

PACKAGE = Path(tinyet.__file__).parent
DOCS = PACKAGE.parent / "docs"
# Names of frameworks, which board files say, are words of these.
OWN = {
    *(f"build/{kind}.py" for kind in KINDS),
    *(f"emit/kinds/{kind}.py" for kind in KINDS),
    "boards/file.py",
}


def compared(path: Path) -> set[str]:
    """The texts that a module's comparisons and match statements hold."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare | ast.MatchValue):
            found |= {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
    return {text for text in found if isinstance(text, str)}


def test_the_tables_are_whole() -> None:
    assert tuple(PROJECT_KINDS) == KINDS
    assert list(BUILDERS) == [name for name, kind in PROJECT_KINDS.items() if kind.application]


def test_nobody_else_asks_for_the_kind() -> None:
    files = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    asked = {name: compared(path) & BUILDERS.keys() for name, path in files.items() if name not in OWN}
    assert not {name: words for name, words in asked.items() if words}


@pytest.mark.parametrize("name", KINDS)
def test_its_line_is_in_the_docs(name: str) -> None:
    page = (DOCS / "projects.md").read_text(encoding="utf-8")
    assert f"\n| {' | '.join(PROJECT_KINDS[name].docs)} |\n" in page
