# SPDX-License-Identifier: Apache-2.0
"""Workers: each test runs once, and a session says of it what it says without them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workers import Parts

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are copies of a process")

ALL_KINDS = """
import os, sys, warnings
from pathlib import Path
from types import ModuleType
import pytest

HERE = os.getpid()  # Of the process that collects.

class Odd(Warning):
    def __init__(self, made_of, _): super().__init__(f"odd {made_of}")

@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    yield tmp_path_factory.mktemp("whole")
    Path(os.environ["LEFT"], f"torn down by {os.getpid()}").touch()

@pytest.mark.parametrize("at", range(40))
def test_it(at, whole, tmp_path):
    assert os.getpid() != HERE and os.getppid() == HERE
    (whole / str(at)).touch(exist_ok=False)
    Path(os.environ["LEFT"], f"{at} by {os.getpid()}").touch()

def test_fails():
    print("what it", "prints")
    left, right = 1, 2
    assert left == right

def test_warns():
    warnings.warn("a usual one", RuntimeWarning)
    warnings.warn(Odd(object(), None))
    sys.modules["made_later"] = later = ModuleType("made_later")
    exec("class New(UserWarning): ...", vars(later))
    warnings.warn(later.New("of this process"))

@pytest.mark.skip(reason="never")
def test_skipped(): ...

@pytest.mark.xfail
def test_expected(): assert False

@pytest.fixture
def broken():
    yield
    raise OSError("in its end")

def test_ends_badly(broken): ...
"""


def session(folder: Path, text: str, *options: str) -> tuple[int, str]:
    """The status and the output of a session of two workers with one module of tests."""
    (folder / "left").mkdir()
    (folder / "test_them.py").write_text(text)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.workers", "-p", "no:cacheprovider", "--workers", "2"),
            *("-c", os.devnull, "--rootdir", str(folder), "-ra", *options, str(folder / "test_them.py")),
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT), "LEFT": str(folder / "left"), "COLUMNS": "200"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert not done.stderr
    return done.returncode, done.stdout


def test_a_session_says_what_it_says_without_workers(tmp_path: Path) -> None:
    status, said = session(tmp_path, ALL_KINDS, "--basetemp", str(tmp_path / "temporary"))
    assert status == 1
    assert re.search(r"1 failed, 42 passed, 1 skipped, 1 xfailed, 3 warnings, 1 error", said), said
    assert "assert 1 == 2" in said
    assert said.count("what it prints") == 1
    assert "RuntimeWarning: a usual one" in said
    assert "UserWarning: New: of this process" in said
    assert "Odd: odd <object" in said
    assert "OSError: in its end" in said
    left = [path.name for path in (tmp_path / "left").iterdir()]
    assert sorted(int(name.split()[0]) for name in left if "torn" not in name) == list(range(40))
    workers = {name.split()[-1] for name in left}
    assert len(workers) == 2
    assert sum("torn down" in name for name in left) == 2


@pytest.mark.parametrize("ending", ["os._exit(3)", "os.kill(os.getpid(), 9)", "raise KeyboardInterrupt"])
def test_a_worker_that_ends_is_a_failure_and_another_runs_the_rest(tmp_path: Path, ending: str) -> None:
    tests = f"import os\ndef test_0(): {ending}\n" + "".join(f"def test_{i}(): ...\n" for i in range(1, 30))
    status, said = session(tmp_path, tests)
    assert status == 1
    # The one behind it was given to the same worker.
    assert "2 failed, 28 passed" in said, said
    assert "test_0 - its worker has ended with status" in said


def test_a_worker_that_fails_after_its_last_test_is_a_failure(tmp_path: Path) -> None:
    tests = "import atexit, os\ndef test_0(): atexit.register(os._exit, 3)\ndef test_1(): ...\n"
    status, said = session(tmp_path, tests)
    assert status == 1
    assert "1 failed, 2 passed" in said
    assert "test_0 - its worker has ended after it with status 3" in said


def test_nobody_runs_the_rest_when_all_workers_end(tmp_path: Path) -> None:
    tests = "import os, pytest\n@pytest.mark.parametrize('at', range(9))\ndef test_it(at): os._exit(1)\n"
    status, said = session(tmp_path, tests)
    assert status == 1
    assert "9 failed" in said
    assert said.count("there is no worker left to run it") >= 5


SLOW = """
import os, time, pytest
from pathlib import Path
from tempfile import TemporaryDirectory

HELD = []
OF_THE_SESSION = TemporaryDirectory()

@pytest.fixture(scope="module", autouse=True)
def whole():
    HELD.append(TemporaryDirectory(dir=os.environ["LEFT"]))
    yield
    Path(os.environ["LEFT"], f"torn down by {os.getpid()}").touch()

@pytest.mark.parametrize("at", range(99))
def test_it(at):
    assert at != 3
    time.sleep(0.1)
"""


def test_the_first_failure_ends_a_session_that_asks_for_it(tmp_path: Path) -> None:
    status, said = session(tmp_path, SLOW, "-x")
    assert status == 1
    assert "1 failed" in said
    assert "stopping after 1 failures" in said
    assert int(re.findall(r"(\d+) passed", said)[0]) < 50
    # What is made is removed all the same.
    left = [path.name for path in (tmp_path / "left").iterdir()]
    assert [name.startswith("torn down") for name in left] == [True, True]


def test_errors_of_collecting_start_no_worker(tmp_path: Path) -> None:
    status, said = session(tmp_path, "import os\ndef test_0(): ...\ndef test_1(): ...\nos.nothing\n")
    assert status == 2
    assert "1 error" in said
    assert "passed" not in said


@given(st.integers(0, 60), st.integers(1, 5), st.data())
def test_each_test_is_taken_once(total: int, workers: int, data: st.DataObject) -> None:
    parts, taken = Parts(total, workers), []
    while (index := parts.taken(data.draw(st.integers(0, workers - 1)))) is not None:
        taken.append(index)
    assert sorted(taken) == list(range(total))
    assert all(parts.taken(worker) is None for worker in range(workers))


def test_neighbours_are_run_by_one_worker() -> None:
    parts = Parts(60, 3)
    assert [parts.taken(worker) for _ in range(19) for worker in range(3)] == [
        20 * worker + at for at in range(19) for worker in range(3)
    ]
    parts = Parts(16, 2)
    # Its own; then half of what another has left, and half of the rest.
    assert [parts.taken(0) for _ in range(16)] == [*range(8), *range(12, 16), 10, 11, 9, 8]
