# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import atexit
import subprocess
from pathlib import Path

import pytest

import tinyet.boards
from tests import forked

pytest.importorskip("torch")

_SCRIPT = """
import random, sys, warnings
assert __name__ == "__main__" and sys.argv == [__file__, "one"], sys.argv
assert not [name for name in sys.modules if name.partition(".")[0] == "tests"]
assert not [finder for finder in sys.meta_path if "pytest" in type(finder).__module__]
assert "torch" in sys.modules and "beside" not in sys.modules
import beside, tinyet, torch
from tinyet.boards import load_board
assert not hasattr(tinyet, "boards"), "nobody has imported it as that"
assert tinyet.version and load_board("microbit").name == "microbit"
assert beside.HERE and torch.initial_seed() == 67280421310721
print(random.random())
warnings.warn("a warning", stacklevel=1)
sys.exit(3)
"""


def test_a_copy_is_as_a_new_python(tmp_path: Path) -> None:
    if not forked._may_fork():
        pytest.skip("torch has several threads: OMP_NUM_THREADS is not 1")
    assert tinyet.boards.board_names(), "imported here, as an attribute"
    left = tmp_path / "left"
    atexit.register(left.touch)
    (tmp_path / "beside.py").write_text("HERE = True\n")
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    try:
        first, second = (forked.python([str(script), "one"], tmp_path) for _ in range(2))
    finally:
        atexit.unregister(left.touch)
    assert (first.returncode, second.returncode) == (3, 3), first.stderr
    assert "UserWarning: a warning" in first.stderr
    assert first.stdout != second.stdout
    assert not left.exists(), "what this process does at its end it does itself"


def test_an_error_is_its_status(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise ValueError('on purpose')\n")
    done = forked.python([str(script)], tmp_path)
    assert done.returncode == 1
    assert "ValueError: on purpose" in done.stderr


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import time\ntime.sleep(60)\n")
    with pytest.raises((TimeoutError, subprocess.TimeoutExpired)):
        forked.python([str(script)], tmp_path, timeout=0.3)
