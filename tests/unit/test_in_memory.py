# SPDX-License-Identifier: Apache-2.0
"""`scripts/in_memory.sh`: a command's temporary files are in memory where there is room, and gone afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "in_memory.sh"
SAYS = 'echo "$TMPDIR"; [ -z "$TMPDIR" ] || : >"$TMPDIR/file"; exit 3'

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("bash") is None, reason="needs bash and Linux"
)


def run(script: Path, **environment: str) -> str:
    """The TMPDIR of a command that writes a file there, and ends with a status that the script is to pass on."""
    base = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    done = subprocess.run(
        ["bash", str(script), "sh", "-c", SAYS],
        env=base | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, "")
    return done.stdout.strip()


def with_memory(tmp_path: Path, memory: Path, needed_kb: int) -> Path:
    """The script for another place in memory, and another need."""
    text = SCRIPT.read_text(encoding="utf-8")
    for line, other in (
        ("memory=/dev/shm\n", f"memory={memory}\n"),
        ("needed_kb=$((4 * 1024 * 1024))\n", f"needed_kb={needed_kb}\n"),
    ):
        assert line in text
        text = text.replace(line, other)
    script = tmp_path / "in_memory.sh"
    script.write_text(text, encoding="utf-8")
    return script


def test_files_are_there_and_gone_afterwards(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    used = Path(run(with_memory(tmp_path, memory, 1)))
    assert used.parent == memory
    assert not any(memory.iterdir())


def test_where_there_is_no_room_nothing_is_said(tmp_path: Path) -> None:
    assert run(with_memory(tmp_path, tmp_path, 1 << 50)) == ""
    assert run(with_memory(tmp_path, tmp_path / "nowhere", 1)) == ""


def test_who_says_where_has_and_keeps_them_there(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    assert run(SCRIPT, TMPDIR=str(own)) == str(own)
    assert (own / "file").is_file()
