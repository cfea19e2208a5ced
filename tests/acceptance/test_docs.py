# SPDX-License-Identifier: Apache-2.0
"""The pages in docs/ that list what is in the code list exactly that."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import typer

import tinyet
from tests import small
from tests.golden.programs import separable
from tests.streamed import residual
from tinyet import cli, load_board
from tinyet.analysis import analyze
from tinyet.answers.confusion import Confusion
from tinyet.boards import all_boards
from tinyet.boards.cpus import CPUS, RUNS_CODE_OF
from tinyet.cli.model import made_record
from tinyet.comparison.sides import FIGURES
from tinyet.cycles.estimate import CycleEstimate
from tinyet.emit.kinds import KINDS, kinds_for
from tinyet.ir import DType
from tinyet.mismatch.locate import Mismatch
from tinyet.oracles import Agreement
from tinyet.quality.alarm import measure
from tinyet.survey.everywhere import BoardResult
from tinyet.timing.work import Work
from tinyet.validation import LayerResult, ValidationResult

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

LAYER = LayerResult("conv", "y", "conv2d", "tinyet_conv2d_s8", "model.py:1", "model.py:1: y", 12, 34, 40.5)
MISMATCH = Mismatch(0, 0, "conv", "y", "conv2d", "tinyet_conv2d_s8", (0, 1), 3, 4, 1, "conv (model.py:1): y")
RESULT = ValidationResult(
    on="qemu",
    board="mps2_an386",
    samples=1,
    mismatches=1,
    first_mismatch=MISMATCH,
    accuracy=1.0,
    host_accuracy=1.0,
    float_accuracy=1.0,
    count=34,
    count_unit="instructions",
    macs=12,
    arena_bytes=16,
    ram_bytes=20,
    flash_bytes=100,
    stack_bytes=64,
    layers=(LAYER,),
    outputs=[[np.zeros(1, np.int8)]],
)


def sections(page: str, level: int) -> dict[str, str]:
    """The sections of a page with headings of this level: title → text up to the next one."""
    parts = re.split(rf"^{'#' * level} (.+)$", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def tables(text: str) -> list[list[list[str]]]:
    """The tables of a text, each a list of rows below the head, each a list of cells."""
    found = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()[2:]]
        for block in found
    ]


# ---------------------------------------------------------------- operators


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_operators_are_current() -> None:
    pytest.importorskip("torchao", reason="torchao is not installed: half of the table is torch's operators")
    wanted = script("operator_table").text()
    assert (DOCS / "operators.md").read_text(encoding="utf-8") == wanted, "python scripts/operator_table.py"


# ---------------------------------------------------------------- command line


def documented_options(text: str) -> set[str]:
    rows = [row for table in tables(text) for row in table if row[0].startswith("`-")]
    return {word for row in rows for word in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", row[0])}


OF_MODEL = "The options of MODEL"
"""The section about what several commands take."""


def options_of(command: Any) -> set[str]:
    """What `--help` lists, but for `--help` itself."""
    named = [p for p in command.params if p.param_type_name == "option"]
    return {word for p in named for word in (*p.opts, *p.secondary_opts)} - {"--help"}


def test_every_command_and_option_is_documented() -> None:
    group: Any = typer.main.get_command(cli.app)
    pages = sections("cli.md", 2)
    assert list(pages) == ["tinyet", OF_MODEL, *(f"tinyet {name}" for name in group.commands)]
    assert documented_options(pages["tinyet"]) == options_of(group)
    shared = documented_options(pages[OF_MODEL])
    for name, command in group.commands.items():
        text = pages[f"tinyet {name}"]
        said_elsewhere = shared if "[options of MODEL](#the-options-of-model), and" in text else set()
        assert documented_options(text) | said_elsewhere == options_of(command), name
        assert ("It has no options." in text) == (not options_of(command)), name
        assert f"`tinyet {name}" in text, "its usage"


def test_required_options_are_called_so() -> None:
    group: Any = typer.main.get_command(cli.app)
    for name, command in group.commands.items():
        text = sections("cli.md", 2)[f"tinyet {name}"]
        called = {re.findall(r"--[a-z-]+", r[0])[0] for t in tables(text) for r in t if "required" in r[-1]}
        wanted = {p.opts[-1] for p in command.params if p.param_type_name == "option" and p.required}
        assert called == wanted, name


# ---------------------------------------------------------------- JSON


def fields_of(text: str) -> list[list[str]]:
    """The first cells of each table: names of fields."""
    return [[row[0].strip("`") for row in table] for table in tables(text)]


def test_every_field_of_validate_is_documented() -> None:
    estimate = CycleEstimate("Cortex-M4", "a table", (), "mps2_an386", 25_000_000, (Work(),), Work())
    report: Any = RESULT.with_estimate(estimate).to_json()
    whole, layers, estimated, work, mismatch, oracle, boards = fields_of(
        sections("json.md", 2)["`tinyet validate`"]
    )
    assert boards == list(BoardResult("", "", "", None).to_json())
    assert whole == list(report)
    assert oracle == list(Agreement("TFLM", 1, 0).to_json())
    (layer,) = report["layers"]
    assert layers == list(layer)
    assert mismatch == list(report["first_mismatch"])
    assert estimated == [name for name in report["estimate"] if name not in work]
    assert work == list(layer["estimate"]) == list(report["estimate"]["between"])
    assert set(work) <= set(report["estimate"])


def test_every_field_of_answers_is_documented() -> None:
    program = small.program()
    answers = measure(program, [[image[None]] for image in small.images(2)], "calibration")
    assert answers is not None
    (fields,) = fields_of(sections("json.md", 2)["Answers"])
    assert fields == list(answers.to_json())
    (confused,) = fields_of(sections("json.md", 2)["Confusion"])
    assert confused == list(Confusion((), None, (), None).to_json())
    (made,) = fields_of(sections("json.md", 2)["`tinyet compile` and `tinyet generate`"])
    assert set(made) == set(made_record(program, {"name": "net", "path": "net.tet"}, ()))


def test_every_field_of_analyze_is_documented() -> None:
    report: Any = analyze(separable(), load_board("mps2_an386")).to_json()
    whole, layers, functions, kernels, groups, arena, memories, placed = fields_of(
        sections("json.md", 2)["`tinyet analyze`"]
    )
    assert whole == list(report)
    assert layers == list(report["layers"][0])
    assert arena == list(report["arena"][0])
    assert memories == list(report["memories"][0])
    assert placed == list(report["placed"][0])
    assert functions == list(report["functions"][0])
    assert kernels == list(report["kernels"][0])
    assert [list(c) for c in report["peak"]] == [["bytes", "text"]] * len(report["peak"])
    by_rows: Any = analyze(residual(DType.INT8), load_board("mps2_an386"), optimize="size").to_json()
    assert groups == list(by_rows["fusion_groups"][0])


def test_every_field_of_check_is_documented(tmp_path: Path) -> None:
    small.program().save(tmp_path / "small.tet")
    _, fields = fields_of(sections("json.md", 2)["`tinyet check`"])
    assert fields == list(tinyet.check(tmp_path / "small.tet").to_json())


def test_every_field_of_compare_is_documented() -> None:
    program = small.program()
    report: Any = tinyet.compare(program, dataclasses.replace(program, name="other")).to_json()
    whole, layers, answers = fields_of(sections("json.md", 2)["`tinyet compare`"])
    assert whole == list(report)
    assert layers == list(report["layers"][0])
    assert answers == list(report["answers"])
    page = sections("cli.md", 2)["tinyet compare"]
    assert re.findall(r"`(\w+)`", page.partition("The figures: ")[2].partition(". ")[0]) == list(FIGURES)


@pytest.mark.parametrize("unit", ["instructions", "cycles", "nanoseconds"])
def test_null_stands_where_the_page_says_so(unit: str) -> None:
    """What was counted is under its own name only, whatever it was."""
    report: Any = dataclasses.replace(RESULT, count_unit=unit).to_json()
    (layer,) = report["layers"]
    for name in ("instructions", "cycles"):
        wanted = 34 if unit == name else None
        assert report[name] == wanted
        assert layer[name] == wanted
    infinite = dataclasses.replace(LAYER, sqnr_db=float("inf"))
    exact: Any = dataclasses.replace(RESULT, layers=(infinite,), mismatches=0, first_mismatch=None).to_json()
    assert exact["layers"][0]["sqnr_db"] is None
    assert exact["first_mismatch"] is None


# ---------------------------------------------------------------- boards


def test_every_board_is_in_the_table() -> None:
    page = (DOCS / "boards.md").read_text(encoding="utf-8")
    assert page == script("board_table").text(), "python scripts/board_table.py"
    rows = {row[0].strip("`"): row for row in tables(sections("boards.md", 2)["The boards"])[0]}
    assert list(rows) == [board.name for board in all_boards()]
    for board in all_boards():
        _, title, core, isa, flash, ram, kinds, emulators = rows[board.name]
        assert (title, isa) == (board.title, board.isa)
        assert re.findall(r"[\w-]+", core) == [board.cpu, *sorted(board.target.features)]
        for cell, memory in ((flash, board.flash), (ram, board.ram)):
            number, unit = re.fullmatch(r"(\d+)(K?)", cell).groups()  # type: ignore[union-attr]
            assert int(number) * (1024 if unit else 1) == memory.bytes, board.name
        assert [*kinds.split(", "), "cmake", "model"] == sorted(
            kinds_for(board), key=lambda kind: (kind in ("cmake", "model"), KINDS.index(kind))
        )
        assert emulators == ", ".join(board.emulators)


def test_the_board_to_add_is_one(tmp_path: Path) -> None:
    """The page's first board has every kind of project; with the second block it has emulators as well."""
    first, second = re.findall(
        r"```toml\n(.*?)```", (DOCS / "add-a-board.md").read_text(encoding="utf-8"), re.DOTALL
    )
    place = tmp_path / "feather_m4.toml"
    place.write_text(first, encoding="utf-8")
    board = load_board(place)
    assert kinds_for(board) == KINDS
    assert board.flash.end == 512 << 10
    assert not board.bare_metal
    place.write_text(first + second, encoding="utf-8")
    assert load_board(place).emulators == ("qemu",)


def test_every_key_of_a_board_file_is_documented() -> None:
    """Those of the page are the keys that the files have, and no key that has never been used is left out."""
    rows = tables(sections("add-a-board.md", 2)["Every key"])[0]
    documented = {key for row in rows for key in re.findall(r"`([\w.]+)`", row[0])}
    used = {
        key for path in (ROOT / "boards").glob("*.toml") for key in _keys(tomllib.loads(path.read_text()), "")
    }
    wanted = {re.sub(r"^memory\.(?!flash|ram\b)\w+", "memory.NAME", key) for key in used} | {
        *("uart.baud", "memory.NAME.line_bytes", "memory.NAME.family", "memory.NAME.read_only")
    }
    assert documented == wanted
    cpus = next(row[1] for row in rows if row[0] == "`cpu`")
    assert re.findall(r"`([\w-]+)`", cpus) == [*CPUS, *RUNS_CODE_OF]


def _keys(table: dict[str, Any], prefix: str) -> set[str]:
    """The keys of a TOML table and of the tables in it, with dots."""
    found: set[str] = set()
    for key, value in table.items():
        found |= _keys(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}"}
    return found
