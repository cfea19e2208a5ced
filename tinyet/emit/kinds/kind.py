# SPDX-License-Identifier: Apache-2.0
"""A kind of project: everything that generating and opening one must know. `build/` builds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from tinyet.boards import Board
from tinyet.emit.facts import ModelFacts
from tinyet.emit.kinds.tree import Tree

Kind = Literal["platformio", "cmake", "arduino", "zephyr", "model"]


@dataclass(frozen=True)
class ProjectKind:
    """One kind of project.

    refusal: why a board cannot have such a project, or None. tree: the project's files.
    docs: its line in docs/projects.md: its option, the tool that opens it, its use, further reading. bare: whether
    tinyet's own code starts the application on a board, not a framework's. framework: whose linker script the
    application for a real board is linked with; None for tinyet's, or the user's.
    application: whether there is one, and so a program, samples and a harness beside the C files.
    library: whether the model is a library that has a version and a home page.
    archive: model → the folder of the library, which can be written as a .zip file, too; None where it cannot.
    tells_outputs: whether the files state the sample's outputs, which costs a run on the host.
    """

    name: Kind
    docs: tuple[str, str, str, str]
    refusal: Callable[[Board], str | None]
    tree: Callable[[Board, ModelFacts, Mapping[str, str]], Tree]
    bare: Callable[[Board], bool] = lambda _board: False
    framework: Callable[[Board], str | None] = lambda _board: None
    application: bool = True
    library: bool = False
    archive: Callable[[str], str] | None = None
    tells_outputs: bool = False
