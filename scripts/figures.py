# SPDX-License-Identifier: Apache-2.0
"""Writes what benchmarks have measured into the documents, from `benchmarks/results/`.

    python scripts/figures.py            # write
    python scripts/figures.py --check    # exit status 1 where a page is not what the results give

A page says where a figure belongs: `<!-- figures: NAME -->`, and `<!-- end -->` behind it, around a table or within a
sentence. NAME is a function of benchmarks/tables/, which gives the text. To measure anew, run the command that the
result's file has, then this.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.tables import FIGURES

ROOT = Path(__file__).resolve().parent.parent
MARKED = re.compile(r"(<!-- figures: (\w+) -->)(.*?)(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """The documents that hold figures."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [path for path in found if MARKED.search(path.read_text(encoding="utf-8"))]


def text(path: Path) -> str:
    """A page as it should be. Raises KeyError for a figure that FIGURES does not have."""
    return MARKED.sub(lambda m: m[1] + FIGURES[m[2]]() + m[4], path.read_text(encoding="utf-8"))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale = [path for path in pages() if path.read_text(encoding="utf-8") != text(path)]
    for path in stale:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
        if not check:
            path.write_text(text(path), encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
