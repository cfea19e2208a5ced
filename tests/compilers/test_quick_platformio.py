# SPDX-License-Identifier: Apache-2.0
"""PlatformIO without its imports builds the same, fails as it does, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import tiny_model
from tests.compilers import quick_platformio, warm_python
from tinyet.boards import load_board
from tinyet.build import platformio, process
from tinyet.build.tree import write_project
from tinyet.emit.project import project_files
from tinyet.errors import ToolchainError

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None, reason="no gcc on a Linux machine"
)

BOARD = "mps2_an386"
STEP = re.compile(
    r"(?:Compiling|Archiving|Linking|Building) (?:\.pio/\S+?\.(?:o|a|elf|bin)|in \w+ mode)|(?:RAM|Flash): .*bytes\)"
)
"""Of what a build says. Two steps at once may stand in one line: text and end of a line are written one by one."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    monkeypatch.setenv("TINYET_PLATFORMIO_DIR", str(tmp_path / "core"))
    files = project_files("platformio", load_board(BOARD), tiny_model.FACTS, tiny_model.sources())
    write_project(tmp_path / "p", files)
    return tmp_path / "p"


def starts(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that are started from here on."""
    found: list[list[str]] = []
    start = subprocess.Popen.__init__

    def noted(self: subprocess.Popen[str], args: list[str], **options: object) -> None:
        found.append(list(map(str, args)))
        start(self, args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    return found


def test_firmware_is_the_same(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    envs = (BOARD, "harness")
    said: list[list[str]] = [[], []]
    platformio.build(project, BOARD)  # What is said of a first build alone.
    shutil.rmtree(project / ".pio")
    began = starts(monkeypatch)
    quick = [path.read_bytes() for path in platformio.build_all(project, envs, on_output=said[0].append)]
    assert [Path(words[0]).name for words in began] == [f"python-{os.getpid()}"]
    shutil.rmtree(project / ".pio")
    quick_platformio.as_users(monkeypatch)
    as_users = [path.read_bytes() for path in platformio.build_all(project, envs, on_output=said[1].append)]
    assert began[1][0] == sys.executable
    assert quick == as_users

    def steps(lines: list[str]) -> set[str]:
        return set(STEP.findall("\n".join(lines)))

    assert steps(said[0]) == steps(said[1])
    assert len(steps(said[0])) > 20
    # A module that is imported before it is run would be one.
    assert not [line for line in said[0] if "warning" in line.lower()]


def test_what_does_not_compile_is_said(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "src" / "main.c").write_text("#error no main\n")
    errors = []
    for _ in range(2):
        with pytest.raises(ToolchainError, match="exit status 1") as caught:
            platformio.build(project, BOARD)
        assert "no main" in caught.value.what
        errors.append(str(caught.value.where).partition(" ")[2])
        quick_platformio.as_users(monkeypatch)
    assert errors[0] == errors[1]


def run(folder: Path, script: str, *arguments: str, timeout: float = 60, **environment: str) -> str:
    (folder / "script.py").write_text(script)
    command = [sys.executable, "script.py", *arguments]
    words, env = quick_platformio.started(command, os.environ | environment)
    assert words[0] != sys.executable
    done = process.run(words, cwd=folder, timeout=timeout, env=env, what="a script")
    assert not done.stderr
    return done.stdout


def test_a_script_sees_what_it_was_started_with(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("there = True\n")
    script = (
        "import beside, os, sys\n"
        "print(sys.argv, os.getcwd(), os.environ['SAID'], 'PWD_' in os.environ, sys.stdin.read(), __name__)\n"
        "print(sorted(set(sys.modules) & {'torch', 'numpy', 'pytest', 'tests', 'tinyet'}), 'ü')\n"
    )
    for said in ("one", "a = b\n"):
        expected = f"['script.py', 'ä', ''] {tmp_path} {said} False  __main__\n[] ü\n"
        assert run(tmp_path, script, "ä", "", SAID=said, PYTHONIOENCODING="utf-8") == expected


def test_each_run_is_a_process_of_its_own(tmp_path: Path) -> None:
    script = "import SCons\nprint(hasattr(SCons, 'found'))\nSCons.found = True\n"
    assert [run(tmp_path, script) for _ in range(2)] == ["False\n"] * 2


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("import sys\nsys.exit(3)", 3, ""),
        ("import sys\nsys.exit('the reason')", 1, "the reason"),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", -15, ""),
        ("import os\nos._exit(4)", 4, ""),
    ],
)
def test_an_end_is_told(script: str, status: int, said: str, tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=f"exit status {status}") as caught:
        run(tmp_path, script)
    assert said in caught.value.what


def test_what_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, subprocess, time\n"
        "started = subprocess.Popen(['sleep', '60'])\n"
        "pathlib.Path('ids').write_text(f'{os.getpid()} {started.pid}')\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(ToolchainError, match="did not end within"):
        run(tmp_path, script, timeout=1)
    until = time.monotonic() + 20
    ids = (tmp_path / "ids").read_text().split()

    def lives(process_id: str) -> bool:
        state = Path("/proc", process_id, "stat")
        return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"

    while any(map(lives, ids)):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_it_ends_with_the_session(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with subprocess.Popen(
        [sys.executable, warm_python.__file__, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        assert server.stdout.readline() == b"ready\n"
        server.stdin.close()
        assert server.wait(20) == 0


def test_where_nobody_answers_python_starts(tmp_path: Path) -> None:
    client = quick_platformio._client()
    assert client is not None
    environment = os.environ | {quick_platformio.PLACE: str(tmp_path / "nobody")}
    command = [str(client), "-c", "import sys; print(sys.argv, sys.executable)", "a"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"['-c', 'a'] {sys.executable}\n"
