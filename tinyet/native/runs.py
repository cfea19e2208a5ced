# SPDX-License-Identifier: Apache-2.0
"""Many runs of a graph one after the other: by the host reference, or by compiled C that the reference checks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from tinyet.boards.cpus import HOST
from tinyet.delegates import DEFAULT
from tinyet.deployment import deploy
from tinyet.errors import InternalError, ToolchainError, UnsupportedOp, UsageError
from tinyet.ir import Array, Graph, subgraphs
from tinyet.messages.stages import stage
from tinyet.mismatch.locate import same
from tinyet.native.build import library_of
from tinyet.native.library import Library
from tinyet.opset.custom import CustomAttrs
from tinyet.planning.objective import Objective
from tinyet.reference import Session, States
from tinyet.reference.evaluate import refuse_misfits

How = Literal["numpy", "native"]
"""What computes a run: the host reference, or compiled C."""

By = Literal["quickest", "numpy", "native"]
"""Who is to compute: compiled C as soon as the runs that are left are worth the compiler's time, or one of the two."""

JUDGED_EVERY = 256
"""Of runs by compiled C, the host reference computes the first, and of all of them each of so many, too."""

# Seconds that deploying, printing and compiling a model takes, and more for each byte of its constants: ResNet8's 79 KB
# take 0.7 s, MobileNetV2's 3.6 MB 5 s (Zen 5, GCC 12). It must be worth twice as much.
_BUILD_SECONDS, _BUILD_SECONDS_A_BYTE = 0.6, 1.2e-6
_WORTH = 2.0
# The first run makes tables that the others find.
_TIMED_RUN = 1


class Runs:
    """Runs of a graph, each with the states that the one before left, like `Session`'s.

    graph: of a program. count: the runs to expect. by: who computes.
    how: what has computed the last run. why: the reason that there is no compiled C, where it was wanted; else None.
    judged: runs by compiled C that the host reference has computed, too, to the same bits.
    """

    def __init__(self, graph: Graph, count: int, by: By = "quickest") -> None:
        """Raises UsageError for an unknown `by`; for "native" ToolchainError, UnsupportedOp or another UsageError
        where there is no compiled C."""
        if by not in ("quickest", "numpy", "native"):
            raise UsageError(f"nothing evaluates by {by!r}", hint="one of quickest, numpy, native")
        self.graph = graph
        self.how: How = "numpy"
        self.why: str | None = None
        self.judged = 0
        self._count = count
        self._done = 0
        self._session = Session(graph)
        self._library: Library | None = _library(graph) if by == "native" else None
        self._may_compile = by == "quickest"
        self._is_judged = False

    @property
    def state(self) -> States:
        """The states by name, as the next run will read them."""
        return self._session.state

    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        """The next run: an array for each of `user_outputs`.

        inputs: one array for each of `user_inputs`, of exactly its shape and dtype. Raises DataError when they are not;
        InternalError where compiled C gives other bits than the host reference.
        """
        refuse_misfits(self.graph.user_inputs, inputs, self.graph.name)
        before = time.perf_counter()
        found = (
            self._by_reference(inputs) if self._library is None else self._by_library(self._library, inputs)
        )
        if self._may_compile and self._done >= _TIMED_RUN:
            self._decide(time.perf_counter() - before)
        self._done += 1
        return found

    def _by_reference(self, inputs: Sequence[Array]) -> list[Array]:
        self.how = "numpy"
        return self._session.outputs(inputs)

    def _by_library(self, library: Library, inputs: Sequence[Array]) -> list[Array]:
        self.how = "native"
        state = self._session.state
        outputs, states = library.run(inputs, [*state.values()])
        if not self._is_judged or self._done % JUDGED_EVERY == 0:
            wanted = self._session.outputs(inputs)
            names = [tensor.name for tensor in self.graph.user_outputs]
            agree(self.graph.name, self._done, dict(zip(names, wanted, strict=True)), outputs)
            agree(self.graph.name, self._done, state, states)
            self._is_judged = True
            self.judged += 1
        for each, array in zip(self.graph.states, states, strict=True):
            state[each.name] = array
        return outputs

    def _decide(self, seconds: float) -> None:
        """After a run of so many seconds: compile, if the runs that are left are worth it."""
        self._may_compile = False
        stored = sum(tensor.array.nbytes for tensor in self.graph.constants)
        left = self._count - self._done - 1
        if left * seconds < _WORTH * (_BUILD_SECONDS + _BUILD_SECONDS_A_BYTE * stored):
            return
        if _has_own(self.graph):
            self.why = 'C of your own runs in this process only where by="native" asks for it'
            return
        try:
            self._library = _library(self.graph)
        except (ToolchainError, UnsupportedOp, UsageError) as error:
            self.why = error.what


def _has_own(graph: Graph) -> bool:
    """Whether operators of the user's own are in it, whose C might end this process."""
    return any(
        isinstance(node.attrs, CustomAttrs) or any(map(_has_own, subgraphs(node.attrs)))
        for node in graph.nodes
    )


def _library(graph: Graph) -> Library:
    """Raises ToolchainError; UnsupportedOp for operators without portable C, UsageError for C files that do not go
    together."""
    objective = Objective("speed", untiled=True)
    deployment = deploy(graph, HOST, DEFAULT, objective=objective)
    library = Library(library_of(deployment), deployment)
    stage("evaluating")
    return library


def agree(name: str, number: int, wanted: Mapping[str, Array], found: Sequence[Array]) -> None:
    """Raise InternalError at the first element that is not the reference's, as `validate` compares them."""
    for (what, right), given in zip(wanted.items(), found, strict=True):
        alike = same(right, given)
        if not alike.all():
            at = int(np.flatnonzero(~alike.ravel())[0])
            raise InternalError(
                f"the compiled C of {name} and the host reference differ in sample {number}, {what}, element {at}: "
                f"{given.ravel()[at]!s} where it is {right.ravel()[at]!s}",
                hint="this is a fault of tinyet, or of the C of an operator of your own: please report it; "
                'by="numpy" evaluates without compiled C',
            )
