# SPDX-License-Identifier: Apache-2.0
"""Where the time of a test run goes: at its end, the ten slowest files and what each of them has compiled.

A compiler run is a C or C++ source that a compiler is started for, or a build that a build tool is started for. The
counts are shown and never asserted on: what hypothesis draws decides which kernels are compiled.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

SHOWN = 10
KEY = "compiler_runs"

_COMPILER = re.compile(r"(?:[\w-]+-)?(?:gcc|g\+\+|cc|c\+\+)")
_SOURCE = re.compile(r"[^-].*\.(?:c|cc|cpp|S)")
_BUILD_TOOLS = {"cmake", "west", "arduino-cli"}


def compiler_runs(words: object) -> int:
    """How many there are in a command that is started."""
    if not isinstance(words, list | tuple):
        return 0
    texts = [os.fsdecode(word) for word in words if isinstance(word, str | bytes | os.PathLike)]
    tool = Path(texts[0]).name if texts else ""
    if _COMPILER.fullmatch(tool):
        return sum(_SOURCE.fullmatch(text) is not None for text in texts[1:])
    return int(tool in _BUILD_TOOLS or texts[1:4] == ["-m", "platformio", "run"])


class Slowest:
    """Counts this process's compiler runs, and lists the slowest files of all workers."""

    def __init__(self) -> None:
        self._runs = 0
        # All that starts a process does it with this class. (An audit hook would hear everything else, too: in
        # tests/ops and tests/delegates the fiftieth part of Python's time.)
        self._start = subprocess.Popen.__init__

        @functools.wraps(self._start)
        def counted(started: subprocess.Popen[Any], args: Any, *others: Any, **options: Any) -> None:
            self._count(args)
            self._start(started, args, *others, **options)

        self._starts_with(counted)

    @staticmethod
    def _starts_with(start: Callable[..., None]) -> None:
        place: Any = subprocess.Popen
        place.__init__ = start

    def _count(self, words: object) -> None:
        self._runs += compiler_runs(words)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A report holds what was compiled since the last one, and comes from a worker with it."""
        report = yield
        setattr(report, KEY, self._taken())
        return report

    def _taken(self) -> int:
        runs, self._runs = self._runs, 0
        return runs

    def pytest_sessionfinish(self) -> None:
        self._starts_with(self._start)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Seconds of set-up, call and tear-down of all tests of a file, of all workers; nothing where one file ran."""
        seconds: defaultdict[str, float] = defaultdict(float)
        runs: Counter[str] = Counter()
        for reports in terminalreporter.stats.values():
            for report in reports:
                if isinstance(report, pytest.TestReport):
                    file = report.nodeid.partition("::")[0]
                    seconds[file] += report.duration
                    runs[file] += getattr(report, KEY, 0)
        if len(seconds) < 2:
            return
        terminalreporter.section(f"slowest {SHOWN} files")
        for name, spent in sorted(seconds.items(), key=lambda item: -item[1])[:SHOWN]:
            terminalreporter.line(f"{spent:8.1f}s {runs[name]:5} compiler runs  {name}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Slowest(), KEY)
