# SPDX-License-Identifier: Apache-2.0
"""No deviation from a MISRA rule that docs/misra.md does not explain, in a generated model with its kernels."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from types import ModuleType

import pytest

import tinyet
from tests import small

ROOT = Path(__file__).resolve().parents[2]


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("misra", ROOT / "scripts" / "misra.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(shutil.which("cppcheck") is None, reason="cppcheck is not installed")
def test_no_rule_is_new(tmp_path: Path) -> None:
    explained = set(re.findall(r"^\| (\d+\.\d+) \|", (ROOT / "docs" / "misra.md").read_text(), re.MULTILINE))
    assert len(explained) > 20
    tinyet.generate(small.program(), "mps2_an386", tmp_path / "p", kind="model", name="small")
    sources = sorted((tmp_path / "p").rglob("*.c"))
    misra = _script()
    found = misra.by_rule(misra.check(sources, sorted({source.parent for source in sources})))
    assert len(found) > 5
    assert {rule: lines[:3] for rule, lines in found.items() if rule not in explained} == {}
