# SPDX-License-Identifier: Apache-2.0
"""Some thousands of mutants of board files, .npz files, manifests and harness frames: none of them fails, and they are
neither all refused nor all taken. `python -m tests.fuzz` makes any number of others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fuzz.board import BoardFiles
from tests.fuzz.frames import Frames
from tests.fuzz.manifest import Manifests
from tests.fuzz.npz import NpzFiles
from tests.fuzz.run import Outcome, Target, run_here, table

SEED = 1


@pytest.mark.parametrize(
    ("make", "mutants"), [(BoardFiles, 1000), (NpzFiles, 3000), (Manifests, 150), (Frames, 800)]
)
def test_no_mutant_fails(make: Callable[[], Target], mutants: int) -> None:
    target = make()
    tally = run_here(target, SEED, range(mutants))
    assert tally.failures == [], table(target.name, tally)
    assert tally.outcomes[Outcome.EXACT] >= mutants // 25, table(target.name, tally)
    assert tally.outcomes[Outcome.REFUSED] >= mutants // 3, table(target.name, tally)
