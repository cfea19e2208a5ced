# SPDX-License-Identifier: Apache-2.0
"""Tests in copies of the process that collected them: `pytest --workers N`, or `auto` for as many as there are cores.

Importing torch and all tests takes as long as a thousand small ones, and each worker of pytest-xdist does it again.
These begin with what is imported, and share its memory.

A worker begins at its own part of the tests, in their order, since neighbours share what they compile and prepare. At
its end it takes half of what another has left.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import pickle
import sys
import warnings
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

Said = tuple[str, dict[str, Any]]
"""A "report" as pytest serializes it, or a "warning": what its hook is called with."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--workers",
        type=_count,
        default=1,
        metavar="N",
        help="run tests in N copies of the process that collects them; auto: as many as there are cores",
    )


def _count(text: str) -> int:
    count = len(os.sched_getaffinity(0)) if text == "auto" else int(text)
    if count < 1:
        raise ValueError(text)
    return count


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """In place of pytest's own, where there are several workers."""
    option = session.config.option
    count = min(option.workers, len(session.items))
    failed = session.testsfailed and not option.continue_on_collection_errors
    if count < 2 or failed or option.collectonly or option.usepdb:
        return None
    _Workers(session, count).run()
    return True


class Parts:
    """Which tests are left for each worker. Each index of `total` is taken once."""

    def __init__(self, total: int, workers: int) -> None:
        self._left = [
            range(total * worker // workers, total * (worker + 1) // workers) for worker in range(workers)
        ]

    def taken(self, worker: int) -> int | None:
        """The next test of a worker; None where none is left for anybody."""
        if not self._left[worker]:
            most = max(range(len(self._left)), key=lambda other: len(self._left[other]))
            kept = len(self._left[most]) // 2
            self._left[worker] = self._left[most][kept:]
            self._left[most] = self._left[most][:kept]
        if not self._left[worker]:
            return None
        index, self._left[worker] = self._left[worker][0], self._left[worker][1:]
        return index


class _Workers:
    """Starts copies of this process, gives them tests, and passes on what they say of them, a test at once."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session = session
        self._parts = Parts(len(session.items), count)
        self._given: dict[Connection, deque[int]] = {}
        self._numbers: dict[Connection, int] = {}
        self._processes: dict[Connection, multiprocessing.process.BaseProcess] = {}
        base = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        for worker in range(count):
            place = base / f"worker-{worker}"
            place.mkdir()
            self._start(worker, place)

    def _start(self, worker: int, place: Path) -> None:
        copies = multiprocessing.get_context("fork")
        ours, theirs = copies.Pipe()
        process = copies.Process(target=_work, args=(self._session, theirs, [*self._given, ours], place))
        with warnings.catch_warnings():
            # There may be threads of imported modules: none of them is needed.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        theirs.close()
        self._given[ours], self._numbers[ours], self._processes[ours] = deque(), worker, process

    def run(self) -> None:
        """Raises what pytest's own loop raises where a session is to end early."""
        session = self._session
        if terminal := session.config.pluginmanager.getplugin("terminalreporter"):
            terminal.showfspath = False  # Each line would be of another file.
        try:
            for worker in self._given:
                # A worker knows the next test before it ends one: what that needs, too, is kept.
                self._give(worker)
                self._give(worker)
            while self._given:
                for ready in wait(list(self._given)):
                    assert isinstance(ready, Connection)
                    self._hear(ready)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
                if session.shouldstop:
                    raise session.Interrupted(session.shouldstop)
        finally:
            for worker, process in self._processes.items():
                worker.close()  # It ends behind its test.
                process.join()
        # Nothing where a worker is left at the end.
        while (left := self._parts.taken(0)) is not None:
            self._lost(session.items[left], "there is no worker left to run it")

    def _give(self, worker: Connection) -> None:
        index = self._parts.taken(self._numbers[worker])
        if index is not None:
            self._given[worker].append(index)
        with contextlib.suppress(OSError):  # It has ended: that is heard next.
            worker.send(index)

    def _hear(self, worker: Connection) -> None:
        try:
            said: list[Said] = worker.recv()
        except (EOFError, OSError):
            process = self._processes[worker]
            process.join()
            why = f"its worker has ended with status {process.exitcode}, in this test or in the one before"
            for index in self._given.pop(worker):
                self._lost(self._session.items[index], why)
            return
        item = self._session.items[self._given[worker].popleft()]
        self._give(worker)
        config = self._session.config
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for name, facts in said:
            if name == "warning":
                config.hook.pytest_warning_recorded.call_historic(kwargs=facts)
            else:
                report = config.hook.pytest_report_from_serializable(config=config, data=facts)
                item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    @staticmethod
    def _lost(item: pytest.Item, why: str) -> None:
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        item.ihook.pytest_runtest_logreport(report=report)


def _work(session: pytest.Session, tests: Connection, others: Sequence[Connection], place: Path) -> None:
    """A worker: runs the tests that it is given until there are no more.

    tests: indices come from there, and what was said of a test goes there. others: ends of the process that this is a
    copy of. place: for temporary files.
    """
    atexit._clear()  # What is left to do at the end of that process.
    for other in others:
        other.close()
    _is_a_worker(session.config, place)
    said = _Said(session.config)
    session.config.pluginmanager.register(said)
    try:
        index, following = tests.recv(), tests.recv()
        while index is not None:
            session.items[index].config.hook.pytest_runtest_protocol(
                item=session.items[index],
                nextitem=None if following is None else session.items[following],
            )
            tests.send(said.taken())
            index, following = following, None if following is None else tests.recv()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # The session has ended early.
    except KeyboardInterrupt:
        sys.exit(pytest.ExitCode.INTERRUPTED)  # Whoever interrupts all is told by the session.
    finally:
        atexit._run_exitfuncs()


def _is_a_worker(config: pytest.Config, place: Path) -> None:
    """It writes nothing to the terminal, and shares no file with others."""
    plugins = config.pluginmanager
    for name in ("terminalreporter", "terminalprogress"):
        if plugins.has_plugin(name):
            plugins.unregister(name=name)
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    config._tmp_path_factory._basetemp = place  # type: ignore[attr-defined]


class _Said:
    """What is said of a test, in a form that another process reads."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._said: list[Said] = []

    def taken(self) -> list[Said]:
        said, self._said = self._said, []
        return said

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._said.append(("report", data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        try:
            pickle.loads(pickle.dumps(warning_message))
        except Exception:  # noqa: BLE001
            # Of a class that is only here, or that holds what is only here: its text.
            text = f"{warning_message.category.__name__}: {warning_message.message}"
            warning_message = warnings.WarningMessage(
                UserWarning(text), UserWarning, warning_message.filename, warning_message.lineno
            )
        facts = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        self._said.append(("warning", facts))
