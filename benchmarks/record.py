# SPDX-License-Identifier: Apache-2.0
"""Results of benchmarks as files, from which `scripts/figures.py` writes the tables of the documents.

A benchmark that takes `--results NAME` writes `benchmarks/results/NAME.json`: the command that measured it, the commit
it was measured at, the versions of the tools that figures depend on, and the figures. No time and no path: the same
input gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

from tinyet.assets import CMSIS_NN_VERSION
from tinyet.build.doctor import checks

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks" / "results"
_TOOLS = ("arm-none-eabi-gcc", "qemu-system-arm", "torch", "torchao")


def add_option(parser: argparse.ArgumentParser) -> None:
    """`--results NAME`, which `write` takes as `options.results`."""
    parser.add_argument("--results", metavar="NAME", help="write benchmarks/results/NAME.json, too")
    # What is measured is what is there when it begins.
    commit()


def write(name: str | None, figures: object) -> None:
    """Write a result; None, where none was asked for, writes nothing. figures: what JSON can hold."""
    if name is None:
        return
    words = [Path(sys.argv[0]).resolve().relative_to(ROOT).as_posix(), *sys.argv[1:]]
    written = {
        "command": shlex.join(["python", *words]),
        "commit": commit(),
        "tools": {check.name: check.version for check in checks() if check.name in _TOOLS}
        | {"CMSIS-NN": CMSIS_NN_VERSION},
        "figures": figures,
    }
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps(written, indent=1, ensure_ascii=False) + "\n"
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


@cache
def commit() -> str:
    """The commit that was checked out at the first call; with a + where sources differed from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "tinyet", "firmware", "templates", "boards")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
