# SPDX-License-Identifier: Apache-2.0
"""Whoever ends tinyet, however: emulators end with it, their folders are removed, and what they say is bounded."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import small
from tinyet.boards import load_board
from tinyet.build.ending import Ended, ended_by_signals, undisturbed
from tinyet.device import child, links, renode
from tinyet.device.child import Child
from tinyet.device.device import open_device
from tinyet.device.links import PipeLink
from tinyet.errors import EmulatorError
from tinyet.project import Project
from tinyet.projects.one import generate

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and shells of POSIX")

# Far more than anything here takes; no test is told by it whether it passes.
_PATIENCE = 30.0


def _until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def _is_gone(pid: int) -> bool:
    with contextlib.suppress(OSError):
        os.kill(pid, 0)
        # Nobody has asked for its exit status yet.
        return Path(f"/proc/{pid}/stat").exists() and "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2]
    return True


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One whose harness has been built, for all that can be seen."""
    made = generate(small.program(), "mps2_an386", tmp_path_factory.mktemp("project") / "p", kind="cmake")
    place = made.path / f"build-{made.board.target.family}" / f"{made.name}_harness.elf"
    place.parent.mkdir()
    place.write_bytes(b"\x7fELF")
    return made


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_emulator_ends_with_the_command(number: signal.Signals, project: Project, tmp_path: Path) -> None:
    """It listens to no signal itself, and has a child."""
    emulator, pids, folders = tmp_path / "renode", tmp_path / "pids", tmp_path / "tmp"
    folders.mkdir()
    emulator.write_text(
        f"#!/bin/sh\ntrap '' TERM HUP\nsleep 1000 & echo $$ $! > {pids}.part\nmv {pids}.part {pids}\nwait; sleep 1000\n"
    )
    emulator.chmod(0o755)
    command = [sys.executable, "-m", "tinyet", "validate", str(project.path), "--on", "renode"]
    environment = {**os.environ, "TMPDIR": str(folders), "TINYET_RENODE": str(emulator)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as tinyet:
        _until(lambda: pids.exists() or tinyet.poll() is not None)
        assert len([path for path in folders.iterdir() if path.name.startswith("tinyet-")]) == 2
        tinyet.send_signal(number)
        _, said = tinyet.communicate()
    left = {int(pid) for pid in pids.read_text().split()}
    try:
        _until(lambda: all(map(_is_gone, left)))
    finally:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    if number == signal.SIGKILL:
        # What the command itself had begun stays; what the emulator worked in does not.
        _until(lambda: len(list(folders.iterdir())) == 1)
        return
    assert tinyet.returncode == 128 + number
    assert said == f"ended by {number.name}\n"
    assert list(folders.iterdir()) == []


def test_no_child_runs_before_its_guard_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in between, the command would leave it behind."""
    started, guard = tmp_path / "started", child._Guard

    def late(group: int, directory: str) -> child._Guard:
        # Enough for a shell to begin; a child without a gate is told the more often the longer this is.
        time.sleep(0.2)
        assert not started.exists()
        return guard(group, directory)

    monkeypatch.setattr(child, "_Guard", late)
    running = Child(["/bin/sh", "-c", f"touch {started}; read -r line; echo $line"], pipes=True)
    _until(started.exists)
    link = PipeLink(running)
    link.write(b"heard\n", time.monotonic() + _PATIENCE)
    assert link.read(time.monotonic() + _PATIENCE) == b"heard\n"
    link.close()
    with pytest.raises(FileNotFoundError, match="no_such_emulator"):
        Child(["no_such_emulator"], pipes=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_ends_and_those_behind_it_do_not_cut_the_way_out_short(
    number: signal.Signals, request: pytest.FixtureRequest
) -> None:
    # A signal that is ignored from the start, as by nohup, stays so.
    before = {each: signal.signal(each, signal.SIG_DFL) for each in (signal.SIGTERM, signal.SIGHUP)}
    request.addfinalizer(lambda: [signal.signal(each, handler) for each, handler in before.items()])
    steps: list[str] = []

    def starting() -> None:
        with undisturbed():
            os.kill(os.getpid(), number)
            steps.append("started")
        steps.append("not here")

    def ending() -> None:
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
            steps.append("ended")

    for work in (starting, ending):
        with pytest.raises(Ended) as caught, ended_by_signals():
            work()
        assert (caught.value.code, caught.value.signal) == (128 + number, number.name)
    assert steps == ["started", "ended"]
    assert signal.getsignal(number) == signal.SIG_DFL


def test_a_signal_that_others_handle_stays_theirs() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with ended_by_signals():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]


def test_a_log_without_end_is_read_as_it_grows_and_its_end_is_kept() -> None:
    talk = "yes first | head -c 300000; echo 'the mark'; yes last | head -c 100000; echo end; yes last"
    talking = Child(["/bin/sh", "-c", talk], pipes=False, watched=("the mark", "another", "end"))
    _until(lambda: talking.said("the mark"))
    _until(lambda: talking.said("end"))
    assert not talking.said("another")
    place = Path(talking._directory.name)
    assert list(place.iterdir()) == []
    talking.end()
    assert not place.exists()
    head, _, words = talking.last_words().partition("\n")
    assert head.startswith("[")
    assert head.endswith("bytes]")
    assert set(words.split()) <= {"last", "ast", "st", "t", "la", "l", "las", "end"}
    assert len(words) <= 4000


def test_a_renode_that_only_talks_is_told_by_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator, elf = tmp_path / "renode", tmp_path / "firmware.elf"
    emulator.write_text(
        "#!/bin/sh\nyes unknown register | head -c 20000000; echo 'tinyet: the script is over'; exec sleep 1000\n"
    )
    emulator.chmod(0o755)
    elf.write_bytes(b"\x7fELF")
    monkeypatch.setenv("TINYET_RENODE", str(emulator))
    monkeypatch.setattr(renode, "_START_SECONDS", 1e6)
    with pytest.raises(EmulatorError, match="did not start the machine") as caught:
        open_device(load_board("mps2_an386"), elf, on="renode")
    assert "unknown register" in caught.value.what
    assert len(caught.value.what) < 5000


def test_a_renode_that_runs_and_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator, elf = tmp_path / "renode", tmp_path / "firmware.elf"
    emulator.write_text("#!/bin/sh\necho 'tinyet: the machine is running'; exec sleep 1000\n")
    emulator.chmod(0o755)
    elf.write_bytes(b"\x7fELF")
    monkeypatch.setenv("TINYET_RENODE", str(emulator))
    with pytest.raises(EmulatorError, match="nobody answers for its UART"):
        open_device(load_board("mps2_an386"), elf, on="renode")


def test_a_script_that_succeeds_and_is_over_between_two_looks_has_succeeded() -> None:
    class Quick:
        """Has said nothing at the first question, and everything at the next."""

        looks = 0

        def __init__(self) -> None:
            self.process = SimpleNamespace(stdin=io.BytesIO(), poll=lambda: None, args=[])

        def said(self, _line: str) -> bool:
            self.looks += 1
            return self.looks > 1

    with socket.create_server(("127.0.0.1", 0)) as server:
        renode._connect(Quick(), server.getsockname()[1]).close()  # type: ignore[arg-type]


def test_a_device_that_talks_without_end_fills_no_memory() -> None:
    link = PipeLink(Child(["yes"], pipes=True))
    _until(link._inbox.full)
    assert link._inbox.qsize() == links._MOST_WAITING
    assert link.read(time.monotonic() + _PATIENCE).startswith(b"y\n")
    link.close()
    assert not any(thread.is_alive() for thread in link._threads)
