# SPDX-License-Identifier: Apache-2.0
"""What each test file compiles, against its budget in compile_budget.toml: keeps the suite quick without a clock.

A compiler run is a C or C++ source that a compiler is started for, or a build that a build tool is started for. Every
process of a session holds each file to its budget by itself, so the number of workers does not matter.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

BUDGETS = Path(__file__).with_name("compile_budget.toml")
KEY = "compile_budget"

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


def exceeded(counts: Mapping[str, int], budgets: Mapping[str, int]) -> list[str]:
    """A line for each file that compiles more than its budget allows; "any other" is that of files without one."""
    allowed = {file: budgets.get(file, budgets["any other"]) for file in counts}
    return [
        f"{file}: {count} compiler runs, its budget is {allowed[file]}"
        for file, count in sorted(counts.items())
        if count > allowed[file]
    ]


class Counting:
    """Counts this process's compiler runs, and collects what its workers say of theirs."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.lines: list[str] = []
        self._active = True
        # Whoever starts a process, and however: there is no way around an audit hook, and none to take it back.
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "subprocess.Popen" and self._active:
            file = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
            if file.startswith("tests/"):
                self.counts[file] += compiler_runs(arguments[1])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """xdist: a worker has ended."""
        self.lines += getattr(node, "workeroutput", {}).get(KEY, [])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._active = False
        budgets = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))["compiler_runs"]
        self.lines += exceeded(self.counts, budgets)
        output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[KEY] = self.lines
        elif self.lines and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """After pytest's own summary: whoever sees the end of a log alone learns why a run without failures is red."""
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if self.lines and reporter is not None:
            reporter.section("more is compiled than tests/compile_budget.toml allows", red=True)
            for line in self.lines:
                reporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Counting(), KEY)
