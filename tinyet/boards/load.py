# SPDX-License-Identifier: Apache-2.0
"""Finds boards: those that come with tinyet, by name in the `boards` directory, and a user's own file by its path."""

from __future__ import annotations

import difflib
import tomllib
from functools import lru_cache
from pathlib import Path

from tinyet import assets
from tinyet.boards.board import Board
from tinyet.errors import BoardError
from tinyet.errors.arguments import path_given
from tinyet.files.reading import read_bounded

# Those that come with tinyet have some 2,000.
_MOST_BYTES = 1 << 16


def board_names() -> tuple[str, ...]:
    """The names of the boards that come with tinyet, sorted."""
    return tuple(sorted(path.stem for path in assets.path("boards").glob("*.toml")))


def all_boards() -> tuple[Board, ...]:
    """The boards that come with tinyet, by name."""
    return tuple(load_board(name) for name in board_names())


def load_board(board: str | Path | Board) -> Board:
    """Return a board by its name, or read a user's own from a .toml file; the file's stem is its name. A Board is
    returned as it is.

    Raises BoardError: an unknown name (with the nearest ones), a file that cannot be read, or everything
    that is wrong with it.
    """
    if isinstance(board, Board):
        return board
    text = str(path_given(board, "a board is a name, the path of a .toml file, or a Board"))
    if isinstance(board, Path) or text.endswith(".toml") or "/" in text or "\\" in text:
        return _load_file(Path(board))
    names = board_names()
    if text not in names:
        near = difflib.get_close_matches(text, names, n=3, cutoff=0.4)
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        raise BoardError(
            what=f"there is no board {text!r}",
            hint=f"{guess}boards: {', '.join(names)}; or give the path of your own board's .toml file",
        )
    return _load_file(assets.path("boards") / f"{text}.toml")


def _load_file(path: Path) -> Board:
    try:
        text = read_bounded(path, _MOST_BYTES).decode("utf-8")
    except OSError as error:
        raise BoardError(
            what=f"the board file cannot be read: {error.strerror}",
            where=str(path),
            hint=f"boards that need no file: {', '.join(board_names())}",
        ) from error
    except UnicodeDecodeError as error:
        raise _no_toml(path, error) from error
    return _board(path, text)


@lru_cache(maxsize=128)
def _board(path: Path, text: str) -> Board:
    """The board of a file with this text, made once: a project asks for the same board in many places."""
    try:
        values = tomllib.loads(text)
    # ValueError: TOMLDecodeError, and a number of thousands of digits.
    except (ValueError, RecursionError) as error:
        raise _no_toml(path, error) from error
    # pydantic is slow to import, and most of what imports tinyet.boards reads no board.
    from tinyet.boards.file import board_of

    return board_of(values, path, text)


def _no_toml(path: Path, error: Exception) -> BoardError:
    return BoardError(what=f"the board file is not TOML: {error}", where=str(path))


def file_of(board: str | Path | Board, loaded: Board) -> dict[str, bytes]:
    """A board file of the user's, under the board's name; nothing for a board that comes with tinyet."""
    if isinstance(board, Board) or str(board) in board_names():
        return {}
    return {f"{loaded.name}.toml": Path(board).read_bytes()}
