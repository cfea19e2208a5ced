# SPDX-License-Identifier: Apache-2.0
"""The option that accepts what is generated: `pytest tests/golden --update-golden`; then read the diff."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden/expected anew instead of comparing"
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    # A run over all tests reads this file too late to know the option; then it compares.
    return bool(request.config.getoption("update_golden", default=False))
