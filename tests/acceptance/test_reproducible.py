# SPDX-License-Identifier: Apache-2.0
"""The same program gives the same bytes, wherever and whenever it is generated, and they tell of neither."""

from __future__ import annotations

import datetime as dt
import getpass
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import get_args

import pytest

from tests.golden.programs import PROGRAMS
from tinyet import assets, generate, load
from tinyet.emit.project import Kind
from tinyet.program import Program

KINDS: tuple[Kind, ...] = get_args(Kind)
ROOT = Path(__file__).resolve().parents[2]
# It can have projects of every kind.
BOARD = "stm32f4_discovery"

# In a process of its own: another working directory, another hash seed, another locale and time zone.
_AGAIN = """
import sys
import tinyet
board, kinds, *programs = sys.argv[1:]
for program in programs:
    for kind in kinds.split():
        tinyet.generate(tinyet.load(f"{program}.tet"), board, f"{program}/{kind}", kind=kind)
"""


def tree(directory: Path) -> dict[str, bytes]:
    return {p.relative_to(directory).as_posix(): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with NAME.tet of each program, and its projects of all kinds, NAME/KIND, of one process."""
    place = tmp_path_factory.mktemp("elsewhere") / "somewhere" / "else" / "deeper"
    place.mkdir(parents=True)
    for name, make in PROGRAMS.items():
        make().save(place / f"{name}.tet")
    environment = os.environ | {
        "PYTHONHASHSEED": "12345",
        "LC_ALL": "C",
        "TZ": "Pacific/Chatham",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-c", _AGAIN, BOARD, " ".join(KINDS), *PROGRAMS]
    subprocess.run(command, check=True, cwd=place, env=environment, timeout=300)
    return place


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_two_directories_two_processes_one_tree(
    elsewhere: Path, name: str, kind: Kind, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    generate(load(elsewhere / f"{name}.tet"), BOARD, first, kind=kind)
    one, two = tree(first), tree(elsewhere / name / kind)
    assert set(one) == set(two)
    assert [path for path in one if one[path] != two[path]] == []


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_tells_where_or_when(kind: Kind, tmp_path: Path) -> None:
    directory = tmp_path / "project"
    generate(PROGRAMS["separable"](), BOARD, directory, kind=kind)
    places = {str(tmp_path), str(Path.home()), str(ROOT), tempfile.gettempdir(), str(assets.path("firmware"))}
    secrets = [place.encode() for place in places if len(place) > 1]
    if len(getpass.getuser()) > 4:
        secrets.append(getpass.getuser().encode())
    now = dt.datetime.now(dt.UTC)
    secrets += [form.encode() for form in (now.strftime("%Y-%m-%d"), now.strftime("%H:%M:"))]
    for path, data in tree(directory).items():
        assert [s for s in secrets if s in data] == [], path
        text = data.decode(errors="replace")
        assert not re.search(r"__DATE__|__TIME__|__FILE__|__TIMESTAMP__", text), path
        # Absolute paths of any machine; "//" and "/*" begin comments, "</" ends a tag.
        assert not re.search(r"[\s\"'(=](/(?:home|root|usr|tmp|work|opt|var)/)", text), path


def test_a_program_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    for make in PROGRAMS.values():
        program: Program = make()
        assert program.data == make().data
        program.save(tmp_path / "a.tet")
        again = load(tmp_path / "a.tet")
        assert again.data == program.data
        assert again.hash == program.hash
