# SPDX-License-Identifier: Apache-2.0
"""The comment that a pull request gets, of the digits example before and after a layer of it was narrowed.

    python benchmarks/pull_request.py [--results NAME]

What `tinyet compare BEFORE AFTER --markdown FILE` writes, and so examples/ci/tinyet.yml.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tinyet
from benchmarks.record import ROOT, add_option, write
from tinyet.opening import ModelOptions, read

CHANGES = (("nn.Conv2d(16, 24, 1)", "nn.Conv2d(16, 16, 1)"), ("nn.Conv2d(24, 32, 3", "nn.Conv2d(16, 32, 3"))
BOARD = "mps2_an386"


def comment() -> str:
    """The comment, in Markdown. Both networks are trained as the example is."""
    text = (ROOT / "examples" / "digits" / "model.py").read_text(encoding="utf-8")
    changed = text
    for old, new in CHANGES:
        assert changed.count(old) == 1, old
        changed = changed.replace(old, new)
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for name, source in (("before", text), ("after", changed)):
            path = Path(folder, name, "digits.py")
            path.parent.mkdir()
            path.write_text(source, encoding="utf-8")
            made.append(read(str(path), ModelOptions()))
    before, after = made
    found = tinyet.compare(before.program, after.program, board=BOARD, evaluation=after.evaluation)
    return found.to_markdown()


def main() -> int:
    """Make it, print it, and write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_option(parser)
    options = parser.parse_args()
    text = comment()
    sys.stdout.write(text)
    write(options.results, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
