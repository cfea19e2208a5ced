# SPDX-License-Identifier: Apache-2.0
"""Mutants of board files. One that loads must give projects in which each of its words stands in its place alone: what
reads the files (INI, JSON, YAML, CMake, GNU ld; C without its comments) finds the board's values and no others."""

from __future__ import annotations

import configparser
import copy
import json
import random
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests import tiny_model
from tests.fuzz.run import Case, Outcome, Result, refusal
from tinyet import assets
from tinyet.boards import Board, load_board
from tinyet.emit.kinds import kinds_for
from tinyet.emit.project import project_files
from tinyet.messages.text import markdown, printable

MARK = "pwned"
"""In every text that a mutant is given; it may be seen in comments, in prose and in names for people."""

# What ends a comment, a string, a line, an argument or a section, in some language.
ENDS = (
    "\n", "\r\n", "\r", "\x0b", "\x85", "\u2028", "\x00", "\x1b]0;", "\u202e", "\u200b", "*/", "/*", "//",
    "??/", "\\", "\\\n", '"', "'", '"""', ")", "(", "]]", "[env:x]", "{{", "}}", "{%", "${", "$(", "`", ";",
    "#", "%", "|", "&", ",", " ", "--", "-wrapper ", "../", "/etc/", "\n#include ",
    "\nexecute_process(COMMAND ", "\n!", ": ", "@", "=", "<", ">",
)  # fmt: skip
NUMBERS = (
    0, -1, 1, 7, 255, 256, 1 << 16, (1 << 31) - 1, 1 << 32, (1 << 32) - 1, 1 << 63, -(1 << 63), 10**30, 1200, 8,
)  # fmt: skip
OTHERS: tuple[Any, ...] = (True, 1.5, [], {}, "", [MARK], {"x": 1}, [[1]], "x" * 3000, [{}])

_SAMPLED = 24
"""Of the mutants of a chunk, so many have their toolchain file and linker script read by CMake and ld."""


class BoardFiles:
    """See the module."""

    name = "boards"

    def __init__(self) -> None:
        paths = sorted(assets.path("boards").glob("*.toml"))
        self.seeds = [tomllib.loads(path.read_text(encoding="utf-8")) for path in paths]
        self.place = Path(tempfile.mkdtemp(prefix="tinyet-fuzz-")) / "mine.toml"
        self.sampled: list[tuple[Case, Mapping[str, str]]] = []

    def mutate(self, rng: random.Random) -> Case:
        values = json.loads(json.dumps(rng.choice(self.seeds)))
        labels = [_change(values, rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        text = toml(values)
        if rng.random() < 0.1:
            text, label = _scramble(text, rng)
            labels.append(label)
        return Case("; ".join(labels), text.encode("utf-8", "surrogatepass"))

    def check(self, case: Case) -> Outcome | None:
        self.place.parent.mkdir(exist_ok=True)
        self.place.write_bytes(case.data)
        with refusal() as refused:
            board = load_board(self.place)
        if refused:
            told = str(refused[0])
            assert all(c == "\n" or printable(c) == c for c in told), "the error commands a terminal"
            return Outcome.REFUSED
        kinds = kinds_for(board)
        kind = kinds[len(case.data) % len(kinds)]
        files = project_files(kind, board, tiny_model.FACTS, tiny_model.sources())
        for path, text in files.items():
            read_back(board, path, text)
        if len(self.sampled) < _SAMPLED and len(case.data) % 5 == 0:
            self.sampled.append((case, files))
            return None
        return Outcome.EXACT

    def flush(self) -> list[Result]:
        sampled, self.sampled = self.sampled, []
        shutil.rmtree(self.place.parent, ignore_errors=True)
        return [_tried(case, files) for case, files in sampled]


def _tried(case: Case, files: Mapping[str, str]) -> Result:
    """What becomes of a mutant whose project CMake and the linker read."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            run_tools(Path(folder), files)
    except (AssertionError, subprocess.SubprocessError) as error:
        return Result(case, Outcome.FAILED, f"{type(error).__name__}: {error}")
    return Result(case, Outcome.EXACT)


# ---------------------------------------------------------------- mutants


def _change(values: dict[str, Any], rng: random.Random) -> str:
    """Change one thing in a board file; returns what."""
    places = list(_places(values))
    table, key = rng.choice(places)
    old = table[key]
    match rng.randrange(8):
        case 0:
            del table[key]
            return f"no {key}"
        case 1:
            table[rng.choice((MARK, "origin", "a b", "é", f"{MARK}\n", "at", key + "_"))] = old
            return f"another key beside {key}"
        case 2:
            table[key] = rng.choice(NUMBERS)
        case 3:
            table[key] = copy.deepcopy(rng.choice(OTHERS))
        case 4 if isinstance(old, int) and not isinstance(old, bool):
            table[key] = old + rng.choice((-1, 1, 8, -8, 1 << 20, -(1 << 20)))
        case _:
            table[key] = _text(old if isinstance(old, str) else MARK, rng)
            if isinstance(old, list):
                table[key] = [*old, table[key]] if rng.random() < 0.5 else [table[key], *old]
    return f"{key} = {table[key]!r}"[:200]


def _text(old: str, rng: random.Random) -> str:
    """A text with something in it that ends what it stands in; or one that may well be right."""
    if rng.random() < 0.5:
        return rng.choice(
            (
                MARK,
                f"{MARK} & co. (v2)",
                f"{MARK}_1",
                f"a-{MARK}",
                f"https://{MARK}.example",
                old + "1",
                old.upper(),
            )
        )
    at = rng.randrange(len(old) + 1)
    return old[:at] + rng.choice(ENDS) + rng.choice((MARK, f"{MARK}{rng.choice(ENDS)}", "")) + old[at:]


def _places(values: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    found = [(values, key) for key in values]
    for value in values.values():
        if isinstance(value, dict):
            found += _places(value)
    return found


def _scramble(text: str, rng: random.Random) -> tuple[str, str]:
    at = rng.randrange(len(text) + 1)
    match rng.randrange(4):
        case 0:
            return text[:at], f"cut at {at}"
        case 1:
            return text[:at] + rng.choice(ENDS) + text[at:], f"something at {at}"
        case 2:
            return text + "x = " + "[" * rng.choice((10, 1000, 30_000)), "deep"
        case _:
            return text + text, "twice"


def toml(values: Mapping[str, Any]) -> str:
    """Tables and what is in them as TOML."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in values.items() if not isinstance(value, dict)]
    tables = [(key, value) for key, value in values.items() if isinstance(value, dict)]
    return "\n".join(lines) + "\n" + "".join(_tables(_key(key), value) for key, value in tables)


def _tables(name: str, values: Mapping[str, Any]) -> str:
    lines = [
        f"{_key(key)} = {_value(value)}\n" for key, value in values.items() if not isinstance(value, dict)
    ]
    inner = [
        _tables(f"{name}.{_key(key)}", value) for key, value in values.items() if isinstance(value, dict)
    ]
    return f"[{name}]\n{''.join(lines)}{''.join(inner)}"


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return (
                '"' + "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in value) + '"'
            )
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    return repr(value)


# ---------------------------------------------------------------- what came of them


def read_back(board: Board, path: str, text: str) -> None:
    """Raise AssertionError unless a generated file, read as what it is, has the board's words in their places alone."""
    assert all(char in "\n\t" or char.isprintable() for char in text), f"{path}: characters that are not seen"
    name = Path(path).name
    if name.endswith(".json"):
        value = json.loads(text)
        assert name != f"{board.name}.json" or (value["name"], value["url"]) == (board.title, board.url)
    elif name.endswith((".yml", ".yaml")):
        value = yaml.safe_load(text)
        if name == "sample.yaml" and board.zephyr is not None:
            assert value["common"]["platform_allow"] == [board.zephyr.board], path
    elif name.endswith(".ini"):
        _check_ini(board, text)
    elif name.endswith(".conf"):
        assert all(re.fullmatch(r"CONFIG_[A-Z0-9_]+=[\w-]+|#.*|", line) for line in text.splitlines()), path
    elif name.endswith(".overlay"):
        assert not re.search(
            r"^\s*#(?![a-z-]+-cells)|/include/|/incbin/", _without_comments(text), re.MULTILINE
        ), path
    elif name.endswith(".md"):
        assert board.title == markdown(board.title) or board.title not in text, path
        assert "execute_process" not in text, path
    else:
        code = _without_comments(text) if not name.endswith((".cmake", ".txt", ".properties")) else text
        code = (
            re.sub(r"^[ \t]*#.*", "", code, flags=re.MULTILINE) if name.endswith((".cmake", ".txt")) else code
        )
        # Names of the board that code has: of its memories, of its file, its chip and its architecture.
        own = [memory.name for memory in board.extra_memories] + [
            board.target.mcu,
            board.arduino.fqbn if board.arduino else "",
        ]
        for known in own:
            code = code.replace(known, "").replace(known.upper(), "") if known else code
        assert MARK not in code.lower() or name == "library.properties", (
            f"{path}: words of the file stand free"
        )


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def _check_ini(board: Board, text: str) -> None:
    """PlatformIO's own way of reading: values over several lines, comments behind them."""
    parser = configparser.ConfigParser(inline_comment_prefixes=("#", ";"), interpolation=None)
    parser.read_string(text)
    known = {"platformio", "env", f"env:{board.name}", "env:harness", "env:arduino", "env:arduino_harness"}
    assert set(parser.sections()) <= known, parser.sections()
    for section in parser.sections():
        for key, value in parser[section].items():
            assert MARK not in key, key
            assert "\n" not in value, (section, key)
    pio = board.platformio
    if not board.bare_metal and pio is not None:
        env = parser["env"]
        assert (env["platform"], env["board"], env["framework"]) == (pio.platform, pio.board, pio.framework)


def run_tools(folder: Path, files: Mapping[str, str]) -> None:
    """Let CMake and the linker read a project's files; raise when one is not read, or makes a file."""
    for path, text in files.items():
        if path.startswith("cmake/") and shutil.which("cmake"):
            (folder / "toolchain.cmake").write_text(text)
            (folder / "run.cmake").write_text("include(toolchain.cmake)\n")
            subprocess.run(
                ["cmake", "-P", "run.cmake"], cwd=folder, check=True, capture_output=True, timeout=60
            )
        elif path.endswith("linker.ld") and shutil.which("arm-none-eabi-gcc"):
            (folder / "linker.ld").write_text(text)
            command = [
                "arm-none-eabi-gcc",
                "-nostdlib",
                "-Tlinker.ld",
                "-Wl,--defsym,Reset_Handler=0",
                "-xc",
                "/dev/null",
            ]
            done = subprocess.run(
                [*command, "-o", "x.elf"], cwd=folder, check=False, capture_output=True, timeout=60, text=True
            )
            assert "syntax error" not in done.stderr, done.stderr
    made = {path.name for path in folder.iterdir()}
    assert made <= {"toolchain.cmake", "run.cmake", "linker.ld", "x.elf"}, made
