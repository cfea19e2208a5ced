# SPDX-License-Identifier: Apache-2.0
"""Counts, by rule, what cppcheck's MISRA C:2012 addon finds in the firmware's C and in a generated model.

    python scripts/misra.py [--lines RULE]

Prints a line a rule: its number, its findings, and the files they are in; with --lines, each finding of one rule. The
texts of the rules are MISRA's and not included: docs/misra.md says why each is deviated from.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tinyet import assets
from tinyet.delegates import kernel_sources

# As on a Cortex-M: int of 32 bits, pointers likewise, and what the compiler defines there.
_FLAGS = (
    *("--platform=unix32", "--std=c11", "--addon=misra", "--quiet", "--template={file}:{line}:{id}"),
    *(
        "-DTINYET_TRACE=1",
        "-D__arm__=1",
        "-D__thumb2__=1",
        "-D__SIZEOF_INT__=4",
        "-D__GNUC__=12",
        "-D__STDC_VERSION__=201112L",
    ),
    *("-DTINYET_CLOCK_HZ=25000000u", "-DTINYET_UART_BASE=0x40004000", "-DTINYET_UART_BAUD=115200u"),
    "--max-configs=1",
)
# For other machines than a Cortex-M, whose registers and headers it does not have.
_ELSEWHERE = re.compile(r"_(posix|zephyr\w*|riscv|xtensa|picolibc|lx106|ccount|ns16550)\.c$")

Finding = tuple[str, int, str]


def firmware_sources(into: Path) -> list[Path]:
    """The C files that a Cortex-M firmware is made of; the kernels' are put into a directory."""
    files = kernel_sources.write(into, kernel_sources.names())
    for folder in ("harness", "platform"):
        files += sorted((assets.path("firmware") / folder).glob("*.c"))
    return [path for path in files if not _ELSEWHERE.search(path.name)]


def check(sources: Sequence[Path], include_dirs: Sequence[Path]) -> list[Finding]:
    """(file's name, line, rule) of each finding, sorted, a header's once."""
    firmware = assets.path("firmware")
    places = [f"-I{place}" for place in (firmware / "include", firmware / "platform", *include_dirs)]

    def one(source: Path) -> str:
        with tempfile.TemporaryDirectory(prefix="tinyet-misra-") as scratch:
            command = ["cppcheck", *_FLAGS, *places, str(source.resolve())]
            return subprocess.run(command, capture_output=True, text=True, check=True, cwd=scratch).stderr

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = "".join(pool.map(one, sources))
    found = re.findall(r"^(.+):(\d+):misra-c2012-([\d.]+)$", said, re.MULTILINE)
    return sorted({(Path(file).name, int(line), rule) for file, line, rule in found})


def by_rule(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """{rule: findings}, in the order of the rules' numbers."""
    table: dict[str, list[Finding]] = collections.defaultdict(list)
    for finding in findings:
        table[finding[2]].append(finding)
    return {rule: table[rule] for rule in sorted(table, key=lambda rule: [int(n) for n in rule.split(".")])}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", metavar="RULE", help="show each finding of one rule")
    parser.add_argument("--model", metavar="DIR", type=Path, help="the C files of a generated model, too")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tinyet-misra-") as scratch:
        sources, places = firmware_sources(Path(scratch)), []
        if chosen.model is not None:
            sources += sorted(chosen.model.glob("*.c"))
            places.append(chosen.model)
        table = by_rule(check(sources, places))
    if chosen.lines:
        lines = [f"{file}:{line}" for file, line, _ in table.get(chosen.lines, [])]
    else:
        lines = [f"{'rule':>6} {'count':>6}  files"]
        for rule, findings in table.items():
            files = collections.Counter(file for file, _, _ in findings)
            most = ", ".join(f"{name} {n}" for name, n in files.most_common(3))
            lines.append(f"{rule:>6} {len(findings):>6}  {most}")
        total = sum(map(len, table.values()))
        lines.append(f"{'':>6} {total:>6}  in {len(sources)} C files and their headers")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
