# SPDX-License-Identifier: Apache-2.0
"""The kinds of projects. A new kind is a module with `refusal` and `tree`, and a row here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from tinyet.boards import Board
from tinyet.emit.facts import ModelFacts
from tinyet.emit.kinds import arduino, cmake, model_only, platformio, zephyr
from tinyet.emit.kinds.tree import Tree

Kind = Literal["platformio", "cmake", "arduino", "zephyr", "model"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class KindOf:
    """refusal: why a board cannot have such a project, or None. tree: the project's files."""

    refusal: Callable[[Board], str | None]
    tree: Callable[[Board, ModelFacts, Mapping[str, str]], Tree]


_MAKERS: Mapping[Kind, KindOf] = {
    "platformio": KindOf(platformio.refusal, platformio.tree),
    "cmake": KindOf(cmake.refusal, cmake.tree),
    "zephyr": KindOf(zephyr.refusal, zephyr.tree),
    "arduino": KindOf(arduino.refusal, arduino.tree),
    "model": KindOf(model_only.refusal, model_only.tree),
}


def maker(kind: Kind) -> KindOf:
    """What makes projects of a kind."""
    return _MAKERS[kind]


def kinds_for(board: Board) -> tuple[Kind, ...]:
    """The kinds of projects that a board can have."""
    return tuple(kind for kind in KINDS if _MAKERS[kind].refusal(board) is None)
