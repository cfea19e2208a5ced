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
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
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
    # What shows each step, or stops at it, needs the terminal.
    shown = option.setupshow or option.setuponly or option.setupplan or option.usepdb or option.trace
    if count < 2 or failed or option.collectonly or shown:
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


@dataclass
class _Worker:
    """A copy of this process. tests: indices go there, and what it says of a test comes from there. given: indices of
    the tests that it has before it, the running one first. last: of the one that it has ended."""

    number: int
    process: multiprocessing.process.BaseProcess
    tests: Connection
    given: deque[int] = field(default_factory=deque)
    last: int | None = None


class _Workers:
    """Starts copies of this process, gives them tests, and passes on what they say of them, one test at a time."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session = session
        self._parts = Parts(len(session.items), count)
        self._workers: list[_Worker] = []
        base = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        for number in range(count):
            place = base / f"worker-{number}"
            place.mkdir()
            self._start(number, place)

    def _start(self, number: int, place: Path) -> None:
        copies = multiprocessing.get_context("fork")
        ours, theirs = copies.Pipe()
        others = [ours, *(worker.tests for worker in self._workers)]
        process = copies.Process(target=_work, args=(self._session, theirs, others, place))
        with warnings.catch_warnings():
            # There may be threads of imported modules, but nothing computes in them while tests are collected.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        theirs.close()
        self._workers.append(_Worker(number, process, ours))

    def run(self) -> None:
        """Raises what pytest's own loop raises where a session is to end early."""
        session = self._session
        if terminal := session.config.pluginmanager.getplugin("terminalreporter"):
            terminal.showfspath = False  # Each line would be of another file.
        running: dict[object, _Worker] = {worker.tests: worker for worker in self._workers}
        try:
            # A worker knows the next test before it ends one: fixtures that both need are not torn down.
            for worker in [*self._workers, *self._workers]:
                self._give(worker)
            while running:
                for ready in wait([worker.tests for worker in running.values()]):
                    try:
                        said: list[Said] = running[ready].tests.recv()
                    except (EOFError, OSError):
                        self._ended(running.pop(ready))
                    else:
                        self._hear(running[ready], said)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
                if session.shouldstop:
                    raise session.Interrupted(session.shouldstop)
        finally:
            for worker in self._workers:
                worker.tests.close()  # It ends after its current test.
                worker.process.join()
        # There are none unless all workers have ended early.
        while (left := self._parts.taken(0)) is not None:
            self._lost(session.items[left], "there is no worker left to run it")

    def _give(self, worker: _Worker) -> None:
        index = self._parts.taken(worker.number)
        if index is not None:
            worker.given.append(index)
        with contextlib.suppress(OSError):  # It has ended: that is heard next.
            worker.tests.send(index)

    def _hear(self, worker: _Worker, said: Sequence[Said]) -> None:
        worker.last = worker.given.popleft()
        self._give(worker)
        item, config = self._session.items[worker.last], self._session.config
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for name, facts in said:
            if name == "warning":
                config.hook.pytest_warning_recorded.call_historic(kwargs=facts)
            else:
                report = config.hook.pytest_report_from_serializable(config=config, data=facts)
                item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _ended(self, worker: _Worker) -> None:
        worker.process.join()
        status = worker.process.exitcode
        for index in worker.given:
            why = f"its worker has ended with status {status}, in this test or in the one before"
            self._lost(self._session.items[index], why)
        if status and not worker.given and worker.last is not None:
            self._lost(
                self._session.items[worker.last], f"its worker has ended after it with status {status}"
            )

    @staticmethod
    def _lost(item: pytest.Item, why: str) -> None:
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        item.ihook.pytest_runtest_logreport(report=report)


def _work(session: pytest.Session, tests: Connection, others: Sequence[Connection], place: Path) -> None:
    """A worker: runs the tests that it is given until there are no more.

    tests: indices come from there, and what was said of a test goes there. others: ends of the process that this is a
    copy of. place: for temporary files.
    """
    # What is left to do at the end of that process, which does it itself.
    atexit._clear()
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
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
        # The session has ended early. What fixtures hold goes with them.
        session._setupstate.teardown_exact(None)
    except KeyboardInterrupt:
        sys.exit(pytest.ExitCode.INTERRUPTED)  # The session itself reports it.
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
        self._known = frozenset(sys.modules)
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
        message = self._sendable(warning_message.category, str(warning_message.message))
        warning_message = warnings.WarningMessage(
            message, type(message), warning_message.filename, warning_message.lineno
        )
        facts = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        self._said.append(("warning", facts))

    def _sendable(self, category: type[Warning], text: str) -> Warning:
        """A warning that the other process can make, too: of a class that it has; else one that names the class."""
        with contextlib.suppress(Exception):
            made: Warning = pickle.loads(pickle.dumps(category(text)))
            if category.__module__ in self._known and str(made) == text:
                return made
        return UserWarning(f"{category.__name__}: {text}")
