# SPDX-License-Identifier: Apache-2.0
"""Golden files: what compares them sees every difference, and each file belongs to a test."""

from __future__ import annotations

import ast
import importlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.golden_files import difference, folder_of

pytest_plugins = "pytester"

TESTS = Path(__file__).resolve().parents[1]


# ---------------------------------------------------------------- whose files there are


def parameters(function: object) -> list[dict[str, object]]:
    """The arguments that a test is called with by its own `parametrize` marks, one dictionary a call."""
    calls: list[dict[str, object]] = [{}]
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            names = mark.args[0] if not isinstance(mark.args[0], str) else mark.args[0].split(",")
            own = [
                dict(zip(map(str.strip, names), row_of(value, len(names)), strict=True))
                for value in mark.args[1]
            ]
            calls = [a | b for a, b in itertools.product(calls, own)]
    return calls


def row_of(value: Any, count: int) -> Sequence[object]:
    """The values for `count` names from an item of `parametrize`: a value, a tuple of them, or a `pytest.param`."""
    if isinstance(value, type(pytest.param())):
        return value.values
    return value if count > 1 else (value,)


def name_of(text: ast.expr, arguments: Mapping[str, object]) -> str:
    """A file's name as the test writes it: a literal, or an f-string of parametrized arguments."""
    match text:
        case ast.Constant(value=str(name)):
            return name
        case ast.JoinedStr(values=parts):
            return "".join(name_of(part, arguments) for part in parts)
        case ast.FormattedValue(value=ast.Name(id=name)) if name in arguments:
            return str(arguments[name])
    raise AssertionError(
        f"line {text.lineno}: a name that is neither a literal nor made of parametrized arguments"
    )


def asked_for(module: ModuleType, tree: ast.Module) -> Iterator[str]:
    """The names of the golden files that the tests of a module compare with."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(a.arg == "golden" for a in function.args.args):
            assert function in tree.body, f"{function.name}: `golden` is for test functions"
            assert function.name.startswith("test_"), f"{function.name}: `golden` is for test functions"
            calls = [
                node
                for node in ast.walk(function)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "golden"
            ]
            assert calls, f"{function.name} takes `golden` and does not use it"
            for call, arguments in itertools.product(calls, parameters(getattr(module, function.name))):
                _, name = call.args
                yield name_of(name, arguments)


def wanted(paths: Iterable[Path]) -> Iterator[tuple[Path, list[Path]]]:
    """For each module with golden files: their folder, and the files that its tests ask for."""
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.arg) and node.arg == "golden" for node in ast.walk(tree)):
            module = importlib.import_module(
                ".".join(("tests", *path.relative_to(TESTS).with_suffix("").parts))
            )
            folder = folder_of(module, path)
            yield folder, [folder / name for name in asked_for(module, tree)]


def test_each_golden_file_belongs_to_one_test() -> None:
    """Neither is one left over, nor is one missing that only a skipped test would miss."""
    found = dict(wanted(sorted(TESTS.rglob("test_*.py"))))
    assert len(found) > 5
    counts = Counter(file for files in found.values() for file in files)
    assert [file for file, count in counts.items() if count > 1] == [], "two tests share a file"
    folders = {*found, *(p for p in TESTS.rglob("golden") if p.is_dir() and p.parent != TESTS)}
    there = {p for folder in folders for p in folder.rglob("*") if p.is_file()}
    assert there - counts.keys() == set(), "no test compares with these: remove them"
    assert counts.keys() - there == set(), "these are missing: --update-golden writes them"


# ---------------------------------------------------------------- comparing


def test_every_difference_is_seen(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    assert "there is no golden file" in (difference(place, "one\n") or "")
    place.write_bytes(b"one\ntwo\nthree\n")
    assert difference(place, "one\ntwo\nthree\n") is None
    for other in ("one\ntwo\nthree", "one\ntwo\nthree\n\n", "one\r\ntwo\nthree\n", "one\ntwo \nthree\n", ""):
        text = difference(place, other)
        assert text is not None
        assert len([line for line in text.splitlines()[3:] if line[0] in "-+"]) >= 1, other
    assert "\n-two\n+zwei\n" in (difference(place, "one\nzwei\nthree\n") or "")


_SUITE = """
import pytest

@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_text(golden, name):
    golden(f"{name}: Größe\\n1\\n", f"{name}.txt")
"""


def test_one_option_updates_what_differs(pytester: pytest.Pytester) -> None:
    """By several workers at once; what is as it should be is not written."""
    pytester.makeconftest('pytest_plugins = ["tests.golden_files", "tests.workers"]')
    module = pytester.makepyfile(test_mine=_SUITE)

    def run(*options: str) -> pytest.RunResult:
        return pytester.runpytest("-p", "no:cacheprovider", *options)

    run().assert_outcomes(failed=4)
    assert not (pytester.path / "golden").exists()
    run("--update-golden", "--workers", "2").assert_outcomes(passed=4)
    folder = module.parent / "golden" / "test_mine"
    assert [(p.name, p.read_text("utf-8")) for p in sorted(folder.iterdir())] == [
        (f"{name}.txt", f"{name}: Größe\n1\n") for name in "abcd"
    ]
    (folder / "b.txt").write_text("b: Größe\n2\n", encoding="utf-8")
    before = {p.name: p.stat().st_mtime_ns for p in folder.iterdir()}
    result = run("--workers", "2")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        ["*golden file *b.txt differs", "--- expected", "+++ came out", " b: Größe", "-2", "+1",
         'to accept it: pytest "test_mine.py::test_text?b?" --update-golden']
    )  # fmt: skip
    assert {p.name: p.stat().st_mtime_ns for p in folder.iterdir()} == before
    run("--update-golden", "--workers", "2").assert_outcomes(passed=4)
    after = {p.name: p.stat().st_mtime_ns for p in folder.iterdir()}
    assert [name for name in before if after[name] != before[name]] == ["b.txt"]


def test_a_text_of_this_machine_is_not_taken(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["tests.golden_files", "tests.workers"]')
    pytester.makepyfile("def test_path(golden, tmp_path):\n    golden(f'in {tmp_path}\\n', 'path.txt')\n")
    result = pytester.runpytest("-p", "no:cacheprovider", "--update-golden")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the same on every machine*"])
    assert not (pytester.path / "golden").exists()
