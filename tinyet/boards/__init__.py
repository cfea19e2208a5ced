# SPDX-License-Identifier: Apache-2.0
"""Boards and their cores: what a firmware must know of the machine it runs on, read from one TOML file a board."""

from __future__ import annotations

from tinyet.boards.board import Arduino, Board, Memory, PlatformIo, Qemu, Renode, Simavr, Zephyr
from tinyet.boards.cpus import Target
from tinyet.boards.flash import Flash
from tinyet.boards.load import all_boards, board_names, file_of, load_board

__all__ = [
    "DEFAULT_BOARD",
    "Arduino",
    "Board",
    "Flash",
    "Memory",
    "PlatformIo",
    "Qemu",
    "Renode",
    "Simavr",
    "Target",
    "Zephyr",
    "all_boards",
    "board_names",
    "file_of",
    "load_board",
]

DEFAULT_BOARD = "mps2_an386"
"""Whose kernels are counted where nobody names a board."""
