# SPDX-License-Identifier: Apache-2.0
"""Generates a small model for every board and kind of project, and builds what can be built on this machine.

    python scripts/build_boards.py                          all of them
    python scripts/build_boards.py --board pico --kind platformio

Prints a table with the sizes of each firmware, or why it was not built: a tool that is not installed, or a registry
that cannot be reached, is a reason. Status 1 when a build was tried and failed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.golden.programs import separable  # noqa: E402 - a script finds the packages beside it
from tinyet.boards import board_names, load_board  # noqa: E402
from tinyet.build.builders import BUILDERS  # noqa: E402
from tinyet.cli import ui  # noqa: E402
from tinyet.emit.kinds import Kind, kinds_for  # noqa: E402
from tinyet.errors import TinyetError  # noqa: E402
from tinyet.projects.one import generate  # noqa: E402

# What a tool says that was started: everything else was missing before.
_TRIED = re.compile(r"failed \(exit status|did not end within|wrote no firmware|bytes too many")
# Except where the tool itself misses a part: a core of arduino-cli's, a board of west's.
_PART = re.compile(r"[Pp]latform '?[\w:]+'? (is )?not (found|installed)|No board named")


def build(board: str, kind: Kind, directory: Path) -> tuple[str, str]:
    """Build one project: ("built", sizes), ("not built", why), ("FAILED", what the tool said)."""
    began = time.monotonic()
    try:
        size = generate(separable(), board, directory, kind=kind).build()
    except TinyetError as error:
        if _TRIED.search(error.what) and not _PART.search(error.what):
            return "FAILED", str(error)
        return "not built", " ".join(error.what.split())
    seconds = time.monotonic() - began
    return "built", f"flash {size.flash}, RAM {size.ram} and stack {size.stack} bytes; {seconds:.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--board", choices=board_names(), action="append", help="only this one; may be repeated"
    )
    parser.add_argument("--kind", choices=list(BUILDERS), action="append", help="likewise")
    chosen = parser.parse_args()
    rows: list[tuple[str, str, str, str]] = []
    failures: list[str] = []
    for name in chosen.board or board_names():
        for kind in kinds_for(load_board(name)):
            if kind not in (chosen.kind or BUILDERS):
                continue
            with tempfile.TemporaryDirectory(prefix="tinyet-boards-") as directory:
                result, text = build(name, kind, Path(directory) / name)
            ui.say(f"{name} {kind}: {result}")
            rows.append((name, kind, result, text.partition("\n")[0]))
            if result == "FAILED":
                failures.append(f"{name} {kind}: {text}")
    ui.table([("board", "name"), ("kind", "name"), ("result", "name"), ("", "text")], rows)
    counts = {result: sum(row[2] == result for row in rows) for result in ("built", "not built", "FAILED")}
    ui.say(", ".join(f"{count} {result}" for result, count in counts.items()))
    for failure in failures:
        ui.say(failure)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
