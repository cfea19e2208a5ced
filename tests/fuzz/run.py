# SPDX-License-Identifier: Apache-2.0
"""Runs mutants of a target: counts what became of them, guards time and memory, keeps what failed.

To add a kind of file, write a class with the four members of `Target`, and list it in targets.py:

    class BoardFiles:
        name = "boards"

        def mutate(self, rng: random.Random) -> Case:           # everything random comes from rng
            return Case("title with a newline", b"...")

        def check(self, case: Case) -> Outcome | None:          # raises: a failure; None: flush() will tell
            try:
                load(case.data)
            except BoardError:
                return Outcome.REFUSED
            return Outcome.EXACT

        def flush(self) -> list[Result]:                        # what check() answered None for; [] otherwise
            return []

`check` may raise what it likes: any exception is a failure with its traceback, and so are InternalError (a TinyetError
that `check` must not swallow: see `refusal`), more than `SECONDS` of CPU time or more than `BYTES` of memory. Mutant
number k of a seed is the same whatever the number of jobs, and whichever mutants run before it.
"""

from __future__ import annotations

import enum
import gc
import multiprocessing
import random
import resource
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Protocol

from tinyet.errors import InternalError, TinyetError

SECONDS = 1.0
"""CPU time that one mutant may take."""

BYTES = 500 << 20
"""Memory that mutants may take beyond what the process had before the first."""

CHUNK = 1024
"""Mutants between two flushes of a target, and two reports of a job."""


class Outcome(enum.Enum):
    """What became of a mutant; the value is the line of the table."""

    REFUSED = "refused when loaded"
    REFUSED_LATER = "refused later"
    UNUSED = "loaded, too much work to run"
    SAME = "loaded, as one before"
    EXACT = "loaded, and right"
    FAILED = "FAILED"


@dataclass(frozen=True)
class Case:
    """A mutant: its file's bytes, and what was done to make it."""

    label: str
    data: bytes


@dataclass(frozen=True)
class Result:
    """What became of a mutant whose outcome could not be told at once. failure: what is wrong, for Outcome.FAILED."""

    case: Case
    outcome: Outcome
    failure: str = ""


class Target(Protocol):
    """One kind of file from strangers."""

    @property
    def name(self) -> str:
        """One word: for the table, and for the names of what is kept."""

    def mutate(self, rng: random.Random) -> Case:
        """A mutant, from `rng` alone."""

    def check(self, case: Case) -> Outcome | None:
        """What becomes of it; None when `flush` will tell. Anything raised is a failure."""

    def flush(self) -> list[Result]:
        """The outcomes of all mutants for which `check` answered None since the last time."""


@contextmanager
def refusal() -> Iterator[list[TinyetError]]:
    """Around what may refuse: the list holds the refusal, or nothing. InternalError is none, and passes through."""
    caught: list[TinyetError] = []
    try:
        yield caught
    except InternalError:
        raise
    except TinyetError as error:
        caught.append(error)


class TooLong(BaseException):
    """A mutant took more than its seconds; no handler of ordinary errors may swallow it."""


@dataclass(frozen=True)
class Extreme:
    """The slowest or the largest mutant: its number, its label, CPU seconds, bytes that the process grew by."""

    number: int
    label: str
    seconds: float
    grown: int


@dataclass(frozen=True)
class Failure:
    number: int
    label: str
    text: str
    data: bytes


@dataclass
class Tally:
    """What became of a target's mutants."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    slowest: Extreme | None = None
    largest: Extreme | None = None
    cpu_seconds: float = 0.0

    @property
    def count(self) -> int:
        return self.outcomes.total()

    def add(self, other: Tally) -> None:
        self.outcomes += other.outcomes
        self.failures += other.failures
        self.cpu_seconds += other.cpu_seconds
        self._extreme(other.slowest)
        self._extreme(other.largest)

    def _extreme(self, found: Extreme | None) -> None:
        if found is not None and (self.slowest is None or found.seconds > self.slowest.seconds):
            self.slowest = found
        if found is not None and (self.largest is None or found.grown > self.largest.grown):
            self.largest = found


def generator(target: Target, seed: int, number: int) -> random.Random:
    """The stream of one mutant."""
    return random.Random(f"{seed}/{target.name}/{number}")


def run_here(
    target: Target, seed: int, numbers: Iterable[int], at: Callable[[int], None] = lambda _number: None
) -> Tally:
    """Make and check these mutants in this process; `at` hears which is next."""
    tally = Tally()
    waiting: dict[int, int] = {}
    start = time.process_time()
    for number in numbers:
        at(number)
        case = target.mutate(generator(target, seed, number))
        before, peak = time.process_time(), _peak()
        try:
            with _deadline():
                outcome = target.check(case)
        except (Exception, TooLong) as error:  # noqa: BLE001 - whatever it is, it is a failure
            text = f"took more than {SECONDS:g} s" if isinstance(error, TooLong) else ""
            _fail(tally, number, case, text + "".join(traceback.format_exception(error)))
        else:
            if outcome is None:
                waiting[id(case)] = number
            else:
                tally.outcomes[outcome] += 1
        tally._extreme(Extreme(number, case.label, time.process_time() - before, _peak() - peak))
    for result in target.flush():
        number = waiting.pop(id(result.case))
        if result.outcome is Outcome.FAILED:
            _fail(tally, number, result.case, result.failure)
        else:
            tally.outcomes[result.outcome] += 1
    assert not waiting, f"{target.name}: {len(waiting)} mutant(s) without an outcome"
    tally.cpu_seconds = time.process_time() - start
    return tally


def _fail(tally: Tally, number: int, case: Case, text: str) -> None:
    tally.outcomes[Outcome.FAILED] += 1
    tally.failures.append(Failure(number, case.label, text, case.data))


def _peak() -> int:
    """Bytes of the largest size that the process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextmanager
def _deadline() -> Iterator[None]:
    """Raise TooLong in the block after SECONDS of CPU time. Garbage that others left is collected after it: of a
    long session that may take as long, and in Python 3.11 `ast.literal_eval`, which reads the header of an array,
    fails where garbage is collected within it."""

    def stop(_signal: int, _frame: object) -> None:
        raise TooLong

    before, collects = signal.signal(signal.SIGVTALRM, stop), gc.isenabled()
    gc.disable()
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        if collects:
            gc.enable()


# ---------------------------------------------------------------- in processes of their own


def run(
    target: Target,
    seed: int,
    mutants: int,
    jobs: int = 1,
    progress: Callable[[Tally], None] = lambda _tally: None,
) -> Tally:
    """Mutants 0 … `mutants` - 1 of a seed, in `jobs` processes of limited memory; `progress` hears the sum so far.

    A process that dies is a failure of the mutant it was at; the others of its chunk are run again without that one.
    """
    tally, running = Tally(), [_Job(target, seed, range(first, mutants, CHUNK * jobs), mutants)
                               for first in range(0, min(mutants, CHUNK * jobs), CHUNK)]  # fmt: skip
    while running:
        ready = wait([job.pipe for job in running])
        for job in [job for job in running if job.pipe in ready]:
            part = job.receive()
            if part is None:
                running.remove(job)
            else:
                tally.add(part)
                progress(tally)
    return tally


class _Job:
    """A process that runs every so many chunks of a target's mutants."""

    def __init__(self, target: Target, seed: int, starts: range, mutants: int) -> None:
        self.target, self.seed, self.starts, self.mutants = target, seed, starts, mutants
        self.done = 0
        self.deadly: set[int] = set()
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.at: Synchronized[int] = context.Value("q", -1)
        self.pipe, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=self._work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def _numbers(self, start: int) -> list[int]:
        return [n for n in range(start, min(start + CHUNK, self.mutants)) if n not in self.deadly]

    def _work(self, pipe: Connection) -> None:
        _limit_memory()
        for start in self.starts[self.done :]:
            try:
                pipe.send(run_here(self.target, self.seed, self._numbers(start), self._note))
            except Exception:
                pipe.send(traceback.format_exc())
                raise
        pipe.close()

    def _note(self, number: int) -> None:
        self.at.value = number

    def receive(self) -> Tally | None:
        """What a chunk gave; None at the end."""
        try:
            part = self.pipe.recv()
        except EOFError:
            self.process.join()
            if self.process.exitcode == 0:
                return None
            return self._died()
        # What goes wrong beside a mutant is a fault of the target's own.
        assert isinstance(part, Tally), f"{self.target.name}: {part}"
        self.done += 1
        return part

    def _died(self) -> Tally:
        number = int(self.at.value)
        assert number not in self.deadly, (
            f"{self.target.name}: dies outside its mutants, after number {number}"
        )
        self.deadly.add(number)
        case, tally = self.target.mutate(generator(self.target, self.seed, number)), Tally()
        _fail(tally, number, case, f"the process died with status {self.process.exitcode}")
        self._start()
        return tally


def _limit_memory() -> None:
    """From here on the process cannot take more than BYTES beside what it has; its children may lift that again."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + BYTES, hard))


# ---------------------------------------------------------------- reports


def table(name: str, tally: Tally) -> str:
    """What became of a target's mutants, as lines of text."""
    lines = [f"{name}: {tally.count:,} mutants, {tally.cpu_seconds:.0f} s of CPU"]
    for outcome in Outcome:
        count = tally.outcomes[outcome]
        lines.append(f"  {outcome.value:28} {count:>10,} {100 * count / max(tally.count, 1):6.2f} %")
    if tally.slowest is not None and tally.largest is not None:
        slow, large = tally.slowest, tally.largest
        lines.append(f"  slowest: number {slow.number}, {slow.seconds:.3f} s: {slow.label}")
        lines.append(f"  largest: number {large.number}, {large.grown / 2**20:.1f} MiB: {large.label}")
    lines += [
        f"  FAILED number {f.number} ({f.label}): {f.text.strip().splitlines()[-1]}"
        for f in tally.failures[:20]
    ]
    return "\n".join(lines)


def keep(failures: Iterable[Failure], folder: Path, name: str) -> None:
    """Write each failing file, and beside it what it did."""
    folder.mkdir(parents=True, exist_ok=True)
    for failure in failures:
        stem = f"{name}-{failure.number}"
        (folder / stem).write_bytes(failure.data)
        (folder / f"{stem}.txt").write_text(f"{failure.label}\n\n{failure.text}", encoding="utf-8")
