# SPDX-License-Identifier: Apache-2.0
"""The runner of the fuzzer itself: it must see every kind of failure, or it proves nothing."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz.run import BYTES, Case, Outcome, Result, Tally, keep, run, run_here, table
from tinyet.errors import InternalError, UsageError

KINDS = ("refuse", "later", "abort", "memory", "forever", "internal", "wrong")


class Toy:
    """A mutant is a word: what checking it does."""

    name = "toy"

    def __init__(self) -> None:
        self.waiting: list[Case] = []

    def mutate(self, rng: random.Random) -> Case:
        word = "refuse" if rng.random() < 0.8 else rng.choice(KINDS)
        return Case(word, word.encode())

    def check(self, case: Case) -> Outcome | None:
        match case.label:
            case "abort":
                os.abort()
            case "memory":
                bytearray(2 * BYTES)
            case "forever":
                while True:
                    pass
            case "internal":
                raise InternalError("a contradiction")
            case "later" | "wrong":
                self.waiting.append(case)
                return None
        return Outcome.REFUSED

    def flush(self) -> list[Result]:
        done, self.waiting = self.waiting, []
        return [
            Result(c, Outcome.FAILED, "other bits") if c.label == "wrong" else Result(c, Outcome.EXACT)
            for c in done
        ]


def test_every_kind_of_failure_is_seen_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.run.CHUNK", 16)
    monkeypatch.setattr("tests.fuzz.run.SECONDS", 0.05)
    tally = run(Toy(), 3, 150, jobs=2)
    assert tally.count == 150
    seen = Counter(f.label for f in tally.failures)
    assert set(seen) == set(KINDS) - {"refuse", "later"}
    assert seen.total() == tally.outcomes[Outcome.FAILED]
    said = {f.label: f.text for f in tally.failures}
    assert "status -6" in said["abort"]
    assert "MemoryError" in said["memory"]
    assert "took more than" in said["forever"]
    assert "InternalError" in said["internal"]
    assert said["wrong"] == "other bits"
    keep(tally.failures, tmp_path, "toy")
    assert len(list(tmp_path.iterdir())) == 2 * len(tally.failures)
    assert f"FAILED                       {seen.total():>10,}" in table("toy", tally)


class Harmless(Toy):
    """The same words, but nothing is done."""

    def check(self, case: Case) -> Outcome | None:
        if case.label == "internal":
            raise UsageError("nothing")
        return Outcome.REFUSED


def test_mutants_are_the_same_however_many_jobs_run_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.run.CHUNK", 8)

    def failed(tally: Tally) -> set[int]:
        return {f.number for f in tally.failures}

    whole = run_here(Harmless(), 5, range(200))
    assert failed(whole)
    assert failed(run(Harmless(), 5, 200, jobs=2)) == failed(whole)
    assert failed(run_here(Harmless(), 6, range(200))) != failed(whole)
