# SPDX-License-Identifier: Apache-2.0
"""A program on a board, with all that decides its plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyet.boards import Board
from tinyet.budget.fit import FitRequest, Limits, fitted
from tinyet.delegates import Delegate
from tinyet.deployment import Deployment
from tinyet.ir import Graph
from tinyet.planning.objective import Objective
from tinyet.program import Program
from tinyet.project import Project


@dataclass(frozen=True)
class Subject:
    """What is analyzed, with everything that was asked for or is a project's own. own: the project, where nothing
    else is asked for than what it is."""

    program: Program
    board: Board
    objective: Objective
    limits: Limits
    delegates: Sequence[Delegate]
    require_delegate: bool
    own: Project | None

    def deployed(
        self,
        objective: Objective | None = None,
        *,
        graph: Graph | None = None,
        limits: Limits | None = None,
        delegates: Sequence[Delegate] | None = None,
    ) -> Deployment:
        """The plan, or that with something else in the place of what it has."""
        if self.own is not None and (objective, graph, limits, delegates) == (None,) * 4:
            return self.own.deployment
        return fitted(
            FitRequest(
                self.program.graph if graph is None else graph,
                self.board,
                self.objective if objective is None else objective,
                self.limits if limits is None else limits,
                tuple(self.delegates if delegates is None else delegates),
                self.require_delegate,
                self.program.size,
            )
        )
