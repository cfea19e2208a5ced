# SPDX-License-Identifier: Apache-2.0
"""docs/my-network-got-worse.md: every command and every piece of Python on it is run, and what it claims is printed."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.cli.command import plain, tinyet

pytest.importorskip("torchao")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "my-network-got-worse.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTIONS = {
    title: _BLOCK.findall(text)
    for title, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
}
_MODULES = ("sound", "table", "motion", "gallery")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A directory with the examples, of which Python finds the modules, too."""
    plain(monkeypatch)
    shutil.copytree(ROOT / "examples" / "got_worse", tmp_path / "examples" / "got_worse")
    shutil.copy(ROOT / "examples" / "gallery.py", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    search, known = list(sys.path), {name: sys.modules.pop(name, None) for name in _MODULES}
    sys.path.insert(0, str(tmp_path / "examples" / "got_worse"))
    yield
    sys.path[:] = search
    for name, module in known.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def undecided(text: str) -> str:
    """Without digits, which are torch's on this processor, and where lines are broken."""
    return " ".join(re.sub(r"[-+−]?\d+(?:[. ]\d+)*", "#", text).split())


def printed(language: str, text: str) -> str:
    """What a block prints; all of its commands must end well."""
    if language == "python":
        out = io.StringIO()
        with contextlib.redirect_stdout(out), torch.random.fork_rng():
            exec(compile(text, "page", "exec"), {})
        return out.getvalue()
    found = []
    for line in text.splitlines():
        command, *words = shlex.split(line)
        assert command == "tinyet"
        ended = tinyet(*words)
        assert ended.status == 0, f"{line}\n{ended.err}"
        found += [ended.out, ended.err]
    return "".join(found)


@pytest.mark.parametrize("title", [title for title, blocks in SECTIONS.items() if blocks])
def test_what_the_page_says_is_printed(title: str) -> None:
    known, claimed = "", 0
    for language, text in SECTIONS[title]:
        if language:
            known = undecided(printed(language, text))
            continue
        for line in text.splitlines():
            places = [known.find(undecided(part)) for part in line.split("…") if part.strip()]
            assert min(places) >= 0, f"{line}\nis not in:\n{known}"
            assert places == sorted(places), line
            claimed += 1
    assert claimed


def test_it_has_the_sections_that_it_links_to() -> None:
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in SECTIONS}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors
    assert len(SECTIONS) >= 8
