# SPDX-License-Identifier: Apache-2.0
"""Writes the table of boards in docs/boards.md, from the files in boards/.

python scripts/board_table.py            write it
python scripts/board_table.py --check    status 1 when the page is not what would be written
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tinyet.boards import Memory, all_boards  # noqa: E402 - a script finds the package beside it
from tinyet.emit.kinds import KINDS, kinds_for  # noqa: E402

PLACE = ROOT / "docs" / "boards.md"

_HEAD = ("name", "board", "core", "ISA", "flash", "RAM", "kinds", "emulators")
_HEADING = "## The boards\n\n"


def _size(memory: Memory) -> str:
    return f"{memory.bytes // 1024}K" if memory.bytes % 1024 == 0 else str(memory.bytes)


def table() -> str:
    """The table in Markdown."""
    rows: list[tuple[str, ...]] = [_HEAD, ("---",) * len(_HEAD)]
    # The text under the table has what every board can have.
    everywhere = set(KINDS).intersection(*(kinds_for(board) for board in all_boards()))
    for board in all_boards():
        core = (
            f"{board.cpu} ({' '.join(sorted(board.target.features))})" if board.target.features else board.cpu
        )
        kinds = ", ".join(kind for kind in kinds_for(board) if kind not in everywhere)
        rows.append(
            (
                f"`{board.name}`",
                board.title,
                core,
                board.isa,
                _size(board.flash),
                _size(board.ram),
                kinds,
                ", ".join(board.emulators),
            )
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def text() -> str:
    """The page with the table as it should be."""
    before, _, behind = PLACE.read_text(encoding="utf-8").partition(_HEADING)
    rest = behind.partition("\n\n")[2]
    return f"{before}{_HEADING}{table()}\n{rest}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if parser.parse_args().check:
        return int(PLACE.read_text(encoding="utf-8") != text())
    PLACE.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
