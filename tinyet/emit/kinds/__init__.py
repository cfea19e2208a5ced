# SPDX-License-Identifier: Apache-2.0
"""The kinds of projects. A new kind is a module with a `KIND`, and a row here; in `build/`, a module that builds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from tinyet.boards import Board
from tinyet.emit.kinds import arduino, cmake, model_only, platformio, zephyr
from tinyet.emit.kinds.kind import Kind, ProjectKind

__all__ = ["KINDS", "MODEL_ONLY", "PROJECT_KINDS", "Kind", "ProjectKind", "kinds_for"]

PROJECT_KINDS: Mapping[str, ProjectKind] = {
    module.KIND.name: module.KIND for module in (platformio, cmake, arduino, zephyr, model_only)
}
KINDS: tuple[Kind, ...] = get_args(Kind)
MODEL_ONLY = model_only.KIND.name


def kinds_for(board: Board) -> tuple[Kind, ...]:
    """The kinds of projects that a board can have."""
    return tuple(kind for kind in KINDS if PROJECT_KINDS[kind].refusal(board) is None)
