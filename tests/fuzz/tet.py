# SPDX-License-Identifier: Apache-2.0
"""Mutants of .tet files. One that is not refused must give C that answers the reference's bits under sanitizers."""

from __future__ import annotations

import random

from tests.fuzz.builds import Builds
from tests.fuzz.run import Case, Outcome, Result, refusal
from tests.fuzz.tet_mutations import Mutator
from tests.fuzz.tet_seeds import seeds
from tinyet.program import from_bytes


class TetFiles:
    """See the module. A mutant's C is compiled with that of hundreds of others."""

    name = "tet"

    def __init__(self) -> None:
        self.mutator = Mutator([program.data for program in seeds()])
        self.builds = Builds()

    def mutate(self, rng: random.Random) -> Case:
        return self.mutator.mutate(rng)

    def check(self, case: Case) -> Outcome | None:
        with refusal() as refused:
            program = from_bytes(case.data, "mutant.tet")
        if refused:
            assert str(refused[0])
            return Outcome.REFUSED
        assert from_bytes(program.data, "again.tet").data == program.data, (
            "it is not itself when saved and loaded"
        )
        # The checksum's last byte is as good as a die.
        return self.builds.add(case, program, case.data[-1])

    def flush(self) -> list[Result]:
        return self.builds.flush()
