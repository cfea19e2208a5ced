# SPDX-License-Identifier: Apache-2.0
"""Where the time of a test run goes: its ten slowest files, at its end."""

from __future__ import annotations

from collections import defaultdict

import pytest

SHOWN = 10


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Seconds of set-up, call and tear-down of all tests of a file, of all workers; nothing where one file ran."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    if len(seconds) < 2:
        return
    terminalreporter.section(f"slowest {SHOWN} files")
    for name, spent in sorted(seconds.items(), key=lambda item: -item[1])[:SHOWN]:
        terminalreporter.line(f"{spent:8.1f}s {name}")
