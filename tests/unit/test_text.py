# SPDX-License-Identifier: Apache-2.0
"""Text of strangers, in every medium: it cannot end what it stands in, and cannot command a terminal."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyet.cli import ui
from tinyet.errors import ModelError
from tinyet.ir import Note, Origin
from tinyet.messages.text import (
    c_comment,
    c_string,
    cmake_argument,
    cmake_string,
    is_shown,
    json_text,
    kconfig_string,
    markdown,
    markdown_code,
    printable,
    printable_block,
    shown,
)

# What it does to a terminal, a comment or a string, if it gets there.
HOSTILE = (
    "\x1b[2J\x1b]0;title\x07",
    "\x9b31m",
    "\u202edegas\u202c",
    "\u2066x\u2069",
    "zero\u200bwidth\ufeff\u2060",
    "line\nfeed\rreturn\x85next\u2028line\u2029paragraph",
    "\x00\x08\x7f",
    "*/ int x; /*",
    "??/\n",
    "end \\",
    '"); execute_process(COMMAND touch pwned) #',
    "${ENV} $(touch pwned) `touch pwned`",
    "]] ]==] #[[",
    "<script>alert(1)</script> ![](https://evil.example) `code` | cell",
    "\ud800 half",
    "Z" + "\u0301" * 40,
    "\u3164\u2800 blank",
)
any_text = st.text(st.characters(codec=None), max_size=12) | st.text(
    "*/\\?\"'$;()[]#`|_ \n\t\x1b\u202e", max_size=12
)


@given(any_text)
def test_a_line_shows_every_character(text: str) -> None:
    shown = printable(text)
    assert all(is_shown(char) for char in shown)
    assert printable(shown) == shown
    assert printable_block(text).count("\n") == text.count("\n")


@pytest.mark.parametrize("text", ["plain", "größe 默认 μs – ≤", "C:\\models\\x", "a\u0301", "👍"])
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_escapes_name_the_character() -> None:
    assert printable("\x1b[31m\u202e\n\U000e0001") == "\\x1b[31m\\u202e\\n\\U000e0001"


@given(any_text)
def test_a_comment_of_c_ends_where_it_should(text: str) -> None:
    flat = c_comment(text)
    assert flat.isascii()
    assert flat.isprintable()
    assert not re.search(r"\*/|/\*|\?\?|\\$", flat)
    assert c_comment(flat) == flat


def test_a_comment_of_c_is_read_without_a_table_of_characters() -> None:
    said = "0, 1 … n – größer × 2 ≤ 3 → “ça”, 5 µs"
    assert c_comment(said) == "0, 1 ... n - gro\\xdfer x 2 <= 3 -> 'ca', 5 us"
    assert c_comment("默认 and \u202e") == "\\u9ed8\\u8ba4 and \\u202e"


@given(any_text)
def test_strings_hold_one_string(text: str) -> None:
    assert re.fullmatch(r'"(?:[^"\\?\n]|\\[0-7]{3}|\\["\\?])*"', c_string(text))
    assert re.fullmatch(r'"(?:[^"\\$\n]|\\["\\$])*"', cmake_string(text))
    assert re.fullmatch(r'"(?:[^"\\\n]|\\["\\])*"', kconfig_string(text))
    assert re.fullmatch(r"(?:[^\s!\"#$&'()*;<>?\[\\\]^`{|}~]|\\[^\w\s]|\\ )*", cmake_argument(text))


@given(any_text)
def test_markdown_is_text(text: str) -> None:
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*\[\]<>|&~$]", re.sub(r"\\\\", "", markdown(text)))
    assert "`" not in markdown_code(text)
    assert "\n" not in markdown(text) + markdown_code(text)


@given(st.dictionaries(any_text, any_text | st.floats(allow_nan=False, allow_infinity=False), max_size=3))
def test_json_keeps_the_value_and_shows_every_character(value: dict[str, object]) -> None:
    text = json_text(value)
    assert json.loads(text) == value
    assert all(char == "\n" or is_shown(char) for char in text)


def test_errors_notes_and_origins_command_no_terminal() -> None:
    for text in HOSTILE:
        origin = Origin(file=text, line=1, text=text, module=text)
        shown = str(Note(text, origin)), str(ModelError(text, text, text))
        assert "\n" not in shown[0]
        assert all(is_shown(char) or char == "\n" for char in "".join(shown))
        assert all(is_shown(char) for char in str(origin) + origin.location)


def test_whatever_the_command_line_shows_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for text in HOSTILE:
        ui.say(text)
        ui.tell(text)
        ui.warn(text, [text])
        ui.notes([text])
        ui.show_error(ModelError(text, text, text))
        ui.table([("one", "name"), ("two", "text"), ("three", "text")], [(text, text, text)])
        ui.facts(text, [(text, text)])
        if "\ud800" not in text:
            ui.write_json("-", {text: text})
    # Tables and titles are rich's: boxes and blanks beside what was given.
    shown = "".join(capsys.readouterr())
    assert {char for char in shown if not is_shown(char)} <= {"\n"}


def test_a_value_is_shown_short_and_seen() -> None:
    assert shown("abc") == "'abc'"
    assert shown([1, "\x1b"]) == "[1, '\\x1b']"
    assert shown("x" * 10**6) == "'" + "x" * 58 + "…"
    assert len(shown(list(range(100)), 80)) == 80


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_a_compiler_sees_one_comment_and_one_string(tmp_path: Path) -> None:
    """With trigraphs on, as old compilers have them."""
    lines = [
        f"/* {c_comment(text)} */ const char s{i}[] = {c_string(text)};" for i, text in enumerate(HOSTILE)
    ]
    lines += [f"/* first\n * {c_comment(text)}\n */ int after{i};" for i, text in enumerate(HOSTILE)]
    path = tmp_path / "texts.c"
    path.write_text("\n".join(lines) + "\n")
    command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(path)]
    subprocess.run(command, check=True, stdout=sys.stderr)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="CMake is not installed")
def test_cmake_reads_back_what_was_written(tmp_path: Path) -> None:
    texts = [text for text in HOSTILE if "\ud800" not in text]
    script = "cmake_minimum_required(VERSION 3.20)\n" + "".join(
        f"# {printable(text)}\n"
        f"file(APPEND out {cmake_string(text + chr(10))})\nfile(APPEND out {cmake_argument(text)})\n"
        'file(APPEND out "\\n")\n'
        for text in texts
        if ";" not in text
    )
    (tmp_path / "texts.cmake").write_text(script)
    subprocess.run(["cmake", "-P", "texts.cmake"], cwd=tmp_path, check=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "texts.cmake"]
    wanted = "".join(f"{printable(t)}\\n{printable(t)}\n" for t in texts if ";" not in t)
    assert (tmp_path / "out").read_text() == wanted
