# SPDX-License-Identifier: Apache-2.0
"""Just the C: the model and the kernels it uses, for any build."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.boards import Board
from tinyet.emit.facts import ModelFacts
from tinyet.emit.kinds.kind import ProjectKind
from tinyet.emit.kinds.tree import Tree


def refusal(_board: Board) -> str | None:
    """Why there can be no project of this kind for a board, or None: C fits everywhere."""
    return None


def tree(_board: Board, _facts: ModelFacts, model_sources: Mapping[str, str]) -> Tree:
    """The model's files, beside each other."""
    return Tree(dict(model_sources), "", "", ())


KIND = ProjectKind(
    "model",
    ("`--kind model`", "your compiler", "just the C", "[generated-code.md](generated-code.md)"),
    refusal,
    tree,
    application=False,
)
