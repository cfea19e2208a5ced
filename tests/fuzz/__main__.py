# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.fuzz`: any number of mutants of every kind of file; see docs/fuzzing.md."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from tests.fuzz.run import Tally, generator, keep, run, run_here, table
from tests.fuzz.targets import TARGETS
from tests.ops.objects import DIRECTORY

REPORT_SECONDS = 30.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--target", choices=sorted(TARGETS), action="append", help="a kind of file; all by default"
    )
    parser.add_argument("--mutants", type=int, default=10_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--number", type=int, help="this mutant only, in this process: for a debugger")
    parser.add_argument(
        "--keep", type=Path, default=Path("build/fuzz"), help="where files that fail are written"
    )
    given = parser.parse_args()
    # Kernels are compiled once, and kept for the next time.
    objects = given.keep / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault(DIRECTORY, str(objects.resolve()))
    failed = False
    for name in given.target or sorted(TARGETS):
        target = TARGETS[name]()
        if given.number is not None:
            print(target.mutate(generator(target, given.seed, given.number)).label)
            tally = run_here(target, given.seed, [given.number])
        else:
            tally = run(target, given.seed, given.mutants, given.jobs, _Progress(name, given.keep))
        print(table(name, tally), flush=True)
        failed = failed or bool(tally.failures)
    return int(failed)


class _Progress:
    """A line every REPORT_SECONDS; failures are written as they come."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.kept = name, folder, 0
        self.start = self.last = time.monotonic()

    def __call__(self, tally: Tally) -> None:
        keep(tally.failures[self.kept :], self.folder, self.name)
        self.kept = len(tally.failures)
        now = time.monotonic()
        if now - self.last >= REPORT_SECONDS:
            self.last = now
            each = 1000 * (now - self.start) / max(tally.count, 1)
            print(f"{name_and_count(self.name, tally)}, {each:.2f} ms each", flush=True)


def name_and_count(name: str, tally: Tally) -> str:
    return f"{name}: {tally.count:,} mutants, {len(tally.failures)} failed"


if __name__ == "__main__":
    sys.exit(main())
