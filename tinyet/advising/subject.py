# SPDX-License-Identifier: Apache-2.0
"""A program on a board, with all that decides its plan."""

from __future__ import annotations

from dataclasses import dataclass

from tinyet.budget.fit import FitRequest, fitted
from tinyet.deployment import Deployment
from tinyet.program import Program
from tinyet.project import Project


@dataclass(frozen=True)
class Subject:
    """What is analyzed. request: what its plan follows from, as it was asked for or is a project's own. own: the
    project, where nothing else is asked for than what it is."""

    program: Program
    request: FitRequest
    own: Project | None

    def deployed(self, other: FitRequest | None = None) -> Deployment:
        """The plan, or that of another request."""
        if other is None and self.own is not None:
            return self.own.deployment
        return fitted(self.request if other is None else other)
