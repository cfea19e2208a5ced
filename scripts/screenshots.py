# SPDX-License-Identifier: Apache-2.0
"""Draws the reports of docs/reports.md, as they are on a terminal of 80 columns, into docs/images/reports/.

usage: python scripts/screenshots.py [NAME ...]
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "images" / "reports"
COLUMNS = 80
MODEL = "examples/digits/model.py"
# What is shown, by name; PROJECT is a directory that is generated and built first.
COMMANDS = {
    "analyze": ("analyze", "PROJECT"),
    "validate": ("validate", "PROJECT", "--max-samples", "20"),
    "boards": ("boards",),
    "quantize": ("quantize", MODEL, "--report"),
}
# A page has no scroll bar.
MOST_LINES = 90


def tinyet(*arguments: str) -> str:
    """Standard output of a command, with its colours."""
    environment = os.environ | {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1"}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "tinyet", *arguments]
    # The colours are asked for, so there is progress on standard error, too.
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(ended.stderr)
    return ended.stdout


def draw(name: str, project: str) -> None:
    arguments = [project if word == "PROJECT" else word for word in COMMANDS[name]]
    lines = tinyet(*arguments).strip("\n").splitlines()
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"… {len(lines) - MOST_LINES} lines more"]
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    shown = ["build/digits" if word == "PROJECT" else word for word in COMMANDS[name]]
    console.print(Text(f"$ tinyet {' '.join(shown)}", "bold green"))
    for line in lines:
        console.print(Text.from_ansi(line), overflow="fold")
    OUT.mkdir(parents=True, exist_ok=True)
    svg = console.export_svg(title=f"tinyet {name}", unique_id=f"tinyet-{name}")
    (OUT / f"{name}.svg").write_text(svg, encoding="utf-8")


def main() -> None:
    names = sys.argv[1:] or list(COMMANDS)
    with tempfile.TemporaryDirectory() as scratch:
        project = f"{scratch}/digits"
        if any("PROJECT" in COMMANDS[name] for name in names):
            tinyet("generate", MODEL, "--board", "mps2_an386", "--name", "digits", "-o", project)
            tinyet("build", project)
        for name in names:
            draw(name, project)


if __name__ == "__main__":
    main()
