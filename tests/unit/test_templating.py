# SPDX-License-Identifier: Apache-2.0
"""Templates: what they print cannot be read as anything else, and a place that was forgotten prints nothing."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
import yaml

from tests import tiny_model
from tinyet import assets
from tinyet.assets import templating
from tinyet.boards import Board, all_boards, load_board
from tinyet.boards.linker import linker_script
from tinyet.emit.kinds import KINDS, kinds_for
from tinyet.emit.project import project_files
from tinyet.errors import InternalError

TEMPLATES = sorted(
    p.relative_to(assets.path("templates")).as_posix() for p in assets.path("templates").rglob("*.j2")
)
# Ends a comment, a string and a line of every language; no part of it may stand free in a generated file.
EVIL = "\n*/ pwned() /* \\\n\"); pwned() # '; pwned() `pwned` ${pwned} <pwned> ??/\n"
EVIL += "[pwned]\npwned: x\x1b]0;pwned\x07\u202e"


def _render(language: str, source: str, **names: object) -> str:
    return templating._environment(language, tight=False).from_string(source).render(names)


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_is_in_a_language(template: str) -> None:
    assert templating._language(template).name in source_languages()


def source_languages() -> set[str]:
    return {each.name for each in (*templating._BY_NAME.values(), *templating._BY_SUFFIX.values())}


def test_text_without_a_filter_is_refused_wherever_it_could_mean_something() -> None:
    for language in source_languages():
        for text in (EVIL, *(f"a{char}b" for char in '\n\r\t"$`\\;#{}\x00\x1b\u202eß')):
            with pytest.raises(InternalError, match=f"does not say how {language} is to read it"):
                _render(language, "{{ x }}", x=text)
        for other in (None, True, ["a"], {"a": 1}, object()):
            with pytest.raises(InternalError):
                _render(language, "{{ x }}", x=other)
        assert _render(language, "{{ x }}{{ 7 }}", x="name_1") == "name_17"
    for text in ("a*/b", "/* a", "a // b", "f()", "a,b"):
        with pytest.raises(InternalError):
            _render("C", "{{ x }}", x=text)


def test_languages_do_not_mix() -> None:
    with pytest.raises(InternalError, match=r"board\.conf\.j2 is not C"):
        _render("C", "{% include 'project/zephyr/board.conf.j2' %}")
    with pytest.raises(InternalError, match="in no language that is known"):
        templating.render("project/common/LICENSE", {})


def _evil(board: Board) -> Board:
    return dataclasses.replace(board, title=EVIL, vendor=EVIL, url=EVIL)


def test_the_free_text_of_a_board_stays_in_its_place_in_every_file() -> None:
    """Such a board cannot come from a file; if one did, its words would still be comments, strings and prose."""
    seen = set()
    for board in all_boards():
        for kind in kinds_for(board):
            files = project_files(kind, _evil(board), tiny_model.FACTS, tiny_model.sources())
            seen |= {path for path, text in files.items() if "pwned" in text and kind in KINDS}
            for path, text in files.items():
                _check(path, text)
        if board.bare_metal:
            _check("linker.ld", linker_script(_evil(board)))
    assert len(seen) > 30


def _check(path: str, text: str) -> None:
    """`pwned` is in comments and strings only, and each line of the file is printed as it is."""
    assert all(char == "\n" or char == "\t" or char.isprintable() for char in text), path
    name = Path(path).name
    if name.endswith(".json"):
        json.loads(text)
        return
    if name.endswith((".yml", ".yaml")):
        assert "pwned" not in str(yaml.safe_load(text))
    if name.endswith((".c", ".h", ".cpp", ".ino", ".ld", ".overlay")):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    elif (
        name.endswith((".cmake", ".conf", ".ini", ".yml", ".yaml", ".txt", ".properties"))
        or name == "Kconfig"
    ):
        text = re.sub(r"^[#;].*", "", text, flags=re.MULTILINE)
    elif name.endswith(".md"):
        text = re.sub(r"\\.", "", text)
        assert not re.search(r"[`<\[]\W*pwned", text), path
        assert not re.search(r"^\W*pwned", text, re.MULTILINE), path
        return
    assert "pwned" not in text, path


def test_flags_and_names_that_could_be_commands_are_quoted_or_refused() -> None:
    """The core's chip reaches the shell of every build: as one word, or not at all."""
    board = load_board("arduino_uno")
    evil = dataclasses.replace(board, target=dataclasses.replace(board.target, mcu="x; touch $(pwned)"))
    text = project_files("cmake", evil, tiny_model.FACTS, tiny_model.sources())["cmake/arduino_uno.cmake"]
    assert "set(TINYET_GCC_FLAGS \"'-mmcu=x; touch \\$(pwned)'\")" in text
    for field in ("platform", "board"):
        assert board.platformio is not None
        renamed = dataclasses.replace(board.platformio, **{field: "x\n[env:y]"})
        with pytest.raises(InternalError, match="does not say how"):
            project_files(
                "platformio",
                dataclasses.replace(board, platformio=renamed),
                tiny_model.FACTS,
                tiny_model.sources(),
            )
    zephyr = load_board("nano_33_ble")
    assert zephyr.zephyr is not None
    conf = dataclasses.replace(zephyr.zephyr, conf='CONFIG_COMPILER_OPT="-wrapper touch,pwned"\n')
    with pytest.raises(ValueError, match="not a setting of Kconfig"):
        project_files(
            "zephyr", dataclasses.replace(zephyr, zephyr=conf), tiny_model.FACTS, tiny_model.sources()
        )
