# SPDX-License-Identifier: Apache-2.0
"""Modules that documents told users to import are importable under these names still."""

from __future__ import annotations

import importlib
import sys

import pytest

from tinyet.moved import MOVED


@pytest.mark.parametrize("name", MOVED)
def test_an_old_name_is_the_module_itself(name: str) -> None:
    pytest.importorskip("torch")
    assert importlib.import_module(name) is importlib.import_module(MOVED[name])
    assert sys.modules[name].__name__ == MOVED[name]


def test_what_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tinyet.frontend.nonsense")
