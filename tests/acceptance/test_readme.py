# SPDX-License-Identifier: Apache-2.0
"""What README.md and the pages in docs/ tell a reader to type exists, and the README's Python runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer

from tests import forked
from tinyet import cli
from tinyet.boards import board_names

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a language; those that belong into a file of their own are not meant."""
    pattern = rf"^```{language}\n(.*?)^```$"
    return re.findall(pattern, page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def command_lines(page: Path) -> list[list[str]]:
    """The lines of the shell blocks and the commands in running text, as words."""
    text = page.read_text(encoding="utf-8")
    lines = [line for block in blocks(page, "sh") for line in block.replace("\\\n", " ").splitlines()]
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines += re.findall(r"`((?:tinyet|make|pytest|python) [^`…]+)`", prose)
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def cases(program: str) -> list[Any]:
    found = {(page, tuple(words)) for page in PAGES for words in command_lines(page) if words[0] == program}
    return [pytest.param(words, id=f"{page.stem}: {' '.join(words)}") for page, words in sorted(found)]


@pytest.mark.parametrize("words", cases("tinyet"))
def test_a_tinyet_command_exists(words: tuple[str, ...]) -> None:
    group: Any = typer.main.get_command(cli.app)
    rest = list(words[1:])
    at = next((i for i, word in enumerate(rest) if word in group.commands), None)
    # What stands before the command are tinyet's own options.
    own = {word: p for p in group.params for word in (*p.opts, *p.secondary_opts)}
    for word in rest[: at or 0]:
        assert word in own or not word.startswith("-"), f"{' '.join(words)}: no option {word}"
    command = group if at is None else group.commands[rest[at]]
    rest = rest if at is None else rest[at + 1 :]
    options = {word: p for p in command.params for word in (*p.opts, *p.secondary_opts)}
    arguments: list[str] = []
    given: set[str] = set()
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            arguments.append(word)
            continue
        word, behind, _ = word.partition("=")
        assert word in options, f"{' '.join(words)}: no option {word}"
        given.add(options[word].name)
        if not options[word].is_flag and not behind:
            value = rest.pop(0)
            if word == "--board" and re.fullmatch(r"[a-z0-9_]+", value):
                assert value in board_names()
    wanted = [p for p in command.params if p.param_type_name == "argument"]
    # A bare `tinyet generate` in running text names the command. The last argument may be several.
    several = wanted and wanted[-1].nargs == -1
    assert len(arguments) in (len(wanted), 0) or (several and len(arguments) > len(wanted))
    for path in (a for a in arguments if a.startswith("examples/")):
        assert (ROOT / path).is_file(), path
    if arguments:
        assert {p.name for p in command.params if p.required and p not in wanted} <= given


@pytest.mark.parametrize("words", cases("make"))
def test_a_make_target_exists(words: tuple[str, ...]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in words[1:]:
        assert re.search(rf"^{re.escape(target)}:", makefile, flags=re.MULTILINE), target


@pytest.mark.parametrize("words", [*cases("python"), *cases("pytest")])
def test_a_file_that_is_to_be_run_exists(words: tuple[str, ...]) -> None:
    if words[1] == "-m":
        assert find_spec(words[2]) is not None
        return
    paths = [word for word in words[1:] if "/" in word]
    own = [word for word in words[1:] if word.startswith("--tinyet-")]  # the plugin's, of files of the user's
    plugin = (ROOT / "tinyet" / "pytest.py").read_text(encoding="utf-8")
    assert [option for option in own if f'"{option}"' not in plugin] == []
    assert paths or own
    for path in paths:
        if path.startswith("build/"):  # the commands before it make it
            continue
        page = (ROOT / "docs" / "add-an-operator.md").read_text(encoding="utf-8")
        assert (ROOT / path).exists() or f" file={path}\n" in page, path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_picture_is_well_formed() -> None:
    tree = ET.parse(ROOT / "docs" / "pipeline.svg")
    assert tree.getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert tree.getroot().get("viewBox")


@pytest.mark.emulated
def test_the_python_runs(tmp_path: Path) -> None:
    """As far as the tools are here: without them, up to the line that needs them."""
    pytest.importorskip("torchao", reason="torchao is not installed")
    (code,) = blocks(ROOT / "README.md", "python")
    assert "project.build()" in code
    tools = ("arm-none-eabi-gcc", "qemu-system-arm")
    if not all(map(shutil.which, tools)):
        if shutil.which("gcc") is None:
            pytest.skip(f"neither {' and '.join(tools)} nor gcc is installed")
        code = code.replace("project.build()\n", "").replace('on="qemu"', 'on="host"')
    script = tmp_path / "readme.py"
    script.write_text(code, encoding="utf-8")
    done = forked.python([str(script)], tmp_path, os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert words[0] == "True", "bit-exact"
    assert (tmp_path / "tiny.tet").is_file()
    assert (tmp_path / "build" / "tiny" / "tinyet.json").is_file()
