# SPDX-License-Identifier: Apache-2.0
"""Budgets as tests of pytest, for the plugin alone: nothing else needs pytest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tinyet.errors import LimitError, TinyetError, bullet_list
from tinyet.survey.budgets import Budget, read_budgets
from tinyet.survey.look import check


class BudgetFile(pytest.File):
    """A file with budgets, as `tinyet check --budgets` takes it."""

    def collect(self) -> Iterator[BudgetItem]:
        for number, budget in enumerate(read_budgets(self.path)):
            model = os.path.relpath(budget.model, self.path.parent)
            yield BudgetItem.from_parent(
                self, name=f"budget[{number}: {model} on {Path(budget.board).stem}]", budget=budget
            )


class BudgetItem(pytest.Item):
    """A budget: its model can become firmware of its board, fits, and is within its limits."""

    def __init__(self, *, budget: Budget, **given: Any) -> None:
        super().__init__(**given)
        self.budget = budget

    def runtest(self) -> None:
        found = check(self.budget.model, board=self.budget.board)
        error = found.error or found.too_large
        if error is not None:
            raise error
        if above := self.budget.broken(found):
            raise LimitError(f"above the budget:\n{bullet_list(above)}", f"{found.path} on {found.board}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any, **__: Any) -> Any:
        """tinyet's message in place of a traceback."""
        error = excinfo.value
        return str(error) if isinstance(error, TinyetError) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name
