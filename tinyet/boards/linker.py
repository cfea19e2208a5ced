# SPDX-License-Identifier: Apache-2.0
"""Linker scripts of bare-metal boards."""

from __future__ import annotations

from tinyet.assets.templating import render
from tinyet.boards.board import Board


def linker_script(board: Board) -> str:
    """The text of a bare-metal board's linker script."""
    family = board.target.family
    template = "linker.ld.j2" if family == "arm" else f"linker_{family}.ld.j2"
    # These templates say themselves where lines end.
    return render(f"support/{template}", {"board": board}, tight=True)
