# SPDX-License-Identifier: Apache-2.0
"""The gallery's examples, each run as its user runs it: how right the board is, and what it takes.

    python benchmarks/gallery.py [--results NAME]

Runs examples/*/demo.py with the weights that ship, on an emulated Cortex-M4. Needs PlatformIO, as the demos do.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import record

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ("keyword_spotting", "gesture", "anomaly", "image")
KEPT = (
    *("metrics", "samples", "mismatches", "instructions", "macs"),
    *("arena_bytes", "stack_bytes", "flash_bytes"),
)
"""Of what a demo writes."""


def measured(name: str) -> dict[str, object]:
    """Raises CalledProcessError where the demo fails: the board computes anything else than the host, say."""
    with tempfile.TemporaryDirectory(prefix="tinyet-gallery-") as where:
        found = Path(where) / "found.json"
        demo = ROOT / "examples" / name / "demo.py"
        words = [sys.executable, demo, "--out", Path(where) / "project", "--json", found]
        subprocess.run(words, check=True, cwd=ROOT)
        figures = json.loads(found.read_text(encoding="utf-8"))
    return {key: figures[key] for key in KEPT}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    record.add_option(parser)
    arguments = parser.parse_args()
    record.write(arguments.results, {name: measured(name) for name in EXAMPLES})


if __name__ == "__main__":
    main()
