# SPDX-License-Identifier: Apache-2.0
"""What a Python of its own finds: `import tinyet` loads nothing, and nothing that is loaded then says anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_CODE = """
import sys, tinyet
print("loaded:", sorted({"tinyet.errors", "torch"} & set(sys.modules)))
print("missing:", [name for name in tinyet.__all__ if not hasattr(tinyet, name)])
print("unknown:", hasattr(tinyet, "no_such_name"))

import torch
from tinyet.quantization.lowering import lower_model
from torch import nn
x = torch.randn(4, 3, 8, 8)
lower_model(nn.Conv2d(3, 4, 3), x[:1], name="m", calibration=[x])
"""


@pytest.fixture(scope="module")
def started() -> subprocess.CompletedProcess[str]:
    """One Python for both tests: most of its time is importing torch. It shows all warnings."""
    return subprocess.run(
        [sys.executable, "-W", "default", "-c", _CODE],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_public_names_are_loaded_on_first_use(started: subprocess.CompletedProcess[str]) -> None:
    assert started.returncode == 0, started.stderr
    assert started.stdout.splitlines()[:3] == ["loaded: []", "missing: []", "unknown: False"]


def test_importing_and_capturing_is_silent(started: subprocess.CompletedProcess[str]) -> None:
    assert (started.returncode, started.stderr) == (0, "")
    assert len(started.stdout.splitlines()) == 3
